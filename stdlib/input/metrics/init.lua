-- SPDX-License-Identifier: Apache-2.0
-- init.lua: reading the files that `pipeplan monitor` is given. Each line is offered to the readers in turn, so that one file may hold
-- several formats (a job's output with dmon's rows between the log's lines), and what none of them knows is passed over.

local arguments = require "pipeplan.input.metrics.arguments"
local launchers = require "pipeplan.input.launchers"
local lines = require "pipeplan.input.metrics.lines"
local marks = require "pipeplan.input.metrics.marks"
local numbers = require "pipeplan.input.metrics.numbers"
local reading = require "pipeplan.base.reading"

local metrics = {}

-- What --input may say, in the order in which readers are asked. A reader has line(text, sink) → was it its own?, or new(sink, columns) →
-- such a function of the text alone, where a file has a header or a line needs those before it. They tell the sink: step
-- (monitor/steps.lua says what a sample has), unnumbered_step, counter, missing, unreadable(step, value), caution (what to know
-- of all its lines, in words).
metrics.inputs = { "megatron", "torchtitan", "nemo", "nanotron", "deepspeed", "maxtext", "verl", "ms-swift", "torchtune", "litgpt",
                   "hf-trainer", "prometheus", "dmon", "nvidia-smi" }

-- The readers of one file → list of { title =, read =, count = 0 }.
local function readers_of(sink, input, columns)
  local list = {}
  for _, name in ipairs(input and { input } or metrics.inputs) do
    local module = require("pipeplan.input.metrics." .. name:gsub("%-", "_"))
    local read = module.new and module.new(sink, columns) or function(text) return module.line(text, sink) end
    list[#list + 1] = { title = module.title, read = read, count = 0 }
  end
  return list
end

-- Reads one file: an open handle, and the name that messages have for it. sink: what readers tell, and mark(what); where it has them also
-- line(number), before what a line tells, and argument(name, value, written): what the run says of its own layout (arguments.lua).
-- → { name, formats = { { title, lines } }, lines, long, torn, unreadable, missing, caution, first_unreadable = { line, text, title,
-- step, value } }, the last two as a log wrote them, nil of counters.
function metrics.read_handle(handle, name, sink, input, columns)
  local file, lost_gradient = { name = name, formats = {}, unreadable = 0, missing = 0 }, false
  local at, written, asked   -- the line that is read: its number, its text, and the reader that is asked
  local inner = setmetatable({
    unreadable = function(step, value)
      file.unreadable = file.unreadable + 1
      file.first_unreadable = file.first_unreadable or { line = at, text = written, title = asked.title, step = step, value = value }
      if sink.unreadable then sink.unreadable() end
    end,
    missing = function() file.missing = file.missing + 1 end,
    caution = function(text) file.caution = text end,
    step = function(sample)
      sample.rank = sample.rank or file.rank
      -- of the step's own line, or of one before it
      if lost_gradient and sample.undefined == 0 then sample.undefined = 1 end
      lost_gradient = false
      sink.step(sample)
    end,
  }, { __index = sink })
  local readers = readers_of(inner, input, columns)
  local count = lines.each(handle, name, function(text, number)
    text, file.rank = launchers.strip(text)
    at, written = number, text
    if sink.line then sink.line(number) end
    if sink.argument then arguments.line(text, sink) end
    lost_gradient = lost_gradient or numbers.undefined_gradient(text)
    for _, reader in ipairs(readers) do
      asked = reader
      if reader.read(text) then
        reader.count = reader.count + 1
        return
      end
    end
    local mark = marks.of(text)
    if mark then sink.mark(mark) end
  end)
  for _, reader in ipairs(readers) do
    if reader.count > 0 then table.insert(file.formats, { title = reader.title, lines = reader.count }) end
  end
  file.rank, file.lines, file.long, file.torn = nil, count.lines, count.long, count.torn
  return file
end

-- The same for a path; "-" is standard input.
function metrics.read(path, sink, input, columns)
  local handle, name = reading.given(path)
  local file = metrics.read_handle(handle, name, sink, input, columns)
  reading.close(handle)
  return file
end

return metrics

-- SPDX-License-Identifier: Apache-2.0
-- monitor.lua: `pipeplan monitor PLAN.json METRICS…`: holds a run against its plan's rollback trigger: keep (0), roll back (1), find a
-- fault first (1) or undecided (0, and said why).

local argparse = require "pipeplan.argparse"
local command_line = require "pipeplan.cli.arguments"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local metrics = require "pipeplan.input.metrics.init"
local said = require "pipeplan.input.metrics.arguments"
local report = require "pipeplan.report.monitor"
local text_of = require "pipeplan.base.text"

local monitor = {}

local examples = [[
Examples:
   pipeplan plan examples/specs/deepseek-v3.json --format json -o plan.json
       the plan to hold runs against
   pipeplan monitor plan.json examples/monitor/healthy.log
       a run that keeps its plan
   pipeplan monitor plan.json examples/monitor/straggler.log examples/monitor/dmon.txt
       one in which a rank turned slow, and counters of a node beside it: find the fault first
   pipeplan monitor plan.json - --format json <examples/monitor/healthy.log
       from standard input, for a machine

Formats are told apart line by line: logs of Megatron-LM (also Primus, Megatron-Bridge),
torchtitan, NeMo 2, nanotron, DeepSpeed, MaxText, verl, ms-swift, torchtune, litgpt and Hugging Face's Trainer;
DCGM's Prometheus text, dcgmi dmon, nvidia-smi's CSV. Only step times decide; counters are shown
beside them. Left out: warm-up, the first step of a process, what follows a checkpoint or an
evaluation, a line in which the batch grew, rare stalls. Of several ranks in one file the first counts.
Of a batch that grows each step is held against what the plan says at its own batch.
A run that began as planned and became slower is no reason to change the schedule: find the fault.
Where the plan and its fallback are too close for the estimates to tell apart: undecided near the
threshold; keep above it; far below it, by more than the estimates can be off, roll back.
Exit status: 0 keep, or undecided; 1 roll back, or a fault to find; 2 the command, the plan or a file cannot be read;
5 no sample in the window.]]

function monitor.parser()
  local parser = argparse("pipeplan monitor", "Holds a run's log against its plan: keep the schedule, or roll back."):add_help(false)
    :help_max_width(100):help_description_margin(24):usage("Usage: pipeplan monitor PLAN.json METRICS... [OPTIONS]"):epilog(examples)
  parser:argument("plan", "what `pipeplan plan --format json` printed")
  parser:argument("metrics", "logs and counters of the run, in the order of time; - is standard input"):args("+")
  parser:option("--input", "read this format only: " .. table.concat(metrics.inputs, ", ")):argname("FORMAT")
    :choices(metrics.inputs)
  parser:option("--columns", "what the columns of a file without a header are: nvidia-smi's fields, or dmon's headings"):argname("NAME,...")
  parser:option("--steps", "count these steps instead of the plan's window without its warm-up"):argname("FIRST-LAST")
  parser:option("--min-steps", "undecided on fewer (default a tenth of the steps that could count, at least 5)"):argname("N")
  parser:option("--stall-factor", "leave out rare steps over this many times the median; 0: none"):argname("X"):default("2")
  parser:option("--format", "text, html (a page for a browser) or json (default text)"):argname("FORMAT"):choices { "text", "html", "json" }
  parser:option("--output", "write to this file instead, whole or not at all (also: -o FILE)"):argname("FILE"):hidden_name("-o")
  parser:option("--stdlib"):hidden(true)   -- read by the program before Lua starts
  parser:flag("-h --help", "show this help")
  return parser
end

-- ------------------------------------------------------------------------------------------------------------------------- arguments

local max_steps = 1000000   -- that a window may have

-- The steps that count, first and last.
local function window_of(plan, text)
  if not text then return plan.warmup + 1, plan.window end
  local first, last = text:match "^(%d+)%-(%d+)$"
  first, last = first and math.tointeger(tonumber(first)), last and math.tointeger(tonumber(last))
  if not first or not last or first < 1 or last < first then
    failure.usage("--steps must be FIRST-LAST, two iterations such as 51-1000, got '%s'", text)
  end
  if last > 2 ^ 53 or last - first >= max_steps then failure.usage("--steps %s: expected at most %d steps", text, max_steps) end
  return first, last
end

local function min_steps_of(text, first, last)
  local count = last - first + 1
  if not text then return math.min(count, math.max(5, (count + 9) // 10)) end
  return command_line.integer("min-steps", text, 1, max_steps)
end

local function stall_factor_of(text)
  local value = text:match "^[%d.]+$" and tonumber(text)
  if not value or (value ~= 0 and value <= 1) or value > 1e6 then
    failure.usage("--stall-factor must be a number over 1, or 0 to leave none out, got '%s'", text)
  end
  return value
end

local function check_files(parsed)
  local stdin = parsed.plan == "-" and 1 or 0
  for _, path in ipairs(parsed.metrics) do stdin = stdin + (path == "-" and 1 or 0) end
  if stdin > 1 then failure.usage("monitor: standard input (-) can be read once only") end
end

-- ---------------------------------------------------------------------------------------------------------------------- the flow

-- Reads all files into the collectors. A GPU whose host the file does not say is named by the file. A log that says another layout than the
-- plan's is of another run.
local function read_all(parsed, plan, steps, counters)
  local files, columns = {}, parsed.columns and text_of.parts(parsed.columns)
  for i, path in ipairs(parsed.metrics) do
    local host = path == "-" and "standard input" or path:match "[^/]*$"
    local place = { file = path == "-" and host or path, line = 0 }
    steps:next_file()
    files[i] = metrics.read(path, {
      line = function(number) place.line = number end,
      argument = function(name, value, written)
        local words = said.differs(plan.layout, name, value, written, plan.file)
        if words then failure.usage("%s:%d: %s", place.file, place.line, words) end
      end,
      step = function(sample)
        sample.place = place
        steps:add(sample)
      end,
      unnumbered_step = function(seconds) steps:add_unnumbered(seconds) end,
      mark = function(what) steps:mark(what) end,
      counter = function(kind, who, fraction)
        who.host = who.host or host
        counters:add(kind, who, fraction)
      end,
    }, parsed.input, columns)
  end
  return files
end

-- Of one file: which lines were a format's, and their values none; the formats of lines that --input left out.
local function unread(file, path, input)
  if file.first_unreadable then return "; " .. report.unreadable(file) end
  if not input or path == "-" then return "" end
  local ignore, names = function() end, {}
  local sink = { step = ignore, unnumbered_step = ignore, mark = ignore, counter = ignore }
  for _, entry in ipairs(metrics.read(path, sink).formats) do
    names[#names + 1] = entry.title .. " " .. format.plural(entry.lines, "line")
  end
  return #names > 0 and string.format("; %s has %s, which --input %s leaves out", file.name, table.concat(names, ", "), input) or ""
end

-- Nothing in the window: what was there instead.
local function nothing(parsed, steps, files, first, last)
  local read = {}
  for _, file in ipairs(files) do read[#read + 1] = file.name:gsub("%c", "?") end
  local names = #read > 3 and #read .. " files" or table.concat(read, ", ")
  local reasons = {}
  for i, file in ipairs(files) do reasons[i] = unread(file, parsed.metrics[i], parsed.input) end
  if steps.senseless > 0 then failure.raise("nothing", "no step in %s: %s", names, report.senseless(steps)) end
  if steps.lines > 0 then
    failure.raise("nothing", "no step in the window: %s has iterations %d to %d, and steps from %d to %d count (--steps: others)%s", names,
                  steps.lowest, steps.highest, first, last, table.concat(reasons))
  end
  local lines = 0
  for _, file in ipairs(files) do
    lines = lines + file.lines
    if file.caution then failure.raise("nothing", "no sample in %s: %s", names, file.caution) end
  end
  if parsed.input or #table.concat(reasons) > 0 then
    failure.raise("nothing", "no sample in %s: %d lines, none with a value of %s%s", names, lines, parsed.input or "a step or counter",
                  table.concat(reasons))
  end
  failure.raise("nothing", "no sample in %s: %d lines, none with a value of a known format (%s; without a header: --columns)", names, lines,
                table.concat(metrics.inputs, ", "))
end

-- Counters alone never decide.
local function without_steps(counters)
  local best = counters[1]
  local words = {
    ranks = "tensor-active can only hold ranks against each other: how much it is while a rank works, nobody measured here",
    weakly = "SM-active falls in a bubble and rises with communication: no threshold can be put to it",
    nothing = best.title .. " cannot see a bubble",
  }
  return { words[best.sees], "give the run's log too: step time or tokens per second decide" }
end

local function render(run, format_name, arguments)
  if format_name == "html" then
    return require("pipeplan.report.html.init").monitor(run, { "pipeplan", "monitor", table.unpack(arguments) })
  end
  if format_name ~= "json" then return report.text(run) end
  return require("pipeplan.base.documents").encode("monitoring", report.object(run), { indent = 2 }) .. "\n"
end

function monitor.run(arguments)
  local parsed, help = command_line.parse(monitor.parser(), arguments, "monitor")
  if not parsed then return help, failure.status.ok end
  check_files(parsed)
  local plan = require("pipeplan.input.plan_file").read(parsed.plan)
  local first, last = window_of(plan, parsed.steps)
  local least, stall_factor = min_steps_of(parsed.min_steps, first, last), stall_factor_of(parsed.stall_factor)
  local limits = { min_steps = least, last = last }

  local steps = require("pipeplan.monitor.kinds").new(plan, first, last)
  local counters = require("pipeplan.monitor.counters").new()
  local files = read_all(parsed, plan, steps, counters)
  local found, seen = steps:finish(stall_factor), counters:finish(plan)
  if not found.measured and (steps.lines > 0 or #seen == 0) then nothing(parsed, steps, files, first, last) end

  local run = { plan = plan, found = found, steps = steps, counters = seen, files = files, first = first, last = last,
                too_many_gpus = counters.too_many }
  if found.measured then run.verdict, run.reasons = require("pipeplan.monitor.verdict").of(plan, found, limits)
  else run.verdict, run.reasons = "undecided", without_steps(seen) end
  local alarm = run.verdict == "roll_back" or run.verdict == "fault"
  return render(run, parsed.format, arguments), alarm and failure.status.refused or failure.status.ok, parsed.output
end

return monitor

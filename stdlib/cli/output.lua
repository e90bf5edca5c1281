-- SPDX-License-Identifier: Apache-2.0
-- output.lua: where the text of a command goes: standard output, or a file, which is there whole or not at all (engine/host/output_file.h).
-- The only place that writes files. What cannot be written is a usage failure that says where and why.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local visible = require "pipeplan.base.visible"

local output = {}

local methods = {}
methods.__index = methods

-- Of what a write came to: the failure, if it is one.
local function check(self, good, problem)
  if not good then failure.usage("cannot write %s: %s", self.name, problem) end
end

function methods:write(text) check(self, self.file:write(text)) end

-- Whoever reads it sees now what is written; a file that is not whole yet is nobody's to see.
function methods:flush() check(self, self.file:flush()) end

function methods:finish()
  if self.file == io.stdout then self:flush() else check(self, self.file:finish()) end
end

-- Unfinished: as if nothing had been written.
function methods:__close()
  if self.file ~= io.stdout then self.file:discard() end
end

-- output.open(path [, kept]) → what to write to, in a variable that closes it. No path: standard output. `kept`: a file whose every part
-- is of use is written in place, after its first `kept` bytes.
function output.open(path, kept)
  if not path then return setmetatable({ name = "to standard output", file = io.stdout }, methods) end
  local file, problem = engine.process.output(path, kept)
  local self = { name = path ~= "" and path or "''", file = file }
  check(self, file, problem)
  return setmetatable(self, methods)
end

-- output.write(text [, path]): all of a text: a string, or an iterator over its pieces, for what would be too large to hold.
function output.write(text, path)
  local to <close> = output.open(path)
  if type(text) == "string" then to:write(text)
  else
    for piece in text do to:write(piece) end
  end
  to:finish()
end

-- output.complain(text, …): a line of standard error for each text, the first behind "pipeplan: ".
function output.complain(...)
  local lines = { ... }
  for i, line in ipairs(lines) do lines[i] = visible.line(line) .. "\n" end
  io.stderr:write("pipeplan: ", table.concat(lines))
end

-- What a raised error says there, and the exit status that it means. An error that is no answer, with a traceback: a bug of pipeplan.
function output.tell(problem)
  if failure.is(problem) then
    output.complain(table.unpack(problem.lines or { problem.message }))
    return problem.status
  end
  local lines = { "internal error, please report it" }
  for line in tostring(problem):gmatch "[^\n]+" do lines[#lines + 1] = line:gsub("\t", "  ") end
  output.complain(table.unpack(lines))
  return failure.status.bug
end

return output

-- SPDX-License-Identifier: Apache-2.0
-- input_lines.lua: standard input a line at a time, without ever waiting for it: it may be a pipe whose writer waits for an answer first.

local engine = require "engine"

local input_lines = {}

local methods = {}
methods.__index = methods

-- Reads what is there. Call it when there is something, or it waits.
function methods:read()
  local text, problem = engine.process.read()
  if text then
    self:take(text)
  else
    self.ended, self.problem = true, problem
    if self.length > 0 then self:finish_line "" end
  end
end

function methods:take(text)
  local from, at = 1, text:find("\n", 1, true)
  while at do
    self:finish_line(text:sub(from, at - 1))
    from = at + 1
    at = text:find("\n", from, true)
  end
  if from <= #text then self:add_part(text:sub(from)) end
end

-- A line comes in parts. Of one that is too long nothing is kept.
function methods:add_part(part)
  self.length = self.length + #part
  if self.length > self.limit then
    self.parts, self.number_of_parts, self.too_long = {}, 0, true
  else
    self.number_of_parts = self.number_of_parts + 1
    self.parts[self.number_of_parts] = part
  end
end

function methods:finish_line(part)
  self:add_part(part)
  self.last = self.last + 1
  self.lines[self.last], self.lengths[self.last] = not self.too_long and table.concat(self.parts) or false, self.length + 1
  self.parts, self.number_of_parts, self.length, self.too_long = {}, 0, 0, false
end

-- → number of the line, its text without the line end (false: longer than the limit) | false: none has come yet | nil: no more will come.
function methods:next()
  if self.number == self.last then
    if self.ended then return nil end
    return false
  end
  local number = self.number + 1
  local line = self.lines[number]
  self.number, self.bytes = number, self.bytes + self.lengths[number]
  self.lines[number], self.lengths[number] = nil, nil
  return number, line
end

-- input_lines.new(limit) → lines of at most `limit` bytes. `bytes`: of those that `next` gave; `problem`: why reading ended early.
function input_lines.new(limit)
  return setmetatable({ limit = limit, bytes = 0, number = 0, last = 0, lines = {}, lengths = {},
                        parts = {}, number_of_parts = 0, length = 0, too_long = false }, methods)
end

return input_lines

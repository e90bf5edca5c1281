-- SPDX-License-Identifier: Apache-2.0
-- kinds.lua: a log may have several kinds of lines that tell of the same steps. The one counts that tells most directly, if it tells of
-- half as many steps of the window as any does: a few lines of a framework below do not hide the log of the one above.
--
-- What steps.lua holds of the kind that counts is read as a field of this: lines, restarts, …

local steps = require "pipeplan.monitor.steps"

local kinds = {}

-- From the most direct on. A sample's grade is `line` where it says none.
local grades = { "line", "step", "difference", "bar" }

local methods = {}

-- kinds.new(plan, first, last) → collector; first, last: the steps that count, from 1.
function kinds.new(plan, first, last)
  local of_lines = steps.new(plan, first, last)
  return setmetatable({ arguments = { plan, first, last }, of = { line = of_lines }, best = of_lines }, {
    __index = function(self, name) return methods[name] or self.best[name] end,
  })
end

-- A line that says why the next takes longer.
function methods:mark(what)
  for _, collector in pairs(self.of) do collector:mark(what) end
  self.marked = what
end

function methods:next_file()
  for _, collector in pairs(self.of) do collector:next_file() end
  self.marked = nil
end

-- The kinds that were read, the most direct first.
local function read_of(self)
  local list = {}
  for _, grade in ipairs(grades) do
    if self.of[grade] and self.of[grade].lines > 0 then list[#list + 1] = self.of[grade] end
  end
  return list
end

-- One line: a sample as steps.lua takes it, and its grade.
function methods:add(sample)
  local grade = sample.grade or "line"
  if not self.of[grade] then
    self.of[grade] = steps.new(table.unpack(self.arguments))
    if self.marked then self.of[grade]:mark(self.marked) end
  end
  self.marked = nil
  self.of[grade]:add(sample)
  if self.best ~= self.of[grade] then self.best = read_of(self)[1] or self.best end
end

-- A line with a time and no iteration: counted, in case no other line has one.
function methods:add_unnumbered(seconds) self.of.line:add_unnumbered(seconds) end

-- Of how many steps of the window there is a line.
local function told_of(found)
  local count = found.measured and found.measured.steps or 0
  for _, group in ipairs(found.dropped) do count = count + (group.why ~= "warm_up" and group.steps or 0) end
  return count
end

-- What is in the window, of the kind that counts: see steps.lua.
function methods:finish(stall_factor)
  local list, founds, most = read_of(self), {}, 0
  if #list == 0 then list = { self.of.line } end
  for k, collector in ipairs(list) do
    founds[k] = collector:finish(stall_factor)
    most = math.max(most, told_of(founds[k]))
  end
  for k, collector in ipairs(list) do
    if 2 * told_of(founds[k]) >= most then
      self.best = collector
      return founds[k]
    end
  end
end

return kinds

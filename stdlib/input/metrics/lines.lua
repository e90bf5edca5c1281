-- SPDX-License-Identifier: Apache-2.0
-- lines.lua: the lines of a log of any size, one after the other: what is held never exceeds a block and a line.
--
-- A carriage return ends a line too, for progress bars write over themselves. What stands after the last line end may be torn: whoever
-- wrote it may not be done, and "812" may be the beginning of "8123.4". It is counted, not read.

local failure = require "pipeplan.base.failure"
local text_of = require "pipeplan.base.text"

local lines = {}

local block_bytes = 65536
local max_bytes = 65536   -- no line of a log that says something is longer; of a longer one the rest is passed over

-- Calls visit(text, number) for each complete line; its number is an editor's, for which a carriage return alone ends none
-- → { lines =, long =, torn = }: how many there were, how many of them were too long to be read, and whether something stood after the
-- last line end. `name` is for the message when the file cannot be read.
function lines.each(handle, name, visit)
  local count, rest, skipping, number, first = { lines = 0, long = 0, torn = false }, "", false, 1, true
  while true do
    local block, problem = handle:read(block_bytes)
    if not block then
      if problem then failure.usage("%s: cannot be read: %s", name, problem) end
      break
    end
    if first then block, first = text_of.unmarked(block), false end
    local from, at = 1, block:find "[\r\n]"
    while at do
      if not skipping then
        local text = rest .. block:sub(from, at - 1)
        if text ~= "" then
          count.lines = count.lines + 1
          visit(text, number)
        end
      end
      if block:byte(at) == 10 then number = number + 1 end
      rest, skipping, from = "", false, at + 1
      at = block:find("[\r\n]", from)
    end
    if not skipping then rest = rest .. block:sub(from) end
    if #rest > max_bytes then
      rest, skipping = "", true
      count.lines, count.long = count.lines + 1, count.long + 1
    end
  end
  count.torn = rest ~= ""
  return count
end

return lines

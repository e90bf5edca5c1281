-- SPDX-License-Identifier: Apache-2.0
-- dmon.lua: what `dcgmi dmon -e 1001,1002,1003,1004,1005` prints: two lines of headings, again every few rows, then a row for each GPU:
--
--   #Entity   GRACT  SMACT  SMOCC  TENSO  DRAMA
--   ID
--   GPU 0     0.983  0.861  0.301  0.412  0.377
--
-- A slice of a GPU is "GPU-I 1". N/A is no value (the first row after the host engine started). Headings of a file that begins in the
-- middle: --columns.

local counters = require "pipeplan.input.metrics.counters"
local numbers = require "pipeplan.input.metrics.numbers"

local dmon = { name = "dmon", title = "dcgmi dmon" }

local function words_of(text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = word end
  return words
end

-- A reader of one file: it remembers the headings. names: of --columns, or nil.
function dmon.new(sink, names)
  local headings = names
  return function(line)
    local titles = line:match "^#%s*Entity%s(.*)$"
    if titles then
      headings = words_of(titles)
      return true
    end
    local kind, id, rest = line:match "^%s*(GPU[%-CI]*)%s+(%d+)%s+(.*)$"
    if not kind or not headings then return false end
    local cells = words_of(rest)
    if #cells ~= #headings then
      sink.unreadable()
      return true
    end
    for i, heading in ipairs(headings) do
      local entry, number = counters.by_heading[heading], numbers.read(cells[i])
      if entry and number then
        local fraction, why = counters.fraction(entry, number)
        if fraction then sink.counter(entry.name, { gpu = kind == "GPU" and id or nil, slice = kind ~= "GPU" and id or nil }, fraction)
        else sink[why]() end
      elseif entry then
        sink[cells[i]:find "^N/A" and "missing" or "unreadable"]()
      end
    end
    return true
  end
end

return dmon

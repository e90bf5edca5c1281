-- SPDX-License-Identifier: Apache-2.0
--[[
function_source.lua: the text of functions in the file where they stand.

  function_source.of(text, first, last) → { { from, to }, … }: the outermost functions that begin in line `first` and end in line `last`, as
      offsets of their first and last byte. Lua says of a function which lines it has and no more: several of a line are not told apart.
  function_source.all(text) → { { from, to, line, name, when, depth }, … }: every function; when: written as a rule's `when`; depth: of
      blocks around it, 0: none
]]

local lua_text = require "pipeplan.base.lua_text"

local function_source = {}

local opens = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local closes = { ["end"] = true, ["until"] = true }

-- Counts lines on the way through a text.
local function line_counter(text)
  local line, counted = 1, 1
  return function(at)
    line = line + select(2, text:sub(counted, at - 1):gsub("\n", ""))
    counted = at
    return line
  end
end

function function_source.of(text, first, last)
  local list, open, line_of = {}, {}, line_counter(text)
  for kind, start, stop in lua_text.words(text) do
    local line = line_of(start)
    if line > last then break end
    local word = kind == "name" and line >= first and text:sub(start, stop)
    if opens[word] and (#open > 0 or word == "function" and line == first) then open[#open + 1] = start
    elseif closes[word] and #open > 0 then
      local from = table.remove(open)
      if #open == 0 and line == last then list[#list + 1] = { from = from, to = stop } end
    end
  end
  return list
end

-- Of `local function x`, `function a.x`, `x = function`: its name.
local function name_of(text, stop, before)
  return text:match("^%s*([%a_][%w_.:]*)", stop + 1) or before[1] == "=" and before[2] or "without a name"
end

function function_source.all(text)
  local list, open, before, line_of = {}, {}, {}, line_counter(text)
  for kind, start, stop in lua_text.words(text) do
    local word = text:sub(start, stop)
    if kind == "name" and opens[word] then
      open[#open + 1] = word == "function" and { from = start, line = line_of(start), name = name_of(text, stop, before),
                                                 when = before[1] == "=" and before[2] == "when", depth = #open } or {}
    elseif kind == "name" and closes[word] and #open > 0 then
      local one = table.remove(open)
      one.to = stop
      if one.from then list[#list + 1] = one end
    end
    if kind ~= "comment" then before[1], before[2] = word, before[1] end
  end
  return list
end

return function_source

-- SPDX-License-Identifier: Apache-2.0
--[[
function_source.lua: the text of a rule's function in the file where it stands.

  function_source.of(text, first, last) → { { from, to }, … }: the outermost functions that begin in line `first` and end in line `last`, as
      offsets of their first and last byte. Lua says of a function which lines it has and no more: several of a line are not told apart.
]]

local lua_text = require "pipeplan.base.lua_text"

local function_source = {}

local opens = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }
local closes = { ["end"] = true, ["until"] = true }

function function_source.of(text, first, last)
  local list, open, line, counted = {}, {}, 1, 1
  for kind, start, stop in lua_text.words(text) do
    line = line + select(2, text:sub(counted, start - 1):gsub("\n", ""))
    counted = start
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

return function_source

-- SPDX-License-Identifier: Apache-2.0
-- function_source.lua: the text of a rule's function in the file where it stands.

local function_source = {}

-- Byte offsets of the first and the last of some lines.
function function_source.span(text, first, last)
  local at, from, to, number = 1, nil, #text, 1
  while at <= #text do
    local stop = text:find("\n", at, true) or #text
    if number == first then from = at end
    if number == last then
      to = stop
      break
    end
    at, number = stop + 1, number + 1
  end
  return from, to
end

-- A copy of a text in which what stands in comments and quotes is blank, byte for byte.
function function_source.code_only(text)
  local function blank(part) return (part:gsub("[^\n]", " ")) end
  return (text:gsub("(['\"])(.-)%1", function(quote, inside) return quote .. blank(inside) .. quote end):gsub("%-%-[^\n]*", blank))
end

return function_source

-- SPDX-License-Identifier: Apache-2.0
-- numbers.lua: words of a launch as numbers, as Python's int() and float() take them.

local numbers = {}

function numbers.is_whole(text) return text:find "^[-+]?%d[%d_]*$" ~= nil end

function numbers.is_number(text) return tonumber(text) ~= nil and not text:find "^%s*[-+]?0[xX]" end

-- A whole number, or nil.
function numbers.whole(text)
  return numbers.is_whole(text) and math.tointeger(tonumber((text:gsub("_", "")))) or nil
end

-- The same, as a float where it is too large for one.
function numbers.any_whole(text)
  return numbers.whole(text) or numbers.is_whole(text) and tonumber((text:gsub("_", ""))) or nil
end

-- The whole number from 1 on that is nearest to one that is none, as text; nil: it is no number.
function numbers.nearest_whole(text)
  local number = numbers.is_number(text) and tonumber(text)
  if not number or number ~= number or number >= 2 ^ 53 then return nil end
  return string.format("%d", math.max(1, math.ceil(number - 0.5)))
end

return numbers

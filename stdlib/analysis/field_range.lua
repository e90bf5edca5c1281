-- SPDX-License-Identifier: Apache-2.0
--[[
field_range.lua: what conditions on a field come to among the values that it can have (vocabulary.lua): "at most 1" is "= 1" of a number
that is 1 or more.

  field_range.same(a, b)             do two conditions on one numeric field hold for the same of its values?
  field_range.splits(condition, n)   does it hold for one value beside the number n, or n itself, and not for another?
]]

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local vocabulary = require "pipeplan.vocabulary"

local field_range = {}

local CLOSE = 1e-9   -- of a number, as its share

local function holds(condition, value)
  return engine.conditions.match({ [condition.field] = value }, conditions.engine { conditions = { condition } })
end

-- Values of the field at and beside some numbers: between these nothing changes of a comparison.
local function beside(field, numbers)
  local list = {}
  local function add(value)
    if value >= (field.low or -math.huge) and value <= (field.high or math.huge) then list[#list + 1] = value end
  end
  for _, number in ipairs(numbers) do
    if field.type == "integer" then
      for value = math.floor(number) - 1, math.ceil(number) + 1 do add(value) end
    else
      local near = math.max(math.abs(number) * CLOSE, CLOSE)
      for _, value in ipairs { number - near, number, number + near } do add(value) end
    end
  end
  return list
end

-- Does it compare with a field, of which nobody knows the value here?
local function reads_a_field(condition)
  return condition.ref and condition.value == nil or condition.low_ref and condition.low == nil
         or condition.high_ref and condition.high == nil
end

function field_range.same(a, b)
  local field, numbers = vocabulary.by_name[a.field], conditions.numbers(a)
  if field.type ~= "integer" and field.type ~= "number" or reads_a_field(a) or reads_a_field(b) then return false end
  table.move(conditions.numbers(b), 1, #conditions.numbers(b), #numbers + 1, numbers)
  numbers[#numbers + 1] = field.low
  numbers[#numbers + 1] = field.high
  for _, value in ipairs(beside(field, numbers)) do
    if holds(a, value) ~= holds(b, value) then return false end
  end
  return true
end

function field_range.splits(condition, number)
  local values = beside(vocabulary.by_name[condition.field], { number })
  for _, value in ipairs(values) do
    if holds(condition, value) ~= holds(condition, values[1]) then return true end
  end
  return false
end

return field_range

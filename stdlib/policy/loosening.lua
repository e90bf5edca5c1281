-- SPDX-License-Identifier: Apache-2.0
-- loosening.lua: does an override let more plans through? Then it needs a reason.
-- What cannot be proved to be as strict as before counts as loosening.

local engine = require "engine"
local vocabulary = require "pipeplan.vocabulary"

local loosening = {}

-- Rules that keep plans away: taking one out or narrowing it loosens the policy.
loosening.guards = { reject = true, refuse = true, invariant = true }

local function reads_a_field(condition)
  return (condition.ref and condition.value == nil) or (condition.low_ref and condition.low == nil) or
         (condition.high_ref and condition.high == nil) or false
end

local function identical(a, b)
  if a.op ~= b.op or a.value ~= b.value or a.low ~= b.low or a.high ~= b.high then return false end
  -- With equal values the names do not matter; without values they are all there is.
  if reads_a_field(a) or reads_a_field(b) then
    return a.ref == b.ref and a.low_ref == b.low_ref and a.high_ref == b.high_ref
  end
  return not a.values and not b.values
end

-- An ordered condition as an interval: low, low_open, high, high_open; nil when it is none.
local function interval(condition)
  local op, value = condition.op, condition.value
  if op == "under" then return -math.huge, false, value, true end
  if op == "at_most" then return -math.huge, false, value, false end
  if op == "over" then return value, true, math.huge, false end
  if op == "at_least" then return value, false, math.huge, false end
  if op == "between" then return condition.low, false, condition.high, false end
  return nil
end

-- Integers: under 10 is at most 9.
local function closed(field, low, low_open, high, high_open)
  if vocabulary.by_name[field].type == "integer" then
    if low_open then low, low_open = math.floor(low) + 1, false end
    if high_open then high, high_open = math.ceil(high) - 1, false end
  end
  return low, low_open, high, high_open
end

local function matches(condition, value)
  local entry = { field = condition.field, op = condition.op, value = condition.value, low = condition.low, high = condition.high,
                  values = condition.values }
  return engine.conditions.match({ [condition.field] = value }, { entry })
end

-- Does every value that satisfies a also satisfy b (nil: no condition)?
function loosening.implies(a, b)
  if not b then return true end
  if not a then return false end
  if identical(a, b) then return true end
  if reads_a_field(a) or reads_a_field(b) then return false end
  if a.op == "equal" then return matches(b, a.value) end
  if a.op == "one_of" then
    for _, value in ipairs(a.values) do
      if not matches(b, value) then return false end
    end
    return true
  end
  if a.op == "none_of" then
    if b.op ~= "none_of" then return false end
    local excluded = {}
    for _, value in ipairs(a.values) do excluded[value] = true end
    for _, value in ipairs(b.values) do
      if not excluded[value] then return false end
    end
    return true
  end
  if not interval(a) or not interval(b) then return false end
  local a_low, a_low_open, a_high, a_high_open = closed(a.field, interval(a))
  local b_low, b_low_open, b_high, b_high_open = closed(b.field, interval(b))
  local low_holds = b_low < a_low or (b_low == a_low and (a_low_open or not b_low_open))
  local high_holds = b_high > a_high or (b_high == a_high and (a_high_open or not b_high_open))
  return low_holds and high_holds
end

-- Is the rule `after` narrower than `before` (both { conditions = { field → condition }, when, unless })?
function loosening.narrows(before, after)
  for field, condition in pairs(after.conditions) do
    if not loosening.implies(before.conditions[field], condition) then return true end
  end
  if after.when and after.when ~= before.when then return true end
  return after.unless ~= nil and after.unless ~= before.unless
end

-- Does moving a parameter from one value to another go in its loosening direction?
function loosening.moves(parameter, from, to)
  if parameter.loosens == "up" then return type(to) == "number" and to > from end
  if parameter.loosens == "down" then return type(to) == "number" and to < from end
  return false
end

return loosening

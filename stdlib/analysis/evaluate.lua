-- SPDX-License-Identifier: Apache-2.0
--[[
evaluate.lua: one rule against one spec: each condition, its field's values over the candidates, how many it holds for, and the
first candidate that the rule decides.

  evaluate.of(rule, request, policy) → { id, verb, total, holds, conditions = { { text, holds, values }, … },
                                         first = { text, fields } | nil, plan = { holds, status } }
A rule about the finished plan alone (warn, invariant) is judged by the plan.
]]

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local functions = require "pipeplan.policy.functions"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local vocabulary = require "pipeplan.vocabulary"

local evaluate = {}

local SHOWN = 8  -- values of a field that are named one by one

local function shown(value, field)
  if value == nil then return "absent" end
  return format.quantity(value, vocabulary.by_name[field].unit)
end

-- "1, 2, 4, 8", or "0.3 % to 12 %" of many.
local function values_text(list, field)
  local seen, distinct, absent = {}, {}, 0
  for _, value in ipairs(list) do
    if value == false and vocabulary.by_name[field].type ~= "boolean" and field ~= "alltoall_kernel" then absent = absent + 1
    elseif not seen[value] then
      seen[value] = true
      distinct[#distinct + 1] = value
    end
  end
  local numeric = type(distinct[1]) == "number"
  table.sort(distinct, function(a, b)
    if numeric then return a < b end
    return tostring(a) < tostring(b)
  end)
  local text
  if numeric and #distinct > SHOWN then
    text = shown(distinct[1], field) .. " to " .. shown(distinct[#distinct], field)
  else
    local parts = {}
    for i, value in ipairs(distinct) do parts[i] = shown(value, field) end
    text = table.concat(parts, ", ", 1, math.min(#parts, SHOWN)) .. (#parts > SHOWN and ", …" or "")
  end
  if absent > 0 then text = text .. (text ~= "" and ", " or "") .. string.format("absent for %d", absent) end
  return text
end

local function candidate_text(fields)
  local parallelism = {}
  for name, field in pairs(vocabulary.parallelism) do parallelism[name] = fields[field] end
  return format.schedule(fields.schedule) .. ": " .. layout.line(parallelism, fields.microbatches)
end

-- Each candidate's record, filled as far as the rule reads.
local function records(set, rule)
  local list, simulated = {}, rule.when ~= nil
  for _, condition in ipairs(rule.conditions) do
    simulated = simulated or vocabulary.by_name[condition.field].scope == "simulated"
  end
  if simulated then set:fill_memory(set.c:all()) end
  for _, row in ipairs(set.c:all():rows()) do
    if simulated and not set.unbuildable:has(row) then set.c:simulate(row) end
    list[#list + 1] = set.c:row(row)
  end
  return list
end

local function of_plan(rule)
  if rule.verb == "warn" or rule.verb == "invariant" then return true end
  for _, condition in ipairs(rule.conditions) do
    if vocabulary.by_name[condition.field].scope == "plan" then return true end
  end
  return false
end

local function judge_condition(condition, policy, list)
  local values, holds = {}, 0
  for i, record in ipairs(list) do
    local value = record[condition.field]
    if value == nil then value = false end
    values[i] = value
    if conditions.holds({ conditions = { condition } }, policy, record) then holds = holds + 1 end
  end
  return { text = conditions.text(condition), holds = holds, values = values_text(values, condition.field) }
end

-- The records for which a rule holds: its function is asked as a plan asks it, where the conditions hold, and once for equal values.
local function held(rule, policy, list, labels)
  local out, without, asked = {}, { conditions = rule.conditions }, functions.memo(labels)
  for _, record in ipairs(list) do
    if conditions.holds(without, policy, record) then
      local late = rule.when and functions.late_of(record) or {}
      local says = not rule.when or asked:answer(rule, policy, function(field) return record[field] end,
                                                 function(field) return late[field] end)
      if says then out[#out + 1] = record end
    end
  end
  return out
end

function evaluate.of(rule, request, policy)
  local seen = {}
  local before = planner.observer
  planner.observer = function(out, record, result) seen.plan, seen.record, seen.set = out, record, result.set end
  planner.plan { request = request, policy = policy }
  planner.observer = before
  policy.host:refill()   -- one budget for all candidates, as the rules of a plan have
  local list = of_plan(rule) and { seen.record } or records(seen.set, rule)
  local yes = held(rule, policy, list, seen.record)
  local out = { id = rule.id, verb = rule.verb, total = #list, holds = #yes, conditions = {}, plan = { status = seen.plan.status } }
  for i, condition in ipairs(rule.conditions) do out.conditions[i] = judge_condition(condition, policy, list) end
  if rule.when then
    local text = "its function `when`" .. (#rule.conditions > 0 and ", where these hold" or "")
    table.insert(out.conditions, { text = text, holds = #yes, values = "" })
  end
  if yes[1] then out.first = { fields = yes[1], text = yes[1].schedule and candidate_text(yes[1]) or "the plan" } end
  policy.host:refill()
  out.plan.holds = conditions.holds(rule, policy, seen.record)
  return out
end

-- ----------------------------------------------------------------------------------------------------------------------- expressions

local function value_text(value)
  if type(value) == "number" then
    if value ~= value then return "nan" end   -- C prints its sign, which differs from machine to machine
    local whole = math.abs(value) < 2 ^ 53 and math.tointeger(value)
    return whole and tostring(whole) or string.format("%.6g", value)
  end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for _, key in ipairs(lists.sorted_keys(value)) do parts[#parts + 1] = tostring(key) .. " = " .. value_text(value[key]) end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- What went wrong, without the place: an expression has one line.
local function without_place(problem)
  return (tostring(problem):gsub("^rule '[^']*' %(%-e:%d+%): ", ""):gsub("^%-e:%d+: ", ""))
end

-- As failure.try; but a budget that is spent, and a name that nothing has, are not what went wrong with one candidate.
local function try_value(rule, policy, record)
  local good, value, names, late = failure.try(functions.value, rule, policy, record, functions.late_of(record))
  local problem = not good and failure.of(value)
  if problem and problem.status == failure.status.over_budget then error(value, 0) end
  if problem and problem.unknown then failure.raise("policy_error", "%s", without_place(value)) end
  return good, value, names, late
end

-- What the rule `expression` returns of a candidate, which is simulated where it has to be; a message where it fails.
local function value_of(rule, policy, set, row)
  local record = set.c:row(row)
  local good, value, _, late = try_value(rule, policy, record)
  if good and late and not set.unbuildable:has(row) then
    set.c:simulate(row)
    record = set.c:row(row)
    good, value, _, late = try_value(rule, policy, record)
  end
  if good and late then return string.format("(%s is not known of it)", late) end
  if good then return value end
  return string.format("(%s)", without_place(value)), value
end

-- An expression (load.lua) of each candidate with a pipeline → { total, values = { { text, count, first }, … } by value, low, high,
-- plan = { text, value } }.
evaluate.text = value_text

function evaluate.expression(policy, request)
  local rule, seen = policy.rules.expression, {}
  local before = planner.observer
  planner.observer = function(out, record, result) seen.plan, seen.record, seen.set = out, record, result.set end
  local plain = setmetatable({ warns = {} }, { __index = policy })  -- it returns no answer to a rule
  plain.rules = lists.with(policy.rules)
  plain.rules.expression = nil
  for _, other in ipairs(policy.warns) do
    if other ~= rule then table.insert(plain.warns, other) end
  end
  planner.plan { request = request, policy = plain }
  planner.observer = before
  local set, by_text, low, high, failed = seen.set, {}, nil, nil, 0
  local out = { total = 0, values = {} }
  set:fill_memory(set.main)
  policy.host:refill()   -- one for all candidates
  for _, row in ipairs(set.main:rows()) do
    local value, problem = value_of(rule, policy, set, row)
    failed = failed + (problem and 1 or 0)
    local text = value_text(value)
    local number = type(value) == "number" and value == value and value or nil   -- one that has an order
    out.total = out.total + 1
    if not by_text[text] then
      by_text[text] = { text = text, count = 0, value = number, first = candidate_text(set.c:row(row)) }
      out.values[#out.values + 1] = by_text[text]
    end
    by_text[text].count = by_text[text].count + 1
    if number then low, high = math.min(low or number, number), math.max(high or number, number) end
  end
  if failed > 0 and failed == out.total then failure.raise("policy_error", "%s", out.values[1].text:sub(2, -2)) end
  if low then out.low, out.high = value_text(low), value_text(high) end
  table.sort(out.values, function(a, b)
    if (a.value ~= nil) ~= (b.value ~= nil) then return a.value ~= nil end
    if a.value and a.value ~= b.value then return a.value < b.value end
    return a.text < b.text
  end)
  for _, one in ipairs(out.values) do one.value = nil end
  if seen.plan.status == "planned" then
    policy.host:refill()
    local good, value = failure.try(functions.value, rule, policy, seen.record, functions.late_of(seen.record))
    out.plan = { text = candidate_text(seen.record), value = good and value_text(value) or tostring(value) }
  end
  return out
end

return evaluate

--[[
evaluate.lua: one rule against one spec: each condition, its field's values over the candidates, how many it holds for, and the
first candidate that the rule decides.

  evaluate.of(rule, request, policy) → { id, verb, total, holds, conditions = { { text, holds, values }, … },
                                         first = { text, fields } | nil, plan = { holds, status } }
A rule about the finished plan alone (warn, invariant) is judged by the plan.
]]

local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
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
  if simulated then set:fill_memory() end
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

function evaluate.of(rule, request, policy)
  local seen = {}
  local before = planner.observer
  planner.observer = function(out, record, result) seen.plan, seen.record, seen.set = out, record, result.set end
  planner.plan { request = request, policy = policy }
  planner.observer = before
  local list = of_plan(rule) and { seen.record } or records(seen.set, rule)
  local out = { id = rule.id, verb = rule.verb, total = #list, holds = 0, conditions = {},
                plan = { status = seen.plan.status, holds = conditions.holds(rule, policy, seen.record) } }
  for i, condition in ipairs(rule.conditions) do out.conditions[i] = judge_condition(condition, policy, list) end
  if rule.when then
    local yes = 0
    for _, record in ipairs(list) do
      if conditions.holds({ conditions = {}, when = rule.when, id = rule.id, file = rule.file, line = rule.line }, policy, record) then
        yes = yes + 1
      end
    end
    out.conditions[#out.conditions + 1] = { text = "its function `when`", holds = yes, values = "" }
  end
  for _, record in ipairs(list) do
    if conditions.holds(rule, policy, record) then
      out.holds = out.holds + 1
      if not out.first then
        out.first = { fields = record, text = record.schedule and candidate_text(record) or "the plan" }
      end
    end
  end
  return out
end

return evaluate

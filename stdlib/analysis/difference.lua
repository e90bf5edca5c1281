-- SPDX-License-Identifier: Apache-2.0
--[[
difference.lua: what changes for whom when one policy takes the place of another: every spec of a corpus is planned by both.

  difference.of(old, new, specs [, jobs]) → { change, … }: changes of one kind together, those that let something through first, then by
    rule; in `jobs` processes, and the same for any number of them
    change  { kind, rule, status, name, spec, before, after, differs }
    kind    "accepted" newly planned · "dropped" no longer planned · "replanned" another plan · "reasoned" the same outcome for other
            reasons · "failed" one of the two has no answer (a spec that cannot be read, an error in a rule), or neither has one
    status  exit status of the worse of the two where one has no answer; else 0
    rule    id of the rule that makes the difference: what dropped it before, or drops it now; of two plans a row that is another, a rule
            that drops others, what costs one of them its speed, or the row that decides now; "none" where nothing of these tells
    before, after  { status, line: the outcome in a line, reasons: ids }
    differs { { field, before, after }, … }: of two plans each choice that differs, and what they take
]]

local conditions = require "pipeplan.policy.conditions"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local side_by_side = require "pipeplan.plan.side_by_side"
local spec = require "pipeplan.input.spec"
local workers = require "pipeplan.base.workers"

local difference = {}

difference.kinds = { "accepted", "dropped", "replanned", "reasoned", "failed" }

local rank = {}
for i, kind in ipairs(difference.kinds) do rank[kind] = i end

-- What a plan comes to, in a line.
local function line_of(plan)
  if plan.status ~= "planned" then return plan.status .. " by " .. table.concat(lists.column(plan.reasons, "id"), ", ") end
  return string.format("%s, %s", format.schedule(plan.schedule), layout.line(plan.parallelism, plan.microbatches, ", "))
end

local function planned(policy, entry)
  return planner.plan { request = spec.from_table(lists.deep_copy(entry.spec), entry.base), policy = policy }
end

-- { told = what is said of it, policy, plan = nil: there is none }
local function outcome(policy, entry)
  local good, result = failure.try(planned, policy, entry)
  if good then
    local told = { status = result.status, line = line_of(result), reasons = lists.column(result.reasons, "id") }
    return { told = told, policy = policy, plan = result }
  end
  if not failure.is(result) then error(result, 0) end
  return { told = { status = "failed", line = result.message, reasons = {}, exit = result.status }, policy = policy }
end

-- What follows from the choices, or says how they were made.
local no_choice = { status = true, decision = true, fit = true }
local figures = { "step_seconds", "gpu_hours" }

-- Of two plans, each choice in which they differ, and what they take.
local function differences(before, after)
  local list = {}
  for _, row in ipairs(side_by_side.choice { before, after }) do
    if not no_choice[row.field] then
      list[#list + 1] = { field = row.field, before = row.values[1], after = row.values[2] }
    end
  end
  for _, name in ipairs(figures) do
    if before[name] ~= after[name] then list[#list + 1] = { field = name, before = before[name], after = after[name] } end
  end
  return list
end

-- The first of some ids that is not among others.
local function new_one(ids, others)
  for _, id in ipairs(ids) do
    local known = false
    for _, other in ipairs(others) do known = known or other == id end
    if not known then return id end
  end
  return nil
end

-- What a rule asks, its limits included, and what a row tries; nil: the policy has none of that id.
local function text_of(policy, id)
  local rule, parts = policy.rules[id], {}
  for i, condition in ipairs(rule and rule.conditions or {}) do parts[i] = conditions.text(condition) end
  return rule and table.concat(table.move(rule.try or {}, 1, #(rule.try or {}), #parts + 1, parts), ", ")
end

-- The first rule that drops candidates of one plan and none of the other, and that the other's policy has not or has otherwise.
local function dropping(one, other)
  local known = lists.column(other.plan.dropped, "rule")
  for _, entry in ipairs(one.plan.dropped) do
    local id = entry.rule
    if not lists.contains(known, id) and text_of(one.policy, id) ~= text_of(other.policy, id) then return id end
  end
end

local function costing(plan)
  return plan.policy_cost and lists.column(plan.policy_cost.statements, "id") or {}
end

-- What makes another plan of one, nil: nothing tells.
local function cause(before, after)
  local was, is = before.told.reasons, after.told.reasons
  local cost, costs, row = costing(before.plan), costing(after.plan), after.plan.decision
  local another = row and (row ~= before.plan.decision or text_of(before.policy, row) ~= text_of(after.policy, row)) and row
  return another or dropping(after, before) or dropping(before, after) or new_one(is, was) or new_one(was, is)
         or new_one(costs, cost) or new_one(cost, costs) or row
end

-- The kind of change, the rule that makes it and, of two plans, what differs; nil: none.
local function compare(before, after)
  local was, is = before.told, after.told
  if was.status == "failed" or is.status == "failed" then return "failed", nil, {} end
  if was.status ~= "planned" and is.status == "planned" then return "accepted", new_one(was.reasons, is.reasons) or was.reasons[1], {} end
  if was.status == "planned" and is.status ~= "planned" then return "dropped", new_one(is.reasons, was.reasons) or is.reasons[1], {} end
  local differs = is.status == "planned" and differences(before.plan, after.plan) or {}
  if #differs > 0 then return "replanned", cause(before, after), differs end
  if was.status == is.status and table.concat(was.reasons, " ") == table.concat(is.reasons, " ") then return nil end
  return "reasoned", new_one(is.reasons, was.reasons) or new_one(was.reasons, is.reasons) or is.reasons[1], {}
end

-- What becomes of a spec: "" or { kind, rule, status, before, after, differs } as JSON.
local function change_of(old, new, entry)
  local before, after = outcome(old, entry), outcome(new, entry)
  local was, is = before.told, after.told
  if was.exit == failure.status.usage and is.exit == failure.status.usage then failure.usage("%s: %s", entry.name, was.line) end
  local kind, rule, differs = compare(before, after)
  if not kind then return "" end
  local status = failure.worse(was.exit or failure.status.ok, is.exit or failure.status.ok)
  return json.encode { kind = kind, rule = rule or "none", status = status, before = was, after = is, differs = json.array(differs) }
end

-- specs: { { name, spec, base }, … }
function difference.of(old, new, specs, jobs)
  local texts, list = workers.each(#specs, jobs or 1, function(number) return change_of(old, new, specs[number]) end), {}
  for i, text in ipairs(texts) do
    local change = text ~= "" and json.decode(text, "change")
    if change then list[#list + 1] = lists.with(change, { name = specs[i].name, spec = specs[i].spec, order = i }) end
  end
  table.sort(list, function(a, b)
    if a.kind ~= b.kind then return rank[a.kind] < rank[b.kind] end
    if a.rule ~= b.rule then return a.rule < b.rule end
    return a.order < b.order
  end)
  return list
end

return difference

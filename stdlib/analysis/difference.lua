-- SPDX-License-Identifier: Apache-2.0
--[[
difference.lua: what changes for whom when one policy takes the place of another: every spec of a corpus is planned by both.

  difference.of(old, new, specs [, jobs]) → { change, … }: changes of one kind together, those that let something through first, then by
    rule; in `jobs` processes, and the same for any number of them
    change  { kind, rule, status, name, spec, before, after }
    kind    "accepted" newly planned · "dropped" no longer planned · "replanned" another plan · "reasoned" the same outcome for other
            reasons · "failed" one of the two has no answer (a spec that cannot be read, an error in a rule), or neither has one
    status  exit status of the worse of the two where one has no answer; else 0
    rule    id of the rule that makes the difference: what dropped it before, what drops it now, or the row that decides now
    before, after  { status, line: the outcome in a line, reasons: ids }
]]

local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
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

local function planned(policy, entry, explain)
  return planner.plan { request = spec.from_table(lists.deep_copy(entry.spec), entry.base), policy = policy, explain = explain }
end

local function outcome(policy, entry)
  local good, result = failure.try(planned, policy, entry)
  if good then return { status = result.status, line = line_of(result), reasons = lists.column(result.reasons, "id") } end
  if not failure.is(result) then error(result, 0) end
  return { status = "failed", line = result.message, reasons = {}, exit = result.status }
end

-- The row that decides what is planned. Explaining takes several times as long as planning, so it is asked only where nothing else tells.
local function row_of(policy, entry)
  for _, rule in ipairs(planned(policy, entry, true).explanation.rules) do
    if rule.verb == "row" and rule.holds then return rule.id end
  end
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

-- The kind of change and the rule that makes it, nil: the row of the new plan.
local function compare(before, after)
  if before.status == "failed" or after.status == "failed" then return "failed", "none" end
  if before.status ~= "planned" and after.status == "planned" then
    return "accepted", new_one(before.reasons, after.reasons) or before.reasons[1]
  elseif before.status == "planned" and after.status ~= "planned" then
    return "dropped", new_one(after.reasons, before.reasons) or after.reasons[1]
  elseif before.line ~= after.line and after.status == "planned" then
    return "replanned", new_one(after.reasons, before.reasons) or new_one(before.reasons, after.reasons)
  elseif table.concat(before.reasons, " ") ~= table.concat(after.reasons, " ") then
    return "reasoned", new_one(after.reasons, before.reasons) or new_one(before.reasons, after.reasons) or after.reasons[1]
  end
  return nil
end

-- What becomes of a spec: "" or { kind, rule, before, after } as JSON.
local function change_of(old, new, entry)
  local before, after = outcome(old, entry), outcome(new, entry)
  if before.exit == failure.status.usage and after.exit == failure.status.usage then failure.usage("%s: %s", entry.name, before.line) end
  local kind, rule = compare(before, after)
  if not kind then return "" end
  if kind == "replanned" and not rule then rule = row_of(new, entry) end
  local status = failure.worse(before.exit or failure.status.ok, after.exit or failure.status.ok)
  return json.encode { kind = kind, rule = rule or "none", status = status, before = before, after = after }
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

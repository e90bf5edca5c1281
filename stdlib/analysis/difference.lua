-- SPDX-License-Identifier: Apache-2.0
--[[
difference.lua: what changes for whom when one policy takes the place of another: every spec of a corpus is planned by both.

  difference.of(old, new, specs) → { change, … }: changes of one kind together, those that let something through first, then by rule
    change  { kind, rule, name, spec, before, after }
    kind    "accepted" newly planned · "dropped" no longer planned · "replanned" another plan · "reasoned" the same outcome for other
            reasons · "failed" one of the two raised an answer (a spec that cannot be read, an error in a rule)
    rule    id of the rule that makes the difference: what dropped it before, what drops it now, or the row that decides now
    before, after  { status, line: the outcome in a line, reasons: ids }
]]

local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local spec = require "pipeplan.input.spec"

local difference = {}

difference.kinds = { "accepted", "dropped", "replanned", "reasoned", "failed" }

local rank = {}
for i, kind in ipairs(difference.kinds) do rank[kind] = i end

-- What a plan comes to, in a line.
local function line_of(plan)
  if plan.status ~= "planned" then return plan.status .. " by " .. table.concat(lists.column(plan.reasons, "id"), ", ") end
  return string.format("%s, %s", format.schedule(plan.schedule), layout.line(plan.parallelism, plan.microbatches, ", "))
end

local function outcome(policy, entry)
  local good, result = failure.try(function()
    return planner.plan { request = spec.from_table(entry.spec, entry.base), policy = policy, explain = true }
  end)
  if good then
    local row
    for _, rule in ipairs(result.explanation.rules) do
      if rule.verb == "row" and rule.holds and not row then row = rule.id end
    end
    return { status = result.status, line = line_of(result), reasons = lists.column(result.reasons, "id"), row = row }
  end
  if not failure.is(result) then error(result, 0) end
  return { status = "failed", line = result.message, reasons = {}, unreadable = result.status == failure.status.usage }
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

local function compare(before, after)
  if before.status == "failed" or after.status == "failed" then
    if before.line == after.line then return nil end
    return "failed", "none"
  end
  if before.status ~= "planned" and after.status == "planned" then
    return "accepted", new_one(before.reasons, after.reasons) or before.reasons[1]
  elseif before.status == "planned" and after.status ~= "planned" then
    return "dropped", new_one(after.reasons, before.reasons) or after.reasons[1]
  elseif before.line ~= after.line and after.status == "planned" then
    return "replanned", new_one(after.reasons, before.reasons) or new_one(before.reasons, after.reasons) or after.row
  elseif table.concat(before.reasons, " ") ~= table.concat(after.reasons, " ") then
    return "reasoned", new_one(after.reasons, before.reasons) or new_one(before.reasons, after.reasons) or after.reasons[1]
  end
  return nil
end

-- specs: { { name, spec, base }, … }
function difference.of(old, new, specs)
  local list = {}
  for i, entry in ipairs(specs) do
    local before, after = outcome(old, entry), outcome(new, entry)
    if before.unreadable and after.unreadable then failure.usage("%s: %s", entry.name, before.line) end
    local kind, rule = compare(before, after)
    if kind then
      list[#list + 1] = { kind = kind, rule = rule or "none", name = entry.name, spec = entry.spec, before = before, after = after,
                          order = i }
    end
  end
  table.sort(list, function(a, b)
    if a.kind ~= b.kind then return rank[a.kind] < rank[b.kind] end
    if a.rule ~= b.rule then return a.rule < b.rule end
    return a.order < b.order
  end)
  return list
end

return difference

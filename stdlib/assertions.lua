-- SPDX-License-Identifier: Apache-2.0
-- assertions.lua: assert.decided for luassert (and so for busted): what tests of policies say about plans.
--
--   assert.decided(plan, "planned")                  the outcome
--   assert.decided(plan, "rejected", "too_deep")     … and a rule among its reasons
--   assert.is_not.decided(plan, "planned")

local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local statements = require "pipeplan.policy.statements"

local assertions = {}

local outcomes = { "planned", "refused", "rejected" }

-- What made a plan: so that a rule that a test names can be looked up. Forgotten with the plan.
local made_by = setmetatable({}, { __mode = "k" })

function assertions.remember(plan, policy)
  made_by[plan] = policy
end

-- Ids that a reason can have: the policy's rules, those it disables, and what the planner, the engine and the plan's framework decide.
local function known_ids(policy, plan)
  local ids = lists.sorted_keys(policy.rules)
  for _, entry in ipairs(policy.disabled) do ids[#ids + 1] = entry.rule.id end
  table.move(statements.built_in, 1, #statements.built_in, #ids + 1, ids)
  table.move(statements.of_engine, 1, #statements.of_engine, #ids + 1, ids)
  local of_framework = require("pipeplan.plan.framework").ids(plan.framework)
  return table.move(of_framework, 1, #of_framework, #ids + 1, ids)
end

-- Where this file lies, and so all of stdlib.
local own = debug.getinfo(1, "S").source:match "^(.*)assertions%.lua$"

-- "tests/site_spec.lua:12: ": the first line outside of pipeplan and luassert among those that are running; "" where there is none.
function assertions.place()
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return "" end
    local foreign = info.source:sub(1, 1) == "@" and info.source:sub(1, #own) ~= own and not info.source:find("luassert/", 1, true)
    if foreign and info.currentline > 0 then return string.format("%s:%d: ", info.short_src, info.currentline) end
    level = level + 1
  end
end

-- Raises an error of the test, at the line that asserts.
local function complain(format, ...)
  error(assertions.place() .. string.format(format, ...), 0)
end

-- luassert calls with its state and { plan, outcome, rule?, n = }. A test that asks for an outcome that cannot be is an error, not a pass.
local function decided(state, arguments)
  local plan, outcome, rule = arguments[1], arguments[2], arguments[3]
  if type(plan) ~= "table" or not plan.status then complain("assert.decided: a plan is expected first") end
  if not lists.contains(outcomes, outcome) then
    complain("assert.decided: no outcome '%s'%s", tostring(outcome), failure.suggestion(outcome, outcomes))
  end
  local policy = made_by[plan]
  if rule and policy then
    local known = known_ids(policy, plan)
    if not lists.contains(known, rule) then
      complain("assert.decided: no rule '%s'%s", tostring(rule), failure.suggestion(rule, known))
    end
  end
  local ids = lists.column(plan.reasons or {}, "id")
  state.failure_message = string.format("expected the plan to be %s%s; it is %s (%s)", outcome, rule and " by " .. rule or "", plan.status,
                                        #ids > 0 and table.concat(ids, ", ") or "no reasons")
  return plan.status == outcome and (rule == nil or lists.contains(ids, rule))
end

function assertions.register()
  -- Only where the test runner has loaded it: a program that plans does not pay for a search.
  local luassert = package.loaded.luassert
  if type(luassert) ~= "table" then return false end
  luassert:register("assertion", "decided", decided)
  return true
end

return assertions

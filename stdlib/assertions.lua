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

-- Ids that a reason can have: the policy's rules, those it disables, and what the planner decides itself.
local function known_ids(policy)
  local ids = lists.sorted_keys(policy.rules)
  for _, entry in ipairs(policy.disabled) do ids[#ids + 1] = entry.rule.id end
  table.move(statements.built_in, 1, #statements.built_in, #ids + 1, ids)
  return ids
end

-- luassert calls with its state and { plan, outcome, rule?, n = }. A test that asks for an outcome that cannot be is an error, not a pass.
local function decided(state, arguments)
  local plan, outcome, rule = arguments[1], arguments[2], arguments[3]
  if type(plan) ~= "table" or not plan.status then error("assert.decided: a plan is expected first", 2) end
  if not lists.contains(outcomes, outcome) then
    error(string.format("assert.decided: no outcome '%s'%s", tostring(outcome), failure.suggestion(outcome, outcomes)), 2)
  end
  local policy = made_by[plan]
  if rule and policy and not rule:match "^engine%." then
    local known = known_ids(policy)
    if not lists.contains(known, rule) then
      error(string.format("assert.decided: no rule '%s'%s", tostring(rule), failure.suggestion(rule, known)), 2)
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

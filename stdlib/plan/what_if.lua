-- SPDX-License-Identifier: Apache-2.0
-- what_if.lua: the layout that would be planned for a request with something else in it: more GPUs, more recompute, another microbatch.

local choose = require "pipeplan.plan.choose"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"

local what_if = {}

-- → what choose.layout evaluated, what facts.of knows, and its choice of the recipe; nil where there is no plan. Each is a plan of its own
-- for the policy's budget.
function what_if.layout(request, policy)
  policy.host:refill()
  local known = facts.of(request, policy)
  local evaluation, choice = choose.layout { request = request, policy = policy, record = known.record, arguments = known.arguments }
  return evaluation, evaluation and facts.settled(known, choice), choice
end

-- failure.try(run, …) of a spec that nobody asked for → true and what it returns, or false. A rule that fails there is the policy's
-- `trouble`, for the plan to tell (plan/init.lua); one that spent its budget would spend it with every spec, so nothing more is tried.
function what_if.try(policy, run, ...)
  local status = failure.status
  if policy.trouble and policy.trouble.status == status.over_budget then return false end
  policy.host:refill()
  local answers = table.pack(failure.try(run, ...))
  local problem = answers[2]
  policy.host:refill()   -- for the rules that come after it
  if answers[1] then return table.unpack(answers, 1, answers.n) end
  if not failure.is(problem) then error(problem, 0) end
  if problem.status == status.over_budget or problem.status == status.policy_error then policy.trouble = policy.trouble or problem end
  return false
end

return what_if

-- SPDX-License-Identifier: Apache-2.0
-- attempt.lua: what is asked of a policy beside what the plan itself asks: for advice, for what an invariant would say of another layout.

local failure = require "pipeplan.base.failure"

local attempt = {}

-- failure.try(run, …) of a spec that nobody asked for → true and what it returns, or false. A rule that fails there is the policy's
-- `trouble`, for the plan to tell (plan/init.lua); one that spent its budget would spend it with every spec, so nothing more is tried.
function attempt.try(policy, run, ...)
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

return attempt

-- SPDX-License-Identifier: Apache-2.0
-- what_if.lua: the layout that would be planned for a request with something else in it: more GPUs, more recompute, another microbatch.

local choose = require "pipeplan.plan.choose"
local facts = require "pipeplan.plan.facts"

local what_if = {}

-- → what choose.layout evaluated, what facts.of knows, and its choice of the recipe; nil where there is no plan. Each is a plan of its own
-- for the policy's budget.
function what_if.layout(request, policy)
  policy.host:refill()
  local known = facts.of(request, policy)
  local evaluation, choice = choose.layout { request = request, policy = policy, record = known.record, arguments = known.arguments }
  return evaluation, evaluation and facts.settled(known, choice), choice
end

return what_if

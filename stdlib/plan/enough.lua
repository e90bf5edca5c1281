-- SPDX-License-Identifier: Apache-2.0
-- enough.lua: how many GPUs it would take when nothing fits: the same request on more GPUs, until one is planned.

local advice = require "pipeplan.plan.advice"

local enough = {}

-- Tried in this order until one works; then the whole nodes between it and the one before.
local multiples = { 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 }

-- At most so many counts between two multiples.
local BETWEEN = 16

-- What is planned on that many GPUs; nil where nothing is.
local function plan_on(gpus, request, policy)
  local network = request.cluster.network
  -- beyond one scale-up domain the network's speed has to be known
  if gpus > network.scale_up_gpus and not network.per_gpu then return nil end
  return (advice.try(request, policy, { ["cluster.gpus"] = gpus }))
end

-- → GPUs, what is planned on them; nil when none of the counts works.
function enough.gpus(request, policy)
  local cluster = request.cluster
  local low = cluster.gpus
  for _, multiple in ipairs(multiples) do
    local high = math.tointeger(cluster.gpus * multiple)
    local outcome = high and plan_on(high, request, policy)
    if outcome then
      local host = cluster.gpus_per_node
      local stride = math.max(1, math.ceil((high - low) / host / BETWEEN)) * host
      for gpus = (low // stride + 1) * stride, high - 1, stride do
        local smaller = plan_on(gpus, request, policy)
        if smaller then return gpus, smaller end
      end
      return high, outcome
    end
    low = high or low
  end
end

return enough

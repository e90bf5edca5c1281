-- enough.lua: how many GPUs it would take when nothing fits: the same request on more GPUs, until one is planned.

local choose = require "pipeplan.plan.choose"
local facts = require "pipeplan.plan.facts"

local enough = {}

-- Tried in this order. Counts between them are left out: what divides a model's heads, layers and experts are small factors.
local multiples = { 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64 }

local function copy(list, changes)
  local out = {}
  for key, value in pairs(list) do out[key] = value end
  for key, value in pairs(changes) do out[key] = value end
  return out
end

-- → GPUs, the layout as choose evaluated it; nil when none of the counts works.
function enough.gpus(request, policy)
  local cluster = request.cluster
  for _, multiple in ipairs(multiples) do
    local gpus = math.tointeger(cluster.gpus * multiple)
    -- beyond one scale-up domain the network's speed has to be known
    if gpus and (gpus <= cluster.network.scale_up_gpus or cluster.network.per_gpu) then
      local larger = copy(request, { cluster = copy(cluster, { gpus = gpus }) })
      local known = facts.of(larger, policy)
      local result = choose.choose { request = larger, policy = policy, record = known.record, arguments = known.arguments }
      if result.status == "planned" then return gpus, result.evaluation end
    end
  end
end

return enough

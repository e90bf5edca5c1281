-- SPDX-License-Identifier: Apache-2.0
-- host.lua: what a plan asks of the nodes and their storage: memory for an offloaded optimizer, and the bytes of a checkpoint.

local host = {}

-- What training can go on from: weights in the precision they are trained in (fp8 weights are written in bf16), master weights and moments
-- (Megatron-LM dist_checkpointing of the distributed optimizer). BLOOM's 176.2 B parameters: 329 GiB of bf16 weights, 2.3 TiB in all
-- (BigScience 176B model page); 14 bytes a parameter are 2.24 TiB.
local function checkpoint_bytes(parameters, training)
  local weights = training.precision == "fp32" and 4 or 2
  return parameters * (weights + training.master_bytes + training.moment_bytes)
end

-- → the plan's `host`; training: what the engine takes. A node's GPUs may all be of the fullest rank: where TP × DP fills nodes they are.
function host.of(request, training, evaluation)
  local cluster, fullest = request.cluster, 0
  for _, rank in ipairs(evaluation.memory) do fullest = math.max(fullest, rank.host) end
  local model = request.model
  local tower, frozen = model.tower_parameters or 0, model.shape.tower_frozen
  local bytes = checkpoint_bytes(model.total_parameters + (model.mtp_parameters or 0) + (frozen and 0 or tower), training)
                + (frozen and tower * (training.precision == "fp32" and 4 or 2) or 0)
  return {
    optimizer_bytes = fullest * math.min(cluster.gpus_per_node, cluster.gpus), memory_bytes = cluster.host_memory,
    checkpoint_bytes = bytes, checkpoint_seconds = cluster.storage and bytes / cluster.storage or nil,
  }
end

return host

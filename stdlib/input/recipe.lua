-- recipe.lua: from the request to the tables that the engine's memory and cost models take: bytes per parameter, recompute flags, tiers of
-- the network, what the accelerator reaches. What is chosen here for the user is listed by recipe.assumptions.

local recipe = {}

-- Block-scaled fp8 carries one fp32 scale per 128 elements (DeepSeek-V3 report, 3.3.1: 1×128 tiles; DeepEP dispatches the same).
local fp8_bytes = 1 + 4 / 128

-- Bytes per parameter of what a GPU holds, before sharding (Megatron-LM docs, dist_optimizer: bf16 with fp32 gradients 6 + 12/d,
-- fp32 8 + 8/d). The fp32 master weights are the optimizer's, except in fp32, where the weights are their own master.
-- fp8 weights are held twice, as they are and transposed, because Hopper's fp8 matrix products read both operands along K
-- (Transformer Engine, fp8 primary weights): as much as one copy in bf16.
local weight_bytes = { bf16 = 2, fp16 = 2, fp8 = 2, fp32 = 4 }
local number_bytes = { bf16 = 2, fp32 = 4 }

-- Adam keeps two moments; Muon and SGD with momentum one.
local moments = { adam = 2, adamw = 2, muon = 1, sgd = 1 }

-- What pp_training takes (engine/core/training.h). `layout` is optional: { tensor = } decides sequence parallelism.
function recipe.training(request, layout)
  local t = request.training
  local fp8 = t.precision == "fp8"
  local compute = t.precision == "fp32" and 4 or 2
  local recompute = {}
  for name in pairs(t.recompute) do recompute[name] = true end
  return {
    precision = t.precision,
    sequence_length = t.sequence_length,
    micro_batch = t.micro_batch_size,
    parameter_bytes = weight_bytes[t.precision],
    gradient_bytes = number_bytes[t.gradients],
    master_bytes = t.precision == "fp32" and 0 or 4,
    moment_bytes = moments[t.optimizer] * number_bytes[t.moments],
    shard_optimizer = true,
    shard_gradients = false,
    shard_parameters = false,
    sequence_parallel = not layout or (layout.tensor or 1) > 1,
    fused_attention = true,
    fused_loss = false,
    activation_bytes = fp8 and fp8_bytes or compute,  -- DeepSeek-V3 report, 3.3.3: inputs of linear layers are cached in fp8
    dispatch_bytes = fp8 and fp8_bytes or compute,
    combine_bytes = compute,                          -- combine stays in bf16 (DeepSeek-V3 report, 3.3.3)
    expert_imbalance = 1.0,
    max_domains = request.model.max_domains or 0,
    recompute = recompute,
  }
end

-- Tiers for pp_network, from the scale-up domain outwards. Where hosts have fewer network cards than GPUs, these share their speed.
function recipe.network(request)
  local cluster, network = request.cluster, request.cluster.network
  local tiers = {
    { reach = network.scale_up_gpus, bandwidth = network.scale_up_per_gpu, efficiency = network.scale_up_efficiency,
      latency = network.scale_up_latency },
  }
  if network.scale_up_gpus < cluster.gpus then
    local share = math.min(1, (network.nics_per_node or cluster.gpus_per_node) / cluster.gpus_per_node)
    tiers[2] = { reach = cluster.gpus, bandwidth = network.per_gpu * share / network.oversubscription, efficiency = network.efficiency,
                 latency = network.latency }
  end
  return { tiers = tiers }
end

-- What pp_device takes (engine/core/cost.h) with an all-to-all kernel of the catalogue by name, or false, none: does it run beside compute,
-- and what does a call cost beside its transfers? A name that the catalogue lacks is taken for a custom kernel. With nil, the policy's
-- choice, as with that name a call costs what the request assumes.
function recipe.device(request, kernel)
  local device = {}
  for key, value in pairs(request.device) do device[key] = value end
  local entry = kernel ~= nil and require("pipeplan.catalog.kernels").find(kernel or "nccl_alltoall")
  device.hides_alltoall = kernel ~= false and (not entry or entry.overlapping)
  if entry then device.alltoall_latency = entry.latency end
  return device
end

-- What a process takes beside tensors: context, kernels, library workspaces 3.5 GiB, communicators 0.375 GiB (NVIDIA aiconfigurator's
-- reserve: 3.5 GiB and 342-392 MiB; pith-train measured 5.8 GiB with FSDP's buffers). Fragmentation is the policy's memory_headroom.
function recipe.overhead_bytes()
  return 3.875 * 2 ^ 30
end

-- Seconds of a step that no model accounts for. Gradient and parameter exchange and the optimizer are costed; data loading and logging run
-- beside the step.
function recipe.step_overhead_seconds()
  return 0
end

-- What the tables above take for granted: { field, value, why } for the plan's assumptions.
function recipe.assumptions(request)
  local list = {
    { field = "optimizer state", value = "sharded", why = "over the data-parallel group: ZeRO-1" },
  }
  if request.training.precision == "fp8" then
    list[#list + 1] = { field = "fp8 weights", value = "2 bytes", why = "weights and their transpose; linear inputs kept in fp8" }
  end
  if request.model.architecture == "moe" then
    list[#list + 1] = { field = "expert imbalance", value = 1.0, why = "tokens spread evenly over experts" }
  end
  return list
end

return recipe

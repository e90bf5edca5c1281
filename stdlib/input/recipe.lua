-- SPDX-License-Identifier: Apache-2.0
-- recipe.lua: from the request to the tables that the engine's memory and cost models take: bytes per parameter, recompute flags, tiers of
-- the network, what the accelerator reaches. What is chosen here for the user is listed by recipe.assumptions.

local engine = require "engine"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"

local recipe = {}

-- Block-scaled fp8 carries one fp32 scale per 128 elements (DeepSeek-V3 report, 3.3.1: 1×128 tiles; DeepEP dispatches the same).
local fp8_bytes = 1 + 4 / 128

-- Bytes per parameter of what a GPU holds, before sharding (Megatron-LM docs, dist_optimizer: bf16 with fp32 gradients 6 + 12/d,
-- fp32 8 + 8/d). The fp32 master weights are the optimizer's, except in fp32, where the weights are their own master.
local weight_bytes = { bf16 = 2, fp16 = 2, fp32 = 4 }
local number_bytes = { fp8 = 1, bf16 = 2, fp16 = 2, fp32 = 4 }

-- Weights of fp8 products (Transformer Engine). fp8: primary weights in fp8, held as they are and transposed, because Hopper's fp8 products
-- read both operands along K. fp8_single: the transpose is made again for each backward (disable_parameter_transpose_cache). bf16: primary
-- weights in bf16, and both casts kept over the microbatches of a step.
local fp8_weight_bytes = { fp8 = 2, fp8_single = 1, bf16 = 4 }

-- With fp8 products, bytes of what is no input of a linear layer: an element of the attention's output, of what SwiGLU or GELU reads, of a
-- weight's gradient before it is accumulated. fp8: DeepSeek-V3 (report, 3.3.3: 12 bits, fp8, added in place). bf16: Transformer Engine,
-- where attention keeps its output beside the projection's fp8 input, and gradients lie in temporaries.
local fp8_kept = {
  fp8 = { attention_output_bytes = 1.5, activation_input_bytes = fp8_bytes, weight_gradient_bytes = 0 },
  bf16 = { attention_output_bytes = 2 + fp8_bytes, activation_input_bytes = 2, weight_gradient_bytes = 2 },
}

-- The table of the request's framework; an empty one where it names none.
local function defaults_of(request)
  return request.framework and frameworks.find(request.framework).defaults or {}
end

-- Which of them holds.
local function fp8_activations(request)
  return request.training.activations or defaults_of(request).linear_inputs or "fp8"
end

-- Expert TP where the spec does not say: how many ranks, or nil where it is as many as a TP that is not fixed.
function recipe.expert_tensor(request)
  local fixed = request.parallelism
  if fixed.expert_tensor then return fixed.expert_tensor end
  if defaults_of(request).expert_tensor ~= "tensor" then return 1 end
  return fixed.tensor
end

-- Is it chosen? Where neither it nor TP is given, and the framework can be told.
function recipe.chooses_expert_tensor(request)
  local fixed = request.parallelism or {}
  return request.model.architecture == "moe" and not fixed.expert_tensor and not fixed.tensor
         and defaults_of(request).expert_tensor == "tensor" and frameworks.find(request.framework).has.expert_tensor
end

-- Sequence parallelism beside TP: as the spec says, else where what runs the plan has it.
local function sequence_parallel(request)
  local fixed = request.training.sequence_parallel
  if fixed ~= nil then return fixed end
  return not request.framework or frameworks.find(request.framework).has.sequence_parallel ~= false
end

-- What hides gradient and parameter traffic where the spec does not say: what the framework does without being asked.
local function data_overlap(request)
  return request.framework and frameworks.find(request.framework).overlap.data or 0
end

-- How what runs the plan shards gradients and parameters: the bytes of a gradient where the spec does not say, of a parameter on its way,
-- whether collectives work in the buffers that compute uses, and how many parameters go at once where only the optimizer is sharded.
local function how_it_shards(request)
  local how = request.framework and frameworks.find(request.framework).sharding or {}
  local stated = request.given and request.given["training.gradients"]
  return { gradient_bytes = not stated and how.gradients and number_bytes[how.gradients] or 0,
           gathered_bytes = request.training.fp8_gathers and 1 or 0, in_place = how.in_place or false, master = how.master or false,
           bucket = request.training.bucket or how.bucket or 0, bucket_per_rank = not request.training.bucket and how.bucket_per_rank or 0 }
end

-- Does the all-to-all run beside the next microbatch's compute without a pipeline? As the spec says, else where what runs the plan can.
local function overlap_alone(request)
  if request.training.alltoall_overlap == false or request.training.precision == "fp32" then return false end
  local pairs_overlap = request.framework and frameworks.find(request.framework).schedules.interleaved_1f1b_overlap
  return not request.framework or pairs_overlap and pairs_overlap.alone or false
end

-- Are kernels of the model not fused?
function recipe.is_eager(training)
  for kernel in pairs(training.unfused or {}) do
    if kernel ~= "optimizer" then return true end
  end
  return false
end

-- How the cross entropy is computed; and, where the spec does not say, whose way that is: of what runs the plan, else Megatron-LM's.
function recipe.loss(request)
  local t, entry = request.training, request.framework and frameworks.find(request.framework)
  local own = entry and entry.loss
  if t.loss then return t.loss end
  if own then return recipe.is_eager(t) and own.eager or own.how, entry.title .. "'s" end
  local why = entry and entry.title .. "'s is the program's own" or "no framework named"
  return frameworks.find("megatron").loss.how, "Megatron-LM's; " .. why
end

-- Are temporaries of weights' gradients dropped once they are added?
local function gradients_pass(request)
  local own = request.framework and frameworks.find(request.framework).weight_gradients
  return (request.training.weight_gradients or own and own.how) == "dropped"
end

-- Share of the parameters that adapters leave frozen.
local function frozen_share(request)
  local rank, model = request.training.lora_rank, request.model
  return rank and math.max(0, 1 - rank * engine.model.parameters(model.shape).adapters / model.total_parameters) or 0
end

-- Adam keeps two moments; Muon and SGD with momentum one.
local moments = { adam = 2, adamw = 2, muon = 1, sgd = 1 }

-- Packed sequences: a token lies on average in a document of Σ length² / Σ length tokens, which is what attention's products grow with; 0:
-- not packed. Megatron-LM counts the same (megatron/training/training.py, seqlen_squared_sum_in_batch).
local function document_length(t)
  local mean = t.document_length
  return mean and (t.document_length_rms or mean) ^ 2 / mean or 0
end

-- Tokens within which attention stays.
function recipe.attended_length(request)
  local t = request.training
  return t.document_length and document_length(t) or t.sequence_length
end

-- What pp_training takes (engine/core/training.h). `layout` is optional: { tensor = } decides sequence parallelism.
function recipe.training(request, layout)
  local t = request.training
  local fp8 = t.precision == "fp8"
  local compute = t.precision == "fp32" and 4 or 2
  local unfused = t.unfused or {}
  local sharding = how_it_shards(request)
  local recompute, kept = {}, fp8 and fp8_kept[fp8_activations(request)] or {}
  for name in pairs(t.recompute) do recompute[name] = true end
  return {
    precision = t.precision,
    sequence_length = t.sequence_length,
    micro_batch = t.micro_batch_size, document_length = document_length(t),
    parameter_bytes = fp8 and fp8_weight_bytes[t.weights or "fp8"] or weight_bytes[t.precision],
    gradient_bytes = number_bytes[t.gradients],
    master_bytes = t.precision == "fp32" and 0 or 4,
    moment_bytes = moments[t.optimizer] * number_bytes[t.moments],
    frozen = frozen_share(request),
    shard_optimizer = t.zero ~= 0,
    optimizer_offload = t.optimizer_offload,
    shard_gradients = (t.zero or 1) >= 2,
    shard_parameters = t.zero == 3 and t.reshard ~= false,  -- kept after their first use they are whole, as with sharded gradients
    sharded_gradient_bytes = sharding.gradient_bytes, gathered_bytes = sharding.gathered_bytes, shard_in_place = sharding.in_place,
    shard_master = sharding.master and request.training.precision ~= "fp32",
    bucket = sharding.bucket, bucket_per_rank = sharding.bucket_per_rank,
    reshard = t.reshard,
    replicas = t.replicas,
    allreduce_gradients = t.reduction == "all", reduced_bytes = number_bytes[t.reduced_gradients],
    scatter_messages = t.scatter_messages, dropout = t.dropout,
    sequence_parallel = sequence_parallel(request) and (not layout or (layout.tensor or 1) > 1),
    data_overlap = t.data_overlap or data_overlap(request), tensor_overlap = t.tensor_overlap or 0,
    overlap_alone = overlap_alone(request),
    fused_attention = not unfused.attention,
    loss = (recipe.loss(request)), unfused_norm = unfused.norm, unfused_rope = unfused.rope,
    unfused_activation = unfused.activation, unfused_experts = unfused.experts, unfused_optimizer = unfused.optimizer,
    activation_bytes = fp8 and fp8_bytes or compute,  -- DeepSeek-V3 report, 3.3.3: inputs of linear layers are cached in fp8
    attention_output_bytes = kept.attention_output_bytes or compute,
    activation_input_bytes = kept.activation_input_bytes or compute,
    weight_gradient_bytes = kept.weight_gradient_bytes or compute,
    weight_gradients_pass = gradients_pass(request),
    dispatch_bytes = fp8 and fp8_bytes or compute,
    combine_bytes = compute,                          -- combine stays in bf16 (DeepSeek-V3 report, 3.3.3)
    expert_imbalance = t.expert_imbalance or 1.0,
    max_domains = request.model.max_domains or 0,
    rerun_per_weight = request.framework and (frameworks.find(request.framework).recompute or {}).per_weight or false,
    recompute = recompute,
  }
end

-- Tiers for pp_network, from the scale-up domain outwards. Where nodes have fewer network cards than GPUs, these share their speed.
function recipe.network(request)
  local cluster, network = request.cluster, request.cluster.network
  local tiers = {
    { reach = network.scale_up_gpus, bandwidth = network.scale_up_per_gpu, efficiency = network.scale_up_efficiency,
      latency = network.scale_up_latency, ring_latency = network.scale_up_ring_latency, measured = network.scale_up_measured },
  }
  local host = network.host  -- its GPUs are not all joined: the others are reached over PCIe
  if host then
    tiers[2] = { reach = math.min(host.gpus, cluster.gpus), bandwidth = host.per_gpu, efficiency = host.efficiency,
                 latency = host.latency, ring_latency = host.ring_latency, measured = host.measured }
  end
  if tiers[#tiers].reach < cluster.gpus then
    local share = math.min(1, (network.nics_per_node or cluster.gpus_per_node) / cluster.gpus_per_node)
    tiers[#tiers + 1] = { reach = cluster.gpus, bandwidth = network.per_gpu * share / network.oversubscription,
                          efficiency = network.efficiency, latency = network.latency, ring_latency = network.ring_latency,
                          measured = network.measured }
  end
  local messages = request.profile and request.profile.messages or {}
  tiers[1].messages = messages.scale_up
  if tiers[#tiers].reach > tiers[1].reach then tiers[#tiers].messages = messages.scale_out end
  local slower
  for family, factor in pairs(request.calibration and request.calibration.factors or {}) do
    if family ~= "compute" then
      slower = slower or {}
      slower[family] = factor
    end
  end
  return { tiers = tiers, slower = slower }
end

-- What launches take the host (pp_host): of the framework, else of Megatron. CUDA graphs replay a part of them: half, assumed.
function recipe.host(request)
  local floor = request.framework and frameworks.find(request.framework).host_floor or frameworks.find("megatron").host_floor
  local share, host = request.training.cuda_graphs and 0.5 or 1, {}
  if request.cluster.accelerator_family == "tpu" then return nil end   -- a step is one program of its own
  local measured, plain = request.kernels and request.kernels.host, frameworks.find("torch").host_floor
  local ahead = measured and measured.forward / plain.forward or 1   -- what was measured is a plain layer, which the table has too
  local back = measured and measured.backward / plain.backward or 1
  for name, seconds in pairs(floor) do
    if name == "waiting" then host[name] = seconds
    elseif name ~= "source" and name ~= "gap" then host[name] = share * (name:find "forward" and ahead or back) * seconds end
  end
  return host
end

-- Where the host's floor is from.
function recipe.host_source(request)
  return (request.framework and frameworks.find(request.framework).host_floor or frameworks.find("megatron").host_floor).source
end

-- What of pp_device is a rate, and what seconds, of what a card and its host do by themselves.
local rates = { "flops", "flops_bf16", "memory_bandwidth", "host_link", "host_memory_bandwidth" }
local latencies = { "product_floor", "grouped_floor", "layer_latency", "routing_latency", "plain_routing_latency" }

-- All of that as many times as long.
local function slow_down(device, factor)
  for _, name in ipairs(rates) do device[name] = device[name] and device[name] / factor end
  for _, name in ipairs(latencies) do device[name] = device[name] and device[name] * factor end
  local host = device.host and lists.with(device.host) or nil
  for name, seconds in pairs(host or {}) do
    if name ~= "waiting" then host[name] = seconds * factor end   -- that is a share
  end
  device.host = host
end

-- What pp_device takes (engine/core/cost.h) with an all-to-all kernel of the catalogue by name, or false, none: does it run beside compute,
-- and what does a call cost beside its transfers? A name that the catalogue lacks is taken for a custom kernel. With nil, the policy's
-- choice, as with that name a call costs what the request assumes.
function recipe.device(request, kernel)
  local device = lists.with(request.device)
  local entry = kernel ~= nil and require("pipeplan.catalog.kernels").find(kernel or "nccl_alltoall")
  device.host = recipe.host(request)
  local floor = request.framework and frameworks.find(request.framework).host_floor
  device.layer_latency = math.max(device.layer_latency or 0, floor and floor.gap or 0)
  device.hides_alltoall = kernel ~= false and (not entry or entry.overlapping)
  if entry then device.alltoall_latency = entry.latency end
  if request.training.optimizer_offload > 0 then
    local host = require("pipeplan.catalog.hosts").find(request.cluster.accelerator_family)
    device.host_link, device.host_memory_bandwidth = host.link, host.memory_bandwidth * host.update_efficiency
  end
  local calibration = request.calibration
  if calibration and calibration.factors.compute then slow_down(device, calibration.factors.compute) end
  return device
end

-- What a process takes beside tensors and communicators: as given, which has those too, or a context, libraries, and what its framework and
-- experts need.
function recipe.overhead_bytes(request)
  return request.cluster.overhead_bytes
    or require("pipeplan.catalog.overheads").process(frameworks.communicators(request.framework), request.cluster.gpus,
                                                     request.model.architecture == "moe")
end

-- What communicators take, as engine.search takes it; nil where they are in the figure above.
function recipe.communicators(request)
  if request.cluster.overhead_bytes then return nil end
  return require("pipeplan.catalog.overheads").communicators(frameworks.communicators(request.framework), request.cluster.gpus_per_node)
end

-- Share of a hand-over's transfer in which the receiver waits: all of it, for no framework is known to compute in the meantime.
function recipe.hop_waiting()
  return 1
end

-- Seconds of a step that no model accounts for, as the profile has them. Gradient and parameter exchange and the optimizer are costed; data
-- loading and logging run beside the step.
function recipe.step_overhead_seconds(request)
  return request.profile and request.profile.step_fixed_seconds or 0
end

-- What engine.search takes as `profile`; nil without one.
function recipe.profile(request)
  local read = request.profile
  return read and { layout = read.layout, stages = read.stages, rank_speed = read.rank_speed, runtime = read.runtime,
                    contention = read.contention, heat = read.heat, buffered_messages = read.buffered_messages }
end

-- What of the job is taken for granted: assumptions that stand before all others.
function recipe.job(request)
  local list = {}
  local function assume(field, value, why) list[#list + 1] = { field = field, value = value, why = why } end
  local t, given, moe = request.training, request.given or {}, request.model.architecture == "moe"
  if not t.lora_rank then assume("training.lora_rank", "no adapters", "all parameters train") end
  if not given["training.unfused"] then
    local old = request.cluster.accelerator_family == "volta" and "; FlashAttention 2 does not run on Volta" or ""
    assume("training.unfused", "nothing", "attention fused" .. old .. (moe and ", experts in one grouped product" or ""))
  end
  if t.optimizer == "muon" then
    assume("training.optimizer", "muon",
           "one moment a parameter: the second that AdamW keeps of embeddings, outputs and norms is not counted, nor are "
           .. "the products that make an update orthogonal")
  end
  if request.model.tower_parameters then
    assume("training.tower", request.model.shape.tower_frozen and "frozen" or "trained",
           string.format("%s parameters on the first stage, whole on each TP rank; no image is taken to stand in a sequence: no time or "
                         .. "activations of the tower", format.count(request.model.tower_parameters)))
  end
  if t.document_length and not t.document_length_rms then
    assume("training.document_length_rms", t.document_length, "all documents alike: as many tokens in unequal ones cost more")
  end
  local shape, least = request.model.shape, recipe.attended_length(request)
  local function limit(layer) least = math.min(least, layer.window or least, layer.chunk or least) end
  limit(shape)
  for _, kind in ipairs(shape.kinds or {}) do limit(kind) end
  if least < recipe.attended_length(request) then
    assume("model", string.format("windows of %d tokens at the speed of attention", least),
           (t.unfused or {}).attention and "attention that is not fused computes the whole square, and masks it"
           or "FLOPs that the window leaves; context parallelism passes on all keys and values")
  end
  if t.document_length and (t.unfused or {}).attention then
    assume("training.document_length", "not counted", "attention that is not fused computes the whole sequence's square, and masks it")
  end
  return list
end

-- What the tables above take for granted: { field, value, why } for the plan's assumptions.
function recipe.assumptions(request)
  local list = {}
  local function assume(field, value, why) list[#list + 1] = { field = field, value = value, why = why } end
  if not request.cluster.overhead_bytes then
    assume("cluster.overhead", string.format("%.1f GiB", recipe.overhead_bytes(request) / 2 ^ 30),
           string.format("context and libraries; communicators beside them, %.2f GiB a group of the layout's%s: measure a process of yours",
                         recipe.communicators(request).several / 2 ^ 30,
                         frameworks.communicators(request.framework).measured and ", as measured in one node" or ""))
  end
  if not request.training.zero and not request.free.sharding then
    assume("optimizer state", "sharded", "over the data-parallel group: ZeRO-1")
  end
  if request.training.precision == "fp8" and not request.training.weights then
    assume("fp8 weights", "2 bytes", "weights and their transpose; linear inputs kept in fp8")
  end
  if request.training.precision == "fp8" and not request.training.activations then
    local kept = fp8_activations(request)
    assume("training.activations", kept, kept == "fp8" and "as DeepSeek-V3" or "as Transformer Engine")
  end
  local loss, whose = recipe.loss(request)
  if whose then assume("training.loss", loss, whose) end
  if request.model.architecture == "moe" and not request.training.expert_imbalance then
    assume("expert imbalance", 1.0, "tokens spread evenly over experts")
  end
  local fixed = request.parallelism or {}
  local open = not fixed.expert_tensor and fixed.tensor ~= 1 and not recipe.chooses_expert_tensor(request)
  if request.model.architecture == "moe" and open then
    local default = defaults_of(request).expert_tensor
    assume("parallelism.expert_tensor", default == "tensor" and (fixed.tensor or "TP") or 1,
           default and frameworks.find(request.framework).title .. "'s default"
           or (request.framework and "its default is not known" or "no framework named") .. "; Megatron-LM's is TP")
  end
  return list
end

return recipe

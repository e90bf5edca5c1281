-- SPDX-License-Identifier: Apache-2.0
-- facts.lua: what follows from the request alone: the record of request fields that rules read, the arguments of the search, and whether
-- the model would fit one GPU. Fills in the batch where the spec gives none.

local choices = require "pipeplan.plan.choices"
local engine = require "engine"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"
local recipe = require "pipeplan.input.recipe"
local vocabulary = require "pipeplan.vocabulary"

local facts = {}

-- A parameter of the policy; every policy is layered over the default one, so a missing one is a bug.
local function parameter(policy, id)
  local entry = policy.parameters[id] or error("the policy has no parameter " .. id)
  return entry.value
end
facts.parameter = parameter

-- Sequences of a step when the spec gives none: what `default_batch_tokens` comes to, rounded so that every data-parallel degree
-- divides it.
local function default_batch(request, policy)
  local training = request.training
  local fixed = request.parallelism
  if fixed.microbatches and fixed.data then
    return fixed.microbatches * fixed.data * training.micro_batch_size, "microbatches × data × micro_batch_size"
  end
  local tokens = parameter(policy, "default_batch_tokens")
  local quantum = request.cluster.gpus * training.micro_batch_size
  local sequences = tokens / training.sequence_length
  if sequences < quantum then quantum = training.micro_batch_size end
  local batch = math.max(1, math.floor(sequences / quantum + 0.5)) * quantum
  return math.tointeger(batch), "default_batch_tokens " .. format.count(tokens) .. " at this sequence length"
end

-- Batch sizes: of a full step, and the smallest of a ramp, at which legality is judged. Appends to assumptions when it has to choose.
local function batches(request, policy, assumptions)
  local training = request.training
  local batch = training.global_batch_size
  if not batch then
    local why
    batch, why = default_batch(request, policy)
    assumptions[#assumptions + 1] = { field = "training.global_batch_size", value = batch, why = why }
  end
  return batch, training.smallest_batch_size or batch
end

-- The whole model on one GPU: TP = PP = EP = 1, microbatch of one, the optimizer's state sharded over all GPUs unless the spec says no, or
-- weights and gradients too (ZeRO-3). Bytes.
local function one_gpu_bytes(request, training, overhead_bytes, communicators, sharded)
  local one = lists.with(training)
  one.micro_batch, one.shard_gradients, one.shard_parameters = 1, sharded, sharded
  one.shard_optimizer = training.shard_optimizer or sharded
  local schedule = engine.schedule { kind = "1f1b", ranks = 1, microbatches = 1 }
  local ranks = engine.memory.stages {
    model = request.model.shape, training = one, schedule = schedule, overhead = overhead_bytes,
    communicators = communicators,
    layout = { tensor = 1, context = 1, expert = 1, expert_tensor = 1, data = request.cluster.gpus, pipeline = 1, chunks = 1 },
  }
  return ranks[1].total
end

local SECONDS_PER_DAY = 86400

-- What a call costs beside its transfers, by kernel: those that the policy may choose, and the given one.
local function kernel_latency(request, policy)
  local latency, given = {}, request.cluster.alltoall_kernel
  local function add(name) latency[name] = recipe.device(request, name).alltoall_latency end
  for _, rule in ipairs(policy.kernels) do add(rule.recommend or rule.id) end
  if given then add(given) end
  return latency
end

-- → { record, arguments, one_gpu, batch, smallest_batch, assumptions, usable_bytes, tight_bytes }
--   record: every request field of the vocabulary; arguments: of choose.choose (and, but for its choices, engine.search)
function facts.of(request, policy)
  local cluster, model, training = request.cluster, request.model, request.training
  local assumptions = {}
  for i, entry in ipairs(request.assumptions) do assumptions[i] = entry end
  local batch, smallest = batches(request, policy, assumptions)
  if not training.goodput then
    assumptions[#assumptions + 1] = { field = "training.goodput", value = 1.0, why = "no restarts, no checkpoints in the days" }
  end
  local usable = cluster.device_bytes * (1 - parameter(policy, "memory_headroom"))
  local recipe_training, network = recipe.training(request), recipe.network(request)
  local overhead, communicators = recipe.overhead_bytes(request), recipe.communicators(request)

  local one = one_gpu_bytes(request, recipe_training, overhead, communicators, false)
  local record = {
    gpus = cluster.gpus, gpus_per_node = cluster.gpus_per_node, scale_up_gpus = cluster.network.scale_up_gpus,
    fabric = cluster.network.fabric, accelerator = cluster.accelerator, accelerator_family = cluster.accelerator_family,
    device_bytes = cluster.device_bytes, usable_bytes = usable, network_per_gpu = cluster.network.per_gpu,
    architecture = model.architecture, total_parameters = model.total_parameters, active_parameters = model.active_parameters,
    layers = model.layers, experts = model.shape.experts or 0, tied_embeddings = model.shape.tied_embeddings or false,
    tokens = training.tokens, sequence_length = training.sequence_length,
    global_batch_size = batch, smallest_batch_size = smallest, framework = request.framework,
    fits_one_gpu = one <= usable, one_gpu_bytes = one,
    precision = training.precision, optimizer = training.optimizer, optimizer_offload = training.optimizer_offload or 0,
    model_name = model.name, run = request.run, team = request.team,
    framework_version = request.framework_version, model_family = model.family,
  }
  for name, text in pairs(request.labels or {}) do record[vocabulary.label_prefix .. name] = text end
  return {
    record = record, batch = batch, smallest_batch = smallest, assumptions = assumptions, usable_bytes = usable,
    tight_bytes = usable * parameter(policy, "tight_fraction"),
    one_gpu = { bytes = one, usable_bytes = usable, fits = one <= usable,
                sharded_bytes = one_gpu_bytes(request, recipe_training, overhead, communicators, true) },
    arguments = {
      model = model.shape, training = recipe_training, device = recipe.device(request, false),
      kernel_latency = kernel_latency(request, policy), network = network,
      gpus = cluster.gpus, choices = choices.of(request, policy),
      global_batch = batch, smallest_batch = smallest, usable_bytes = usable, device_bytes = cluster.device_bytes,
      overhead_bytes = overhead, communicators = communicators,
      hop_waiting = recipe.hop_waiting(request), step_overhead_seconds = recipe.step_overhead_seconds(request),
      split_tie = parameter(policy, "split_tie_fraction"), split_gain = parameter(policy, "split_gain_fraction"),
      split_overfull = parameter(policy, "split_overfull_fraction"), scale_up_gpus = cluster.network.scale_up_gpus,
      rounds = request.framework and frameworks.find(request.framework).rounds or false,
      run_days_per_second = training.tokens / (batch * training.sequence_length * (1 - (training.padding or 0)))
                            / (training.goodput or 1) / SECONDS_PER_DAY,
      price_per_gpu_hour = cluster.price_per_gpu_hour,
      experts_as_tensor = frameworks.default_expert_tensor(request.framework) == "tensor",
      experts_apart = recipe.chooses_expert_tensor(request), profile = recipe.profile(request),
    },
  }
end

-- What is known once one of the choices is made: what was free is as if the spec had given it.
function facts.settled(known, choice)
  local record = lists.with(known.record, choice.values)
  local arguments = lists.with(known.arguments, { training = choice.training, gpus = choice.gpus, choices = { choice } })
  return lists.with(known, { record = record, arguments = arguments })
end

return facts

-- SPDX-License-Identifier: Apache-2.0
-- figures.lua: where each number of a plan comes from: the formula by name and in words, the numbers that went into it, and its source.
-- For --explain. A figure that the plan does not have is left out.

local format = require "pipeplan.base.format"
local links = require "pipeplan.catalog.links"
local lists = require "pipeplan.base.lists"
local recipe = require "pipeplan.input.recipe"
local terms = require "pipeplan.plan.terms"

local figures = {}

local count, integer, percent, seconds, bytes = format.count, format.integer, format.percent, format.seconds, format.bytes

local function fullest(plan)
  return lists.largest(plan.memory and plan.memory.ranks or {}, function(rank) return rank.total_bytes end)
end

local function slowest(plan)
  return lists.largest(plan.stages or {}, function(stage) return stage.forward_seconds + stage.full_seconds end)
end

local function sent(traffic)
  return string.format("%s, exposed %s; runs beside %s", seconds(traffic.seconds), seconds(traffic.exposed_seconds), traffic.runs_beside)
end

-- Where seconds of stages come from.
local function cost_source(request)
  if request.profile then
    return "measured: " .. request.profile.file .. ", by the rule of engine/core/profile.h"
  end
  return "engine/core/cost.c; what kernels reach: stdlib/catalog/accelerators.lua"
end

-- Where bytes come from: the formula's source, and the profile where its stages say one of `quantities` (profile.lua).
local function bytes_source(source, ...)
  local quantities = { ... }
  return function(request)
    for _, stage in ipairs(request.profile and request.profile.stages or {}) do
      for _, quantity in ipairs(quantities) do
        if stage[quantity] then return "measured: " .. request.profile.file .. ", mem, by the rule of engine/core/profile.h; else " .. source end
      end
    end
    return source
  end
end

local function link_source(request, name)
  local network = request.cluster.network
  if (name == "scale_up" and network.scale_up_measured) or (name == "network" and network.measured) then
    return "cluster.network.measured, see the assumptions"
  end
  local entry = links.find(name == "scale_up" and (network.scale_up_link or "nvlink") or network.fabric or "none")
  return "stdlib/catalog/links.lua: " .. (entry and entry.source or "")
end

local function tokens_of_step(p)
  local padding = p.training.padding or 0
  return count(p.tokens_per_step) .. " tokens" .. (padding > 0 and string.format(" less padding %s", percent(padding)) or "")
end

local function given(request, path) return request.given[path] and "the spec" or "assumed, see the assumptions" end

-- Each: { figure, formula's name, what it computes, inputs(plan, request) → text, source(request) or text, when(plan) }.
local list = {
  { "microbatches", "batch identity", "batch / (DP × microbatch size)", function(p)
      return string.format("batch %s, DP %s, microbatch size %d", integer(p.global_batch_size), integer(p.parallelism.data), p.micro_batch_size)
    end, "Narayanan et al., https://arxiv.org/abs/2104.04473, section 3.1" },
  { "tokens_per_step", "batch identity", "batch × sequence length", function(p)
      return string.format("batch %s, sequences of %s", integer(p.global_batch_size), integer(p.training.sequence_length))
    end, function(r) return given(r, "training.global_batch_size") end },
  { "model.total_parameters, model.active_parameters", "parameter count", "sum over blocks; active: of the experts only top-k", function(p)
      return string.format("%d layers", p.model.layers)
    end, "engine/core/model.c; the spec's config.json or shape" },
  { "cluster.scale_up_bytes_per_second", "link", "one direction, per GPU", function(p) return integer(p.cluster.scale_up_gpus) .. " GPUs a domain" end,
    function(r) return link_source(r, "scale_up") end, function(p) return p.cluster.scale_up_bytes_per_second end },
  { "cluster.network_bytes_per_second", "link", "one direction, per GPU", function(p) return p.cluster.fabric or "" end,
    function(r) return link_source(r, "network") end, function(p) return p.cluster.network_bytes_per_second end },
  { "layers_per_stage", "balanced split", "layers where they keep the heaviest rank lightest in time, under memory", function(p)
      local stage = slowest(p)
      return string.format("heaviest stage %d: F + B %s ms%s", stage.stage, format.ms(stage.forward_seconds + stage.full_seconds),
                           p.even_split and "; even split " .. seconds(p.even_split.step_seconds) .. " a step" or "")
    end, "engine/core/split.c, engine/core/fit.c" },

  { "memory.ranks[].parameters_bytes, gradients_bytes, optimizer_bytes", "model states",
    "bytes a parameter × the rank's parameters, in the groups that share them: dense over DP × CP, experts over expert data parallelism",
    function(p)
      local rank = fullest(p)
      return string.format("rank %d: weights %s, gradients %s, optimizer %s", rank.rank, bytes(rank.parameters_bytes),
                           bytes(rank.gradients_bytes), bytes(rank.optimizer_bytes))
    end, bytes_source("https://github.com/NVIDIA/Megatron-LM, docs of the distributed optimizer; engine/core/memory.c", "parameters", "gradients") },
  { "model.tower_parameters, memory.ranks[].tower_bytes", "tower of images", "as model states, of the first stage and whole on each TP rank",
    function(p)
      local rank = p.memory.ranks[1]
      for _, each in ipairs(p.memory.ranks) do rank = each.tower_bytes and each or rank end
      return string.format("%s parameters, %s: %s on rank %d", format.count(p.model.tower_parameters), p.training.tower, bytes(rank.tower_bytes),
                           rank.rank)
    end, "stdlib/catalog/towers.lua; transformers, src/transformers/models", function(p) return p.model.tower_parameters end },
  { "memory.ranks[].activations_bytes", "peak of activations", "largest sum over the rank's actions of what is kept from F to I and from I to W",
    function(p)
      local rank = fullest(p)
      return string.format("rank %d: %s, as the program of %s holds them at M %s", rank.rank, bytes(rank.activations_bytes),
                           format.schedule(p.schedule), integer(p.microbatches))
    end, bytes_source("Korthikanti et al., https://arxiv.org/abs/2205.05198, section 4; engine/core/memory.c", "stored", "pending") },
  { "memory.ranks[].buffers_bytes", "buffers", "largest temporary + context, communicators, workspaces", function(p)
      return bytes(fullest(p).buffers_bytes) .. " on the fullest rank"
    end, bytes_source("stdlib/catalog/overheads.lua; https://github.com/ai-dynamo/aiconfigurator", "transient") },
  { "memory.ranks[].total_bytes, memory.fit", "sum", "of the above, against device memory less the headroom", function(p)
      return string.format("%s of %s, headroom %s", bytes(fullest(p).total_bytes), bytes(p.memory.device_bytes), bytes(p.memory.headroom_bytes))
    end, "device memory: stdlib/catalog/accelerators.lua or the spec; headroom: policy parameter memory_headroom" },
  { "host.optimizer_bytes", "model states", "master weights, moments and a copy of the gradients of a node's GPUs", function(p)
      return bytes(p.host.optimizer_bytes) .. (p.host.memory_bytes and " of " .. bytes(p.host.memory_bytes) or "")
    end, "https://github.com/NVIDIA/Megatron-LM, core/optimizer/cpu_offloading; engine/core/memory.c", function(p) return p.host and p.host.optimizer_bytes > 0 end },
  { "host.checkpoint_bytes, host.checkpoint_seconds", "checkpoint", "weights, master weights and moments of the whole model, over the storage's speed", function(p)
      return bytes(p.host.checkpoint_bytes) .. (p.host.checkpoint_seconds and ", " .. seconds(p.host.checkpoint_seconds) or "")
    end, function(r) return "storage: " .. given(r, "cluster.storage") end, function(p) return p.host and p.host.checkpoint_seconds end },
  { "activation_limit_chunks", "limit of the program", "most chunks of activations that a rank may hold", function(p)
      return integer(p.activation_limit_chunks) .. " chunks"
    end, "engine/core/schedules_greedy.c", function(p) return p.activation_limit_chunks end },
  { "replication", "copies", "resident and unique parameters a GPU; a second copy costs its weights and gradients", function(p)
      return string.format("%d of %s, spread evenly %s", p.replication.copies, count(p.replication.resident_parameters_per_gpu),
                           count(p.replication.unique_parameters_per_gpu))
    end, "DeepSeek-V3 report, https://arxiv.org/abs/2412.19437, section 3.2.1" },

  { "stages[].forward_seconds, input_seconds, weight_seconds", "roofline",
    "FLOPs over achieved peak or bytes over achieved bandwidth, whichever is more, plus exposed collectives", function(p)
      local stage = slowest(p)
      return string.format("stage %d: F %s, I %s, W %s, B %s ms", stage.stage, format.ms(stage.forward_seconds), format.ms(stage.input_seconds),
                           format.ms(stage.weight_seconds), format.ms(stage.full_seconds))
    end, cost_source },
  { "stages[]", "terms", "what a layer's seconds are made of, all-to-all apart", function(p, r) return terms.text(r, p) end,
    "engine/core/cost.c, kernels.c", function(p, r) return p.stages and not r.profile end },
  { "stages[].host_forward_seconds, host_backward_seconds", "floor of the host", "launches of a layer − what the card takes for it", function(p)
      local stage = slowest(p)
      return string.format("stage %d: %s and %s ms", stage.stage, format.ms(stage.host_forward_seconds), format.ms(stage.host_backward_seconds))
    end, function(r) return "stdlib/catalog/frameworks: " .. recipe.host_source(r) end,
    function(p, r) return p.stages and not r.profile and slowest(p).host_forward_seconds + slowest(p).host_backward_seconds > 0 end },
  { "stages[].pair_seconds", "overlapped pair", "clamp(max(compute, all-to-all) + overhead, max(F, B), F + B); measured: its share of F + B", function(p)
      local stage = slowest(p)
      return string.format("stage %d: F&B %s ms, all-to-all %s ms each way", stage.stage, format.ms(stage.pair_seconds),
                           format.ms(stage.alltoall_forward_seconds))
    end, "DeepSeek-V3 report, https://arxiv.org/abs/2412.19437, section 3.2.1; engine/core/cost.c", function(p) return p.stages and p.stages[1].pair_seconds end },
  { "stages[].alltoall_forward_seconds, alltoall_backward_seconds", "all-to-all by tier",
    "α + copies × bytes / bandwidth inside and between domains, the slower of the two; with a kernel one copy a domain", function(p)
      return string.format("EP %d, %s", p.parallelism.expert, p.alltoall_kernel and p.alltoall_kernel.name or "no kernel")
    end, "https://github.com/deepseek-ai/DeepEP/blob/dd758ca/docs/legacy.md; engine/core/comm.c", function(p) return p.parallelism.expert > 1 end },
  { "step.pipeline_seconds", "event simulation", "each action starts when its rank is free and what it needs has come", function(p)
      return string.format("%s, P %d, M %s, F, I, W%s of %d stages, hand-overs", format.schedule(p.schedule), p.parallelism.pipeline,
                           integer(p.microbatches), p.stages[1].pair_seconds and ", F&B" or "", #p.stages)
    end, function(_, p)
      local runtime = p.profile and p.profile.runtime or "ideal"
      return runtime == "ideal" and "engine/core/simulate.c" or "engine/core/runtime.c, " .. runtime
    end, function(p) return p.parallelism.pipeline > 1 end },
  { "profile.calibration[]", "event simulation", "the profile's own stages, under its runtime, against its own runs", function(p)
      local parts = {}
      for i, run in ipairs(p.profile.calibration) do parts[i] = string.format("%+.1f %%", run.error_fraction * 100) end
      return table.concat(parts, ", ")
    end, function(r) return r.profile.file end, function(p) return p.profile and #p.profile.calibration > 0 end },
  { "power.taken_back_fraction", "power cap", "1 − gain as cards heat up / gain at the clocks of cool ones; actions take up to hot / cold as long, by the running average of busy", function(p)
      return string.format("%s, %s", percent(p.power.gain_fraction), percent(p.power.cool_gain_fraction))
    end, function(r) return r.profile.file .. ", heat; engine/core/runtime.h" end, function(p) return p.power and p.power.taken_back_fraction end },
  { "step.gradient_sync_seconds, step.parameter_sync_seconds", "ring", "(n − 1) α + (n − 1)/n × bytes / bandwidth, less what training.data_overlap hides", function(p)
      return string.format("DP %d × CP %d: gradients %s, parameters %s", p.parallelism.data, p.parallelism.context,
                           seconds(p.step.gradient_sync_seconds), seconds(p.step.parameter_sync_seconds))
    end, "Thakur et al., https://doi.org/10.1177/1094342005051521, section 4; https://github.com/NVIDIA/nccl/issues/812; engine/core/comm.c" },
  { "step.optimizer_seconds", "memory traffic", "bytes that an update reads and writes over achieved memory bandwidth", function(p)
      return seconds(p.step.optimizer_seconds)
    end, "engine/core/cost.c, pp_cost_step" },
  { "step.mirror_seconds", "ring", "gradients and parameters of the share between the two copies", function(p) return seconds(p.step.mirror_seconds) end,
    "DeepSeek-V3 report, https://arxiv.org/abs/2412.19437, section 3.2.1; engine/core/cost.c", function(p) return p.step.mirror_seconds > 0 end },
  { "step.overhead_seconds", "fixed cost", "of every step", function(p) return seconds(p.step.overhead_seconds) end,
    function(r) return r.profile and r.profile.file .. ", step_fixed_us" or "none assumed" end, function(p) return p.step.overhead_seconds > 0 end },
  { "step_seconds", "sum", "pipeline + gradients + parameters + optimizer + mirror + fixed cost", function(p)
      local s = p.step
      return string.format("%s + %s + %s + %s + %s + %s", seconds(s.pipeline_seconds), seconds(s.gradient_sync_seconds),
                           seconds(s.parameter_sync_seconds), seconds(s.optimizer_seconds), seconds(s.mirror_seconds), seconds(s.overhead_seconds))
    end, "the figures above" },
  { "ideal_step_seconds, predicted_utilisation_fraction", "ideal step", "M × Σ over stages (F + B − all-to-all) / P; over the step", function(p)
      return string.format("%s of %s", seconds(p.ideal_step_seconds), seconds(p.step_seconds))
    end, "the rollback trigger: docs/watching.md" },

  { "bubble.fraction", "mean idle share", "1 − Σ busy / (P × makespan)", function(p)
      return string.format("makespan %s, P %d", seconds(p.step.pipeline_seconds), p.parallelism.pipeline)
    end, "engine/core/simulate.c" },
  { "bubble.closed_form_fraction", "closed form", "of the most idle rank, at mean stage times, over the makespan", function(p)
      return p.bubble.closed_form_exact and "its conditions hold" or "its conditions do not hold: equal stages, no hand-over time"
    end, "pipeplan simulate prints its conditions and source", function(p) return p.bubble.closed_form_fraction end },
  { "bubble.baseline_1f1b_fraction", "mean idle share", "of 1F1B at the same P, M and layout, F&B = F + B", function(p)
      return percent(p.bubble.baseline_1f1b_fraction)
    end, "engine/core/simulate.c", function(p) return p.bubble.baseline_1f1b_fraction end },

  { "communication.pipeline", "hop", "α + tokens × hidden × 2 bytes / bandwidth, twice a microbatch and boundary; exposed: with and without it, simulated",
    function(p) return sent(p.communication.pipeline) end,
    function(r)
      return r.profile and next(r.profile.messages) and r.profile.file .. ", p2p" or "engine/core/comm.c; " .. link_source(r, "network")
    end, function(p) return p.communication.pipeline.seconds > 0 end },
  { "communication.tensor", "ring", "two regions a layer and direction of tokens × hidden × 2 bytes; exposed: all", function(p)
      return sent(p.communication.tensor)
    end, "Korthikanti et al., https://arxiv.org/abs/2205.05198, section 4.2.2", function(p) return p.communication.tensor.seconds > 0 end },
  { "communication.context", "ring", "keys and values past attention; exposed: beyond the attention of the other ranks' blocks", function(p)
      return sent(p.communication.context)
    end, "https://github.com/NVIDIA/Megatron-LM, guide of context parallelism", function(p) return p.communication.context.seconds > 0 end },
  { "communication.expert", "all-to-all by tier", "of the rank that sends most; exposed: what its busy time holds beyond compute", function(p)
      return sent(p.communication.expert)
    end, "engine/core/comm.c", function(p) return p.communication.expert.seconds > 0 end },
  { "communication.data", "ring", "what is left of gradients and parameters; exposed: all of that", function(p) return sent(p.communication.data) end,
    "as step.gradient_sync_seconds", function(p) return p.communication.data.seconds > 0 end },

  { "mfu_fraction", "model FLOPs utilisation", "training FLOPs of a step / (step × GPUs × dense bf16 peak)", function(p)
      return string.format("%s, step %s, %s GPUs", tokens_of_step(p), seconds(p.step_seconds), integer(p.cluster.gpus))
    end, "Chowdhery et al., https://arxiv.org/abs/2204.02311, appendix B; dense peak: stdlib/catalog/accelerators.lua" },
  { "training_days, gpu_hours", "run time", "Σ over segments of the batch: tokens / (batch × sequence × (1 − padding)) × step / goodput; × GPUs", function(p, r)
      return string.format("%s tokens, %s a step, goodput %s, %s GPUs", count(p.training.tokens), tokens_of_step(p),
                           percent(r.training.goodput or 1), integer(p.cluster.gpus))
    end, function(r) return "goodput: " .. given(r, "training.goodput") end },
  { "cost", "rent", "GPU-hours × price of one", function(p, r)
      return string.format("%s × %s", count(p.gpu_hours), format.quantity(r.cluster.price_per_gpu_hour))
    end, "the spec", function(p) return p.cost end },
  { "gpu_hours_saved[]", "saving", "bubble: baseline − the plan with F&B = F + B; overlap: that − the plan; all by step time", function(p)
      local parts = {}
      for i, saving in ipairs(p.gpu_hours_saved) do parts[i] = format.schedule(saving.baseline) .. " " .. count(saving.total) end
      return table.concat(parts, ", ")
    end, "engine/core/simulate.c", function(p) return p.gpu_hours_saved and #p.gpu_hours_saved > 0 end },
  { "expected_error", "measured against predicted", "of time, memory, and the ratio of two schedules", function(p)
      return string.format("±%s, ±%s, ±%s", percent(p.expected_error.time_fraction), percent(p.expected_error.memory_fraction),
                           percent(p.expected_error.comparison_fraction))
    end, function(_, p) return p.expected_error.source end },
  { "alternatives[]", "as the plan", "same devices, layers and tokens, at the plan's layout where that is legal", function(p)
      return integer(#p.alternatives) .. " of them"
    end, "engine/core/evaluation.c", function(p) return p.alternatives and #p.alternatives > 0 end },
  { "rollback.threshold_fraction", "utilisation of the fallback", "ideal step / step of the fallback, over the window", function(p)
      return string.format("%s of %s steps", percent(p.rollback.threshold_fraction), integer(p.rollback.window_steps))
    end, "policy parameters rollback_window_steps, rollback_warmup_steps", function(p) return p.rollback end },
}

-- What any plan, planned or not, has numbers of.
local always = {
  { "one_gpu.bytes", "model states", "the whole model on one GPU, optimizer sharded over all", function(p)
      return string.format("%s of %s usable", bytes(p.one_gpu.bytes), bytes(p.one_gpu.usable_bytes))
    end, "engine/core/memory.c", function(p) return p.one_gpu and p.one_gpu.bytes end },
  { "minimum.gpus", "search", "the fewest GPUs, of those tried, that the run fits", function(p) return integer(p.minimum.gpus) .. " GPUs" end,
    "stdlib/plan/minimum.lua", function(p) return p.minimum end },
  { "minimum.state_gpus", "model states", "weights, gradients and optimizer of one copy over what a GPU may hold", function(p)
      return bytes(p.minimum.state_bytes)
    end, "engine/core/memory.c", function(p) return p.minimum end },
  { "gpus_needed", "search", "the smallest count of GPUs, of those tried, that would work", function(p)
      return string.format("more than the %s given", integer(p.cluster.gpus))
    end, "stdlib/plan/enough.lua", function(p) return p.gpus_needed end },
  { "ways_to_fit[]", "search", "the same run with fields of the spec changed, the fastest step first", function(p)
      return integer(#p.ways_to_fit) .. " of them"
    end, "stdlib/plan/ways.lua", function(p) return p.ways_to_fit and #p.ways_to_fit > 0 end },
}

-- → list of { figure, name, formula, inputs, source }.
function figures.of(plan, request)
  local out = {}
  local function add(entry)
    local figure, name, formula, inputs, source, when = table.unpack(entry)
    if when and not when(plan, request) then return end
    out[#out + 1] = { figure = figure, name = name, formula = formula, inputs = inputs(plan, request),
                      source = type(source) == "function" and source(request, plan) or source }
  end
  if plan.status == "planned" then
    for _, entry in ipairs(list) do add(entry) end
  end
  for _, entry in ipairs(always) do add(entry) end
  return out
end

return figures

-- predict.lua: seconds of a step from the engine and the catalogue alone, for a run of which model, cluster and layout are known. Used by
-- calibrate.lua and by the oracle specs.

local engine = require("pipeplan") and require "engine"
local accelerators = require "pipeplan.catalog.accelerators"
local kernels = require "pipeplan.catalog.kernels"
local recipe = require "pipeplan.input.recipe"
local links = require "pipeplan.catalog.links"

local predict = {}

-- run = { accelerator, gpus, precision, scale_up_gpus?, network_per_gpu?, fabric?, kernel?, efficiencies? }
function predict.hardware(run)
  local entry = assert(accelerators.find(run.accelerator))
  local shares = run.efficiencies or accelerators.efficiencies(entry, run.precision)
  local inside, outside = links.find(entry.scale_up_link), links.find(run.fabric or entry.fabric)
  local device = { flops = entry.flops[run.precision], flops_bf16 = entry.flops.bf16, memory_bandwidth = entry.memory_bandwidth }
  for key, value in pairs(shares) do device[key] = value end
  device.host = recipe.host { framework = "megatron", training = { cuda_graphs = run.cuda_graphs },
                              cluster = { accelerator_family = entry.family } }
  if run.kernel then
    device.hides_alltoall = kernels.find(run.kernel).overlapping
    device.alltoall_latency = kernels.find(run.kernel).latency
  end
  local network = { tiers = {
    { reach = math.min(run.gpus, run.scale_up_gpus or entry.scale_up_gpus), bandwidth = entry.scale_up_per_gpu,
      efficiency = inside.efficiency, latency = inside.latency },
    { reach = run.gpus, bandwidth = run.network_per_gpu or entry.network_per_gpu, efficiency = outside.efficiency,
      latency = outside.latency },
  } }
  return device, network
end

-- The mixed-precision recipe of Megatron: bf16 or fp8 products, fp32 gradients and Adam, sharded optimizer.
function predict.training(run)
  return {
    precision = run.precision, sequence_length = run.sequence, micro_batch = run.micro_batch, parameter_bytes = 2, gradient_bytes = 4,
    master_bytes = 4, moment_bytes = 8, shard_optimizer = true, sequence_parallel = true, fused_attention = true, fused_loss = true,
    tensor_overlap = run.tensor_overlap, dispatch_bytes = run.dispatch_bytes, max_domains = run.max_domains, recompute = run.recompute,
  }
end

-- As Megatron-LM trained GPT in 2021, and Megatron-DeepSpeed after it: all-reduces, no fused attention, no sharded optimizer.
predict.megatron_2021 = {
  sequence_parallel = false, fused_attention = false, dropout = true, fused_loss = false, shard_optimizer = false,
}

-- Parameters of a stage on one GPU: all but routed experts, routed experts.
local function resident(blocks, stage, layout)
  local dense, expert = 0, 0
  for name, count in pairs(stage) do
    local block = blocks[name]
    dense = dense + count * (block.tensor / layout.tensor + block.replicated)
    expert = expert + count * block.expert / layout.expert
  end
  return dense, expert
end

-- The slowest rank's seconds beside the pipeline.
local function beside(setting, stages, schedule)
  local blocks = engine.model.parameters(setting.model).blocks
  local info = schedule and schedule:info() or { stages = 1, kind = "1f1b", placement = { 0 } }
  local dense, expert = {}, {}
  for number = 1, info.stages do
    local rank = info.placement[number]
    local d, e = resident(blocks, stages[(number - 1) % #stages + 1], setting.layout)
    dense[rank], expert[rank] = (dense[rank] or 0) + d, (expert[rank] or 0) + e
  end
  local slowest = 0
  for rank = 0, setting.layout.pipeline - 1 do
    local step = engine.cost.step {
      layout = setting.layout, training = setting.training, device = setting.device, network = setting.network,
      dense_parameters = dense[rank], expert_parameters = expert[rank], copies = engine.schedule.traits(info.kind).copies,
    }
    slowest = math.max(slowest, step.gradient_sync + step.parameter_sync + step.optimizer + step.mirror)
  end
  return slowest
end

-- Layers per stage so that the busiest rank has as little to do as can be, as the layouts of these runs do by hand (embedding, head and MTP
-- count): from the even split, layers move from the busiest rank to the idlest while that helps.
local function balanced(setting, ranks, chunks, even)
  local blocks = engine.cost.blocks(setting)
  local function seconds(stage)
    local sum = 0
    for name, count in pairs(stage) do
      local b = blocks[name]
      sum = sum + count * (b.forward + b.input + b.weight + b.alltoall_forward + b.alltoall_backward)
    end
    return sum
  end
  local main = seconds { [setting.model.experts and "moe" or "dense"] = 1 }
  local counts, work = {}, {}
  for s, stage in ipairs(even) do
    counts[s] = (stage.dense or 0) + (stage.moe or 0)
    local rank = (s - 1) % ranks + 1
    work[rank] = (work[rank] or 0) + seconds(stage)
  end
  while true do
    local busiest, idlest = 1, 1
    for rank = 1, ranks do
      if work[rank] > work[busiest] then busiest = rank end
      if work[rank] < work[idlest] then idlest = rank end
    end
    if work[idlest] + main >= work[busiest] - 1e-12 then return counts end
    local from, to
    for chunk = 0, chunks - 1 do
      local s, t = busiest + chunk * ranks, idlest + chunk * ranks
      if counts[s] > 0 and (not from or counts[s] >= counts[from]) then from = s end
      if not to or counts[t] < counts[to] then to = t end
    end
    counts[from], counts[to] = counts[from] - 1, counts[to] + 1
    work[busiest], work[idlest] = work[busiest] - main, work[idlest] + main
  end
end

-- More stages than layers: the ends, which hold embedding and head, go without.
local function first_split(model, stages)
  if model.layers >= stages then return assert(engine.model.stages(model, stages)) end
  local counts = {}
  for s = 1, stages do counts[s] = 0 end
  for i = 1, model.layers do counts[1 + (stages - model.layers) // 2 + i - 1] = 1 end
  return assert(engine.model.stages(model, stages, counts))
end

-- Megatron's overlap of neighbouring microbatches needs virtual stages where there is a pipeline.
local function kind_of(run)
  if run.schedule then return run.schedule end
  if run.virtual == 1 then return "1f1b" end
  return run.overlapped and "interleaved_1f1b_overlap" or "interleaved_1f1b"
end

local function build(run, microbatches)
  if run.pipeline == 1 then return nil, 1 end
  assert(not run.overlapped or run.virtual > 1, "an overlap in a pipeline needs virtual stages")
  local schedule = assert(engine.schedule {
    kind = kind_of(run), ranks = run.pipeline, microbatches = microbatches, virtual = run.virtual > 1 and run.virtual or nil,
  })
  local info = schedule:info()
  return schedule, info.stages // info.chains // run.pipeline
end

-- The device as pairs find it: without a kernel too Megatron's hide the all-to-all, which runs on a stream of its own.
local function pairing(device, kind)
  local out = {}
  for key, value in pairs(device) do out[key] = value end
  out.hides_alltoall = device.hides_alltoall or not engine.schedule.traits(kind).needs_kernel
  return out
end

-- F&B of each stage with the stages that its rank runs it with: the other one of two, or in a loop the mean of all.
local function pairs_of(info, seconds, device)
  local stages_at, result = {}, {}
  local looped = engine.schedule.traits(info.kind).placement == "loop"
  for number = 1, info.stages do
    local rank = info.placement[number]
    stages_at[rank] = stages_at[rank] or {}
    table.insert(stages_at[rank], (number - 1) % #seconds + 1)
  end
  for _, mine in pairs(stages_at) do
    for k, number in ipairs(mine) do
      local sum, count = 0, 0
      for j, other in ipairs(mine) do
        if looped or j ~= k then
          sum, count = sum + engine.cost.pair { device = device, forward = seconds[number], backward = seconds[other] }, count + 1
        end
      end
      result[number] = sum / count
    end
  end
  return result
end

-- Seconds of the pipeline and its bubble. Without one, the overlap leaves the first forward and the last backward alone.
local function pipeline_seconds(setting, schedule, seconds, microbatches, overlapped)
  if not schedule then
    local alone = seconds[1].forward + seconds[1].full
    local device = pairing(setting.device, "interleaved_1f1b_overlap")
    local pair = overlapped and engine.cost.pair { device = device, forward = seconds[1], backward = seconds[1] } or alone
    return alone + (microbatches - 1) * pair, 0
  end
  local info = schedule:info()
  local times = { F = {}, I = {}, W = {}, B = {} }
  times.p2p = engine.cost.hop { model = setting.model, layout = setting.layout, training = setting.training, network = setting.network }
  for number, stage in ipairs(seconds) do
    times.F[number], times.I[number], times.W[number], times.B[number] = stage.forward, stage.input, stage.weight, stage.full
  end
  if engine.schedule.traits(info.kind).overlaps then times.FB = pairs_of(info, seconds, pairing(setting.device, info.kind)) end
  local simulated = assert(schedule:simulate(times))
  return simulated.makespan, simulated.bubble_fraction
end

-- run: predict.hardware's fields and { batch, micro_batch, sequence, tensor, context, expert, pipeline, virtual, schedule?, overlapped?,
-- layers_per_stage?, recompute?, max_domains?, training? } → { seconds, tokens_per_second, pipeline, beside, bubble, stages, microbatches }
function predict.step(model, run)
  local data = run.gpus // (run.tensor * run.context * run.pipeline)
  local microbatches = run.batch // (data * run.micro_batch)
  local device, network = predict.hardware(run)
  local setting = {
    model = model, device = device, network = network, training = predict.training(run),
    layout = { tensor = run.tensor, context = run.context, expert = run.expert, data = data, pipeline = run.pipeline },
  }
  for key, value in pairs(run.training or {}) do setting.training[key] = value end
  local schedule, chunks = build(run, microbatches)
  local stages = first_split(model, run.pipeline * chunks)
  local layers = run.layers_per_stage or schedule and balanced(setting, run.pipeline, chunks, stages)
  if layers then stages = assert(engine.model.stages(model, run.pipeline * chunks, layers)) end
  local seconds = {}
  for i, stage in ipairs(stages) do
    local arguments = { stage = stage }
    for key, value in pairs(setting) do arguments[key] = value end
    seconds[i] = engine.cost.stage(arguments)
  end
  local out = { microbatches = microbatches, stages = stages, setting = setting }
  out.pipeline, out.bubble = pipeline_seconds(setting, schedule, seconds, microbatches, run.overlapped)
  out.beside = beside(setting, stages, schedule)
  out.seconds = out.pipeline + out.beside
  out.tokens_per_second = run.batch * run.sequence / run.gpus / out.seconds
  return out
end

-- Predicted over measured tokens per second of a row of megatron_bridge.lua, and the prediction.
function predict.ratio(model, row)
  local run = setmetatable({ kernel = row.kernel or "hybrid_ep" }, { __index = row })
  local ours = predict.step(model, run).tokens_per_second
  return ours / row.tokens_per_second, ours
end

return predict

-- SPDX-License-Identifier: Apache-2.0
-- fits.lua: does a run whose layout is known fit, by the planner? For the sources fits_published.lua, fits_bridge.lua and fits_cases.lua.

local planning = require "planning"  -- first: it loads the module

local accelerators = require "pipeplan.catalog.accelerators"
local frameworks = require "pipeplan.catalog.frameworks"
local memory = require "oracles.measure_memory"
local overheads = require "pipeplan.catalog.overheads"

local GIB = 2 ^ 30

local fits = {}

local function fullest(plan)
  local most = plan.memory.ranks[1]
  for _, rank in ipairs(plan.memory.ranks) do
    if rank.total_bytes > most.total_bytes then most = rank end
  end
  return most
end

-- Everything sharded over data parallelism (FSDP, ZeRO-3), which no spec can say: the engine's bytes, and weights of two layers as they are
-- gathered, one in use and one ahead.
local function sharded(run, recipe)
  local training = memory.bf16(run.sequence, { micro_batch = run.micro_batch, shard_gradients = true, shard_parameters = true,
                                               recompute = { full = recipe.recompute == "full" } })
  local layout = { tensor = run.tensor, expert = run.expert, data = run.gpus // run.tensor }
  local groups = frameworks.communicators()
  local rank = memory.ranks { model = run.model, layout = layout, training = training, overhead = overheads.process(groups, run.gpus),
                              communicators = overheads.communicators(groups, 8) }[1]
  training.shard_parameters = false
  local whole = memory.ranks { model = run.model, layout = layout, training = training }[1]
  local total = rank.total + 2 * whole.parameters / run.model.layers
  local headroom = planning.policy.policy.parameters.memory_headroom.value
  local usable = accelerators.find(run.accelerator).memory_bytes * (1 - headroom)
  return total <= usable, string.format("%s %.1f", total <= usable and "fits" or "does not fit", total / GIB)
end

-- run = { accelerator, memory, gpus, model, tensor, pipeline, context, virtual, expert, batch, micro_batch, sequence, precision, recipe } →
-- fits (or nil: the planner has another objection), our verdict in words
function fits.verdict(run)
  local recipe = run.recipe or {}
  if recipe.fsdp then return sharded(run, recipe) end
  local interleaved = run.pipeline > 1 and run.virtual > 1 and not recipe.schedule
  local schedule = run.pipeline > 1 and (recipe.schedule or interleaved and "interleaved_1f1b" or "1f1b") or nil
  local plan = planning.plan {
    cluster = { gpus = run.gpus, accelerator = run.accelerator, memory_per_gpu = run.memory,
                network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = run.model,
    training = { tokens = "1T", sequence_length = run.sequence, global_batch_size = run.batch, micro_batch_size = run.micro_batch,
                 precision = run.precision, recompute = recipe.recompute or "none", gradients = recipe.gradients, moments = recipe.moments,
                 weights = run.precision == "fp8" and recipe.weights or nil, zero = recipe.zero,
                 activations = run.precision == "fp8" and recipe.activations or nil,
                 optimizer_offload = recipe.optimizer_offload },
    parallelism = { tensor = run.tensor, pipeline = run.pipeline, context = run.context, virtual = interleaved and run.virtual or nil,
                    expert = run.expert > 1 and run.expert or nil, schedule = schedule },
  }
  if plan.status == "planned" then
    return true, string.format("%s %.1f", plan.memory.fit, fullest(plan).total_bytes / GIB)
  end
  for _, reason in ipairs(plan.reasons) do
    if reason.id == "does_not_fit" or reason.id == "replication_does_not_fit" then
      return false, "does not fit: " .. (reason.message:match "(rank .- too much)" or reason.message)
    end
  end
  return nil, plan.status .. ": " .. planning.ids(plan.reasons)[1]
end

return fits

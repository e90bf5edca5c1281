-- SPDX-License-Identifier: Apache-2.0
-- measure_memory.lua: bytes of a run's ranks from the engine alone, for the oracle sources about memory.

local engine = require("pipeplan") and require "engine"

local memory = {}

-- Megatron's mixed-precision recipe: bf16 weights, fp32 gradients and Adam, sharded; flash attention, sequence parallelism.
function memory.bf16(sequence, changes)
  local recipe = { precision = "bf16", sequence_length = sequence, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4,
                   moment_bytes = 8, shard_optimizer = true, sequence_parallel = true, fused_attention = true }
  for key, value in pairs(changes or {}) do recipe[key] = value end
  return recipe
end

-- run = { model, training, layout, kind = "1f1b", virtual = nil, microbatches = 8, layers_per_stage, overhead, communicators } →
-- bytes by rank (engine.memory.stages); without a pipeline one rank.
function memory.ranks(run)
  local depth = run.layout.pipeline or 1
  local schedule = depth > 1 and assert(engine.schedule { kind = run.kind or "1f1b", ranks = depth, microbatches = run.microbatches or 8,
                                                          virtual = run.virtual }) or nil
  return assert(engine.memory.stages { model = run.model, layout = run.layout, training = run.training, schedule = schedule,
                                       layers_per_stage = run.layers_per_stage, overhead = run.overhead,
                                       communicators = run.communicators })
end

-- The fullest rank's total, in bytes.
function memory.peak(run)
  local most = 0
  for _, rank in ipairs(memory.ranks(run)) do most = math.max(most, rank.total) end
  return most
end

return memory

-- own-numbers.lua: a site that decides by what the engine computes for it, where no field says what it wants to know.

site "own-numbers"

-- What the switches of this hall do for an all-to-all: 8 GPUs a node, 25 GB/s a GPU between nodes.
local hall = { tiers = { { reach = 8, bandwidth = 300e9 }, { reach = 4096, bandwidth = 25e9 } } }

-- Seconds of one dispatch of a microbatch: 4 experts a token, 8 KiB of bf16 activations each.
local function dispatch_seconds(f)
  return engine.comm.alltoall { network = hall, group = f.expert_parallel, tokens = f.sequence_length * f.micro_batch_size,
                                experts_per_token = 4, bytes_per_token = 8192 }
end

-- A run here begins with a quarter of its batch: the bubble that it has then, as a share of the step.
local function first_bubble(f)
  local few = math.max(1, f.microbatches // 4)
  local form = engine.bubble { schedule = "1f1b", ranks = f.pipeline_parallel, microbatches = few, F = 1, I = 1, W = 1 }
  return form.seconds / (form.seconds + 3 * few)
end

reject { id = "dispatch_too_long", owner = "network", message = "EP {expert_parallel}: a dispatch takes over 4 ms between these switches",
         when = function(f) return f.expert_parallel > 1 and dispatch_seconds(f) > 4e-3 end }
reject { id = "idle_at_first", schedule = "1f1b", owner = "training systems",
         message = "P {pipeline_parallel}: with a quarter of the microbatches ({microbatches}) over 20 % of a step is idle",
         when = function(f) return first_bubble(f) > 0.2 end }

-- SPDX-License-Identifier: Apache-2.0

-- SPDX-License-Identifier: Apache-2.0
-- volume.lua: what a run of a plan reads, in the units that frameworks ask for: all tokens of its sequences, those too that only fill them up
-- and train nothing.

local volume = {}

-- Tokens that are read until so many are trained: all of the plan's when nobody says.
function volume.tokens(plan, trained)
  local padding = plan.training.padding
  padding = math.type(padding) and padding or 0   -- absent, or JSON's null
  return (trained or plan.training.tokens) / (1 - padding)
end

function volume.samples(plan) return math.floor(volume.tokens(plan) / plan.training.sequence_length + 0.5) end

function volume.steps(plan)
  return math.max(1, math.floor(volume.tokens(plan) / (plan.training.sequence_length * plan.global_batch_size) + 0.5))
end

return volume

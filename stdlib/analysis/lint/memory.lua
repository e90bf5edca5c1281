-- SPDX-License-Identifier: Apache-2.0
-- memory.lua: what a launch takes of its GPUs, where the accelerator is known: planned as it is, with nothing of it left to choose.

local failure = require "pipeplan.base.failure"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local reads = require "pipeplan.analysis.lint.reads"
local spec = require "pipeplan.input.spec"

local memory = {}

-- The policy without what it would refuse: what somebody runs is counted, whether a plan would be so or not.
local function lenient(policy) return lists.with(policy, { rejects = {}, refuses = {}, invariants = {} }) end

-- memory.of(result, options, policy) → { fit, device_bytes, ranks = { { rank, stages, total_bytes, … } } }, or nil and why not.
-- options: fields of a spec that the command line gives.
function memory.of(result, options, policy)
  local object, lacks, unsaid = reads.spec(result)
  for _, each in ipairs(unsaid) do
    if each.message and options[each.field:match "[^.]*$"] == nil then return nil, "memory: not computed: " .. each.message end
  end
  if not object.model and not options.model then
    return nil, "memory: not computed: " .. (lacks and "the model's " .. lacks .. " is not known (--model)" or "the model is not known")
  end
  object.training.tokens = object.training.tokens or options.tokens or 1e12  -- memory does not depend on it
  local good, outcome = failure.try(function()
    local request = spec.read { objects = { { object = object, name = result.file, base = "" } }, options = options }
    return planner.plan { request = request, policy = lenient(policy) }
  end)
  if not good then
    if not failure.is(outcome) then error(outcome, 0) end
    return nil, "memory: not computed: " .. outcome.message
  end
  if outcome.status ~= "planned" then
    return nil, "as a plan it is " .. outcome.status .. ": " .. (outcome.reasons[1] and outcome.reasons[1].message or "no reason")
  end
  return outcome.memory
end

return memory

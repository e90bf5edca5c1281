-- SPDX-License-Identifier: Apache-2.0
--[[
sensitivity.lua: where the choice turns: what would be planned if a figure that the plan rests on were another.

  sensitivity.of(plan, request, policy, known) → { { words, changes, status, same, schedule, parallelism, step_seconds }, … }
    request   before the plan chose what the spec leaves out
    same      is it the plan's schedule and layout?

Links at half and at twice their speed; the all-to-all behind nothing; memory short by as much as an estimate of it can be wrong; half and
twice the batch. Cost: a search each.
]]

local accuracy = require "pipeplan.catalog.accuracy"
local advice = require "pipeplan.plan.advice"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"

local sensitivity = {}

-- Changes of the spec, in words.
local function cases(plan, request, known)
  local list, cluster = {}, request.cluster
  local function add(path, value, words) list[#list + 1] = { words = words, changes = { [path] = value } } end
  local link = cluster.network.per_gpu
  if link and cluster.gpus > cluster.network.scale_up_gpus then
    for _, factor in ipairs { 0.5, 2 } do
      add("cluster.network.per_gpu", link * factor, "links of " .. format.rate(link * factor))
    end
  end
  if plan.parallelism.expert > 1 and plan.alltoall_kernel.name then
    add("cluster.alltoall_kernel", false, "an all-to-all behind nothing")
  end
  local less = cluster.device_bytes * (1 - accuracy.memory_fraction)
  add("cluster.memory_per_gpu", math.floor(less), string.format("%s a GPU (memory ±%s)", format.bytes(less),
                                                                 format.percent(accuracy.memory_fraction)))
  if not request.training.batch_ramp then
    for _, batch in ipairs { known.batch // 2, known.batch * 2 } do
      if batch >= 1 then add("training.global_batch_size", batch, "a batch of " .. format.integer(batch)) end
    end
  end
  return list
end

function sensitivity.of(plan, request, policy, known)
  local out = {}
  for i, case in ipairs(cases(plan, request, known)) do
    local outcome = advice.try(request, policy, case.changes)
    case.status = outcome and "planned" or "not_planned"
    if outcome then
      case.schedule, case.parallelism, case.step_seconds = outcome.schedule, outcome.parallelism, outcome.step_seconds
      case.same = outcome.schedule == plan.schedule and outcome.parallelism.virtual == plan.parallelism.virtual
                  and layout.difference(outcome.parallelism, plan.parallelism) == "same"
    end
    out[i] = case
  end
  return out
end

return sensitivity

-- SPDX-License-Identifier: Apache-2.0
-- ways.lua: where nothing fits: what of the spec could be otherwise so that it does, the cheapest by step time first. One change at a time;
-- where none does, some together.

local advice = require "pipeplan.plan.advice"
local lists = require "pipeplan.base.lists"
local vocabulary = require "pipeplan.vocabulary"

local ways = {}

local with = lists.with

-- Fields of `training` as changes of a spec; sharding under the name that the spec says it by.
local function training(request, fields)
  local changes = {}
  for name, value in pairs(fields) do
    if name == "sharding" and request.given["training.zero"] then name, value = "zero", vocabulary.zero_of[value] end
    changes["training." .. name] = value
  end
  return changes
end

-- Recompute by module, beside what is recomputed already, narrowest first; each includes those before it. What a model lacks is left out.
local function recomputes(request)
  local now, shape, list = request.training.recompute, request.model.shape, {}
  if now.full or request.free.recompute then return list end
  local modules, words, prefix = lists.sorted_keys(now), {}, next(now) and "recompute also " or "recompute "
  local function more(module, word)
    if now[module] then return end
    modules = table.move(modules, 1, #modules, 1, {})
    modules[#modules + 1], words[#words + 1] = module, word
    list[#list + 1] = { words = prefix .. table.concat(words, ", "), changes = training(request, { recompute = modules }) }
  end
  more("norm", "norm")
  more("activation", shape.gated == false and "gelu" or "swiglu")
  if shape.attention == "mla" then more("mla_up_projection", "mla_up_projection") end
  if shape.experts then more("moe", "moe") end
  list[#list + 1] = { words = "recompute full", changes = training(request, { recompute = "full" }) }
  return list
end

-- Fixed fields freed, one by one; and no pipeline where the depth is free.
local function layouts(request)
  local list, fixed = {}, request.parallelism
  for _, field in ipairs { "schedule", "virtual", "pipeline", "expert", "tensor", "layers_per_stage" } do
    if request.given["parallelism." .. field] then
      list[#list + 1] = { words = "another " .. field, changes = { ["parallelism." .. field] = advice.FREE } }
    end
  end
  if fixed.pipeline == nil and fixed.schedule == nil then
    list[#list + 1] = { words = "no pipeline", changes = { ["parallelism.pipeline"] = 1 } }
  end
  return list
end

-- Those changes without a pipeline.
local function alone(request, changes)
  local out = with(changes, { ["parallelism.pipeline"] = 1 })
  for _, field in ipairs { "schedule", "virtual" } do
    if request.given["parallelism." .. field] then out["parallelism." .. field] = advice.FREE end
  end
  return out
end

-- Fully sharded data parallelism, where what runs the plan has it.
local function sharded(request, fields)
  return alone(request, training(request, with({ sharding = "parameters" }, fields)))
end

-- What is kept, and where.
local function states(request)
  local now, fixed, list = request.training, request.parallelism, {}
  local function change(words, fields) list[#list + 1] = { words = words, changes = training(request, fields) } end
  if now.micro_batch_size > 1 and not request.free.micro_batch_size then change("micro_batch_size 1", { micro_batch_size = 1 }) end
  if now.zero == 0 then change("sharding optimizer", { sharding = "optimizer" }) end
  if not request.free.sharding and (now.zero or 1) < 3 and (fixed.pipeline or 1) == 1 then
    list[#list + 1] = { words = "no pipeline, sharding parameters", changes = sharded(request) }
  end
  if now.gradients == "fp32" then change("gradients bf16", { gradients = "bf16" }) end
  if now.moments == "fp32" then change("moments bf16", { moments = "bf16" }) end
  if now.optimizer_offload < 1 then change("optimizer_offload 1", { optimizer_offload = 1 }) end
  return list
end

-- Training of adapters: another result, and so told behind all that keeps it.
local function adapters(request)
  local list = {}
  if request.training.lora_rank then return list end
  local changes = training(request, { lora_rank = 16, recompute = "full" })
  list[1] = { words = "lora_rank 16, recompute full", changes = changes }
  if not request.parallelism.pipeline then
    list[2] = { words = "no pipeline, lora_rank 16, recompute full", changes = alone(request, changes) }
  end
  return list
end

-- The last resort that keeps all GPUs: everything recomputed, the optimizer in host memory, and bf16 gradients.
local function together(request)
  local now, list = request.training, {}
  local function change(words, fields)
    if request.free.recompute then words, fields.recompute = words:gsub("^recompute full, ", ""), nil end
    list[#list + 1] = { words = words, changes = training(request, fields) }
  end
  change("recompute full, optimizer_offload 1", { recompute = "full", optimizer_offload = 1 })
  if not request.free.sharding and (now.zero or 1) < 3 and (request.parallelism.pipeline or 1) == 1 then
    list[#list + 1] = { words = "no pipeline, sharding parameters, recompute full", changes = sharded(request, { recompute = "full" }) }
    list[#list + 1] = { words = "no pipeline, sharding parameters, recompute full, optimizer_offload 1",
                        changes = sharded(request, { recompute = "full", optimizer_offload = 1 }) }
  end
  if now.gradients == "fp32" then
    change("recompute full, optimizer_offload 1, gradients bf16", { recompute = "full", optimizer_offload = 1, gradients = "bf16" })
  end
  return list
end

local function try(request, options, policy, found)
  for _, option in ipairs(options) do
    local outcome, changes = advice.try(request, policy, option.changes)
    if outcome then found[#found + 1] = { words = option.words, changes = changes, outcome = outcome } end
  end
end

local function faster(a, b)
  local one, two = a.outcome, b.outcome
  if one.step_seconds ~= two.step_seconds then return one.step_seconds < two.step_seconds end
  if one.peak_bytes ~= two.peak_bytes then return one.peak_bytes < two.peak_bytes end
  return a.words < b.words
end

-- → { words, changes, outcome } each: fastest first, of equals the one with fewer bytes; adapters behind all others.
function ways.of(request, policy)
  local found = {}
  for _, options in ipairs { recomputes(request), layouts(request), states(request) } do try(request, options, policy, found) end
  if #found == 0 then try(request, together(request), policy, found) end
  table.sort(found, faster)
  local other = {}
  try(request, adapters(request), policy, other)
  table.sort(other, faster)
  found[#found + 1] = other[1]
  return found
end

-- The same as the plan's `ways_to_fit`.
function ways.shown(found)
  local list = {}
  for i, way in ipairs(found) do
    local outcome = way.outcome
    list[i] = { change = way.words, schedule = outcome.schedule, parallelism = outcome.parallelism, microbatches = outcome.microbatches,
                peak_bytes = outcome.peak_bytes, fit = outcome.fit, step_seconds = outcome.step_seconds }
  end
  return list
end

return ways

-- ways.lua: where nothing fits: what of the spec could be otherwise so that it does, the cheapest by step time first. One change at a time;
-- where none does, some together.

local candidates = require "pipeplan.plan.candidates"
local lists = require "pipeplan.base.lists"
local measure = require "pipeplan.plan.measure"
local what_if = require "pipeplan.plan.what_if"

local ways = {}

local with = lists.with

-- The request with something else in its training; what is changed is no longer free.
local function training(request, changes)
  local free = with(request.free)
  for field in pairs(changes) do free[field == "zero" and "sharding" or field] = nil end
  return with(request, { training = with(request.training, changes), free = free })
end

-- Recompute by module, beside what is recomputed already, narrowest first; each includes those before it. What a model lacks is left out.
local function recomputes(request)
  local now, shape, list = request.training.recompute, request.model.shape, {}
  if now.full or request.free.recompute then return list end
  local modules, words, prefix = with(now, {}), {}, next(now) and "recompute also " or "recompute "
  local function more(module, word)
    if now[module] then return end
    modules = with(modules, { [module] = true })
    words[#words + 1] = word
    list[#list + 1] = { words = prefix .. table.concat(words, ", "), request = training(request, { recompute = modules }) }
  end
  more("norm", "norm")
  more("activation", shape.gated == false and "gelu" or "swiglu")
  if shape.attention == "mla" then more("mla_up_projection", "mla_up_projection") end
  if shape.experts then more("moe", "moe") end
  list[#list + 1] = { words = "recompute full", request = training(request, { recompute = { full = true } }) }
  return list
end

-- Fixed fields freed, one by one; and no pipeline where the depth is free.
local function layouts(request)
  local list, fixed = {}, request.parallelism
  for _, field in ipairs { "schedule", "virtual", "pipeline", "expert", "tensor", "layers_per_stage" } do
    if fixed[field] ~= nil then
      list[#list + 1] = { words = "another " .. field, request = with(request, { parallelism = candidates.without(fixed, field) }) }
    end
  end
  if fixed.pipeline == nil and fixed.schedule == nil then
    list[#list + 1] = { words = "no pipeline", request = with(request, { parallelism = with(fixed, { pipeline = 1 }) }) }
  end
  return list
end

-- Fully sharded data parallelism, where what runs the plan has it.
local function sharded(request, changes)
  local fixed = candidates.without(candidates.without(request.parallelism, "schedule"), "virtual")
  return with(training(request, with({ zero = 3 }, changes)), { parallelism = with(fixed, { pipeline = 1 }) })
end

-- What is kept, and where.
local function states(request)
  local now, fixed, list = request.training, request.parallelism, {}
  local function change(words, changes) list[#list + 1] = { words = words, request = training(request, changes) } end
  if now.micro_batch_size > 1 then change("micro_batch_size 1", { micro_batch_size = 1 }) end
  if now.zero == 0 then change("sharding optimizer", { zero = 1 }) end
  if not request.free.sharding and (now.zero or 1) < 3 and (fixed.pipeline or 1) == 1 then
    list[#list + 1] = { words = "no pipeline, sharding parameters", request = sharded(request) }
  end
  if now.gradients == "fp32" then change("gradients bf16", { gradients = "bf16" }) end
  if now.moments == "fp32" then change("moments bf16", { moments = "bf16" }) end
  if now.optimizer_offload < 1 then change("optimizer_offload 1", { optimizer_offload = 1 }) end
  return list
end

-- Training of adapters: another result, and so told behind all that keeps it.
local function adapters(request)
  local fixed, list = request.parallelism, {}
  if request.training.lora_rank then return list end
  local changed = training(request, { lora_rank = 16, recompute = { full = true } })
  list[1] = { words = "lora_rank 16, recompute full", request = changed }
  if not fixed.pipeline then
    list[2] = { words = "no pipeline, lora_rank 16, recompute full",
                request = with(changed, { parallelism = with(fixed, { pipeline = 1 }) }) }
  end
  return list
end

-- The last resort that keeps all GPUs: everything recomputed, the optimizer in host memory, and bf16 gradients.
local function together(request)
  local now, list = request.training, {}
  local function change(words, changes)
    if request.free.recompute then words, changes.recompute = words:gsub("^recompute full, ", ""), nil end
    list[#list + 1] = { words = words, request = training(request, changes) }
  end
  change("recompute full, optimizer_offload 1", { recompute = { full = true }, optimizer_offload = 1 })
  if not request.free.sharding and (now.zero or 1) < 3 and (request.parallelism.pipeline or 1) == 1 then
    local full = { recompute = { full = true } }
    list[#list + 1] = { words = "no pipeline, sharding parameters, recompute full", request = sharded(request, full) }
    list[#list + 1] = { words = "no pipeline, sharding parameters, recompute full, optimizer_offload 1",
                        request = sharded(request, with(full, { optimizer_offload = 1 })) }
  end
  if now.gradients == "fp32" then
    change("recompute full, optimizer_offload 1, gradients bf16",
           { recompute = { full = true }, optimizer_offload = 1, gradients = "bf16" })
  end
  return list
end

local function try(options, policy, found)
  for _, option in ipairs(options) do
    local evaluation, known = what_if.layout(option.request, policy)
    if evaluation then
      found[#found + 1] = {
        change = option.words, schedule = evaluation.schedule, parallelism = measure.parallelism(evaluation),
        microbatches = evaluation.microbatches, peak_bytes = evaluation.peak_bytes, fit = measure.fit(evaluation.peak_bytes, known),
        step_seconds = evaluation.step_seconds,
      }
    end
  end
end

local function faster(a, b)
  if a.step_seconds ~= b.step_seconds then return a.step_seconds < b.step_seconds end
  if a.peak_bytes ~= b.peak_bytes then return a.peak_bytes < b.peak_bytes end
  return a.change < b.change
end

-- → the plan's `ways_to_fit`: fastest first, of equals the one with fewer bytes; adapters behind all others.
function ways.of(request, policy)
  local found = {}
  for _, options in ipairs { recomputes(request), layouts(request), states(request) } do try(options, policy, found) end
  if #found == 0 then try(together(request), policy, found) end
  table.sort(found, faster)
  local other = {}
  try(adapters(request), policy, other)
  table.sort(other, faster)
  found[#found + 1] = other[1]
  return found
end

return ways

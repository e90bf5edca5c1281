-- SPDX-License-Identifier: Apache-2.0
--[[
choices.lua: what a plan may choose of the recipe where the spec leaves it out: microbatch size, recompute, sharding, GPUs left idle. What
is offered is the policy's (micro_batch_choices, recompute_choices, sharding_choices, idle_gpus); what a framework cannot run is left out.

A choice: { request (with the choice made, nothing free), training (what pp_training takes), gpus, alone (it runs without a pipeline only),
            values = { micro_batch_size, recompute, sharding, gpus_used } }
]]

local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local frameworks = require "pipeplan.catalog.frameworks"
local lists = require "pipeplan.base.lists"
local recipe = require "pipeplan.input.recipe"
local vocabulary = require "pipeplan.vocabulary"

local choices = {}

-- What an engine's recipe shards.
local function sharding_of(training)
  return training.shard_parameters and "parameters" or training.shard_gradients and "gradients"
         or training.shard_optimizer and "optimizer" or "none"
end

-- What rules call the modules that are computed again: as a spec says it, where it has a word for them.
function choices.recompute_word(modules)
  if not next(modules) then return "none" elseif modules.full then return "full" end
  return modules.core_attention and next(modules, next(modules)) == nil and "selective" or "modules"
end

-- --------------------------------------------------------------------------------------------------------------------- what is offered

-- The modules that a word stands for; nil where the framework has no such set. "modules": what is cheap to compute again for the bytes that
-- it takes (https://arxiv.org/abs/2412.19437, 3.2.3, norms, SwiGLU and MLA's up-projections).
local function modules_of(request, word)
  if word == "none" then return {} elseif word == "full" then return { full = true } end
  -- fused attention keeps no scores that could be computed again: selective recompute saves nothing
  if word == "selective" then return (request.training.unfused or {}).attention and { core_attention = true } or nil end
  local shape, entry = request.model.shape, request.framework and frameworks.find(request.framework)
  local known = entry and ((entry.recompute or {}).modules or {})
  local modules = { norm = true, activation = true, mla_up_projection = shape.attention == "mla" or nil }
  for _, name in ipairs(entry and lists.sorted_keys(modules) or {}) do
    local law = known[name]
    if not law or law.experts_only and not shape.experts then modules[name] = nil end
  end
  return next(modules) and modules or nil
end

local function recomputes(request, policy)
  if not request.free.recompute then return { request.training.recompute } end
  local list = {}
  for _, word in ipairs(policy.parameters.recompute_choices.value) do list[#list + 1] = modules_of(request, word) end
  return list
end

local function micro_batches(request, policy)
  if not request.free.micro_batch_size then return { request.training.micro_batch_size } end
  return policy.parameters.micro_batch_choices.value
end

-- Stages: { zero, alone } each. Where no framework is named, a pipeline shards no gradients and no parameters.
local function shardings(request, policy)
  local training = request.training
  if not request.free.sharding then return { { zero = training.zero } } end
  local entry = request.framework and frameworks.find(request.framework)
  local law, list = entry and entry.sharding or { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1 } }, {}
  for _, name in ipairs(policy.parameters.sharding_choices.value) do
    local zero = vocabulary.zero_of[name]
    local beside = lists.contains(law.with_pipeline, zero)
    if beside or lists.contains(law.alone or {}, zero) then list[#list + 1] = { zero = zero, alone = not beside or nil } end
  end
  return list
end

-- Where the depth is fixed, the largest number of GPUs, of whole nodes, that the batch divides among: 96 of 128 for a batch of 96 at P 2;
-- nil where too many would stay idle. A depth that is open takes what data parallelism cannot.
local function count_for_batch(request, step, least)
  local fixed, batch, all = request.parallelism or {}, request.training.smallest_batch_size, request.cluster.gpus
  if not fixed.pipeline then return nil end
  local unit = (fixed.tensor or 1) * (fixed.context or 1) * fixed.pipeline
  for count = batch and all // step * step or 0, math.ceil(least), -step do
    if count % unit == 0 and batch % (count // unit) == 0 then return count end
  end
end

-- Numbers of GPUs, most first: all; and of the multiples of 1, 2, 4 … whole nodes below, as long as no more than a share of all stays idle,
-- the two largest and the smallest; and the one that the batch divides among.
local function gpu_counts(request, policy)
  local cluster, fixed = request.cluster, request.parallelism or {}
  local list, all = { cluster.gpus }, cluster.gpus
  if not request.free.gpus_used or fixed.data and fixed.tensor and fixed.pipeline then return list end
  local least = all * (1 - policy.parameters.idle_gpus.value)
  local step = all >= cluster.gpus_per_node and cluster.gpus_per_node or 1
  while step <= all do
    local count = all // step * step
    if count < least then break end
    if count < list[#list] then list[#list + 1] = count end
    step = step * 2
  end
  list = #list > 4 and { list[1], list[2], list[3], list[#list] } or list
  local even = count_for_batch(request, all >= cluster.gpus_per_node and cluster.gpus_per_node or 1, least)
  if even and not lists.contains(list, even) then
    list[#list + 1] = even
    table.sort(list, function(a, b) return a > b end)
  end
  return list
end

-- ------------------------------------------------------------------------------------------------------------------------------ choices

local function choice_of(request, made, gpus, alone)
  local chosen = lists.with(request, { training = lists.with(request.training, made), free = {} })
  local training = recipe.training(chosen)
  return {
    request = chosen, training = training, gpus = gpus, alone = alone,
    values = { micro_batch_size = made.micro_batch_size, recompute = choices.recompute_word(made.recompute),
               sharding = sharding_of(training), gpus_used = gpus },
  }
end

local MOST = 256   -- recipes of one search (engine/lua/search_object.h)

local function check_count(list, policy)
  if #list <= MOST then return end
  local long = policy.parameters.micro_batch_choices
  failure.unloadable("%s: micro_batch_choices, recompute_choices and sharding_choices, with the numbers of GPUs that idle_gpus allows, "
                     .. "make %d recipes: expected at most %d in all; list fewer", format.place(long), #list, MOST)
end

-- All of a request, in the order in which equals are preferred: all GPUs, as the policy lists the rest.
function choices.of(request, policy)
  local list = {}
  for _, gpus in ipairs(gpu_counts(request, policy)) do
    for _, sharding in ipairs(shardings(request, policy)) do
      for _, modules in ipairs(recomputes(request, policy)) do
        for _, micro in ipairs(micro_batches(request, policy)) do
          local made = { micro_batch_size = micro, recompute = modules, zero = sharding.zero }
          list[#list + 1] = choice_of(request, made, gpus, sharding.alone)
        end
      end
    end
  end
  check_count(list, policy)
  return list
end

-- Those of a list for which `wanted` holds, a function of the values.
function choices.where(list, wanted)
  local out = {}
  for _, choice in ipairs(list) do
    if wanted(choice.values) then out[#out + 1] = choice end
  end
  return out
end

-- The same choices with something else in their recipes (fields of request.training), those that become alike once.
function choices.with(list, changes)
  local out, seen = {}, {}
  for _, choice in ipairs(list) do
    local training = lists.with(choice.request.training, changes)
    local other = choice_of(lists.with(choice.request, { training = training }),
                            { micro_batch_size = training.micro_batch_size, recompute = training.recompute, zero = training.zero },
                            choice.gpus, choice.alone)
    local v = other.values
    local key = string.format("%d %s %s %d", v.micro_batch_size, v.recompute, v.sharding, v.gpus_used)
    if not seen[key] then
      seen[key] = true
      out[#out + 1] = other
    end
  end
  return out
end

local rungs = { none = 0, selective = 1, modules = 2, full = 3 }

-- The number of the one that takes least memory with a pipeline: most recomputed, the smallest microbatch, most sharded, of all GPUs.
function choices.saving(list)
  local best, key
  for i, choice in ipairs(list) do
    local v = choice.values
    local own = { choice.alone and 1 or 0, -v.gpus_used, -rungs[v.recompute], v.micro_batch_size, -vocabulary.zero_of[v.sharding] }
    local better = not best
    for k = 1, best and #own or 0 do
      if own[k] ~= key[k] then
        better = own[k] < key[k]
        break
      end
    end
    if better then best, key = i, own end
  end
  return best
end

-- A value of each choice, for candidates:set.
function choices.column(list, name)
  local out = {}
  for i, choice in ipairs(list) do out[i] = choice.values[name] end
  return out
end

return choices

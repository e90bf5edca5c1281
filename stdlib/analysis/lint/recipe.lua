-- SPDX-License-Identifier: Apache-2.0
-- recipe.lua: what of training no field of a plan has and no key that it tells, held against the plan: what is fused, what gradients are
-- added up in, and what the launch has that no spec says.

local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local recipe = {}

-- Kernels of training.unfused by the key that says whether they are fused.
local fused_by = { ["--attention-backend"] = { "attention" }, ["optimizer.implementation"] = { "optimizer" },
                   ["compile.enable"] = { "activation", "attention", "experts", "norm", "rope" } }

-- What the plan's spec says of a field of training, or what was assumed for it; nil: nobody knows.
local function said_of(plan, field)
  for _, list in ipairs { json.at(plan, "spec.fields") or {}, plan.assumptions or {} } do
    for _, each in ipairs(json.is_array(list) and list or {}) do
      if type(each) == "table" and each.field == "training." .. field and each.value ~= json.null then return each.value end
    end
  end
end

local function names_of(value)
  local names = {}
  for _, part in ipairs(type(value) == "table" and value or { value }) do
    for name in tostring(part):gmatch "[%a_]+" do names[#names + 1] = name end
  end
  return names
end

-- Of names those in a list.
local function those_in(list, names)
  local out = {}
  for _, name in ipairs(names) do
    if lists.contains(list, name) then out[#out + 1] = name end
  end
  return out
end

local function compare_kernels(result, plan, unfused, note)
  local said = said_of(plan, "unfused")
  if said == nil then return end
  local planned = names_of(said)
  for _, key in ipairs(lists.sorted_keys(fused_by)) do
    local kernels, found = fused_by[key], result.get(key)
    local is_local = key == "--attention-backend" and result.get("--transformer-impl").value == "local"
    if found.key and (not found.unknown or is_local) then
      local wanted, own = those_in(planned, kernels), those_in(unfused or {}, kernels)
      if (#wanted > 0) ~= (#own > 0) then note("training.unfused", wanted, own, is_local and "--transformer-impl" or key) end
    end
  end
end

-- Keys of gradients' type that a plan tells.
local told = { "--main-grads-dtype", "--megatron-fsdp-main-grads-dtype", "data_types.grad_accum_dtype" }

local function compare_gradients(result, plan, dtype, noted, note)
  local said, key = said_of(plan, "gradients"), nil
  for _, name in ipairs { "--grad-reduce-in-bf16", "--accumulate-allreduce-grads-in-fp32", "data_types.grad_accum_dtype" } do
    if not key and result.get(name).given then key = name end
  end
  for _, name in ipairs(told) do
    if noted[name] then return end
  end
  if type(said) == "string" and dtype and said ~= dtype then note("training.gradients", said, dtype, key) end
end

-- Of torchtitan one key says what they are kept in and which kernel updates them.
local function compare_moments(result, plan, dtype, note)
  local said, key = said_of(plan, "moments"), "optimizer.implementation"
  if type(said) == "string" and dtype and said ~= dtype and result.get(key).key then note("training.moments", said, dtype, key) end
end

-- A plan whose layers are of several kinds, or attend otherwise, has a model that somebody said beside the launch.
local function has_other_model(plan)
  local attention = json.at(plan, "model.shape.attention")
  return type(json.at(plan, "model.shape.kinds")) == "table" or type(attention) == "string" and attention ~= "mla" and attention ~= "gqa"
end

local function message_of(each)
  if not each.has then return each.message .. ": the plan has none of it" end
  local how = each.unknown and "whether the launch has %s is not known, and the plan has none" or "the launch has %s, and the plan has none"
  return string.format(how, each.has)
end

-- spec, unsaid: of reads.spec. note(field, wanted, found, key) takes each difference, add(field, message, setting) what the plan has none
-- of; noted: keys and settings of which something is said already.
function recipe.compare(result, plan, spec, unsaid, noted, note, add)
  local gradients, other = spec.training.gradients, has_other_model(plan)
  for _, each in ipairs(unsaid) do
    if each.field == "training.gradients" then gradients = each.found end
  end
  compare_kernels(result, plan, spec.training.unfused, note)
  compare_gradients(result, plan, gradients, noted, note)
  compare_moments(result, plan, spec.training.moments, note)
  for _, each in ipairs(unsaid) do
    local compared = each.field == "training.recompute" or noted[each.setting] or other and each.field == "model"
    if each.message and not compared then add(each.base or each.field, message_of(each), each.setting) end
  end
end

return recipe

-- SPDX-License-Identifier: Apache-2.0
-- settings.lua: what a plan sets of the framework that runs it: the keys of its table (catalog/frameworks) that a launch must say, with
-- their values, in the table's order.
--
-- settings.of(plan, request, entry) → { { key, base, field, value }, … }: value true for a flag, else a string, a number, or a list of
-- strings; or nil and what of the plan the framework has no key for.

local format = require "pipeplan.base.format"
local lists = require "pipeplan.base.lists"
local vocabulary = require "pipeplan.vocabulary"

local settings = {}

local function field_of(key, f)
  local group, name = key.field:match "^(%w+)%.(.+)$"
  if group == "parallelism" then return f.plan.parallelism[name] end
  if group == "plan" then return f.plan[name] end
  if group == "model" then return f.shape[name] end
  if f.plan.training[name] ~= nil then return f.plan.training[name] end
  return f.plan[name] or f.training[name]
end

-- What holds when nobody says.
local function default_of(key, f)
  if not key.default_of then return key.default end
  return field_of({ field = key.default_of }, f)
end

local function value_of(key, f)
  local own = f.entry.writes[key.base or key.key]
  if own then return own(f) or nil end
  if key.value then return key.value(f.training, f.request.given or {}) end
  if not key.field then return nil end
  local value = field_of(key, f)
  if key.type == "flag" then return value ~= nil and value == key.present or nil end
  if value == 0 and key.default == nil then return nil end
  return value
end

-- What of the plan no key says, in words; nil: nothing.
local function unsaid(f)
  for _, name in ipairs(f.plan.recompute) do
    local law = f.entry.recompute.modules[name]
    if name ~= "full" and not (law and ((f.shape.experts or 0) > 0 or not law.experts_only)) then
      return string.format("recompute of %s%s", name, law and " in a model without experts" or "")
    end
  end
  local by_base = {}
  for _, key in ipairs(f.entry.keys) do by_base[key.base or key.key] = true end
  local shape = f.shape
  if (shape.norms_per_layer or 2) ~= 2 then return format.plural(shape.norms_per_layer, "norm") .. " a layer with weights" end
  if shape.qk_norm == "full" then return "norms of queries and keys over all heads" end
  if (shape.attention_sinks or 0) > 0 then return "attention sinks" end
  -- one key gives every linear layer a bias, experts too
  local all, some = shape.mlp_bias and shape.qkv_bias and shape.output_bias, shape.mlp_bias or shape.output_bias or shape.expert_bias
  if shape.attention == "mla" then all = shape.mlp_bias end
  if some and not (all and ((shape.experts or 0) == 0 or shape.expert_bias)) then
    return "biases of some linear layers and not of others"
  end
  if shape.head_bias then return "a bias of the output weights" end
  if shape.embedding_norm then return "a norm behind the embedding" end
  if shape.router_bias then return "a bias of the router" end
  if shape.shared_gate then return "the gate of a shared expert" end
  if f.plan.training.batch_ramp and not by_base["--step-batch-size-schedule"] then return "a batch that grows in steps" end
  if f.entry.schedules[f.plan.schedule] == nil and f.plan.schedule ~= "none" then return "its schedule" end
end

function settings.of(plan, request, entry)
  local f = { plan = plan, request = request, entry = entry, shape = request.model.shape,
              training = lists.with(request.training, { zero = vocabulary.zero_of[plan.sharding] }) }
  local problem = unsaid(f)
  if problem then return nil, problem end
  local list, said, by_name = {}, {}, {}
  local function say(key, value)
    if said[key] then return end
    said[key] = true
    list[#list + 1] = { key = key.key, base = key.base or key.key, field = key.field, value = value }
  end
  for _, key in ipairs(entry.keys) do by_name[key.key] = key end
  for _, key in ipairs(entry.keys) do
    local value = key.written ~= "never" and value_of(key, f)
    if value and (key.written == "always" or key.present ~= nil or value ~= default_of(key, f)) then
      if key.wants then say(by_name[key.wants], true) end
      say(key, value)
    end
  end
  return list
end

return settings

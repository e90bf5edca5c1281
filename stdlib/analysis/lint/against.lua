-- SPDX-License-Identifier: Apache-2.0
-- against.lua: a launch held against the plan that it should run (what `pipeplan plan --format json` prints): a finding for each field in
-- which they differ, at the line that says otherwise.

local accelerators = require "pipeplan.catalog.accelerators"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local frameworks = require "pipeplan.catalog.frameworks"
local json = require "pipeplan.base.json"
local reads = require "pipeplan.analysis.lint.reads"
local recipe = require "pipeplan.analysis.lint.recipe"
local shapes = require "pipeplan.analysis.lint.shapes"
local vocabulary = require "pipeplan.vocabulary"
local volume = require "pipeplan.catalog.frameworks.volume"

local against = {}

-- Field of the plan, field of what was read, Megatron's key that says it. is: what it has to be (kinds); maybe: or null, or not there.
local compared = {
  { "gpus_used", "gpus", is = "whole" },
  { "parallelism.tensor", "parallelism.tensor", "--tensor-model-parallel-size", is = "whole" },
  { "parallelism.context", "parallelism.context", "--context-parallel-size", is = "whole" },
  { "parallelism.pipeline", "parallelism.pipeline", "--pipeline-model-parallel-size", is = "whole" },
  { "parallelism.expert", "parallelism.expert", "--expert-model-parallel-size", is = "whole", maybe = true },
  { "parallelism.expert_tensor", "parallelism.expert_tensor", "--expert-tensor-parallel-size", is = "whole", maybe = true },
  { "parallelism.data", "parallelism.data", is = "whole" },
  { "schedule", "schedule", "--num-virtual-stages-per-pipeline-rank", is = "text" },
  { "parallelism.virtual", "parallelism.virtual", "--num-virtual-stages-per-pipeline-rank", is = "whole", maybe = true },
  { "layers_per_stage", "layers_per_stage", "--pipeline-model-parallel-layout", is = "layers" },
  { "microbatch_group_size", "group", "--microbatch-group-size-per-virtual-pipeline-stage", is = "whole", maybe = true },
  { "micro_batch_size", "training.micro_batch_size", "--micro-batch-size", is = "whole" },
  { "global_batch_size", "training.global_batch_size", "--global-batch-size", is = "whole" },
  { "training.batch_ramp", "ramp", "--step-batch-size-schedule", is = "ramp", maybe = true },
  { "microbatches", "microbatches", is = "whole" },
  { "training.sequence_length", "training.sequence_length", "--seq-length", is = "whole" },
  { "training.tokens", "tokens", "--train-samples", within = 0.01, is = "number" },
  { "training.precision", "training.precision", "--bf16", is = "text" },
  { "recompute", "modules", "--recompute-granularity", is = "names" },
  { "sharding", "sharding", "--use-distributed-optimizer", is = "text" },
  { "model.layers", "model.layers", "--num-layers", is = "whole" },
  -- a vocabulary is padded, and a shape that was derived is near its counts
  { "model.total_parameters", "parameters", "--hidden-size", within = 0.03, is = "number" },
  { "model.active_parameters", "active", "--moe-router-topk", within = 0.03, is = "number" },
}

local function shown(value)
  if type(value) == "table" then return "[" .. table.concat(value, ", ") .. "]" end
  return math.type(value) == "float" and string.format(value % 1 == 0 and "%.0f" or "%g", value) or tostring(value)
end

local function same(a, b, within)
  if type(a) == "table" and type(b) == "table" then return table.concat(a, " ") == table.concat(b, " ") end
  if within and math.type(a) and math.type(b) then return math.abs(a - b) <= within * math.max(math.abs(a), math.abs(b)) end
  return a == b
end

local function is_whole(value) return math.type(value) == "integer" and value >= 1 end

local function list_of(is_item)
  return function(value)
    if not json.is_array(value) then return false end
    for _, item in ipairs(value) do
      if not is_item(item) then return false end
    end
    return true
  end
end

-- What a field of a plan is, in words, and is a value that?
local kinds = {
  whole = { "an integer ≥ 1", is_whole },
  number = { "a number > 0", function(value) return math.type(value) ~= nil and value > 0 and value < math.huge end },
  share = { "a share of at least 0, under 1", function(value) return math.type(value) ~= nil and value >= 0 and value < 1 end },
  text = { "a name", function(value) return type(value) == "string" end },
  layers = { "a list of whole numbers", list_of(function(item) return math.type(item) == "integer" and item >= 0 end) },
  names = { "a list of names", list_of(function(item) return type(item) == "string" end) },
  ramp = { "a list of objects with first_token and global_batch_size", list_of(function(item)
    return type(item) == "table" and type(item.first_token) == "number" and type(item.global_batch_size) == "number"
           and (item.microbatches == nil or item.microbatches == json.null or math.type(item.microbatches) == "integer")
  end) },
  kernel = { "an object with a name, or null for one", function(value)
    return type(value) == "table" and (value.name == json.null or type(value.name) == "string")
  end },
}

local function check_field(plan, path, field)
  local value = json.at(plan, field[1])
  if value == json.null then value = nil end
  if value == nil and field.maybe then return end
  local kind = kinds[field.is]
  if value == nil or not kind[2](value) then
    failure.usage("%s: %s is %s: expected %s", path, field[1], value == nil and "nothing" or fields.show(value), kind[1])
  end
end

-- The plan of a file, checked to be one.
function against.read(path)
  local plan = json.read(path)
  require("pipeplan.base.documents").check(plan, "plan", path)
  if type(plan) ~= "table" or json.is_array(plan) or type(plan.status) ~= "string" then
    failure.usage("%s: this is no plan: expected what `pipeplan plan --format json` prints", path)
  end
  if plan.status ~= "planned" then failure.usage("%s: status is %s: there is no plan to hold a launch against", path, plan.status) end
  for _, name in ipairs { "parallelism", "model", "training", "cluster" } do
    if type(plan[name]) ~= "table" then failure.usage("%s: %s: expected the object of a plan", path, name) end
  end
  for _, field in ipairs(compared) do check_field(plan, path, field) end
  check_field(plan, path, { "alltoall_kernel", is = "kernel", maybe = true })
  check_field(plan, path, { "training.padding", is = "share", maybe = true })
  return plan
end

-- ------------------------------------------------------------------------------------------------------------------- what is compared

local function value_at(object, path)
  local value = json.at(object, path)
  if value ~= json.null then return value end
end

-- "0:3072 117250000000:6144" of a plan's ramp, and of Megatron's own words for one.
local function ramp_of_plan(plan, ramp)
  local list = {}
  for i, step in ipairs(type(ramp) == "table" and ramp or {}) do
    list[i] = string.format("%.0f:%.0f", volume.tokens(plan, step.first_token), step.global_batch_size)
  end
  return list
end

local function ramp_of_launch(ramp)
  local list = {}
  for i, step in ipairs(ramp or {}) do list[i] = string.format("%d:%d", step[1], step[2]) end
  return list
end

local function sorted(list)
  local out = table.move(list, 1, #list, 1, {})
  table.sort(out)
  return out
end

-- What the launch has under names of `compared` that `reads` has not.
local function derived(result, read, spec)
  local out = {}
  if result.record then out.group = result.trace.run(function() return result.record.microbatch_group end) end
  out.group = out.group or read.parallelism.pipeline
  out.ramp = result.record and ramp_of_launch(result.trace.run(function() return result.record.ramp end))
  out.sharding = read.training.zero and vocabulary.shardings[read.training.zero + 1]
  out.tokens = spec.training.tokens
  local recompute, other = reads.recompute(result, true)
  if read.training.recompute == "none" or recompute == "none" then out.modules = {}
  elseif recompute == "full" then out.modules = { "full" }
  elseif other and other.shown then out.modules = { other.shown }
  elseif type(recompute) == "table" then out.modules = sorted(recompute) end
  if spec.model then
    local good, counted = pcall(engine.model.parameters, spec.model)
    out.parameters, out.active = good and counted.total or nil, good and counted.active or nil
  end
  return out
end

-- Fields of the plan that say nothing of this launch, or not what their name says.
local function wanted_of(plan, field)
  local value = value_at(plan, field)
  local interleaved = type(plan.schedule) == "string" and plan.schedule:find "^interleaved"
  if field:find "%.expert" and plan.model.architecture ~= "moe" then return nil end
  if field == "layers_per_stage" and plan.schedule == "none" then return nil end
  if field == "parallelism.virtual" and not interleaved then return nil end
  if field == "microbatch_group_size" then return interleaved and (value or plan.parallelism.pipeline) or nil end
  if field == "gpus_used" then return value or value_at(plan, "cluster.gpus") end
  if field == "recompute" then return sorted(value or {}) end
  if field == "training.batch_ramp" then return ramp_of_plan(plan, value) end
  if field == "training.tokens" then return volume.tokens(plan, value) end
  local first = value_at(plan, "training.batch_ramp")
  if type(first) == "table" and first[1] and (field == "global_batch_size" or field == "microbatches") then return first[1][field] end
  return value
end

-- What the plan has its framework told beside the layout, by Megatron's keys: "--exp-avg-dtype bf16" → "bf16", a flag alone → true.
local function told_of(plan)
  local entry, out = frameworks.find(plan.framework), {}
  for _, text in ipairs(type(plan.framework_flags) == "table" and plan.framework_flags or {}) do
    local name, value = tostring(text):match "^(%S+)%s+(.+)$"
    for _, key in ipairs(entry.keys) do
      if key.key == (name or text) then out[key.base or key.key] = value or true end
    end
  end
  return out, entry
end

-- Keys of which a plan says every one that is not at its default, and others whose value `compared` has.
local elsewhere = { ["--expert-tensor-parallel-size"] = true, ["--use-distributed-optimizer"] = true, ["--use-megatron-fsdp"] = true,
                    ["--data-parallel-sharding-strategy"] = true, ["--overlap-moe-expert-parallel-comm"] = true }

-- Keys that follow from a plan and are no field of it: what runs its all-to-all, its experts and its fp8, and what pairs of passes hide.
local written = { "--moe-token-dispatcher-type", "--moe-flex-dispatcher-backend", "--moe-enable-deepep", "--moe-grouped-gemm",
                  "--fp8-recipe", "moe_fb_overlap" }

-- The key by which an interleaved launch has messages between stages beside no passes; nil: they overlap. Of Megatron-Bridge a section
-- comm_overlap decides, with interleaving for them where it does not say (training/comm_overlap.py:450-462).
local function key_of_messages(result)
  local off, own, section = "--no-overlap-p2p-communication", "model.overlap_p2p_comm", "comm_overlap.overlap_p2p_comm"
  if result.get(off).value == true then return off end
  if result.get(section).given then return result.get(section).value == false and section or nil end
  for name in pairs(result.launch.spelled) do
    if name:find "^comm_overlap%." then return nil end
  end
  return result.get(own).value == false and own or nil
end

local function compare_messages(result, plan, note)
  local key = tostring(plan.schedule):find "^interleaved" and key_of_messages(result)
  if key then note("overlap of messages", true, false, key) end
end

-- What no field of a shape says: that queries and keys are rotated, which is written of a model without learned positions, and of
-- Megatron-Bridge the function of an MLP with a gate.
local function compare_model(result, shape, note)
  local kind, func = result.get "--position-embedding-type", result.get "model.activation_func"
  local rotary = result.get "--use-rotary-position-embeddings"
  if shape.learned_positions == 0 and not kind.unknown and (kind.value == "none" or kind.value == "relative") and rotary.value ~= true then
    note("--position-embedding-type", "rope", kind.value, "--position-embedding-type")
  end
  local own = func.given or result.launch.program == "run_recipe.py"   -- YAML may say it under another name
  local text = func.key and not func.unknown and own and tostring(func.value or "gelu")
  local named = text and (text:match "functional%.([%a_]+)" or text:match "([%a_]+)$")
  if named and shape.gated ~= false and named ~= "silu" then note("model.activation_func", "silu", named, "model.activation_func") end
end

local function compare_written(result, plan, entry, note)
  local gpu = accelerators.find(tostring(value_at(plan, "cluster.accelerator")))
  local facts = { plan = plan, entry = entry, shape = { experts = plan.model.architecture == "moe" and 1 or 0 },
                  request = { cluster = { accelerator_family = gpu and gpu.family } } }
  for _, name in ipairs(written) do
    local own, found = entry.writes and entry.writes[name], result.get(name)
    local alone = name:find "^%-%-moe%-[tf]" and (value_at(plan, "parallelism.expert") or 1) <= 1   -- nobody to send to
    local unsaid = name == "--fp8-recipe" and not gpu
    if own and found.key and not found.unknown and not alone and not unsaid then
      local wanted = own(facts)
      if wanted == nil or wanted == false then wanted = found.key.default end
      if wanted ~= found.value then note(name, wanted, found.value, name) end
    end
  end
end

-- Are gradients as short as the plan has them, by being reduced so and not by what the optimizer keeps?
local function reduces_alike(result, told, training)
  return result.get("--grad-reduce-in-bf16").value == true and told["--main-grads-dtype"] == "bf16" and training.gradients == "bf16"
end

local function compare_flags(result, plan, training, note)
  if type(plan.framework) ~= "string" or not frameworks.find(plan.framework) then return end
  local told, entry = told_of(plan)
  if reduces_alike(result, told, training) then
    local aware = told["--exp-avg-dtype"] or told["--exp-avg-sq-dtype"] or told["--optimizer-cpu-offload"]
    told["--main-grads-dtype"], told["--use-precision-aware-optimizer"] = nil, aware and told["--use-precision-aware-optimizer"]
  end
  local bases = {}
  for _, key in ipairs(entry.keys) do bases[key.key] = key.base or key.key end
  local function is_off(name)   -- a key that others want beside them; a preset of Primus has a share of offload, and none that is offloaded
    local found = name and result.get(bases[name])
    return found and not found.unknown and not found.value
  end
  compare_written(result, plan, entry, note)
  compare_messages(result, plan, note)
  for _, key in ipairs(entry.keys) do
    local base = key.base or key.key
    local found = result.get(base)
    local hides = base == "--overlap-moe-expert-parallel-comm" and plan.parallelism.pipeline == 1   -- else its schedule says so
    local alone = key.field == "training.replicas" and plan.sharding == "none"   -- every GPU is a replica then
    if (key.silent or told[base]) and (hides or not elsewhere[base]) and not alone and found.key then
      local wanted = told[base]
      if wanted == true then wanted = key.present
      elseif wanted == nil then wanted = key.present ~= nil and (key.default or false) or key.default end
      local value = found.value
      if value == nil or is_off(key.wants) then value = found.key.default end
      if found.unknown then value = nil end
      if base == "--sequence-parallel" and wanted == false and plan.parallelism.tensor == 1 then value = false end   -- is ignored there
      local alike = tostring(value) == tostring(wanted) or key.same and key.same(value, wanted)
      if wanted ~= nil and not alike then note(base, wanted, value, base) end
    end
  end
end

-- Does a launch name a configuration function, instead of a model, that nobody here knows?
local function names_a_model(result)
  local name = result.get and result.get "config"
  if not (name and name.given) then return false end
  local _, known = result.trace.run(function() return result.record.configuration end)
  return not known
end

-- What nobody knows of a launch that does not say how many GPUs it gets.
local follows_from_gpus = { gpus_used = true, ["parallelism.data"] = true, microbatches = true }

-- → findings of differences, for lint's list.
function against.compare(result, read, plan, path)
  local out, noted = {}, {}
  local spec, _, unsaid_by_specs = reads.spec(result)
  local function id_of(field) return "plan." .. field:gsub("^%-%-", ""):gsub("[. -]", "_") end
  local function note(field, wanted, found, key)
    local value = key and result.get and result.get(key)
    local setting = value and value.setting
    noted[setting or false], noted[key or false] = true, true
    local unsaid = found == nil and result.entry.gpus_elsewhere and follows_from_gpus[field]
    out[#out + 1] = {
      id = id_of(field), severity = unsaid and "note" or "error",
      file = setting and setting.file or result.file,
      line = setting and setting.line or result.launch.line or 1,
      key = setting and setting.key or value and value.key and value.key.key or nil,
      value = found ~= nil and shown(found) or nil, nearest = shown(wanted), source = path,
      message = found ~= nil and string.format("the plan has %s %s, the launch %s", field, shown(wanted), shown(found))
                or string.format("the plan has %s %s, and what the launch has is not known%s", field, shown(wanted),
                                 unsaid and ": how many GPUs it gets stands in no file (--gpus N)" or ""),
    }
  end
  local function add(field, message, setting)
    out[#out + 1] = { id = id_of(field), severity = "error", file = setting.file, line = setting.line, key = setting.key, source = path,
                      message = message }
  end
  local more, elsewhere_said, in_program = derived(result, read, spec), names_a_model(result), {}
  for _, field in ipairs(result.entry.program or {}) do in_program[field] = true end
  -- of tokens, a launch that counts steps has whole ones, and at least one
  local step = result.record and result.trace.run(function() return result.record.train_iters end)
               and (read.training.global_batch_size or 0) * (read.training.sequence_length or 0) or 0
  local shares = (plan.parallelism.data or 1) * (plan.parallelism.context or 1) > 1   -- else nothing is sharded, whatever it is called
  for _, each in ipairs(compared) do
    local wanted, found = wanted_of(plan, each[1]), value_at(read, each[2])
    if found == nil then found = more[each[2]] end
    local whole_steps = each[1] == "training.tokens" and math.type(found) and math.abs(wanted - found) < step
    if wanted ~= nil and not same(wanted, found, each.within) and not whole_steps and (shares or each[1] ~= "sharding") then
      -- a tokenizer and a number of steps need not stand in a launch, and a model not where its name does
      local quiet = found == nil and (each.within or elsewhere_said and (each[1]:find "^model%." or each[1] == "training.precision")
                                      or in_program[each[1]])
      local old = each[1] == "recompute" and result.get and result.get("--moe-layer-recompute").given and "--moe-layer-recompute"
      if not quiet then note(each[1], wanted, found, old or each[3]) end
    end
  end
  if result.get then
    shapes.compare(result, plan, note)
    compare_flags(result, plan, spec.training, note)
    if type(value_at(plan, "model.shape")) == "table" then compare_model(result, plan.model.shape, note) end
    recipe.compare(result, plan, spec, unsaid_by_specs, noted, note, add)
  end
  return out
end

return against

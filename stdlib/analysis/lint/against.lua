-- against.lua: a launch held against the plan that it should run (what `pipeplan plan --format json` prints): a finding for each field in
-- which they differ, at the line that says otherwise.

local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local vocabulary = require "pipeplan.vocabulary"

local against = {}

-- Field of the plan, field of what was read, Megatron's key that says it.
local compared = {
  { "cluster.gpus", "gpus" }, { "parallelism.tensor", "parallelism.tensor", "--tensor-model-parallel-size" },
  { "parallelism.context", "parallelism.context", "--context-parallel-size" },
  { "parallelism.pipeline", "parallelism.pipeline", "--pipeline-model-parallel-size" },
  { "parallelism.expert", "parallelism.expert", "--expert-model-parallel-size" },
  { "parallelism.expert_tensor", "parallelism.expert_tensor", "--expert-tensor-parallel-size" },
  { "parallelism.data", "parallelism.data" },
  { "schedule", "schedule", "--num-virtual-stages-per-pipeline-rank" },
  { "layers_per_stage", "layers_per_stage", "--pipeline-model-parallel-layout" },
  { "microbatches", "microbatches" }, { "micro_batch_size", "training.micro_batch_size", "--micro-batch-size" },
  { "global_batch_size", "training.global_batch_size", "--global-batch-size" },
  { "training.sequence_length", "training.sequence_length", "--seq-length" },
  { "training.precision", "training.precision", "--bf16" },
  { "microbatch_group_size", "group", "--microbatch-group-size-per-virtual-pipeline-stage" },
}

local function shown(value)
  if type(value) == "table" then return "[" .. table.concat(value, ",") .. "]" end
  return tostring(value)
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return false end
  end
  return true
end

-- The plan of a file, checked to be one.
function against.read(path)
  local plan = json.read(path)
  require("pipeplan.base.documents").check(plan, "plan", path)
  if type(plan) ~= "table" or json.is_array(plan) or type(plan.status) ~= "string" then
    failure.usage("%s: this is no plan: expected what `pipeplan plan --format json` prints", path)
  end
  if plan.status ~= "planned" then failure.usage("%s: status is %s: there is no plan to hold a launch against", path, plan.status) end
  return plan
end

-- → findings of differences, for lint's list.
function against.compare(result, read, plan, path)
  local out = {}
  local function note(field, wanted, found, key)
    local value = key and result.get and result.get(key)
    local setting = value and value.setting
    out[#out + 1] = {
      id = "plan." .. field:gsub("%.", "_"), severity = "error", file = setting and setting.file or result.file,
      line = setting and setting.line or result.launch.line or 1,
      key = setting and setting.key or value and value.key and value.key.key or nil,
      value = found ~= nil and shown(found) or nil, nearest = shown(wanted), source = path,
      message = found ~= nil and string.format("the plan has %s %s, the launch %s", field, shown(wanted), shown(found))
                or string.format("the plan has %s %s, and what the launch has is not known", field, shown(wanted)),
    }
  end
  local dense = (read.model.experts or 0) == 0
  for _, each in ipairs(compared) do
    local wanted, found = json.at(plan, each[1]), json.at(read, each[2])
    local about_experts = each[1]:find "%.expert" and dense
    local group = each[2] == "group"
    if group then
      found = result.record and result.trace.run(function() return result.record.microbatch_group end)
      if found == nil then found = read.parallelism.pipeline end
      if (read.parallelism.virtual or 1) <= 1 then wanted = nil end
    end
    if each[1] == "layers_per_stage" and read.schedule == "none" then wanted = nil end
    if wanted ~= nil and not about_experts and not same(wanted, found) then note(each[1], wanted, found, each[3]) end
  end
  local sharding = json.at(plan, "sharding")
  local wanted = type(sharding) == "string" and vocabulary.zero_of[sharding]
  if wanted and read.training.zero ~= nil and math.min(wanted, 1) ~= read.training.zero and wanted <= 1 then
    note("sharding", sharding, read.training.zero == 0 and "none" or "optimizer", "--use-distributed-optimizer")
  end
  return out
end

return against

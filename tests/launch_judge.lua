-- SPDX-License-Identifier: Apache-2.0
-- launch_judge.lua: a written launch read back: what lint finds, what differs from the plan, and what the launch plans as.

local planning = require "planning"  -- first: it loads the module
local against = require "pipeplan.analysis.lint.against"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local launch = require "pipeplan.input.launch.init"
local lint = require "pipeplan.analysis.lint.init"
local planner = require "pipeplan.plan.init"
local policy = require "pipeplan.policy.load".load { date = "2026-11-27" }
local reads = require "pipeplan.analysis.lint.reads"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"

local judge = {}

local endings = { megatron = ".sh", bridge = ".sh", flagscale = ".yaml", torchtitan = ".sh", deepspeed = ".sh", primus = ".yaml" }

-- As a reader of its JSON has the plan.
local function as_json(plan) return json.decode(json.encode(json.shape(plan, schema))) end

-- Findings above a note of what a text launches, and what differs from the plan.
function judge.judged(name, text, plan)
  local gpus = name == "primus" and plan.gpus_used or nil   -- its file does not say how many
  local result = lint.of(launch.read(files.write("launch" .. endings[name], text), {})[1], { gpus = gpus })
  local list = {}
  for _, finding in ipairs(result.findings) do
    if finding.severity ~= "note" then list[#list + 1] = finding.id .. ": " .. finding.message end
  end
  local differences = {}
  for _, finding in ipairs(against.compare(result, reads.of(result), as_json(plan), "plan.json")) do
    differences[#differences + 1] = finding.id .. ": " .. finding.message
  end
  return list, differences, result
end

-- What a launch does not say of the spec that it came from: links, the optimizer, and a model that it only names. base: of its paths.
function judge.imported(result, object, base)
  local back, training = reads.spec(result), planning.merge({}, object.training)
  for _, name in ipairs { "zero", "sharding", "recompute", "micro_batch_size", "global_batch_size", "replicas", "moments" } do
    training[name] = nil
  end
  training = planning.merge(training, back.training)
  training.tokens = object.training.tokens   -- of whole steps there
  return planner.plan { policy = policy, request = spec.from_table({
    cluster = planning.merge(object.cluster, { gpus = back.cluster.gpus }), model = back.model or object.model, framework = back.framework,
    training = training, parallelism = back.parallelism,
  }, base or ".") }
end

local decided = { "status", "parallelism", "schedule", "layers_per_stage", "microbatches", "micro_batch_size", "global_batch_size",
                  "sharding", "recompute", "gpus_used" }

-- V of a schedule that places two slices a rank by itself may be said or not: 1 and 2 are the same plan.
function judge.decision(plan)
  local out = {}
  for _, name in ipairs(decided) do out[name] = plan[name] end
  if plan.parallelism.data * plan.parallelism.context == 1 then out.sharding = nil end   -- over nobody, whatever it is called
  if not plan.schedule:find "^interleaved" then out.parallelism = planning.merge(plan.parallelism, { virtual = 1 }) end
  return out
end

return judge

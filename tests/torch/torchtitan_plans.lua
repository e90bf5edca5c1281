-- SPDX-License-Identifier: Apache-2.0
-- torchtitan_plans.lua: `lua5.4 tests/torch/torchtitan_plans.lua FIRST COUNT MOST` prints COUNT lines of JSON, { seed, gpus, layers, text:
-- of `plan --format torchtitan`, plan: what it says that the launch must be }, of random plans on at most MOST GPUs; "shipped" in place of
-- FIRST: of what the examples and README plan; `models` its models.

require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local launch = require "pipeplan.report.launch.init"
local lists = require "pipeplan.base.lists"
local models = require "pipeplan.catalog.frameworks.torchtitan_models"
local random_specs = require "random_specs"
local shipped = require "shipped_launches"
local spec = require "pipeplan.input.spec"

local MOST_ACTIONS = 600

if arg[1] == "models" then
  for _, model in ipairs(models) do
    print(json.encode { module = model.module, config = model.config, sets = model.sets, layers = model.shape.layers })
  end
  os.exit(0)
end

local planner = require "pipeplan.plan.init"
local policy = require("pipeplan.policy.load").load { date = "2026-11-27" }

local function line(seed, plan, request)
  local text = launch.write("torchtitan", plan, request)
  if not text then return nil end
  local p, shape = plan.parallelism, request.model.shape
  local actions = p.pipeline * p.virtual * plan.microbatches
  return { seed = seed, actions = actions, gpus = plan.gpus_used, text = text, layers = shape.layers, plan = {
    layers = json.array(plan.layers_per_stage or { shape.layers }), M = plan.microbatches, DP = p.data, TP = p.tensor, P = p.pipeline,
    CP = p.context, EP = (shape.experts or 0) > 0 and p.expert or 1, ["microbatch size"] = plan.micro_batch_size,
    batch = plan.global_batch_size, sequence = plan.training.sequence_length,
    recompute = lists.contains(plan.recompute, "full") and "full" or "none",
  } }
end

if arg[1] == "shipped" then
  for _, title, plan, request in shipped.each "torchtitan" do print(json.encode(line(title, plan, request))) end
  os.exit(0)
end

local function planned(seed, most)
  local object = random_specs.any(random_specs.generator(seed))
  object.framework = "torchtitan"
  if object.cluster.gpus > most then return true, nil end
  return failure.try(function()
    local request = spec.from_table(object, ".")
    local plan = planner.plan { request = request, policy = policy }
    local made = line(seed, plan, request)
    return made and made.actions <= MOST_ACTIONS and made or nil   -- PyTorch takes minutes for many
  end)
end

local first, count, most = math.tointeger(arg[1]), math.tointeger(arg[2]), math.tointeger(arg[3])
local seed, made = first, 0
while made < count do
  local good, found = planned(seed, most)
  if not good and not failure.is(found) then error(found, 0) end
  if good and found then
    made = made + 1
    print(json.encode(found))
  end
  seed = seed + 1
end

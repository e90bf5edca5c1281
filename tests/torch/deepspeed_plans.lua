-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_plans.lua: `lua5.4 tests/torch/deepspeed_plans.lua FIRST COUNT MOST` prints COUNT lines of JSON, { seed, gpus, layers, text: of
-- `plan --format deepspeed`, plan: what it says that the launch must be }, of random plans on at most MOST GPUs; "shipped" in place of
-- FIRST: of what the examples and README plan.

require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local launch = require "pipeplan.report.launch.init"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local policy = require("pipeplan.policy.load").load { date = "2026-11-27" }
local random_specs = require "random_specs"
local shipped = require "shipped_launches"
local spec = require "pipeplan.input.spec"
local vocabulary = require "pipeplan.vocabulary"

local function line(seed, plan, request)
  local text = launch.write("deepspeed", plan, request)
  if not text then return nil end
  local p, shape = plan.parallelism, request.model.shape
  local wanted = {
    layers = json.array(plan.layers_per_stage or { shape.layers }), M = plan.microbatches, DP = p.data, P = p.pipeline, CP = p.context,
    micro = plan.micro_batch_size, precision = plan.training.precision, gradients = request.training.gradients,
  }
  if p.tensor == 1 or p.pipeline > 1 then wanted.TP, wanted.batch = p.tensor, plan.global_batch_size end
  if p.pipeline > 1 then
    wanted.EP = (shape.experts or 0) > 0 and p.expert or 1
    wanted.recompute = lists.contains(plan.recompute, "full") and 1 or 0
  end
  if p.data * p.context > 1 then wanted.zero = vocabulary.zero_of[plan.sharding] end
  return { seed = seed, gpus = plan.gpus_used, text = text, layers = shape.layers, plan = wanted }
end

if arg[1] == "shipped" then
  for _, title, plan, request in shipped.each "deepspeed" do print(json.encode(line(title, plan, request))) end
  os.exit(0)
end

local function planned(seed, most)
  local object = random_specs.any(random_specs.generator(seed))
  object.framework = "deepspeed"
  if object.cluster.gpus > most then return true, nil end
  return failure.try(function()
    local request = spec.from_table(object, ".")
    local plan = planner.plan { request = request, policy = policy }
    return line(seed, plan, request)
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

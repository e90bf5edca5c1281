-- SPDX-License-Identifier: Apache-2.0
-- megatron_plans.lua: plans for Megatron-LM, or what is derived from it, of random specs, as launches. `lua5.4
-- tests/torch/megatron_plans.lua FIRST COUNT MOST [FORMAT]` prints COUNT lines of JSON, { seed, gpus, text: of `plan --format FORMAT`,
-- megatron if it is left out, plan: what it says that the launch must be }, of plans on at most MOST GPUs. Specs that are not planned are
-- passed over. FIRST "shipped": of what the examples and README plan instead, on any number of GPUs.

require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local launch = require "pipeplan.report.launch.init"
local launches = require "pipeplan.report.launch.formats"
local load = require "pipeplan.policy.load"
local planner = require "pipeplan.plan.init"
local random_specs = require "random_specs"
local shipped = require "shipped_launches"
local spec = require "pipeplan.input.spec"

local name = arg[4] or "megatron"
local policy = load.load { date = "2026-11-27" }

local function line(seed, plan, request)
  local p, shape, full = plan.parallelism, request.model.shape, lists.contains(plan.recompute, "full")
  local experts = shape.experts or 0
  local text, problem = launch.write(name, plan, request)
  return { seed = seed, gpus = plan.gpus_used, text = text, problem = problem, plan = {
    layers = json.array(plan.layers_per_stage), M = plan.microbatches, DP = p.data, TP = p.tensor, P = p.pipeline, CP = p.context,
    EP = experts > 0 and p.expert or 1, ETP = experts > 0 and p.expert_tensor or p.tensor, V = p.virtual,
    ["microbatch size"] = plan.micro_batch_size, batch = plan.global_batch_size, sequence = plan.training.sequence_length,
    precision = "torch." .. (({ fp16 = "float16", fp32 = "float32" })[plan.training.precision] or "bfloat16"),
    sharded = plan.sharding ~= "none", ["sequence parallel"] = p.tensor > 1 and request.training.sequence_parallel ~= false,
    recompute = full and "full" or #plan.recompute > 0 and "selective" or "none", experts = experts, MTP = shape.mtp_layers or 0,
    dropout = request.training.dropout and { 0.1, 0.1 } or { 0, 0 },   -- else it is 0.1 (transformer_config.py:188-191)
    offloaded = request.training.optimizer_offload,
  } }
end

if arg[1] == "shipped" then
  for _, title, plan, request in shipped.each(name) do print(json.encode(line(title, plan, request))) end
  os.exit(0)
end

local function planned(seed, most)
  local object = random_specs.any(random_specs.generator(seed))
  object.framework = launches.framework[name]
  object.training.dropout = seed % 2 == 0 or nil
  if name == "megatron" and seed % 3 == 0 then object.training.optimizer_offload = 0.5 end   -- in Bridge it wants Transformer Engine
  if object.cluster.gpus > most then return true, nil end
  return failure.try(function()
    local request = spec.from_table(object, ".")
    local plan = planner.plan { request = request, policy = policy }
    if plan.status ~= "planned" then return nil end
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

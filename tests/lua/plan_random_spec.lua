-- SPDX-License-Identifier: Apache-2.0
-- Whatever a spec asks for, the answer is a plan, a refusal or one clear line; its page fits, its JSON has no NaN, its layout adds up.

require "pipeplan"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"
local load = require "pipeplan.policy.load"
local markdown = require "pipeplan.report.markdown"
local planner = require "pipeplan.plan.init"
local schema = require "pipeplan.schema.plan"
local spec = require "pipeplan.input.spec"
local text = require "pipeplan.report.text"

-- The same specs on every machine: math.random's generator is fixed by its seed (xoshiro256**, Lua 5.4 manual).
local function pick(list) return list[math.random(#list)] end
local function sometimes(share) return math.random() < share end

local models = { "deepseek-v3", "kimi-k2", "llama-2-7b", "llama-3-70b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b-a22b", "qwen3-0.6b" }
local batches = { 64, 256, 1024, 1536, 2048, 4096, 15360, { { 0, 512 }, { "10B", 1024 }, { "50B", 2048 } } }
local schedules = engine.schedule.kinds

local function random_spec()
  return {
    cluster = {
      gpus = pick { 1, 2, 4, 8, 16, 24, 48, 64, 96, 128, 256, 384, 512, 768, 1024, 2048 },
      accelerator = pick { "H100-SXM", "H800-SXM-80GB", "A100-SXM-80GB", "B200", "MI300X" },
      network = { per_gpu = pick { "400Gbps", "200Gbps", "100Gbps" }, fabric = pick { "infiniband", "roce", "efa", "ethernet" } },
      alltoall_kernel = sometimes(0.3) and pick { "deepep", "nccl_alltoall", "false" } or nil,
    },
    model = "examples/models/" .. pick(models) .. ".json",
    training = { sharding = "optimizer",
      tokens = pick { "100M", "2B", "15T" }, sequence_length = pick { 2048, 4096, 32768 }, recompute = pick { "none", "full", "selective" },
      global_batch_size = sometimes(0.6) and pick(batches) or nil, micro_batch_size = sometimes(0.3) and pick { 1, 2, 4 } or nil,
    },
    parallelism = {
      tensor = sometimes(0.3) and pick { 1, 2, 4, 8 } or nil, pipeline = sometimes(0.3) and pick { 1, 2, 3, 4, 8, 16 } or nil,
      expert = sometimes(0.2) and pick { 1, 2, 8, 64 } or nil, schedule = sometimes(0.2) and pick(schedules) or nil,
    },
    framework = sometimes(0.15) and pick { "megatron", "flagscale", "deepseek-dualpipe", "torchtitan", "primus" } or nil,
  }
end

local function check_page(page)
  local lines = 0
  for line in page:gmatch "([^\n]*)\n" do
    lines = lines + 1
    assert(utf8.len(line) <= 80, line)
    assert(not line:find "%f[%a]nan%f[%A]" and not line:find "%f[%a]inf%f[%A]", line)
  end
  assert(lines <= 66, lines .. " lines")
end

local function check_plan(plan)
  if plan.status ~= "planned" then
    assert(#plan.reasons > 0, "no reason")
    return
  end
  local p = plan.parallelism
  assert(p.data * p.tensor * p.context * p.pipeline == plan.gpus_used and plan.gpus_used <= plan.cluster.gpus, "GPUs")
  assert(plan.microbatches * p.data * plan.micro_batch_size == plan.global_batch_size, "batch")
  assert(plan.memory.fit ~= "does_not_fit", "memory")
  assert(plan.predicted_utilisation_fraction > 0 and plan.predicted_utilisation_fraction <= 1, "utilisation")
  assert(plan.mfu_fraction > 0 and plan.mfu_fraction < 1, "MFU")
  if plan.rollback then assert(plan.rollback.threshold_fraction > 0 and plan.rollback.threshold_fraction < 1, "threshold") end
end

describe("any spec", function()
  local policy = load.load { date = "2026-11-27" }

  it("gives a page of 66 × 80, JSON without NaN and figures that add up, or one clear line", function()
    math.randomseed(20261127)
    local outcomes = { planned = 0, refused = 0, rejected = 0, unreadable = 0 }
    local specs = require "long" and 250 or 28
    for _ = 1, specs do
      local object = random_spec()
      local good, problem = xpcall(function()
        local plan = planner.plan { request = spec.from_table(object, "."), policy = policy }
        check_plan(plan)
        check_page(text.render(plan))
        markdown.render(plan)
        json.encode(json.shape(plan, schema))
        return plan.status
      end, function(raised) return failure.is(raised) and raised or debug.traceback(tostring(raised)) end)
      if good then
        outcomes[problem] = outcomes[problem] + 1
      else
        assert.is_true(failure.is(problem), json.encode(object) .. "\n" .. tostring(problem))
        assert.equal(2, problem.status)
        assert.is_nil(problem.message:find("\n", 1, true))
        outcomes.unreadable = outcomes.unreadable + 1
      end
    end
    for outcome, count in pairs(outcomes) do assert.is_true(count > specs / 20, outcome .. " " .. count) end
  end)
end)

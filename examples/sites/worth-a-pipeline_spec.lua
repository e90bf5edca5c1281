-- SPDX-License-Identifier: Apache-2.0
-- Tests of worth-a-pipeline.lua: run with `pipeplan policy test examples/sites`, or under ctest.

local pipeplan = require "pipeplan"

local shipped, site = pipeplan.policy(), pipeplan.policy "examples/sites/worth-a-pipeline.lua"

-- 256 H100: what is planned, and what a step without a pipeline takes beside it.
local function llama(policy, framework)
  local plan = policy:plan_spec {
    cluster = { gpus = 256, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = "examples/models/llama-3-70b.json", training = { tokens = "2T" }, framework = framework,
  }
  return plan, plan.without_pipeline and plan.without_pipeline.step_seconds
end

describe("worth-a-pipeline", function()
  it("refuses what the shipped policy plans, where no pipeline is as fast, and recommends that", function()
    local plan, alone = llama(shipped, "megatron")
    assert.decided(plan, "planned")
    assert.is_true(alone <= plan.step_seconds)
    local refused = llama(site, "megatron")
    assert.decided(refused, "refused", "not_worth_a_pipeline")
    assert.equal(1, refused.recommend.parallelism.pipeline)
    assert.equal(alone, refused.recommend.step_seconds)
  end)

  it("plans a pipeline where it is faster", function()
    local plan, alone = llama(site, "torchtitan")
    assert.decided(plan, "planned")
    assert.is_true(alone > plan.step_seconds)
  end)
end)

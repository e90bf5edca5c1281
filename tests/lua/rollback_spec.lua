-- SPDX-License-Identifier: Apache-2.0
-- The rollback trigger lies below what the plan predicts: a run as predicted is kept.

local pipeplan = require "pipeplan"

local policy = pipeplan.policy(nil, { date = "2026-11-27" })

local function planned(spec)
  local plan = policy:plan_spec(spec, ".")
  assert.equal("planned", plan.status)
  return plan
end

-- Dense on 512 GPUs: DualPipeV is wanted, and a Zero Bubble schedule is predicted to be faster.
local faster = {
  cluster = { gpus = 512, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
  model = "examples/models/llama-3-70b.json",
  training = { tokens = "2T", sequence_length = 4096, global_batch_size = 1024, recompute = "full" },
}

describe("the rollback trigger", function()
  it("lies below the prediction by what a comparison can be wrong, even where the fallback is predicted to be faster", function()
    for _, batch in ipairs { 512, 1024, 2048 } do
      faster.training.global_batch_size = batch
      local plan = planned(faster)
      local predicted, error = plan.predicted_utilisation_fraction, plan.expected_error.comparison_fraction
      assert.is_true(plan.rollback.threshold_fraction <= predicted / (1 + error) + 1e-12)
    end
  end)

  it("is that of a long run where the run ends before the window", function()
    faster.training.global_batch_size = 1024
    local long = planned(faster)
    faster.training.tokens = 500 * 1024 * 4096   -- 500 steps of the 1,000
    local short = planned(faster)
    faster.training.tokens = "2T"
    assert.near(long.rollback.threshold_fraction, short.rollback.threshold_fraction, 1e-9)
    assert.equal(long.rollback.paragraph, short.rollback.paragraph)
  end)

  it("is what the fallback reaches where that is slower by more", function()
    local plan = policy:plan { "examples/specs/deepseek-v3.json" }
    assert.is_false(plan.rollback.inside_error_band)
    assert.matches("that is what the simpler plan reaches", plan.rollback.paragraph, 1, true)
  end)

  it("says that the spec keeps a faster fallback from being the plan, where it does", function()
    local fixed = planned {
      cluster = { gpus = 64, accelerator = "H200-SXM", network = { per_gpu = "400Gbps" } }, model = "examples/models/llama-3-70b.json",
      training = { tokens = "1T", recompute = "full", micro_batch_size = 1, sharding = "optimizer", global_batch_size = 64 },
      parallelism = { pipeline = 4, tensor = 4, context = 1, schedule = "gpipe" },
    }
    assert.matches("faster, .* It is not the plan because the spec fixes GPipe: measure both", fixed.rollback.paragraph)
  end)

  it("says why a fallback that is predicted to be faster is not the plan", function()
    local told = 0
    for _, batch in ipairs { 512, 1024, 2048, 4096 } do
      faster.training.global_batch_size = batch
      local plan = planned(faster)
      if plan.rollback.paragraph:find("faster", 1, true) then
        told = told + 1
        assert.matches("It is not the plan because the policy wants ", plan.rollback.paragraph, 1, true)
      end
    end
    assert.is_true(told > 0, "no such plan among these")
  end)
end)

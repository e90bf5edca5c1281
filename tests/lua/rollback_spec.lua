-- SPDX-License-Identifier: Apache-2.0
-- The rollback trigger lies below what the plan predicts: a run as predicted is kept.

local pipeplan = require "pipeplan"
local json = require "pipeplan.base.json"

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

  -- Ideal step ÷ step at each batch; with nothing to fall back to, 1.20 times the step, the error of an estimate. The ideal step is M
  -- times what a microbatch takes, so it grows as the batch does.
  it("of a ramp is stated at each batch, from that batch's own step", function()
    local plan = policy:plan { "examples/specs/deepseek-v3-ramp.json" }
    assert.is_nil(plan.rollback.fallback)
    assert.equal(5, #plan.rollback.batches)
    for i, at in ipairs(plan.rollback.batches) do
      local segment = plan.training.batch_ramp[i]
      local ideal = plan.ideal_step_seconds * segment.global_batch_size / plan.global_batch_size
      assert.equal(segment.global_batch_size, at.global_batch_size)
      assert.near(ideal / segment.step_seconds, at.predicted_utilisation_fraction, 1e-9)
      assert.near(ideal / segment.step_seconds / 1.2, at.threshold_fraction, 1e-9)
      assert.near(1.2 * segment.step_seconds, at.threshold_seconds, 1e-9)
    end
    assert.matches("from 35 % (steps over 7.74 s) at 3,072 to 51 % (26.5 s) at 15,360.", plan.rollback.paragraph, 1, true)
    assert.is_nil(policy:plan({ "examples/specs/deepseek-v3.json" }).rollback.batches)
  end)

  -- the first thousand steps are all at 3,072, where 42 % is predicted; 61.2 % is the prediction at 15,360
  it("of a ramp stands on a page beside the prediction of the same steps", function()
    local plan = policy:plan { "examples/specs/deepseek-v3-ramp.json" }
    local html = require("pipeplan.report.html.rollback").section(plan).text
    assert.matches("Utilisation: the plan predicts 42 %, below 35 % roll back", html, 1, true)
    assert.not_matches("61.2 %", html, 1, true)
  end)

  -- 48 and 120 microbatches on 16 ranks are enough for DualPipe, whose fallback is 1F1B: what the shipped ramp, from 24 on, is planned as
  it("of a ramp is what the fallback reaches at each batch", function()
    local spec = json.read "examples/specs/deepseek-v3-ramp.json"
    local one_f_one_b = policy:plan_spec(spec, "examples/specs").training.batch_ramp
    spec.training.global_batch_size = { { 0, 6144 }, { "6B", 15360 } }
    local plan = policy:plan_spec(spec, "examples/specs")
    local batches = plan.rollback.batches
    assert.same({ "dualpipe", "1f1b", 2 }, { plan.schedule, plan.rollback.fallback.schedule, #batches })
    assert.near(one_f_one_b[2].step_seconds, batches[1].threshold_seconds, 1e-9)
    assert.near(one_f_one_b[5].step_seconds, batches[2].threshold_seconds, 1e-9)
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

  -- torch/distributed/pipelining/_backward.py runs no selective recompute with a split backward, and of a loop with a split backward no other
  -- framework has a program: there is nowhere to roll back to.
  it("goes to nothing that runs in no framework", function()
    local policies = require "policy_files"
    local wanting = pipeplan.policy(policies.write("site.lua", 'site "s"\nset { rollback_fallback = { "interleaved_zero_bubble" } }'),
                                    { date = "2026-11-27" })
    local plan = wanting:plan_spec({
      cluster = { gpus = 48, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = { architecture = "dense", total = "20B", layers = 80 }, training = { tokens = "1T", global_batch_size = 768 },
      parallelism = { pipeline = 4 },
    }, ".")
    local forbidden
    for _, other in ipairs(plan.alternatives) do
      if other.schedule == "interleaved_zero_bubble" then forbidden = other end
    end
    assert.same({ { "torch.split_backward_recompute" }, false }, { forbidden.why_not, forbidden.allowed })
    assert.not_equal("interleaved_zero_bubble", plan.rollback.fallback and plan.rollback.fallback.schedule)
  end)
end)

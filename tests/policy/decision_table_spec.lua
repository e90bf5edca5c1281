-- SPDX-License-Identifier: Apache-2.0
-- The decision table: which schedule is wanted, at the numbers of GPUs and the share of the all-to-all where its rows begin and end.
-- The specs are eight GPUs; how many the rules see is a fact that each test states, so that nothing large is planned.

local pipeplan = require "pipeplan"

local policy = pipeplan.policy():with { fits_one_gpu = false }
local dense = { "tests/policy/dense.json", pipeline = 2 }

-- The row that decided and the schedule that it wants, on so many GPUs.
local function decides(row, wanted, gpus, spec, of_policy)
  local plan = (of_policy or policy):with { gpus = gpus }:plan(spec)
  assert.decided(plan, "planned")
  assert.equal(row, plan.decision)
  assert.equal(wanted, plan.schedule_wanted)
end

local function moe(expert)
  return { "tests/policy/moe.json", pipeline = 2, expert = expert }
end

describe("the decision table", function()
  it("takes 1F1B under 100 GPUs", function()
    decides("small_run", "1f1b", 99, dense)
    decides("small_run", "1f1b", 99, moe(2))  -- the first row that holds: not DualPipe
  end)

  it("takes Zero Bubble for a dense model of 100 to 499 GPUs", function()
    decides("dense", "zero_bubble", 100, dense)
    decides("dense", "zero_bubble", 499, dense)
  end)

  it("takes DualPipeV for a dense model from 500 GPUs on", function()
    decides("dense_large", "dualpipev", 500, dense)
    decides("dense_large", "dualpipev", 100000, dense)
  end)

  it("takes DualPipe for an MoE whose experts are spread", function()
    decides("moe_with_ep", "dualpipe", 100, moe(2))
    decides("moe_with_ep", "dualpipe", 500, moe(2))
  end)

  it("takes the rows of a dense model for an MoE whose experts are not", function()
    decides("dense", "zero_bubble", 499, moe(1))
    decides("dense_large", "dualpipev", 500, moe(1))
  end)

  it("asks for the architecture, not for experts alone", function()
    local spec = moe(2)
    local plan = policy:with { gpus = 499, architecture = "dense" }:plan(spec)
    assert.equal("dense", plan.decision)
  end)

  it("takes Zero Bubble where the all-to-all of a large run is heavy: from the threshold on", function()
    local none = pipeplan.policy(nil, { set = { heavy_alltoall_fraction = 0 } }):with { fits_one_gpu = false }
    decides("otherwise", "zero_bubble", 500, dense, none)  -- its share is 0, which is at the threshold
  end)
end)

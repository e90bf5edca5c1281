-- Tests of campus.lua: run with `pipeplan policy test examples/sites`, or under ctest.

local pipeplan = require "pipeplan"

-- The date is fixed: its exceptions fall away, and this file should not be what tells.
local function at(date) return pipeplan.policy("examples/sites/campus.lua", { date = date }) end
local site = at "2026-12-01"

-- A dense model of 13 B parameters on A100 nodes.
local function spec(gpus, tokens)
  return {
    cluster = { gpus = gpus, accelerator = "A100-SXM-80GB", network = { fabric = "infiniband", per_gpu = "200Gbps" } },
    model = { architecture = "dense", total = "13B", layers = 40 },
    training = { tokens = tokens, global_batch_size = 1024, recompute = "full" },
    parallelism = { pipeline = 4, tensor = 4, schedule = "1f1b" },
  }
end

-- What a run takes grows with its tokens: the tokens at which a figure of the plan is so much.
local function tokens_for(gpus, figure, wanted)
  local plan = pipeplan.policy():plan_spec(spec(gpus, "1T"))
  return 1e12 * wanted / plan[figure]
end

describe("campus", function()
  it("has allocations of 200,000 GPU-hours", function()
    assert.decided(site:plan_spec(spec(256, tokens_for(256, "gpu_hours", 199000))), "planned")
    assert.decided(site:plan_spec(spec(256, tokens_for(256, "gpu_hours", 201000))), "rejected", "over_allocation")
  end)

  it("runs nothing for more than 60 days", function()
    assert.decided(site:plan_spec(spec(64, tokens_for(64, "training_days", 59.5))), "planned")
    assert.decided(site:plan_spec(spec(64, tokens_for(64, "training_days", 60.5))), "rejected", "too_long")
  end)

  it("counts 32 GPUs as a large run already, and 31 as a small one", function()
    local free = spec(32, "20B")
    free.parallelism = nil
    assert.equal("dense", site:plan_spec(free).decision)
    assert.equal("small_run", site:with({ gpus = 31 }):plan_spec(free).decision)
  end)

  it("leaves a twentieth of a GPU's memory free, until summer", function()
    local function share(policy)
      local memory = policy:plan_spec(spec(64, "20B")).memory
      return memory.headroom_bytes / memory.device_bytes
    end
    assert.is_near(0.05, share(site), 1e-9)
    assert.is_near(0.08, share(at "2027-07-01"), 1e-9)
  end)

  it("plans course projects until the term ends", function()
    assert.decided(site:plan_spec(spec(64, "0.9B")), "planned")
    assert.decided(at("2027-04-01"):plan_spec(spec(64, "0.9B")), "refused", "short_run")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

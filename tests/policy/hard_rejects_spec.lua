-- SPDX-License-Identifier: Apache-2.0
-- The hard rejects: each at the last value that it lets through and the first that it does not.

local policy = require("pipeplan").policy():with { fits_one_gpu = false }

-- A layout of the small dense model or MoE in which only what a test names is at a limit: P 4, M 32, EP 2.
local function spec(model, changes)
  local out = { "tests/policy/" .. model .. ".json", pipeline = 4, gpus = 8, expert = model == "moe" and 2 or nil }
  for name, value in pairs(changes) do out[name] = value end
  return out
end

local function moe(changes) return policy:plan(spec("moe", changes)) end
local function dense(changes) return policy:plan(spec("dense", changes)) end

describe("a hard reject", function()
  it("takes DualPipe only with experts that are spread", function()
    assert.decided(moe { schedule = "dualpipe", expert = 1 }, "rejected", "dualpipe_without_ep")
    assert.decided(moe { schedule = "dualpipe", expert = 2 }, "planned")
    assert.decided(moe { schedule = "1f1b", expert = 1 }, "planned")
  end)

  it("takes a depth of 64 and no more", function()
    assert.decided(dense { schedule = "1f1b", gpus = 64, pipeline = 64 }, "planned")
    assert.decided(dense { schedule = "1f1b", gpus = 65, pipeline = 65 }, "rejected", "too_deep")
  end)

  it("takes even numbers of microbatches for DualPipe and DualPipeV", function()
    for _, schedule in ipairs { "dualpipe", "dualpipev" } do
      assert.decided(moe { schedule = schedule, global_batch_size = 2 * 33 }, "rejected", "odd_microbatches")
      assert.decided(moe { schedule = schedule, global_batch_size = 2 * 32 }, "planned")
    end
    assert.decided(moe { schedule = "1f1b", global_batch_size = 2 * 33 }, "planned")
  end)

  it("takes no pipeline where the model fits one GPU", function()
    local fitting = policy:with { fits_one_gpu = true }
    local plan = fitting:plan(spec("dense", { pipeline = 2 }))
    assert.decided(plan, "rejected", "fits_one_gpu")
    assert.equal(1, plan.recommend.parallelism.pipeline)
    assert.decided(fitting:plan(spec("dense", { pipeline = 1 })), "planned")
    assert.decided(dense { pipeline = 2 }, "planned")
  end)

  it("takes M from 2 P on for DualPipe and DualPipeV", function()
    for _, schedule in ipairs { "dualpipe", "dualpipev" } do
      assert.decided(moe { schedule = schedule, global_batch_size = 2 * 6 }, "rejected", "too_few_microbatches")  -- M 6, P 4
      assert.decided(moe { schedule = schedule, global_batch_size = 2 * 8 }, "planned")
    end
    assert.decided(moe { schedule = "1f1b", global_batch_size = 2 * 6 }, "planned")
    assert.decided(moe { schedule = "dualpipe", global_batch_size = 2 * 4 }, "rejected", "too_few_microbatches")  -- M = P
    local deep = { schedule = "dualpipe", gpus = 40, pipeline = 20 }
    deep.global_batch_size = 2 * 38
    assert.decided(moe(deep), "rejected", "too_few_microbatches")
    deep.global_batch_size = 2 * 40
    assert.decided(moe(deep), "planned")
  end)

  it("takes even depths for DualPipe", function()
    local three = { gpus = 6, pipeline = 3, global_batch_size = 2 * 32 }
    three.schedule = "dualpipe"
    assert.decided(moe(three), "rejected", "dualpipe_odd_depth")
    three.schedule = "1f1b"
    assert.decided(moe(three), "planned")
    assert.decided(moe { schedule = "dualpipe", gpus = 6 * 2, pipeline = 6, global_batch_size = 2 * 32 }, "planned")
  end)

  it("takes DualPipe only without virtual stages", function()
    assert.decided(moe { schedule = "dualpipe", virtual = 2 }, "rejected", "dualpipe_virtual")
    assert.decided(moe { schedule = "dualpipe", virtual = 1 }, "planned")
    assert.decided(moe { schedule = "interleaved_1f1b", virtual = 2 }, "planned")
  end)

  it("takes DualPipe with tied embeddings only as DeepSeek's own package runs it", function()
    local tied = policy:with { tied_embeddings = true }
    local dualpipe = spec("moe", { schedule = "dualpipe" })
    assert.decided(tied:plan(dualpipe), "rejected", "dualpipe_tied_embeddings")
    assert.decided(policy:plan(dualpipe), "planned")
    assert.decided(tied:plan(spec("moe", { schedule = "1f1b" })), "planned")
    assert.decided(tied:with { framework = "flagscale" }:plan(dualpipe), "rejected", "dualpipe_tied_embeddings")
    assert.decided(tied:with { framework = "deepseek-dualpipe" }:plan(dualpipe), "planned")
  end)
end)

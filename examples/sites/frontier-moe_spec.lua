-- Tests of frontier-moe.lua: run with `pipeplan policy test examples/sites`, or under ctest.

local site = require("pipeplan").policy "examples/sites/frontier-moe.lua"

local function plan(expert, facts)
  return site:with(facts or {}):plan { "examples/specs/qwen3-235b.json", expert = expert }
end

describe("frontier-moe", function()
  it("has a row of its own for large mixtures whose experts are spread wide", function()
    local out = plan(32)
    assert.same({ "frontier", "dualpipev" }, { out.decision, out.schedule_wanted })
    assert.is_not.equal("frontier", plan(16).decision)
    assert.is_not.equal("frontier", plan(32, { total_parameters = 199999999999 }).decision)
    assert.equal("frontier", plan(32, { total_parameters = 200000000000 }).decision)
    assert.is_not.equal("frontier", plan(32, { architecture = "dense" }).decision)
  end)

  it("interleaves where experts are hardly spread", function()
    local out = plan(4)
    assert.same({ "narrow_experts", "interleaved_1f1b" }, { out.decision, out.schedule_wanted })
    assert.equal("narrow_experts", plan(4, { gpus = 64 }).decision)  -- before small_run
    assert.is_not.equal("narrow_experts", plan(8).decision)
    assert.is_not.equal("narrow_experts", plan(4, { architecture = "dense" }).decision)
  end)

  it("keeps an expert group in a pod", function()
    assert.decided(plan(64), "planned")
    assert.decided(plan(128), "rejected", "experts_beyond_pod")
  end)

  it("keeps the default's limit on depth", function()
    local function deep(pipeline)
      return site:plan { "examples/specs/llama-3.1-405b.json", gpus = 1024, global_batch_size = 4096, recompute = "full",
                         pipeline = pipeline, schedule = "1f1b" }
    end
    assert.decided(deep(64), "planned")
    assert.decided(deep(128), "rejected", "too_deep")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

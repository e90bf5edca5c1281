-- Tests of own-numbers.lua: run with `pipeplan policy test examples/sites`, or under ctest. Its limits are worked out by hand.

local site = require("pipeplan").policy "examples/sites/own-numbers.lua"

local function moe(expert, sequence_length)
  return site:with({ sequence_length = sequence_length }):plan { "examples/specs/qwen3-235b.json", expert = expert }
end

-- So many microbatches at DP 8.
local function dense(microbatches, pipeline, schedule)
  return site:plan_spec {
    cluster = { gpus = 16 * pipeline, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { architecture = "dense", total = "13B", layers = 40 },
    training = { tokens = "1T", global_batch_size = 8 * microbatches, recompute = "full" },
    parallelism = { pipeline = pipeline, tensor = 2, data = 8, schedule = schedule },
  }
end

describe("own-numbers", function()
  -- Of two nodes the other has none of a token's 4 experts once in 16: 8192 bytes × 15/16 at 25 GB/s are 4 ms for 13,020.8 tokens.
  it("keeps a dispatch over two nodes under 4 ms", function()
    assert.decided(moe(16, 13020), "planned")
    assert.decided(moe(16, 13021), "rejected", "dispatch_too_long")
  end)

  -- In a node 3/4 of the copies go to another card at EP 4: 4 × 8192 × 3/4 bytes at 300 GB/s are 4 ms for 48,828 tokens.
  it("lets an expert group in a node have four times the tokens", function()
    assert.decided(moe(4, 48000), "planned")
    assert.decided(moe(2, 48000), "planned")
    assert.is_not.decided(moe(1, 48000), "rejected", "dispatch_too_long")
  end)

  -- (P − 1) / (M/4 + P − 1) is 20 % where M is 16 (P − 1).
  it("lets 1F1B idle for at most a fifth of a step when the run begins", function()
    assert.decided(dense(48, 4, "1f1b"), "planned")
    assert.decided(dense(44, 4, "1f1b"), "rejected", "idle_at_first")
    assert.decided(dense(2, 2, "1f1b"), "rejected", "idle_at_first")
  end)

  it("says nothing of other schedules", function()
    assert.is_not.decided(dense(44, 4, "zb_h1"), "rejected", "idle_at_first")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

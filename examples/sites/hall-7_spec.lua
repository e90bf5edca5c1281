-- Tests of hall-7.lua: run with `pipeplan policy test examples/sites`, or under ctest.

local site = require("pipeplan").policy "examples/sites/hall-7.lua"

local function plan(fabric, pipeline)
  return site:plan { "examples/specs/llama-3.1-405b.json", gpus = 1024, global_batch_size = 1024, recompute = "full", fabric = fabric,
                     pipeline = pipeline, schedule = "1f1b" }
end

describe("hall-7", function()
  it("takes 16 stages over Ethernet, and not 32", function()
    assert.decided(plan("ethernet", 16), "planned")
    assert.decided(plan("ethernet", 32), "rejected", "deep_on_ethernet")
  end)

  it("lets InfiniBand have more", function()
    assert.decided(plan("infiniband", 32), "planned")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

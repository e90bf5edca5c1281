-- Tests of ml-hall-3.lua: run with `busted --lua=lua5.4 examples/sites`, or under ctest.

local site = require("pipeplan").policy "examples/sites/ml-hall-3.lua"

describe("ml-hall-3", function()
  it("interleaves where the default would take DualPipe", function()
    assert.equal("interleaved_1f1b", site:plan { "examples/specs/qwen3-235b.json" }.schedule)
    -- 61 layers do not divide over 32 stages: there 1F1B is faster by more than the policy gives for what it wants
    assert.decided(site:plan { "examples/specs/deepseek-v3.json" }, "planned", "wanted_too_slow")
  end)

  it("does not plan for another framework's schedules", function()
    assert.decided(site:plan { "examples/specs/deepseek-v3.json", framework = "deepseek-dualpipe" }, "rejected", "not_in_framework")
  end)

  it("keeps tensor parallelism inside the node", function()
    local spec = "examples/specs/llama-3.1-405b.json"
    assert.decided(site:plan { spec, tensor = 16 }, "rejected", "tensor_parallel_inside_node")
    assert.is_not.decided(site:plan { spec, tensor = 8 }, "rejected", "tensor_parallel_inside_node")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

-- Tests of ml-hall-3.lua: run with `busted --lua=lua5.4 examples/sites`, or under ctest.

local site = require("pipeplan").policy "examples/sites/ml-hall-3.lua"

describe("ml-hall-3", function()
  it("plans only what Megatron-LM runs, where the default would take DualPipe", function()
    local plan = site:plan { "examples/specs/deepseek-v3.json", framework = "megatron" }
    assert.decided(plan, "planned")
    assert.equal("interleaved_1f1b", plan.schedule_wanted)
    assert.is_true(plan.schedule == "interleaved_1f1b" or plan.schedule == "1f1b")
  end)

  it("does not plan for another framework's schedules", function()
    assert.decided(site:plan { "examples/specs/deepseek-v3.json" }, "rejected", "not_in_framework")
  end)

  it("keeps tensor parallelism inside the node", function()
    local spec = "examples/specs/llama-3.1-405b.json"
    assert.decided(site:plan { spec, tensor = 16 }, "rejected", "tensor_parallel_inside_node")
    assert.is_not.decided(site:plan { spec, tensor = 8 }, "rejected", "tensor_parallel_inside_node")
  end)
end)

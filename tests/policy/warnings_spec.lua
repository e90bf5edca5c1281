-- SPDX-License-Identifier: Apache-2.0
-- What a plan is warned of, at the last value where it is not and the first where it is.

local policy = require("pipeplan").policy():with { fits_one_gpu = false }

local function plan(changes)
  local out = { "tests/policy/dense.json", pipeline = 2, schedule = "1f1b" }
  for name, value in pairs(changes) do out[name] = value end
  return policy:plan(out)
end

-- The severity of a plan's warning, or nil.
local function severity(id, a_plan)
  for _, warning in ipairs(a_plan.warnings) do
    if warning.id == id then return warning.severity end
  end
  return nil
end

describe("a plan is warned", function()
  it("of fewer than 8 microbatches per rank, and noted of more than 16", function()
    for ratio, expected in pairs { [7.5] = "few", [8] = "none", [16] = "none", [16.5] = "many" } do
      local made = plan { global_batch_size = math.tointeger(4 * 2 * ratio) }  -- DP 4, P 2
      assert.equal(ratio, made.microbatches_per_rank)
      assert.equal(expected == "few" and "warning" or nil, severity("few_microbatches", made))
      assert.equal(expected == "many" and "note" or nil, severity("many_microbatches", made))
    end
  end)

  it("of an optimizer on the host that takes more memory than the host has", function()
    local offloaded = { optimizer_offload = "1", host_memory = "1TiB" }
    local bytes = plan(offloaded).host.optimizer_bytes
    offloaded.host_memory = bytes
    assert.is_nil(severity("host_memory_short", plan(offloaded)))
    offloaded.host_memory = bytes - 1
    assert.equal("warning", severity("host_memory_short", plan(offloaded)))
  end)

  it("of a pipeline that makes a step slower than none", function()
    assert.equal("warning", severity("pipeline_avoidable", plan { global_batch_size = 64 }))
    -- Gradients over the slowest of networks: replicas cost more than stages.
    local stages = plan { global_batch_size = 64, gpus_per_node = 1, scale_up_gpus = 1, per_gpu = "1Gbps", pipeline = 8 }
    assert.decided(stages, "planned")
    assert.is_nil(severity("pipeline_avoidable", stages))
    assert.is_nil(severity("pipeline_avoidable", plan { global_batch_size = 64, pipeline = 1, schedule = "none" }))
  end)
end)

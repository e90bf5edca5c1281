-- SPDX-License-Identifier: Apache-2.0
-- The refusals: at the last value where each holds and the first where it does not, and what is planned instead.

local policy = require("pipeplan").policy("tests/fixtures/wide.lua"):with { fits_one_gpu = false, gpus = 128 }

-- An MoE whose experts talk over the network: one GPU to a scale-up domain.
local function spec(changes)
  local out = { "tests/policy/moe.json", pipeline = 4, expert = 2, scale_up_gpus = 1, gpus_per_node = 1 }
  for name, value in pairs(changes) do out[name] = value end
  return out
end

local function plan(changes) return policy:plan(spec(changes)) end

describe("a refusal", function()
  it("takes DualPipe only over links faster than 200 Gb/s, and DualPipeV over others", function()
    local slow = plan { per_gpu = "200Gbps" }
    assert.decided(slow, "planned", "slow_interconnect")
    assert.equal("dualpipe", slow.schedule_wanted)
    assert.equal("dualpipev", slow.schedule)
    assert.equal("dualpipe", plan { per_gpu = "201Gbps" }.schedule)
    assert.decided(plan { per_gpu = "200Gbps", schedule = "dualpipe" }, "refused", "slow_interconnect")
    assert.decided(plan { per_gpu = "200Gbps", schedule = "dualpipev" }, "planned")
  end)

  it("takes DualPipe only with an all-to-all kernel, and Zero Bubble without", function()
    local without = plan { alltoall_kernel = false }
    assert.decided(without, "planned", "no_alltoall_kernel")
    assert.equal("zero_bubble", without.schedule_family)
    assert.equal("dualpipe", plan { alltoall_kernel = "deepep" }.schedule)
    assert.decided(plan { alltoall_kernel = false, schedule = "dualpipe" }, "refused", "no_alltoall_kernel")
    assert.decided(plan { alltoall_kernel = false, schedule = "1f1b" }, "planned")
  end)

  it("the link before the kernel: with neither, DualPipeV, and the kernel is said too", function()
    local neither = plan { per_gpu = "200Gbps", alltoall_kernel = false }
    assert.decided(neither, "planned", "slow_interconnect")
    assert.decided(neither, "planned", "no_alltoall_kernel")
    assert.equal("dualpipev", neither.schedule)
  end)

  it("takes no pipeline for fewer than a billion tokens", function()
    local short = plan { tokens = 999999999, pipeline = 2 }
    assert.decided(short, "refused", "short_run")
    assert.equal(1, short.recommend.parallelism.pipeline)
    assert.decided(plan { tokens = 1000000000, pipeline = 2 }, "planned")
    assert.decided(plan { tokens = 999999999, pipeline = 1 }, "planned")
  end)

  it("is told in the order in which the policy states it", function()
    local both = plan { tokens = 999999999, alltoall_kernel = false, schedule = "dualpipe" }
    assert.equal("no_alltoall_kernel", both.reasons[1].id)
    assert.equal("short_run", both.reasons[2].id)
  end)
end)

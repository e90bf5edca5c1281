-- SPDX-License-Identifier: Apache-2.0
-- The all-to-all kernel: which one for which accelerators, networks and sizes of the expert group. Where each kernel works
-- is what its own documentation says; `pipeplan facts kernels` names the sources.

local policy = require("pipeplan").policy():with { fits_one_gpu = false }

-- The kernel of a plan whose experts are spread over that many ranks, and why. Family and fabric are facts: nothing else depends on them.
local function kernel(family, fabric, expert)
  local plan = policy:with { accelerator_family = family, fabric = fabric }:plan_spec({
    cluster = { gpus = 2 * expert, gpus_per_node = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { architecture = "moe", total = "4B", active = "1B", layers = 8, experts = expert },
    training = { tokens = "1T", sequence_length = 2048, global_batch_size = 8 * expert },
    parallelism = { tensor = 1, pipeline = 2, expert = expert, schedule = "1f1b" },
  }, ".")
  assert.decided(plan, "planned")
  return plan.alltoall_kernel.name, plan.alltoall_kernel.why
end

describe("the kernel", function()
  it("is Hybrid-EP where NVLink joins hosts", function()
    assert.equal("hybrid_ep", kernel("gb200", "infiniband", 8))
    assert.equal("hybrid_ep", kernel("gb300", "infiniband", 8))
  end)

  it("is DeepEP on Hopper and Blackwell, to 2,048 ranks", function()
    assert.equal("deepep", kernel("hopper", "infiniband", 8))
    assert.equal("deepep", kernel("hopper", "roce", 16))
    assert.equal("deepep", kernel("blackwell", "roce", 16))
    assert.equal("deepep", kernel("blackwell", "none", 8))
    assert.equal("deepep", kernel("hopper", "infiniband", 2048))
    assert.is_nil((kernel("hopper", "infiniband", 2049)))
  end)

  it("is DeepEP's first version on Ampere, to 160 ranks", function()
    assert.equal("deepep_v1", kernel("ampere", "infiniband", 16))
    assert.equal("deepep_v1", kernel("ampere", "infiniband", 160))
    assert.is_nil((kernel("ampere", "infiniband", 161)))
  end)

  it("is UCCL-EP over EFA, to 32 ranks", function()
    for _, family in ipairs { "ampere", "hopper", "blackwell" } do assert.equal("uccl_ep", kernel(family, "efa", 16)) end
    assert.equal("uccl_ep", kernel("hopper", "efa", 32))
    assert.is_nil((kernel("hopper", "efa", 33)))
  end)

  it("is the vendor's on AMD's accelerators and on Ascend", function()
    assert.equal("primus_turbo", kernel("mi300", "roce", 8))
    assert.equal("primus_turbo", kernel("mi350", "efa", 8))
    assert.equal("mindspeed", kernel("ascend", "roce", 8))
  end)

  it("is none that overlaps elsewhere", function()
    for _, place in ipairs { { "hopper", "slingshot" }, { "ada", "infiniband" }, { "ada", "efa" }, { "tpu", "ethernet" } } do
      assert.is_nil((kernel(place[1], place[2], 8)))
    end
  end)
end)

-- Tests of aws-p5.lua: run with `busted --lua=lua5.4 examples/sites`, or under ctest.

local pipeplan = require "pipeplan"

-- The date is fixed: the day after one of its overrides expires it falls away, and this file should not be what tells.
local site = pipeplan.policy("examples/sites/aws-p5.lua", { date = "2026-12-01" })
local default = pipeplan.policy()

describe("aws-p5", function()
  it("counts 64 GPUs as a large run already", function()
    assert.equal("1f1b", default:plan { "examples/specs/mixtral-8x7b.json" }.schedule_wanted)
    assert.equal("dualpipev", site:plan { "examples/specs/mixtral-8x7b.json" }.schedule_wanted)
  end)

  it("and 63 as a small one", function()
    assert.equal("small_run", site:with { gpus = 63 }:plan({ "examples/specs/mixtral-8x7b.json" }).decision)
  end)

  it("wants DualPipeV for an MoE whose experts are spread, and for no other", function()
    local function decision(expert, facts)
      return site:with(facts or {}):plan({ "examples/specs/mixtral-8x7b.json", expert = expert }).decision
    end
    assert.equal("moe_with_ep", decision(2))
    assert.is_not.equal("moe_with_ep", decision(1))
    assert.is_not.equal("moe_with_ep", decision(2, { architecture = "dense" }))
  end)

  it("uses UCCL-EP over EFA to 64 ranks, where the default has no kernel beyond 32", function()
    local spec = { "examples/specs/qwen3-235b.json", fabric = "efa", expert = 64 }
    assert.equal("uccl_ep", site:plan(spec).alltoall_kernel.name)
    assert.decided(default:plan(spec), "planned", "no_alltoall_kernel")
    spec.expert = 128
    assert.is_not.equal("uccl_ep", site:plan(spec).alltoall_kernel.name)
    spec.expert, spec.fabric = 64, "infiniband"
    assert.equal("deepep", site:plan(spec).alltoall_kernel.name)
  end)

  it("lets DualPipeV take an odd number of microbatches, and says so", function()
    local spec = { "examples/specs/rules/odd_microbatches.json", schedule = "dualpipev" }
    assert.decided(default:plan(spec), "rejected", "odd_microbatches")
    local plan = site:plan(spec)
    assert.decided(plan, "planned")
    assert.equal(33, plan.microbatches)
    assert.same({ "odd_microbatches", "our DualPipeV takes odd M" }, { plan.loosened[1].id, plan.loosened[1].reason })
    assert.same({ "uccl_ep_wide", "in production here" }, { plan.loosened[2].id, plan.loosened[2].reason })  -- more than the default's
  end)

  it("wants ZB-V for long sequences, dense models included", function()
    local plan = site:plan { "examples/specs/llama-3.1-405b.json", sequence_length = "128Ki", context = 16, recompute = "full" }
    assert.equal("zb_v", plan.schedule_wanted)
    local short = site:with { sequence_length = 128 * 1024 - 1 }
    assert.is_not.equal("long_context", short:plan({ "examples/specs/mixtral-8x7b.json" }).decision)
    local small = site:with { sequence_length = 128 * 1024, gpus = 32 }  -- before small_run
    assert.equal("long_context", small:plan({ "examples/specs/mixtral-8x7b.json" }).decision)
  end)

  it("takes odd M until the day its override expires, and not after", function()
    local spec = { "examples/specs/rules/odd_microbatches.json", schedule = "dualpipev" }
    assert.decided(pipeplan.policy("examples/sites/aws-p5.lua", { date = "2027-06-30" }):plan(spec), "planned")
    assert.decided(pipeplan.policy("examples/sites/aws-p5.lua", { date = "2027-07-01" }):plan(spec), "rejected", "odd_microbatches")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0

-- SPDX-License-Identifier: Apache-2.0
-- What loosens is told, whichever statement does it.

local planning = require "planning"  -- first: it loads the module

local policy_of = planning.policy_of

-- An MoE over Ethernet, where no kernel overlaps: DualPipe is refused.
local ethernet = {
  cluster = { gpus = 512, accelerator = "H100-SXM", network = { fabric = "ethernet", per_gpu = "400Gbps" } },
  model = { architecture = "moe", total = "235B", active = "22B", layers = 94, experts = 128 }, training = { tokens = "1T" },
  parallelism = { schedule = "dualpipe", expert = 32 },
}

local function message_of(source)
  local good, problem = pcall(policy_of, source)
  assert(not good, "the policy loads")
  assert.equal(6, problem.status)
  return problem.message
end

describe("a kernel statement", function()
  it("that claims overlap where there was none loosens, and its why is the reason", function()
    assert.decided(planning.plan(ethernet), "refused", "no_alltoall_kernel")
    local plan = planning.plan(ethernet, {}, policy_of [[kernel { id = "ours", expert_parallel = over(1), why = "measured here in May" }]])
    assert.decided(plan, "planned")
    assert.same({ "ours", "kernel", "measured here in May" }, { plan.loosened[1].id, plan.loosened[1].kind, plan.loosened[1].reason })
  end)

  it("that calls a kernel one that overlaps which the catalogue knows not to needs a reason of its own", function()
    local lie = [[kernel { id = "k", recommend = "nccl_alltoall", expert_parallel = over(1), why = "we say it overlaps" %s}]]
    assert.matches("the catalogue says that nccl_alltoall overlaps nothing; without overlapping = false: this lets more plans through, "
                   .. "so it needs reason", message_of(lie:format ""), 1, true)
    local plan = planning.plan(ethernet, {}, policy_of(lie:format ", reason = 'patched NCCL' "))
    assert.equal("patched NCCL", plan.loosened[1].reason)
    assert.same({}, policy_of(lie:format ", overlapping = false").policy.loosened)
  end)

  it("that says no more than one that stands already loosens nothing", function()
    local within = [[
      kernel { id = "uccl_small", recommend = "uccl_ep", accelerator_family = "hopper", fabric = "efa", expert_parallel = at_most(16),
               why = "w" }]]
    assert.same({}, policy_of(within).policy.loosened)
    assert.equal("uccl_wide", policy_of((within:gsub("16", "64"):gsub("uccl_small", "uccl_wide"))).policy.loosened[1].id)
  end)

  it("that is changed to match more needs a reason, to match less none", function()
    assert.matches("change 'uccl_ep': this lets more plans through", message_of [[change { id = "uccl_ep", expert_parallel = at_most(64) }]], 1, true)
    assert.equal("measured", policy_of([[change { id = "uccl_ep", expert_parallel = at_most(64), reason = "measured" }]]).policy.loosened[1].reason)
    assert.same({}, policy_of([[change { id = "uccl_ep", expert_parallel = at_most(16) }]]).policy.loosened)
    assert.matches("change 'nccl_alltoall': this lets more", message_of [[change { id = "nccl_alltoall", overlapping = true }]], 1, true)
  end)
end)

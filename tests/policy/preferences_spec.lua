-- SPDX-License-Identifier: Apache-2.0
-- What is chosen where several plans are about as good. Step times count as equal within 5 % here, not 1 %, and memory is
-- plenty where it is not the subject: so depths can be compared on specs that are quickly planned.

local pipeplan = require "pipeplan"

local function policy_with(set)
  set.tie_fraction = "5%"
  return pipeplan.policy(nil, { set = set }):with { fits_one_gpu = false }
end

local policy = policy_with {}

-- Layers of the usual shape and next to no vocabulary, so that the stages are equal; 16 microbatches per rank at any depth.
local function spec(gpus, layers, parallelism)
  parallelism.tensor = 1
  return {
    cluster = { gpus = gpus, accelerator = "H100-SXM", memory_per_gpu = "1000GiB", network = { fabric = "infiniband", per_gpu = "3200Gbps" } },
    model = { layers = layers, hidden = 4096, heads = 32, ffn = 16384, vocab = 256 },
    training = { tokens = "1T", sequence_length = 4096, global_batch_size = 16 * gpus, micro_batch_size = 1, recompute = "none", sharding = "optimizer" },
    parallelism = parallelism,
  }
end

describe("among plans that are about as fast", function()
  local function depth(gpus, layers, facts, of_policy)
    local plan = (of_policy or policy):with(facts):plan_spec(spec(gpus, layers, { schedule = "1f1b" }), ".")
    assert.decided(plan, "planned")
    return plan.parallelism.pipeline
  end
  local frontier = { architecture = "moe", total_parameters = 200e9 }

  it("a frontier MoE has a depth of 16 to 32", function()
    assert.equal(16, depth(16, 96, frontier))       -- of 2, 4, 8, 16
    assert.equal(3, depth(15, 60, frontier))        -- of 3, 5, 15
    assert.equal(3, depth(33, 99, frontier))        -- of 3, 11, 33
    assert.equal(32, depth(32, 96, frontier, policy_with { frontier_depth_low = 17 }))
  end)

  it("but any depth that the spec fixes", function()
    for gpus, layers in pairs { [15] = 60, [33] = 99 } do
      local plan = policy:with(frontier):plan_spec(spec(gpus, layers, { pipeline = gpus, schedule = "1f1b" }), ".")
      assert.decided(plan, "planned")
    end
  end)

  it("an MoE below 200 billion parameters has the smallest depth, and so has a dense model", function()
    assert.equal(2, depth(16, 96, { architecture = "moe", total_parameters = 199e9 }))
    assert.equal(2, depth(16, 96, { architecture = "dense", total_parameters = 200e9 }))
  end)

  it("a small cluster has a small depth, but not a large one", function()
    assert.equal(2, depth(16, 96, { gpus = 99 }))
    assert.decided(policy:with { gpus = 99 }:plan_spec(spec(5, 60, { pipeline = 5, schedule = "1f1b" }), "."), "planned")
    -- ZB-V, which stands first, spreads 30 layers evenly over 2 × 5 chunks but not over 2 × 2; ZB-H1 does over 2.
    local members = policy_with { zero_bubble_members = { "zb_v", "zb_h1" } }
    local run = spec(10, 30, {})
    run.framework = "zero-bubble"
    local plan = members:with { gpus = 100 }:plan_spec(run, ".")
    assert.equal("zb_v", plan.schedule)
    assert.equal(5, plan.parallelism.pipeline)
  end)
end)

describe("whatever the speed, where a site says so,", function()
  local any = pipeplan.policy("tests/fixtures/any_speed.lua", { set = { tie_fraction = "5%" } }):with { fits_one_gpu = false }
  -- Two experts, so at most two groups.
  local function experts(parallelism, changes)
    local out = {
      cluster = { gpus = 4, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = { architecture = "moe", total = "4B", active = "3B", layers = 32, experts = 2 },
      training = { tokens = "1T", sequence_length = 2048, global_batch_size = 32, micro_batch_size = 1, recompute = "none",
                   sharding = "optimizer" }, parallelism = parallelism,
    }
    for name, value in pairs(changes or {}) do out.training[name] = value end
    return out
  end

  it("experts of an MoE are spread", function()
    -- Between hosts of one GPU, with enough tokens that no layer waits for its host's launches: slower than every expert on every rank.
    local function between_hosts(expert)
      local run = experts({ pipeline = 2, tensor = 1, expert = expert }, { sequence_length = 8192, global_batch_size = 64 })
      run.cluster.gpus_per_node = 1
      return run
    end
    local together, free = any:plan_spec(between_hosts(1), "."), any:plan_spec(between_hosts(), ".")
    assert.equal(2, free.parallelism.expert)
    assert.is_true(free.step_seconds > together.step_seconds)
    assert.equal("expert_parallel_for_moe", free.policy_cost.statements[1].id)
    assert.equal(1, policy:plan_spec(between_hosts(), ".").parallelism.expert)   -- as shipped, no more than 5 % is given for it
    local dense = any:with { architecture = "dense" }:plan_spec(between_hosts(), ".")
    assert.equal(1, dense.parallelism.expert)
  end)

  it("tensor parallelism stays in the scale-up domain", function()
    -- Four sequences a step: the fewer replicas, the more microbatches; TP 4 is the fastest.
    for domain, expected in pairs { [8] = 4, [4] = 4, [2] = 2, [1] = 1 } do
      local run = spec(8, 32, { pipeline = 2, schedule = "1f1b" })
      run.model.hidden, run.model.heads, run.model.ffn = 8192, 64, 32768   -- wide enough that no layer of TP 4 waits for its host's launches
      run.parallelism.tensor, run.training.global_batch_size = nil, 4
      assert.equal(expected, any:with { scale_up_gpus = domain }:plan_spec(run, ".").parallelism.tensor)
    end
  end)

  it("spread experts come before that", function()
    -- An odd batch allows no second replica: on 4 GPUs P 2 with TP 2, over which experts can be spread, or P 4 with nothing to spread over.
    local run = experts({ schedule = "1f1b" }, { global_batch_size = 33 })
    local plan = any:with { scale_up_gpus = 1 }:plan_spec(run, ".")
    assert.equal(2, plan.parallelism.expert)
    assert.equal(2, plan.parallelism.tensor)
  end)
end)

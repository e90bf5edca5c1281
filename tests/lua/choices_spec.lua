-- SPDX-License-Identifier: Apache-2.0
-- What a spec leaves out is chosen: microbatch size, recompute, sharding, GPUs left idle. The expected values are what brute force over the
-- same choices finds, or follow from what is asked: more may be chosen from, never slower.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"

local plan = planning.plan

-- Llama 3 70B on H100, nothing said of the recipe.
local function llama(gpus, changes)
  return planning.merge({
    cluster = { gpus = gpus, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = "examples/models/llama-3-70b.json", training = { tokens = "1T", sequence_length = 4096, global_batch_size = 960 },
    parallelism = { context = 1 },
  }, changes)
end

local function fastest(result) return result.step_seconds / (1 + result.policy_cost.fraction) end

describe("what a spec leaves out", function()
  it("is as fast as the best of its choices given one by one", function()
    local best = math.huge
    for _, recompute in ipairs { "none", "norm,swiglu", "full" } do
      for _, micro in ipairs { 1, 2, 4, 8 } do
        local given = plan(llama(64, { training = { recompute = recompute, micro_batch_size = micro, sharding = "optimizer" } }))
        if given.status == "planned" then best = math.min(best, fastest(given)) end
      end
    end
    local chosen = plan(llama(64))
    assert.equal("planned", chosen.status)
    assert.near(best, fastest(chosen), 1e-9 * best)
    assert.is_true(chosen.policy_cost.fraction <= 0.05)
  end)

  it("stands in the plan and among what is assumed", function()
    local chosen = plan(llama(64))
    for _, field in ipairs { "training.micro_batch_size", "training.recompute", "training.sharding" } do
      assert.equal("chosen", planning.assumption(chosen, field).why)
    end
    assert.same({ 64, "optimizer" }, { chosen.gpus_used, chosen.sharding })
  end)

  it("plans a run that fits only with recompute, and says with what", function() -- Qwen3-235B on 64 H100
    local result = plan { cluster = { gpus = 64, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                          model = "examples/models/qwen3-235b-a22b.json",
                          training = { tokens = "1T", sequence_length = 4096, global_batch_size = 2048, precision = "bf16" } }
    assert.same({ "planned", "full" }, { result.status, result.recompute[1] })
    assert.is_true(result.step_seconds < 81.8)   -- TP 16 across hosts, without recompute, takes 196 s
  end)
end)

-- Qwen/Qwen3-30B-A3B's sizes, 30.5 B.
local qwen = { name = "qwen3-30b-a3b", layers = 48, hidden = 2048, heads = 32, kv_heads = 4, head_dim = 128, vocab = 151936, experts = 128,
               experts_per_token = 8, expert_ffn = 768, qk_norm = "head" }

describe("GPUs", function()
  it("that no layout can use well stay idle: 488 are never slower than 480, and 8 are said to be idle", function()
    local all, fewer = plan(llama(488)), plan(llama(480))
    assert.is_true(fastest(all) <= fastest(fewer) * (1 + 1e-12))
    assert.equal(480, all.gpus_used)
    assert.equal(488, all.cluster.gpus)
    assert.near(all.training_days * 24 * 488, all.gpu_hours, 1e-6 * all.gpu_hours)   -- idle ones are paid for
    assert.equal(8, planning.assumption(all, "gpus_used") and all.cluster.gpus - all.gpus_used)
  end)

  it("that the batch does not divide among stay idle too: 128 are never slower than 96 for a batch of 96", function()
    local function of(gpus)
      return plan { cluster = { gpus = gpus, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } }, model = qwen,
                    training = { tokens = "500B", sequence_length = 4096, global_batch_size = 96 }, parallelism = { pipeline = 2 } }
    end
    local fewer = of(96)
    for _, gpus in ipairs { 128, 160 } do
      local all = of(gpus)
      assert.same({ "planned", 96 }, { all.status, all.gpus_used })
      assert.is_true(fastest(all) <= fastest(fewer) * (1 + 1e-12))
    end
  end)

  it("may not stay idle where a policy says so", function()
    local none = planning.policy_of "set { idle_gpus = 0 }"
    local all = plan(llama(488), {}, none)   -- 61 nodes, and 61 divides neither the heads nor the batch
    assert.same({ "planned", 488, 61 }, { all.status, all.gpus_used, all.parallelism.pipeline })
    assert.is_true(all.step_seconds > plan(llama(488)).step_seconds)
  end)
end)

describe("a policy", function()
  it("says which choices there are", function()
    local full = planning.policy_of "set { recompute_choices = { 'full' }, micro_batch_choices = { 2 } }"
    local result = plan(llama(64), {}, full)
    assert.same({ "full", 2 }, { result.recompute[1], result.micro_batch_size })
  end)

  it("offers as many recipes as a search takes, and not one more", function()
    local function of(most)
      local sizes = {}
      for size = 1, most do sizes[size] = size end
      local words = "set { idle_gpus = 0, recompute_choices = { 'none' }, sharding_choices = { 'optimizer' }, micro_batch_choices = { %s } }"
      return failure.try(plan, llama(64), {}, planning.policy_of(words:format(table.concat(sizes, ", "))))
    end
    assert.is_true((of(256)))
    local good, problem = of(257)
    assert.same({ false, failure.status.policy_unloadable }, { good, problem.status })
  end)

  it("that offers more recipes than a search takes is told so", function()
    local sizes = {}
    for size = 1, 64 do sizes[size] = size end
    local many = planning.policy_of(string.format("set { micro_batch_choices = { %s } }", table.concat(sizes, ", ")))
    local good, problem = failure.try(plan, llama(64), {}, many)
    assert.is_false(good)
    assert.equal(failure.status.policy_unloadable, problem.status)
    assert.matches("micro_batch_choices, recompute_choices and sharding_choices, .* make %d+ recipes: expected at most 256", problem.message)
  end)

  it("has rules read what was chosen", function()
    local rule = planning.policy_of "reject { id = 'small', micro_batch_size = 1, pipeline_parallel = over(1), message = 'm' }"
    local result = plan(llama(64), {}, rule)
    assert.equal("planned", result.status)
    assert.is_true(result.micro_batch_size > 1)
  end)

  it("never gets a faster plan for a rejection", function()
    local free = fastest(plan(llama(64)))
    for _, text in ipairs { "recompute = 'modules'", "schedule = 'zb_v'", "tensor_parallel = over(2)", "micro_batch_size = over(1)" } do
      local result = plan(llama(64), {}, planning.policy_of("reject { id = 'r', message = 'm', " .. text .. " }"))
      assert.is_true(result.status ~= "planned" or fastest(result) >= free * (1 - 1e-12), text)
    end
  end)
end)

describe("a step", function()
  -- a split that less memory forces may be the faster one: it must have been a choice before
  it("of a fixed layout is never slower with more memory", function()
    local v3 = { cluster = { gpus = 2048, accelerator = "H800-SXM-80GB", alltoall_kernel = "deepep",
                             network = { fabric = "infiniband", per_gpu = "400Gbps" } },
                 model = "examples/models/deepseek-v3.json",
                 training = { tokens = "14.8T", sequence_length = 4096, micro_batch_size = 1, global_batch_size = 15360, precision = "fp8",
                              moments = "bf16", recompute = { "norm", "mla_up_projection", "swiglu" }, sharding = "optimizer" } }
    for _, layout in ipairs { { pipeline = 16, schedule = "dualpipe" }, { pipeline = 8, schedule = "dualpipev" },
                              { pipeline = 16, schedule = "zb_h1" }, { pipeline = 8, virtual = 2, schedule = "zb_v" } } do
      local before, planned = math.huge, 0
      for memory = 64, 144, 8 do
        local result = planning.plan(planning.merge(v3, { cluster = { memory_per_gpu = memory .. "GiB" },
                                                          parallelism = planning.merge({ tensor = 1, expert = 64 }, layout) }))
        if result.status == "planned" then
          planned = planned + 1
          assert.is_true(result.step_seconds <= before * (1 + 1e-9), layout.schedule .. " with " .. memory .. " GiB")
          before = result.step_seconds
        end
      end
      assert.is_true(planned > 4, layout.schedule .. " is planned " .. planned .. " times")
    end
  end)

  it("is never slower on faster links, with more memory, or with more choices", function()
    local base = fastest(plan(llama(64)))
    for _, better in ipairs { { cluster = { network = { per_gpu = "800Gbps" } } }, { cluster = { memory_per_gpu = "141GiB" } } } do
      assert.is_true(fastest(plan(llama(64, better))) <= base * (1 + 1e-9))
    end
    local fewer = planning.policy_of "set { micro_batch_choices = { 1 }, recompute_choices = { 'none', 'full' } }"
    assert.is_true(fastest(plan(llama(64), {}, fewer)) >= base * (1 - 1e-12))
  end)
end)

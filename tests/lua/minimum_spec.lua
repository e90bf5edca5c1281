-- SPDX-License-Identifier: Apache-2.0
-- gpus "minimum": on how few GPUs of a kind, and what keeps a run from fewer.

local planning = require "planning"

local plan, problem, merge = planning.plan, planning.problem, planning.merge

local function spec(model, training, parallelism, cluster)
  return {
    cluster = merge({ gpus = "minimum", accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, cluster),
    model = model, training = merge({ tokens = "1T", sequence_length = 4096, recompute = "full" }, training), parallelism = parallelism,
  }
end

local qwen, deepseek = "examples/models/qwen3-235b-a22b.json", "examples/models/deepseek-v3.json"

describe("the fewest GPUs", function()
  -- THUDM/slime#280: 235 B parameters of 18 bytes need 64 GPUs of 80 GB with Adam on the GPU; verl-project/verl#3019, #3360: 32 with Adam on the
  -- CPU, and DeepSeek-V3 96, are what was used
  it("of Qwen3-235B are 64 with Adam on the GPU, at most 32 with Adam on the CPU; of DeepSeek-V3 at most 96", function()
    local resident = plan(spec(qwen, { global_batch_size = 128 }))
    assert.same({ "planned", 64, 64 }, { resident.status, resident.cluster.gpus, resident.minimum.gpus })
    assert.is_true(plan(spec(qwen, { global_batch_size = 128, gradients = "bf16", optimizer_offload = 1 })).minimum.gpus <= 32)
    assert.is_true(plan(spec(deepseek, { global_batch_size = 192, gradients = "bf16", optimizer_offload = 1 })).minimum.gpus <= 96)
  end)

  it("cannot be fewer than what holds weights, gradients and optimizer: by hand, 16 bytes a parameter in 0.92 of 79.65 GiB less 2.4", function()
    local found = plan(spec(qwen, { global_batch_size = 112, gradients = "bf16" })).minimum
    -- 612, 160 and 170 MiB of a context, libraries and NCCL beside its first communicator, 1.5 GiB of an all-to-all's buffers
    local room = (81559 / 1024 * 0.92 - 942 / 1024 - 1.5) * 2 ^ 30
    assert.equal(math.ceil(235093634560 * 16 / room), found.state_gpus)
    assert.same({ "state", found.state_gpus - 1 }, { found.fewer[1].id, found.fewer[1].gpus })
  end)

  it("do not hold the run one host smaller, and the rank and bytes that stand against it are told", function()
    local base = spec("examples/models/llama-3.1-405b.json", { global_batch_size = 2016, sequence_length = 8192 })
    local found = plan(base)
    assert.equal("planned", found.status)
    local fewer = found.minimum.fewer[#found.minimum.fewer]
    assert.equal("does_not_fit", fewer.id)
    assert.matches("too much: weights .*, gradients .*, optimizer .*, activations .*, buffers .* GiB", fewer.message)
    assert.is_true(fewer.missing_bytes > 0 and fewer.rank >= 0)
    for gpus = fewer.gpus, found.minimum.gpus - 8, 8 do
      assert.are_not.equal("planned", plan(merge(base, { cluster = { gpus = gpus } })).status)
    end
    assert.matches("GPUs are the fewest; not on", planning.page_of(found), 1, true)
  end)

  it("of a small model are few, without a pipeline", function()
    local found = plan(spec("examples/models/qwen3-0.6b.json", { global_batch_size = 64 }))
    assert.same({ "planned", 1, 1, "none" }, { found.status, found.minimum.gpus, found.parallelism.pipeline, found.schedule })
    assert.is_not_nil(planning.assumption(found, "parallelism.pipeline"))
    local page = planning.page_of(found)
    assert.matches("1 GPU is enough", page, 1, true)
    assert.is_nil(page:find("run in", 1, true))
  end)

  local seventy = { architecture = "dense", total = "70B", layers = 80 }

  -- ZeRO-3 keeps no weights beside the optimizer's: 4 bytes of master weights, 8 of moments, 4 of gradients; with weights it is 18
  it("are not more than with a sharding that the plan may choose anyway", function()
    local base = merge(spec(seventy, { global_batch_size = 512 }), { framework = "megatron" })
    base.training.recompute = nil
    local free = plan(base).minimum
    assert.equal(16, free.gpus)
    assert.is_true(math.abs(free.state_bytes / (70e9 * 16) - 1) < 2e-3)
    assert.equal(16, plan(merge(base, { training = { sharding = "parameters" } })).minimum.gpus)
    local kept = plan(merge(base, { training = { sharding = "optimizer" } })).minimum
    assert.equal(24, kept.gpus)
    assert.is_true(math.abs(kept.state_bytes / (70e9 * 18) - 1) < 2e-3)
  end)

  it("without a pipeline stay without one in what would be otherwise", function()
    local base = spec(seventy, { global_batch_size = 512, lora_rank = 16 })
    base.training.recompute = nil
    local request = require("pipeplan.input.spec").from_table(base, ".")
    local why = require("pipeplan.plan.explain").questions "pipeline=2"
    local found = require("pipeplan.plan.init").plan { request = request, policy = planning.policy.policy, explain = true, why = why }
    assert.same({ 2, "none" }, { found.minimum.gpus, found.schedule })
    for _, change in ipairs(found.explanation.changes) do
      -- twice the activations fit no longer; the tokens of a run and the speed of its network take no memory
      assert.equal(change.field == "training.sequence_length" and "refused" or "planned", change.status, change.words)
      assert.equal(change.field ~= "cluster.gpus", change.effect:find("on 2 GPUs, ", 1, true) == 1)
    end
    assert.matches("on the fewest GPUs the run fits without a pipeline alone", found.explanation.answers[1].answer, 1, true)
    assert.equal("planned", plan(merge(base, { training = { tokens = "1B" } })).status)
  end)

  it("are P × max(TP × CP, EP × ETP) for a fixed layout", function() -- Megatron-Bridge skills/nemo-mbridge-perf-parallelism-strategies
    local small = { layers = 24, hidden = 1024, heads = 16, kv_heads = 8, head_dim = 64, vocab = 32000, experts = 64, experts_per_token = 4,
                    expert_ffn = 512 }
    for _, row in ipairs { { 1, 2, 1, 8, 1, 8 }, { 1, 2, 4, 8, 1, 8 }, { 1, 2, 1, 4, 2, 8 } } do
      local found = plan(spec(small, { global_batch_size = 64 },
                              { pipeline = row[1], tensor = row[2], context = row[3], expert = row[4], expert_tensor = row[5] }))
      assert.equal(row[6], found.minimum.gpus)
    end
  end)

  it("are a multiple of what the spec fixes, which is said", function()
    local found = plan(spec("examples/models/mixtral-8x7b.json", { global_batch_size = 1024 },
                            { tensor = 2, context = 1, data = 4, pipeline = 4 }))
    assert.same({ 32, "contradiction", "the fixed layout takes 32" }, { found.minimum.gpus, found.minimum.fewer[1].id,
                                                                         found.minimum.fewer[1].message })
  end)
end)

describe("where no number of GPUs will do", function()
  it("the plan is refused and says how many were tried", function()
    local found = plan(spec(deepseek, { global_batch_size = 15360 }, { tensor = 1, expert = 8 }, { memory_per_gpu = "20GiB" }))
    assert.equal("no_count_fits", found.reasons[1].id)
    assert.is_nil(found.minimum)
    assert.is_nil(found.gpus_needed)
    assert.is_true(planning.has(found.reasons, "does_not_fit"))
  end)

  it("because the spec contradicts itself, that is the answer", function()
    assert.matches("not a multiple of microbatch size 1 × data 3 = 3", problem(spec(qwen, { global_batch_size = 128 }, {
      tensor = 2, context = 1, pipeline = 4, data = 3 })).message)
    assert.matches("the model has 128 experts", problem(spec(qwen, {}, { expert = 256 })).message, 1, true)
  end)

  it("a word that is none is answered with the word", function()
    assert.matches('cluster.gpus is "minimal": expected a number of GPUs such as 2048, or "minimum"',
                   problem(spec(qwen, {}, {}, { gpus = "minimal" })).message, 1, true)
    assert.matches('at least 1 and at most 10000000, or "minimum"', problem(spec(qwen, {}, {}, { gpus = 0 })).message, 1, true)
  end)
end)

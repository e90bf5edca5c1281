-- SPDX-License-Identifier: Apache-2.0
-- Adapters of low rank (LoRA): the weights are frozen, and only the adapters have gradients, state and W.

local pipeplan = require "pipeplan"

local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })
local hidden, ffn, layers, vocab = 2048, 8192, 24, 256
local parameters = layers * (4 * hidden ^ 2 + 3 * hidden * ffn + 2 * hidden) + 2 * vocab * hidden + hidden

local function planned(rank)
  return policy:plan_spec({
    cluster = { gpus = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
    model = { layers = layers, hidden = hidden, heads = 16, kv_heads = 16, ffn = ffn, vocab = vocab },
    training = { tokens = "1B", sequence_length = 2048, global_batch_size = 64, micro_batch_size = 8, lora_rank = rank, sharding = "none" },
    parallelism = { pipeline = 2, tensor = 1, schedule = "1f1b", layers_per_stage = { 12, 12 } },
  }, ".")
end

describe("adapters of rank 16", function()
  local whole, adapted = planned(), planned(16)

  it("of Llama 3.1 8B are 41,943,040 parameters, as its trainers print: keys and values are as narrow as their heads are few", function()
    local plan = policy:plan_spec({
      cluster = { gpus = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = "examples/models/llama-3.1-8b.json",
      training = { tokens = "1B", sequence_length = 2048, global_batch_size = 64, lora_rank = 16, sharding = "none" },
      parallelism = { pipeline = 2, tensor = 1, schedule = "1f1b", layers_per_stage = { 16, 16 } },
    }, ".")
    local held = 0
    for _, rank in ipairs(plan.memory.ranks) do held = held + rank.gradients_bytes end
    assert.near(4 * 41943040, held, 1e-6 * held)
  end)

  it("keep gradients and state of 16 (n + k) parameters a weight n × k: four of attention, three of SwiGLU", function()
    local adapters = layers * 16 * (4 * 2 * hidden + 3 * (hidden + ffn))
    local held = 0
    for _, rank in ipairs(adapted.memory.ranks) do held = held + rank.gradients_bytes end
    assert.near(4 * adapters, held, 1e-6 * held)
    assert.equal(whole.memory.ranks[1].parameters_bytes, adapted.memory.ranks[1].parameters_bytes)
    assert.near(adapted.memory.ranks[1].gradients_bytes * 3, adapted.memory.ranks[1].optimizer_bytes, 1)   -- 12 bytes for 4
  end)

  it("need no products for the gradients of frozen weights", function()
    local share = 16 * (4 * 2 * hidden + 3 * (hidden + ffn)) * layers / parameters
    for i, stage in ipairs(adapted.stages) do
      assert.near(whole.stages[i].forward_seconds, stage.forward_seconds, 1e-12)
      assert.near(share * whole.stages[i].weight_seconds, stage.weight_seconds, 5e-3 * whole.stages[i].weight_seconds)
    end
    assert.is_true(adapted.step_seconds < whole.step_seconds)
  end)

  it("count two of a token's three products in the MFU", function()
    local ratio = (adapted.mfu_fraction * adapted.step_seconds) / (whole.mfu_fraction * whole.step_seconds)
    assert.near(2 / 3, ratio, 0.01)
  end)
end)

describe("what would fit", function()
  it("names adapters, priced", function()
    local plan = pipeplan.policy(nil, { date = "2026-11-27" }):plan_spec({
      cluster = { gpus = 16, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = "examples/models/llama-3-70b.json",
      training = { tokens = "20B", sequence_length = 4096, global_batch_size = 64 },
    }, ".")
    local found
    for _, way in ipairs(plan.ways_to_fit) do found = found or way.change:find "lora_rank 16" and way end
    assert.is_true(found and found.step_seconds > 0)
  end)
end)

-- torch.distributed.fsdp keeps each parameter once, as it is updated (fully_shard, MixedPrecisionPolicy): those that do not train too.
describe("adapters beside parameters that are sharded as the optimizer updates them", function()
  it("leave the frozen weights where they are, in fp32", function()
    local function of(rank)
      return policy:plan_spec({
        cluster = { gpus = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } }, framework = "torchtitan",
        model = { layers = layers, hidden = hidden, heads = 16, kv_heads = 16, ffn = ffn, vocab = vocab },
        training = { tokens = "1B", sequence_length = 2048, global_batch_size = 64, micro_batch_size = 1, recompute = "none",
                     lora_rank = rank, sharding = "parameters" },
        parallelism = { pipeline = 1, tensor = 1 },
      }, ".").memory.ranks[1]
    end
    local adapters = layers * 16 * (4 * 2 * hidden + 3 * (hidden + ffn))
    assert.near(4 * (parameters - adapters) / 8, of(16).parameters_bytes, 1e-6 * parameters)
  end)
end)

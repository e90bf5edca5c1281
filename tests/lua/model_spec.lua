-- SPDX-License-Identifier: Apache-2.0
-- engine.model: what Lua sees of parameters, FLOPs and stages. The figures themselves are tested in tests/unit/model_test.c.

require "pipeplan"
local model = require("engine").model

local function deepseek_v3()
  return {
    layers = 61, hidden = 7168, vocab = 129280, attention = "mla", heads = 128, q_lora_rank = 1536, kv_lora_rank = 512,
    qk_nope_dim = 128, qk_rope_dim = 64, v_dim = 128, ffn = 18432, experts = 256, experts_per_token = 8, expert_ffn = 2048,
    shared_ffn = 2048, router_correction_bias = true, first_dense = 3, mtp_layers = 1,
  }
end

local function llama_3_8b(changes)
  local shape = { layers = 32, hidden = 4096, vocab = 128256, heads = 32, kv_heads = 8, ffn = 14336 }
  for name, value in pairs(changes or {}) do shape[name] = value end
  return shape
end

local function error_of(call, ...)
  local good, message = pcall(call, ...)
  assert.is_false(good)
  return message
end

describe("engine.model.parameters", function()
  it("counts DeepSeek-V3 exactly", function()
    -- 671,026,419,200: sum over the tensors of the published checkpoint without its MTP module
    local counted = model.parameters(deepseek_v3())
    assert.equal(671026419200, counted.total)
    assert.is_true(math.abs(counted.mtp - 11.61e9) < 0.01e9)
    assert.equal(256 * 3 * 7168 * 2048, counted.blocks.moe.expert)
  end)

  it("takes head_dim from hidden and heads, and gated from habit", function()
    assert.equal(8030261248, model.parameters(llama_3_8b()).total)
    assert.equal(8030261248, model.parameters(llama_3_8b{ head_dim = 128.0, gated = true, qk_norm = "none" }).total)
  end)

  it("lets dense layers be named one by one", function()
    local shape = deepseek_v3()
    shape.first_dense, shape.dense_layers = nil, { 1, 2, 3 }
    assert.equal(671026419200, model.parameters(shape).total)
  end)

  it("takes every k-th layer as MoE", function()
    local shape = llama_3_8b{ experts = 4, experts_per_token = 1, expert_ffn = 14336, moe_every = 2 }
    -- 16 of 32 layers have three more experts of 3 × 4096 × 14336 and a router of 4096 × 4
    assert.equal(8030261248 + 16 * (3 * 3 * 4096 * 14336 + 4096 * 4), model.parameters(shape).total)
  end)
end)

describe("engine.model.flops", function()
  it("gives Megatron's figure per token and what one block adds", function()
    local flops = model.flops(deepseek_v3(), 4096)
    assert.equal("2.599930e+11", string.format("%.6e", flops.per_token))
    assert.equal(2 * 8 * 3 * 7168 * 2048, flops.blocks.moe.expert)
    assert.equal(2 * 7168 * 256, flops.blocks.moe.router)
    assert.equal(2 * 129280 * 7168, flops.blocks.head.linear)
    -- queries and keys of 128 × 192, values of 128 × 128, half of the mask
    assert.equal(4096 * 128 * (192 + 128), flops.blocks.dense.attention)
  end)
end)

describe("engine.model.stages", function()
  it("lists what each stage holds", function()
    local stages = model.stages(deepseek_v3(), 16)
    assert.equal(16, #stages)
    assert.same({ embedding = 1, dense = 3, moe = 0, head = 0, mtp = 0 }, stages[1])
    assert.same({ embedding = 0, dense = 0, moe = 3, head = 1, mtp = 1 }, stages[16])
  end)

  it("takes a split as given", function()
    local stages = model.stages(llama_3_8b(), 3, { 10, 12, 10 })
    assert.equal(12, stages[2].dense)
    local message = error_of(model.stages, llama_3_8b(), 3, { 10, 11, 10 })
    assert.matches("layers_per_stage adds up to 31, the model has 32 layers", message, 1, true)
    assert.matches("'layers_per_stage' must list 3 stages", error_of(model.stages, llama_3_8b(), 3, { 10, 22 }))
  end)

  it("answers more stages than layers with the rule", function()
    local stages, illegal = model.stages(llama_3_8b(), 64)
    assert.is_nil(stages)
    assert.equal("engine.layers_below_stages", illegal.id)
    assert.equal(32, illegal.nearest)
  end)
end)

describe("engine.model.fields", function()
  it("lists the keys of a shape, sorted", function()
    assert.equal("attention", model.fields[1])
    assert.equal("zero_experts", model.fields[#model.fields])
    for i = 2, #model.fields do assert.is_true(model.fields[i - 1] < model.fields[i]) end
  end)
end)

describe("a shape", function()
  local function refused(changes, message)
    assert.matches(message, error_of(model.parameters, llama_3_8b(changes)), 1, true)
  end

  it("is refused with the field, what was expected and what came", function()
    refused({ layers = 0 }, "model shape: 'layers' must be an integer ≥ 1, got 0")
    refused({ layers = -3 }, "model shape: 'layers' must be an integer ≥ 1, got -3")
    refused({ layers = 5000 }, "model shape: 'layers' must be at most 1024, got 5000")
    refused({ hidden = "4096" }, "model shape: 'hidden' must be an integer ≥ 1, got the string '4096'")
    refused({ kv_heads = 12 }, "model shape: 'kv_heads' must divide 'heads', got 12 and 32")
    refused({ heads = 33, kv_heads = 33 }, "model shape: 'head_dim' is needed, since 'heads' (33) does not divide 'hidden' (4096)")
    refused({ experts = 8 }, "'experts_per_token' must be from 1 to 8, got 0")
    refused({ experts = 8, experts_per_token = 2, expert_ffn = 64, dense_layers = { 33 } },
            "'dense_layers' must hold layer numbers from 1 to 32, entry 1 is 33")
    local twice = {}
    for i = 1, 33 do twice[i] = 1 end
    refused({ experts = 8, experts_per_token = 2, expert_ffn = 64, dense_layers = twice }, "'dense_layers' has more entries than there are layers")
    refused({ attention = "linear" },
            "'attention' must be gqa, mla, none, gated_delta, kimi_delta, mamba2, lightning, conv, mamba1 or compressed, got the string 'linear'")
    refused({ kvheads = 8 }, "model shape: no argument 'kvheads', did you mean 'kv_heads'?")
  end)
end)

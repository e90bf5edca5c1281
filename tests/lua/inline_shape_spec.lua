-- SPDX-License-Identifier: Apache-2.0
-- Inline shapes: what is derived is plausible, listed, and adds up.

require "pipeplan"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local inline = require "pipeplan.input.inline_shape"

local function within(fraction, value, expected)
  assert.is_true(math.abs(value / expected - 1) <= fraction, string.format("%g is not within %g of %g", value, fraction, expected))
end

local function refusal(given)
  local good, problem = pcall(inline.read, given, "spec.json")
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  return problem.message
end

describe("an inline mixture of experts", function()
  -- total, active, layers as published: DeepSeek-V3, Mixtral 8x7B and 8x22B, Qwen3-235B and 30B, Kimi-K2, gpt-oss-120b, GLM-4.5,
  -- DeepSeek-V2-Lite, Qwen1.5-MoE, Llama-4 Maverick, DeepSeek-V4-Flash, Kimi-K3
  local published = {
    { 671e9, 37e9, 61 }, { 46.7e9, 12.9e9, 32 }, { 141e9, 39e9, 56 }, { 235e9, 22e9, 94 }, { 30.5e9, 3.3e9, 48 }, { 1e12, 32e9, 61 },
    { 117e9, 5.1e9, 36 }, { 355e9, 32e9, 92 }, { 16e9, 2.4e9, 27 }, { 14.3e9, 2.7e9, 24 }, { 400e9, 17e9, 48 }, { 284e9, 13e9, 43 },
    { 2.8e12, 104e9, 93 },
  }
  for _, case in ipairs(published) do
    it(string.format("of %g with %g active comes out within 1 %%", case[1], case[2]), function()
      local model = inline.read({ architecture = "moe", total = case[1], active = case[2], layers = case[3] }, "spec.json")
      local totals = engine.model.parameters(model.shape)
      within(0.01, totals.total, case[1])
      within(0.01, totals.active, case[2])
      assert.equal(math.tointeger(case[1]), model.total_parameters)
      assert.equal(math.tointeger(case[2]), model.active_parameters)
      local shape = model.shape
      assert.equal(0, shape.hidden % 512)
      assert.equal(0, shape.heads % shape.kv_heads)
      assert.is_true(shape.experts_per_token <= 12 and shape.experts <= 512)
    end)
  end

  it("of DeepSeek-V3's size gets its hidden size and 8 of 256 experts", function()
    local shape = inline.read({ architecture = "moe", total = 671e9, active = 37e9, layers = 61 }, "spec.json").shape
    assert.equal(7168, shape.hidden)  -- as in its config.json
    assert.equal(256, shape.experts)
    assert.equal(8, shape.experts_per_token)
  end)

  it("keeps the experts that it is given", function()
    local model = inline.read({ architecture = "moe", total = 46.7e9, active = 12.9e9, layers = 32, hidden = 4096, experts = 8,
                              experts_per_token = 2 }, "spec.json")
    assert.equal(8, model.shape.experts)
    within(0.01, engine.model.parameters(model.shape).total, 46.7e9)
    within(0.05, engine.model.parameters(model.shape).active, 12.9e9)
  end)
end)

describe("an inline dense model", function()
  for _, case in ipairs{ { 8e9, 32, 4096 }, { 70e9, 80, 8192 }, { 405e9, 126, 16384 }, { 175e9, 96, 12288 }, { 7e9, 32, 4096 } } do
    it(string.format("of %g gets the usual hidden size", case[1]), function()
      -- Llama-3 8B, 70B, 405B, GPT-3, Llama-2 7B
      local model = inline.read({ architecture = "dense", total = case[1], layers = case[2] }, "spec.json")
      assert.equal(case[3], model.shape.hidden)
      within(0.01, engine.model.parameters(model.shape).total, case[1])
      assert.equal(model.total_parameters, model.active_parameters)
    end)
  end

  it("lists each derivation with its reason", function()
    local fields = {}
    for i, assumption in ipairs(inline.read({ total = 8e9, layers = 32 }, "spec.json").assumptions) do
      fields[i] = assumption.field
      assert.is_true(#assumption.why > 0)
    end
    assert.same({ "model.vocab", "model.hidden", "model.head_dim", "model.heads", "model.kv_heads", "model.ffn" }, fields)
  end)

  it("comes out within 1 % whatever its size", function()
    for total = 7, 12, 0.25 do
      for _, layers in ipairs{ 4, 12, 32, 61, 96, 128 } do
        local parameters = 10 ^ total
        local good, model = pcall(inline.read, { total = parameters, layers = layers }, "spec.json")
        if good then
          within(0.01, engine.model.parameters(model.shape).total, parameters)
        else
          assert.is_true(failure.is(model), tostring(model))
        end
      end
    end
  end)
end)

describe("a complete inline shape", function()
  local function llama_2_7b(changes)
    local shape = { layers = 32, hidden = 4096, vocab = 32000, heads = 32, ffn = 11008 }
    for key, value in pairs(changes or {}) do shape[key] = value end
    return shape
  end

  it("is taken as it is", function()
    local model = inline.read(llama_2_7b{ name = "mine", max_positions = 4096 }, "spec.json")
    assert.equal(6738415616, model.total_parameters)
    assert.same({}, model.assumptions)
    assert.equal("mine", model.name)
    assert.equal("dense", model.architecture)
    assert.equal(4096, model.max_positions)
  end)

  it("keeps a rounded total that is near it", function()
    assert.equal(7000000000, inline.read(llama_2_7b{ total = 7e9 }, "spec.json").total_parameters)
    assert.equal("spec.json: model 'total' must be near what the shape adds up to (6738415616), got 8000000000",
                 refusal(llama_2_7b{ total = 8e9 }))
  end)

  it("may state active without the embedding", function()
    -- DeepSeek-V3: 37 B leaves the embedding out, 37.55 B does not
    for _, active in ipairs{ 36.6e9, 37.55e9 } do
      local model = inline.read({ layers = 61, hidden = 7168, vocab = 129280, attention = "mla", heads = 128, q_lora_rank = 1536,
                                kv_lora_rank = 512, qk_nope_dim = 128, qk_rope_dim = 64, v_dim = 128, ffn = 18432, experts = 256,
                                experts_per_token = 8, expert_ffn = 2048, shared_ffn = 2048,
                                router_correction_bias = true, first_dense = 3, total = 671e9, active = active }, "spec.json")
      assert.equal(math.tointeger(active), model.active_parameters)
      assert.equal("moe", model.architecture)
    end
  end)
end)

describe("an inline shape with anything of experts", function()
  -- Llama-2 7B's shape, which alone is dense
  local function read(changes)
    local shape = { layers = 32, hidden = 4096, vocab = 32000, heads = 32, ffn = 11008 }
    for key, value in pairs(changes) do shape[key] = value end
    return pcall(inline.read, shape, "spec.json")
  end

  it("is no dense model", function()
    for key, value in pairs{ experts = 8, experts_per_token = 2, expert_ffn = 1024, shared_ffn = 1024, shared_gate = true, router_bias = true,
                             expert_bias = true, router_correction_bias = true, first_dense = 3, dense_layers = { 1, 3 }, moe_every = 2 } do
      local good, problem = read{ [key] = value }
      assert.is_false(good, key)
      assert.equal(string.format("spec.json: model '%s' must be an integer ≥ 1 in a model with experts, or total and active given, got nothing",
                                 key == "experts" and "experts_per_token" or "experts"), problem.message)
      good, problem = read{ [key] = value, architecture = "dense" }
      assert.is_false(good, key)
      assert.matches(string.format("model '%s' must be absent from a dense model", key), problem.message, 1, true)
    end
  end)

  it("is a dense model where it says that there are none", function()
    local good, model = read{ experts = 0, shared_ffn = 0, first_dense = 0, shared_gate = false, dense_layers = {}, moe_every = 1 }
    assert.is_true(good, tostring(model))
    assert.equal("dense", model.architecture)
    assert.equal(6738415616, model.total_parameters)
  end)

  it("has its experts derived, with an assumption for each size, where total and active are given", function()
    -- Mixtral 8x7B: 8 experts, 2 for a token
    local good, model = pcall(inline.read, { architecture = "moe", total = 46702792704, active = 12879925248, layers = 32, hidden = 4096,
                                           vocab = 32000, heads = 32, kv_heads = 8 }, "spec.json")
    assert.is_true(good, tostring(model))
    local derived = {}
    for _, assumption in ipairs(model.assumptions) do derived[assumption.field] = assumption.value end
    assert.equal(model.shape.experts, derived["model.experts"])
    assert.equal(model.shape.experts_per_token, derived["model.experts_per_token"])
    assert.equal(model.shape.expert_ffn, derived["model.expert_ffn"])
    assert.is_true(model.shape.experts >= 8)
  end)

  it("may say of a dense model that all parameters are at work", function()
    local good, model = read{ architecture = "dense", total = 6738415616, active = 6738415616 }
    assert.is_true(good, tostring(model))
    assert.equal(6738415616, model.active_parameters)
  end)
end)

describe("an inline shape that cannot be is one clear line:", function()
  local function says(message, given)
    it(message, function() assert.equal("spec.json: " .. message, refusal(given)) end)
  end
  says("model has no field 'totl', did you mean 'total'?", { totl = 7e9, layers = 32 })
  says("model must be a file name or an object", 7)
  says("model 'layers' must be an integer from 1 to 1024, got nothing", { total = 7e9 })
  says("model 'layers' must be an integer ≥ 1, got 0", { total = 7e9, layers = 0 })
  says("model 'layers' must be an integer ≥ 1, got 2.5", { total = 7e9, layers = 2.5 })
  says("model 'total' must be given when the shape is not complete: a number of parameters, got nothing", { layers = 32 })
  says("model 'total' must be a number of parameters ≥ 1, got 'many'", { layers = 32, total = "many" })
  says("model 'active' must be given when the shape is not complete: the parameters that one token uses, got nothing",
       { architecture = "moe", total = 671e9, layers = 61 })
  says("model 'active' must be less than total (1000000000), got 2000000000",
       { architecture = "moe", total = 1e9, active = 2e9, layers = 8 })
  says("model 'active' must be more for a total of 671000000000: no usual number of experts leaves so few at work, got 1000000000",
       { architecture = "moe", total = 671e9, active = 1e9, layers = 61 })
  says("model 'architecture' must be 'dense' or 'moe', got 'sparse'", { architecture = "sparse", total = 7e9, layers = 32 })
  says("model 'experts' must be absent from a dense model, got 8", { architecture = "dense", experts = 8, total = 7e9, layers = 32 })
  says("model 'experts' must be an integer ≥ 1 in a model with experts, got 0", { architecture = "moe", experts = 0, layers = 32 })
  says("model 'active' must be the same as total, or absent from a dense model: all parameters are at work, got 3000000000",
       { architecture = "dense", total = 7000000000, active = 3000000000, layers = 32 })
  says("model: 'kv_heads' must divide 'heads', got 5 and 32",
       { layers = 32, hidden = 4096, vocab = 32000, heads = 32, kv_heads = 5, ffn = 11008 })
end)

-- SPDX-License-Identifier: Apache-2.0
-- Step 3.5 and 3.7: layers with a window may have more heads, and a gate for each head or each of its channels.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"

-- The published Step-3.7-Flash, with changes: every fourth layer attends to all, the others to 512 tokens.
local function step(changes)
  local types = {}
  for i = 1, 45 do types[i] = i % 4 == 1 and "full_attention" or "sliding_attention" end
  local config = {
    architectures = { "Step3p7FlashForCausalLM" }, model_type = "step3p7", num_hidden_layers = 45, hidden_size = 4096, num_attention_heads = 64,
    num_key_value_heads = 8, head_dim = 128, vocab_size = 128896, max_position_embeddings = 65536, intermediate_size = 11264, sliding_window = 512,
    layer_types = types, first_k_dense_replace = 3, num_experts = 288, num_experts_per_tok = 8, moe_intermediate_size = 1280,
    share_expert_dim = 1280, n_shared_experts = 1, scoring_func = "sigmoid", num_nextn_predict_layers = 3, use_moe_router_bias = true,
    moe_router_scaling_factor = 3.0, tie_word_embeddings = false,
  }
  for key, value in pairs(changes or {}) do config[key] = value end
  return config
end

local function parameters(changes) return hf.read(step(changes), "config.json").total_parameters end

describe("a file of Step 3.7", function()
  -- Step3p7TextModel of transformers 5.24.0 on the meta device with an output of its own, and 42 buffers of 288 that routing adds: 195,844,496,640,
  -- 196,956,118,272 and 199,003,593,984, and 12,096 each. Of the experts 190,253,629,440 parameters, of which a token sees 8 in 288.
  it("has the parameters of its class, with more heads in layers with a window and with either gate", function()
    local plain = hf.read(step(), "config.json")
    assert.equal(195844496640 + 12096, plain.total_parameters)
    assert.equal(195844496640 + 12096 - 190253629440 // 288 * 280, plain.active_parameters)
    assert.equal(196956118272 + 12096, parameters { num_sliding_attention_heads = 96 })
    assert.equal(196956118272 + 12096, parameters { attention_other_setting = { num_attention_heads = 96, attention_type = "sliding_attention" } })
    assert.equal(199003593984 + 12096, parameters { num_sliding_attention_heads = 96, gating = "per-channel" })
  end)

  it("that does not tell the heads of layers with a window is taken as its class does, and the plan says so", function()
    local said
    for _, one in ipairs(hf.read(step(), "config.json").assumptions) do
      if one.field == "model.num_sliding_attention_heads" then said = one end
    end
    assert.equal(64, said.value)
  end)

  it("may have lists that go on with the layers of its MTP modules", function()
    local types = {}
    for i = 1, 48 do types[i] = i % 4 == 1 and "full_attention" or "sliding_attention" end
    assert.equal(195844496640 + 12096, parameters { layer_types = types })
    assert.equal(195844496640 + 12096, parameters { moe_layers_enum = table.concat({ 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
      20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44 }, ",") })
  end)

  it("that says what is not known is refused by that", function()
    for what, changes in pairs {
      ["dense layers that 'first_k_dense_replace' does not tell"] = { first_k_dense_replace = 2 },
      ["another output gate"] = { gating = "per-token" }, ["several shared experts"] = { n_shared_experts = 2 },
      ["no bias in routing"] = { use_moe_router_bias = false },
    } do
      local good, problem = pcall(hf.read, step(changes), "config.json")
      assert.is_false(good, what)
      assert.is_true(failure.is(problem), tostring(problem))
      assert.is_truthy(problem.message:find(what, 1, true), problem.message)
    end
  end)
end)

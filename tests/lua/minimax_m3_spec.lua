-- SPDX-License-Identifier: Apache-2.0
-- MiniMax-M3: grouped-query attention to blocks of keys that an indexer finds.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"

local function list(n, first, other)
  local out = {}
  for i = 1, n do out[i] = i <= 3 and first or other end
  return out
end

-- The published file, with changes.
local function m3(changes)
  local config = {
    architectures = { "MiniMaxM3ForCausalLM" }, model_type = "minimax_m3", attention_output_gate = false, dense_intermediate_size = 12288,
    first_k_dense_replace = 3, head_dim = 128, hidden_act = "swigluoai", hidden_size = 6144, intermediate_size = 3072,
    max_position_embeddings = 1048576, moe_intermediate_size = 3072, moe_layer_freq = list(60, 0, 1), n_shared_experts = 1,
    num_attention_heads = 64, num_experts_per_tok = 4, num_hidden_layers = 60, num_key_value_heads = 4, num_local_experts = 128,
    num_mtp_modules = 7, num_nextn_predict_layers = 1, qk_norm_type = "per_head", rms_norm_eps = 1e-6, scoring_func = "sigmoid",
    shared_intermediate_size = 3072, tie_word_embeddings = false, use_gemma_norm = true, use_qk_norm = true, use_routing_bias = true,
    vocab_size = 200064,
    sparse_attention_config = { use_sparse_attention = true, sparse_index_dim = 128, sparse_num_index_heads = 4, sparse_topk_blocks = 16,
      sparse_block_size = 128, sparse_disable_index_value = list(60, 0, 1), sparse_score_type = "max", sparse_init_block = 0,
      sparse_local_block = 1, sparse_attention_freq = list(60, 0, 1) },
  }
  for key, value in pairs(changes or {}) do config[key] = value end
  return config
end

local function refusal(changes)
  local good, problem = pcall(hf.read, m3(changes), "config.json")
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  return problem.message
end

describe("a file of MiniMax-M3", function()
  -- the class of transformers 5.24.0 on the meta device, with its buffers of routing; active: 4 experts of 128
  it("has the parameters of its class", function()
    local model = hf.read(m3(), "config.json")
    assert.equal(426174572928, model.total_parameters)
    assert.equal(25962473856, model.active_parameters)
    assert.same({}, model.warnings)
  end)

  it("with the class's own keys is the same model", function()
    local old = m3()
    old.sparse_attention_config, old.moe_layer_freq = nil, nil
    old.layer_types, old.mlp_layer_types = list(60, "full_attention", "minimax_m3_sparse"), list(60, "dense", "sparse")
    old.index_n_heads, old.index_head_dim, old.index_block_size, old.index_topk_blocks, old.index_local_blocks = 4, 128, 128, 16, 1
    assert.equal(426174572928, hf.read(old, "config.json").total_parameters)
  end)

  it("attends to 16 blocks of 128 tokens where it has an indexer, and the plan says what that is taken for", function()
    local model, said = hf.read(m3(), "config.json"), {}
    assert.equal(2048, model.shape.kinds[1].index_topk)
    assert.equal(57, #model.shape.kinds[1].layers)
    for _, one in ipairs(model.assumptions) do said[tostring(one.value)] = true end
    assert.is_true(said["sparse attention at the speed of attention"])
    assert.equal(0, model.mtp_parameters)
  end)

  it("that says what is not known is refused by that", function()
    assert.matches("'sparse_other' in 'sparse_attention_config'", refusal { sparse_attention_config = { sparse_other = 1, sparse_index_dim = 128,
      sparse_num_index_heads = 4, sparse_topk_blocks = 16, sparse_block_size = 128, sparse_attention_freq = list(60, 0, 1) } })
    assert.matches("'index_head_dim' is missing", refusal { sparse_attention_config = { sparse_num_index_heads = 4,
      sparse_topk_blocks = 16, sparse_block_size = 128, sparse_attention_freq = list(60, 0, 1) } })
    assert.matches("an output gate", refusal { attention_output_gate = true })
    assert.matches("dense layers that 'first_k_dense_replace' does not tell", refusal { first_k_dense_replace = 2 })
  end)
end)

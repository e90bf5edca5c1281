-- SPDX-License-Identifier: Apache-2.0
-- Experts in a config.json: how many there are, under whatever name, in which layers; a family of experts is never read as a dense one, nor the
-- other way round.

require "pipeplan"
local files = require "hf_files"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"

local absent, llama, refusal = files.absent, files.llama, files.refusal

-- Qwen/Qwen3-30B-A3B: 30,532,122,624 parameters, 3,353,032,704 of them at work (sums over the tensors of the checkpoint).
local function qwen3_30b(changes)
  return files.with({
    architectures = { "Qwen3MoeForCausalLM" }, model_type = "qwen3_moe", attention_bias = false, decoder_sparse_step = 1, head_dim = 128,
    hidden_size = 2048, intermediate_size = 6144, max_position_embeddings = 40960, mlp_only_layers = {}, moe_intermediate_size = 768,
    num_attention_heads = 32, num_experts = 128, num_experts_per_tok = 8, num_hidden_layers = 48, num_key_value_heads = 4,
    tie_word_embeddings = false, vocab_size = 151936,
  }, changes)
end

describe("a family of experts", function()
  it("has as many as transformers 5 says, which writes num_local_experts where transformers 4 wrote num_experts", function()
    -- the file of transformers 5.24 also has dtype and rope_parameters in place of torch_dtype and rope_theta
    local model = hf.read(qwen3_30b{ num_experts = absent, num_local_experts = 128, dtype = "bfloat16", transformers_version = "5.24.0",
                                     rope_parameters = { rope_theta = 1000000.0, rope_type = "default" }, sliding_window = json.null }, "x")
    assert.equal("moe", model.architecture)
    assert.equal(30532122624, model.total_parameters)
    assert.equal(3353032704, model.active_parameters)
    assert.same({}, model.warnings)
  end)

  it("is never dense: without its number of experts the file is refused, and the key that comes nearest is named", function()
    for _, value in ipairs{ absent, json.null, 0 } do
      assert.matches("num_experts", refusal(qwen3_30b{ num_experts = value }), 1, true)
    end
    assert.equal("config.json: 'num_experts' is missing (an integer ≥ 1 expected); the nearest key that is there is 'num_expert'",
                 refusal(qwen3_30b{ num_experts = absent, num_expert = 128 }))
    assert.matches("experts_count", refusal(qwen3_30b{ experts_count = 128 }), 1, true)
  end)

  it("says how many serve a token", function()
    assert.matches("'num_experts_per_tok'", refusal(qwen3_30b{ num_experts_per_tok = absent }), 1, true)
  end)

  it("has one number of experts, whatever names say it", function()
    assert.equal(30532122624, hf.read(qwen3_30b{ num_local_experts = 128 }, "x").total_parameters)
    assert.equal("config.json: 'num_experts' (128) and 'num_local_experts' (64) are names of the same size and disagree",
                 refusal(qwen3_30b{ num_local_experts = 64 }))
  end)

  it("has some in at least one layer", function()
    assert.equal("config.json: no layer of Qwen3MoeForCausalLM has experts, by 'decoder_sparse_step', 'mlp_only_layers'",
                 refusal(qwen3_30b{ decoder_sparse_step = 49 }))
  end)

  it("says in mlp_layer_types what its other keys say", function()
    local types = {}
    for i = 1, 48 do types[i] = i % 2 == 0 and "sparse" or "dense" end
    local model = hf.read(qwen3_30b{ decoder_sparse_step = 2, mlp_layer_types = types }, "x")
    assert.equal(24, #model.shape.dense_layers)
    assert.matches("'mlp_layer_types' has 'dense' for layer 1", refusal(qwen3_30b{ mlp_layer_types = types }), 1, true)
    assert.matches("'layer_types' must be a list of 48", refusal(qwen3_30b{ layer_types = { "full_attention" } }), 1, true)
  end)
end)

describe("a family without experts", function()
  it("is not a file that counts some", function()
    for _, key in ipairs{ "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts" } do
      assert.matches(string.format("'%s' is 8, and LlamaForCausalLM has no experts", key), refusal(llama{ [key] = 8 }), 1, true)
    end
    local nested = { architectures = { "SomethingForConditionalGeneration" }, num_local_experts = 8, text_config = llama{ architectures = absent } }
    assert.matches("'num_local_experts' (8) stands beside 'text_config', which has nothing for it", refusal(nested), 1, true)
    nested.text_config.num_local_experts = 8
    assert.matches("'text_config.num_local_experts' is 8", refusal(nested), 1, true)
  end)

  it("may stand in a file that says its sizes twice, if they agree", function()
    local function outer(changes)
      local config = { architectures = { "SomethingForConditionalGeneration" }, hidden_size = 4096, vision_config = { hidden_size = 1152 },
                       mm_tokens_per_image = 256, image_token_index = 7, text_config = llama{ architectures = absent } }
      for key, value in pairs(changes or {}) do config[key] = value end
      return config
    end
    assert.equal(8030261248, hf.read(outer(), "x", "none").total_parameters)
    assert.matches("'hidden_size' (2048) stands beside 'text_config', which has 4096", refusal(outer{ hidden_size = 2048 }, nil, "none"), 1, true)
    assert.matches("'mixture_layers' (12) stands beside", refusal(outer{ mixture_layers = 12 }, nil, "none"), 1, true)
  end)

  it("may stand beside parts that are known by name, and no others", function()
    local function beside(part)
      return { architectures = { "SomethingForConditionalGeneration" }, [part] = { hidden_size = 1152 }, text_config = llama{ architectures = absent } }
    end
    assert.equal(8030261248, hf.read(beside "generation_config", "x").total_parameters)
    assert.matches("does not know what 'vision_confg' is beside 'text_config', did you mean 'vision_config'?", refusal(beside "vision_confg"), 1, true)
    assert.matches("does not know what 'speech_model' is beside 'text_config'; it may be a part", refusal(beside "speech_model"), 1, true)
  end)

  it("may say that it has none", function()
    assert.equal(8030261248, hf.read(llama{ num_experts = 0, num_local_experts = json.null }, "x").total_parameters)
  end)
end)

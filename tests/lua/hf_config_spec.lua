-- SPDX-License-Identifier: Apache-2.0
-- Reading config.json: exact totals, class defaults, refusals by name, and files that are no config of a language model.

require "pipeplan"
local changed = require "hf_files"
local cjson = require "cjson"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"
local models = require "pipeplan.input.model"

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local data = os.getenv("PIPEPLAN_DATA")

local slurp = require "read_file"

local function read(path)
  return hf.read(json.decode(slurp(path), path), path)
end

local absent, llama, refusal = changed.absent, changed.llama, changed.refusal

-- Totals of the main models, MTP left out: sums over the tensors of the published checkpoints.
local totals = {
  ["deepseek-moe-16b"] = 16375728128, ["deepseek-v3"] = 671026419200, ["gemma-2-9b"] = 9241705984, ["glm-4.5-air"] = 106852251264,
  ["gpt-j-6b"] = 6050882784, ["gpt-oss-20b"] = 20914757184, ["gpt2"] = 124439808, ["gpt2-medium"] = 354823168,
  ["kimi-k2"] = 1026408232448, ["llama-2-70b"] = 68976648192, ["llama-2-7b"] = 6738415616, ["llama-3.1-405b"] = 405853388800,
  ["llama-3.1-70b"] = 70553706496, ["llama-3.1-8b"] = 8030261248, ["mixtral-8x7b"] = 46702792704, ["olmo-2-32b"] = 32234279936,
  ["phi-2-legacy-keys"] = 2779683840, ["qwen3-0.6b"] = 596049920, ["qwen3-30b-a3b"] = 30532122624, ["qwen3-32b"] = 32762123264,
  ["qwen3-8b"] = 8190735360, ["qwen3-coder-480b-a35b"] = 480154875392,
  -- what the classes of transformers 5.24.0 count for the file, the buffers of routing included
  ["deepseek-v3.2"] = 671877944064, ["deepseek-v4-flash"] = 284332240471, ["deepseek-v4-pro"] = 1572997201763,
  ["gemma-4-26b-a4b"] = 25233141760, ["glm-5"] = 743911218432, ["nemotron-3-nano-30b-a3b"] = 31577940288,
  ["nemotron-h-56b"] = 56324350464, ["qwen3-next-80b-a3b"] = 79674391296, ["qwen3.5-397b-a17b"] = 396346350336,
}

-- Of the towers of images beside them, as the same classes have them.
local towers = { ["gemma-4-26b-a4b"] = 572792112, ["qwen3.5-397b-a17b"] = 456010480 }

-- Those of a token, as the same classes have them: without the experts that it is not sent to.
local active = {
  ["deepseek-v3.2"] = 38403822336, ["deepseek-v4-flash"] = 13799632471, ["deepseek-v4-pro"] = 49779081059,
  ["gemma-4-26b-a4b"] = 3822530560, ["glm-5"] = 41784728832, ["nemotron-3-nano-30b-a3b"] = 3580076352,
  ["qwen3-next-80b-a3b"] = 3874929408, ["qwen3.5-397b-a17b"] = 17349040896,
}

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function each_file(name, test)
  it(name, function()
    if not data then return pending("PIPEPLAN_DATA names no folder with hf_configs/") end
    local path = string.format("%s/hf_configs/%s.json", data, name)
    local file = io.open(path)
    if not file then return pending(path .. " is not there") end
    file:close()
    test(path)
  end)
end

describe("a published config.json has its exact total:", function()
  for _, name in ipairs(sorted_keys(totals)) do
    each_file(name, function(path)
      local found = models.read({ value = path, origin = path }, { assumptions = {}, warnings = {} })
      assert.equal(totals[name], found.total_parameters)
      assert.equal(active[name] or found.active_parameters, found.active_parameters)
      assert.equal(towers[name], found.tower_parameters)
    end)
  end

  -- no class of transformers has it, and no public file that we know says more than its name
  each_file("llama-nemotron-super-49b", function(path)
    local found = models.read({ value = path, origin = path }, { assumptions = {}, warnings = {} })
    assert.near(49e9, found.total_parameters, 0.02 * 49e9)
  end)
end)

describe("DeepSeek-V4's rates of compression", function()
  local function v4(changes)
    local config = {
      architectures = { "DeepseekV4ForCausalLM" }, model_type = "deepseek_v4", vocab_size = 1000, hidden_size = 192, num_hidden_layers = 4,
      num_attention_heads = 12, head_dim = 16, q_lora_rank = 48, num_key_value_heads = 1, moe_intermediate_size = 96, n_routed_experts = 6,
      num_experts_per_tok = 2, o_groups = 4, o_lora_rank = 24, hc_mult = 3, sliding_window = 32, max_position_embeddings = 512,
      index_n_heads = 4, index_head_dim = 24, index_topk = 64 }
    for key, value in pairs(changes) do config[key] = value end
    return config
  end

  -- of several faults the same one is told each time, whatever the order in which a table gives its keys
  it("are refused by the first of those that are wrong", function()
    local rates = {}
    for i = 9, 1, -1 do rates["kind_" .. i] = i end
    assert.matches("'kind_1' in 'compress_rates'", refusal(v4{ compress_rates = rates }), 1, true)
    local both = { compressed_sparse_attention = 0, heavily_compressed_attention = 0 }
    assert.matches("an integer ≥ 1 in 'compressed_sparse_attention'", refusal(v4{ compress_rates = both }), 1, true)
  end)
end)

-- what a published file of Kimi-K3 says of its sizes, and its report of its parameters: no class of transformers 5.24.0 counts it
describe("a file of a family that cannot be counted", function()
  it("is refused by what it has, and the advice keeps the sizes that it says", function()
    local message = refusal{ model_type = "kimi_k3", architectures = { "KimiK3ForConditionalGeneration" },
                             text_config = { model_type = "kimi_linear", architectures = { "KimiLinearForCausalLM" }, num_hidden_layers = 93,
                                             hidden_size = 7168, vocab_size = 163840, num_experts = 896, routed_expert_hidden_size = 3584 } }
    assert.matches("experts on a latent size ('routed_expert_hidden_size')", message, 1, true)
    assert.matches('"architecture": "moe", "total": "2.8T", "active": "104B", "layers": 93, "hidden": 7168, "vocab": 163840', message, 1, true)
  end)
end)

describe("a published multimodal config.json", function()
  -- meta-llama model card: 109 B total, 17 B active, vision included
  each_file("llama-4-scout", function(path)
    local model = read(path)
    assert.is_true(model.total_parameters > 107e9 and model.total_parameters < 109e9)
    assert.is_true(model.active_parameters > 16.5e9 and model.active_parameters < 17.5e9)
    assert.equal("text model only", model.assumptions[2].value)
  end)
end)

describe("a quantized config.json is the same model, and the plan says that training keeps its weights otherwise:", function()
  -- the forms of published files: DeepSeek's and Qwen's FP8, NVIDIA's NVFP4, gpt-oss's MXFP4, DeepSeek-V4's experts
  for name, keys in pairs {
    ["fp8 e4m3"] = { quantization_config = { quant_method = "fp8", fmt = "e4m3", weight_block_size = { 128, 128 } } },
    ["modelopt NVFP4"] = { quantization_config = { quant_method = "modelopt", quant_algo = "NVFP4" } },
    mxfp4 = { quantization_config = { quant_method = "mxfp4" } }, fp4 = { expert_dtype = "fp4" },
    quantized = { compression_config = { bits = 4 } },
  } do
    it(name, function()
      local model, said = hf.read(llama(keys), "config.json"), nil
      for _, one in ipairs(model.assumptions) do said = one.field == "model.quantization_config" and one or said end
      assert.equal(8030261248, model.total_parameters)
      assert.matches("weights are " .. name .. "; training keeps them as", said.why, 1, true)
    end)
  end
end)

describe("a shipped example has the total of its model:", function()
  local examples = {
    ["deepseek-v3"] = 671026419200, ["kimi-k2"] = 1026408232448, ["llama-2-7b"] = 6738415616, ["llama-3-70b"] = 70553706496,
    ["llama-3.1-405b"] = 405853388800, ["llama-3.1-8b"] = 8030261248, ["mixtral-8x7b"] = 46702792704, ["qwen3-0.6b"] = 596049920,
    ["qwen3-235b-a22b"] = 235093634560,
  }
  for _, name in ipairs(sorted_keys(examples)) do
    it(name, function()
      local model = read(string.format("%s/examples/models/%s.json", source, name))
      assert.equal(examples[name], model.total_parameters)
      assert.equal(name, model.name)
      assert.same({}, model.assumptions)
    end)
  end

  it("and DeepSeek-V3 its MTP module, its latent attention and three dense layers", function()
    local model = read(source .. "/examples/models/deepseek-v3.json")
    assert.equal("moe", model.architecture)
    assert.equal("mla", model.shape.attention)
    assert.equal(3, model.shape.first_dense)
    assert.equal(1, model.shape.mtp_layers)
    assert.equal(163840, model.max_positions)
  end)
end)

-- counted by NemotronHForCausalLM of transformers 5.24.0: its NemotronHMLP takes `intermediate_size or config.intermediate_size`
it("a shared expert of Nemotron-H whose width is 0 is as wide as the config's MLP", function()
  local config = { model_type = "nemotron_h", architectures = { "NemotronHForCausalLM" }, vocab_size = 1000, hidden_size = 192,
                   layers_block_type = { "linear_attention", "moe", "full_attention", "moe" }, num_attention_heads = 12, num_key_value_heads = 4,
                   head_dim = 24, intermediate_size = 416, moe_intermediate_size = 96, moe_shared_expert_intermediate_size = 0,
                   n_routed_experts = 6, num_experts_per_tok = 2, n_shared_experts = 1, mamba_head_dim = 24, mamba_num_heads = 16, n_groups = 2,
                   ssm_state_size = 31, conv_kernel = 3, use_conv_bias = false, num_nextn_predict_layers = 0, tie_word_embeddings = false }
  assert.equal(1546608, hf.read(config, "x").total_parameters)
end)

-- modeling_decilm.py: a block has an attention and an ffn, each with its own sizes or no_op
describe("blocks of Nemotron-NAS", function()
  local function file(blocks)
    return { model_type = "nemotron-nas", architectures = { "DeciLMForCausalLM" }, vocab_size = 1000, hidden_size = 256, num_attention_heads = 8,
             num_hidden_layers = 2, block_configs = blocks }
  end
  local attention, ffn = { n_heads_in_group = 4 }, { ffn_mult = 2 }

  it("are counted with their own sizes", function()
    -- a layer: q and o 2 × 256², k and v 2 × 256 × 64, MLP 3 × 256 × 512 (two thirds of 2 × 2 × 256, in steps of 256), two norms; one without
    local whole = 2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 512 + 2 * 256
    local without = 3 * 256 * 512 + 256
    local model = hf.read(file { { attention = attention, ffn = ffn }, { attention = { no_op = true }, ffn = ffn } }, "x")
    assert.equal(whole + without + 2 * 1000 * 256 + 256, model.total_parameters)
  end)

  it("that say anything else are refused, and nothing ends in an error of Lua", function()
    for i, block in ipairs { 1, { attention = attention }, { attention = { n_heads_in_group = 0 }, ffn = ffn },
                             { attention = attention, ffn = { ffn_mult = -1 } },
                             { attention = attention, ffn = ffn, mamba = {} }, { attention = { n_heads_in_group = 4, no_op = "true" }, ffn = ffn },
                             { attention = { replace_with_linear = { 1 } }, ffn = ffn }, { attention = attention, ffn = { ffn_mult = 1e17 } } } do
      local good, problem = failure.try(hf.read, file { block, block }, "x")
      assert.is_false(good, i)
      assert.matches("block", problem.message, 1, true)
    end
  end)
end)

describe("hf.read", function()
  it("takes null, of either decoder, for absent", function()
    for _, null in ipairs{ json.null, cjson.null } do
      local model = hf.read(llama{ num_key_value_heads = null, head_dim = null, attention_bias = null, num_nextn_predict_layers = null },
                            "x")
      assert.equal(32, model.shape.kv_heads)
      assert.equal(128, model.shape.head_dim)
    end
  end)

  it("takes an absent tie_word_embeddings for what the class means, and says so", function()
    local untied = hf.read(llama{ tie_word_embeddings = absent }, "x")
    assert.equal(8030261248, untied.total_parameters)
    assert.same({ field = "model.tied_embeddings", value = false,
                  why = "tie_word_embeddings is not in the file; LlamaForCausalLM means false" }, untied.assumptions[1])
    local gemma = llama{ architectures = { "GemmaForCausalLM" }, model_type = "gemma", tie_word_embeddings = absent, head_dim = 128 }
    assert.equal(8030261248 - 128256 * 4096, hf.read(gemma, "x").total_parameters)
  end)

  it("takes floats that are integers, as lua-cjson makes them", function()
    assert.equal(8030261248, hf.read(llama{ hidden_size = 4096.0, num_hidden_layers = 32.0 }, "x").total_parameters)
  end)

  it("finds the text model inside a multimodal config", function()
    for _, key in ipairs{ "text_config", "llm_config", "language_config" } do
      local model = hf.read({ architectures = { "SomethingForConditionalGeneration" }, model_type = "something",
                              vision_config = { hidden_size = 1152 }, [key] = llama{ architectures = absent } }, "x", "none")
      assert.equal(8030261248, model.total_parameters)
      assert.matches("is multimodal", model.assumptions[1].why, 1, true)
    end
  end)

  it("fills in what Gemma-3 files leave out", function()
    -- what google/gemma-3-4b-it states; 3,880,263,168 parameters in transformers 4.57.1's Gemma3ForCausalLM
    local model = hf.read({ architectures = { "Gemma3ForConditionalGeneration" }, model_type = "gemma3",
                            text_config = { hidden_size = 2560, intermediate_size = 10240, model_type = "gemma3_text",
                                            num_hidden_layers = 34, sliding_window = 1024 },
                            vision_config = { hidden_size = 1152 } }, "gemma-3-4b.json")
    assert.equal(3880263168, model.total_parameters)
    assert.equal(131072, model.max_positions)
  end)

  it("goes by the class before the model_type", function()
    -- a published config of GLM-4.5 calls itself "glm"
    local config = llama{ architectures = { "Qwen3ForCausalLM" }, model_type = "llama", head_dim = 128 }
    assert.equal("head", hf.read(config, "x").shape.qk_norm)
  end)

  it("counts ChatGLM by its own key names", function()
    -- THUDM/chatglm3-6b: 6,243,584,000 parameters
    local model = hf.read({ architectures = { "ChatGLMModel" }, model_type = "chatglm", num_layers = 28, hidden_size = 4096,
                            num_attention_heads = 32, kv_channels = 128, multi_query_attention = true, multi_query_group_num = 2,
                            ffn_hidden_size = 13696, padded_vocab_size = 65024, add_qkv_bias = true, add_bias_linear = false,
                            rmsnorm = true, seq_length = 8192, tie_word_embeddings = false }, "x")
    assert.equal(6243584000, model.total_parameters)
    assert.equal(8192, model.max_positions)
  end)

  it("counts MiniMax-M2's full qk norm and correction bias", function()
    -- MiniMaxAI/MiniMax-M2.5: 228,689,764,864 without MTP
    local model = hf.read({ architectures = { "MiniMaxM2ForCausalLM" }, model_type = "minimax_m2", hidden_size = 3072,
                            num_hidden_layers = 62, num_attention_heads = 48, num_key_value_heads = 8, head_dim = 128,
                            intermediate_size = 1536, num_local_experts = 256, num_experts_per_tok = 8,
                            vocab_size = 200064, use_qk_norm = true,
                            qk_norm_type = "per_layer", use_routing_bias = true, shared_intermediate_size = 0, use_mtp = true,
                            num_mtp_modules = 3, tie_word_embeddings = false }, "x")
    assert.equal(228689764864, model.total_parameters)
    assert.equal(3, model.shape.mtp_layers)
  end)

  it("names the model after its file, its folder, or what the file says", function()
    assert.equal("my-model", hf.read(llama(), "models/my-model.json").name)
    assert.equal("Llama-3.1-8B", hf.read(llama(), "hub/Llama-3.1-8B/config.json").name)
    assert.equal("Meta-Llama", hf.read(llama{ _name_or_path = "meta-llama/Meta-Llama" }, "config.json").name)
    assert.equal("LlamaForCausalLM", hf.read(llama(), "config.json").name)
  end)
end)

describe("a key that pipeplan does not know", function()
  it("is a warning where its value cannot be a size", function()
    local model = hf.read(llama{ house_style = "modern", use_magic = false, empty = {}, nothing = json.null }, "x.json")
    assert.equal(8030261248, model.total_parameters)
    local messages = {}
    for i, warning in ipairs(model.warnings) do messages[i] = warning.message end
    assert.same({ "x.json: pipeplan does not know what 'house_style' ('modern') is to LlamaForCausalLM; it is taken to change no size",
                  "x.json: pipeplan does not know what 'use_magic' (false) is to LlamaForCausalLM; it is taken to change no size" }, messages)
  end)

  it("is an error otherwise, with the nearest that it knows and the ways out", function()
    assert.equal("config.json: pipeplan does not know what 'intermediate_sizes' (14336) is to LlamaForCausalLM, did you mean "
                 .. "'intermediate_size'?; it may change the model's size. Take it out of the file if it does not, or give its published sizes "
                 .. 'instead of the file: "model": { "architecture": "dense", "total": …, "layers": 32, "hidden": 4096, "vocab": 128256 }',
                 refusal(llama{ intermediate_sizes = 14336 }))
  end)
end)

describe("the class of a config", function()
  it("has a head of keys and values for each head where the file says no number, and says so", function()
    local found = hf.read(llama{ num_key_value_heads = absent }, "x")
    assert.equal(32, found.shape.kv_heads)   -- transformers' LlamaConfig: num_key_value_heads = num_attention_heads where it is None
    assert.same({ field = "model.kv_heads", value = 32,
                  why = "'num_key_value_heads' is not in the file: as many as heads, as LlamaForCausalLM takes it" }, found.assumptions[1])
    assert.same({}, hf.read(llama(), "x").assumptions)
  end)

  it("may be the same blocks under another head, and that is listed", function()
    for _, class in ipairs{ "LlamaModel", "LlamaForSequenceClassification" } do
      local model = hf.read(llama{ architectures = { class } }, "x")
      assert.equal(8030261248, model.total_parameters)
      assert.equal("LlamaForCausalLM", model.assumptions[1].value)
    end
  end)

  it("is not a draft model's, whatever its model_type says", function()
    -- the drafts of EAGLE-3 call themselves "llama"
    assert.matches("does not know how LlamaForCausalLMEagle3 is built", refusal(llama{ architectures = { "LlamaForCausalLMEagle3" } }), 1, true)
  end)

  it("is enough without a model_type, and the other way round", function()
    assert.equal(8030261248, hf.read(llama{ model_type = absent }, "x").total_parameters)
    assert.equal(8030261248, hf.read(llama{ architectures = absent }, "x").total_parameters)
    assert.matches("LamaForCausalLM", refusal(llama{ model_type = absent, architectures = { "LamaForCausalLM" } }), 1, true)
  end)
end)

-- Families whose classes ship with their checkpoints and not with transformers, each with the total of a checkpoint: THUDM/chatglm3-6b,
-- deepseek-ai/deepseek-moe-16b-base, XiaomiMiMo/MiMo-7B-Base.
local remote = {
  chatglm = { 6243584000, {
    architectures = { "ChatGLMModel" }, model_type = "chatglm", num_layers = 28, hidden_size = 4096, num_attention_heads = 32, kv_channels = 128,
    multi_query_attention = true, multi_query_group_num = 2, ffn_hidden_size = 13696, padded_vocab_size = 65024, add_qkv_bias = true,
    add_bias_linear = false, rmsnorm = true, post_layer_norm = true, seq_length = 8192, tie_word_embeddings = false, pre_seq_len = json.null,
    layernorm_epsilon = 1e-05, apply_query_key_layer_scaling = true, original_rope = true } },
  deepseek = { 16375728128, {
    architectures = { "DeepseekForCausalLM" }, model_type = "deepseek", vocab_size = 102400, hidden_size = 2048, num_hidden_layers = 28,
    num_attention_heads = 16, num_key_value_heads = 16, intermediate_size = 10944, moe_intermediate_size = 1408, n_routed_experts = 64,
    n_shared_experts = 2, num_experts_per_tok = 6, first_k_dense_replace = 1, moe_layer_freq = 1, attention_bias = false,
    tie_word_embeddings = false, norm_topk_prob = false, scoring_func = "softmax", aux_loss_alpha = 0.001, seq_aux = true } },
  mimo = { 7622619136, {
    architectures = { "MiMoForCausalLM" }, model_type = "mimo", vocab_size = 151680, hidden_size = 4096, num_hidden_layers = 36,
    num_attention_heads = 32, num_key_value_heads = 8, head_dim = 128, intermediate_size = 11008, attention_bias = true,
    tie_word_embeddings = false, num_nextn_predict_layers = 1, rope_theta = 640000, use_mrope = false } },
}

describe("a family whose class ships with its checkpoint", function()
  -- what absence means there: no bias; as many key and value heads as heads, where that is so; the head's width, hidden / heads
  local by_default = { add_qkv_bias = true }

  for name, known in pairs(remote) do
    it("has its parameters, and no key left out, null or renamed makes another model in silence: " .. name, function()
      local total, config = known[1], known[2]
      local original = hf.read(config, "config.json")
      assert.equal(total, original.total_parameters)
      local function check(key, edited)
        local good, result = pcall(hf.read, edited, "config.json")
        if good then
          assert.is_true(by_default[key] or total == result.total_parameters and original.active_parameters == result.active_parameters, key)
        else
          assert.is_true(failure.is(result), tostring(result))
          assert.matches(key, result.message, 1, true)
        end
      end
      for key, value in pairs(config) do
        if key ~= "architectures" and key ~= "model_type" then
          local edited = {}
          for other, one in pairs(config) do edited[other] = one end
          edited[key] = nil
          check(key, edited)
          edited[key .. "2"] = value
          check(key, edited)
          edited[key .. "2"] = nil
          edited[key] = json.null
          check(key, edited)
        end
      end
    end)
  end
end)

describe("null", function()
  it("is no word for what a class means by absence", function()
    -- absent, Gemma-2's head is 256 wide; transformers does not load a file where it is null
    local gemma = { architectures = { "Gemma2ForCausalLM" }, model_type = "gemma2", head_dim = json.null }
    assert.equal("config.json: 'head_dim' must be an integer ≥ 1, got null", refusal(llama(gemma)))
    assert.equal("config.json: 'q_lora_rank' is missing (an integer ≥ 1 expected)",
                 (refusal{ architectures = { "DeepseekV2ForCausalLM" }, vocab_size = 1000, hidden_size = 64, num_hidden_layers = 2,
                           num_attention_heads = 2, kv_lora_rank = 16 }:gsub("not a config.json of a language model: ", "")))
  end)
end)

describe("what is no config of a language model is one clear line:", function()
  local function says(message, config)
    it(message, function() assert.equal("x.json: " .. message, refusal(config, "x.json")) end)
  end
  says("not a config.json of a language model: an object expected, got a list", json.decode("[1, 2]", "x.json"))
  says("not a config.json of a language model: an object expected, got 'text'", "text")
  says("not a config.json of a language model: neither 'model_type' nor 'architectures' says what it is", { steps = 3 })
  says("not a config.json of a language model: 'hidden_size' (or 'n_embd', 'd_model') is missing (an integer ≥ 1 expected)",
       llama{ hidden_size = absent })
  says("not a config.json of a language model: 'num_hidden_layers' (or 'n_layer', 'num_layers', 'n_layers') is missing (an integer ≥ 1 expected)",
       llama{ num_hidden_layers = absent })
  says("not a config.json of a language model: 'intermediate_size' is missing (an integer ≥ 1 expected)",
       llama{ intermediate_size = absent })
  says("'num_attention_heads' must be an integer ≥ 1, got 0", llama{ num_attention_heads = 0 })
  says("'num_hidden_layers' must be an integer ≥ 1, got -32", llama{ num_hidden_layers = -32 })
  says("'num_hidden_layers' must be at most 1024, got 5000", llama{ num_hidden_layers = 5000 })
  says("'hidden_size' must be an integer ≥ 1, got '4096'", llama{ hidden_size = "4096" })
  says("'hidden_size' must be an integer ≥ 1, got 4096.5", llama{ hidden_size = 4096.5 })
  says("'hidden_size' must be an integer ≥ 1, got an object", llama{ hidden_size = {} })
  says("'num_key_value_heads' (12) must divide 'num_attention_heads' (32)", llama{ num_key_value_heads = 12 })
  says("'num_attention_heads' (30) must divide 'hidden_size' (4096) when there is no 'head_dim'",
       llama{ num_attention_heads = 30, num_key_value_heads = 30 })
  says("'tie_word_embeddings' must be true or false, got 'yes'", llama{ tie_word_embeddings = "yes" })
  says("'attention_bias' must be true or false, got 1", llama{ attention_bias = 1 })
  says("'text_config.hidden_size' must be an integer ≥ 1, got 0", { model_type = "x", text_config = llama{ hidden_size = 0 } })
  says("'num_experts_per_tok' must be from 1 to the number of experts (8), got 9",
       llama{ architectures = { "MixtralForCausalLM" }, num_local_experts = 8, num_experts_per_tok = 9 })
end)

describe("a family that pipeplan does not know", function()
  it("is refused with the nearest name, not guessed", function()
    local message = refusal(llama{ architectures = absent, model_type = "lama" })
    assert.matches("config.json: pipeplan does not know how lama is built, did you mean 'llama'?", message, 1, true)
    assert.matches('"model": { "architecture": ', message, 1, true)
  end)

  it("is refused by what it has, whatever it is called", function()
    local cases = {
      { "linear attention layers ('layer_types')", { layer_types = { "full_attention", "linear_attention" } } },
      { "an object layers ('layer_types')", { layer_types = { "full_attention", { linear = true } } } },
      { "lightning (linear) attention layers ('attn_type_list')", { attn_type_list = { 0, 1 } } },
      { "Mamba layers ('ssm_state_size')", { ssm_state_size = 128 } },
      { "experts on a latent size ('routed_expert_hidden_size')", { routed_expert_hidden_size = 3584 } },
      { "an encoder and a decoder ('is_encoder_decoder')", { is_encoder_decoder = true } },
    }
    for _, case in ipairs(cases) do assert.matches(case[1], refusal(llama(case[2])), 1, true) end
  end)

  it("is not confused by keys that say nothing", function()
    local types = {}
    for i = 1, 32 do types[i] = i % 2 == 0 and "full_attention" or "sliding_attention" end
    local model = hf.read(llama{ layer_types = types, is_encoder_decoder = false,
                                 num_kv_shared_layers = 0, attn_output_gate = json.null }, "x")
    assert.equal(8030261248, model.total_parameters)
  end)
end)

describe("a size beyond any model", function()
  -- a published file of each family, and the limit of engine/core/model_check.c
  local most = {
    hidden_size = 1048576, n_embd = 1048576, vocab_size = 16777216, num_attention_heads = 16384, n_head = 16384, intermediate_size = 4194304,
    n_inner = 4194304, head_dim = 16384, num_key_value_heads = 32, num_experts = 65536, num_local_experts = 65536, n_routed_experts = 65536,
    moe_intermediate_size = 4194304, n_shared_experts = 4096, num_nextn_predict_layers = 64, q_lora_rank = 1048576, kv_lora_rank = 1048576,
    qk_nope_head_dim = 16384, qk_rope_head_dim = 16384, v_head_dim = 16384, num_hidden_layers = 1024, n_layer = 1024, n_positions = 16777216,
  }
  local files = {
    { "llama", llama() },
    { "qwen3_moe", { model_type = "qwen3_moe", hidden_size = 2048, moe_intermediate_size = 768, num_hidden_layers = 48,
                     num_attention_heads = 32, num_key_value_heads = 4, head_dim = 128, vocab_size = 151936, num_experts = 128,
                     num_experts_per_tok = 8, max_position_embeddings = 40960, tie_word_embeddings = false } },
    { "mixtral", { model_type = "mixtral", hidden_size = 4096, intermediate_size = 14336, num_hidden_layers = 32, num_attention_heads = 32,
                   num_key_value_heads = 8, vocab_size = 32000, num_local_experts = 8, num_experts_per_tok = 2, tie_word_embeddings = false } },
    { "gpt2", { model_type = "gpt2", n_embd = 768, n_layer = 12, n_head = 12, vocab_size = 50257, n_positions = 1024, n_inner = 3072 } },
    { "deepseek_v3", { model_type = "deepseek_v3", hidden_size = 7168, intermediate_size = 18432, moe_intermediate_size = 2048,
                       num_hidden_layers = 61, num_attention_heads = 128, vocab_size = 129280, n_routed_experts = 256, n_shared_experts = 1,
                       num_experts_per_tok = 8, first_k_dense_replace = 3, moe_layer_freq = 1, q_lora_rank = 1536, kv_lora_rank = 512,
                       qk_nope_head_dim = 128, qk_rope_head_dim = 64, v_head_dim = 128, num_nextn_predict_layers = 1,
                       tie_word_embeddings = false } },
  }
  for _, file in ipairs(files) do
    it("is told by the key of the file and its limit: " .. file[1], function()
      assert.is_true(hf.read(file[2], "config.json").total_parameters > 1e8)
      local checked = 0
      for _, key in ipairs(sorted_keys(file[2])) do
        for _, value in ipairs(most[key] and { 2 ^ 53, 2 ^ 53 + 2, 2 ^ 62, 1 << 62, math.maxinteger, 1e308 } or {}) do
          local config = {}
          for name, own in pairs(file[2]) do config[name] = own end
          config[key] = value
          local message = refusal(config)
          assert(message:find("'" .. key .. "'", 1, true) and not message:find "'%-%d", message)
          -- what is not divisible is told first
          local limit = message:find(tostring(most[key]), 1, true) or message:find("must divide", 1, true) or value == 1e308
          assert(limit, key .. " " .. value .. ": " .. message)
          checked = checked + 1
        end
      end
      assert.is_true(checked >= 36)
    end)
  end
end)

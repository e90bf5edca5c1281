-- Reading config.json: exact totals, class defaults, refusals by name, and files that are no config of a language model.

require "pipeplan"
local cjson = require "cjson"
local failure = require "pipeplan.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.input.json"

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local data = os.getenv("PIPEPLAN_DATA")

local function slurp(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

local function read(path)
  return hf.read(json.decode(slurp(path), path), path)
end

-- A Llama config with changes; a change to `absent` removes the key.
local absent = {}
local function llama(changes)
  local config = {
    architectures = { "LlamaForCausalLM" }, model_type = "llama", vocab_size = 128256, hidden_size = 4096, num_hidden_layers = 32,
    num_attention_heads = 32, num_key_value_heads = 8, intermediate_size = 14336, max_position_embeddings = 131072,
    tie_word_embeddings = false,
  }
  for key, value in pairs(changes or {}) do
    if value == absent then config[key] = nil else config[key] = value end
  end
  return config
end

local function refusal(config, file)
  local good, problem = pcall(hf.read, config, file or "config.json")
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  assert.is_nil(problem.message:find("\n"))
  return problem.message
end

-- Totals of the main models, MTP left out: sums over the tensors of the published checkpoints.
local totals = {
  ["deepseek-moe-16b"] = 16375728128, ["deepseek-v3"] = 671026419200, ["gemma-2-9b"] = 9241705984, ["glm-4.5-air"] = 106852251264,
  ["gpt-j-6b"] = 6050882784, ["gpt-oss-20b"] = 20914757184, ["gpt2"] = 124439808, ["gpt2-medium"] = 354823168,
  ["kimi-k2"] = 1026408232448, ["llama-2-70b"] = 68976648192, ["llama-2-7b"] = 6738415616, ["llama-3.1-405b"] = 405853388800,
  ["llama-3.1-70b"] = 70553706496, ["llama-3.1-8b"] = 8030261248, ["mixtral-8x7b"] = 46702792704, ["olmo-2-32b"] = 32234279936,
  ["phi-2-legacy-keys"] = 2779683840, ["qwen3-0.6b"] = 596049920, ["qwen3-30b-a3b"] = 30532122624, ["qwen3-32b"] = 32762123264,
  ["qwen3-8b"] = 8190735360, ["qwen3-coder-480b-a35b"] = 480154875392,
}

-- Files whose models cannot be counted exactly, and what the refusal names.
local refused = {
  ["deepseek-v3.2"] = "sparse attention", ["deepseek-v4-flash"] = "compressed attention", ["deepseek-v4-pro"] = "compressed attention",
  ["gemma-4-26b-a4b"] = "dense and an expert MLP", ["glm-5"] = "sparse attention",
  ["llama-nemotron-super-49b"] = "layers of different shapes", ["nemotron-3-nano-30b-a3b"] = "Mamba layers",
  ["qwen3-next-80b-a3b"] = "linear attention", ["qwen3.5-397b-a17b"] = "linear attention",
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
    each_file(name, function(path) assert.equal(totals[name], read(path).total_parameters) end)
  end
end)

describe("a published config.json of a family that cannot be counted is refused by name:", function()
  for _, name in ipairs(sorted_keys(refused)) do
    each_file(name, function(path)
      local message = refusal(json.decode(slurp(path), path), path)
      assert.matches(refused[name], message, 1, true)
      assert.matches('"model": { "architecture": ', message, 1, true)
    end)
  end
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
                              vision_config = { hidden_size = 1152 }, [key] = llama{ architectures = absent } }, "x")
      assert.equal(8030261248, model.total_parameters)
      assert.matches(key, model.assumptions[1].why, 1, true)
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

describe("what is no config of a language model is one clear line:", function()
  local function says(message, config)
    it(message, function() assert.equal("x.json: " .. message, refusal(config, "x.json")) end)
  end
  says("not a config.json of a language model: an object expected, got a list", json.decode("[1, 2]", "x.json"))
  says("not a config.json of a language model: an object expected, got 'text'", "text")
  says("not a config.json of a language model: neither 'model_type' nor 'architectures' says what it is", { steps = 3 })
  says("not a config.json of a language model: 'hidden_size' is missing (an integer ≥ 1 expected)", llama{ hidden_size = absent })
  says("not a config.json of a language model: 'num_hidden_layers' is missing (an integer ≥ 1 expected)",
       llama{ num_hidden_layers = absent })
  says("not a config.json of a language model: 'intermediate_size' is missing (an integer ≥ 1 expected)",
       llama{ intermediate_size = absent })
  says("'num_attention_heads' must be an integer ≥ 1, got 0", llama{ num_attention_heads = 0 })
  says("'num_hidden_layers' must be an integer ≥ 1, got -32", llama{ num_hidden_layers = -32 })
  says("'num_hidden_layers' must be at most 1024, got 5000", llama{ num_hidden_layers = 5000 })
  says("'hidden_size' must be an integer ≥ 1, got '4096'", llama{ hidden_size = "4096" })
  says("'hidden_size' must be an integer ≥ 1, got 4096.5", llama{ hidden_size = 4096.5 })
  says("'hidden_size' must be an integer ≥ 1, got an object", llama{ hidden_size = {} })
  says("'num_key_value_heads' (12) must divide the number of attention heads (32)", llama{ num_key_value_heads = 12 })
  says("'num_attention_heads' (30) must divide the hidden size (4096) when there is no 'head_dim'",
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
      { "lightning (linear) attention layers ('attn_type_list')", { attn_type_list = { 0, 1 } } },
      { "Mamba layers ('ssm_state_size')", { ssm_state_size = 128 } },
      { "experts on a latent size ('routed_expert_hidden_size')", { routed_expert_hidden_size = 3584 } },
      { "an encoder and a decoder ('is_encoder_decoder')", { is_encoder_decoder = true } },
    }
    for _, case in ipairs(cases) do assert.matches(case[1], refusal(llama(case[2])), 1, true) end
  end)

  it("is not confused by keys that say nothing", function()
    local model = hf.read(llama{ layer_types = { "full_attention", "sliding_attention" }, is_encoder_decoder = false,
                                 num_kv_shared_layers = 0, attn_output_gate = json.null }, "x")
    assert.equal(8030261248, model.total_parameters)
  end)
end)

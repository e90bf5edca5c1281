-- SPDX-License-Identifier: Apache-2.0
-- catalog/windows.lua, input/hf_windows.lua: which layers attend to a window of the last tokens, or to a chunk, and how long it is.

local planning = require "planning"  -- first: it loads the rest
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local spec = require "pipeplan.input.spec"

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local oracle_file = source .. "/tests/oracles/transformers_5.json"
local oracle = json.decode(io.open(oracle_file):read("a"), oracle_file)

-- A small file of that model_type, of 7 layers, with changes; null takes a key out, as `nothing` says null.
local nothing = {}
local function config_of(model_type, changes)
  for _, case in ipairs(oracle.cases) do
    if case.config.model_type == model_type then
      local config = {}
      for key, value in pairs(case.given) do config[key] = value end
      for _, key in ipairs{ "layer_types", "mlp_layer_types", "sliding_window", "sliding_window_pattern", "hybrid_layer_pattern", "moe_layer_freq",
                            "no_rope_layers", "attention_chunk_size", "global_attn_every_n_layers", "max_window_layers", "use_sliding_window" } do
        config[key] = nil
      end
      config.num_hidden_layers = 7
      for key, value in pairs(changes) do config[key] = value == nothing and json.null or value end
      return config
    end
  end
  error("no case of " .. model_type)
end

-- "WWF": windows, chunks, attention to all; and the tokens of a window or a chunk, 0 where there is none.
local function pattern(model)
  local shape, letters, tokens = model.shape, {}, 0
  local function letter(layer)
    tokens = math.max(tokens, layer.window or layer.chunk or 0)
    return layer.window and layer.window > 0 and "W" or layer.chunk and "C" or "F"
  end
  for i = 1, shape.layers do letters[i] = letter(shape) end
  for _, kind in ipairs(shape.kinds or {}) do
    for _, i in ipairs(kind.layers) do letters[i] = letter(kind) end
  end
  return table.concat(letters), tokens
end

-- { model_type, changes, layers, tokens }: "layer_types", "sliding_window" and "attention_chunk_size" that the configuration classes of
-- transformers 5.24.0 make of the same keys (CONFIG_MAPPING[model_type](num_hidden_layers=7, …)); a class without layer_types gives its window to
-- all layers.
local cases = {
  { "mistral", {}, "WWWWWWW", 4096 }, { "mistral", { sliding_window = nothing }, "FFFFFFF", 0 },
  { "mixtral", { sliding_window = 4096 }, "WWWWWWW", 4096 }, { "mixtral", {}, "FFFFFFF", 0 },
  { "ministral3", { sliding_window = 256 }, "WWWWWWW", 256 }, { "phi3", { sliding_window = 2047 }, "WWWWWWW", 2047 },
  { "starcoder2", { sliding_window = 4096 }, "WWWWWWW", 4096 },
  { "qwen2", { use_sliding_window = true, sliding_window = 512, max_window_layers = 3 }, "FFFWWWW", 512 },
  { "qwen2", { use_sliding_window = false, sliding_window = 512 }, "FFFFFFF", 0 }, { "qwen2", { sliding_window = 512 }, "FFFFFFF", 0 },
  { "qwen3", { use_sliding_window = true, max_window_layers = 2 }, "FFWWWWW", 4096 },
  { "qwen2_moe", { use_sliding_window = true, max_window_layers = 4 }, "WFWFFFF", 4096 },
  { "qwen3_moe", { use_sliding_window = true, sliding_window = 64 }, "WWWWWWW", 64 },
  { "gemma2", {}, "WFWFWFW", 4096 }, { "vaultgemma", {}, "WFWFWFW", 4096 }, { "gpt_oss", {}, "WFWFWFW", 128 },
  { "gemma3_text", {}, "WWWWWFW", 4096 }, { "gemma3_text", { sliding_window_pattern = 3, sliding_window = 512 }, "WWFWWFW", 512 },
  { "cohere2", {}, "WWWFWWW", 4096 }, { "exaone4", {}, "WWWFWWW", 4096 }, { "exaone4", { sliding_window_pattern = 3 }, "WWFWWFW", 4096 },
  { "exaone4", { sliding_window_pattern = "LLG" }, "WWFWWFW", 4096 },
  { "olmo3", {}, "WWWFWWW", 4096 }, { "afmoe", {}, "WWWFWWW", 1024 }, { "afmoe", { global_attn_every_n_layers = 3 }, "WWFWWFW", 1024 },
  { "smollm3", { use_sliding_window = true, sliding_window = 128 }, "FFFWFFF", 128 },
  { "mimo_v2_flash", { sliding_window_size = 100 }, "FWWWWFW", 101 },
  { "gemma4_text", {}, "WWWWWFF", 512 }, { "exaone_moe", {}, "WWWFWWW", 4096 }, { "llama4_text", {}, "CCCFCCC", 8192 },
  { "llama", {}, "FFFFFFF", 0 },
}

describe("windows of", function()
  for i, case in ipairs(cases) do
    it(string.format("%s are those of its class (case %d)", case[1], i), function()
      local letters, tokens = pattern(hf.read(config_of(case[1], case[2]), "config.json"))
      assert.equal(case[3], letters)
      assert.equal(case[4], tokens)
    end)
  end

  it("a file with layer_types are what that says, in either form of Gemma 3", function()
    local types = { "sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention", "full_attention" }
    local letters, tokens = pattern(hf.read(config_of("gemma3_text", { layer_types = types, sliding_window = 32 }), "config.json"))
    assert.equal("WFWFWFF", letters)
    assert.equal(32, tokens)
  end)

  it("a window that is given to a family of which no layer is known to have one are said to be left out", function()
    local model = hf.read(config_of("llama", { sliding_window = 64 }), "config.json")
    assert.equal("FFFFFFF", (pattern(model)))
    local said = lists.column(model.assumptions, "field")
    assert.is_true(lists.contains(said, "model.sliding_window"))
  end)

  it("no integer are an error by the key", function()
    for _, value in ipairs{ "wide", 1.5, -1 } do
      local good, problem = pcall(hf.read, config_of("gemma2", { sliding_window = value }), "config.json")
      assert.is_false(good)
      assert.is_true(failure.is(problem))
      assert.matches("'sliding_window' must be an integer", problem.message)
    end
  end)
end)

-- A run of a small model with windows, at that sequence length.
local function assumed(sequence_length, more)
  local training = { tokens = 1e9, sequence_length = sequence_length, global_batch_size = 8, micro_batch_size = 1 }
  for key, value in pairs(more or {}) do training[key] = value end
  local request = spec.from_table({
    cluster = { gpus = 8, accelerator = "H100-SXM" }, training = training,
    model = { architecture = "dense", total = 1e9, layers = 8, hidden = 2048, window = 128 },
  })
  local lines = {}
  for _, one in ipairs(request.assumptions) do lines[#lines + 1] = string.format("%s %s %s", one.field, tostring(one.value), one.why) end
  return table.concat(lines, "\n")
end

describe("a plan says under assumed", function()
  it("what it takes windows for, where the sequence is longer than they are", function()
    assert.matches("windows of 128 tokens at the speed of attention", assumed(4096))
    assert.not_matches("windows of", assumed(128))
    assert.matches("windows of 128 tokens[^\n]*computes the whole square", assumed(4096, { unfused = { "attention" } }))
  end)
end)

describe("what starts a plan in Megatron and its kin", function()
  local launches = require "pipeplan.report.launch.init"

  -- What is written of a model of two kinds of layers, or why not.
  local function written(framework, kind, sequence_length, training)
    local object = {
      cluster = { gpus = 8, accelerator = "H100-SXM" }, framework = framework,
      training = { tokens = 1e9, sequence_length = sequence_length, global_batch_size = 8, micro_batch_size = 1 },
      model = { architecture = "dense", total = 8e9, layers = 8, hidden = 4096, kinds = kind and { kind } or nil },
      parallelism = { tensor = 2, pipeline = 2, schedule = "1f1b" },
    }
    for key, value in pairs(training or {}) do object.training[key] = value end
    local request = spec.from_table(object)
    local plan = planning.policy:with { fits_one_gpu = false }:plan_request(request)
    return launches.write(framework, plan, request)
  end

  for _, framework in ipairs { "megatron", "flagscale" } do
    it("is not written where it would be another model: " .. framework, function()
      local window = { layers = { 2, 4 }, window = 1024 }
      local text, problem = written(framework, window, 4096)
      assert.is_nil(text)
      assert.matches("has no key for windows or chunks", problem)
      assert.is_string(written(framework, window, 1024))
      assert.matches("has no key for layers of several kinds", select(2, written(framework, { layers = { 2 }, ffn = 4096 }, 1024)))
      assert.matches("has no key for documents that are packed", select(2, written(framework, nil, 4096, { document_length = 512 })))
      assert.is_string(written(framework, nil, 4096))
    end)
  end
end)

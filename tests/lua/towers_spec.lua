-- SPDX-License-Identifier: Apache-2.0
-- Towers of images (catalog/towers.lua) against the model classes themselves: tests/oracles/transformers_towers.json holds what the classes of
-- Hugging Face transformers count outside the text model, for small models and for the same files with a key left out or changed (written by
-- tests/oracles/transformers_towers.py).

require "pipeplan"
local config_keys = require "pipeplan.catalog.config_keys"
local failure = require "pipeplan.base.failure"
local hf = require "pipeplan.input.hf_config"
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"

local source = os.getenv "PIPEPLAN_SOURCE" or "."
local name = source .. "/tests/oracles/transformers_towers.json"
local oracle = json.decode(io.open(name):read "a", name)

-- The model of a config, or nil and the error.
local function read(config, tower)
  local good, result = failure.try(hf.read, config, "config.json", tower)
  if good then return result end
  assert.is_true(failure.is(result), tostring(result))
  assert.is_nil(result.message:find "\n", result.message)
  return nil, result.message
end

-- The config with changes of the object at `place` (nil: of itself).
local function with(config, place, changes, without)
  local object = lists.with(place and config[place] or config, changes)
  if without then object[without] = nil end
  return place and lists.with(config, { [place] = object }) or object
end

local function is_general(key) return config_keys.reason(key) ~= nil or key == "model_type" or key == "architectures" end

describe("the tower of images of a small model has the parameters of its class in " .. oracle.source .. ":", function()
  for i, case in ipairs(oracle.cases) do
    it(string.format("%s (case %d)", case.config.model_type, i), function()
      local model = assert(read(case.config))
      assert.equal(case.tower, model.tower_parameters)
      assert.equal(case.parameters, model.total_parameters + model.tower_parameters)
      assert.same({}, model.warnings)
    end)

    it(string.format("%s, with each key left out or changed (case %d)", case.config.model_type, i), function()
      local seen = 0
      for _, edit in ipairs(case.edits) do
        local place = edit.place ~= json.null and edit.place or nil
        local config = edit.what == "drop" and with(case.config, place, {}, edit.key) or with(case.config, place, { [edit.key] = edit.value })
        local model, message = read(config)
        local told = string.format("%s %s of %s", edit.what, edit.key, place or "the file")
        if model then assert.equal(edit.tower == json.null and case.tower or edit.tower, model.tower_parameters, told)
        else assert.is_truthy(message:find(edit.key, 1, true), told .. ": " .. message) end
        seen = seen + (model and model.tower_parameters ~= case.tower and 1 or 0)
      end
      assert.is_true(seen > 4)   -- the keys that change the class's count are read
    end)

    it(string.format("%s: no renamed key makes another tower in silence (case %d)", case.config.model_type, i), function()
      local refused = 0
      for _, place in ipairs { "vision_config", false } do
        local object = place and case.config[place] or case.config
        for _, key in ipairs(lists.sorted_keys(object)) do
          for _, other in ipairs { key .. "_v2", "vit_" .. key, key .. "s", (key:gsub("num_", "n_", 1)), key:sub(1, -2), (key:gsub("size", "dim")) } do
            if object[other] == nil and not is_general(key) and not is_general(other) and not key:find "_config$" then
              local model = read(with(case.config, place or nil, { [other] = object[key] }, key))
              if model then assert.equal(case.tower, model.tower_parameters, key .. " as " .. other) else refused = refused + 1 end
            end
          end
          if not is_general(key) and not key:find "_config$" then
            local model = read(with(case.config, place or nil, { [key] = json.null }))
            if model then assert.equal(case.tower, model.tower_parameters, key .. " as null") end
          end
        end
      end
      assert.is_true(refused > 20)
    end)
  end
end)

describe("a multimodal file", function()
  local gemma = oracle.cases[1].config

  it("whose tower is left out is its text model, and says so", function()
    local model = assert(read(gemma, "none"))
    assert.is_nil(model.tower_parameters)
    assert.is_nil(model.shape.tower)
    assert.equal(assert(read(gemma)).total_parameters, model.total_parameters)
    assert.matches("'vision_config'%) is left out, as training.tower says", model.assumptions[#model.assumptions].why)
  end)

  it("with a tower of a form that is not known is refused by name, with what to say instead", function()
    local _, message = read(lists.with(gemma, { model_type = "x", vision_config = { model_type = "clip_vision_model", hidden_size = 96 } }))
    assert.matches("has a tower of images of a form that is not known ('vision_config'), which pipeplan cannot count exactly; leave the tower "
                   .. 'out: "training": { "tower": "none" }', message, 1, true)
    _, message = read(lists.with(gemma, { audio_config = { hidden_size = 96 } }))
    assert.matches("has a tower of sound ('audio_config')", message, 1, true)
    assert.is_truthy(read(lists.with(gemma, { audio_config = { hidden_size = 96 } }), "none"))
  end)

  -- transformers 5.24.0 builds such a class with a vision_config of its own
  it("that says nothing of its tower is its text model, and says so", function()
    local tried = 0
    for _, case in ipairs(oracle.cases) do
      local class, text = case.config.architectures[1], case.config.text_config
      local model = read(lists.with(text, { architectures = { class }, model_type = text.model_type }))
      if model then
        local said = false
        for _, assumed in ipairs(model.assumptions) do said = said or assumed.why:find("the one that " .. class .. " then builds", 1, true) ~= nil end
        assert.same({ class, true, nil }, { class, said, model.tower_parameters })
        tried = tried + 1
      end
    end
    assert.is_true(tried > 3, tried)
  end)

  it("that keeps its text model beside the tower, as Qwen2-VL's does, has both", function()
    for _, case in ipairs(oracle.cases) do
      if case.config.model_type == "qwen2_vl" then
        local flat = lists.with(case.config.text_config, { architectures = case.config.architectures, model_type = "qwen2_vl",
                                                           vision_config = case.config.vision_config })
        assert.equal(case.tower, assert(read(flat)).tower_parameters)
      end
    end
  end)

  -- "vision_config" of https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct and https://huggingface.co/google/gemma-3-4b-it; the parameters are
  -- those of their classes, built on the meta device with transformers 5.24.0
  it("of a published size has the published tower", function()
    local text = { model_type = "qwen2_5_vl", architectures = { "Qwen2_5_VLForConditionalGeneration" }, hidden_size = 3584, intermediate_size = 18944,
                   num_hidden_layers = 28, num_attention_heads = 28, num_key_value_heads = 4, vocab_size = 152064, tie_word_embeddings = false }
    local qwen = lists.with(text, { vision_config = {
      depth = 32, hidden_act = "silu", hidden_size = 1280, intermediate_size = 3420, num_heads = 16, in_chans = 3, out_hidden_size = 3584,
      patch_size = 14, spatial_merge_size = 2, spatial_patch_size = 14, window_size = 112, fullatt_block_indexes = json.array { 7, 15, 23, 31 },
      tokens_per_second = 2, temporal_patch_size = 2 } })
    local model = assert(read(qwen))
    assert.equal(676550144, model.tower_parameters)
    assert.equal(8292166656 - 676550144, model.total_parameters)   -- of the whole class
  end)

  -- what https://huggingface.co/moonshotai/Kimi-K2.5 says beside its text model; the class of transformers 5.24.0 has such a tower by default
  it("of Kimi-K2.5, in the checkpoint's own keys, has the tower of its class", function()
    local text = { model_type = "llama", architectures = { "LlamaForCausalLM" }, hidden_size = 7168, intermediate_size = 18432, num_hidden_layers = 2,
                   num_attention_heads = 56, vocab_size = 163840, tie_word_embeddings = false }
    local kimi = { model_type = "kimi_k25", architectures = { "KimiK25ForConditionalGeneration" }, text_config = text, tie_word_embeddings = false,
                   ignore_index = -100, media_placeholder_token_id = 163605, use_unified_vision_chunk = true, video_placeholder = "<|video|>",
                   vision_config = { init_pos_emb_height = 64, init_pos_emb_time = 4, init_pos_emb_width = 64, merge_kernel_size = json.array { 2, 2 },
                     merge_type = "sd2_tpool", mm_hidden_size = 1152, mm_projector_type = "patchmerger", patch_size = 14, pos_emb_type = "divided_fixed",
                     projector_hidden_act = "gelu", projector_ln_eps = 1e-5, text_hidden_size = 7168, video_attn_type = "spatial_temporal",
                     vt_hidden_size = 1152, vt_intermediate_size = 4304, vt_num_attention_heads = 16, vt_num_hidden_layers = 27 } }
    assert.equal(471143920, assert(read(kimi)).tower_parameters)
  end)
end)

describe("a plan of a model with a tower of images", function()
  local pipeplan = require "pipeplan"
  local policy = pipeplan.policy("examples/sites/pipeline-anyway.lua", { date = "2026-11-27" })
  local tower = 676550144
  local shape = { layers = 8, hidden = 2048, heads = 16, kv_heads = 16, ffn = 8192, vocab = 32000 }

  local function planned(training, sharding, model)
    return policy:plan_spec({
      cluster = { gpus = 8, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = lists.with(shape, model or { tower = tower }),
      training = lists.with({ tokens = "1B", sequence_length = 2048, global_batch_size = 64, micro_batch_size = 1, recompute = "none",
                              sharding = sharding or "none" }, training or {}),
      parallelism = { pipeline = 2, tensor = 2, schedule = "1f1b", layers_per_stage = { 4, 4 } },
    }, ".")
  end
  local without = planned({}, nil, { tower = 0 })
  local function more(plan, part) return plan.memory.ranks[1][part .. "_bytes"] - without.memory.ranks[1][part .. "_bytes"] end

  -- bf16 weights, fp32 gradients, fp32 master weights and two moments: 2 + 4 + 12 bytes a parameter (Megatron-LM, distributed optimizer)
  it("holds it on the first stage, whole on each TP rank, with gradients and state where it trains", function()
    local plan = planned()
    assert.equal(tower, plan.model.tower_parameters)
    assert.equal("trained", plan.training.tower)
    assert.equal(without.model.total_parameters, plan.model.total_parameters)
    assert.near(2 * tower, more(plan, "parameters"), 1)
    assert.near(4 * tower, more(plan, "gradients"), 1)
    assert.near(12 * tower, more(plan, "optimizer"), 1)
    assert.near(18 * tower, plan.memory.ranks[1].tower_bytes, 1)
    assert.is_nil(plan.memory.ranks[2].tower_bytes)
    assert.equal(without.memory.ranks[2].total_bytes, plan.memory.ranks[2].total_bytes)
    assert.near(14 * tower, plan.host.checkpoint_bytes - without.host.checkpoint_bytes, 1)
  end)

  it("shards the state of one that trains over data parallelism", function()
    local plan, other = planned({}, "optimizer"), planned({}, "optimizer", { tower = 0 })
    assert.near(12 * tower / 2, plan.memory.ranks[1].optimizer_bytes - other.memory.ranks[1].optimizer_bytes, 1)
    assert.is_true(plan.step_seconds > other.step_seconds)   -- its gradients are reduced, its parameters updated and gathered
  end)

  it("holds the weights alone of one that is frozen, at no cost in time", function()
    local plan = planned { tower = "frozen" }
    assert.near(2 * tower, more(plan, "parameters"), 1)
    assert.near(2 * tower, plan.memory.ranks[1].tower_bytes, 1)
    assert.near(0, more(plan, "gradients") + more(plan, "optimizer"), 1)
    assert.equal(without.step_seconds, plan.step_seconds)
    assert.near(2 * tower, plan.host.checkpoint_bytes - without.host.checkpoint_bytes, 1)
  end)

  it("holds nothing of one that is left out, and none trains beside adapters", function()
    local plan = planned { tower = "none" }
    assert.equal(without.memory.ranks[1].total_bytes, plan.memory.ranks[1].total_bytes)
    assert.is_nil(plan.model.tower_parameters)
    local _, problem = failure.try(planned, { tower = "trained", lora_rank = 8 })
    assert.matches("training.tower is trained: with lora_rank only the text model's adapters train; nearest: frozen", problem.message, 1, true)
    _, problem = failure.try(planned, { tower = "frozen" }, nil, { tower = 0 })
    assert.matches("training.tower is frozen: inline dense has no tower of images; leave it out", problem.message, 1, true)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- families.lua: what the layers of each model family hold beyond the sizes in its config.json: biases, norms, ties, experts, and what a key
-- means when it is absent. Facts of the model classes (Hugging Face transformers 4.57.6 and 5.24.0, src/transformers/models/*/; deepseek,
-- chatglm and mimo: the modeling files that ship with their checkpoints). tests/lua/families_spec.lua holds what the classes themselves count
-- for the files that both releases save, and for the same files with each key left out, null, renamed, changed, and others added.
--
-- An entry:
--   classes             names in "architectures" (first match wins, before model_type)
--   tied                what an absent tie_word_embeddings means
--   tied_by_either      of a multimodal file, tie_word_embeddings of the file and of its text model: true where either is
--   gated               true (SwiGLU, GeGLU) unless said otherwise
--   norms, norm_bias    norms per layer (2 unless said otherwise), LayerNorm with bias
--   qkv_bias output_bias mlp_bias head_bias    true, or key("name in config.json", default)
--   qk_norm             "head" | "full", or key(name, default, kind)
--   head_dim            nil: hidden / heads when absent; a number: that when absent; "hidden": always hidden / heads, no class reads the key;
--                       "given": absence is an error; "not null": hidden / heads when absent, an error when null
--   kv_heads            nil: as many as heads when absent; a number: that when absent; "heads": always as many; "given": absence is an error,
--                       because the class has a number of its own that no published file means
--   ffn                 keys of the dense feed-forward's width; `times` hidden when absent (times_with: only where that key is)
--   moe                 it has experts, always. ffn: keys of an expert's width; shared: keys of a width,
--                       shared_count: key of how many of expert_ffn; dense: which layers are dense
--   expects             { key, value, what another value would be }: counted only so
--   ignores             keys that this family's classes keep and do not use, beyond config_keys.lua
--   counted_by          what counted it where no class of transformers does
--   adjust              function(config, shape): what no table says; config:flag(key, default), config:size(key, default), config:refuse(feature)

local with = require("pipeplan.base.lists").with

local function key(name, default, kind)
  return { key = name, default = default, kind = kind }
end

-- Which layers are dense, each function(config, layers) → is_dense(i), i from 1 (i − 1 in the source's numbering).
local dense = {}

-- DeepSeek: the first k. (moe_layer_freq, which only the checkpoints' own code reads, is 1 in all of them.)
dense.first_k = { "first_k_dense_replace", of = function(config)
  local first = config:size("first_k_dense_replace", nil, 0) or config:missing{ "first_k_dense_replace" }
  return function(i) return i <= first end
end }

-- Qwen: mlp_only_layers, and all but every decoder_sparse_step-th.
dense.sparse_step = { "decoder_sparse_step", "mlp_only_layers", of = function(config)
  local step, only = config:size("decoder_sparse_step", 1), {}
  for _, layer in ipairs(config:integers("mlp_only_layers") or {}) do only[layer + 1] = true end
  return function(i) return only[i] == true or i % step ~= 0 end
end }

-- Llama-4: moe_layers, or every interleave_moe_layer_step-th.
dense.interleaved = { "moe_layers", "interleave_moe_layer_step", of = function(config)
  local step, listed = config:size("interleave_moe_layer_step", 1), config:integers("moe_layers")
  if not listed then return function(i) return i % step ~= 0 end end
  local moe = {}
  for _, layer in ipairs(listed) do moe[layer + 1] = true end
  return function(i) return not moe[i] end
end }

-- ERNIE-4.5: from moe_layer_start_index to moe_layer_end_index, every moe_layer_interval-th.
dense.ernie = { "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", of = function(config, layers)
  local from, to = config:size("moe_layer_start_index", 1, 0), config:size("moe_layer_end_index", -1, -1)
  local interval = config:size("moe_layer_interval", 1)
  if to == -1 then to = layers - 1 end
  return function(i) return i % interval ~= 0 or i - 1 < from or i - 1 > to end
end }

-- GPT-2 and its kin: plain MLP, LayerNorm, biases on every product.
local function gpt(entry)
  local usual = { gated = false, norm_bias = true, qkv_bias = true, output_bias = true, mlp_bias = true, head_dim = "hidden", kv_heads = "heads" }
  for name, value in pairs(usual) do
    if entry[name] == nil then entry[name] = value end
  end
  return entry
end

local attention_bias = key("attention_bias", false)
local every_layer_after_the_first_k = { "moe_layer_freq", 1, "experts in some layers only" }
local deepseek_moe = { ffn = { "moe_intermediate_size" },
                       shared_count = "n_shared_experts", dense = dense.first_k }
local mixtral_moe = { ffn = { "intermediate_size" } }
local qwen_moe = { ffn = { "moe_intermediate_size" }, dense = dense.sparse_step }

-- Those whose layers are all of the usual kinds.
local alike = {
  arcee = { classes = { "ArceeForCausalLM" }, tied = false, gated = false, qkv_bias = attention_bias, output_bias = attention_bias,
            mlp_bias = key("mlp_bias", false) },
  bloom = gpt{ classes = { "BloomForCausalLM" }, tied = true, ffn = { times = 4 }, adjust = function(_, shape) shape.embedding_norm = true end },
  chatglm = { counted_by = "modeling_chatglm.py of its checkpoint", classes = { "ChatGLMModel", "ChatGLMForConditionalGeneration" }, tied = false, ffn = { "ffn_hidden_size" },
              qkv_bias = key("add_qkv_bias", false),
              head_dim_keys = { "kv_channels" },
              expects = { { "add_bias_linear", false, "biases on all linear layers" }, { "rmsnorm", true, "LayerNorm instead of RMSNorm" },
                          { "post_layer_norm", true, "no norm behind the last layer" }, { "pre_seq_len", nil, "a prefix encoder" } },
              adjust = function(config, shape)
                local grouped = config:flag("multi_query_attention", nil)
                if grouped == nil and shape.kv_heads ~= shape.heads then
                  config:complain("multi_query_attention", "true or false where there is a 'multi_query_group_num'", nil)
                end
                if grouped and not config:size("multi_query_group_num", nil) then config:missing{ "multi_query_group_num" } end
                if not grouped then shape.kv_heads = shape.heads end
              end },
  cohere = { classes = { "CohereForCausalLM" }, tied = true, norms = 1, qkv_bias = attention_bias, output_bias = attention_bias,
             qk_norm = key("use_qk_norm", false, "full") },
  cohere2 = { classes = { "Cohere2ForCausalLM" }, tied = true, norms = 1, qkv_bias = attention_bias, output_bias = attention_bias },
  deepseek = { counted_by = "modeling_deepseek.py of its checkpoint", expects = { every_layer_after_the_first_k }, classes = { "DeepseekForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, moe = deepseek_moe },
  deepseek_v2 = { expects = { every_layer_after_the_first_k, { "mlp_bias", false, "biases in experts" } }, classes = { "DeepseekV2ForCausalLM" }, tied = false, mla = true, moe = deepseek_moe },
  deepseek_v3 = { expects = { every_layer_after_the_first_k }, classes = { "DeepseekV3ForCausalLM" }, types = { "kimi_k2" }, tied = false, mla = true,
                  moe = with(deepseek_moe, { correction_bias = true }) },
  dots1 = { kv_heads = "given", expects = { every_layer_after_the_first_k }, classes = { "Dots1ForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head",
            moe = with(deepseek_moe, { correction_bias = true }) },
  ernie4_5 = { kv_heads = "given", classes = { "Ernie4_5ForCausalLM" }, tied = true, head_dim = 128, qkv_bias = key("use_bias", false),
               output_bias = key("use_bias", false), mlp_bias = key("use_bias", false) },
  ernie4_5_moe = { kv_heads = "given", classes = { "Ernie4_5_MoeForCausalLM" }, tied = true,
                   moe = { ffn = { "moe_intermediate_size" },
                           shared_count = "moe_num_shared_experts", correction_bias = true, dense = dense.ernie },
                   expects = { { "use_bias", false, "biases in experts" } } },
  exaone4 = { kv_heads = "given", classes = { "Exaone4ForCausalLM" }, tied = false, qk_norm = "head" },
  falcon = gpt{ classes = { "FalconForCausalLM", "RWForCausalLM" }, types = { "RefinedWeb", "RefinedWebModel" }, tied = true,
                ffn = { "ffn_hidden_size", times = 4 }, kv_heads = false, ignores = { "multi_query" }, qkv_bias = key("bias", false), output_bias = key("bias", false), mlp_bias = key("bias", false),
                adjust = function(config, shape)
                  local new = config:flag("new_decoder_architecture", false)
                  if not new then shape.kv_heads = config:flag("multi_query", true) and 1 or shape.heads end
                  if config:flag("parallel_attn", true) then
                    local norms = config:size_of({ "num_ln_in_parallel_attn" }, new and 2 or 1)
                    if norms > 2 then config:complain("num_ln_in_parallel_attn", "1 or 2", norms) end
                    shape.norms_per_layer = norms
                  end
                end },
  gemma = { kv_heads = "given", classes = { "GemmaForCausalLM" }, tied = true, head_dim = 256, qkv_bias = attention_bias, output_bias = attention_bias },
  gemma2 = { kv_heads = "given", classes = { "Gemma2ForCausalLM" }, tied = true, norms = 4, head_dim = 256, qkv_bias = attention_bias, output_bias = attention_bias },
  -- The files of the larger Gemma-3 leave out what equals the class's default.
  gemma3 = { classes = { "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration" }, types = { "gemma3_text" }, tied = true, norms = 4, head_dim = 256,
             qk_norm = "head", qkv_bias = attention_bias, output_bias = attention_bias, heads = 8, kv_heads = 4, vocab = 262208,
             max_positions = 131072 },
  glm = { classes = { "GlmForCausalLM" }, tied = false, head_dim = 128, kv_heads = 2, qkv_bias = key("attention_bias", true) },
  glm4 = { classes = { "Glm4ForCausalLM" }, tied = false, norms = 4, head_dim = 128, kv_heads = 2, qkv_bias = key("attention_bias", true) },
  glm4_moe = { head_dim = "not null", kv_heads = "given", expects = { every_layer_after_the_first_k }, classes = { "Glm4MoeForCausalLM" }, tied = false, qkv_bias = attention_bias, qk_norm = key("use_qk_norm", false, "head"),
               moe = with(deepseek_moe, { correction_bias = true }) },
  gpt2 = gpt{ classes = { "GPT2LMHeadModel" }, tied = true, ffn = { "n_inner", times = 4 }, positions = 0 },
  gpt_bigcode = gpt{ classes = { "GPTBigCodeForCausalLM" }, tied = true, ffn = { "n_inner", times = 4 }, positions = 0,
                     adjust = function(config, shape)
                       shape.kv_heads = config:flag("multi_query", true) and 1 or shape.heads
                       config:expect("num_key_value_heads", shape.kv_heads, "heads that 'multi_query' does not tell")
                     end },
  gpt_neox = gpt{ classes = { "GPTNeoXForCausalLM" }, tied = false, qkv_bias = key("attention_bias", true), output_bias = key("attention_bias", true) },
  gpt_oss = { classes = { "GptOssForCausalLM" }, tied = false, head_dim = 64, kv_heads = 8, qkv_bias = key("attention_bias", true),
              output_bias = key("attention_bias", true),
              moe = { ffn = { "intermediate_size" },
                      router_bias = true, expert_bias = true },
              adjust = function(_, shape) shape.attention_sinks = shape.heads end },
  gptj = gpt{ classes = { "GPTJForCausalLM" }, tied = false, norms = 1, qkv_bias = false, output_bias = false, head_bias = true,
              ffn = { "n_inner", times = 4 } },
  granite = { classes = { "GraniteForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, mlp_bias = key("mlp_bias", false) },
  granitemoe = { head_dim = "hidden", classes = { "GraniteMoeForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, moe = mixtral_moe },
  granitemoeshared = { head_dim = "hidden", classes = { "GraniteMoeSharedForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias,
                       moe = with(mixtral_moe, { shared = { "shared_intermediate_size" } }) },
  hunyuan_v1_dense = { classes = { "HunYuanDenseV1ForCausalLM" }, head_dim_keys = { "head_dim", "attention_head_dim" },
                       ignores = { "use_qk_norm", "cla_share_factor" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head" },
  hunyuan_v1_moe = { classes = { "HunYuanMoEV1ForCausalLM" }, head_dim_keys = { "head_dim", "attention_head_dim" },
                     ignores = { "use_qk_norm", "cla_share_factor" },
                     expects = { { "num_shared_expert", 1, "several shared experts" }, { "use_mixed_mlp_moe", true, "no shared expert" },
                                 { "moe_layer_num_skipped", 0, "dense layers" } }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head",
                     moe = { ffn = { "intermediate_size" }, shared = { "intermediate_size" } },
                     adjust = function(config, shape) config:expect("moe_intermediate_size", shape.expert_ffn, "experts of another width") end },
  llama = { classes = { "LlamaForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, mlp_bias = key("mlp_bias", false) },
  llama4 = { classes = { "Llama4ForCausalLM", "Llama4ForConditionalGeneration" }, types = { "llama4_text" }, tied = false, head_dim = 128, kv_heads = "given",
             qkv_bias = attention_bias, output_bias = attention_bias, ffn = { "intermediate_size_mlp" }, ignores = { "use_qk_norm" },
             -- its qk norm has no weights; the shared expert is as wide as a routed one
             moe = with(mixtral_moe, { shared = { "intermediate_size" }, dense = dense.interleaved }) },
  mimo = { counted_by = "modeling_mimo.py of its checkpoint", classes = { "MiMoForCausalLM" }, tied = false, kv_heads = "given", qkv_bias = key("attention_bias", true) },
  minimax_m2 = { classes = { "MiniMaxM2ForCausalLM" }, tied = false, qk_norm = "full", head_dim = "given", kv_heads = "given",
                 expects = { { "use_qk_norm", true, "no norm over queries and keys" }, { "use_routing_bias", true, "no bias in routing" },
                             { "shared_intermediate_size", 0, "a shared expert" },
                              { "qk_norm_type", "per_layer", "a qk norm of another kind" }, { "mtp_transformer_layers", 1, "MTP modules of several layers" } },
                 moe = with(mixtral_moe, { correction_bias = true }) },
  mistral = { classes = { "MistralForCausalLM" }, types = { "ministral" }, tied = false, kv_heads = 8 },
  mixtral = { classes = { "MixtralForCausalLM" }, tied = false, kv_heads = 8, moe = mixtral_moe },
  mpt = { classes = { "MptForCausalLM", "MPTForCausalLM" }, tied = true, gated = false, ffn = { times = 4 },
          head_dim = "hidden", kv_heads = "heads", ignores = { "embedding_fraction", "norm_type", "learned_pos_emb" },
          expects = { { "expansion_ratio", 4, "an MLP of another width" }, { "no_bias", true, "biases" } },
          -- attn_config is an object of its own; transformers 5 writes all keys of a configuration into it
          adjust = function(config)
            local attention = config:get("attn_config")
            if type(attention) ~= "table" then return end
            if attention.qk_ln == true then config:refuse("a norm over queries and keys (attn_config.qk_ln)") end
            if attention.kv_n_heads ~= nil then config:refuse("grouped-query attention (attn_config.kv_n_heads)") end
            if attention.alibi == false then config:refuse("learned positions (attn_config.alibi)") end
            if attention.attn_type ~= nil and attention.attn_type ~= "multihead_attention" then
              config:refuse("multi-query attention (attn_config.attn_type)")
            end
          end },
  nemotron = { kv_heads = "given", classes = { "NemotronForCausalLM" }, tied = false, gated = false, norm_bias = true, qkv_bias = attention_bias,
               output_bias = attention_bias, mlp_bias = key("mlp_bias", false) },
  olmo = { classes = { "OlmoForCausalLM" }, tied = false, norms = 0, qkv_bias = attention_bias, output_bias = attention_bias },
  olmo2 = { classes = { "Olmo2ForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "full" },
  olmo3 = { classes = { "Olmo3ForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "full" },
  olmoe = { head_dim = "hidden", classes = { "OlmoeForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "full",
            moe = { ffn = { "intermediate_size" } } },
  opt = gpt{ classes = { "OPTForCausalLM" }, tied = true, ffn = { "ffn_dim" }, qkv_bias = key("enable_bias", true),
             output_bias = key("enable_bias", true), mlp_bias = key("enable_bias", true), positions = 2,
             expects = { { "do_layer_norm_before", true, "norms behind the layers" }, { "_remove_final_layer_norm", false, "no last norm" } },
             adjust = function(config, shape)
               config:expect("word_embed_proj_dim", shape.hidden, "an embedding of another width")
               if not config:flag("layer_norm_elementwise_affine", true) then shape.norms_per_layer = 0 end
             end },
  phi = gpt{ classes = { "PhiForCausalLM" }, types = { "phi-msft" }, tied = false, norms = 1, head_bias = true,
             head_dim = false, kv_heads = false, ffn = { "intermediate_size", "n_inner", times = 4, times_with = "n_embd" },
             expects = { { "qk_layernorm", false, "a norm over queries and keys" } } },
  phi3 = { classes = { "Phi3ForCausalLM" }, tied = false },
  phimoe = { head_dim = "hidden", kv_heads = "given", classes = { "PhimoeForCausalLM", "PhiMoEForCausalLM" }, tied = false, norm_bias = true, qkv_bias = attention_bias, output_bias = attention_bias,
             head_bias = key("lm_head_bias", false), moe = mixtral_moe },
  qwen2 = { kv_heads = "given", classes = { "Qwen2ForCausalLM", "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration" },
            types = { "qwen2_vl_text", "qwen2_5_vl_text" }, tied = false, tied_by_either = true, qkv_bias = true },
  qwen2_moe = { head_dim = "hidden", kv_heads = "given", classes = { "Qwen2MoeForCausalLM" }, tied = false, qkv_bias = key("qkv_bias", true),
                moe = with(qwen_moe, { shared = { "shared_expert_intermediate_size" }, shared_gate = true }) },
  qwen3 = { kv_heads = "given", classes = { "Qwen3ForCausalLM", "Qwen3VLForConditionalGeneration" }, types = { "qwen3_vl_text" }, tied = false, head_dim = 128, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head" },
  qwen3_moe = { head_dim = "not null", kv_heads = "given", classes = { "Qwen3MoeForCausalLM", "Qwen3VLMoeForConditionalGeneration" }, types = { "qwen3_vl_moe_text" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head",
                expects = { { "shared_expert_intermediate_size", 0, "a shared expert" } }, ignores = { "use_qk_norm" }, moe = qwen_moe },
  seed_oss = { kv_heads = "given", classes = { "SeedOssForCausalLM" }, tied = false, head_dim = 128, qkv_bias = key("attention_bias", true),
               output_bias = key("attention_out_bias", false), mlp_bias = key("mlp_bias", false) },
  smollm3 = { kv_heads = "given", classes = { "SmolLM3ForCausalLM" }, tied = true, qkv_bias = attention_bias, output_bias = attention_bias, mlp_bias = key("mlp_bias", false) },
  stablelm = { head_dim = "hidden", kv_heads = "given", classes = { "StableLmForCausalLM" }, tied = false, norm_bias = true, qkv_bias = key("use_qkv_bias", false),
               qk_norm = key("qk_layernorm", false, "full"),
               adjust = function(config, shape) if config:flag("use_parallel_residual", false) then shape.norms_per_layer = 1 end end },
  starcoder2 = gpt{ classes = { "Starcoder2ForCausalLM" }, tied = true, kv_heads = 2, head_dim = false, qkv_bias = key("use_bias", true), output_bias = key("use_bias", true),
                    mlp_bias = key("use_bias", true) },
}

-- They and those of hybrids.lua, by model_type.
local families
local function all()
  families = families or with(alike, require("pipeplan.catalog.hybrids")(key, dense, deepseek_moe))
  return families
end

-- Families that are known not to be countable by blocks of one shape, by model_type or class: what stands in the way.
local shared = "Mamba layers, and attention whose weights layers share"
local encoder = "an encoder and a decoder"
local refused = {
  gemma3n = "per-layer embeddings", gemma3n_text = "per-layer embeddings", kimi_k3 = "delta attention and experts on a latent size",
  mt5 = encoder, recurrent_gemma = "recurrent layers", rwkv = "recurrent layers", t5 = encoder, umt5 = encoder, zamba = shared, zamba2 = shared,
}

-- What is published of refused families whose files do not say it, by model_type. Kimi-K3: its report, https://arxiv.org/abs/2607.24653.
local published = { kimi_k3 = { total = "2.8T", active = "104B" } }

-- Keys that tell the same of any family, whatever it is called. Checked in this order; a value of false, 0, null or "" says nothing.
local telling_keys = {
  { "block_configs", "layers of different shapes" },
  { "hybrid_override_pattern", "Mamba layers" },
  { "ssm_state_size", "Mamba layers" },
  { "mamba_d_state", "Mamba layers" },
  { "linear_attn_config", "linear attention layers" },
  { "linear_num_key_heads", "linear attention layers" },
  { "full_attention_interval", "linear attention layers" },
  { "compress_ratios", "compressed attention" },
  { "index_topk", "sparse attention with an indexer" },
  { "o_lora_rank", "a low-rank output projection" },
  { "routed_expert_hidden_size", "experts on a latent size" },
  { "moe_latent_size", "experts on a latent size" },
  { "enable_moe_block", "both a dense and an expert MLP in one layer" },
  { "hidden_size_per_layer_input", "per-layer embeddings" },
  { "num_kv_shared_layers", "layers that share keys and values" },
  { "attn_output_gate", "output gates in attention" },
  { "zero_expert_num", "experts that compute nothing" },
  { "is_encoder_decoder", "an encoder and a decoder" },
}

-- layer_types that are plain softmax attention for parameters and FLOPs.
local plain_layer_types = { full_attention = true, sliding_attention = true, chunked_attention = true }

-- Objects that tell of a tower beside the text model, and what it is; what the first holds is counted for some families (towers.lua).
local towers = {
  { "vision_config", "a tower of images" },
  { "audio_config", "a tower of sound" },
  { "video_config", "a tower of video" },
  { "img_processor", "a tower of images of its own form" },
  { "embd_layer", "a tower of images or sound of its own form" },
}

return {
  alike = alike, all = all, refused = refused, published = published, telling_keys = telling_keys, plain_layer_types = plain_layer_types,
  towers = towers,
}

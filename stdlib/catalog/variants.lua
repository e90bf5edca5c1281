-- SPDX-License-Identifier: Apache-2.0
-- variants.lua: families that differ from an older one by a norm, a bias or a key, entries of families.lua with what hybrids.lua adds to it. Facts of
-- the classes of Hugging Face transformers 5.24.0 (src/transformers/models/*/; codegen and flex_olmo: 4.57.6 too).

-- of: functions of hybrids.lua.
return function(of)
  local flag, attention_bias = of.flag, of.flag("attention_bias", false)

  -- Classes of transformers 5 take no null for a flag.
  local function tied_is_given(config) config:resolve(flag("tie_word_embeddings", false)) end

  local function sinks(_, shape) shape.attention_sinks = shape.heads end

  -- Layers that mlp_layer_types calls dense; all sparse without it.
  local listed_dense = { "mlp_layer_types", of = function(config, layers)
    local list = config:get("mlp_layer_types")
    if type(list) ~= "table" or #list ~= layers then return function() return false end end
    return function(i) return list[i] == "dense" end
  end }

  -- A.X K1: one more norm behind experts, not behind the dense MLP.
  local function norm_behind_experts(_, shape)
    local dense = { norms_per_layer = 2 }
    local first, listed = shape.first_dense or 0, {}
    for _, i in ipairs(shape.dense_layers or {}) do listed[i] = true end
    return function(i) return (i <= first or listed[i]) and dense or nil end
  end

  -- Classes with latent attention whose head_dim is qk_rope_head_dim.
  local function rotary_heads(config, shape)
    config:expect("head_dim", config:get("head_dim") and shape.qk_rope_dim, "heads of another width")
  end

  local granite_ignores = { "layer_rope_theta" }

  return {
    axk1 = { classes = { "AXK1ForCausalLM" }, tied = false, mla = true, norms = 3, own = norm_behind_experts,
             moe = { ffn = { "moe_intermediate_size" }, shared_count = "n_shared_experts", correction_bias = true,
                     dense = of.listed_or_first_k("first_k_dense_replace", 1) },
             expects = { { "moe_layer_freq", 1, "experts in some layers only" } },
             adjust = function(config, shape)
               if not shape.q_lora_rank then config:missing{ "q_lora_rank" } end
               rotary_heads(config, shape)
             end },
    codegen = { classes = { "CodeGenForCausalLM" }, tied = false, gated = false, norms = 1, norm_bias = true, mlp_bias = true, head_bias = true,
                head_dim = "hidden", kv_heads = "heads", ffn = { "n_inner", times = 4 } },
    cwm = { classes = { "CwmForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given", mlp_bias = flag("mlp_bias", false) },
    flex_olmo = { classes = { "FlexOlmoForCausalLM" }, tied = false, head_dim = "hidden", qkv_bias = attention_bias, output_bias = attention_bias,
                  qk_norm = "full", moe = { ffn = { "intermediate_size" } } },
    granite_swa = { classes = { "GraniteSWAForCausalLM" }, tied = true, head_dim = "hidden", kv_heads = "given", qkv_bias = attention_bias, output_bias = attention_bias,
                    mlp_bias = flag("mlp_bias", false), adjust = sinks, ignores = granite_ignores },
    granitemoe_swa = { classes = { "GraniteMoeSWAForCausalLM" }, tied = false, head_dim = "hidden", qkv_bias = attention_bias,
                       output_bias = attention_bias, moe = { ffn = { "intermediate_size" }, shared = { "shared_intermediate_size" } }, adjust = sinks,
                       ignores = granite_ignores },
    hyperclovax = { classes = { "HyperCLOVAXForCausalLM" }, tied = false, qkv_bias = attention_bias, output_bias = attention_bias,
                    mlp_bias = flag("mlp_bias", false),
                    adjust = function(config, shape)
                      tied_is_given(config)
                      if config:resolve(flag("use_post_norm", true)) then shape.norms_per_layer = 4 end
                    end },
    jais2 = { classes = { "Jais2ForCausalLM" }, tied = false, gated = false, norm_bias = true, head_dim = "given", kv_heads = "given",
              qkv_bias = flag("attention_bias", true), output_bias = flag("attention_bias", true), mlp_bias = flag("mlp_bias", true),
              adjust = tied_is_given },
    mellum = { classes = { "MellumForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given", qk_norm = "head", qkv_bias = attention_bias,
               output_bias = attention_bias, moe = { ffn = { "moe_intermediate_size" }, dense = listed_dense },
               ignores = { "mtp_layer_types", "mtp_mlp_layer_types" } },
    youtu = { classes = { "YoutuForCausalLM" }, tied = true, mla = true, ignores = { "embedding_initializer_range" },
              adjust = rotary_heads },
  }
end

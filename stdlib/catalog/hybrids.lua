-- SPDX-License-Identifier: Apache-2.0
-- hybrids.lua: families whose layers are of several kinds, or whose attention is not of the usual sizes. Facts of the model classes of Hugging
-- Face transformers 5.24.0 (src/transformers/models/*/); families.lua says what an entry is. Beyond what stands there:
--   own          function(config, shape) → function(i) → what layer i (from 1) has of its own, fields of a shape, or nil
--   layer_types  what its "layer_types" may say beside plain attention
--   mlp_types    what its "mlp_layer_types" may say of layers with experts in place of "sparse"
--   reads        keys of families.lua's telling_keys that it reads
--   assumes      whose time nothing has measured: what reading a file of it says under assumptions
--   moe          may be a function(config, shape), nil for a file without experts

local with = require("pipeplan.base.lists").with

return function(key, dense, deepseek_moe)
  -- Classes of transformers 5 take no null for a flag.
  local function flag(name, default)
    local fact = key(name, default)
    fact.strict = true
    return fact
  end
  local attention_bias = flag("attention_bias", false)

  local function need(config, name) return config:required{ name } end

  -- The kind of each layer, by "layer_types", else by `usual`.
  local function types_of(config, layers, usual)
    local list = config:get("layer_types")
    if type(list) == "table" and #list == layers then return function(i) return list[i] end end
    return usual
  end

  -- Layers that mlp_layer_types calls dense; without it the first k, by the key of that name (`first`: of a class that has a number of its own).
  local function listed_or_first_k(name, first)
    return { "mlp_layer_types", name, of = function(config, layers)
      local list = config:get("mlp_layer_types")
      local k = config:size(name, nil, 0)
      if type(list) == "table" and #list == layers then
        local sparse = {}
        for i, kind in ipairs(list) do
          if kind ~= "dense" and kind ~= "sparse" then config:refuse(string.format("%s layers ('mlp_layer_types')", config.word(kind))) end
          sparse[i] = kind == "sparse"
        end
        if k then
          for i = 1, layers do
            if sparse[i] ~= (i > k) then config:refuse(string.format("dense layers by 'mlp_layer_types' that '%s' does not tell", name)) end
          end
        end
        return function(i) return not sparse[i] end
      end
      k = k or first or config:missing{ name }
      return function(i) return i <= k end
    end }
  end

  -- ---------------------------------------------------------------------------------------------------------- gated delta net

  -- Qwen3-Next and its kin: of every `full_attention_interval` layers the last has attention.
  local function delta_net(config, shape)
    local interval = config:size("full_attention_interval", 4)
    local linear = { attention = "gated_delta", key_heads = need(config, "linear_num_key_heads"), key_dim = need(config, "linear_key_head_dim"),
                     value_heads = need(config, "linear_num_value_heads"), value_dim = need(config, "linear_value_head_dim"),
                     conv_kernel = need(config, "linear_conv_kernel_dim"), output_gate = 0, output_bias = false }
    local kind = types_of(config, shape.layers, function(i) return i % interval ~= 0 and "linear_attention" or "full_attention" end)
    return function(i) return kind(i) == "linear_attention" and linear or nil end
  end

  local function gate_of_all_heads(config, shape)
    config:expect("attn_output_gate", true, "attention without an output gate")
    shape.output_gate = shape.heads * shape.head_dim
  end

  local qwen_hybrid = {
    assumes = "gated delta net",
    tied = false, head_dim = "given", kv_heads = "given", qkv_bias = attention_bias, output_bias = attention_bias, qk_norm = "head",
    layer_types = { linear_attention = true }, adjust = gate_of_all_heads, own = delta_net,
    reads = { linear_num_key_heads = true, full_attention_interval = true, attn_output_gate = true },
    ignores = { "mamba_ssm_dtype", "mtp_use_dedicated_embeddings" },
  }
  local qwen_shared = { ffn = { "moe_intermediate_size" }, shared = { "shared_expert_intermediate_size" }, shared_gate = true }

  -- ------------------------------------------------------------------------------------------------------------------- indexers

  local indexed = { indexed_attention = true }

  local function add_indexer(config, shape)
    shape.index_heads, shape.index_dim = need(config, "index_n_heads"), need(config, "index_head_dim")
    shape.index_topk = need(config, "index_topk")
    if not shape.q_lora_rank then need(config, "q_lora_rank") end   -- its queries come from that latent
  end

  -- GLM-5.2: layers that attend to what an earlier layer's indexer chose.
  local function shared_indexers(config, shape)
    local types, pattern = config:get("indexer_types"), config:get("index_topk_pattern")
    local every, offset = math.max(config:size("index_topk_freq", 1, 0), 1), config:size("index_skip_topk_offset", 2, 0)
    local function is_shared(i)
      if type(types) == "table" then
        if types[i] ~= "shared" and types[i] ~= "full" then config:complain("indexer_types", "full or shared", types[i]) end
        return types[i] == "shared"
      elseif type(pattern) == "string" then
        if not pattern:find("^[FS]", i) then config:complain("index_topk_pattern", "letters F and S", pattern) end
        return pattern:sub(i, i) == "S"
      end
      return math.max(i - 1 - offset + 1, 0) % every ~= 0
    end
    if type(types) == "table" and #types ~= shape.layers then config:complain("indexer_types", "a list of " .. shape.layers, #types) end
    if type(pattern) == "string" and #pattern ~= shape.layers then config:complain("index_topk_pattern", shape.layers .. " letters", #pattern) end
    return function(i) return is_shared(i) and { index_heads = 0, index_dim = 0 } or nil end
  end

  local deepseek_v32 = {
    assumes = "sparse attention",
    classes = { "DeepseekV32ForCausalLM" }, tied = false, mla = true, layer_types = indexed, reads = { index_topk = true },
    moe = with(deepseek_moe, { correction_bias = true }), adjust = add_indexer, ignores = { "indexer_rope_interleave", "qk_head_dim" },
    expects = { { "moe_layer_freq", 1, "experts in some layers only" } },
  }

  -- -------------------------------------------------------------------------------------------------------------------- Mamba-2

  -- Nemotron-H: a letter a layer, which has one part only: M Mamba-2, * attention, - a feed-forward, E experts.
  local letters = { M = "linear_attention", ["*"] = "full_attention", ["-"] = "mlp", E = "moe" }
  local old_names = { mamba = "linear_attention", attention = "full_attention" }

  -- Files of transformers 5 do not say how many layers there are, beside the list.
  local function nemotron_layers(config)
    local list, said = config:get("layers_block_type") or config:get("layer_types"), config:size("num_hidden_layers", nil)
    if list == nil and config:get("hybrid_override_pattern") == nil then config:missing{ "layers_block_type", "hybrid_override_pattern" } end
    if type(list) ~= "table" or #list == 0 then return nil end
    if said and said ~= #list then config:complain("num_hidden_layers", string.format("the length of the list of layers (%d)", #list), said) end
    return #list
  end

  local function nemotron_types(config, layers)
    local list = config:get("layer_types") or config:get("layers_block_type")
    local pattern = config:get("hybrid_override_pattern")
    local types = {}
    if type(list) == "table" then
      for i, name in ipairs(list) do
        types[i] = old_names[name] or name
        if type(pattern) == "string" and letters[pattern:sub(i, i)] ~= types[i] then
          config:refuse(string.format("another layer %d in the list of layers than in 'hybrid_override_pattern'", i))
        end
      end
    elseif type(pattern) == "string" then
      for letter in pattern:gmatch(".") do
        types[#types + 1] = letters[letter] or config:refuse(string.format("layers '%s' ('hybrid_override_pattern')", letter))
      end
    else
      config:missing{ "hybrid_override_pattern", "layers_block_type" }
    end
    if #types ~= layers then config:refuse(string.format("%d layers in its pattern and %d by 'num_hidden_layers'", #types, layers)) end
    for _, name in ipairs(types) do
      if name ~= "linear_attention" and name ~= "full_attention" and name ~= "mlp" and name ~= "moe" then
        config:refuse(string.format("%s layers", config.word(name)))
      end
    end
    return types
  end

  local function nemotron_moe(config, shape)
    local types, any = nemotron_types(config, shape.layers), false
    for _, name in ipairs(types) do any = any or name == "moe" end
    for _, name in ipairs{ "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_shared_expert_intermediate_size",
                           "n_shared_experts", "num_local_experts" } do config.seen[name] = true end
    if not any then return nil end
    config:expect("n_shared_experts", 1, "several shared experts")
    local shared = config:get "moe_shared_expert_intermediate_size"
    return { ffn = { "moe_intermediate_size" }, correction_bias = true,
             shared = { shared == 0 and "intermediate_size" or "moe_shared_expert_intermediate_size" },   -- 0 is none said to the class
             dense = { of = function() return function(i) return types[i] ~= "moe" end end } }
  end

  local function nemotron_own(config, shape)
    local types = nemotron_types(config, shape.layers)
    local own = {
      linear_attention = { attention = "mamba2", ffn = 0, key_heads = config:required{ "n_groups", "mamba_n_groups" },
                           key_dim = need(config, "ssm_state_size"), value_heads = need(config, "mamba_num_heads"),
                           value_dim = need(config, "mamba_head_dim"), conv_kernel = config:required{ "conv_kernel", "mamba_d_conv" },
                           conv_bias = config:resolve(flag("use_conv_bias", true)), mixer_norm = true, qkv_bias = false, output_bias = false },
      full_attention = { ffn = 0 }, mlp = { attention = "none" }, moe = { attention = "none" },
    }
    return function(i) return own[types[i]] end
  end

  local function nemotron_latent(config, shape)
    if shape.experts then shape.expert_hidden = config:size("moe_latent_size", nil) end
    config.seen.moe_latent_size = true
    config:leave_out_mtp(shape, "its MTP module is a layer of attention and one of experts, which pipeplan does not count")
  end

  local nemotron_h = {
    assumes = "Mamba-2",
    classes = { "NemotronHForCausalLM" }, tied = false, gated = false, norms = 1, head_dim = "given", head_dim_keys = { "head_dim", "attention_head_dim" },
    kv_heads = "given", moe = nemotron_moe, own = nemotron_own, adjust = nemotron_latent, layers = nemotron_layers,
    layer_types = { linear_attention = true, moe = true, mlp = true }, reads = { hybrid_override_pattern = true, ssm_state_size = true, moe_latent_size = true },
    expects = { { "tie_word_embeddings", false, "tied embeddings" }, { "attention_bias", false, "biases in attention" }, { "mlp_bias", false, "biases in feed-forward layers" }, { "use_bias", false, "biases in Mamba layers" },
                { "mamba_proj_bias", false, "biases in Mamba layers" } },
    ignores = { "expand", "mamba_expand", "chunk_size", "mamba_chunk_size", "time_step_limit", "time_step_max", "time_step_min", "time_step_floor", "time_step_rank",
                "mamba_hidden_act", "mamba_ssm_cache_dtype", "moe_shared_expert_overlap", "mtp_hybrid_override_pattern", "mtp_layers_block_type" },
  }

  -- Mamba-2 alone: each layer is a mixer. What the shape has of attention and feed-forward is in no layer.
  local function mamba2_alone(config, shape)
    local heads, width = need(config, "num_heads"), need(config, "head_dim")
    local inner = config:size("expand", 2) * shape.hidden
    if heads * width ~= inner then
      config:complain("num_heads", string.format("'expand' × 'hidden_size' / 'head_dim' (%d)", inner // width), heads)
    end
    local own = { attention = "mamba2", ffn = 0, key_heads = need(config, "n_groups"), key_dim = need(config, "state_size"), value_heads = heads,
                  value_dim = width, conv_kernel = need(config, "conv_kernel"), conv_bias = config:resolve(flag("use_conv_bias", true)),
                  mixer_norm = true, qkv_bias = false, output_bias = false }
    return function() return own end
  end

  local mamba2_family = {
    assumes = "Mamba-2", classes = { "Mamba2ForCausalLM" }, tied = false, norms = 1, heads = 1, kv_heads = "heads", head_dim = 1, head_dim_keys = { "head_dim" },
    ffn = { times = 1 }, own = mamba2_alone, layer_types = { linear_attention = true, mamba = true },
    expects = { { "use_bias", false, "biases in Mamba layers" } },
    ignores = { "chunk_size", "time_step_limit", "time_step_max", "time_step_min", "time_step_floor", "time_step_rank", "rms_norm", "norm_before_gate" },
  }

  -- ------------------------------------------------------------------------------------------------- other mixers, other attention

  -- inner: its width and what says it, where that is not the usual one.
  local function mamba2(config, shape, inner, said_by)
    local heads = need(config, "mamba_n_heads")
    config:expect("mamba_proj_bias", false, "biases in Mamba layers")
    local usual = config:size("mamba_expand", 2) * shape.hidden
    inner = inner or usual
    local width = config:get("mamba_d_head") == "auto" and inner // heads or need(config, "mamba_d_head")
    if width * heads ~= inner then
      config:complain("mamba_d_head", string.format("%s / 'mamba_n_heads' (%d)", said_by or "'mamba_expand' × 'hidden_size'", inner // heads), width)
    end
    return { attention = "mamba2", key_heads = need(config, "mamba_n_groups"), key_dim = need(config, "mamba_d_state"), value_heads = heads,
             value_dim = width, conv_kernel = need(config, "mamba_d_conv"), conv_bias = config:resolve(flag("mamba_conv_bias", true)), mixer_norm = true,
             qkv_bias = false, output_bias = false }
  end

  local mamba_ignores = { "mamba_chunk_size", "time_step_limit", "time_step_max", "time_step_min", "time_step_floor", "normalization_function" }
  local mamba_layers = { linear_attention = true, mamba = true, attention = true }

  local function granite_own(config, shape)
    local own, kind = mamba2(config, shape), types_of(config, shape.layers, function() return "mamba" end)
    if config:get("layer_types") == nil and type(config:get("layers_block_type")) == "table" then config:missing{ "layer_types" } end
    return function(i) return (kind(i) == "mamba" or kind(i) == "linear_attention") and own or nil end
  end

  local granite_hybrid = {
    assumes = "Mamba-2",
    classes = { "GraniteMoeHybridForCausalLM" }, tied = false, head_dim = "hidden", qkv_bias = attention_bias, output_bias = attention_bias,
    ffn = { "shared_intermediate_size" }, own = granite_own, layer_types = mamba_layers, reads = { mamba_d_state = true },
    moe = function(config)
      config.seen.num_experts_per_tok = true
      if (config:size("num_local_experts", nil, 0) or config:missing{ "num_local_experts" }) == 0 then
        config.seen.intermediate_size = true
        return nil
      end
      return { ffn = { "intermediate_size" }, shared = { "shared_intermediate_size" } }
    end, ignores = mamba_ignores,
  }

  local bamba = {
    assumes = "Mamba-2",
    classes = { "BambaForCausalLM" }, tied = false, kv_heads = "given", qkv_bias = attention_bias, output_bias = attention_bias,
    mlp_bias = flag("mlp_bias", false), layer_types = mamba_layers, reads = { mamba_d_state = true },
    own = function(config, shape)
      local attention, own = {}, mamba2(config, shape)
      for _, layer in ipairs(config:integers("attn_layer_indices") or {}) do attention[layer + 1] = true end
      local kind = types_of(config, shape.layers, function(i) return attention[i] and "full_attention" or "linear_attention" end)
      for i = 1, shape.layers do
        if (kind(i) == "full_attention" or kind(i) == "attention") ~= (attention[i] or false) and config:get("attn_layer_indices") then
          config:refuse("attention layers that 'attn_layer_indices' does not tell")
        end
      end
      return function(i) return (kind(i) == "linear_attention" or kind(i) == "mamba") and own or nil end
    end,
    ignores = with(mamba_ignores, { [#mamba_ignores + 1] = "attn_rotary_emb", [#mamba_ignores + 2] = "z_loss_coefficient" }),
  }

  -- Kimi-Linear: of four layers one has latent attention; the others a delta rule with a gate for each channel.
  local function kimi_own(config, shape)
    local given = config:get("linear_attn_config")
    if given ~= nil and type(given) ~= "table" then config:complain("linear_attn_config", "an object", given) end
    given = given or {}
    local function size(name, other)
      if given[name] == nil then return need(config, other) end
      if math.type(given[name]) ~= "integer" or given[name] < 1 then
        config:complain("linear_attn_config", "a size of at least 1 in '" .. name .. "'", given[name])
      end
      return given[name]
    end
    local heads, width = size("num_heads", "linear_num_heads"), size("head_dim", "linear_head_dim")
    local own = { attention = "kimi_delta", key_heads = heads, key_dim = width, value_heads = heads, value_dim = width,
                  conv_kernel = size("short_conv_kernel_size", "linear_conv_kernel_dim") }
    local linear
    if type(given.kda_layers) == "table" and type(given.full_attn_layers) == "table" then
      linear = {}
      for _, layer in ipairs(given.kda_layers) do linear[layer] = true end
      for _, layer in ipairs(given.full_attn_layers) do
        if linear[layer] then config:refuse("a layer that 'linear_attn_config' names twice") end
        linear[layer] = false
      end
    end
    for name in pairs(given) do
      if not ({ num_heads = 1, head_dim = 1, short_conv_kernel_size = 1, kda_layers = 1, full_attn_layers = 1 })[name] then
        config:refuse(string.format("'%s' in 'linear_attn_config'", tostring(name)))
      end
    end
    local kind = types_of(config, shape.layers, function(i)
      if linear then return linear[i] == nil and config:refuse("layers that 'linear_attn_config' does not name") or linear[i] and "linear_attention" end
      return (i == 1 or (i - 1) % 4 ~= 0) and "linear_attention" or "full_attention"
    end)
    return function(i) return kind(i) == "linear_attention" and own or nil end
  end

  local kimi_linear = {
    assumes = "Kimi delta attention",
    classes = { "KimiLinearForCausalLM" }, tied = false, mla = true, layer_types = { linear_attention = true },
    reads = { linear_attn_config = true }, own = kimi_own,
    moe = { ffn = { "moe_intermediate_size" }, shared_count = "num_shared_experts", correction_bias = true,
            dense = listed_or_first_k("first_k_dense_replace", 1) },
    expects = { { "tie_word_embeddings", false, "tied embeddings" }, { "moe_layer_freq", 1, "experts in some layers only" }, { "mla_use_output_gate", false, "an output gate in latent attention" } },
    ignores = { "mla_use_nope" },
  }

  -- MiMo-V2: layers with a window have their own sizes, and sinks.
  local function mimo_own(config, shape)
    shape.v_dim = need(config, "v_head_dim")
    config:expect("add_full_attention_sink_bias", false, "sinks in layers of full attention")
    config:expect("n_shared_experts", nil, "shared experts")
    local heads = config:size("swa_num_attention_heads", shape.heads)
    local own = { heads = heads, kv_heads = config:size("swa_num_key_value_heads", 2 * shape.kv_heads),
                  head_dim = config:size("swa_head_dim", shape.head_dim), v_dim = config:size("swa_v_head_dim", shape.v_dim),
                  attention_sinks = config:flag("add_swa_attention_sink_bias", true) and heads or nil }
    local before = config:size("sliding_window_size", nil)   -- tokens before the query; the other key counts the query too
    own.window = before and before + 1 or config:size("sliding_window", nil)
    local pattern = config:integers("hybrid_layer_pattern")
    if pattern and #pattern ~= shape.layers then config:complain("hybrid_layer_pattern", "a list of " .. shape.layers, #pattern) end
    local kind = types_of(config, shape.layers, function(i)
      local sliding = i > 1 and i % 6 ~= 0
      if pattern then
        if pattern[i] ~= 0 and pattern[i] ~= 1 then config:complain("hybrid_layer_pattern", "0 or 1", pattern[i]) end
        sliding = pattern[i] == 1
      end
      return sliding and "sliding_attention" or "full_attention"
    end)
    return function(i) return kind(i) == "sliding_attention" and own or nil end
  end

  local mimo_v2 = {
    classes = { "MiMoV2FlashForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given", qkv_bias = attention_bias, own = mimo_own,
    moe = { ffn = { "moe_intermediate_size" }, correction_bias = true, dense = { "mlp_layer_types", "moe_layer_freq", of = function(config, layers)
      local freq, list = config:get("moe_layer_freq"), config:get("mlp_layer_types")
      if type(freq) == "table" and #freq == layers then return function(i) return freq[i] == 0 end end
      if freq ~= nil then config:refuse("experts in some layers only ('moe_layer_freq')") end
      if type(list) == "table" and #list == layers then return function(i) return list[i] == "dense" end end
      return function(i) return i == 1 end
    end } },
    ignores = { "attention_value_scale", "swa_rope_theta", "hybrid_block_size" },
  }

  -- Gemma 4: layers of full attention have heads of their own width; experts, where there are any, stand beside the dense MLP.
  -- Files that transformers 5.24 saves have them layer by layer, by the layer's number from 0.
  local function gemma4_layer(config, shape, i, given, equal)
    local own = given[tostring(i - 1)] or given[i - 1]
    if type(own) ~= "table" then config:missing{ "per_layer_config" } end
    for name, value in pairs(own) do
      if name ~= "head_dim" and name ~= "num_key_value_heads" or math.type(value) ~= "integer" or value < 1 then
        config:refuse(string.format("'%s' of a layer ('per_layer_config')", tostring(name)))
      end
    end
    return { head_dim = own.head_dim or config:missing{ "per_layer_config" }, kv_heads = own.num_key_value_heads or shape.kv_heads,
             shared_kv = equal }
  end

  local function gemma4_own(config, shape)
    local equal, listed = config:resolve(flag("attention_k_eq_v", false)), config:get("per_layer_config")
    local kind = types_of(config, shape.layers, function(i) return i % 6 == 0 and "full_attention" or "sliding_attention" end)
    local function is_full(i) return kind(i) == "full_attention" or i == shape.layers end
    if type(listed) == "table" then
      local rest = {}
      for layer in pairs(listed) do rest[tonumber(layer) or layer] = true end
      for i = 1, shape.layers do rest[i - 1] = not is_full(i) and rest[i - 1] or nil end
      if next(rest) ~= nil then config:refuse("sizes of layers without full attention ('per_layer_config')") end
      return function(i) return is_full(i) and gemma4_layer(config, shape, i, listed, equal) or nil end
    end
    local heads = equal and config:required{ "num_global_key_value_heads", "per_layer_config" } or shape.kv_heads
    config.seen.num_global_key_value_heads = true
    local full = { head_dim = config:required{ "global_head_dim", "per_layer_config" }, kv_heads = heads, shared_kv = equal }
    return function(i) return is_full(i) and full or nil end
  end

  local gemma4 = {
    classes = { "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration" }, types = { "gemma4_text" }, tied = true, norms = 4, head_dim = "given",
    kv_heads = "given", qk_norm = "head", qkv_bias = attention_bias, output_bias = attention_bias,
    reads = { enable_moe_block = true }, expects = { { "use_double_wide_mlp", false, "MLPs of double width" } },
    moe = function(config)
      for _, name in ipairs{ "num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size" } do config.seen[name] = true end
      if config:get "enable_moe_block" == nil and (config:size_of({ "num_experts" }, 0, 0)) > 0 then config:missing{ "enable_moe_block" } end
      if not config:resolve(flag("enable_moe_block", false)) then return nil end
      return { ffn = { "moe_intermediate_size", "expert_intermediate_size" }, shared = { "intermediate_size" } }
    end,
    adjust = function(config, shape)
      if config:size("hidden_size_per_layer_input", 256, 0) > 0 then config:refuse("per-layer embeddings ('hidden_size_per_layer_input')") end
      if shape.experts then shape.norms_per_layer, shape.scales = 7, shape.hidden + shape.experts end
    end,
    own = gemma4_own, ignores = { "vocab_size_per_layer_input" },
  }

  -- MiniMax-01: layers of lightning attention, with a gate and a norm over all heads.
  local function lightning_own(config, shape)
    local own = { attention = "lightning", key_heads = shape.heads, key_dim = shape.head_dim, value_heads = shape.heads, value_dim = shape.head_dim,
                  conv_kernel = 0 }
    local listed = config:integers("attn_type_list")   -- of the checkpoints' own code: 1 is softmax attention
    if listed and #listed ~= shape.layers then config:complain("attn_type_list", "a list of " .. shape.layers, #listed) end
    local kind = types_of(config, shape.layers, function(i)
      if listed then return listed[i] == 0 and "linear_attention" or "full_attention" end
      return i % 2 == 0 and "linear_attention" or "full_attention"
    end)
    return function(i) return kind(i) == "linear_attention" and own or nil end
  end

  local minimax = {
    assumes = "lightning attention",
    classes = { "MiniMaxForCausalLM", "MiniMaxText01ForCausalLM", "MiniMaxM1ForCausalLM" }, types = { "minimax_text_01", "minimax_m1" },
    tied = false, kv_heads = "given", layer_types = { linear_attention = true }, reads = { attn_type_list = true },
    moe = { ffn = { "intermediate_size" } }, own = lightning_own,
    expects = { { "shared_intermediate_size", 0, "a shared expert" }, { "attention_bias", false, "biases in attention" } },
    ignores = { "block_size", "full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor", "linear_attn_beta_factor",
                "mlp_alpha_factor", "mlp_beta_factor", "layernorm_full_attention_alpha", "layernorm_full_attention_beta",
                "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta", "postnorm",
                "shared_moe_mode", "rotary_dim" },
  }

  -- LFM2: short convolutions, and attention in some layers. The MLP's width is two thirds of what the file says, rounded up.
  local function lfm2_own(config, shape)
    local attention, indices = {}, config:integers("full_attn_idxs")
    for _, layer in ipairs(indices or {}) do
      if layer < 0 or layer >= shape.layers then config:complain("full_attn_idxs", "layers from 0 to " .. shape.layers - 1, layer) end
      attention[layer + 1] = true
    end
    local kind = types_of(config, shape.layers, function(i) return (attention[i] or not indices) and "full_attention" or "conv" end)
    for i = 1, indices and shape.layers or 0 do
      if (kind(i) == "full_attention") ~= (attention[i] or false) then config:refuse("attention layers that 'full_attn_idxs' does not tell") end
    end
    local bias = config:resolve(flag("conv_bias", false))
    local own = { attention = "conv", conv_kernel = need(config, "conv_L_cache"), conv_bias = bias, output_bias = bias, qk_norm = "none" }
    return function(i) return kind(i) == "conv" and own or nil end
  end

  local function lfm2_width(config, shape)
    if not config:resolve(flag("block_auto_adjust_ff_dim", true)) then return end
    local step, factor = need(config, "block_multiple_of"), config:get("block_ffn_dim_multiplier")
    if math.type(factor) == nil or factor <= 0 then config:complain("block_ffn_dim_multiplier", "a number > 0", factor) end
    local width = math.floor(factor * (2 * shape.ffn // 3))
    shape.ffn = (width + step - 1) // step * step
  end

  local lfm2 = {
    assumes = "short convolution",
    classes = { "Lfm2ForCausalLM" }, tied = true, head_dim = "hidden", kv_heads = "given", qk_norm = "head", own = lfm2_own, adjust = lfm2_width,
    ffn = { "intermediate_size", "block_ff_dim" }, layer_types = { conv = true },
    expects = { { "tie_embedding", true, "an output of its own" } },
    ignores = { "block_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init",
                "conv_dim", "conv_dim_out", "conv_use_xavier_init", "use_pos_enc", "theta" },
  }

  -- OLMo hybrid: the delta net of Qwen3-Next between layers of OLMo 3.
  local olmo_hybrid = {
    assumes = "gated delta net",
    classes = { "OlmoHybridForCausalLM" }, tied = false, head_dim = "hidden", kv_heads = "given", qkv_bias = attention_bias, output_bias = attention_bias,
    qk_norm = "full", layer_types = { linear_attention = true }, reads = { linear_num_key_heads = true, full_attention_interval = true },
    own = delta_net,
    ignores = { "linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor", "linear_allow_neg_eigval",
                "linear_use_gate" },
  }

  -- ---------------------------------------------------------------------------------------------- one kind of layers, newer keys

  local deepseek_listed = { ffn = { "moe_intermediate_size" }, shared_count = "n_shared_experts", correction_bias = true,
                            dense = listed_or_first_k("first_k_dense_replace", 1) }
  local listed_experts = { ffn = { "moe_intermediate_size" }, shared_count = "num_shared_experts", correction_bias = true,
                           dense = listed_or_first_k("first_k_dense_replace", 1) }

  local usual = {
    afmoe = { classes = { "AfmoeForCausalLM" }, tied = false, norms = 4, head_dim = "given", kv_heads = "given", qk_norm = "head",
              expects = { { "attention_bias", false, "biases in attention" } },
              moe = { ffn = { "moe_intermediate_size" }, shared_count = "num_shared_experts", correction_bias = true,
                      dense = { "num_dense_layers", of = function(config)
                        local dense_layers = config:size("num_dense_layers", nil, 0) or config:missing{ "num_dense_layers" }
                        return function(i) return i <= dense_layers end
                      end } },
              adjust = function(_, shape) shape.output_gate = shape.heads * shape.head_dim end,
              ignores = { "global_attn_every_n_layers", "mup_enabled", "route_scale", "route_norm", "score_func", "num_expert_groups",
                          "num_limited_groups", "load_balance_coeff", "use_grouped_mm" } },
    apertus = { classes = { "ApertusForCausalLM" }, tied = false, gated = false, kv_heads = "given", qk_norm = "head", qkv_bias = attention_bias,
                output_bias = attention_bias, expects = { { "mlp_bias", false, "biases in MLPs" }, { "hidden_act", "xielu", "another activation" } },
                adjust = function(_, shape) shape.scales = 2 end, ignores = { "post_norm", "qk_norm" } },
    exaone_moe = { classes = { "ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM" }, tied = false, head_dim = "not null", kv_heads = "given", qk_norm = "head",
                   moe = listed_experts, ignores = { "is_moe_layer", "first_last_k_dense_replace" } },
    glm4_moe_lite = { classes = { "Glm4MoeLiteForCausalLM" }, tied = false, mla = true, moe = deepseek_listed,
                      expects = { { "moe_layer_freq", 1, "experts in some layers only" } },
                      adjust = function(config, shape)   -- the class takes it for qk_rope_head_dim
                        config:expect("head_dim", config:get("head_dim") and shape.qk_rope_dim, "heads of another width")
                      end },
    helium = { classes = { "HeliumForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given",
               qkv_bias = attention_bias, expects = { { "mlp_bias", false, "biases in MLPs" } },
               adjust = function(config, shape)
                 if shape.heads * shape.head_dim ~= shape.hidden then config:refuse("an output of another width than its heads ('head_dim')") end
               end },
    hy_v3 = { classes = { "HYV3ForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given", qk_norm = "head", moe = listed_experts,
              expects = { { "attention_bias", false, "biases in attention" }, { "mlp_bias", false, "biases in MLPs" } },
              ignores = { "router_scaling_factor" } },
    minicpm3 = { classes = { "MiniCPM3ForCausalLM" }, tied = true, mla = true, expects = { { "mlp_bias", false, "biases in MLPs" } } },
    ministral3 = { classes = { "Ministral3ForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given" },
    solar_open = { classes = { "SolarOpenForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given",
                   expects = { { "attention_bias", false, "biases in attention" }, { "first_k_dense_replace", 0, "dense layers" } },
                   moe = { ffn = { "moe_intermediate_size" }, shared_count = "n_shared_experts", correction_bias = true } },
    vaultgemma = { classes = { "VaultGemmaForCausalLM" }, tied = true, head_dim = "given", kv_heads = "given", qkv_bias = attention_bias,
                   output_bias = attention_bias },
  }

  -- Nemotron-NAS (Puzzle): each layer with a width and a number of key and value heads of its own, or without one of its parts
  -- (modeling_decilm.py beside the weights of https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1).
  local quiet = { no_op = true, replace_with_linear = true, sparsify = true, n_heads_in_group = true, num_sink_tokens = true, unshifted_sink = true,
                  use_prefill_window_in_sink_attention = true, window_length = true, ffn_mult = true, intermediate_size = true }

  local function puzzle_part(config, i, name, part)
    if type(part) ~= "table" then config:refuse(string.format("a block without '%s' ('block_configs', layer %d)", name, i)) end
    if part.no_op ~= nil and type(part.no_op) == "string" then config:refuse "'no_op' in block_configs that is no true or false" end
    for key_of_part, value in pairs(part) do
      local says = value ~= false and type(value) ~= "userdata" and not (type(value) == "table" and next(value) == nil)   -- null
      if not quiet[key_of_part] or says and (key_of_part == "replace_with_linear" or key_of_part == "sparsify" or key_of_part == "num_sink_tokens") then
        config:refuse(string.format("'%s' in block_configs", tostring(key_of_part)))
      end
    end
    return part
  end

  local function puzzle_own(config, shape)
    local blocks = config:get("block_configs")
    if type(blocks) ~= "table" or #blocks ~= shape.layers then config:complain("block_configs", "a list of " .. shape.layers, blocks) end
    return function(i)
      if type(blocks[i]) ~= "table" then config:complain("block_configs", "a list of objects", blocks[i]) end
      for name in pairs(blocks[i]) do
        if name ~= "attention" and name ~= "ffn" then config:refuse(string.format("'%s' in block_configs", tostring(name))) end
      end
      local attention, ffn = puzzle_part(config, i, "attention", blocks[i].attention), puzzle_part(config, i, "ffn", blocks[i].ffn)
      local own = { norms_per_layer = (attention.no_op == true and 0 or 1) + (ffn.no_op == true and 0 or 1) }
      if own.norms_per_layer == 0 then config:refuse("a layer without attention and without MLP ('block_configs')") end
      if attention.no_op == true then own.attention = "none"
      elseif math.type(attention.n_heads_in_group) ~= "integer" or attention.n_heads_in_group < 1
             or shape.heads % attention.n_heads_in_group ~= 0 then
        config:refuse("a block without 'n_heads_in_group'")
      else own.kv_heads = shape.heads // attention.n_heads_in_group end
      if ffn.no_op == true then own.ffn = 0
      elseif math.type(ffn.intermediate_size) == "integer" and ffn.intermediate_size > 0 then own.ffn = ffn.intermediate_size
      elseif math.type(ffn.ffn_mult) and ffn.ffn_mult > 0 and ffn.ffn_mult < 1e6 then own.ffn = (math.floor(2 * ffn.ffn_mult * shape.hidden / 3) + 255) // 256 * 256
      else config:refuse("a block without 'ffn_mult'") end
      return own
    end
  end

  local falcon_h1, longcat_flash = require("pipeplan.catalog.paired"){ mamba2 = mamba2, flag = flag }

  local variants = require("pipeplan.catalog.variants"){ flag = flag, listed_or_first_k = listed_or_first_k }
  usual = with(with(usual, variants), require("pipeplan.catalog.mamba_1"){ need = need, flag = flag, with = with })

  return with(usual, {
    deepseek_v4 = require("pipeplan.catalog.deepseek_v4")(need, flag), falcon_h1 = falcon_h1, longcat_flash = longcat_flash, bamba = bamba, minimax = minimax, lfm2 = lfm2, olmo_hybrid = olmo_hybrid, gemma4 = gemma4, granitemoehybrid = granite_hybrid, kimi_linear = kimi_linear, mimo_v2_flash = mimo_v2,
    ["nemotron-nas"] = { counted_by = "its name, 49 B, within 2 %", classes = { "DeciLMForCausalLM" }, tied = false, ffn = { times = 1 }, qkv_bias = attention_bias, output_bias = attention_bias,
                         own = puzzle_own, reads = { block_configs = true }, expects = { { "mlp_bias", false, "biases in MLPs" } },
                         ignores = { "intermediate_size" } },
    minimax_m3 = require("pipeplan.catalog.minimax_m3")(types_of, need), deepseek_v32 = deepseek_v32, step3p5 = require("pipeplan.catalog.step_models")(types_of),
    glm_moe_dsa = with(deepseek_v32, { classes = { "GlmMoeDsaForCausalLM" },
      own = shared_indexers, layer_types = { indexed_attention = true, deepseek_sparse_attention = true },
      ignores = { "indexer_rope_interleave", "qk_head_dim", "mlp_bias", "index_share_for_mtp_iteration" } }),
    nemotron_h = nemotron_h, mamba2 = mamba2_family,
    qwen3_next = with(qwen_hybrid, { classes = { "Qwen3NextForCausalLM" }, moe = with(qwen_shared, { dense = dense.sparse_step }) }),
    qwen3_5 = with(qwen_hybrid, { classes = { "Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration" }, types = { "qwen3_5_text" } }),
    qwen3_5_moe = with(qwen_hybrid, { classes = { "Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration" }, types = { "qwen3_5_moe_text" },
                                      moe = qwen_shared }),
  })
end

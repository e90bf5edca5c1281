-- SPDX-License-Identifier: Apache-2.0
-- mamba_1.lua: families with Mamba-1 mixers, entries of families.lua with what hybrids.lua adds to it. Facts of the classes of Hugging Face
-- transformers 4.57.6 and 5.24.0 (src/transformers/models/mamba, falcon_mamba, jamba).

-- of: functions of hybrids.lua.
return function(of)
  local need, flag, with = of.need, of.flag, of.with

  -- names: keys of the state's size, the convolution's taps, the inner width over hidden, the rank of the steps, the convolution's bias.
  local function mixer(config, shape, names)
    local rank, inner = config:get(names.rank), config:size(names.expand, 2) * shape.hidden
    if rank == "auto" or rank == nil and not config:is_null(names.rank) then rank = (shape.hidden + 15) // 16 else rank = need(config, names.rank) end
    return { attention = "mamba1", key_heads = 1, key_dim = need(config, names.state), value_heads = inner, value_dim = 1, step_rank = rank,
             conv_kernel = need(config, names.taps), conv_bias = config:resolve(flag(names.conv_bias, true)) or false, qkv_bias = false, output_bias = false }
  end

  -- Mamba-1 alone: each layer is a mixer. What the shape has of attention and feed-forward is in no layer.
  local function alone(config, shape)
    local own = mixer(config, shape, { rank = "time_step_rank", expand = "expand", state = "state_size", taps = "conv_kernel", conv_bias = "use_conv_bias" })
    own.ffn = 0
    config:expect("intermediate_size", config:get("intermediate_size") and own.value_heads, "an inner width that 'expand' does not tell")
    return function() return own end
  end

  local mamba = {
    assumes = "Mamba-1", classes = { "MambaForCausalLM" }, tied = true, norms = 1, heads = 1, kv_heads = "heads", head_dim = 1,
    head_dim_keys = { "head_dim" }, ffn = { times = 1 }, own = alone, layer_types = { linear_attention = true },
    expects = { { "use_bias", false, "biases in Mamba layers" } },
    ignores = { "use_mambapy", "use_associative_scan", "residual_in_fp32", "rescale_prenorm_residual", "time_step_scale", "time_step_min", "time_step_max",
                "time_step_init_scheme", "time_step_floor" },
  }
  -- Its norms of steps, B and C have no weights.
  local falcon_mamba = with(mamba, { classes = { "FalconMambaForCausalLM" },
                                     ignores = with(mamba.ignores, { [#mamba.ignores + 1] = "mixer_rms_eps", [#mamba.ignores + 2] = "use_falcon_mambapy" }) })

  -- The layers, from 1, that come once in a period.
  local function once(config, name)
    local period, offset = need(config, name .. "_period"), config:size(name .. "_offset", nil, 0) or config:missing{ name .. "_offset" }
    if offset >= period then config:complain(name .. "_offset", string.format("below '%s_period' (%d)", name, period), offset) end
    return function(i) return (i - 1) % period == offset end
  end

  local function jamba_own(config, shape)
    local own = mixer(config, shape, { rank = "mamba_dt_rank", expand = "mamba_expand", state = "mamba_d_state", taps = "mamba_d_conv",
                                       conv_bias = "mamba_conv_bias" })
    own.mixer_norm = true
    local has_attention = once(config, "attn_layer")
    return function(i) return not has_attention(i) and own or nil end
  end

  local jamba_dense = { "expert_layer_period", "expert_layer_offset", of = function(config)
    local has_experts = once(config, "expert_layer")
    return function(i) return not has_experts(i) end
  end }

  local jamba = {
    assumes = "Mamba-1", classes = { "JambaForCausalLM" }, tied = false, head_dim = "hidden", kv_heads = "given", own = jamba_own,
    reads = { mamba_d_state = true },
    moe = function(config)
      if config:uniform_size({ "num_experts", "num_local_experts" }) ~= 1 then return { ffn = { "intermediate_size" }, dense = jamba_dense } end
      for _, name in ipairs{ "num_experts_per_tok", "expert_layer_period", "expert_layer_offset" } do config.seen[name] = true end
      return nil   -- a layer with one expert is dense
    end,
    expects = { { "mamba_proj_bias", false, "biases in Mamba layers" } },
    ignores = { "use_mamba_kernels", "use_mambapy", "use_associative_scan", "num_logits_to_keep", "mamba_inner_layernorms" },
  }

  return { mamba = mamba, falcon_mamba = falcon_mamba, jamba = jamba }
end

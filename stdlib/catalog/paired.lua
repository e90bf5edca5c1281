-- SPDX-License-Identifier: Apache-2.0
-- paired.lua: families whose layers hold more than one mixer and one feed-forward, entries of families.lua with what hybrids.lua adds to it.
-- Facts of the classes of Hugging Face transformers 4.57.6 and 5.24.0 (src/transformers/models/falcon_h1, longcat_flash).

-- of: functions of hybrids.lua.
return function(of)
  -- Falcon-H1: attention and Mamba-2 read one norm, and the sum of both is added to the stream.
  local function parallel_mamba(config, shape)
    if config.config.mamba_d_ssm == nil then config:missing{ "mamba_d_ssm" } end
    local inner = config:size("mamba_d_ssm", nil)
    local mixer = of.mamba2(config, shape, inner, inner and "'mamba_d_ssm'" or "'mamba_expand' × 'hidden_size' for a 'mamba_d_ssm' of null,")
    mixer.ffn, mixer.norms_per_layer, mixer.mixer_norm, mixer.qk_norm = 0, 0, config:resolve(of.flag("mamba_rms_norm", false)) or false, "none"
    local own = { beside = mixer }
    return function() return own end
  end

  local falcon_h1 = {
    assumes = "Mamba-2", classes = { "FalconH1ForCausalLM" }, tied = false, head_dim = "not null", kv_heads = "given",
    reads = { mamba_d_state = true }, layer_types = { hybrid = true }, own = parallel_mamba, mlp_bias = of.flag("mlp_bias", false),
    expects = { { "attention_bias", false, "biases in attention" }, { "projectors_bias", false, "biases in Mamba layers" } },
    ignores = { "mamba_chunk_size", "mamba_norm_before_gate", "mamba_use_mlp", "mlp_expansion_factor", "expansion_factor", "layers_block_type",
                "attn_layer_indices", "time_step_limit", "time_step_max", "time_step_min", "time_step_floor", "time_step_rank", "num_logits_to_keep",
                "lm_head_multiplier", "embedding_multiplier", "mlp_multipliers", "key_multiplier", "attention_in_multiplier",
                "attention_out_multiplier", "ssm_multipliers", "ssm_in_multiplier", "ssm_out_multiplier" },
  }

  -- LongCat-Flash: two layers of attention and MLP in one. Experts read what the first MLP reads, as a shared expert beside them would; their sum
  -- is added behind the second. "num_hidden_layers" counts both halves. The class of transformers 5.24.0 also holds matrices for the experts that
  -- compute nothing, which it never reads: they are not counted (the class of 4.57.6 and the model's published 560 B have none).
  local function longcat_layers(config)
    local layers, halves = config:required{ "num_layers" }, config:size("num_hidden_layers", nil)
    if halves and halves ~= 2 * layers then
      config:complain("num_hidden_layers", string.format("twice 'num_layers' (%d)", 2 * layers), halves)
    end
    return layers
  end

  local function longcat_experts(config, shape)
    local idle = config:size("zero_expert_num", nil, 0) or config:missing{ "zero_expert_num" }
    if not shape.q_lora_rank then config:missing{ "q_lora_rank" } end   -- both classes scale by it
    if idle == 0 then return end
    shape.zero_experts = idle
    local all = shape.experts + idle
    config:assume("model.zero_experts", idle, "%.4g of the %d experts of a token compute where a router chooses each as often: active parameters, "
                  .. "FLOPs and what is sent are of so many; that experts may run beside the layer's second attention is not counted",
                  shape.experts_per_token * shape.experts / all, shape.experts_per_token)
  end

  local longcat_flash = {
    classes = { "LongcatFlashForCausalLM" }, tied = false, mla = true, layers = longcat_layers, reads = { zero_expert_num = true },
    ffn = { "ffn_hidden_size", "intermediate_size" },
    moe = { ffn = { "expert_ffn_hidden_size", "moe_intermediate_size" }, shared = { "ffn_hidden_size", "intermediate_size" }, correction_bias = true },
    expects = { { "router_bias", false, "a bias in routing" }, { "zero_expert_type", "identity", "experts of another kind" } },
    adjust = function(config, shape)
      longcat_experts(config, shape)
      config:leave_out_mtp(shape, "its classes have no MTP module: what the file's are is not known")
    end,
    own = function(_, shape)
      local own = { beside = { ffn = shape.shared_ffn } }
      return function() return own end
    end,
    ignores = { "attention_method", "mla_scale_q_lora", "mla_scale_kv_lora" },
  }

  return falcon_h1, longcat_flash
end

-- SPDX-License-Identifier: Apache-2.0
-- deepseek_v4.lua: DeepSeek-V4, an entry of families.lua with what hybrids.lua adds to it. Facts of the classes of Hugging Face transformers 5.24.0
-- (src/transformers/models/deepseek_v4).

local lists = require "pipeplan.base.lists"

-- need, flag: as hybrids.lua has them.
return function(need, flag)
  local sparse, heavy, window = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
  local of_ratio = { [0] = window, [4] = sparse, [128] = heavy }   -- of published files, whose lists go on with the MTP module

  -- The kind of each layer's attention: listed, by published ratios, or the class's own, with two heavily compressed layers first.
  local function types_of(config, layers)
    local list, ratios, types = config:get("layer_types"), config:integers("compress_ratios"), {}
    if ratios and #ratios < layers then config:complain("compress_ratios", "a list of " .. layers, #ratios) end
    for i = 1, layers do
      local listed, told = type(list) == "table" and list[i] or nil, ratios and (of_ratio[ratios[i]] or config:refuse("another ratio in 'compress_ratios'"))
      if listed and told and listed ~= told then config:refuse("attention in 'layer_types' that 'compress_ratios' does not tell") end
      types[i] = listed or told or (i > 2 and i % 2 == 0 and sparse or heavy)
    end
    return types
  end

  local function rates_of(config)
    local said, rates = config:get("compress_rates"), {}
    if said ~= nil and type(said) ~= "table" then config:complain("compress_rates", "an object", said) end
    for _, name in ipairs(lists.sorted_keys(said or {})) do
      if name ~= sparse and name ~= heavy then config:refuse(string.format("'%s' in 'compress_rates'", tostring(name))) end
    end
    for _, each in ipairs{ { sparse, "compress_rate_csa", 4 }, { heavy, "compress_rate_hca", 128 } } do
      local name, own_key, usual = table.unpack(each)
      local rate = config:size(own_key, nil) or (said or {})[name] or not said and usual
      if math.type(rate) ~= "integer" or rate < 1 then config:complain("compress_rates", "an integer ≥ 1 in '" .. name .. "'", rate or nil) end
      rates[name] = rate
    end
    return rates
  end

  -- Layers whose tokens go to experts by a table of the vocabulary, without a bias in routing.
  local function hashed(config, layers)
    local listed, first = config:get("mlp_layer_types"), config:size("num_hash_layers", nil, 0)
    if type(listed) == "table" and #listed == layers then
      for i = 1, first and layers or 0 do
        if (listed[i] == "hash_moe") ~= (i <= first) then config:refuse("layers in 'mlp_layer_types' that 'num_hash_layers' does not tell") end
      end
      return function(i) return listed[i] == "hash_moe" end
    end
    first = first or 3
    return function(i) return i <= first end
  end

  local function own(config, shape)
    local types, rates, is_hashed = types_of(config, shape.layers), rates_of(config), hashed(config, shape.layers)
    local indexer = { index_heads = need(config, "index_n_heads"), index_dim = need(config, "index_head_dim"), index_topk = need(config, "index_topk") }
    return function(i)
      local fields = { compression = rates[types[i]] }
      if types[i] == sparse then for name, value in pairs(indexer) do fields[name] = value end end
      if is_hashed(i) then fields.router_correction_bias = false end
      return next(fields) and fields or nil
    end
  end

  return {
    assumes = "compressed attention", classes = { "DeepseekV4ForCausalLM" }, tied = false, head_dim = "given", kv_heads = "given",
    layer_types = { [sparse] = true, [heavy] = true }, mlp_types = { hash_moe = true, moe = true }, own = own,
    reads = { compress_ratios = true, index_topk = true, o_lora_rank = true },
    moe = { ffn = { "moe_intermediate_size", "intermediate_size" }, shared = { "moe_intermediate_size", "intermediate_size" }, correction_bias = true },
    expects = { { "num_key_value_heads", 1, "several heads of keys" }, { "n_shared_experts", 1, "several shared experts" },
                { "attention_bias", false, "biases in attention" }, { "mlp_bias", false, "biases in shared experts" } },
    adjust = function(config, shape)
      shape.attention, shape.window = "compressed", need(config, "sliding_window")
      shape.q_lora_rank, shape.output_groups, shape.output_rank = need(config, "q_lora_rank"), need(config, "o_groups"), need(config, "o_lora_rank")
      shape.streams = need(config, "hc_mult")
      config:resolve(flag("tie_word_embeddings", false))
      if shape.streams < 2 then config:refuse("one stream ('hc_mult')") end
      config:assume("model.streams", shape.streams, "layers read and write them in fused kernels that keep what they read; nothing is measured of them")
      config:leave_out_mtp(shape, "its class has no MTP module: what the file's are is not known")
    end,
    ignores = { "qk_rope_head_dim", "partial_rotary_factor", "compress_rope_theta", "hc_sinkhorn_iters", "hc_eps",
                "swiglu_limit" },
  }
end

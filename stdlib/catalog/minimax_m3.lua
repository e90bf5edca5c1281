-- SPDX-License-Identifier: Apache-2.0
-- minimax_m3.lua: MiniMax-M3, an entry of families.lua with what hybrids.lua adds to it. Facts of the classes of Hugging Face transformers 5.24.0
-- (src/transformers/models/minimax_m3_vl).

-- types_of, need: as hybrids.lua has them.
return function(types_of, need)
  -- MiniMax-M3: layers whose queries attend to blocks that an indexer finds, of the keys that its files have and of those of its class.
  local function block_sparse(config, shape)
    local old = config:get("sparse_attention_config")
    if old ~= nil and type(old) ~= "table" then config:complain("sparse_attention_config", "an object", old) end
    local names = { index_heads = { "index_n_heads", "sparse_num_index_heads" }, index_dim = { "index_head_dim", "sparse_index_dim" },
                    block = { "index_block_size", "sparse_block_size" }, blocks = { "index_topk_blocks", "sparse_topk_blocks" } }
    local quiet = { use_sparse_attention = true, sparse_disable_index_value = true, sparse_score_type = true, sparse_init_block = true,
                    sparse_local_block = true, sparse_attention_freq = true }
    local function size(name)
      local value = old and old[names[name][2]]
      quiet[names[name][2]] = true
      if value == nil then return need(config, names[name][1]) end
      if math.type(value) ~= "integer" or value < 1 or value > 2 ^ 20 then
        config:complain("sparse_attention_config", "a size of at least 1 in '" .. names[name][2] .. "'", value)
      end
      return value
    end
    local own = { index_heads = size "index_heads", index_dim = size "index_dim", index_topk = size "block" * size "blocks" }
    for name, value in pairs(old or {}) do
      if not quiet[name] then config:refuse(string.format("'%s' in 'sparse_attention_config'", tostring(name))) end
      if name == "use_sparse_attention" and value ~= true then config:refuse("sparse attention that is switched off ('use_sparse_attention')") end
      if name == "sparse_disable_index_value" then
        for _, one in ipairs(type(value) == "table" and value or {}) do
          if one ~= 0 and one ~= 1 then config:refuse("values of an indexer ('sparse_disable_index_value')") end
        end
      end
    end
    local listed = old and old.sparse_attention_freq
    if listed ~= nil and (type(listed) ~= "table" or #listed ~= shape.layers) then
      config:complain("sparse_attention_config", "a list of " .. shape.layers .. " in 'sparse_attention_freq'", type(listed) == "table" and #listed or listed)
    end
    for i, one in ipairs(listed or {}) do
      if one ~= 0 and one ~= 1 then config:complain("sparse_attention_config", "0 or 1 in 'sparse_attention_freq'", one) end
      if one == 1 and old.sparse_disable_index_value and old.sparse_disable_index_value[i] ~= 1 then
        config:refuse("values of an indexer ('sparse_disable_index_value')")
      end
    end
    local kind = types_of(config, shape.layers, function(i)
      if not listed then return config:missing{ "layer_types", "sparse_attention_config" } end
      return listed[i] == 1 and "minimax_m3_sparse" or "full_attention"
    end)
    return function(i) return kind(i) == "minimax_m3_sparse" and own or nil end
  end

  return {
    assumes = "sparse attention", counted_by = "transformers: MiniMaxM3VLTextModel",
    classes = { "MiniMaxM3VLForConditionalGeneration", "MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM", "MiniMaxM3ForCausalLM" },
    types = { "minimax_m3_vl", "minimax_m3_vl_text" },
    tied = false, tied_by_either = true, head_dim = "given", kv_heads = "given", qk_norm = "head", layer_types = { minimax_m3_sparse = true }, own = block_sparse,
    ffn = { "dense_intermediate_size" },
    expects = { { "attention_output_gate", false, "an output gate" }, { "use_qk_norm", true, "no norm over queries and keys" },
                { "qk_norm_type", "per_head", "a qk norm of another kind" }, { "use_routing_bias", true, "no bias in routing" },
                { "n_shared_experts", 1, "several shared experts" } },
    moe = { ffn = { "intermediate_size", "moe_intermediate_size" }, shared = { "shared_intermediate_size" }, correction_bias = true,
            dense = { "mlp_layer_types", "moe_layer_freq", of = function(config, layers)
              local freq, list = config:get("moe_layer_freq"), config:get("mlp_layer_types")
              if type(list) == "table" and #list == layers then return function(i) return list[i] == "dense" end end
              if type(freq) ~= "table" or #freq ~= layers then config:complain("moe_layer_freq", "a list of " .. layers, freq) end
              return function(i) return freq[i] == 0 end
            end } },
    adjust = function(config, shape)
      local first, own = config:size("first_k_dense_replace", nil, 0), config:size("num_mtp_modules", nil, 0)
      if first and first ~= (shape.first_dense or 0) then config:refuse("dense layers that 'first_k_dense_replace' does not tell") end
      if shape.mtp_layers or own and own > 0 then
        config:assume("model.mtp_layers", 0, "its class has no MTP module: what the file's are is not known")
        shape.mtp_layers = nil
      end
    end,
    ignores = { "use_gemma_norm", "index_local_blocks" },
  }
end

-- SPDX-License-Identifier: Apache-2.0
-- step_models.lua: Step 3.5 and 3.7, an entry of families.lua with what hybrids.lua adds to it. Facts of the classes of Hugging Face transformers
-- 5.24.0 (src/transformers/models/step3p7).

local with = require("pipeplan.base.lists").with

-- types_of: as hybrids.lua has it.
return function(types_of)
  -- Step 3.5 and 3.7: layers with a window may have more heads; a gate for each head, or for each of its channels. Lists of layers go on with those
  -- of the MTP modules.
  local function step_layers(config)
    local layers, mtp, cut = config:required{ "num_hidden_layers" }, config:size("num_nextn_predict_layers", 0, 0), nil
    for _, name in ipairs{ "layer_types", "mlp_layer_types" } do
      local list = config.config[name]
      if type(list) == "table" and #list == layers + mtp and mtp > 0 then
        cut = cut or with(config.config, {})
        cut[name] = table.move(list, 1, layers, 1, {})
      end
    end
    config.config = cut or config.config
    return layers
  end

  -- Without a list: those of "moe_layers_enum" are sparse, "3,4,5" or [3, 4, 5]; without that all but the first three, whatever the file's
  -- "first_k_dense_replace" is, which the class does not read.
  local step_dense = { "mlp_layer_types", "moe_layers_enum", "first_k_dense_replace", of = function(config, layers)
    local listed, said, sparse = config:get("mlp_layer_types"), config:get("moe_layers_enum"), {}
    local first = config:size("first_k_dense_replace", nil, 0)
    if type(listed) == "table" and #listed == layers then
      for i, kind in ipairs(listed) do
        if kind ~= "dense" and kind ~= "sparse" then config:refuse(string.format("%s layers ('mlp_layer_types')", config.word(kind))) end
        sparse[i] = kind == "sparse"
      end
    elseif said == nil then
      for i = 4, layers do sparse[i] = true end
    elseif type(said) == "string" and said:find "^[%d,%s]+$" then
      for layer in said:gmatch "%d+" do sparse[tonumber(layer) + 1] = true end
    else
      for _, layer in ipairs(config:integers("moe_layers_enum")) do sparse[layer + 1] = true end
    end
    for i = 1, first and layers or 0 do
      if (sparse[i] or false) ~= (i > first) then config:refuse("dense layers that 'first_k_dense_replace' does not tell") end
    end
    return function(i) return not sparse[i] end
  end }

  local function step_own(config, shape)
    local other, gating = config:get("attention_other_setting"), config:get("gating")
    if type(other) ~= "table" then other = {} end
    local heads = config:size("num_sliding_attention_heads", nil) or other.num_attention_heads
    if heads == nil then
      heads = shape.heads
      config:assume("model.num_sliding_attention_heads", heads, "it is not in the file; its class takes the other layers', published checkpoints have more")
    end
    if math.type(heads) ~= "integer" or heads < 1 then config:complain("attention_other_setting", "an integer ≥ 1 in 'num_attention_heads'", heads) end
    if gating ~= nil and gating ~= true and gating ~= "per-head" and gating ~= "per-channel" then config:refuse("another output gate ('gating')") end
    local width = gating == "per-channel" and shape.head_dim or 1
    shape.output_gate = shape.heads * width
    local kind = types_of(config, shape.layers, function() return config:missing{ "layer_types" } end)
    local own = heads ~= shape.heads and { heads = heads, kv_heads = shape.kv_heads, output_gate = heads * width } or nil
    return function(i) return kind(i) == "sliding_attention" and own or nil end
  end

  return {
    counted_by = "transformers: Step3p7TextModel", classes = { "Step3p7ForConditionalGeneration", "Step3p7FlashForCausalLM", "Step3p5ForCausalLM" }, types = { "step3p7", "step3p7_text" },
    tied = false, head_dim = "given", kv_heads = "given", qk_norm = "head", layers = step_layers, own = step_own,
    expects = { { "attention_bias", false, "biases in attention" }, { "mlp_bias", false, "biases in MLPs" }, { "n_shared_experts", 1, "several shared experts" },
                { "use_moe_router_bias", true, "no bias in routing" } },
    moe = { ffn = { "moe_intermediate_size" }, shared = { "share_expert_dim", "share_expert_dims" }, correction_bias = true, dense = step_dense },
    ignores = { "mtp_layer_types", "mtp_mlp_layer_types", "swiglu_limits", "swiglu_limits_shared" },
  }
end

-- SPDX-License-Identifier: Apache-2.0
-- towers.lua: the towers of images of multimodal families, with what leads from them into the text model (projector, merger): their parameters by
-- the keys of a config.json. Facts of the model classes of Hugging Face transformers 5.24.0 (src/transformers/models/*/modeling_*.py); key names
-- of older files as those classes read them. tests/lua/towers_spec.lua holds what the classes themselves count.
--
-- by model_type: count(tower, hidden) → parameters. hidden: of the text model. tower: input/hf_tower.lua's view of the file:
--   tower:size(names, otherwise)   a size of vision_config, by one of its names; `otherwise` is the class's own, for a file that does not have it
--   tower:flag(name, otherwise)    true or false there
--   tower:number(name, otherwise)  any number > 0 there
--   tower:length(name, otherwise)  of a list there; tower:is_list(name)
--   tower:pair(name, otherwise)    the product of a list of two there
--   tower:expect(name, value, what another value would be)
--   tower.beside                   the same of what stands beside vision_config
--   tower:quiet "a b"              keys that no class reads, or that change no parameter

local towers = {}

local function linear(from, to) return from * to + to end

-- A layer of a vision transformer: attention of four products and a plain MLP, all with biases, and two layer norms.
local function layer(hidden, ffn) return 4 * linear(hidden, hidden) + linear(hidden, ffn) + linear(ffn, hidden) + 4 * hidden end

local function squared(side, patch) return (side // patch) * (side // patch) end

-- SigLIP (models/siglip), and Gemma 3's projection.
function towers.gemma3(tower, hidden)
  local own, ffn, layers = tower:size("hidden_size", 768), tower:size("intermediate_size", 3072), tower:size("num_hidden_layers", 12)
  local patch = tower:size("patch_size", 16)
  local embedding = linear(tower:size("num_channels", 3) * patch * patch, own) + squared(tower:size("image_size", 224), patch) * own
  -- one learned query that attends to all patches: a layer and a norm less
  local head = tower:flag("vision_use_head", true) and own + 4 * linear(own, own) + 2 * own + linear(own, ffn) + linear(ffn, own) or 0
  tower:quiet "num_attention_heads"
  return embedding + layers * layer(own, ffn) + 2 * own + head + own * hidden + own
end

function towers.gemma4(tower, hidden)
  local own, ffn, heads = tower:size("hidden_size", 768), tower:size("intermediate_size", 3072), tower:size("num_attention_heads", 12)
  local kv, width = tower:size("num_key_value_heads", 12), tower:size("head_dim", 64)
  local patch = tower:size("patch_size", 16)
  local attention = 2 * own * width * (heads + kv) + 2 * width
  tower:expect("attention_bias", false, "biases in attention")
  tower:quiet "use_clipped_linears standardize pooling_kernel_size default_output_length global_head_dim image_seq_length video_seq_length"
  tower.beside:quiet "vision_soft_tokens_per_image"
  return 2 * tower:size("position_embedding_size", 10240) * own + 3 * patch * patch * own
         + tower:size("num_hidden_layers", 16) * (attention + 3 * own * ffn + 4 * own) + own * hidden
end

function towers.llama4(tower, hidden)
  local own, ffn, patch = tower:size("hidden_size", 768), tower:size("intermediate_size", 5632), tower:size("patch_size", 14)
  local embedding = own + (squared(tower:size("image_size", 448), patch) + 1) * own + tower:size("num_channels", 3) * patch * patch * own + 4 * own
  local out = tower:size("projector_output_dim", 4096)
  tower:quiet [[num_attention_heads pixel_shuffle_ratio projector_dropout vision_feature_select_strategy multi_modal_projector_bias
                vision_feature_layer]]
  return embedding + tower:size("num_hidden_layers", 34) * layer(own, ffn) + ffn * tower:size("projector_input_dim", 4096) + out * out
         + tower:size("vision_output_dim", 7680) * hidden
end

-- What a Qwen tower's merger does with so many patches of `own` at once: two products, `norm` weights before.
local function merger(own, side, out, norm)
  local merged = own * side * side
  return norm + linear(merged, merged) + linear(merged, out)
end

local function qwen_patches(tower, own, patch)
  tower:expect("in_chans", tower:size("in_channels", 3), "patches of other channels")
  return own * tower:size("in_channels", 3) * tower:size("temporal_patch_size", 2) * tower:size("patch_size", patch) * tower:size("patch_size", patch)
end

function towers.qwen2_vl(tower)
  local own, side = tower:size("embed_dim", 1280), tower:size("spatial_merge_size", 2)
  local ffn = math.floor(own * tower:number("mlp_ratio", 4))
  tower:quiet "num_heads spatial_patch_size"
  return qwen_patches(tower, own, 14) + tower:size("depth", 32) * layer(own, ffn) + merger(own, side, tower:size("hidden_size", 3584), 2 * own)
end

function towers.qwen2_5_vl(tower)
  local own, ffn, side = tower:size("hidden_size", 3584), tower:size("intermediate_size", 3420), tower:size("spatial_merge_size", 2)
  local one = 4 * linear(own, own) + 2 * linear(own, ffn) + linear(ffn, own) + 2 * own   -- a gated MLP, norms without biases
  tower:quiet "num_heads spatial_patch_size window_size fullatt_block_indexes tokens_per_second"
  return qwen_patches(tower, own, 14) + tower:size("depth", 32) * one + merger(own, side, tower:size("out_hidden_size", 3584), own)
end

-- deep: mergers behind layers of their own, whose norm is of what is merged.
local function qwen3(tower, deep)
  local own, side, out = tower:size("hidden_size", 1152), tower:size("spatial_merge_size", 2), tower:size("out_hidden_size", 3584)
  tower:quiet "num_heads"
  return qwen_patches(tower, own, 16) + own + tower:size("num_position_embeddings", 2304) * own
         + tower:size("depth", 27) * layer(own, tower:size("intermediate_size", 4304)) + merger(own, side, out, 2 * own)
         + deep * merger(own, side, out, 2 * own * side * side)
end

function towers.qwen3_vl(tower) return qwen3(tower, tower:length("deepstack_visual_indexes", 3)) end

function towers.qwen3_5(tower)
  if tower:length("deepstack_visual_indexes", 0) > 0 then tower:refuse("mergers behind its layers ('deepstack_visual_indexes')") end
  return qwen3(tower, 0)
end

towers.qwen3_vl_moe, towers.qwen3_5_moe = towers.qwen3_vl, towers.qwen3_5

-- Pixtral (models/pixtral), and Mistral 3's merger.
function towers.mistral3(tower, hidden)
  local own, ffn, patch = tower:size("hidden_size", 1024), tower:size("intermediate_size", 4096), tower:size("patch_size", 16)
  local beside = tower.beside
  local side, bias = beside:size("spatial_merge_size", 2), beside:flag("multimodal_projector_bias", false) and 2 * hidden or 0
  local from = beside:is_list "vision_feature_layer" and beside:length("vision_feature_layer", 1) or 1
  beside:quiet "vision_feature_layer"
  tower:quiet "num_attention_heads image_size head_dim vocab_size"
  return tower:size("num_channels", 3) * patch * patch * own + own
         + tower:size("num_hidden_layers", 24) * (4 * own * own + 3 * own * ffn + 2 * own)
         + own + own * own * side * side + from * own * hidden + hidden * hidden + bias
end

-- The checkpoints' own files write "vt_" before the sizes, and what the classes take from elsewhere.
function towers.kimi_k25(tower, hidden)
  local own = tower:size({ "hidden_size", "vt_hidden_size" }, 1152)
  local ffn = tower:size({ "intermediate_size", "vt_intermediate_size" }, 4304)
  local patch, merged = tower:size("patch_size", 14), own * tower:pair("merge_kernel_size", 2)
  local places = tower:size({ "pos_emb_height", "init_pos_emb_height" }, 64) * tower:size({ "pos_emb_width", "init_pos_emb_width" }, 64)
  tower:expect("mm_hidden_size", own, "a projector of another width")
  tower:expect("text_hidden_size", hidden, "a projector to another width")
  tower:quiet [[num_attention_heads vt_num_attention_heads pos_emb_time init_pos_emb_time merge_type mm_projector_type pos_emb_type video_attn_type
                projector_ln_eps]]
  tower.beside:quiet "projection_layer_norm_eps ignore_index use_unified_vision_chunk video_placeholder"
  return linear(3 * patch * patch, own) + places * own
         + tower:size({ "num_hidden_layers", "vt_num_hidden_layers" }, 27) * layer(own, ffn) + 2 * own
         + 2 * tower.beside:size("projection_hidden_size", 1152) + linear(merged, merged) + linear(merged, hidden)
end

function towers.minimax_m3_vl(tower, hidden)
  local own, side = tower:size("hidden_size", 1280), tower:size("spatial_merge_size", 2)
  local patch, width = tower:size("patch_size", 14), tower.beside:size("projector_hidden_size", 6144)
  tower.beside:quiet "merged_hidden_size"
  tower:quiet "num_attention_heads image_size"
  return own * tower:size("num_channels", 3) * tower:size("temporal_patch_size", 2) * patch * patch + 2 * own
         + tower:size("num_hidden_layers", 32) * layer(own, tower:size("intermediate_size", 5120))
         + linear(own, width) + linear(width, hidden) + linear(hidden * side * side, width) + linear(width, hidden)
end

function towers.step3p7(tower, hidden)
  local own, patch = tower:size({ "hidden_size", "width" }, 1536), tower:size("patch_size", 14)
  local ffn = math.floor(own * tower:number("mlp_ratio", 8960 / 1536))
  local bias = tower.beside:flag("projector_bias", false) and hidden or 0
  tower:expect("intermediate_size", tower:get "intermediate_size" and ffn, "an MLP of another width than 'hidden_size' × 'mlp_ratio' tells")
  tower:quiet "num_attention_heads heads max_position_embeddings layer_scale_init_value ls_init_value"
  return tower:size("num_channels", 3) * patch * patch * own + squared(tower:size("image_size", 728), patch) * own + 2 * own
         + tower:size({ "num_hidden_layers", "layers" }, 47) * (layer(own, ffn) + 2 * own)
         + linear(9 * own, 2 * own) + linear(9 * 2 * own, 4 * own) + 4 * own * hidden + bias
end

return towers

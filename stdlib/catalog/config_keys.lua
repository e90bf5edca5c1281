-- SPDX-License-Identifier: Apache-2.0
-- config_keys.lua: keys of a Hugging Face config.json that change no parameter of the text model, by why they do not, so that any other key
-- is either read (input/hf_config.lua), or refused by name: a key that nobody knows may make another model of the same file.
-- Facts of the configuration classes of Hugging Face transformers 4.46 to 5.24 and of files published with checkpoints;
-- tests/lua/config_mutations_spec.lua adds them to files of each family and finds the same model.

local groups = {
  { "names and versions", [[
    architectures model_type _name_or_path name_or_path transformers_version auto_map _commit_hash tokenizer_class torchscript finetuning_task
    task_specific_params revision license unsloth_version unsloth_fixed model_name adapter_path _attn_implementation
    _attn_implementation_autoset attn_implementation _flash_attn_2_enabled use_flash_attn flash_attn use_mamba_kernels ]] },
  { "precision and storage of weights", [[
    torch_dtype dtype use_bfloat16 bf16 fp16 fp32 quantization_config compression_config quantization quantization_bit expert_dtype init_device
    params_dtype use_dtype ]] },
  { "tokens", [[
    n_special prefix predict_special_tokens eod_token bos_token eos_token pad_id im_start_id im_end_id im_newline_id image_token_id
    mask_init_id text_start_id text_end_id video_start_id video_end_id image_token_index org_vocab_size
    bad_words_ids suppress_tokens begin_suppress_tokens forced_bos_token_id forced_eos_token_id token_healing ]] },
  { "generation", [[
    max_length min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p typical_p
    repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size num_return_sequences exponential_decay_length_penalty
    remove_invalid_values output_scores return_dict_in_generate cache_implementation num_logits_to_keep generation_config use_cache
    runner_max_sequence_length ]] },
  { "what a call returns, and heads that are not the language model's", [[
    return_dict output_attentions output_hidden_states output_router_logits id2label label2id num_labels problem_type classifier_dropout
    classifier_bias classifier_activation summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout
    add_classification_head class_num pool_type dense_list ]] },
  { "encoders and pruning that no decoder here has", [[
    is_decoder cross_attention_hidden_size tie_encoder_decoder tf_legacy_loss pruned_heads chunk_size_feed_forward verbose ]] },
  { "dropout", [[
    attention_dropout attn_pdrop embd_pdrop emb_pdrop resid_pdrop hidden_dropout residual_dropout embedding_dropout dropout layerdrop
    hidden_dropout_prob attention_probs_dropout_prob bias_dropout_fusion dropout_rate ]] },
  { "initialisation", [[ initializer_range init_std initializer_factor init_config rescale_prenorm_residual ]] },
  { "numerics", [[
    rms_norm_eps layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_eps norm_epsilon rms_norm_epsilon clip_qkv attention_softmax_in_fp32
    scale_attention_softmax_in_fp32 reorder_and_upcast_attn fp32_residual_connection apply_query_key_layer_scaling slow_but_exact
    residual_in_fp32 softmax_scale scale_attn_weights scale_attn_by_inverse_layer_idx fused_dense attn_logit_softcapping final_logit_softcapping
    attention_multiplier embedding_multiplier residual_multiplier logits_scaling logit_scale query_pre_attn_scalar attn_scale floor_scale
    attn_temperature_tuning swiglu_alpha swiglu_limit enable_moe_fp32_combine apply_residual_connection_post_layernorm use_parallel_residual
    scale_depth scale_emb dim_model_base mup_width_scale ]] },
  { "activation functions of the same shape", [[ hidden_act hidden_activation activation activation_function mlp_hidden_act ]] },
  { "positions that have no weights", [[
    rope_theta rope_scaling rope_parameters rope_ratio rope_local_base_freq rope_interleave original_rope rotary rotary_dim rotary_pct
    rotary_emb_base partial_rotary_factor alibi position_embedding_type position_encoding_2d use_rotary_pos_emb flash_rotary use_mrope
    original_max_position_embeddings initial_context_length no_rope_layers no_rope_layer_interval position_embedding_xdrope
    scale_alibi interpolate_factor interleaved_qkv rope_type ]] },
  { "which tokens attention sees", [[
    sliding_window use_sliding_window sliding_window_pattern _sliding_window_pattern sliding_window_size max_window_layers
    attention_chunk_size use_bidirectional_attention is_causal attention_sink_size context_window_size prefill_chunk_size ]] },
  { "how tokens are routed, and losses of routing", [[
    norm_topk_prob routed_scaling_factor router_aux_loss_coef router_jitter_noise input_jitter_noise router_z_loss_coef aux_loss_alpha seq_aux
    scoring_func topk_method num_expert_group n_group topk_group group_limited_greedy moe_norm_min moe_capacity moe_gate moe_use_aux_free moe_router_dtype
    moe_drop_tokens moe_random_routing_dropped_token capacity_factor z_loss_coef expert_capacity token_drop_policy moe_renormalize
    moe_router_activation_func moe_router_scaling_factor moe_router_pre_softmax ]] },
  { "how a run was parallelised", [[ pretraining_tp ep_size tensor_parallel_size use_sequence_parallel fuse_attention_qkv fuse_attention_ffn micro_batch_size
    recompute gradient_checkpointing use_recompute ]] },
  { "the tower of images, sound or video", [[
    vision_config audio_config video_config img_processor embd_layer mm_tokens_per_image image_size patch_size vision_feature_layer
    vision_feature_select_strategy projector_hidden_act ]] },
}

-- Switches: off, they say nothing; on, only a family that reads them knows what they add.
local switches = [[
  attention_bias mlp_bias attention_out_bias lm_head_bias use_bias bias qkv_bias use_qkv_bias add_qkv_bias add_bias_linear bias_linear
  use_qk_norm qk_layernorm qk_norm use_cla tie_word_embeddings add_cross_attention use_mtp is_encoder_decoder attention_output_gate
  attn_output_gate enable_moe_block use_double_wide_mlp add_router_bias use_moe_router_bias use_grouped_topk mla_use_output_gate prefix_projection
  multi_query_attention multi_query moe_router_enable_expert_bias ]]

-- Is a key among the words of a text?
local function is_among(key, words)
  if not key:find "^%S+$" then return false end
  local from = 1
  while true do
    local first, last = words:find(key, from, true)
    if not first then return false end
    if words:find("^%s", first - 1) and words:find("^%s", last + 1) then return true end
    from = first + 1
  end
end

local keys = {}

-- All of them but switches: key → why.
function keys.harmless()
  local list = {}
  for _, group in ipairs(groups) do
    for key in group[2]:gmatch "%S+" do list[key] = group[1] end
  end
  return list
end

function keys.is_switch(key) return is_among(key, switches) end

-- Names that tell by their form: ids of tokens, dropout.
local patterns = { "_token_ids?$", "_token_index$", "dropout" }

-- Why a key changes no parameter, whatever it holds; nil when that is not known.
function keys.reason(key)
  for i = #groups, 1, -1 do
    if is_among(key, groups[i][2]) then return groups[i][1] end
  end
  for _, pattern in ipairs(patterns) do
    if key:find(pattern) then return pattern == "dropout" and "dropout" or "tokens" end
  end
end

return keys

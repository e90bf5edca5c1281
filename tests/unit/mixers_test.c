/* SPDX-License-Identifier: Apache-2.0 */
/*
** mixers.c, and layers of further kinds in a model: FLOPs and balance. Parameters of each family stand in tests/lua/families_spec.lua.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cost.h"
#include "core/layout.h"
#include "core/memory.h"
#include "core/mixers.h"

/* Attention and an MLP; every layer but each fourth is of kind `first`. */
static pp_model hybrid(int64_t hidden, pp_layer first) {
  pp_model model = { .layers = 8, .hidden = hidden, .vocab = 1000, .heads = 16, .kv_heads = 2, .head_dim = 128, .ffn = 4096, .gated = true,
                     .norms_per_layer = 2, .kinds = 1 };
  model.further[0].layer = first;
  for (int i = 0; i < 8; i++) model.kind[i] = i % 4 != 3;
  return model;
}

static double forward_flops(const pp_model *model, pp_block block, int64_t sequence_length) {
  pp_block_flops blocks[PP_BLOCKS];
  pp_model_block_flops(model, (double)sequence_length, blocks);
  return blocks[block].linear + blocks[block].expert + blocks[block].attention;
}

/* Values of Megatron-LM's gdn_layer_flops, mamba_layer_flops and moe_layer_flops (megatron/training/training.py, commit d98e8a6), executed for
** Qwen3-Next-80B-A3B, Nemotron-H-56B and Nemotron-3-Super. */
static void flops_of_mixers_are_those_of_megatron(void **state) {
  const pp_layer delta = { .attention = PP_ATTENTION_GATED_DELTA, .heads = 16, .key_heads = 16, .key_dim = 128, .value_heads = 32, .value_dim = 128,
                           .conv_kernel = 4, .norms_per_layer = 1 };
  const pp_layer mamba = { .attention = PP_ATTENTION_MAMBA2, .heads = 64, .key_heads = 8, .key_dim = 256, .value_heads = 256, .value_dim = 64,
                           .conv_kernel = 4, .norms_per_layer = 1 };
  const pp_layer experts = { .attention = PP_ATTENTION_NONE, .heads = 32, .experts = 512, .experts_per_token = 22, .expert_ffn = 2688,
                             .expert_hidden = 1024, .shared_ffn = 5376, .norms_per_layer = 1 };
  pp_model model = hybrid(2048, delta);
  (void)state;
  assert_true(forward_flops(&model, PP_BLOCK_FURTHER, 4096) == 71630848);
  assert_true(forward_flops(&model, PP_BLOCK_FURTHER, 65536) == 71630848);   /* of a state: whatever the sequence */
  model = hybrid(8192, mamba);
  assert_true(forward_flops(&model, PP_BLOCK_FURTHER, 8192) == 905969664);
  model = hybrid(4096, experts);
  model.further[0].moe = true;
  assert_true(forward_flops(&model, PP_BLOCK_FURTHER, 8192) == 347078656);
}

/* A query attends to index_topk tokens at most: of 4,096 causal queries and 2,048 tokens, 1,536 on average, where all would be 2,048. The
** indexer's scores are one product of 64 heads of 128 over all of them. */
static void an_indexer_shortens_attention_and_adds_its_scores(void **state) {
  pp_model model = { .layers = 1, .hidden = 7168, .vocab = 1000, .attention = PP_ATTENTION_MLA, .heads = 128, .q_lora_rank = 1536,
                     .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_dim = 128, .ffn = 18432, .gated = true, .norms_per_layer = 2 };
  pp_block_flops all[PP_BLOCKS], some[PP_BLOCKS];
  (void)state;
  pp_model_block_flops(&model, 4096, all);
  model.index_heads = 64;
  model.index_dim = 128;
  model.index_topk = 2048;
  pp_model_block_flops(&model, 4096, some);
  assert_true(all[PP_BLOCK_DENSE].attention == 2.0 * 2048 * 128 * (192 + 128));
  assert_true(some[PP_BLOCK_DENSE].attention == 2.0 * 1536 * 128 * (192 + 128) + 2.0 * 2048 * 64 * 128);
  /* its weights: 64 × 128 × 1536 from the latent, 7168 × (128 + 64) from the stream */
  assert_true(some[PP_BLOCK_DENSE].linear - all[PP_BLOCK_DENSE].linear == 2.0 * (64 * 128 * 1536 + 7168 * 192));
}

/* MiniMax-M3: 4 heads of 128 score one key of 128 over all tokens; queries of 64 heads of 128 attend to 16 blocks of 128 tokens, of 8,192 to
** 2048 − 2048² / 16384 = 1,792 on average. Weights of transformers' MiniMaxM3VLIndexer: 6144 × 512, 6144 × 128, and two norms of 128. */
static void an_indexer_beside_grouped_queries_has_a_key_and_no_weights(void **state) {
  pp_model model = { .layers = 1, .hidden = 6144, .vocab = 1000, .heads = 64, .kv_heads = 4, .head_dim = 128, .qk_norm = PP_QK_NORM_HEAD,
                     .ffn = 12288, .gated = true, .norms_per_layer = 2 };
  pp_block_flops all[PP_BLOCKS], some[PP_BLOCKS];
  pp_block_parameters before[PP_BLOCKS], after[PP_BLOCKS];
  pp_product products[PP_MOST_PRODUCTS];
  (void)state;
  pp_model_block_flops(&model, 8192, all);
  pp_model_block_parameters(&model, before);
  const int count = pp_model_block_products(&model, PP_BLOCK_DENSE, products);
  model.index_heads = 4;
  model.index_dim = 128;
  model.index_topk = 2048;
  pp_model_block_flops(&model, 8192, some);
  pp_model_block_parameters(&model, after);
  assert_true(after[PP_BLOCK_DENSE].replicated - before[PP_BLOCK_DENSE].replicated == 6144 * (512 + 128) + 2 * 128);
  assert_true(after[PP_BLOCK_DENSE].tensor == before[PP_BLOCK_DENSE].tensor);
  assert_true(some[PP_BLOCK_DENSE].linear - all[PP_BLOCK_DENSE].linear == 2.0 * 6144 * (512 + 128));
  assert_true(all[PP_BLOCK_DENSE].attention == 2.0 * 4096 * 2 * 64 * 128);
  assert_true(some[PP_BLOCK_DENSE].attention == 2.0 * 1792 * 2 * 64 * 128 + 2.0 * 4096 * 4 * 128);
  assert_int_equal(count + 2, pp_model_block_products(&model, PP_BLOCK_DENSE, products));
}

static void a_stage_counts_layers_of_each_kind(void **state) {
  const pp_model model = hybrid(2048, (pp_layer){ .attention = PP_ATTENTION_GATED_DELTA, .heads = 16, .key_heads = 16, .key_dim = 128,
                                                   .value_heads = 32, .value_dim = 128, .conv_kernel = 4, .norms_per_layer = 2, .ffn = 4096 });
  const int layers[2] = { 3, 5 };
  pp_stage stages[2];
  pp_error error;
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  assert_int_equal(pp_layout_stages(&model, 2, layers, stages, &error), PP_OK);
  assert_int_equal(stages[0].count[PP_BLOCK_FURTHER], 3);
  assert_int_equal(stages[0].count[PP_BLOCK_DENSE], 0);
  assert_int_equal(stages[1].count[PP_BLOCK_FURTHER], 3);
  assert_int_equal(stages[1].count[PP_BLOCK_DENSE], 2);
  assert_int_equal(pp_stage_layers(&stages[1]), 5);
}

/* The blocks of layers, the embedding and the head add up to the total, whatever kinds there are. */
static void blocks_of_all_kinds_add_up(void **state) {
  const pp_model model = hybrid(2048, (pp_layer){ .attention = PP_ATTENTION_CONV, .heads = 16, .conv_kernel = 3, .norms_per_layer = 2, .ffn = 512,
                                                   .gated = true });
  pp_block_parameters blocks[PP_BLOCKS];
  int64_t sum = 0;
  (void)state;
  pp_model_block_parameters(&model, blocks);
  for (int i = 0; i < PP_BLOCKS; i++) {
    const int count = i == PP_BLOCK_DENSE ? 2 : i == PP_BLOCK_FURTHER ? 6 : i == PP_BLOCK_EMBEDDING || i == PP_BLOCK_HEAD;
    sum += count * (blocks[i].tensor + blocks[i].replicated + blocks[i].expert);
  }
  assert_true(sum == pp_model_parameters(&model).total);
  /* LFM2's short convolution: 3h × h in, 3 taps a channel, h × h out; two norms; an MLP */
  const pp_block_parameters *conv = &blocks[PP_BLOCK_FURTHER];
  assert_true(conv->tensor + conv->replicated == 4LL * 2048 * 2048 + 3 * 2048 + 2 * 2048 + 3LL * 512 * 2048);
}

static void a_mixer_without_its_sizes_is_refused_by_field(void **state) {
  pp_error error = { 0 };
  pp_model model = hybrid(2048, (pp_layer){ .attention = PP_ATTENTION_MAMBA2, .heads = 16, .key_heads = 3, .key_dim = 128, .value_heads = 32,
                                            .value_dim = 64, .norms_per_layer = 1 });
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "key_heads");
  model.further[0].layer.key_heads = 8;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  model.further[0].layer.value_dim = 0;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "value_dim");
}

/* 2^40 of something that a short convolution has none of would overflow where it is multiplied. */
static void a_size_that_its_kind_does_not_ask_for_is_bounded_all_the_same(void **state) {
  const pp_layer conv = { .attention = PP_ATTENTION_CONV, .heads = 16, .conv_kernel = 3, .norms_per_layer = 1 };
  pp_model model = hybrid(2048, conv);
  pp_error error;
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  model.further[0].layer.key_heads = (int64_t)1 << 40;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "key_heads");
  model.further[0].layer.key_heads = 0;
  model.expert_ffn = (int64_t)1 << 40;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "expert_ffn");
}

/* Lfm2ShortConv of transformers (models/lfm2): B, C and x are projected; B·x is convolved and multiplied by C. Backward needs those three, B·x,
** what is convolved, and what the output projection reads: six times hidden, beside the norm's input and output, in bf16. An MLP of 512 keeps
** its norm's input and output, gate and up, and their product. Three products and a convolution move eight times hidden; norm, residual and MLP
** what they do in any layer. */
static void a_short_convolution_keeps_and_moves_what_its_class_does(void **state) {
  const pp_model model = hybrid(2048, (pp_layer){ .attention = PP_ATTENTION_CONV, .heads = 16, .conv_kernel = 3, .norms_per_layer = 2, .ffn = 512,
                                                  .gated = true });
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };
  pp_training training = { .sequence_length = 4096, .micro_batch = 1, .parameter_bytes = 2, .gradient_bytes = 4, .fused_attention = true,
                           .activation_bytes = 2, .expert_imbalance = 1 };
  const pp_device device = { .flops = 1e30, .flops_bf16 = 1e30, .memory_bandwidth = 1e12, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
                             .attention_efficiency = 1, .memory_efficiency = 1 };
  const pp_network network = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
  pp_block_bytes bytes[PP_BLOCKS];
  pp_block_seconds seconds[PP_BLOCKS];
  pp_pass_terms terms[PP_BLOCKS][PP_PASSES];
  pp_error error;
  (void)state;
  pp_training_defaults(&training);
  assert_int_equal(PP_OK, pp_memory_blocks(&model, &layout, &training, 1, bytes, &error));
  const double h = 2048, kept = 2 * (6 + 2) * h + 2 * (2 * h + 3 * 512);
  assert_true(fabs(bytes[PP_BLOCK_FURTHER].stored / (4096 * kept) - 1) < 1e-12);
  assert_int_equal(PP_OK, pp_cost_blocks(&model, &layout, &training, &device, &network, seconds, terms, &error));
  const double moved = 2 * 8 * h + 2 * 10 * h + 2 * 3 * 512;
  assert_true(fabs(terms[PP_BLOCK_FURTHER][0].moved * 1e12 / (4096 * moved) - 1) < 1e-12);
}

/* torch.utils.flop_counter of PyTorch 2.13 counts 868,352 a token in matrix products of JambaMambaMixer (transformers 5.24.0) at these sizes, and
** its scan, which the counter does not see, has seven operations for each channel and number of the state. */
static void mamba_1_has_the_products_of_its_class(void **state) {
  pp_model model = hybrid(256, (pp_layer){ .attention = PP_ATTENTION_MAMBA1, .heads = 8, .key_heads = 1, .key_dim = 16, .value_heads = 512, .value_dim = 1,
                                           .step_rank = 24, .conv_kernel = 4, .conv_bias = true, .mixer_norm = true, .norms_per_layer = 1 });
  pp_block_flops flops[PP_BLOCKS];
  pp_error error;
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  pp_model_block_flops(&model, 4096, flops);
  assert_true(flops[PP_BLOCK_FURTHER].linear == 868352);
  assert_true(flops[PP_BLOCK_FURTHER].attention == 7.0 * 512 * 16);
  model.further[0].layer.step_rank = 0;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "step_rank");
}

/* Layers 1 to 4 of a kind and what stands beside it. */
static pp_model paired(int64_t hidden, pp_layer first, bool moe, pp_layer beside) {
  pp_model model = { .layers = 4, .hidden = hidden, .vocab = 1000, .layer = first, .kinds = 2 };
  for (int i = 0; i < 4; i++) model.kind[i] = 1, model.moe[i] = moe;
  model.further[0].layer = first;
  model.further[0].moe = moe;
  model.further[0].beside = 2;
  model.further[1].layer = beside;
  return model;
}

static pp_model longcat(void) {
  pp_layer first = { .attention = PP_ATTENTION_MLA, .heads = 8, .q_lora_rank = 48, .kv_lora_rank = 64, .qk_nope_dim = 16, .qk_rope_dim = 8, .v_dim = 24,
                     .gated = true, .experts = 6, .zero_experts = 3, .experts_per_token = 3, .expert_ffn = 128, .shared_ffn = 512, .norms_per_layer = 2 };
  pp_layer second = first;
  second.ffn = 512;
  return paired(256, first, true, second);
}

/* The same counter: matrix products of FalconH1DecoderLayer have 1,773,568 a token; of LongcatFlashDecoderLayer with its router 2,015,744 and 196,608
** for each choice of an expert that computes, two of three on average where six of nine do. */
static void a_layer_of_two_parts_has_the_products_of_both(void **state) {
  const pp_layer attention = { .heads = 8, .kv_heads = 2, .head_dim = 32, .ffn = 512, .gated = true, .norms_per_layer = 2 };
  const pp_layer mamba = { .attention = PP_ATTENTION_MAMBA2, .heads = 8, .key_heads = 2, .key_dim = 32, .value_heads = 8, .value_dim = 48,
                           .conv_kernel = 4, .conv_bias = true };
  pp_model model = paired(256, attention, false, mamba);
  pp_block_flops flops[PP_BLOCKS];
  pp_error error;
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  pp_model_block_flops(&model, 4096, flops);
  assert_true(flops[PP_BLOCK_FURTHER].linear == 1773568);
  model = longcat();
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  pp_model_block_flops(&model, 4096, flops);
  const pp_block_flops *pair = &flops[PP_BLOCK_FURTHER];
  const double latent_norms = 2 * 2.0 * (48 + 64);   /* Megatron's function counts them: model.c */
  assert_true(pair->linear - latent_norms + pair->router == 2015744);
  assert_true(fabs(pair->expert / (2 * 196608.0) - 1) < 1e-12);
  assert_true(pair->attention == 2 * 4096.0 * 8 * (24 + 24));
}

/* Parameters, bytes and seconds of a pair are those of its two kinds; with full recompute it keeps one input, not two. */
static void a_layer_of_two_parts_is_the_sum_of_both(void **state) {
  const pp_model pair = longcat();
  pp_model apart = pair;
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };
  pp_training training = { .sequence_length = 4096, .micro_batch = 1, .parameter_bytes = 2, .gradient_bytes = 4, .fused_attention = true,
                           .activation_bytes = 2, .expert_imbalance = 1 };
  const pp_device device = { .flops = 1e15, .flops_bf16 = 1e15, .memory_bandwidth = 1e12, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
                             .attention_efficiency = 1, .memory_efficiency = 1 };
  const pp_network network = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
  enum { FIRST = PP_BLOCK_FURTHER, SECOND };
  pp_block_bytes bytes[2][PP_BLOCKS];
  pp_block_seconds seconds[2][PP_BLOCKS];
  pp_error error;
  (void)state;
  apart.further[0].beside = 0;
  pp_training_defaults(&training);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(PP_OK, pp_memory_blocks(i ? &pair : &apart, &layout, &training, 1, bytes[i], &error));
    assert_int_equal(PP_OK, pp_cost_blocks(i ? &pair : &apart, &layout, &training, &device, &network, seconds[i], NULL, &error));
  }
  const double stored = bytes[0][FIRST].stored + bytes[0][SECOND].stored, parameters = bytes[0][FIRST].state.parameters + bytes[0][SECOND].state.parameters;
  assert_true(fabs(bytes[1][FIRST].stored / stored - 1) < 1e-12);
  assert_true(fabs(bytes[1][FIRST].state.parameters / parameters - 1) < 1e-12);
  assert_true(bytes[1][FIRST].weight_gradients[PP_SHAPES_ATTENTION] == bytes[0][SECOND].weight_gradients[PP_SHAPES_ATTENTION]);
  assert_true(fabs(seconds[1][FIRST].forward / (seconds[0][FIRST].forward + seconds[0][SECOND].forward) - 1) < 1e-12);
  assert_true(fabs(seconds[1][FIRST].full / (seconds[0][FIRST].full + seconds[0][SECOND].full) - 1) < 1e-12);
  training.recompute.full = true;
  assert_int_equal(PP_OK, pp_memory_blocks(&pair, &layout, &training, 1, bytes[1], &error));
  assert_true(bytes[1][FIRST].stored == 4096 * 2 * 256);
  assert_true(bytes[1][FIRST].transient >= stored - 4096 * 2 * 256);
}

static void what_stands_beside_a_layer_is_dense_and_one(void **state) {
  pp_error error = { 0 };
  pp_model model = longcat();
  (void)state;
  model.further[1].beside = 1;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "beside");
  model = longcat();
  model.further[0].beside = 3;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  model = longcat();
  model.further[1].moe = true;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  model = longcat();
  model.mtp_layers = 1;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "mtp_layers");
}

/* DeepSeek-V4 in small: a layer with a window alone, one with an indexer's entries of 4 tokens, one with entries of 32. */
static pp_model deepseek_v4(void) {
  const pp_layer window = { .attention = PP_ATTENTION_COMPRESSED, .heads = 8, .kv_heads = 1, .head_dim = 32, .q_lora_rank = 48, .window = 128,
                            .output_groups = 4, .output_rank = 24, .gated = true, .experts = 6, .experts_per_token = 2, .expert_ffn = 128,
                            .shared_ffn = 128, .norms_per_layer = 2 };
  pp_model model = { .layers = 3, .hidden = 256, .vocab = 1000, .layer = window, .streams = 4, .kinds = 2, .moe = { true, true, true },
                     .kind = { 0, 1, 2 } };
  for (int i = 0; i < 2; i++) model.further[i].layer = window, model.further[i].moe = true;
  model.further[0].layer.compression = 4;
  model.further[0].layer.index_heads = 4;
  model.further[0].layer.index_dim = 24;
  model.further[0].layer.index_topk = 16;
  model.further[1].layer.compression = 32;
  return model;
}

/*
** torch.utils.flop_counter of PyTorch 2.13 on DeepseekV4DecoderLayer of transformers 5.24.0, products with weights alone, without experts and router:
** 421,888, 547,840 and 454,656 a token. The core by hand: of 4,096 causal queries each attends to 128 − 128² / 8192 = 126 tokens of its window, to 16
** entries of 4 tokens (128 − 1, over 8, on average 15.875) or to all of 32 before it (64); each costs four times 8 × 32, and the indexer scores 512
** entries with 4 heads of 24, at two operations.
*/
static void compressed_attention_has_the_products_of_its_class(void **state) {
  const pp_model model = deepseek_v4();
  pp_block_flops flops[PP_BLOCKS];
  pp_product product[PP_MOST_PRODUCTS];
  pp_error error;
  (void)state;
  assert_int_equal(pp_model_check(&model, &error), PP_OK);
  pp_model_block_flops(&model, 4096, flops);
  assert_true(flops[PP_BLOCK_MOE].linear == 421888);
  assert_true(flops[PP_BLOCK_FURTHER].linear == 547840);
  assert_true(flops[PP_BLOCK_FURTHER + 1].linear == 454656);
  assert_true(flops[PP_BLOCK_MOE].attention == 126 * 1024.0);
  assert_true(flops[PP_BLOCK_FURTHER].attention == (126 + 15.875) * 1024 + 512 * 4 * 24 * 2.0);
  assert_true(flops[PP_BLOCK_FURTHER + 1].attention == (126 + 64) * 1024.0);
  double linear = 0;
  const int count = pp_model_block_products(&model, PP_BLOCK_FURTHER, product);
  for (int i = 0; i < count; i++) linear += 2.0 * (double)product[i].n * (double)product[i].k;
  assert_true(linear == 547840);
}

/* Four streams of 256 pass between stages, and stay where a layer is computed again. */
static void all_streams_pass_between_stages(void **state) {
  const pp_model model = deepseek_v4();
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 2, .chunks = 1 };
  pp_training training = { .sequence_length = 4096, .micro_batch = 1, .parameter_bytes = 2, .gradient_bytes = 4, .fused_attention = true,
                           .activation_bytes = 2, .expert_imbalance = 1, .recompute = { .full = true } };
  pp_block_bytes bytes[PP_BLOCKS];
  pp_error error;
  (void)state;
  pp_training_defaults(&training);
  assert_true(pp_cost_hop_bytes(&model, &layout, &training) == 4096 * 2.0 * 4 * 256);
  assert_int_equal(PP_OK, pp_memory_blocks(&model, &layout, &training, 1, bytes, &error));
  assert_true(bytes[PP_BLOCK_MOE].stored == 4096 * 2.0 * 4 * 256);
}

static void compressed_attention_without_its_sizes_is_refused_by_field(void **state) {
  pp_error error = { 0 };
  pp_model model = deepseek_v4();
  (void)state;
  model.output_groups = 3;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "output_groups");
  model = deepseek_v4();
  model.further[0].layer.index_topk = 0;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "index_topk");
  model = deepseek_v4();
  model.mtp_layers = 1;
  assert_int_equal(pp_model_check(&model, &error), PP_INVALID);
  assert_string_equal(error.field, "mtp_layers");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(flops_of_mixers_are_those_of_megatron),
    cmocka_unit_test(an_indexer_shortens_attention_and_adds_its_scores),
    cmocka_unit_test(an_indexer_beside_grouped_queries_has_a_key_and_no_weights),
    cmocka_unit_test(a_stage_counts_layers_of_each_kind),
    cmocka_unit_test(blocks_of_all_kinds_add_up),
    cmocka_unit_test(a_mixer_without_its_sizes_is_refused_by_field),
    cmocka_unit_test(a_short_convolution_keeps_and_moves_what_its_class_does),
    cmocka_unit_test(a_size_that_its_kind_does_not_ask_for_is_bounded_all_the_same),
    cmocka_unit_test(mamba_1_has_the_products_of_its_class),
    cmocka_unit_test(a_layer_of_two_parts_has_the_products_of_both),
    cmocka_unit_test(a_layer_of_two_parts_is_the_sum_of_both),
    cmocka_unit_test(what_stands_beside_a_layer_is_dense_and_one),
    cmocka_unit_test(compressed_attention_has_the_products_of_its_class),
    cmocka_unit_test(all_streams_pass_between_stages),
    cmocka_unit_test(compressed_attention_without_its_sizes_is_refused_by_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

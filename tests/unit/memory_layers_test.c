/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: activations of a layer, against papers and other estimators' published values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "blocks.h"

static double layer_bytes(const pp_model *model, int tensor, const pp_training *training) {
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  layout.tensor = tensor;
  blocks_of(model, &layout, training, 1, blocks);
  return blocks[PP_BLOCK_DENSE].stored;
}

/* Korthikanti et al. 2205.05198 Table 2, every row, for their 22B model. */
static void a_gpt_layer_keeps_what_table_2_says(void **state) {
  const pp_model model = gpt(48, 6144, 64);
  const double sbh = 2048.0 * 4 * 6144, scores = 5 * 64 * 2048.0 / 6144;
  pp_training training = gpt_recipe(4);
  (void)state;
  expect(sbh * (34 + scores), layer_bytes(&model, 1, &training), 1e-12);
  expect(sbh * (10 + 24.0 / 8 + scores / 8), layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.core_attention = true;
  expect(sbh * (10 + 24.0 / 8), layer_bytes(&model, 8, &training), 1e-12);
  training.sequence_parallel = true;
  expect(sbh * 34 / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.core_attention = false;
  expect(sbh * (34 + scores) / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.full = true;
  expect(sbh * 2 / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.sequence_parallel = false;
  expect(sbh * 2, layer_bytes(&model, 8, &training), 1e-12);
}

/* OLMo's norms have no weights (arXiv 2402.00838 §2.1), but backward reads their inputs and outputs as any norm's. */
static void norms_without_weights_keep_what_norms_keep(void **state) {
  pp_model model = llama(16, 2048, 16, 16, 8192, 50304);
  const pp_training training = bf16_recipe(2048);
  const double with = layer_bytes(&model, 1, &training);
  (void)state;
  model.norms_per_layer = 0;
  expect(with, layer_bytes(&model, 1, &training), 1e-12);
}

/* Korthikanti Table 3 and Fig. 1: GiB of the first stage's layers, as the schedule holds them, without recompute and with sequence
** parallelism and selective recompute (calculon-ai/calculon validation/seqsel holds the same values). */
static void the_four_gpt_sizes_hold_the_published_activations(void **state) {
  static const struct { int64_t layers, hidden, heads, batch; int depth, chunks; double none, selective; } rows[] = {
    { 48, 6144, 64, 4, 1, 1, 59.25, 9.5625 },
    { 96, 12288, 96, 1, 8, 3, 66.84375, 12.3515625 },
    { 105, 20480, 128, 1, 35, 3, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 1, 64, 1, 131.25, 26.5625 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pp_model model = gpt(rows[i].layers, rows[i].hidden, rows[i].heads);
    pp_training training = gpt_recipe(rows[i].batch);
    const double layers = (double)rows[i].layers;
    double held = layers;   /* layers' worth of microbatches on rank 0 */
    if (rows[i].depth > 1) {
      const int stages = rows[i].depth * rows[i].chunks;
      double stored[512], pending[512];
      pp_schedule schedule;
      const pp_schedule_request request = { .kind = rows[i].chunks > 1 ? PP_INTERLEAVED_1F1B : PP_1F1B, .ranks = rows[i].depth,
                                            .microbatches = 2 * rows[i].depth, .chunks = rows[i].chunks };
      for (int s = 0; s < stages; s++) stored[s] = layers / stages, pending[s] = 0;
      assert_int_equal(pp_schedule_build(&request, &schedule, NULL), PP_OK);
      held = pp_schedule_peak(&schedule, 0, stored, pending);
      pp_schedule_free(&schedule);
    }
    expect(rows[i].none, held * layer_bytes(&model, 8, &training) / GIB, 1e-9);
    training.sequence_parallel = training.recompute.core_attention = true;
    expect(rows[i].selective, held * layer_bytes(&model, 8, &training) / GIB, 1e-9);
  }
}

/* The same paper's relative figures, in per cent of no technique: 22B 7.64 with full recompute, 175B 56.53 selective. */
static void recompute_saves_the_published_shares(void **state) {
  const pp_model small = gpt(48, 6144, 64), large = gpt(96, 12288, 96);
  pp_training training = gpt_recipe(4);
  (void)state;
  const double none_small = layer_bytes(&small, 8, &training), none_large = layer_bytes(&large, 8, &training);
  training.recompute.core_attention = true;
  expect(0.5653, layer_bytes(&large, 8, &training) / none_large, 0.005);
  training.recompute.full = true;
  expect(0.0764, layer_bytes(&small, 8, &training) / none_small, 0.01);
}

/* SimuMax, within 1 % of real peaks: Llama-3-8B keeps 8h + 4ad + 4kd + 4a + 6f = 139,392 bytes per token and layer; 16 layers of 4,096
** tokens are 8.5039 GiB there. */
static void a_llama_layer_keeps_139392_bytes_per_token(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  const pp_training training = bf16_recipe(4096);
  (void)state;
  expect(139392, layer_bytes(&model, 1, &training) / 4096, 1e-12);
  expect(8.5039, 16 * layer_bytes(&model, 1, &training) / GIB, 0.001);
  expect(139392.0 / 8, layer_bytes(&model, 8, &training) / 4096, 1e-12);
}

/* In fp32 all of it but the softmax statistics, which are fp32 anyway, takes twice as much. */
static void a_layer_in_fp32_keeps_twice_as_much(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  pp_training training = bf16_recipe(4096);
  (void)state;
  const double statistics = 4.0 * 32 * 4096, half = layer_bytes(&model, 1, &training) - statistics;
  training.precision = PP_FP32;
  training.activation_bytes = training.attention_output_bytes = training.activation_input_bytes = 4;
  expect(2 * half + statistics, layer_bytes(&model, 1, &training), 1e-12);
}

/* Transformer Engine in fp8: attention keeps its bf16 output beside the projection's fp8 input; recompute of the core drops it. In bf16 both are
** one tensor, and nothing is saved: Megatron-Bridge's recompute skill measured 36.618 and 36.614 GB for Moonlight-16B. */
static void core_recompute_saves_an_output_that_fused_attention_keeps_for_itself(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  pp_training training = bf16_recipe(4096);
  (void)state;
  const double stored = layer_bytes(&model, 1, &training);
  training.recompute.core_attention = true;
  expect(stored, layer_bytes(&model, 1, &training), 1e-12);
  training.activation_bytes = 1;
  training.attention_output_bytes = 3;
  const double recomputed = layer_bytes(&model, 1, &training);
  training.recompute.core_attention = false;
  expect(2.0 * 4096 * 4096, layer_bytes(&model, 1, &training) - recomputed, 1e-9);
}

/* The gradient of an unfused softmax's output is as large as the output, 2as bytes a token in bf16, and Megatron's kernel turns it into that of
** the scores in place (NVIDIA/apex csrc/megatron/scaled_upper_triang_masked_softmax_cuda.cu, bwd_cuda); dropout's backward makes another. */
static void scores_have_a_gradient_beside_them_in_backward(void **state) {
  const pp_model model = gpt(1, 4096, 32);
  pp_block_bytes blocks[PP_BLOCKS];
  pp_training training = bf16_recipe(1024);
  (void)state;
  training.fused_attention = false;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(2.0 * 32 * 1024 * 1024, blocks[PP_BLOCK_DENSE].transient, 1e-12);
  training.dropout = true;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(2 * 2.0 * 32 * 1024 * 1024, blocks[PP_BLOCK_DENSE].transient, 1e-12);
  training.fused_attention = true;   /* 4h of the MLP then */
  blocks_of(&model, &single, &training, 1, blocks);
  expect(2.0 * 4 * 4096 * 1024, blocks[PP_BLOCK_DENSE].transient, 1e-12);
}

/* Zero-bubble code family (hpcaitech/ColossalAI PR 6150): of 34h bytes of a GPT layer without dropout masks 32h wait for W: inputs 2h, 2h, 2h,
** 8h, output gradients 6h, 2h, 8h, 2h. */
static void w_waits_for_inputs_and_output_gradients(void **state) {
  const pp_model model = gpt(1, 4096, 32);
  pp_block_bytes blocks[PP_BLOCKS];
  pp_training training = bf16_recipe(1024);
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(32.0 * 4096 * 1024, blocks[PP_BLOCK_DENSE].pending, 1e-12);
  training.recompute.full = true;   /* recomputed inputs wait for W like stored ones */
  blocks_of(&model, &single, &training, 1, blocks);
  expect(32.0 * 4096 * 1024, blocks[PP_BLOCK_DENSE].pending, 1e-12);
}

/* By hand from the DeepSeek-V3 shape: what W of a dense layer with latent attention multiplies, in bf16. Inputs: hidden of both halves, the
** normed latents, the attention's output, the MLP's product; gradients of outputs: latents with k_rope, queries, expanded keys and values, the
** output projection, gate and up, down. Without the rotary part keys have 128 of a head, values 128. */
static void w_of_latent_attention_waits_for_the_gradients_of_all_its_products(void **state) {
  const pp_model model = deepseek_v3(1, 1, 0);
  const pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, inputs = h + (1536 + 512) + 128 * 128 + h + 18432;
  const double gradients = (1536 + 512 + 64) + 128 * 192 + 128 * (128 + 128) + h + 2 * 18432 + h;
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(2 * (inputs + gradients), blocks[PP_BLOCK_DENSE].pending / 4096, 1e-12);
}

/* NVIDIA/Megatron-LM PR 6782, as corrected: a rank holds K·s·b·te/t dispatched tokens and EP does not reduce them. */
static void expert_parallelism_does_not_reduce_dispatched_tokens(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes narrow[PP_BLOCKS], wide[PP_BLOCKS];
  (void)state;
  layout.data = 64;
  blocks_of(&model, &layout, &training, 1, narrow);
  layout.expert = 64;
  blocks_of(&model, &layout, &training, 1, wide);
  expect(narrow[PP_BLOCK_MOE].stored, wide[PP_BLOCK_MOE].stored, 1e-12);
  assert_true(wide[PP_BLOCK_MOE].state.parameters < narrow[PP_BLOCK_MOE].state.parameters / 10);
}

/* By hand from the DeepSeek-V3 shape, bytes per token in bf16: norms in and out 8h; latents and k_rope 2(1536 + 512 + 64), their norms'
** outputs 2(1536 + 512); Q and K 2·128·192 each, V 2·128·128, output 2·128·128, LSE 4·128; router 4·256; experts 8(2h + 6·2048);
** shared 6·2048. */
static void an_mla_moe_layer_is_counted_tensor_by_tensor(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, expected = 8 * h + 2 * (1536 + 512 + 64) + 2 * (1536 + 512) + 2 * 2 * 128 * 192 + 2 * 2 * 128 * 128 + 4 * 128 +
                                    4 * 256 + 8 * (2 * h + 6 * 2048) + 6 * 2048;
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(expected, blocks[PP_BLOCK_MOE].stored / 4096, 1e-12);
}

/* Experts on a latent size (Megatron-LM moe_layer.py, fc1_latent_proj and fc2_latent_proj): each of the K copies is of that size, and the two
** products beside them keep a latent each; sequence parallelism splits all of it. */
static void latent_experts_keep_latents(void **state) {
  pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes whole[PP_BLOCKS], latent[PP_BLOCKS];
  (void)state;
  for (int tensor = 1; tensor <= 4; tensor *= 2) {
    layout.tensor = layout.data = tensor;   /* experts are not cut */
    model.expert_hidden = 0;
    blocks_of(&model, &layout, &training, 1, whole);
    model.expert_hidden = 1024;
    blocks_of(&model, &layout, &training, 1, latent);
    expect(8 * 2 * (7168 - 1024) - 2 * 2 * 1024, (whole[PP_BLOCK_MOE].stored - latent[PP_BLOCK_MOE].stored) / (4096 / tensor), 1e-12);
  }
}

/* DeepSeek-V3 report §3.3: outputs of norms, MLA up-projections and SwiGLU recomputed; fp8 caches, attention output in 12 bits. */
static void module_wise_recompute_drops_what_the_report_lists(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, expected = 4 * h + 2 * (1536 + 512 + 64) + 1.5 * 128 * 128 + 4 * 128 + 4 * 256 + 8 * (h + 2 * 2048) + 2 * 2048;
  (void)state;
  training.precision = PP_FP8;
  training.activation_bytes = training.activation_input_bytes = 1;
  training.attention_output_bytes = 1.5;
  training.recompute = (pp_recompute){ .norm = true, .mla_up_projection = true, .activation = true };
  blocks_of(&model, &single, &training, 1, blocks);
  expect(expected, blocks[PP_BLOCK_MOE].stored / 4096, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gpt_layer_keeps_what_table_2_says),
    cmocka_unit_test(norms_without_weights_keep_what_norms_keep),
    cmocka_unit_test(the_four_gpt_sizes_hold_the_published_activations),
    cmocka_unit_test(recompute_saves_the_published_shares),
    cmocka_unit_test(a_llama_layer_keeps_139392_bytes_per_token),
    cmocka_unit_test(a_layer_in_fp32_keeps_twice_as_much),
    cmocka_unit_test(core_recompute_saves_an_output_that_fused_attention_keeps_for_itself),
    cmocka_unit_test(scores_have_a_gradient_beside_them_in_backward),
    cmocka_unit_test(w_waits_for_inputs_and_output_gradients),
    cmocka_unit_test(w_of_latent_attention_waits_for_the_gradients_of_all_its_products),
    cmocka_unit_test(expert_parallelism_does_not_reduce_dispatched_tokens),
    cmocka_unit_test(an_mla_moe_layer_is_counted_tensor_by_tensor),
    cmocka_unit_test(latent_experts_keep_latents),
    cmocka_unit_test(module_wise_recompute_drops_what_the_report_lists),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

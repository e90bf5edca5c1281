/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: which blocks each stage holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/layout.h"

static pp_model layers_of(int layers, int dense) {
  pp_model model = { .layers = layers, .hidden = 64, .vocab = 100, .heads = 4, .kv_heads = 4, .head_dim = 16, .ffn = 256, .gated = true,
                     .norms_per_layer = 2 };
  if (dense < layers) {
    model.experts = 8;
    model.experts_per_token = 2;
    model.expert_ffn = 64;
    for (int i = dense; i < layers; i++) model.moe[i] = true;
  }
  return model;
}

static int layers_at(const pp_stage *stage) {
  return stage->count[PP_BLOCK_DENSE] + stage->count[PP_BLOCK_MOE];
}

static void expect_layers(int layers, int stages, const int *expected) {
  const pp_model model = layers_of(layers, layers);
  pp_stage out[64];
  assert_int_equal(pp_layout_stages(&model, stages, NULL, out, NULL), PP_OK);
  for (int s = 0; s < stages; s++) assert_int_equal(layers_at(&out[s]), expected[s]);
}

/* By hand: who gets one layer less goes last, first, last but one, second, … */
static void layers_are_spread_evenly_and_the_ends_get_less(void **state) {
  (void)state;
  expect_layers(8, 4, (int[]){ 2, 2, 2, 2 });
  expect_layers(7, 4, (int[]){ 2, 2, 2, 1 });
  expect_layers(6, 4, (int[]){ 1, 2, 2, 1 });
  expect_layers(5, 4, (int[]){ 1, 2, 1, 1 });
  expect_layers(4, 4, (int[]){ 1, 1, 1, 1 });
  expect_layers(5, 1, (int[]){ 5 });
  expect_layers(1, 1, (int[]){ 1 });
}

/* Llama-3 405B, 126 layers over 16 stages: one layer less on the first and on the last (report §3.3.2). */
static void llama_3_405b_is_split_as_it_was_trained(void **state) {
  (void)state;
  expect_layers(126, 16, (int[]){ 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7 });
}

static void stages_know_dense_and_moe_layers_and_the_ends(void **state) {
  pp_model model = layers_of(61, 3);
  pp_stage out[16];
  int dense = 0, moe = 0, embedding = 0, head = 0, mtp = 0;
  (void)state;
  model.mtp_layers = 1;
  assert_int_equal(pp_layout_stages(&model, 16, NULL, out, NULL), PP_OK);
  /* 61 = 13 × 4 + 3 × 3: last, first and last but one have three. */
  assert_int_equal(layers_at(&out[0]), 3);
  assert_int_equal(layers_at(&out[1]), 4);
  assert_int_equal(layers_at(&out[14]), 3);
  assert_int_equal(layers_at(&out[15]), 3);
  assert_int_equal(out[0].count[PP_BLOCK_DENSE], 3);
  assert_int_equal(out[1].count[PP_BLOCK_DENSE], 0);
  for (int s = 0; s < 16; s++) {
    dense += out[s].count[PP_BLOCK_DENSE];
    moe += out[s].count[PP_BLOCK_MOE];
    embedding += out[s].count[PP_BLOCK_EMBEDDING];
    head += out[s].count[PP_BLOCK_HEAD];
    mtp += out[s].count[PP_BLOCK_MTP];
  }
  assert_int_equal(dense, 3);
  assert_int_equal(moe, 58);
  assert_int_equal(embedding, 1);
  assert_int_equal(head, 1);
  assert_int_equal(mtp, 1);
  assert_int_equal(out[0].count[PP_BLOCK_EMBEDDING], 1);
  assert_int_equal(out[15].count[PP_BLOCK_HEAD], 1);
  assert_int_equal(out[15].count[PP_BLOCK_MTP], 1);
}

static void a_given_split_is_taken_as_it_is(void **state) {
  const pp_model model = layers_of(10, 10);
  pp_stage out[3];
  (void)state;
  assert_int_equal(pp_layout_stages(&model, 3, (int[]){ 0, 8, 2 }, out, NULL), PP_OK);
  assert_int_equal(layers_at(&out[0]), 0);
  assert_int_equal(layers_at(&out[1]), 8);
  assert_int_equal(layers_at(&out[2]), 2);
}

static void a_split_that_does_not_add_up_is_refused(void **state) {
  const pp_model model = layers_of(10, 10);
  pp_stage out[3];
  pp_error error;
  (void)state;
  assert_int_equal(pp_layout_stages(&model, 3, (int[]){ 3, 3, 3 }, out, &error), PP_INVALID);
  assert_non_null(strstr(error.message, "adds up to 9"));
  assert_int_equal(pp_layout_stages(&model, 3, (int[]){ -1, 8, 3 }, out, &error), PP_INVALID);
  assert_int_equal(pp_layout_stages(&model, 0, NULL, out, &error), PP_INVALID);
}

static void fewer_layers_than_stages_is_a_rule_of_its_own(void **state) {
  const pp_model model = layers_of(10, 10);
  pp_stage out[16];
  pp_error error;
  (void)state;
  assert_int_equal(pp_layout_stages(&model, 16, NULL, out, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.layers_below_stages");
  assert_true(error.nearest > 9.5 && error.nearest < 10.5);
}

/* Qwen3-235B on 32 ranks × 3 chunks, embedding and loss counted as layers: yanring/Megatron-MoE-ModelZoo best_practice/qwen3. */
static void the_ends_may_go_without_a_layer(void **state) {
  const pp_model model = layers_of(94, 94);
  pp_stage out[97];
  pp_error error;
  (void)state;
  assert_int_equal(pp_layout_stages(&model, 96, NULL, out, &error), PP_OK);
  for (int s = 0; s < 96; s++) assert_int_equal(out[s].count[PP_BLOCK_DENSE] + out[s].count[PP_BLOCK_MOE], s > 0 && s < 95);
  assert_int_equal(out[0].count[PP_BLOCK_EMBEDDING], 1);
  assert_int_equal(out[95].count[PP_BLOCK_HEAD], 1);
  assert_int_equal(pp_layout_stages(&model, 95, NULL, out, &error), PP_OK);
  assert_int_equal(out[0].count[PP_BLOCK_DENSE] + out[0].count[PP_BLOCK_MOE], 1);
  assert_int_equal(out[94].count[PP_BLOCK_DENSE] + out[94].count[PP_BLOCK_MOE], 0);
  assert_int_equal(pp_layout_stages(&model, 97, NULL, out, &error), PP_ILLEGAL);
}

/* DeepSeek-V3's training: 2048 GPUs = 16 stages × 128, EP 64: each expert is on 2 GPUs of a stage. */
static void experts_are_replicated_over_what_is_left_of_a_stage(void **state) {
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 64, .expert_tensor = 1, .data = 128, .pipeline = 16, .chunks = 1 };
  (void)state;
  assert_int_equal(pp_layout_expert_data(&layout), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(layers_are_spread_evenly_and_the_ends_get_less),
    cmocka_unit_test(llama_3_405b_is_split_as_it_was_trained),
    cmocka_unit_test(stages_know_dense_and_moe_layers_and_the_ends),
    cmocka_unit_test(a_given_split_is_taken_as_it_is),
    cmocka_unit_test(a_split_that_does_not_add_up_is_refused),
    cmocka_unit_test(fewer_layers_than_stages_is_a_rule_of_its_own),
    cmocka_unit_test(the_ends_may_go_without_a_layer),
    cmocka_unit_test(experts_are_replicated_over_what_is_left_of_a_stage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* split.c: layers per stage. Expected splits are worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/split.h"
#include "shapes.h"

static const int each_for_itself[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };

static void expect_split(const pp_model *model, pp_block_weights weights, int stages, const int *group_of, int groups,
                         pp_split_share share, const int *most, const int *expected) {
  int layers[8];
  const pp_split split = { stages, group_of, groups, share, most, false, false };
  pp_split_layers(model, &weights, &split, layers);
  for (int s = 0; s < stages; s++)
    if (layers[s] != expected[s]) fail_msg("stage %d got %d layers, not %d", s, layers[s], expected[s]);
}

static void equal_stages_get_equal_layers(void **state) {
  const pp_model model = llama(16, 4096, 32, 8, 14336, 128256);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 0, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 4, 4, 4, 4 });
}

static void a_head_of_two_layers_costs_its_stage_two_layers(void **state) {
  const pp_model model = llama(14, 4096, 32, 8, 14336, 128256);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 2, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 4, 4, 4, 2 });
}

static void a_remainder_goes_to_late_stages_but_not_the_last(void **state) {
  const pp_model model = llama(14, 4096, 32, 8, 14336, 128256);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 0.5, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 3, 4, 4, 3 });
}

/* Rank 0 of a V has both ends: 1 + 3 of 32 units, so 4 of its 8 are layers, two a stage. */
static void in_a_v_the_rank_counts_and_not_the_stage(void **state) {
  const pp_model model = llama(28, 4096, 32, 8, 14336, 128256);
  const int rank_of[8] = { 0, 1, 2, 3, 3, 2, 1, 0 };
  (void)state;
  expect_split(&model, (pp_block_weights){ { 1, 1, 1, 3, 0 } }, 8, rank_of, 4, PP_SHARE_LAYERS, NULL, (const int[]){ 2, 4, 4, 4, 4, 4, 4, 2 });
}

/* 29 layers in the same V: one rank holds a ninth, the last of equals, or with `outer` the first of those that have no ends. */
static void a_layer_more_goes_to_the_innermost_rank_or_to_the_outermost(void **state) {
  const pp_model model = llama(29, 4096, 32, 8, 14336, 128256);
  const pp_block_weights weights = { { 1.5, 1, 1, 3, 0 } };
  const int rank_of[8] = { 0, 1, 2, 3, 3, 2, 1, 0 }, inner[8] = { 2, 4, 4, 4, 5, 4, 4, 2 }, outer[8] = { 2, 4, 4, 4, 4, 4, 5, 2 };
  int layers[8];
  (void)state;
  for (int outermost = 0; outermost < 2; outermost++) {
    const pp_split split = { 8, rank_of, 4, PP_SHARE_LAYERS, NULL, false, outermost };
    pp_split_layers(&model, &weights, &split, layers);
    assert_memory_equal(layers, outermost ? outer : inner, sizeof layers);
  }
}

/* Three dense layers at half the price of a MoE layer: the first stage takes one more. 1.5 + 2 = 3.5 against 4, 4, 4. */
static void cheap_dense_layers_leave_room_for_more(void **state) {
  pp_model model = deepseek_v3(17, 3, 0);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 0.5, 1, 0, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 5, 4, 4, 4 });
}

/* 32 layers and a head of 1.5: 33.5 over 4, so some stage holds 9. With all that 9 leaves room for on early stages: 9, 9, 9, and 5 with the
** head. A limit of 1 + 4 with an embedding of 1: 4, then 5, 5, and 2 with a head of 3. */
static void layers_move_to_early_stages_as_far_as_the_heaviest_allows(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256), small = llama(16, 4096, 32, 8, 14336, 128256);
  int layers[4] = { 8, 8, 9, 7 }, other[4] = { 4, 5, 5, 2 };
  (void)state;
  pp_split_forward(&model, &(pp_block_weights){ { 0, 1, 1, 1.5, 0 } }, 4, false, 0.005, layers);
  assert_memory_equal(layers, ((const int[]){ 9, 9, 9, 5 }), sizeof layers);
  pp_split_forward(&small, &(pp_block_weights){ { 1, 1, 1, 3, 0 } }, 4, false, 0.005, other);
  assert_memory_equal(other, ((const int[]){ 4, 5, 5, 2 }), sizeof other);
}

/* Nothing is left for the last: it keeps one layer, unless ends may be empty. */
static void moving_forward_leaves_each_stage_its_layer(void **state) {
  const pp_model model = llama(6, 4096, 32, 8, 14336, 128256);
  int layers[4] = { 1, 2, 2, 1 };
  (void)state;
  pp_split_forward(&model, &(pp_block_weights){ { 0, 1, 1, 2, 0 } }, 4, false, 0.005, layers);
  assert_memory_equal(layers, ((const int[]){ 3, 1, 1, 1 }), sizeof layers);
  pp_split_forward(&model, &(pp_block_weights){ { 0, 1, 1, 2, 0 } }, 4, true, 0.005, layers);
  assert_memory_equal(layers, ((const int[]){ 3, 2, 1, 0 }), sizeof layers);
}

static void every_stage_keeps_a_layer_however_heavy_its_ends(void **state) {
  const pp_model model = llama(8, 4096, 32, 8, 14336, 128256);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 100, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 2, 2, 3, 1 });
}

/* 5 + 1 of 7 is the quickest; with at most four layers a stage the last one has to take two beside its head. */
static void a_limit_moves_layers_to_heavy_stages(void **state) {
  const pp_model model = llama(14, 4096, 32, 8, 14336, 128256);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 4, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 4, 4, 5, 1 });
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 4, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, (const int[]){ 4, 4, 4, 4 },
               (const int[]){ 4, 4, 4, 2 });
  expect_split(&model, (pp_block_weights){ { 0, 1, 1, 4, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, (const int[]){ 3, 99, 99, 99 },
               (const int[]){ 3, 5, 5, 1 });
}

static void layers_without_weight_are_spread_all_the_same(void **state) {
  const pp_model model = llama(8, 4096, 32, 8, 14336, 128256);
  int layers[4], sum = 0;
  (void)state;
  const pp_split split = { 4, each_for_itself, 4, PP_SHARE_TIME, NULL, false, false };
  pp_split_layers(&model, &(pp_block_weights){ { 0, 0, 0, 0, 0 } }, &split, layers);
  for (int s = 0; s < 4; s++) sum += layers[s];
  assert_int_equal(sum, 8);
}

static void expect_layers(const int *expected, const int *layers, int stages) {
  for (int s = 0; s < stages; s++)
    if (layers[s] != expected[s]) fail_msg("stage %d got %d layers, not %d", s, layers[s], expected[s]);
}

/* 14 layers and a head of 6, 20 in all: four stages of 5. The head alone takes 6, with a layer beside it 7. */
static void a_head_heavier_than_a_stage_leaves_its_stage_without_layers(void **state) {
  const pp_model model = llama(14, 4096, 32, 8, 14336, 128256);
  const pp_split split = { 4, each_for_itself, 4, PP_SHARE_TIME, NULL, true, false };
  int layers[4];
  (void)state;
  pp_split_layers(&model, &(pp_block_weights){ { 0, 1, 1, 6, 0 } }, &split, layers);
  expect_layers((const int[]){ 4, 5, 5, 0 }, layers, 4);
}

static void an_embedding_as_heavy_as_a_stage_stands_alone(void **state) {
  const pp_model model = llama(9, 4096, 32, 8, 14336, 128256);
  const pp_split split = { 4, each_for_itself, 4, PP_SHARE_TIME, NULL, true, false };
  int layers[4];
  (void)state;
  pp_split_layers(&model, &(pp_block_weights){ { 3, 1, 1, 0, 0 } }, &split, layers);
  expect_layers((const int[]){ 0, 3, 3, 3 }, layers, 4);
}

/* 8 layers and a head of two on 2 ranks with 2 chunks: 2 + 3 on either rank, and 2, then 3 a round. The last stage empty would take
** 3, 3 and 2, 0 + 2, which is no less. */
static void chunks_are_balanced_among_themselves(void **state) {
  const pp_model model = llama(8, 4096, 32, 8, 14336, 128256);
  const int rank_of[4] = { 0, 1, 0, 1 };
  const pp_split split = { 4, rank_of, 2, PP_SHARE_TIME, NULL, true, false };
  const pp_block_weights weights = { { 0, 1, 1, 2, 0 } };
  int layers[4];
  (void)state;
  pp_split_layers(&model, &weights, &split, layers);
  expect_layers((const int[]){ 2, 2, 3, 1 }, layers, 4);
  pp_split_phases(&model, &weights, 2, 2, true, layers);
  expect_layers((const int[]){ 2, 2, 3, 1 }, layers, 4);
}

/* Leaves large numbers where the next function has its variables: what it does not set itself shows. */
__attribute__((noinline)) static void soil_the_stack(void) {
  volatile double soil[16 * PP_MAX_LAYERS];
  for (size_t i = 0; i < sizeof soil / sizeof *soil; i++) soil[i] = 1e300;
}

/* A head of three layers' time sets the pace of the last chunk: its stages hold three, those of the first chunk one. 1 + 3 a round, where
** two layers everywhere take 2 + 3. Dense layers or MoE, in seconds or in milliseconds. */
static void a_heavy_head_lets_its_chunk_hold_more_layers(void **state) {
  const pp_model models[2] = { llama(13, 4096, 32, 8, 14336, 128256), deepseek_v3(13, 0, 0) };
  int layers[8];
  (void)state;
  for (int i = 0; i < 4; i++) {
    const double unit = i < 2 ? 1 : 1e-3;
    soil_the_stack();
    pp_split_phases(&models[i % 2], &(pp_block_weights){ { 0, unit, unit, 3 * unit, 0 } }, 4, 2, true, layers);
    expect_layers((const int[]){ 1, 1, 1, 1, 3, 3, 3, 0 }, layers, 8);
  }
}

static void chunks_of_equal_layers_stay_equal(void **state) {
  const pp_model model = llama(16, 4096, 32, 8, 14336, 128256);
  int layers[8];
  (void)state;
  pp_split_phases(&model, &(pp_block_weights){ { 0, 1, 1, 0, 0 } }, 4, 2, true, layers);
  expect_layers((const int[]){ 2, 2, 2, 2, 2, 2, 2, 2 }, layers, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_stages_get_equal_layers),
    cmocka_unit_test(a_head_of_two_layers_costs_its_stage_two_layers),
    cmocka_unit_test(a_remainder_goes_to_late_stages_but_not_the_last),
    cmocka_unit_test(in_a_v_the_rank_counts_and_not_the_stage),
    cmocka_unit_test(a_layer_more_goes_to_the_innermost_rank_or_to_the_outermost),
    cmocka_unit_test(cheap_dense_layers_leave_room_for_more),
    cmocka_unit_test(every_stage_keeps_a_layer_however_heavy_its_ends),
    cmocka_unit_test(layers_move_to_early_stages_as_far_as_the_heaviest_allows),
    cmocka_unit_test(moving_forward_leaves_each_stage_its_layer),
    cmocka_unit_test(a_limit_moves_layers_to_heavy_stages),
    cmocka_unit_test(a_head_heavier_than_a_stage_leaves_its_stage_without_layers),
    cmocka_unit_test(an_embedding_as_heavy_as_a_stage_stands_alone),
    cmocka_unit_test(chunks_are_balanced_among_themselves),
    cmocka_unit_test(a_heavy_head_lets_its_chunk_hold_more_layers),
    cmocka_unit_test(chunks_of_equal_layers_stay_equal),
    cmocka_unit_test(layers_without_weight_are_spread_all_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

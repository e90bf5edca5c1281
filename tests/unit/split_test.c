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
  pp_split_layers(model, &weights, stages, group_of, groups, share, most, layers);
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

/* Three dense layers at half the price of a MoE layer: the first stage takes one more. 1.5 + 2 = 3.5 against 4, 4, 4. */
static void cheap_dense_layers_leave_room_for_more(void **state) {
  pp_model model = deepseek_v3(17, 3, 0);
  (void)state;
  expect_split(&model, (pp_block_weights){ { 0, 0.5, 1, 0, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, (const int[]){ 5, 4, 4, 4 });
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
  pp_split_layers(&model, &(pp_block_weights){ { 0, 0, 0, 0, 0 } }, 4, each_for_itself, 4, PP_SHARE_TIME, NULL, layers);
  for (int s = 0; s < 4; s++) sum += layers[s];
  assert_int_equal(sum, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_stages_get_equal_layers),
    cmocka_unit_test(a_head_of_two_layers_costs_its_stage_two_layers),
    cmocka_unit_test(a_remainder_goes_to_late_stages_but_not_the_last),
    cmocka_unit_test(in_a_v_the_rank_counts_and_not_the_stage),
    cmocka_unit_test(cheap_dense_layers_leave_room_for_more),
    cmocka_unit_test(every_stage_keeps_a_layer_however_heavy_its_ends),
    cmocka_unit_test(a_limit_moves_layers_to_heavy_stages),
    cmocka_unit_test(layers_without_weight_are_spread_all_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

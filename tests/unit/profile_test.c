/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c: measured stages as blocks. Costs here are round numbers, so that what should come out can be told by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/profile.h"

/* Computed costs: a layer 1, 1.2, 0.8 and 2 s of F, I, W and B, an embedding a tenth, a head 3 times a layer. */
static const pp_block_seconds computed[PP_BLOCKS] = {
  [PP_BLOCK_EMBEDDING] = { .forward = 0.1, .weight = 0.1, .full = 0.1 },
  [PP_BLOCK_DENSE] = { .forward = 1, .input = 1.2, .weight = 0.8, .full = 2 },
  [PP_BLOCK_MOE] = { .forward = 2, .input = 2.4, .weight = 1.6, .full = 4, .alltoall_forward = 1, .alltoall_backward = 1 },
  [PP_BLOCK_HEAD] = { .forward = 3, .input = 3, .weight = 3, .full = 6 },
};
static const pp_block_bytes bytes[PP_BLOCKS] = {
  [PP_BLOCK_EMBEDDING] = { .state = { .parameters = 50 }, .stored = 1 },
  [PP_BLOCK_DENSE] = { .state = { .parameters = 10, .gradients = 20 }, .stored = 5, .pending = 3, .transient = 2 },
  [PP_BLOCK_MOE] = { .state = { .parameters = 100, .gradients = 200 }, .stored = 5, .pending = 3, .transient = 2 },
  [PP_BLOCK_HEAD] = { .state = { .parameters = 50 }, .stored = 1, .transient = 8 },
};

static pp_profile_stage stage_of(int embedding, int layers, int head, double forward, double full) {
  pp_profile_stage stage = { .blocks = { { embedding, layers, 0, head, 0 } }, .pair = NAN };
  for (int i = 0; i < PP_MEASURED_QUANTITIES; i++) stage.of[i] = NAN;
  stage.of[PP_MEASURED_FORWARD] = forward;
  stage.of[PP_MEASURED_FULL] = full;
  return stage;
}

static void expect(double expected, double actual) {
  if (fabs(actual - expected) > 1e-12 * fmax(1, fabs(expected))) fail_msg("expected %.15g, got %.15g", expected, actual);
}

/* The blocks of a profile, put together to a stage. */
static pp_stage_seconds made_of(const pp_profile *profile, pp_stage stage) {
  pp_block_seconds blocks[PP_BLOCKS];
  pp_profile_factors factors;
  pp_stage_seconds out;
  pp_error error;
  assert_int_equal(PP_OK, pp_profile_factors_of(profile, computed, bytes, &factors, &error));
  for (int i = 0; i < PP_BLOCKS; i++) blocks[i] = computed[i];
  pp_profile_scale_seconds(&factors, blocks);
  pp_cost_stage(&stage, blocks, &out);
  return out;
}

/* Two inner stages of 4 layers at 12 s of F and 20 of B: 3 and 5 a layer, so 27 and 45 for 9. */
static void layers_scale_by_their_number(void **state) {
  const pp_profile profile = { .stages = 2, .stage = { stage_of(0, 4, 0, 12, 20), stage_of(0, 4, 0, 12, 20) } };
  const pp_stage_seconds nine = made_of(&profile, (pp_stage){ { 0, 9, 0, 0, 0 } });
  (void)state;
  expect(27, nine.forward);
  expect(45, nine.full);
  /* unmeasured I and W: B split as computed, 1.2 to 0.8 */
  expect(27, nine.input);
  expect(18, nine.weight);
}

/* First stage 4 layers and 1 s, last one 4 layers and 7 s, of F; B twice that. With 5 and 2 layers: 5 × 3 + 1 and 2 × 3 + 7. */
static void what_ends_take_beside_their_layers_stays(void **state) {
  const pp_profile profile = { .stages = 4, .stage = { stage_of(1, 4, 0, 13, 26), stage_of(0, 4, 0, 12, 24), stage_of(0, 4, 0, 12, 24),
                                                       stage_of(0, 4, 1, 19, 38) } };
  (void)state;
  expect(16, made_of(&profile, (pp_stage){ { 1, 5, 0, 0, 0 } }).forward);
  expect(32, made_of(&profile, (pp_stage){ { 1, 5, 0, 0, 0 } }).full);
  expect(13, made_of(&profile, (pp_stage){ { 0, 2, 0, 1, 0 } }).forward);
  expect(13, made_of(&profile, (pp_stage){ { 1, 4, 0, 0, 0 } }).forward);   /* as measured */
  expect(19, made_of(&profile, (pp_stage){ { 0, 4, 0, 1, 0 } }).forward);
}

/* An end that was faster than its layers (noise) has taken nothing, not less. */
static void ends_never_take_less_than_nothing(void **state) {
  const pp_profile profile = { .stages = 3, .stage = { stage_of(1, 4, 0, 11.9, 24), stage_of(0, 4, 0, 12, 24), stage_of(0, 4, 1, 12, 24) } };
  (void)state;
  expect(12, made_of(&profile, (pp_stage){ { 1, 4, 0, 0, 0 } }).forward);
  expect(12, made_of(&profile, (pp_stage){ { 0, 4, 0, 1, 0 } }).forward);
}

/* Blocks alone were measured, three times as slow as computed: so is a head, which nobody measured. */
static void ends_that_nobody_measured_are_as_computed(void **state) {
  const pp_profile profile = { .stages = 1, .stage = { stage_of(0, 4, 0, 12, 24) } };
  (void)state;
  expect(3 + 5 * 3, made_of(&profile, (pp_stage){ { 0, 5, 0, 1, 0 } }).forward);   /* a head of 3 beside layers that took 3 each */
}

/* Only ends: the smaller of 14/4 and 19/4 is the layers'. The embedding has what the first took beyond: nothing. */
static void without_inner_stages_the_fastest_stage_tells_of_layers(void **state) {
  const pp_profile profile = { .stages = 2, .stage = { stage_of(1, 4, 0, 14, 28), stage_of(0, 4, 1, 19, 38) } };
  (void)state;
  expect(3.5 * 8, made_of(&profile, (pp_stage){ { 0, 8, 0, 0, 0 } }).forward);
  expect(19, made_of(&profile, (pp_stage){ { 0, 4, 0, 1, 0 } }).forward);
}

/* I 12 of B 20: W is 8; W 6: I is 14. Both: as they are, and B too. */
static void of_a_split_the_missing_half_is_what_is_left_of_b(void **state) {
  pp_profile profile = { .stages = 1, .stage = { stage_of(0, 4, 0, 12, 20) } };
  double *of = profile.stage[0].of;
  const pp_stage four = { { 0, 4, 0, 0, 0 } };
  (void)state;
  of[PP_MEASURED_INPUT] = 12;
  expect(8, made_of(&profile, four).weight);
  of[PP_MEASURED_INPUT] = NAN;
  of[PP_MEASURED_WEIGHT] = 6;
  expect(14, made_of(&profile, four).input);
  of[PP_MEASURED_INPUT] = 15;
  expect(15, made_of(&profile, four).input);
  expect(6, made_of(&profile, four).weight);
  expect(20, made_of(&profile, four).full);
  /* measured apart, each is what it is: together they may take more than B, which reads what both need once, and so may one of them */
  of[PP_MEASURED_INPUT] = 21;
  expect(21, made_of(&profile, four).input);
  of[PP_MEASURED_INPUT] = 6;
  of[PP_MEASURED_WEIGHT] = 21;
  expect(21, made_of(&profile, four).weight);
}

/* Stages of 2 dense layers and 1 MoE layer (2 × 1 + 3 computed) took 10 s of F: a dense layer 2, an MoE layer 6, of which its all-to-all 2. */
static void layers_of_different_kinds_keep_their_computed_ratio(void **state) {
  pp_profile profile = { .stages = 1, .stage = { stage_of(0, 2, 0, 10, 27) } };
  (void)state;
  profile.stage[0].blocks.count[PP_BLOCK_MOE] = 1;
  expect(4, made_of(&profile, (pp_stage){ { 0, 2, 0, 0, 0 } }).forward);
  expect(6, made_of(&profile, (pp_stage){ { 0, 0, 1, 0, 0 } }).forward);
  expect(2, made_of(&profile, (pp_stage){ { 0, 0, 1, 0, 0 } }).alltoall_forward);
  expect(27, made_of(&profile, (pp_stage){ { 0, 2, 1, 0, 0 } }).full);
}

/* Layers with experts took twice what is computed, 6 s. The first stage, 2 dense layers and 2 of those, took 15: 3 are left for the dense ones, which
** are 1.5 each, and none for the embedding. At 17 it is 4 and 1 for the embedding, as dense layers take twice as well. Nearly nothing, 12.1, is left to
** noise: half of what is computed. */
static void layers_that_only_an_end_holds_leave_it_as_measured(void **state) {
  pp_profile profile = { .stages = 3, .stage = { stage_of(1, 2, 0, 15, 42), stage_of(0, 0, 0, 24, 60), stage_of(0, 0, 1, 30, 72) } };
  (void)state;
  for (int s = 0; s < 3; s++) profile.stage[s].blocks.count[PP_BLOCK_MOE] = s == 0 ? 2 : 4;
  expect(15, made_of(&profile, profile.stage[0].blocks).forward);
  expect(24, made_of(&profile, profile.stage[1].blocks).forward);
  expect(30, made_of(&profile, profile.stage[2].blocks).forward);
  expect(1.5, made_of(&profile, (pp_stage){ { 0, 1, 0, 0, 0 } }).forward);
  profile.stage[0].of[PP_MEASURED_FORWARD] = 17;
  expect(17, made_of(&profile, profile.stage[0].blocks).forward);
  expect(2, made_of(&profile, (pp_stage){ { 0, 1, 0, 0, 0 } }).forward);
  profile.stage[0].of[PP_MEASURED_FORWARD] = 12.1;
  expect(0.5, made_of(&profile, (pp_stage){ { 0, 1, 0, 0, 0 } }).forward);
  /* PyTorch's first stage has no gradient to hand on. That says nothing of its dense layers: their I is twice what is computed, as of the others */
  for (int i = 0; i < 3; i++) profile.stage[i].of[PP_MEASURED_INPUT] = i == 0 ? 0 : 2 * 4 * 3.4;
  expect(2.4, made_of(&profile, (pp_stage){ { 0, 1, 0, 0, 0 } }).input);
}

/* 4 layers stored 40 bytes where 20 are computed, took 8 of temporaries for 2; the last stage 9 more of stored, 16 of temporaries for 8. */
static void bytes_follow_the_same_rule(void **state) {
  pp_profile profile = { .stages = 2, .stage = { stage_of(0, 4, 0, 12, 20), stage_of(0, 4, 1, 20, 30) } };
  pp_block_bytes blocks[PP_BLOCKS];
  pp_profile_factors factors;
  pp_error error;
  (void)state;
  profile.stage[0].of[PP_MEASURED_STORED] = 40;
  profile.stage[1].of[PP_MEASURED_STORED] = 49;
  profile.stage[0].of[PP_MEASURED_TRANSIENT] = 8;
  profile.stage[1].of[PP_MEASURED_TRANSIENT] = 16;
  assert_int_equal(PP_OK, pp_profile_factors_of(&profile, computed, bytes, &factors, &error));
  for (int i = 0; i < PP_BLOCKS; i++) blocks[i] = bytes[i];
  pp_profile_scale_bytes(&factors, blocks);
  expect(10, blocks[PP_BLOCK_DENSE].stored);
  expect(9, blocks[PP_BLOCK_HEAD].stored);
  expect(8, blocks[PP_BLOCK_DENSE].transient);
  expect(16, blocks[PP_BLOCK_HEAD].transient);
  expect(10, blocks[PP_BLOCK_DENSE].state.parameters);   /* not measured: as computed */
  expect(3, blocks[PP_BLOCK_DENSE].pending);
}

static void a_measured_pair_is_a_share_of_forward_and_backward(void **state) {
  pp_profile profile = { .stages = 1, .stage = { stage_of(0, 4, 0, 12, 20) } };
  pp_profile_factors factors;
  pp_error error;
  (void)state;
  profile.stage[0].pair = 24;
  assert_int_equal(PP_OK, pp_profile_factors_of(&profile, computed, bytes, &factors, &error));
  expect(0.75, factors.pair_share);
  const pp_device device = { .pair_share = factors.pair_share };
  const pp_stage_seconds stage = { .forward = 4, .full = 8 };
  expect(9, pp_cost_pair(&device, &stage, &stage));
}

/* Computed 1 of F and 2 of B a layer; measured three times that: the collectives in them, and what is waited for, take three times as long, too. */
static void collectives_take_what_their_blocks_take(void **state) {
  pp_block_seconds blocks[PP_BLOCKS] = { [PP_BLOCK_DENSE] = { .forward = 1, .input = 1.2, .weight = 0.8, .full = 2 } };
  const pp_profile profile = { .stages = 2, .stage = { stage_of(0, 4, 0, 12, 24), stage_of(0, 4, 0, 12, 24) } };
  pp_profile_factors factors;
  pp_error error;
  (void)state;
  assert_int_equal(PP_OK, pp_profile_factors_of(&profile, blocks, bytes, &factors, &error));
  blocks[PP_BLOCK_DENSE].tensor = 0.5;
  blocks[PP_BLOCK_DENSE].context = 0.25;
  blocks[PP_BLOCK_DENSE].context_exposed = 0.125;
  blocks[PP_BLOCK_DENSE].host_forward = 0.25;
  blocks[PP_BLOCK_DENSE].host_backward = 0.375;
  pp_profile_scale_seconds(&factors, blocks);
  expect(3, blocks[PP_BLOCK_DENSE].forward);
  expect(1.5, blocks[PP_BLOCK_DENSE].tensor);
  expect(0.75, blocks[PP_BLOCK_DENSE].context);
  expect(0.375, blocks[PP_BLOCK_DENSE].context_exposed);
  expect(0.75, blocks[PP_BLOCK_DENSE].host_forward);
  expect(1.125, blocks[PP_BLOCK_DENSE].host_backward);
}

static void nonsense_is_named(void **state) {
  pp_profile zero = { .stages = 1, .stage = { stage_of(0, 4, 0, 0, 20) } }, none = { .stages = 1, .stage = { stage_of(1, 0, 0, 1, 2) } };
  pp_profile more = { .stages = 1, .stage = { stage_of(0, 4, 0, 12, 20) } };
  const struct { pp_profile *profile; const char *field; } bad[] = { { &zero, "F" }, { &none, "layers" }, { &more, "I" } };
  (void)state;
  more.stage[0].of[PP_MEASURED_INPUT] = 21;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    pp_profile_factors factors;
    pp_error error;
    assert_int_equal(PP_INVALID, pp_profile_factors_of(bad[i].profile, computed, bytes, &factors, &error));
    assert_string_equal(bad[i].field, error.field);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(layers_scale_by_their_number),
    cmocka_unit_test(what_ends_take_beside_their_layers_stays),
    cmocka_unit_test(ends_never_take_less_than_nothing),
    cmocka_unit_test(ends_that_nobody_measured_are_as_computed),
    cmocka_unit_test(without_inner_stages_the_fastest_stage_tells_of_layers),
    cmocka_unit_test(of_a_split_the_missing_half_is_what_is_left_of_b),
    cmocka_unit_test(layers_of_different_kinds_keep_their_computed_ratio),
    cmocka_unit_test(layers_that_only_an_end_holds_leave_it_as_measured),
    cmocka_unit_test(bytes_follow_the_same_rule),
    cmocka_unit_test(a_measured_pair_is_a_share_of_forward_and_backward),
    cmocka_unit_test(collectives_take_what_their_blocks_take),
    cmocka_unit_test(nonsense_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

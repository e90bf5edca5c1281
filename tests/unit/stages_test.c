/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c: splits of published models over their stages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "searches.h"

static void layers_of(const search_case *c, const pp_candidate *candidate, int *layers) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_layout_costs costs = costs_of(c, &candidate->layout);
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c->problem, candidate, &costs, true }, stages, NULL), PP_OK);
  for (int s = 0; s < candidate->layout.pipeline * candidate->layout.chunks; s++)
    layers[s] = stages[s].count[PP_BLOCK_DENSE] + stages[s].count[PP_BLOCK_MOE];
}

/* Llama 3 report §3.3.2: one layer less on the first and on the last stage of 16 for the 405B model's 126 layers. */
static void llama_405b_is_split_as_its_report_says(void **state) {
  search_case c;
  int layers[16];
  (void)state;
  set_case(&c, llama(126, 16384, 128, 8, 53248, 128256), 16384, 2048);
  pp_candidate candidate = candidate_of(PP_1F1B, 16, 1, 16);
  candidate.layout.tensor = 8;
  layers_of(&c, &candidate, layers);
  assert_int_equal(layers[0], 7);
  assert_int_equal(layers[15], 7);
  for (int s = 1; s < 15; s++) assert_int_equal(layers[s], 8);
}

/* DeepSeek-V3's last stage computes logits twice and an MTP layer: it gets fewer layers than any other (deployments on Megatron-Core give it
** none at all: layout "Et*3|(tt|)*29,m|L"). */
static void the_stage_with_head_and_mtp_gets_fewest_layers(void **state) {
  search_case c;
  int layers[16], sum = 0;
  (void)state;
  set_deepseek(&c);
  pp_candidate candidate = candidate_of(PP_1F1B, 16, 1, 120);
  candidate.layout.expert = 64;
  candidate.layout.data = 128;
  layers_of(&c, &candidate, layers);
  for (int s = 0; s < 16; s++) {
    sum += layers[s];
    if (s < 15) assert_true(layers[15] < layers[s]);
  }
  assert_int_equal(sum, 61);
}

static void equal_layers_stay_equal_where_a_framework_asks_for_that(void **state) {
  search_case c;
  int layers[8];
  (void)state;
  set_case(&c, llama(64, 4096, 32, 8, 14336, 512000), 64, 512);
  pp_candidate candidate = candidate_of(PP_1F1B, 8, 1, 64);
  layers_of(&c, &candidate, layers);
  assert_true(layers[7] < 8);
  c.problem.layer_rule[PP_1F1B] = PP_LAYERS_EVEN;
  layers_of(&c, &candidate, layers);
  for (int s = 0; s < 8; s++) assert_int_equal(layers[s], 8);
}

/* Interleaved too both ends get less than the stages between them. In its run with 8 chunks a rank (report, figure 6) they held no layer;
** those 128 stages are more than its layers, which is not planned. */
static void llama_405b_has_light_ends_with_chunks_too(void **state) {
  search_case c;
  int layers[PP_MAX_LAYERS];
  (void)state;
  set_case(&c, llama(126, 16384, 128, 8, 53248, 128256), 16384, 2048);
  for (int chunks = 2; chunks <= 7; chunks++) {
    pp_candidate candidate = candidate_of(PP_INTERLEAVED_1F1B, 16, chunks, 16);
    candidate.layout.tensor = 8;
    layers_of(&c, &candidate, layers);
    for (int s = 1; s < 16 * chunks - 1; s++) {
      assert_true(layers[0] <= layers[s]);
      assert_true(layers[16 * chunks - 1] <= layers[s]);
    }
  }
}

/*
** DeepSeek-V3 on 16 ranks with 2 chunks: Megatron-Core's own layout is "Et*3|(tt|)*29,m|L", MTP and loss on stages without layers (its
** pipeline_parallel_layout documentation). Here MTP goes with the head, which makes the last stage the heavier, so that is the layout with
** MTP where it may be. The fastest split is no slower, and a tenth at least faster than with a layer on every stage.
*/
static void deepseek_interleaves_as_fast_as_deployments_do(void **state) {
  search_case c;
  int published[32] = { 3 }, plain[32];
  double seconds[2], chosen = 0;
  (void)state;
  set_deepseek(&c);
  pp_candidate candidate = candidate_of(PP_INTERLEAVED_1F1B, 16, 2, 120);
  candidate.layout.expert = 64;
  candidate.layout.data = 128;
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  int splits[PP_MOST_SPLITS][PP_MAX_LAYERS], count = pp_stages_splits(&(pp_priced){ &c.problem, &candidate, &costs, true }, NULL, splits);
  for (int s = 1; s < 30; s++) published[s] = 2;
  for (int s = 0; s < 32; s++) plain[s] = 2;
  plain[0] = plain[15] = plain[31] = 1;
  for (int i = 0; i < 2; i++) {
    pp_timing timing;
    candidate.layers_per_stage = i == 0 ? published : plain;
    assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, true }, true, &timing, NULL, NULL, NULL), PP_OK);
    seconds[i] = timing.step_seconds;
  }
  for (int i = 0; i < count; i++) {
    pp_timing timing;
    candidate.layers_per_stage = splits[i];
    assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, true }, true, &timing, NULL, NULL, NULL), PP_OK);
    if (i == 0 || timing.step_seconds < chosen) chosen = timing.step_seconds;
  }
  if (!(chosen <= seconds[0] && chosen < seconds[1] * 0.9)) fail_msg("%g s, published %g, plain %g", chosen, seconds[0], seconds[1]);
}

/* Rank 0 of a V holds both ends: with head and MTP heavier than two layers it has no layer at all, and no other rank waits for it. */
static void in_a_v_the_rank_of_both_ends_may_hold_no_layer(void **state) {
  search_case c;
  int layers[32];
  (void)state;
  set_deepseek(&c);
  pp_candidate candidate = candidate_of(PP_DUALPIPEV, 16, 2, 120);
  candidate.layout.expert = 64;
  candidate.layout.data = 128;
  layers_of(&c, &candidate, layers);
  assert_int_equal(layers[31], 0);
  assert_true(layers[0] <= 1);
}

static void given_layers_are_not_compared(void **state) {
  search_case c;
  int splits[PP_MOST_SPLITS][PP_MAX_LAYERS];
  const int given[8] = { 1, 9, 8, 8, 8, 8, 11, 11 };
  (void)state;
  set_case(&c, llama(64, 4096, 32, 8, 14336, 512000), 64, 512);
  pp_candidate candidate = candidate_of(PP_1F1B, 8, 1, 64);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  assert_true(pp_stages_splits(&(pp_priced){ &c.problem, &candidate, &costs, false }, NULL, splits) > 0);
  c.problem.layers_per_stage = given;
  c.problem.given_stages = 8;
  assert_int_equal(pp_stages_splits(&(pp_priced){ &c.problem, &candidate, &costs, false }, NULL, splits), 0);
}

/* Seconds of the slowest rank of a chain, forward and backward of a microbatch, with these layers: stage by stage, as the steps have them. */
static double heaviest(search_case *c, pp_candidate candidate, const int *layers) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  const pp_layout_costs costs = costs_of(c, &candidate.layout);
  const pp_priced priced = { &c->problem, &candidate, &costs, false };
  const bool split = pp_schedule_traits_of((pp_schedule_kind)candidate.kind)->split_backward;
  double rank[PP_MAX_LAYERS] = { 0 }, most = 0;
  candidate.layers_per_stage = layers;
  assert_int_equal(pp_stages_fill(&priced, stages, NULL), PP_OK);
  pp_stages_seconds(&priced, stages, seconds);
  for (int s = 0; s < candidate.layout.pipeline * candidate.layout.chunks; s++) {
    const int r = s < candidate.layout.pipeline ? s : 2 * candidate.layout.pipeline - 1 - s;
    rank[r] += seconds[s].forward + (split ? seconds[s].input + seconds[s].weight : seconds[s].full);
    most = fmax(most, rank[r]);
  }
  return most;
}

/* In a V as FlagScale starts it, where all ranks but the first and the last hold as many layers, each an even number, half of them in either
** chunk: as fast as the fastest of all such splits, tried one by one. */
static void of_splits_that_differ_at_the_ends_the_fastest_is_found(void **state) {
  static const struct { int layers, ranks, vocab; } given[] = {
    { 64, 8, 512000 }, { 64, 8, 32000 }, { 62, 4, 512000 }, { 24, 2, 256000 }, { 90, 6, 4000 }
  };
  (void)state;
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    search_case c;
    int layers[PP_MAX_LAYERS], trial[PP_MAX_LAYERS];
    const int ranks = given[i].ranks, last = ranks - 1, total = given[i].layers;
    double least = INFINITY;
    set_case(&c, llama(total, 4096, 32, 8, 14336, given[i].vocab), 8 * ranks, 512);
    const pp_candidate candidate = candidate_of(PP_DUALPIPEV, ranks, 2, 64);
    c.problem.layer_rule[PP_DUALPIPEV] = PP_LAYERS_EVEN_ENDS;
    layers_of(&c, &candidate, layers);
    for (int r = 0; r < ranks; r++) {
      assert_int_equal(layers[r], layers[2 * ranks - 1 - r]);
      if (r > 0 && r < last) assert_int_equal(layers[r], layers[1]);
    }
    for (int between = 2; between < total; between += 2)
      for (int first = 2; first + (ranks - 2) * between + 2 <= total; first += 2) {
        for (int r = 0; r < ranks; r++)
          trial[r] = trial[2 * ranks - 1 - r] = (r == 0 ? first : r < last ? between : total - first - (ranks - 2) * between) / 2;
        least = fmin(least, heaviest(&c, candidate, trial));
      }
    const double found = heaviest(&c, candidate, layers);
    if (found > least * (1 + 1e-9)) fail_msg("case %zu: %g s, the fastest %g s", i, found, least);
  }
}

/* Half of the layers have experts, and a slow network: what their tokens take on their way, there and back, forward and backward, is most of
** it. Two ranks are balanced as well as any of the sixty splits would. */
static void a_split_weighs_the_all_to_all_of_both_directions(void **state) {
  search_case c;
  int layers[2];
  double least = INFINITY;
  (void)state;
  set_case(&c, deepseek_v3(61, 30, 0), 256, 1024);
  c.network.tier[1].bandwidth = 5e9;
  pp_candidate candidate = candidate_of(PP_1F1B, 2, 1, 8);
  candidate.layout.expert = 64;
  candidate.layout.data = 128;
  layers_of(&c, &candidate, layers);
  for (int first = 1; first < 61; first++) least = fmin(least, heaviest(&c, candidate, (int[]){ first, 61 - first }));
  const double found = heaviest(&c, candidate, layers);
  if (found > least * (1 + 1e-9)) fail_msg("%d and %d: %g s, the fastest %g s", layers[0], layers[1], found, least);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(llama_405b_is_split_as_its_report_says),
    cmocka_unit_test(the_stage_with_head_and_mtp_gets_fewest_layers),
    cmocka_unit_test(equal_layers_stay_equal_where_a_framework_asks_for_that),
    cmocka_unit_test(llama_405b_has_light_ends_with_chunks_too),
    cmocka_unit_test(deepseek_interleaves_as_fast_as_deployments_do),
    cmocka_unit_test(in_a_v_the_rank_of_both_ends_may_hold_no_layer),
    cmocka_unit_test(given_layers_are_not_compared),
    cmocka_unit_test(of_splits_that_differ_at_the_ends_the_fastest_is_found),
    cmocka_unit_test(a_split_weighs_the_all_to_all_of_both_directions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

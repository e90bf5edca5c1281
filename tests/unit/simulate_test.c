/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c: published bubble rates, worked totals, unequal stages, hops, deadlocks, bad input. */
#include "schedules.h"

static pp_simulation run(pp_schedule_kind kind, int ranks, int microbatches, equal_times times) {
  pp_schedule schedule = built(request_of(kind, ranks, microbatches));
  pp_simulation result = simulated(&schedule, times);
  pp_schedule_free(&schedule);
  return result;
}

/* The setting of the figure in DeepSeek's README (8 ranks, 20 microbatches; DualPipeV: 4 ranks, 10): F = I = W = 1, F&B = 3. */
static void deepseeks_figure_takes_66_with_6_idle_on_every_rank(void **state) {
  (void)state;
  for (int k = 0; k < 2; k++) {
    pp_schedule schedule = built(k == 0 ? request_of(PP_DUALPIPE, 8, 20) : request_of(PP_DUALPIPEV, 4, 10));
    pp_simulation result = simulated(&schedule, (equal_times){ 1, 1, 1, 3, 0 });
    assert_near(result.makespan, 66);
    assert_near(result.max_idle, 6);
    assert_near(result.min_idle, 6);
    for (int rank = 0; rank < result.ranks; rank++) assert_near(peak_of(&schedule, rank, 1), 9);
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
  pp_simulation one = run(PP_1F1B, 8, 20, (equal_times){ 1, 1, 1, 0, 0 }), split = run(PP_ZB_H1, 8, 20, (equal_times){ 1, 1, 1, 0, 0 });
  assert_near(one.makespan, 81);
  assert_near(split.makespan, 67);
  pp_simulation_free(&one);
  pp_simulation_free(&split);
}

/* (P − 1)/(M + P − 1) at P 4, M 32 is 3/35. */
static void one_f_one_b_at_4_ranks_and_32_microbatches_idles_3_of_35(void **state) {
  (void)state;
  pp_simulation result = run(PP_1F1B, 4, 32, (equal_times){ 1, 1, 1, 0, 0 });
  assert_near(result.bubble_fraction, 3.0 / 35);
  assert_near(result.max_idle_fraction, 3.0 / 35);
  pp_simulation_free(&result);
}

/* With real overlap outer ranks of DualPipe idle less: derived from the pairs each rank runs (deepseek-ai/DeepSeek-V3 issue 211 asks). */
static void idle_differs_by_rank_when_pairs_overlap(void **state) {
  (void)state;
  static const double expected[] = { 3.5, 4, 4.5, 4.5, 4.5, 4.5, 4, 3.5 };
  pp_simulation result = run(PP_DUALPIPE, 8, 20, (equal_times){ 1, 1, 1, 2.5, 0 });
  for (int rank = 0; rank < 8; rank++) assert_near(result.idle[rank], expected[rank]);
  pp_simulation_free(&result);
}

/* An independent simulator's totals for DualPipe P 8, M 20 and DualPipeV P 8, M 20 at F = I = W = 1, F&B = 3, by seconds a hop. */
static void hops_lengthen_dualpipe_as_an_independent_simulator_says(void **state) {
  (void)state;
  static const struct { double p2p, dualpipe, dualpipev; } expected[] = {
    { 0, 66, 134 }, { .1, 68.6, 139 }, { .2, 71.2, 145 }, { .5, 79.5, 163 } };
  for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
    pp_simulation two = run(PP_DUALPIPE, 8, 20, (equal_times){ 1, 1, 1, 3, expected[k].p2p });
    pp_simulation v = run(PP_DUALPIPEV, 8, 20, (equal_times){ 1, 1, 1, 3, expected[k].p2p });
    assert_near(two.makespan, expected[k].dualpipe);
    assert_near(v.makespan, expected[k].dualpipev);
    pp_simulation_free(&two);
    pp_simulation_free(&v);
  }
}

/*
** Bubble rates of Qi et al. 2024, "Zero Bubble Pipeline Parallelism" (table 5 and its arXiv revision): (longest − M(F + I + W)) / longest,
** longest being the makespan for 1F1B and ZB-H1, the largest span for ZB-H2. Microseconds of one stage (the revision prints half stages).
** Interleaved: the revision's evaluator with the wrap-around dependency of every microbatch, V = layers / P.
*/
static void zero_bubble_papers_rates_come_out_to_four_decimals(void **state) {
  (void)state;
  static const struct { int p, m, v; double scale, f, i, w, c, one, interleaved, h1, h2; } row[] = {
    {  8,  24, 3, 1, 18522, 18086, 9337, 601, .2431, .1090, .1585, .1083 },
    {  8,  32, 3, 1, 18513, 18086, 9331, 626, .1985, .0847, .1242, .0837 },
    {  8,  64, 3, 1, 18546, 18097, 9321, 762, .1240, .0461, .0674, .0444 },
    {  8,  24, 4, 1, 29718, 29444, 19927, 527, .2347, .0827, .1323, .0698 },
    {  8,  32, 4, 1, 29802, 29428, 19530, 577, .1898, .0644, .1045, .0559 },
    {  8,  64, 4, 1, 29935, 29621, 19388, 535, .1091, .0328, .0554, .0294 },
    { 16,  48, 3, 1, 11347, 11248, 8132, 377, .2552, .1136, .1397, .0672 },
    { 16,  64, 3, 1, 11307, 11254, 8101, 379, .2082, .0878, .1088, .0516 },
    { 16, 128, 3, 1, 11325, 11308, 8109, 378, .1251, .0459, .0576, .0266 },
    { 32,  96, 2, 1, 10419, 10207, 7715, 408, .2646, .1528, .1421, .0641 },
    { 32, 128, 2, 1, 10408, 10204, 7703, 408, .2168, .1192, .1106, .0490 },
    { 32, 256, 2, 1, 10402, 10248, 7698, 460, .1352, .0641, .0594, .0257 },
    { 16,  48, 2, 2, 14407, 14380, 9676, 1610, .2668, .1549, .1536, .0823 },
    { 16,  64, 2, 2, 14412, 14393, 9688, 1621, .2206, .1209, .1198, .0630 },
    { 16, 128, 2, 2, 14316, 14306, 9639, 1619, .1390, .0644, .0637, .0325 },
    { 24,  72, 2, 2, 6763, 6969, 5251, 755, .2699, .1566, .1439, .0628 },
    { 24,  96, 2, 2, 6783, 6984, 5259, 758, .2229, .1223, .1121, .0480 },
    { 24, 192, 2, 2, 6785, 6990, 5260, 770, .1403, .0652, .0595, .0247 },
    { 32,  96, 2, 2, 9458, 9748, 7288, 879, .2676, .1549, .1429, .0629 },
    { 32, 128, 2, 2, 9469, 9744, 7306, 892, .2204, .1210, .1111, .0478 },
    { 32, 256, 2, 2, 9447, 9644, 7193, 887, .1362, .0644, .0593, .0251 },
  };
  for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
    equal_times times = { row[k].scale * row[k].f, row[k].scale * row[k].i, row[k].scale * row[k].w, 0, row[k].c };
    double work = row[k].m * (times.f + times.i + times.w);
    pp_simulation one = run(PP_1F1B, row[k].p, row[k].m, times), h1 = run(PP_ZB_H1, row[k].p, row[k].m, times);
    pp_simulation h2 = run(PP_ZB_H2, row[k].p, row[k].m, times);
    pp_schedule_request request = request_of(PP_INTERLEAVED_1F1B, row[k].p, row[k].m);
    request.chunks = row[k].v;
    pp_schedule schedule = built(request);
    pp_simulation interleaved = simulated(&schedule, (equal_times){ times.f / row[k].v, times.i / row[k].v, times.w / row[k].v, 0, row[k].c });
    assert_true(fabs((one.makespan - work) / one.makespan - row[k].one) <= .00005001);
    assert_true(fabs((h1.makespan - work) / h1.makespan - row[k].h1) <= .00005001);
    assert_true(fabs((h2.max_span - work) / h2.max_span - row[k].h2) <= .00005001);
    assert_true(fabs((interleaved.makespan - work) / interleaved.makespan - row[k].interleaved) <= .00005001);
    pp_simulation_free(&one);
    pp_simulation_free(&h1);
    pp_simulation_free(&h2);
    pp_simulation_free(&interleaved);
    pp_schedule_free(&schedule);
  }
}

/* Hand derivation: P 2, M 2, 1F1B with stage times F 1, 2; B 2, 3 and 1 second a hop.
** rank 0: F0 0–1, F1 1–2, B0 8–10, B1 13–15;  rank 1: F0 2–4, B0 4–7, F1 7–9, B1 9–12. */
static void each_stage_has_its_own_times_and_each_action_its_interval(void **state) {
  (void)state;
  static const pp_interval expected[] = { { 0, 1 }, { 1, 2 }, { 8, 10 }, { 13, 15 }, { 2, 4 }, { 4, 7 }, { 7, 9 }, { 9, 12 } };
  const pp_stage_times stage[] = { { 1, 1, 1, 2 }, { 2, 2, 1, 3 } };
  const pp_times times = { .stage = stage, .p2p = 1 };
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 2));
  pp_workspace workspace = { 0 };
  for (int pass = 0; pass < 3; pass++) {   /* allocated once, then in a workspace, then in the same again */
    pp_simulation result;
    if (pass == 0) assert_int_equal(pp_simulate(&schedule, &times, true, &result, NULL), PP_OK);
    else assert_int_equal(pp_simulate_in(&schedule, &times, true, &workspace, &result, NULL), PP_OK);
    for (size_t i = 0; i < 8; i++) {
      assert_near(result.interval[i].start, expected[i].start);
      assert_near(result.interval[i].end, expected[i].end);
    }
    assert_near(result.makespan, 15);
    assert_near(result.max_span, 15);
    assert_near(result.span[1], 10);
    assert_near(result.busy[0], 6);
    assert_near(result.idle[0], 9);
    assert_near(result.idle[1], 5);
    assert_near(result.bubble_fraction, 14.0 / 30);
    if (pass == 0) pp_simulation_free(&result);
  }
  pp_workspace_free(&workspace);
  pp_schedule_free(&schedule);
}

/* A V hands over from stage P − 1 to stage P on the same rank: that costs no hop. P 1 has no hop at all. */
static void a_hand_over_within_a_rank_is_immediate(void **state) {
  (void)state;
  pp_simulation with = run(PP_DUALPIPEV, 1, 4, (equal_times){ 1, 1, 1, 0, 100 });
  assert_near(with.makespan, 24);
  assert_near(with.max_idle, 0);
  pp_simulation_free(&with);
}

static void times_must_be_finite_and_not_negative(void **state) {
  (void)state;
  pp_error error;
  pp_simulation result;
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 2));
  static const double bad[] = { -1, NAN, INFINITY };
  for (size_t k = 0; k < 3; k++) {
    pp_stage_times stage[] = { { 1, 1, 1, 2 }, { 1, bad[k], 1, 2 } };
    pp_times times = { .stage = stage };
    assert_int_equal(pp_simulate(&schedule, &times, false, &result, &error), PP_INVALID);
    assert_non_null(strstr(error.message, "I of stage 1"));
    stage[1].input = 1;
    times.p2p = bad[k];
    assert_int_equal(pp_simulate(&schedule, &times, false, &result, &error), PP_INVALID);
  }
  pp_schedule_free(&schedule);
}

static void nothing_takes_no_time_and_has_no_bubble(void **state) {
  (void)state;
  pp_simulation result = run(PP_1F1B, 4, 4, (equal_times){ 0, 0, 0, 0, 0 });
  assert_near(result.makespan, 0);
  assert_near(result.bubble_fraction, 0);
  pp_simulation_free(&result);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(deepseeks_figure_takes_66_with_6_idle_on_every_rank),
    cmocka_unit_test(one_f_one_b_at_4_ranks_and_32_microbatches_idles_3_of_35),
    cmocka_unit_test(idle_differs_by_rank_when_pairs_overlap),
    cmocka_unit_test(hops_lengthen_dualpipe_as_an_independent_simulator_says),
    cmocka_unit_test(zero_bubble_papers_rates_come_out_to_four_decimals),
    cmocka_unit_test(each_stage_has_its_own_times_and_each_action_its_interval),
    cmocka_unit_test(a_hand_over_within_a_rank_is_immediate),
    cmocka_unit_test(times_must_be_finite_and_not_negative),
    cmocka_unit_test(nothing_takes_no_time_and_has_no_bubble),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

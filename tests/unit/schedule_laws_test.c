/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_laws_test.c: the published laws of schedules over hundreds of random times, on both sides of their conditions. bubble_test.c holds our
** closed forms against simulation; here the laws are written out as their sources print them, with what becomes of them where they end.
**
** Sources: Qi et al. 2024, "Zero Bubble Pipeline Parallelism" (ZB-H1, ZB-H2: table 1) and "Pipeline Parallelism with Controllable Memory" (ZB-V);
** deepseek-ai/DualPipe, README; Narayanan et al. 2021 and Megatron-LM's warm-up (interleaved). That the laws end where their conditions do was found by an
** independent simulator (ZB-H1, ZB-H2 and DualPipe for W > F, ZB-V for few microbatches and unequal times, DualPipe for F ≠ I).
*/
#include "schedules.h"

enum { CASES = 400 };

static pp_simulation run(pp_schedule_request request, equal_times times) {
  pp_schedule schedule = built(request);
  pp_simulation result = simulated(&schedule, times);
  pp_schedule_free(&schedule);
  return result;
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

static double work(equal_times times) { return times.f + times.i + times.w; }

/* How often something exceeded, met or fell short of a law. */
typedef struct {
  int above, at, below;
} comparison;

static void compare(comparison *to, double found, double law) {
  if (is_near(found, law)) to->at++;
  else if (found > law) to->above++;
  else to->below++;
}

static void assert_comparison(comparison found, int above, int at, int below) {
  if (found.above < above || found.at < at || found.below < below || (!above && found.above) || (!at && found.at) || (!below && found.below))
    fail_msg("above %d, at %d, below %d", found.above, found.at, found.below);
}

/* -- split backwards: ZB-H1 and ZB-H2 ------------------------------------------------------------------------------------------------- */

static pp_schedule_kind handmade(int factor) { return factor == 1 ? PP_ZB_H1 : PP_ZB_H2; }

/* Span bubble (P − 1)max(0, F + I − kW) and makespan bubble (P − 1)max(F, F + I − kW), k = 1 and 2. */
static void handmade_zero_bubble_laws_hold_while_w_is_at_most_f(void **state) {
  (void)state;
  uint64_t seed = 41;
  for (int k = 0; k < CASES; k++)
    for (int factor = 1; factor <= 2; factor++) {
      int ranks = draw(&seed, 9), microbatches = 2 * ranks - 1 + draw(&seed, 20) - 1;
      equal_times times = { .w = draw(&seed, 20), .i = draw(&seed, 30) };
      times.f = times.w + draw(&seed, 20) - 1;
      double bubble = times.f + times.i - factor * times.w;
      pp_simulation result = run(request_of(handmade(factor), ranks, microbatches), times);
      assert_near(result.max_span - microbatches * work(times), (ranks - 1) * larger(0, bubble));
      assert_near(result.max_idle, (ranks - 1) * larger(times.f, bubble));
      pp_simulation_free(&result);
    }
}

/* W > F: ZB-H1's span is always longer than the law; the others are mostly longer, never shorter. */
static void handmade_zero_bubble_laws_are_too_low_when_w_exceeds_f(void **state) {
  (void)state;
  uint64_t seed = 43;
  comparison span[3] = { { 0 } }, makespan[3] = { { 0 } };
  for (int k = 0; k < CASES; k++)
    for (int factor = 1; factor <= 2; factor++) {
      int ranks = 1 + draw(&seed, 8), microbatches = 2 * ranks + draw(&seed, 20);
      equal_times times = { .f = draw(&seed, 20), .i = draw(&seed, 30) };
      times.w = times.f + draw(&seed, 20);
      double bubble = times.f + times.i - factor * times.w;
      pp_simulation result = run(request_of(handmade(factor), ranks, microbatches), times);
      compare(&span[factor], result.max_span - microbatches * work(times), (ranks - 1) * larger(0, bubble));
      compare(&makespan[factor], result.max_idle, (ranks - 1) * larger(times.f, bubble));
      pp_simulation_free(&result);
    }
  assert_comparison(span[1], CASES, 0, 0);
  assert_comparison(makespan[1], CASES / 2, 1, 0);
  assert_comparison(span[2], CASES / 2, 1, 0);
  assert_comparison(makespan[2], CASES / 4, 1, 0);
}

/* ZB-H2 below 2P − 1 microbatches runs out of forwards to warm up with: mostly longer than the law, never shorter. */
static void zb_h2s_law_is_too_low_for_fewer_than_2p_minus_1_microbatches(void **state) {
  (void)state;
  uint64_t seed = 47;
  comparison found = { 0 };
  for (int k = 0; k < CASES; k++) {
    int ranks = 2 + draw(&seed, 8), microbatches = ranks - 1 + draw(&seed, ranks - 1);
    equal_times times = { .w = draw(&seed, 20), .i = draw(&seed, 30) };
    times.f = times.w + draw(&seed, 20) - 1;
    pp_simulation result = run(request_of(PP_ZB_H2, ranks, microbatches), times);
    compare(&found, result.max_idle, (ranks - 1) * larger(times.f, times.f + times.i - 2 * times.w));
    pp_simulation_free(&result);
  }
  assert_comparison(found, CASES / 2, 1, 0);
}

/* With hops of c seconds, ZB-H2's span bubble is (P − 1)(F + I + 2c − 2W): the paper's script, warm-up factor 2. */
static void zb_h2s_span_pays_every_hop_twice(void **state) {
  (void)state;
  uint64_t seed = 53;
  for (int k = 0; k < CASES; k++) {
    int ranks = draw(&seed, 9), microbatches = 2 * ranks + draw(&seed, 20);
    equal_times times = { .w = draw(&seed, 20), .p2p = draw(&seed, 5) };
    times.f = times.w + draw(&seed, 20);
    times.i = larger(0, 2 * times.w - times.f) + draw(&seed, 30);
    pp_simulation result = run(request_of(PP_ZB_H2, ranks, microbatches), times);
    assert_near(result.max_span - microbatches * work(times), (ranks - 1) * (times.f + times.i + 2 * times.p2p - 2 * times.w));
    pp_simulation_free(&result);
  }
}

/* The fixed order of ZB-V: span 0 from 2P − 1 microbatches on at F = I = W; 2F at 2P − 2; 2(P − 1)F at P; 2(P − 1) at (2, 2, 1). */
static void zb_v_is_zero_in_the_span_only_from_2p_minus_1_microbatches_at_equal_times(void **state) {
  (void)state;
  uint64_t seed = 59;
  for (int k = 0; k < CASES; k++) {
    int ranks = 1 + draw(&seed, 9);
    double f = draw(&seed, 9);
    const struct { int microbatches; double bubble; } expected[] = {
      { 2 * ranks - 1 + draw(&seed, 20) - 1, 0 }, { 2 * ranks - 2, 2 * f }, { ranks, 2 * (ranks - 1) * f } };
    for (int e = 0; e < 3; e++) {
      pp_simulation result = run(request_of(PP_ZB_V, ranks, expected[e].microbatches), (equal_times){ f, f, f, 0, 0 });
      assert_near(result.max_span - expected[e].microbatches * 6 * f, expected[e].bubble);
      pp_simulation_free(&result);
    }
    pp_simulation unequal = run(request_of(PP_ZB_V, ranks, expected[0].microbatches), (equal_times){ 2, 2, 1, 0, 0 });
    assert_near(unequal.max_span - expected[0].microbatches * 10, 2 * (ranks - 1));
    pp_simulation_free(&unequal);
  }
}

/* -- DualPipe and DualPipeV ------------------------------------------------------------------------------------------------------------ */

/* DualPipe of 2H ranks and 2n microbatches; W ≤ min(F, I), max(F, B) ≤ F&B ≤ F + B. */
typedef struct {
  int turns, n;
  equal_times times;
} eight_steps;

/* F − I is of the sign asked for. */
static eight_steps random_eight_steps(uint64_t *seed, int sign) {
  eight_steps out = { .turns = 1 + draw(seed, 7) };
  out.n = 2 * out.turns + draw(seed, 12) - 1;
  equal_times times = { .w = draw(seed, 20) };
  double less = times.w + draw(seed, 12) - 1, more = sign == 0 ? less : less + draw(seed, 20);
  times.f = sign > 0 ? more : less;
  times.i = sign > 0 ? less : more;
  double b = times.i + times.w;
  times.fb = larger(times.f, b) + draw(seed, (int)smaller(times.f, b) + 1) - 1;
  out.times = times;
  return out;
}

static pp_simulation run_dualpipe(eight_steps at) { return run(request_of(PP_DUALPIPE, 2 * at.turns, 2 * at.n), at.times); }

/* The README: (PP/2 − 1)(F&B + B − 3W). */
static double readme(eight_steps at) { return (at.turns - 1) * (at.times.fb + at.times.i - 2 * at.times.w); }

static void the_readmes_law_is_exact_at_f_equal_i_too_high_below_and_too_low_above(void **state) {
  (void)state;
  uint64_t seed = 61;
  comparison equal = { 0 }, i_longer = { 0 }, f_longer = { 0 }, lower_end = { 0 };
  for (int k = 0; k < CASES; k++) {
    eight_steps at = random_eight_steps(&seed, 0);
    pp_simulation result = run_dualpipe(at);
    compare(&equal, result.max_idle, readme(at));
    pp_simulation_free(&result);

    at = random_eight_steps(&seed, -1);
    result = run_dualpipe(at);
    compare(&i_longer, result.max_idle, readme(at));
    compare(&lower_end, result.max_idle, (at.turns - 1) * (at.times.fb + at.times.f - 2 * at.times.w));
    pp_simulation_free(&result);

    at = random_eight_steps(&seed, 1);
    result = run_dualpipe(at);
    compare(&f_longer, result.max_idle, readme(at));
    assert_near(result.max_idle, (at.turns - 1) * (at.times.fb + at.times.f - 2 * at.times.w));
    pp_simulation_free(&result);
  }
  assert_comparison(equal, 0, CASES, 0);
  assert_comparison(i_longer, 0, 0, CASES);
  assert_comparison(lower_end, 1, CASES / 10, 0);   /* the lower bound is attained, and not always */
  assert_comparison(f_longer, CASES, 0, 0);
}

/* W > F = I: always more than the law, which even turns negative. */
static void the_readmes_law_is_too_low_when_w_exceeds_f(void **state) {
  (void)state;
  uint64_t seed = 67;
  comparison found = { 0 };
  int negative = 0;
  for (int k = 0; k < CASES; k++) {
    eight_steps at = random_eight_steps(&seed, 0);
    at.times.w = at.times.f + draw(&seed, 20);
    at.times.fb = at.times.i + at.times.w + draw(&seed, (int)at.times.f + 1) - 1;
    pp_simulation result = run_dualpipe(at);
    compare(&found, result.max_idle, readme(at));
    negative += readme(at) < 0;
    pp_simulation_free(&result);
  }
  assert_comparison(found, CASES, 0, 0);
  assert_true(negative > CASES / 10);
}

/*
** The middle ranks idle longest; rank h less by (pairs of the middle rank − its own pairs)(F + B − F&B), pairs being
** 2(n − 2H + h + 1) + (H − h − 1), one less on the middle rank (derived from step()'s counts).
*/
static void outer_ranks_idle_less_by_the_pairs_they_have_more(void **state) {
  (void)state;
  uint64_t seed = 71;
  for (int k = 0; k < CASES; k++) {
    eight_steps at = random_eight_steps(&seed, draw(&seed, 3) - 2);
    int turns = at.turns, middle_pairs = 2 * (at.n - turns) - 1;
    double gain = at.times.f + at.times.i + at.times.w - at.times.fb;
    pp_simulation result = run_dualpipe(at);
    for (int half = 0; half < turns; half++) {
      int pairs = half == turns - 1 ? middle_pairs : 2 * (at.n - 2 * turns + half + 1) + turns - half - 1;
      assert_near(result.idle[half], result.max_idle - (middle_pairs - pairs) * gain);
      assert_near(result.idle[2 * turns - 1 - half], result.idle[half]);
    }
    pp_simulation_free(&result);
  }
}

/* DualPipe(P, M) and DualPipeV(P / 2, M / 2) are mirror images as long as a hop takes no time: the V turns inside a rank, DualPipe between two. */
static void a_dualpipe_and_its_half_have_equal_times_and_peaks(void **state) {
  (void)state;
  uint64_t seed = 73;
  for (int k = 0; k < CASES; k++) {
    eight_steps at = random_eight_steps(&seed, draw(&seed, 3) - 2);
    pp_schedule two = built(request_of(PP_DUALPIPE, 2 * at.turns, 2 * at.n)), v = built(request_of(PP_DUALPIPEV, at.turns, at.n));
    pp_simulation of_two = simulated(&two, at.times), of_v = simulated(&v, at.times);
    assert_near(of_two.makespan, of_v.makespan);
    for (int rank = 0; rank < at.turns; rank++) {
      assert_near(of_two.idle[rank], of_v.idle[rank]);
      assert_near(of_two.span[rank], of_v.span[rank]);
      for (int pending = 0; pending <= 1; pending++) assert_near(peak_of(&two, rank, pending), peak_of(&v, rank, pending));
    }
    pp_simulation_free(&of_two);
    pp_simulation_free(&of_v);
    pp_schedule_free(&two);
    pp_schedule_free(&v);
  }
}

/* -- whole backwards -------------------------------------------------------------------------------------------------------------------- */

/* (P − 1)(F + B) for GPipe and 1F1B at every M, for interleaved in chunk time; peaks min(M, P − r), M, min(MV, (V − 1)P + 2(P − 1 − r) + 1). */
static void fill_and_drain_is_all_that_whole_backwards_lose(void **state) {
  (void)state;
  uint64_t seed = 79;
  for (int k = 0; k < CASES; k++) {
    int ranks = draw(&seed, 9), chunks = 1 + draw(&seed, 3);
    const int microbatches[] = { draw(&seed, 24), draw(&seed, 24), ranks * draw(&seed, 4) };
    const pp_schedule_kind kind[] = { PP_GPIPE, PP_1F1B, PP_INTERLEAVED_1F1B };
    equal_times times = { draw(&seed, 20), draw(&seed, 20), draw(&seed, 20), 0, 0 };
    for (int at = 0; at < 3; at++) {
      pp_schedule_request request = request_of(kind[at], ranks, microbatches[at]);
      if (at == 2) request.chunks = chunks;
      pp_schedule schedule = built(request);
      pp_simulation result = simulated(&schedule, times);
      assert_near(result.max_idle, (ranks - 1) * work(times));
      assert_near(result.min_idle, (ranks - 1) * work(times));
      for (int rank = 0; rank < ranks; rank++) {
        double all = microbatches[at] * request.chunks;
        double law = at == 0 ? all : at == 1 ? ranks - rank : (chunks - 1) * ranks + 2 * (ranks - 1 - rank) + 1;
        assert_near(peak_of(&schedule, rank, 1), smaller(all, law));
      }
      pp_simulation_free(&result);
      pp_schedule_free(&schedule);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(handmade_zero_bubble_laws_hold_while_w_is_at_most_f),
    cmocka_unit_test(handmade_zero_bubble_laws_are_too_low_when_w_exceeds_f),
    cmocka_unit_test(zb_h2s_law_is_too_low_for_fewer_than_2p_minus_1_microbatches),
    cmocka_unit_test(zb_h2s_span_pays_every_hop_twice),
    cmocka_unit_test(zb_v_is_zero_in_the_span_only_from_2p_minus_1_microbatches_at_equal_times),
    cmocka_unit_test(the_readmes_law_is_exact_at_f_equal_i_too_high_below_and_too_low_above),
    cmocka_unit_test(the_readmes_law_is_too_low_when_w_exceeds_f),
    cmocka_unit_test(outer_ranks_idle_less_by_the_pairs_they_have_more),
    cmocka_unit_test(a_dualpipe_and_its_half_have_equal_times_and_peaks),
    cmocka_unit_test(fill_and_drain_is_all_that_whole_backwards_lose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* schedules_greedy*.c: zb_auto, v_half and v_min: planned from times, under a limit of chunks held. */
#include "core/meter.h"
#include "schedules.h"

enum { MOST_STAGES = 64 };

/* Equal times of all stages. */
static const pp_stage_times *equal(double f, double i, double w) {
  static pp_stage_times times[MOST_STAGES];
  for (int s = 0; s < MOST_STAGES; s++) times[s] = (pp_stage_times){ f, i, w, i + w };
  return times;
}

typedef struct {
  double makespan_bubble, span_bubble, peak;   /* beyond the work of a rank; most chunks of any rank, freed at W */
} outcome;

/* Builds for the request's times, verifies, and simulates with the same. */
static outcome outcome_of(pp_schedule_request request) {
  pp_schedule schedule = built(request);
  pp_simulation result;
  pp_error error;
  const pp_times times = { .stage = request.times, .p2p = request.p2p };
  if (pp_schedule_verify(&schedule, &error) != PP_OK) fail_msg("%s", error.message);
  if (pp_simulate(&schedule, &times, false, &result, &error) != PP_OK) fail_msg("%s", error.message);
  outcome out = { result.makespan - result.busy[0], result.max_span - result.busy[0], 0 };
  for (int r = 0; r < request.ranks; r++) out.peak = fmax(out.peak, peak_of(&schedule, r, 1));
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  return out;
}

static pp_schedule_request timed(pp_schedule_kind kind, int ranks, int microbatches, double f, double i, double w) {
  pp_schedule_request request = request_of(kind, ranks, microbatches);
  request.times = equal(f, i, w);
  return request;
}

static double share(double bubble, const pp_schedule_request *request) {
  const pp_stage_times *times = request->times;
  return bubble / (bubble + request->microbatches * (times->forward + times->input + times->weight));
}

/* F, I, W: equal, two of Qi et al.'s measurements, and times without a common divisor. */
static const double cost_sets[][3] = { { 1, 1, 1 }, { 2, 2, 1 }, { 18522, 18086, 9337 }, { 10, 11, 9 } };

/* -- zb_auto -------------------------------------------------------------------------------------------------------------------------- */

/* Qi et al. 2024, 2401.10241, table 5: the columns ZB-1p and ZB-H1 are the same; here the orders are. */
static void under_a_limit_of_p_zb_auto_is_zb_h1(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 16; ranks *= 2)
    for (size_t k = 0; k < sizeof cost_sets / sizeof *cost_sets; k++)
      for (int microbatches = ranks; microbatches <= 4 * ranks; microbatches += ranks) {
        pp_schedule_request request = timed(PP_ZB_AUTO, ranks, microbatches, cost_sets[k][0], cost_sets[k][1], cost_sets[k][2]);
        request.limit = ranks;
        pp_schedule ours = built(request), handmade = built(request_of(PP_ZB_H1, ranks, microbatches));
        assert_memory_equal(ours.action, handmade.action, ours.first[ranks] * sizeof *ours.action);
        pp_schedule_free(&ours);
        pp_schedule_free(&handmade);
      }
}

/* The same, figure 3 and section 2.3: at F = I = W and twice the memory no rank waits between its first start and its last end. */
static void under_a_limit_of_2p_equal_times_leave_no_span_bubble(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 16; ranks++)
    for (int microbatches = 2 * ranks; microbatches <= 5 * ranks; microbatches += ranks) {
      outcome out = outcome_of(timed(PP_ZB_AUTO, ranks, microbatches, 1, 1, 1));
      assert_near(out.span_bubble, 0);
      assert_near(out.makespan_bubble, ranks - 1);
    }
}

/* Qi et al.: the handcrafted ZB-H2 is a solution under 2P − 1 microbatches' memory, so what is searched for under 2P is no worse. */
static void under_a_limit_of_2p_zb_auto_is_at_least_zb_h2(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int k = 0; k < 400; k++) {
    int ranks = 1 + draw(&seed, 11), microbatches = 2 * ranks + draw(&seed, 30) - 1;
    double f = draw(&seed, 40), i = draw(&seed, 40), w = draw(&seed, 40);
    outcome ours = outcome_of(timed(PP_ZB_AUTO, ranks, microbatches, f, i, w));
    outcome handmade = outcome_of(timed(PP_ZB_H2, ranks, microbatches, f, i, w));
    assert_true(ours.makespan_bubble <= handmade.makespan_bubble * (1 + 1e-9) + 1e-9);
    assert_true(ours.span_bubble <= handmade.span_bubble * (1 + 1e-9) + 1e-9);
  }
}

/* Section 4.3 of the same: with as many microbatches as ranks more memory does not help. */
static void at_as_many_microbatches_as_ranks_a_higher_limit_saves_nothing(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 16; ranks *= 2)
    for (size_t k = 0; k < sizeof cost_sets / sizeof *cost_sets; k++) {
      const double *cost = cost_sets[k];
      outcome ours = outcome_of(timed(PP_ZB_AUTO, ranks, ranks, cost[0], cost[1], cost[2]));
      assert_near(ours.makespan_bubble, outcome_of(timed(PP_ZB_H1, ranks, ranks, cost[0], cost[1], cost[2])).makespan_bubble);
    }
}

/* Whatever the stages take and however little memory there is: complete, free of deadlocks, within the limit; never slower than ZB-H1. */
static void zb_auto_keeps_every_limit_and_is_never_slower_than_zb_h1(void **state) {
  (void)state;
  uint64_t seed = 41;
  int below = 0;
  for (int k = 0; k < 1000; k++) {
    pp_schedule_request request = request_of(PP_ZB_AUTO, draw(&seed, 12), draw(&seed, 40));
    pp_stage_times times[MOST_STAGES];
    for (int s = 0; s < request.ranks; s++) {
      times[s] = (pp_stage_times){ .forward = draw(&seed, 50), .input = draw(&seed, 50) - 1, .weight = draw(&seed, 50) - 1 };
      times[s].full = times[s].input + times[s].weight;
    }
    request.times = times;
    request.p2p = draw(&seed, 3) == 1 ? draw(&seed, 20) : 0;
    request.limit = draw(&seed, 3 * request.ranks);
    outcome ours = outcome_of(request);
    assert_true(ours.peak <= request.limit);
    if (request.limit < request.ranks) {
      below++;
      continue;
    }
    request.kind = PP_ZB_H1;
    request.limit = 0;
    outcome handmade = outcome_of(request);
    if (ours.makespan_bubble > handmade.makespan_bubble + 1e-6)
      fail_msg("P %d M %d: %g > %g", request.ranks, request.microbatches, ours.makespan_bubble, handmade.makespan_bubble);
  }
  assert_true(below > 200);
}

static void memory_that_i_frees_counts_against_the_limit_only_until_then(void **state) {
  (void)state;
  uint64_t seed = 43;
  for (int k = 0; k < 300; k++) {
    pp_schedule_request request = request_of(PP_ZB_AUTO, 1 + draw(&seed, 9), draw(&seed, 40));
    request.times = equal(draw(&seed, 20), draw(&seed, 20), draw(&seed, 20));
    request.limit = request.ranks + draw(&seed, request.ranks);
    request.released = draw(&seed, 11) / 10.0 - 0.1;
    pp_schedule schedule = built(request);
    for (int r = 0; r < request.ranks; r++) assert_true(peak_of(&schedule, r, 1 - request.released) <= request.limit + 1e-6);
    pp_schedule_free(&schedule);
  }
}

/*
** Qi et al. 2024, 2401.10241, table 5 and, for the times, appendix table 6 (microseconds): shares of the longest span. Their limits count a
** microbatch's activations as in their section 2.3: 34h + 5as elements, of which W's 32h stay after the backward for input.
*/
static const struct {
  int ranks, microbatches;
  double f, i, w, hop;
  double heads, hidden;
  double zb_1p, zb_2p;
} published[] = {
  { 8, 24, 18522, 18086, 9337, 601, 24, 2304, .1585, .0433 },   { 8, 32, 18513, 18086, 9331, 626, 24, 2304, .1242, .0039 },
  { 8, 64, 18546, 18097, 9321, 762, 24, 2304, .0674, .0026 },   { 8, 24, 29718, 29444, 19927, 527, 32, 4096, .1323, .0029 },
  { 8, 32, 29802, 29428, 19530, 577, 32, 4096, .1045, .0022 },  { 8, 64, 29935, 29621, 19388, 535, 32, 4096, .0554, .0010 },
  { 16, 48, 11347, 11248, 8132, 377, 40, 5120, .1397, .0066 },  { 16, 64, 11307, 11254, 8101, 379, 40, 5120, .1088, .0054 },
  { 16, 128, 11325, 11308, 8109, 378, 40, 5120, .0576, .0028 }, { 32, 96, 10419, 10207, 7715, 408, 48, 6144, .1421, .0038 },
  { 32, 128, 10408, 10204, 7703, 408, 48, 6144, .1106, .0029 }, { 32, 256, 10402, 10248, 7698, 460, 48, 6144, .0594, .0018 },
};

static double released_share(double heads, double hidden) { return 1 - 32 * hidden / (34 * hidden + 5 * heads * 1024); }

/* ZB-1p to the printed digits. ZB-2p at most what is printed, but for the three rows of 32 ranks: there by 0.0005 of the step at most. */
static void published_bubble_shares_are_reached(void **state) {
  (void)state;
  int no_worse = 0;
  for (size_t k = 0; k < sizeof published / sizeof *published; k++) {
    pp_schedule_request request = timed(PP_ZB_AUTO, published[k].ranks, published[k].microbatches, published[k].f, published[k].i, published[k].w);
    request.p2p = published[k].hop;
    request.released = released_share(published[k].heads, published[k].hidden);
    request.limit = request.ranks;
    assert_true(fabs(share(outcome_of(request).span_bubble, &request) - published[k].zb_1p) <= .00005);
    request.limit = 2 * request.ranks;
    double span = share(outcome_of(request).span_bubble, &request);
    if (span > published[k].zb_2p + .0005) fail_msg("row %zu: %.5f, published %.4f", k, span, published[k].zb_2p);
    no_worse += span <= published[k].zb_2p + .00005;
  }
  assert_true(no_worse >= 9);
}

/* The same paper's bubble against the memory limit, 6.2B on 16 ranks, 48 microbatches: within 0.0035 of the step. */
static void more_memory_saves_what_the_paper_says(void **state) {
  (void)state;
  static const struct { int limit; double share; } rows[] = { { 16, .1536 }, { 20, .0998 }, { 24, .0632 }, { 28, .0350 }, { 32, .0077 }, { 48, .0077 } };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    pp_schedule_request request = timed(PP_ZB_AUTO, 16, 48, 2 * 14407, 2 * 14380, 2 * 9676);
    request.p2p = 1610;
    request.released = released_share(32, 4096);
    request.limit = rows[k].limit;
    double span = share(outcome_of(request).span_bubble, &request);
    if (span > rows[k].share + .0035) fail_msg("limit %d: %.4f, published %.4f", rows[k].limit, span, rows[k].share);
  }
}

/* A W fills a wait that is exactly as long. On times whose sums round, and on those that do not: one shorter by 10⁻⁷ saves no more than itself,
** P W's on the way of the last microbatch at most and M on a rank. 10 ranks, 10 microbatches: 48 s with hops of half a second, by hand at
** least 9 × 1.5 until the last rank has begun and 30 there. */
static void a_w_fills_the_wait_that_it_fits_exactly(void **state) {
  (void)state;
  for (int k = 0; k < 3; k++) {
    const double unit = (double[]){ 1, 0.1, 1.0 / 3 }[k];
    double makespan[2];
    for (int shorter = 0; shorter < 2; shorter++) {
      pp_schedule_request request = timed(PP_ZB_AUTO, 10, 10, unit, unit, unit * (1 - shorter * 1e-7));
      request.p2p = 0.5 * unit;
      request.limit = 10;
      request.brief = true;
      makespan[shorter] = outcome_of(request).makespan_bubble + 10 * unit * (3 - shorter * 1e-7);
    }
    assert_true(makespan[0] >= (13.5 + 30) * unit * (1 - 1e-9));
    if (fabs(makespan[0] - makespan[1]) > 20 * 1e-7 * unit) fail_msg("unit %g: %.9g and %.9g", unit, makespan[0], makespan[1]);
  }
}

/* -- v_half, v_min -------------------------------------------------------------------------------------------------------------------- */

/*
** Qi et al. 2024, 2405.15362, and the playground of its authors: (P + 2) div 2 and (P + 4) div 3 microbatches, of two chunks each. The
** bubbles are what the scheduler of their code gives at F = I = W (sail-sg/zero-bubble-pipeline-parallelism @39f2c18, zbv_greedy.py, run):
** 3P − 7 for even P ≥ 4, 1 and 5 for P = 2, 3; 4P − 5, or 4P − 7 where 3 divides P. Ours are no larger: at P = 2 a span of 0 and 1 instead
** of 1 and 3.
*/
static void v_schedules_have_the_published_peaks_and_no_larger_bubbles(void **state) {
  (void)state;
  static const int depths[] = { 2, 3, 4, 6, 8, 12, 16 };
  for (size_t k = 0; k < sizeof depths / sizeof *depths; k++)
    for (int more = 2; more <= 4; more++) {
      int ranks = depths[k];
      outcome half = outcome_of(timed(PP_V_HALF, ranks, more * ranks, 1, 1, 1)), least = outcome_of(timed(PP_V_MIN, ranks, more * ranks, 1, 1, 1));
      assert_near(half.peak, 2 * ((ranks + 2) / 2));
      assert_near(least.peak, 2 * ((ranks + 4) / 3));
      double half_law = ranks == 2 ? 1 : ranks == 3 ? 5 : 3 * ranks - 7, least_law = ranks % 3 == 0 ? 4 * ranks - 7 : 4 * ranks - 5;
      assert_true(half.makespan_bubble <= half_law && half.span_bubble <= half_law);
      assert_true(least.makespan_bubble <= least_law && least.span_bubble <= least_law);
      if (ranks >= 4) assert_near(half.makespan_bubble, half_law);
      if (ranks >= 4) assert_near(least.makespan_bubble, least_law);
    }
}

/*
** The same code at unequal times, 2P and 4P microbatches. Where W + 2I < 2F or W + 2F < 2I its V-Half grows with M too, as its authors say;
** its V-Min always does. Our V-Half does not, for W and early passes fill what differs.
*/
static void v_schedules_at_unequal_times_are_no_worse_than_the_papers_code(void **state) {
  (void)state;
  static const struct { pp_schedule_kind kind; int ranks; double f, i, w, at_2p, at_4p; } rows[] = {
    { PP_V_HALF, 4, 2, 2, 1, 15, 15 },  { PP_V_HALF, 4, 10, 11, 9, 64, 64 },  { PP_V_HALF, 4, 1, 2, 1, 18, 26 }, { PP_V_HALF, 4, 3, 2, 2, 21, 21 },
    { PP_V_HALF, 8, 2, 2, 1, 43, 43 },  { PP_V_HALF, 8, 10, 11, 9, 200, 200 }, { PP_V_HALF, 8, 1, 2, 1, 48, 64 }, { PP_V_HALF, 8, 3, 2, 2, 56, 56 },
    { PP_V_MIN, 4, 2, 2, 1, 37, 53 },   { PP_V_MIN, 4, 10, 11, 9, 159, 207 }, { PP_V_MIN, 4, 1, 2, 1, 45, 77 },
    { PP_V_MIN, 8, 2, 2, 1, 85, 117 },  { PP_V_MIN, 8, 1, 2, 1, 99, 163 },    { PP_V_MIN, 12, 10, 11, 9, 569, NAN },
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    for (int more = 2; more <= (isnan(rows[k].at_4p) ? 2 : 4); more += 2) {
      outcome out = outcome_of(timed(rows[k].kind, rows[k].ranks, more * rows[k].ranks, rows[k].f, rows[k].i, rows[k].w));
      double theirs = more == 2 ? rows[k].at_2p : rows[k].at_4p;
      if (out.makespan_bubble > theirs) fail_msg("row %zu, %dP: %g > %g", k, more, out.makespan_bubble, theirs);
    }
}

/* The same code where only one of the orders that are tried is as good as its own: each leaves another number of chunks' memory for others. */
static void each_room_that_is_left_reaches_the_papers_code_somewhere(void **state) {
  (void)state;
  static const struct { pp_schedule_kind kind; int ranks, microbatches; double f, i, w, theirs; } rows[] = {
    { PP_V_HALF, 10, 20, 1, 1, 2, 23 }, { PP_V_HALF, 12, 24, 1, 1, 2, 29 }, { PP_V_HALF, 6, 6, 10, 11, 9, 147 }, { PP_V_HALF, 8, 8, 2, 1, 1, 35 },
    { PP_V_MIN, 8, 16, 1, 1, 2, 23 },   { PP_V_MIN, 8, 8, 3, 2, 2, 85 },    { PP_V_MIN, 8, 24, 3, 2, 2, 149 },  { PP_V_MIN, 2, 4, 7, 7, 12, 16 },
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    outcome out = outcome_of(timed(rows[k].kind, rows[k].ranks, rows[k].microbatches, rows[k].f, rows[k].i, rows[k].w));
    if (out.makespan_bubble > rows[k].theirs) fail_msg("row %zu: %g > %g", k, out.makespan_bubble, rows[k].theirs);
  }
}

/* W's of a rank's two chunks that differ. By hand: no order ends before the last rank, begun after P − 1 F's, has run all that is its own. In the
** first row only one that is tried later ends then; in the others only where turns at the same time come before W's that fill. */
static void v_schedules_with_unequal_w_end_as_soon_as_any_order_could(void **state) {
  (void)state;
  static const struct { pp_schedule_kind kind; int microbatches; double pass, w[2]; } rows[] = {
    { PP_V_HALF, 2, 1, { 3, 1 } }, { PP_V_MIN, 4, 1, { 2, 3 } }, { PP_V_MIN, 5, 3, { 1, 3 } },
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const double pass = rows[k].pass;
    pp_stage_times times[4];
    for (int s = 0; s < 4; s++) times[s] = (pp_stage_times){ pass, pass, rows[k].w[s / 2], pass + rows[k].w[s / 2] };
    pp_schedule_request request = request_of(rows[k].kind, 2, rows[k].microbatches);
    request.times = times;
    assert_near(outcome_of(request).makespan_bubble, pass);
  }
}

static void the_bubble_of_v_half_does_not_depend_on_m(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof cost_sets / sizeof *cost_sets; k++)
    for (int ranks = 2; ranks <= 8; ranks++) {
      const double *cost = cost_sets[k];
      double few = outcome_of(timed(PP_V_HALF, ranks, 3 * ranks, cost[0], cost[1], cost[2])).makespan_bubble;
      assert_near(outcome_of(timed(PP_V_HALF, ranks, 8 * ranks, cost[0], cost[1], cost[2])).makespan_bubble, few);
    }
}

static void v_schedules_run_within_their_limits_whatever_stages_take(void **state) {
  (void)state;
  uint64_t seed = 47;
  for (int k = 0; k < 600; k++) {
    pp_schedule_request request = request_of(draw(&seed, 2) == 1 ? PP_V_HALF : PP_V_MIN, draw(&seed, 12), draw(&seed, 40));
    pp_stage_times times[MOST_STAGES];
    for (int s = 0; s < 2 * request.ranks; s++) {
      times[s] = (pp_stage_times){ .forward = draw(&seed, 50), .input = draw(&seed, 50) - 1, .weight = draw(&seed, 50) - 1 };
      times[s].full = times[s].input + times[s].weight;
    }
    request.times = times;
    request.p2p = draw(&seed, 3) == 1 ? draw(&seed, 20) : 0;
    outcome out = outcome_of(request);
    assert_true(out.peak <= pp_schedule_limit(&request));
  }
}

/* -- what is asked for ---------------------------------------------------------------------------------------------------------------- */

/* F, I and W of one second each, as the papers draw them. */
static void without_times_all_take_the_same(void **state) {
  static const pp_schedule_kind kinds[] = { PP_ZB_AUTO, PP_V_HALF, PP_V_MIN };
  (void)state;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (int ranks = 2; ranks <= 8; ranks++)
      for (int microbatches = ranks; microbatches <= 3 * ranks; microbatches += ranks) {
        pp_schedule plain = built(request_of(kinds[k], ranks, microbatches)), said = built(timed(kinds[k], ranks, microbatches, 1, 1, 1));
        assert_memory_equal(plain.action, said.action, plain.first[ranks] * sizeof *plain.action);
        pp_schedule_free(&plain);
        pp_schedule_free(&said);
      }
}

/* A turn asks one rank again, and then all of them in a tournament of seven rounds: of 16 units and 2 a round it is at least one for each
** action, however many orders are tried. */
static void an_order_costs_work_for_each_action(void **state) {
  (void)state;
  pp_meter meter = { .limit = UINT64_MAX, .cap = SIZE_MAX };
  pp_meter_use(&meter);
  pp_schedule schedule = built(request_of(PP_ZB_AUTO, 128, 128));
  assert_true(meter.spent >= (16 + 2 * 7) * (uint64_t)schedule.first[128]);
  pp_schedule_free(&schedule);
  pp_meter_use(NULL);
}

static void limits_are_those_asked_for_or_the_kinds_own(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_ZB_AUTO, 8, 64);
  assert_int_equal(pp_schedule_limit(&request), 16);
  request.limit = 11;
  assert_int_equal(pp_schedule_limit(&request), 11);
  request = request_of(PP_1F1B, 8, 64);
  assert_int_equal(pp_schedule_limit(&request), 0);
}

static void a_limit_belongs_to_zb_auto(void **state) {
  (void)state;
  pp_error error;
  pp_schedule_request request = request_of(PP_V_HALF, 4, 8);
  request.limit = 6;
  assert_int_equal(pp_schedule_check(&request, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.activation_limit");
  assert_string_equal(error.field, "limit");
  request = request_of(PP_ZB_AUTO, 4, 8);
  request.limit = -1;
  assert_int_equal(pp_schedule_check(&request, &error), PP_INVALID);
  request.limit = 4;
  request.released = 1.5;
  assert_int_equal(pp_schedule_check(&request, &error), PP_INVALID);
}

static void times_that_are_none_are_invalid(void **state) {
  (void)state;
  static const double wrong[] = { -1, NAN, INFINITY };
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    pp_stage_times times[4] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, wrong[k], 1, 2 }, { 1, 1, 1, 2 } };
    pp_schedule_request request = request_of(PP_ZB_AUTO, 4, 8);
    pp_schedule schedule;
    pp_error error;
    request.times = times;
    assert_int_equal(pp_schedule_build(&request, &schedule, &error), PP_INVALID);
    assert_non_null(strstr(error.message, "times of stage 2"));
    request.times = NULL;
    request.p2p = wrong[k];
    assert_int_equal(pp_schedule_build(&request, &schedule, &error), PP_INVALID);
  }
}

/* -- times ---------------------------------------------------------------------------------------------------------------------------- */

static const pp_schedule_kind greedy_kinds[] = { PP_ZB_AUTO, PP_V_HALF, PP_V_MIN };

/* Such as 1e308, two of which are more than any double. */
static void times_beyond_any_machine_are_refused(void **state) {
  (void)state;
  static const double bad[] = { -1, NAN, INFINITY, 1e308, 1.1e30, 0.9e-30, 5e-324 };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
    for (size_t n = 0; n < 3; n++)
      for (int field = 0; field < 4; field++) {
        pp_schedule schedule;
        pp_error error;
        pp_schedule_request request = timed(greedy_kinds[n], 4, 8, field == 0 ? bad[k] : 1, field == 1 ? bad[k] : 1, field == 2 ? bad[k] : 1);
        if (field == 3) request.p2p = bad[k];
        assert_int_equal(pp_schedule_build(&request, &schedule, &error), PP_INVALID);
        if (!strstr(error.message, "0 or 1e-30 … 1e30 seconds")) fail_msg("%s", error.message);
        assert_null(schedule.action);
      }
}

/* From the least to the most that times may be, side by side, and nothing at all: an order is found, and it runs. */
static void any_other_times_have_an_order(void **state) {
  (void)state;
  static const double some[] = { 0, 0, 1e-30, 1e-3, 1, 1, 2, 1e9, 1e30 };
  uint64_t seed = 77;
  for (int k = 0; k < 4000; k++) {
    pp_stage_times times[MOST_STAGES] = { { 0, 0, 0, 0 } };
    for (int s = 0; s < MOST_STAGES; s++) {
      times[s].forward = some[draw(&seed, 9) - 1];
      times[s].input = some[draw(&seed, 9) - 1];
      times[s].weight = some[draw(&seed, 9) - 1];
    }
    pp_schedule_request request = request_of(greedy_kinds[draw(&seed, 3) - 1], draw(&seed, 12), draw(&seed, 20));
    request.times = times;
    request.p2p = some[draw(&seed, 9) - 1];
    request.released = (draw(&seed, 5) - 1) / 4.0;
    request.limit = request.kind == PP_ZB_AUTO ? draw(&seed, 14) - 1 : 0;
    request.brief = draw(&seed, 2) == 1;
    pp_schedule schedule = built(request);
    pp_simulation result;
    pp_error error;
    const pp_times all = { .stage = times, .p2p = request.p2p };
    if (pp_schedule_verify(&schedule, &error) != PP_OK) fail_msg("%s", error.message);
    if (pp_simulate(&schedule, &all, false, &result, &error) != PP_OK) fail_msg("%s", error.message);
    assert_true(isfinite(result.makespan) && result.min_idle >= 0 && result.bubble_fraction >= 0 && result.bubble_fraction <= 1);
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(under_a_limit_of_p_zb_auto_is_zb_h1),
    cmocka_unit_test(under_a_limit_of_2p_equal_times_leave_no_span_bubble),
    cmocka_unit_test(under_a_limit_of_2p_zb_auto_is_at_least_zb_h2),
    cmocka_unit_test(at_as_many_microbatches_as_ranks_a_higher_limit_saves_nothing),
    cmocka_unit_test(zb_auto_keeps_every_limit_and_is_never_slower_than_zb_h1),
    cmocka_unit_test(memory_that_i_frees_counts_against_the_limit_only_until_then),
    cmocka_unit_test(published_bubble_shares_are_reached),
    cmocka_unit_test(more_memory_saves_what_the_paper_says),
    cmocka_unit_test(a_w_fills_the_wait_that_it_fits_exactly),
    cmocka_unit_test(v_schedules_have_the_published_peaks_and_no_larger_bubbles),
    cmocka_unit_test(v_schedules_at_unequal_times_are_no_worse_than_the_papers_code),
    cmocka_unit_test(each_room_that_is_left_reaches_the_papers_code_somewhere),
    cmocka_unit_test(v_schedules_with_unequal_w_end_as_soon_as_any_order_could),
    cmocka_unit_test(the_bubble_of_v_half_does_not_depend_on_m),
    cmocka_unit_test(v_schedules_run_within_their_limits_whatever_stages_take),
    cmocka_unit_test(without_times_all_take_the_same),
    cmocka_unit_test(an_order_costs_work_for_each_action),
    cmocka_unit_test(limits_are_those_asked_for_or_the_kinds_own),
    cmocka_unit_test(a_limit_belongs_to_zb_auto),
    cmocka_unit_test(times_that_are_none_are_invalid),
    cmocka_unit_test(times_beyond_any_machine_are_refused),
    cmocka_unit_test(any_other_times_have_an_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

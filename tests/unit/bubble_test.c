/* SPDX-License-Identifier: Apache-2.0 */
/* bubble.c: each closed form against the simulation of the program, over random times inside its conditions, and where it stops to hold. */
#include "core/bubble.h"

#include "schedules.h"

static pp_closed_form closed(pp_schedule_request request, equal_times times) {
  pp_closed_form form;
  pp_error error;
  pp_chunk_times chunk = { .forward = times.f, .input = times.i, .weight = times.w, .overlapped = times.fb };
  if (pp_bubble(&request, &chunk, &form, &error) != PP_OK) fail_msg("%s", error.message);
  return form;
}

static double simulated_idle(pp_schedule_request request, equal_times times) {
  pp_schedule schedule = built(request);
  pp_simulation result = simulated(&schedule, times);
  double idle = result.max_idle;
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  return idle;
}

/* Whole numbers, half of the time F&B somewhere between max(F, B) and F + B, the other half anything. */
static equal_times random_times(uint64_t *seed) {
  equal_times times = { draw(seed, 20), draw(seed, 20), draw(seed, 20), 0, 0 };
  double b = times.i + times.w, low = times.f > b ? times.f : b, high = times.f + b;
  if (draw(seed, 2) == 1) times.fb = low + draw(seed, (int)(high - low) + 1) - 1;
  else if (draw(seed, 2) == 1) times.fb = draw(seed, 60);
  return times;
}

static pp_schedule_request random_request(uint64_t *seed, pp_schedule_kind kind) {
  pp_schedule_request request;
  do {
    request = request_of(kind, draw(seed, 10), draw(seed, 40));
    if (pp_schedule_traits_of(kind)->chunks == 0) request.chunks = 1 + draw(seed, 4);
    if (pp_schedule_traits_of(kind)->grouping) request.group = draw(seed, 40) - 2;
    if (kind == PP_ZB_AUTO) request.limit = draw(seed, 2) == 1 ? request.ranks : draw(seed, 20);
  } while (pp_schedule_check(&request, NULL) != PP_OK);
  return request;
}

/* An exact form is the simulated idle time to the last digit (whole numbers), and one that is not exact still bounds it where it says so. */
static void closed_forms_are_exact_where_they_say_so_and_bound_where_they_do_not(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    int exact = 0, bounded = 0;
    for (int k = 0; k < 1500; k++) {
      pp_schedule_request request = random_request(&seed, (pp_schedule_kind)kind);
      equal_times times = random_times(&seed);
      pp_closed_form form = closed(request, times);
      double idle = simulated_idle(request, times);
      if (form.exact) {
        assert_near(form.seconds, idle);
        assert_near(form.low, idle);
        assert_near(form.high, idle);
        exact++;
        continue;
      }
      if (idle < form.low - 1e-9) fail_msg("%s P %d M %d: idle %g < %g", pp_schedule_traits_of(request.kind)->name, request.ranks, request.microbatches, idle, form.low);
      if (!isnan(form.high)) {
        if (idle > form.high + 1e-9) fail_msg("%s P %d M %d: idle %g > %g", pp_schedule_traits_of(request.kind)->name, request.ranks, request.microbatches, idle, form.high);
        bounded++;
      }
    }
    if (kind == PP_V_HALF || kind == PP_V_MIN) assert_int_equal(exact, 0);   /* no law is known */
    else assert_true(exact >= 100);
    if (kind == PP_DUALPIPE || kind == PP_DUALPIPEV) assert_true(bounded >= 50);
  }
}

/* The same of a B that is not I + W, as measured, of actions that take no time, and of fractions, whose sums round. */
static void closed_forms_hold_for_times_of_any_kind(void **state) {
  (void)state;
  uint64_t seed = 41;
  int exact = 0;
  for (int k = 0; k < 6000; k++) {
    const pp_schedule_request request = random_request(&seed, (pp_schedule_kind)(draw(&seed, PP_SCHEDULE_KINDS) - 1));
    const double unit = draw(&seed, 2) == 1 ? 1 : 0.1, f = unit * (draw(&seed, 21) - 1), i = unit * (draw(&seed, 21) - 1);
    const double w = unit * (draw(&seed, 21) - 1), full = draw(&seed, 3) == 1 ? (i + w) * (0.5 + draw(&seed, 10) / 10.0) : 0;
    const double b = full > 0 ? full : i + w, low = fmax(f, b), fb = draw(&seed, 2) == 1 ? low + (f + b - low) * draw(&seed, 100) / 100.0 : 0;
    const pp_chunk_times chunk = { f, i, w, full, fb };
    pp_stage_times stage[512];
    double pair[4096];
    pp_closed_form form;
    pp_simulation result;
    pp_schedule schedule = built(request);
    assert_true(schedule.stages <= 512 && schedule.stages * schedule.chunks_per_rank <= 4096);
    for (int s = 0; s < schedule.stages; s++) stage[s] = (pp_stage_times){ f, i, w, b };
    for (int p = 0; p < schedule.stages * schedule.chunks_per_rank; p++) pair[p] = fb > 0 ? fb : f + b;
    const pp_times times = { .stage = stage, .pair = pair };
    assert_int_equal(pp_bubble(&request, &chunk, &form, NULL), PP_OK);
    assert_int_equal(pp_simulate(&schedule, &times, false, &result, NULL), PP_OK);
    const double near = 1e-11 * (1 + result.makespan), idle = result.max_idle;
    const bool holds = form.exact ? fabs(form.seconds - idle) <= near : idle >= form.low - near && !(idle > form.high + near);
    if (!holds)
      fail_msg("%s P %d V %d M %d, F %g I %g W %g B %g F&B %g: idle %g, not %g, from %g to %g", schedule.traits.name, request.ranks, request.chunks,
               request.microbatches, f, i, w, b, fb, idle, form.seconds, form.low, form.high);
    exact += form.exact;
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
  assert_true(exact > 2000);
}

/* zb_auto under a limit of P, planned from the very times: the search finds nothing better than ZB-H1's law, which holds. */
static void zb_h1s_law_holds_for_what_is_planned_under_its_limit(void **state) {
  (void)state;
  uint64_t seed = 29;
  int exact = 0;
  for (int k = 0; k < 1500; k++) {
    pp_schedule_request request = request_of(PP_ZB_AUTO, draw(&seed, 10), draw(&seed, 40));
    equal_times times = random_times(&seed);
    pp_stage_times stages[10];
    for (int s = 0; s < 10; s++) stages[s] = (pp_stage_times){ times.f, times.i, times.w, times.i + times.w };
    request.limit = request.ranks;
    request.times = stages;
    pp_closed_form form = closed(request, times);
    if (!form.exact) continue;
    assert_near(form.seconds, simulated_idle(request, times));
    exact++;
  }
  assert_true(exact > 500);
}

/* GPipe's bubble equals 1F1B's at every M, below P too. */
static void gpipe_idles_exactly_as_long_as_1f1b(void **state) {
  (void)state;
  uint64_t seed = 3;
  for (int ranks = 1; ranks <= 8; ranks++)
    for (int microbatches = 1; microbatches <= 20; microbatches++) {
      equal_times times = random_times(&seed);
      double gpipe = simulated_idle(request_of(PP_GPIPE, ranks, microbatches), times);
      assert_near(gpipe, simulated_idle(request_of(PP_1F1B, ranks, microbatches), times));
      assert_near(gpipe, (ranks - 1) * (times.f + times.i + times.w));
    }
}

/* What an independent simulator found for orders of PyTorch with M not a multiple of P, at F = I = W = 1: no more bubble from P on, more below. */
static void looped_schedules_idle_longer_below_p_microbatches_only(void **state) {
  (void)state;
  const equal_times times = { 1, 1, 1, 0, 0 };
  static const struct { pp_schedule_kind kind; int ranks, microbatches; double idle; } found[] = {
    { PP_INTERLEAVED_1F1B, 4, 5, 9 }, { PP_INTERLEAVED_1F1B, 4, 6, 9 }, { PP_INTERLEAVED_1F1B, 4, 10, 9 }, { PP_INTERLEAVED_1F1B, 8, 12, 21 },
    { PP_INTERLEAVED_1F1B, 4, 3, 12 }, { PP_INTERLEAVED_1F1B, 8, 4, 33 }, { PP_LOOPED_BFS, 4, 4, 9 }, { PP_LOOPED_BFS, 4, 2, 15 } };
  for (size_t k = 0; k < sizeof found / sizeof *found; k++) {
    pp_schedule_request request = request_of(found[k].kind, found[k].ranks, found[k].microbatches);
    if (request.kind == PP_INTERLEAVED_1F1B) request.group = PP_GROUP_ROUNDS;
    assert_near(simulated_idle(request, times), found[k].idle);
    assert_near(closed(request, times).seconds, found[k].idle);
  }
}

/* Beyond their conditions the laws are false, which is why they state them: W > F for ZB-H1 and ZB-H2, too few microbatches, W > min(F, I). */
static void the_conditions_are_needed(void **state) {
  (void)state;
  const struct { pp_schedule_request request; equal_times times; double law; } beyond[] = {
    { request_of(PP_ZB_H1, 4, 8), { 1, 2, 3, 0, 0 }, 3 * 1 },
    { request_of(PP_ZB_H1, 4, 3), { 3, 1, 3, 0, 0 }, 3 * 4 - 2 * 3 },
    { request_of(PP_ZB_H2, 4, 8), { 1, 9, 4, 0, 0 }, 3 * 2 },
    { request_of(PP_ZB_H2, 4, 6), { 2, 2, 1, 0, 0 }, 3 * 2 },
    { request_of(PP_INTERLEAVED_ZERO_BUBBLE, 4, 8), { 1, 2, 3, 0, 0 }, 3 * 1 },
    { request_of(PP_INTERLEAVED_ZERO_BUBBLE, 3, 2), { 1, 1, 1, 0, 0 }, 3 * 2 - 3 },
    { request_of(PP_INTERLEAVED_1F1B_OVERLAP, 2, 30), { 13, 1, 14, 88, 0 }, 28 },
    { request_of(PP_ZB_V, 4, 5), { 1, 1, 1, 0, 0 }, 3 * 1 },
    { request_of(PP_DUALPIPE, 8, 20), { 1, 1, 2, 4, 0 }, 3 * (4 + 1 - 4) },
  };
  for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++) {
    assert_false(closed(beyond[k].request, beyond[k].times).exact);
    double idle = simulated_idle(beyond[k].request, beyond[k].times);
    if (is_near(idle, beyond[k].law)) fail_msg("case %zu idles %g", k, idle);
  }
}

/* Qi et al. 2024 compare M ≤ P too: without hops, for W ≤ min(F, I), a step takes (M + P − 1)(F + I) + W. */
static void zb_h1_below_p_microbatches_takes_what_the_paper_says(void **state) {
  (void)state;
  uint64_t seed = 17;
  for (int k = 0; k < 300; k++) {
    int ranks = 1 + draw(&seed, 9), microbatches = draw(&seed, ranks);
    double w = draw(&seed, 9), f = w + draw(&seed, 9) - 1, i = w + draw(&seed, 9) - 1;
    pp_schedule_request request = request_of(PP_ZB_H1, ranks, microbatches);
    pp_closed_form form = closed(request, (equal_times){ f, i, w, 0, 0 });
    assert_true(form.exact);
    assert_near(form.seconds, simulated_idle(request, (equal_times){ f, i, w, 0, 0 }));
    assert_near(form.seconds + microbatches * (f + i + w), (microbatches + ranks - 1) * (f + i) + w);
  }
}

/* deepseek-ai/DualPipe, README: (PP/2 − 1)(F&B + B − 3W) in stages; the README's B is the full backward. */
static void at_f_equal_i_the_form_is_the_readmes(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int k = 0; k < 300; k++) {
    int turns = draw(&seed, 8);
    double w = draw(&seed, 10), f = w + draw(&seed, 10) - 1, b = f + w, fb = b + draw(&seed, (int)f + 1) - 1;
    pp_closed_form form = closed(request_of(PP_DUALPIPE, 2 * turns, 4 * turns), (equal_times){ f, f, w, fb, 0 });
    assert_true(form.exact);
    assert_near(form.seconds, (turns - 1) * (fb + b - 3 * w));
  }
}

/* Span bubbles of the zero-bubble papers: (P − 1)max(0, F + I − kW), 0 for the V at F = I = W. */
static void spans_follow_the_zero_bubble_papers(void **state) {
  (void)state;
  uint64_t seed = 9;
  for (int k = 0; k < 300; k++) {
    int ranks = 1 + draw(&seed, 7), microbatches = 2 * ranks + draw(&seed, 20);
    double f = 10 + draw(&seed, 10), i = draw(&seed, 30), w = draw(&seed, 10);
    for (int factor = 1; factor <= 2; factor++) {
      pp_schedule schedule = built(request_of(factor == 1 ? PP_ZB_H1 : PP_ZB_H2, ranks, microbatches));
      pp_simulation result = simulated(&schedule, (equal_times){ f, i, w, 0, 0 });
      double bubble = f + i - factor * w;
      assert_near(result.max_span - microbatches * (f + i + w), (ranks - 1) * (bubble > 0 ? bubble : 0));
      pp_simulation_free(&result);
      pp_schedule_free(&schedule);
    }
    pp_schedule schedule = built(request_of(PP_ZB_V, ranks, microbatches));
    pp_simulation result = simulated(&schedule, (equal_times){ f, f, f, 0, 0 });
    assert_near(result.max_span, 6 * microbatches * f);
    assert_near(result.makespan, 6 * microbatches * f + (ranks - 1) * f);
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
}

/* The makespan law of the eight steps for F ≥ I: (2H + 1)(F + B) + (2n − 2H − 1)F&B + (H − 1)(F&B + F − 2W). */
static void the_eight_steps_makespan_has_a_law(void **state) {
  (void)state;
  uint64_t seed = 13;
  for (int k = 0; k < 300; k++) {
    int turns = draw(&seed, 8), n = 2 * turns + draw(&seed, 12) - 1;
    double w = draw(&seed, 8), i = w + draw(&seed, 8) - 1, f = i + draw(&seed, 8) - 1, b = i + w;
    double low = f > b ? f : b, fb = low + draw(&seed, (int)(f + b - low) + 1) - 1;
    pp_schedule schedule = built(request_of(PP_DUALPIPEV, turns, n));
    pp_simulation result = simulated(&schedule, (equal_times){ f, i, w, fb, 0 });
    assert_near(result.makespan, (2 * turns + 1) * (f + b) + (2 * n - 2 * turns - 1) * fb + (turns - 1) * (fb + f - 2 * w));
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
}

static void a_closed_form_refuses_what_cannot_be_built_and_what_is_no_time(void **state) {
  (void)state;
  pp_closed_form form;
  pp_error error;
  pp_schedule_request request = request_of(PP_DUALPIPE, 8, 14);
  pp_chunk_times times = { .forward = 1, .input = 1, .weight = 1 };
  assert_int_equal(pp_bubble(&request, &times, &form, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.too_few_microbatches");
  request.microbatches = 16;
  times.weight = NAN;
  assert_int_equal(pp_bubble(&request, &times, &form, &error), PP_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(closed_forms_are_exact_where_they_say_so_and_bound_where_they_do_not),
    cmocka_unit_test(closed_forms_hold_for_times_of_any_kind),
    cmocka_unit_test(zb_h1s_law_holds_for_what_is_planned_under_its_limit),
    cmocka_unit_test(gpipe_idles_exactly_as_long_as_1f1b),
    cmocka_unit_test(looped_schedules_idle_longer_below_p_microbatches_only),
    cmocka_unit_test(the_conditions_are_needed),
    cmocka_unit_test(zb_h1_below_p_microbatches_takes_what_the_paper_says),
    cmocka_unit_test(at_f_equal_i_the_form_is_the_readmes),
    cmocka_unit_test(spans_follow_the_zero_bubble_papers),
    cmocka_unit_test(the_eight_steps_makespan_has_a_law),
    cmocka_unit_test(a_closed_form_refuses_what_cannot_be_built_and_what_is_no_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

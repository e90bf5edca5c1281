/* SPDX-License-Identifier: Apache-2.0 */
/* steady.c: the step of many microbatches, by periods, against the simulation of the whole program. */
#include "schedules.h"

#include "core/meter.h"
#include "core/steady.h"

static const pp_schedule_kind periodic[] = { PP_1F1B, PP_INTERLEAVED_1F1B, PP_INTERLEAVED_1F1B_OVERLAP, PP_ZB_H1, PP_ZB_H2,
                                             PP_INTERLEAVED_ZERO_BUBBLE, PP_ZB_V, PP_DUALPIPE, PP_DUALPIPEV };
enum { KINDS = sizeof periodic / sizeof *periodic };

static double uniform(uint64_t *seed) { return draw(seed, 1 << 20) / (double)(1 << 20); }

/* A legal request of up to so many microbatches that has a shorter program. */
static pp_schedule_request random_request(uint64_t *seed, int most) {
  pp_schedule_request request, shorter;
  do {
    const pp_schedule_kind kind = periodic[draw(seed, KINDS) - 1];
    const pp_schedule_traits *traits = pp_schedule_traits_of(kind);
    const int ranks = draw(seed, draw(seed, 4) == 1 ? 24 : 8) * traits->chains;
    request = request_of(kind, ranks, draw(seed, most) * traits->chains);
    if (traits->chunks == 0) request.chunks = 1 + draw(seed, 4);
    if (request.chunks < 2 && traits->chunks == 0) request.chunks = 2;
    if (traits->grouping == PP_UNGROUPED) continue;
    switch (draw(seed, 3)) {
      case 1: request.group = ranks - 1 + draw(seed, 2 * ranks); break;
      case 2: request.group = PP_GROUP_ROUNDS; break;
      default: request.microbatches -= request.microbatches % ranks; break;
    }
  } while (pp_schedule_check_within(&request, INT64_MAX, NULL) != PP_OK || !pp_steady_shorten(&request, &shorter));
  return request;
}

typedef struct {
  pp_stage_times stage[256];
  double pair[256 * 8];
  pp_times times;
} random_times;

/* What decides how long a growth lasts is how nearly alike the ranks are: alike, alike but for some 10⁻ⁿ, or not at all, with some that take no
** time. `scale`: 0, or all times are whole numbers of some that large, whose sums do not round. */
static void set_times(const pp_schedule *schedule, uint64_t *seed, double scale, random_times *out) {
  const int way = draw(seed, 7), slots = schedule->chunks_per_rank;
  const double apart = pow(10, -draw(seed, 10)), hop[] = { 0, 0.01 * uniform(seed), uniform(seed), 1, 5 * uniform(seed) };
  assert_true(schedule->stages <= 256 && slots <= 8);
  for (int s = 0; s < schedule->stages; s++) {
    double f = 1, i = 1, w = 1;
    switch (way) {
      case 1: break;
      case 2: f = i = w = 1 + apart * uniform(seed); break;
      case 3: f = i = w = 1 + apart * (s % 3); break;
      case 4: f = i = w = s == 0 || s == schedule->stages - 1 ? 1 + apart * (1 + s) : 1; break;
      case 5: f = 1 + apart * uniform(seed), i = 1.2 + apart * uniform(seed), w = 0.7 + apart * uniform(seed); break;
      case 6: f = draw(seed, 3), i = draw(seed, 3), w = draw(seed, 3) - 1; break;
      default: f = draw(seed, 5) == 1 ? 0 : uniform(seed), i = uniform(seed), w = draw(seed, 5) == 1 ? 0 : uniform(seed); break;
    }
    out->stage[s] = (pp_stage_times){ f, i, w, way == 7 ? 2 * uniform(seed) : i + w };
  }
  for (int s = 0; s < schedule->stages; s++)
    for (int slot = 0; slot < slots; slot++) {
      const int other = pp_schedule_stages_of(schedule, schedule->rank_of[s])[slot];
      const double in_turn = out->stage[s].forward + out->stage[other].full;
      out->pair[s * slots + slot] = in_turn * (way == 7 ? 0.5 + uniform(seed) : 0.9);
    }
  out->times = (pp_times){ .stage = out->stage, .pair = draw(seed, 3) == 1 ? NULL : out->pair, .p2p = hop[draw(seed, 5) - 1] };
  if (scale <= 0) return;
  for (int s = 0; s < schedule->stages; s++) {
    pp_stage_times *stage = &out->stage[s];
    *stage = (pp_stage_times){ floor(scale * stage->forward), floor(scale * stage->input), floor(scale * stage->weight), floor(scale * stage->full) };
    for (int slot = 0; slot < slots; slot++) out->pair[s * slots + slot] = floor(scale * out->pair[s * slots + slot]);
  }
  out->times.p2p = floor(scale * out->times.p2p);
}

static double apart(double a, double b, double of) { return fabs(a - b) / (of > 0 ? of : 1); }

/* The largest difference of any figure, relative to the makespan. */
static double difference(const pp_simulation *whole, const pp_simulation *steady) {
  const double of = whole->makespan;
  double most = fmax(apart(whole->makespan, steady->makespan, of), fabs(whole->bubble_fraction - steady->bubble_fraction));
  most = fmax(most, fmax(apart(whole->max_span, steady->max_span, of), apart(whole->span_bubble, steady->span_bubble, of)));
  most = fmax(most, fmax(apart(whole->max_idle, steady->max_idle, of), apart(whole->min_idle, steady->min_idle, of)));
  for (int r = 0; r < whole->ranks; r++) {
    most = fmax(most, fmax(apart(whole->busy[r], steady->busy[r], of), apart(whole->idle[r], steady->idle[r], of)));
    most = fmax(most, apart(whole->span[r], steady->span[r], of));
  }
  return most;
}

/* Compares random steps → how many. */
static int compare(uint64_t seed, int steps, int most, double scale, double tolerance) {
  int left_out = 0;
  for (int k = 0; k < steps; k++) {
    static random_times random;
    const pp_schedule_request request = random_request(&seed, most);
    pp_schedule_request shorter;
    pp_simulation expected, got;
    int64_t run;
    pp_error error;
    assert_true(pp_steady_shorten(&request, &shorter));
    pp_schedule whole = built(request), program = built(shorter);
    set_times(&whole, &seed, scale, &random);
    assert_int_equal(pp_simulate(&whole, &random.times, false, &expected, &error), PP_OK);
    if (pp_steady_simulate(&program, request.microbatches, &random.times, INT64_MAX, &got, &run, &error) != PP_OK) fail_msg("%s", error.message);
    if (!(difference(&expected, &got) <= tolerance))
      fail_msg("%s P %d V %d M %d group %d: %.17g, not %.17g; apart by %g", whole.traits.name, request.ranks, request.chunks,
               request.microbatches, request.group, got.makespan, expected.makespan, difference(&expected, &got));
    left_out += run < (request.microbatches - shorter.microbatches) / (program.chains * (shorter.group > 0 ? shorter.group : 1)) / 2;
    pp_simulation_free(&expected);
    pp_simulation_free(&got);
    pp_schedule_free(&whole);
    pp_schedule_free(&program);
  }
  return left_out;
}

/* Sums of whole numbers below 2^53 do not round, so nothing hides in a tolerance: what periods leave out would have changed no bit. */
static void whole_numbers_come_out_to_the_last_bit(void **state) {
  (void)state;
  assert_true(compare(1, 1500, 3000, 65536, 0) > 900);
  assert_true(compare(2, 20, 100000, 65536, 0) > 15);
}

/* The whole simulation adds as many numbers as there are actions, each rounded: that alone is 10⁻¹². */
static void other_times_come_out_but_for_rounding(void **state) {
  (void)state;
  assert_true(compare(3, 1500, 3000, 0, 1e-11) > 900);
}

/*
** 1F1B on two ranks, whose second takes F = B = 1 and whose first F = B = 1 + e. Rank 0 waits for B0 alone, which arrives at (1 + e) + 2, then runs M B's and
** M − 2 F's without a pause, for rank 1 is faster; but its last B waits for rank 1's last F and B, which take 2 after rank 0's last F, while
** rank 0 runs a B of 1 + e: 3 + e + (2M − 2)(1 + e) + 1 − e = 2M(1 + e) + 2(1 − e). At 10⁹ microbatches nothing but periods can tell.
*/
static void a_slower_first_rank_decides_in_the_end(void **state) {
  (void)state;
  const int microbatches = 1000000000;
  for (int power = 1; power <= 30; power++) {
    const double e = ldexp(1, -power);
    const pp_stage_times stage[] = { { 1 + e, 0, 0, 1 + e }, { 1, 0, 0, 1 } };
    const pp_times times = { .stage = stage };
    const pp_schedule_request request = request_of(PP_1F1B, 2, microbatches);
    pp_schedule_request shorter;
    pp_simulation got;
    int64_t run;
    assert_true(pp_steady_shorten(&request, &shorter));
    pp_schedule program = built(shorter);
    assert_int_equal(pp_steady_simulate(&program, microbatches, &times, INT64_MAX, &got, &run, NULL), PP_OK);
    const double expected = 2.0 * microbatches * (1 + e) + 2 * (1 - e);
    if (!(fabs(got.makespan - expected) <= 1e-12 * expected)) fail_msg("e 2^-%d: %.17g, not %.17g", power, got.makespan, expected);
    assert_true(run < 1000);
    pp_simulation_free(&got);
    pp_schedule_free(&program);
  }
}

/* Narayanan et al. 2021, section 2.2: (M + P − 1)(F + B), and (P − 1)/(M + P − 1) of it is bubble; here of numbers without rounding. */
static void equal_stages_take_what_the_closed_form_says(void **state) {
  (void)state;
  const pp_schedule_request request = request_of(PP_1F1B, 8, 1 << 30);
  pp_stage_times stage[8];
  const pp_times times = { .stage = stage };
  pp_schedule_request shorter;
  pp_simulation got;
  for (int s = 0; s < 8; s++) stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
  assert_true(pp_steady_shorten(&request, &shorter));
  pp_schedule program = built(shorter);
  assert_int_equal(pp_steady_simulate(&program, 1 << 30, &times, INT64_MAX, &got, NULL, NULL), PP_OK);
  assert_true(got.makespan == 3.0 * ((1 << 30) + 7));
  for (int r = 0; r < 8; r++) assert_true(got.busy[r] == 3.0 * (1 << 30));
  pp_simulation_free(&got);
  pp_schedule_free(&program);
}

/* Equal stages add the same from the first period on: the whole rest is left out at once, not by halves, of which a billion would need thirty. */
static void a_growth_that_lasts_is_followed_to_the_end_at_once(void **state) {
  (void)state;
  pp_stage_times stage[8];
  const pp_times times = { .stage = stage };
  int64_t run[2];
  for (int s = 0; s < 8; s++) stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
  for (int k = 0; k < 2; k++) {
    const pp_schedule_request request = request_of(PP_1F1B, 8, k == 0 ? 1000 : 1 << 30);
    pp_schedule_request shorter;
    pp_simulation got;
    assert_true(pp_steady_shorten(&request, &shorter));
    pp_schedule program = built(shorter);
    assert_int_equal(pp_steady_simulate(&program, request.microbatches, &times, INT64_MAX, &got, &run[k], NULL), PP_OK);
    pp_simulation_free(&got);
    pp_schedule_free(&program);
  }
  assert_int_equal(run[0], run[1]);
}

/* However many microbatches there are and however slowly ranks drift apart. */
static void the_work_does_not_grow_with_the_microbatches(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int k = 0; k < 3000; k++) {
    static random_times random;
    const pp_schedule_request request = random_request(&seed, 1000000000);
    pp_schedule_request shorter;
    pp_simulation got;
    int64_t run;
    pp_error error;
    assert_true(pp_steady_shorten(&request, &shorter));
    assert_true(shorter.microbatches <= 24 * request.ranks);
    pp_schedule program = built(shorter);
    set_times(&program, &seed, 0, &random);
    if (pp_steady_simulate(&program, request.microbatches, &random.times, INT64_MAX, &got, &run, &error) != PP_OK) fail_msg("%s", error.message);
    if (run > 400 * request.ranks)
      fail_msg("%s P %d M %d: %lld periods", program.traits.name, request.ranks, request.microbatches, (long long)run);
    pp_simulation_free(&got);
    pp_schedule_free(&program);
  }
}

static void what_has_no_periods_has_no_shorter_program(void **state) {
  static const pp_schedule_kind others[] = { PP_GPIPE, PP_LOOPED_BFS, PP_ZB_AUTO, PP_V_HALF, PP_V_MIN };
  (void)state;
  for (int k = 0; k < 5; k++) {
    const pp_schedule_request request = request_of(others[k], 4, 1000000);
    pp_schedule_request shorter;
    assert_false(pp_steady_shorten(&request, &shorter));
  }
  for (int k = 0; k < KINDS; k++) {
    pp_schedule_request request = request_of(periodic[k], 4, 1000000), shorter, again;
    assert_true(pp_steady_shorten(&request, &shorter));
    assert_false(pp_steady_shorten(&shorter, &again));
  }
}

/* Two periods of which each adds as much cannot be told from the first two. */
static void more_periods_than_allowed_are_not_run(void **state) {
  (void)state;
  const pp_schedule_request request = request_of(PP_1F1B, 1, 2000000000);
  const pp_stage_times stage = { 1, 0, 0, 1 };
  const pp_times times = { .stage = &stage };
  pp_schedule_request shorter;
  pp_simulation got;
  pp_error error;
  assert_true(pp_steady_shorten(&request, &shorter));
  pp_schedule program = built(shorter);
  assert_int_equal(pp_steady_simulate(&program, request.microbatches, &times, 1, &got, NULL, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.no_steady_state");
  assert_null(got.busy);
  assert_int_equal(pp_steady_simulate(&program, request.microbatches, &times, 100, &got, NULL, &error), PP_OK);
  pp_simulation_free(&got);
  const pp_stage_times negative = { -1, 0, 0, 1 };
  const pp_times wrong = { .stage = &negative };
  assert_int_equal(pp_steady_simulate(&program, request.microbatches, &wrong, INT64_MAX, &got, NULL, &error), PP_INVALID);
  pp_schedule_free(&program);
}

/* Whatever it was about to do next: no answer and nothing kept, or, where nothing was left to do, the right one. */
static void work_that_is_refused_ends_it(void **state) {
  (void)state;
  const pp_schedule_request request = request_of(PP_1F1B, 3, 1000000);
  const pp_stage_times stage[] = { { 1.1, 0, 0, 1.1 }, { 1, 0, 0, 1 }, { 1.01, 0, 0, 1.01 } };
  const pp_times times = { .stage = stage };
  pp_schedule_request shorter;
  pp_simulation got;
  pp_meter meter = { .limit = UINT64_MAX, .cap = SIZE_MAX };
  assert_true(pp_steady_shorten(&request, &shorter));
  pp_schedule program = built(shorter);
  pp_meter_use(&meter);
  assert_int_equal(pp_steady_simulate(&program, request.microbatches, &times, INT64_MAX, &got, NULL, NULL), PP_OK);
  const uint64_t whole = meter.spent;
  const double makespan = got.makespan;
  pp_simulation_free(&got);
  int refused = 0;
  assert_in_range(whole, 100, 10000000);
  for (uint64_t limit = 0; limit < whole; limit += 1 + whole / 997) {
    meter = (pp_meter){ .limit = limit, .cap = SIZE_MAX };
    if (pp_steady_simulate(&program, request.microbatches, &times, INT64_MAX, &got, NULL, NULL) == PP_OK) {
      assert_true(got.makespan == makespan);
      pp_simulation_free(&got);
    } else {
      refused++;
    }
    assert_int_equal(meter.used, 0);
  }
  assert_true(refused > 100);
  pp_meter_use(NULL);
  pp_schedule_free(&program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole_numbers_come_out_to_the_last_bit),
    cmocka_unit_test(other_times_come_out_but_for_rounding),
    cmocka_unit_test(a_slower_first_rank_decides_in_the_end),
    cmocka_unit_test(equal_stages_take_what_the_closed_form_says),
    cmocka_unit_test(a_growth_that_lasts_is_followed_to_the_end_at_once),
    cmocka_unit_test(the_work_does_not_grow_with_the_microbatches),
    cmocka_unit_test(what_has_no_periods_has_no_shorter_program),
    cmocka_unit_test(more_periods_than_allowed_are_not_run),
    cmocka_unit_test(work_that_is_refused_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

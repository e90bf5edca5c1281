/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that no constructor makes: ranks of unequally many stages, one rank, one stage, a direction each way; worked out by hand. */
#define _XOPEN_SOURCE 700

#include "schedules.h"

#include <sys/resource.h>
#include <time.h>

#include "core/runtime.h"
#include "core/schedule_csv.h"
#include "core/times.h"

static const pp_hardware plain = { .contention = 1 };

static pp_schedule read_text(const char *text, int directions) {
  pp_schedule schedule;
  pp_error error;
  if (pp_schedule_read_csv(text, strlen(text), directions, &schedule, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return schedule;
}

static pp_status run(const pp_schedule *schedule, const pp_runtime *runtime, double p2p, pp_simulation *result, pp_error *error) {
  enum { MOST = 16 };
  pp_stage_times stage[MOST];
  for (int s = 0; s < MOST; s++) stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
  assert_true(schedule->stages <= MOST);
  pp_times times = { .stage = stage, .p2p = p2p };
  return pp_runtime_simulate(schedule, &times, runtime, &plain, true, result, error);
}

/* Under torch-multi, whatever its queues, receives and pairs. */
static void assert_makespan(const char *text, double p2p, double seconds) {
  pp_schedule schedule = read_text(text, 1);
  for (int k = 0; k < 12; k++) {
    pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
    runtime.queues = (pp_queueing)(k % 2);
    runtime.receives = (pp_receiving)(k / 2 % 2);
    runtime.pairs = (pp_pairing)(k / 4);
    pp_simulation result;
    pp_error error;
    if (run(&schedule, &runtime, p2p, &result, &error) != PP_OK) fail_msg("%s: %s", text, error.message);
    assert_near(result.makespan, seconds);
    pp_simulation_free(&result);
  }
  pp_schedule_free(&schedule);
}

/* F 1, B 2 of each stage, one microbatch, so that nothing runs beside anything else: 3 seconds a stage, and a hop wherever the rank changes. */
static void one_microbatch_takes_the_way_of_its_stages(void **state) {
  (void)state;
  assert_makespan("0F0,2F0,2B0,0B0\n1F0,1B0\n", 0.5, 3 * 3 + 4 * 0.5);                        /* ranks 0, 1, 0 */
  assert_makespan("1F0,1B0\n0F0,2F0,2B0,0B0\n", 0.5, 3 * 3 + 4 * 0.5);                        /* ranks 1, 0, 1 */
  assert_makespan("0F0,1F0,4F0,4B0,1B0,0B0\n2F0,2B0\n3F0,3B0\n", 0.5, 5 * 3 + 6 * 0.5);        /* ranks 0, 0, 1, 2, 0 */
  assert_makespan("3F0,3B0\n0F0,1F0,2F0,2B0,1B0,0B0\n", 0.5, 4 * 3 + 2 * 0.5);                /* ranks 1, 1, 1, 0 */
  assert_makespan("0F0,1F0,2F0,2B0,1B0,0B0\n", 0.5, 3 * 3);                                    /* one rank sends nothing */
  assert_makespan("0F0,0B0\n", 0.5, 3);
}

/* Under one rank's order its actions follow each other without a wait, pairs included: F and B of two microbatches on two stages. */
static void one_rank_is_always_busy(void **state) {
  (void)state;
  assert_makespan("0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,1B1,0B1\n", 0.5, 2 * 2 * 3);
}

static void the_other_direction_runs_beside_the_first(void **state) {
  (void)state;
  pp_schedule schedule = read_text("0F0,3F0,3B0,0B0\n1F0,2F0,1B0,2B0\n", 2);   /* down 0 → 1, up 2 → 3 */
  pp_simulation result;
  pp_error error;
  assert_int_equal(run(&schedule, pp_runtime_preset(PP_RUNTIME_IDEAL), 0, &result, &error), PP_OK);
  /* Rank 1: 1F from 1 to 2, 2F to 3, 1B to 5. Rank 0: 0F to 1, 3F from 3 to 4, 3B to 6, 0B to 8. 2B on rank 1 from 6 to 8. */
  assert_near(result.makespan, 8);
  pp_simulation_free(&result);
  assert_int_equal(run(&schedule, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), 0, &result, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "torch-multi runs no bidirectional schedule such as csv");
  pp_schedule_free(&schedule);
}

/* -- peaks ----------------------------------------------------------------------------------------------------------------------------- */

static void assert_peaks(const char *text, const pp_stage_bytes *bytes, const double *expected) {
  pp_schedule schedule = read_text(text, 1);
  double peaks[8];
  pp_error error;
  assert_int_equal(pp_runtime_peaks(&schedule, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), bytes, peaks, &error), PP_OK);
  for (int rank = 0; rank < schedule.request.ranks; rank++)
    if (!is_near(peaks[rank], expected[rank])) fail_msg("%s: rank %d holds %g", text, rank, peaks[rank]);
  pp_schedule_free(&schedule);
}

/*
** PyTorch's rule (runtime_memory.c): for each microbatch a stage has a buffer for what it receives forward, unless it is the first, and one
** for what it receives backward, unless it is the last, whose result is kept instead. stored, message and kept are 1 here.
*/
static void a_rank_holds_the_buffers_of_its_own_stages(void **state) {
  (void)state;
  pp_stage_bytes one[8];
  for (int s = 0; s < 8; s++) one[s] = (pp_stage_bytes){ .stored = 1, .pending = 1, .message = 1, .output = 1, .kept = 1 };
  /* rank 0: stage 0 has 1 buffer, stage 2 has 1 and its result, and two F are held at once. Rank 1: 2 buffers, 1 F. */
  assert_peaks("0F0,2F0,2B0,0B0\n1F0,1B0\n", one, (const double[]){ 3 + 2, 2 + 1 });
  /* the same with the ranks exchanged */
  assert_peaks("1F0,1B0\n0F0,2F0,2B0,0B0\n", one, (const double[]){ 2 + 1, 3 + 2 });
  /* rank 0: stages 0 (1), 1 (2) and 4 (2), three F held; ranks 1 and 2: 2 and one F */
  assert_peaks("0F0,1F0,4F0,4B0,1B0,0B0\n2F0,2B0\n3F0,3B0\n", one, (const double[]){ 5 + 3, 2 + 1, 2 + 1 });
  /* one stage: its result, and its F */
  assert_peaks("0F0,0B0\n", one, (const double[]){ 1 + 1 });
  /* one rank of two stages, two microbatches: 3 buffers for each, four F held */
  assert_peaks("0F0,1F0,0F1,1F1,1B0,0B0,1B1,0B1\n", one, (const double[]){ 2 * 3 + 4 });
}

/*
** Ranks 0, 1, 2, 0, split backwards where there is an I. Rank 0: buffers 10 (stage 0's backward) + 40 (stage 3's forward) + 7 kept; held
** 1 after 0F, 9 after 3F, 45 after 3I, which frees 8, leaves 4 and sends 40; 0I does nothing, as PyTorch needs no gradient of the
** model's input; 3W frees 4, 0W the 1 that is left of 0F. Rank 1: buffers 20 + 20; 2 after F, 1 + 20 after I. Rank 2: 30 + 30, and F's 4.
*/
static void bytes_are_those_of_each_stage(void **state) {
  (void)state;
  const pp_stage_bytes bytes[] = {
    { .stored = 1, .pending = 0.5, .message = 10 }, { .stored = 2, .pending = 1, .message = 20 },
    { .stored = 4, .pending = 2, .message = 30 }, { .stored = 8, .pending = 4, .message = 40, .output = 7, .kept = 7 },
  };
  assert_peaks("0F0,3F0,3I0,0I0,3W0,0W0\n1F0,1I0,1W0\n2F0,2B0\n", bytes, (const double[]){ 57 + 45, 40 + 21, 60 + 4 });
}

/*
** One rank after the other does its part of one microbatch after the other: a round of PyTorch's planning for every action, in which all
** other ranks wait. 1,048,560 actions; were each round a look at all 65,535 ranks, it would take minutes.
*/
static void ranks_that_wait_cost_nothing(void **state) {
  (void)state;
  enum { RANKS = 65535, MICROBATCHES = 8 };
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_CPU, &limit), 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = (rlim_t)clock() / CLOCKS_PER_SEC + 30;
  assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
  char *text = malloc((size_t)RANKS * MICROBATCHES * 16), *at = text;
  pp_stage_times *stage = malloc(RANKS * sizeof *stage);
  assert_true(text && stage);
  for (int s = 0; s < RANKS; s++) {
    stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
    for (int m = 0; m < MICROBATCHES; m++) at += sprintf(at, "%dF%d,%dB%d%c", s, m, s, m, m + 1 < MICROBATCHES ? ',' : '\n');
  }
  pp_schedule schedule = read_text(text, 1);
  pp_times times = { .stage = stage };
  pp_simulation result;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), &plain, false, &result, NULL), PP_OK);
  assert_near(result.makespan, 3.0 * RANKS * MICROBATCHES);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  free(stage);
  free(text);
  limit.rlim_cur = before;
  setrlimit(RLIMIT_CPU, &limit);
}

/* -- what an extra of the last stage is, in a pair -------------------------------------------------------------------------------------- */

/* Rank 0 holds stages 0 and 2, rank 1 only stage 1. The head's B of 100 belongs to stage 2, in the pairs where 2 runs backward. */
static void a_pair_has_the_extras_of_the_stages_that_its_rank_holds(void **state) {
  (void)state;
  pp_schedule schedule = read_text("0F0,2F0,(0F1;2B0)OVERLAP_F_B,0B0,2F1,2B1,0B1\n1F0,1B0,1F1,1B1\n", 1);
  pp_stage_times stage[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };
  double pair[] = { 3, 3, 3, -1, 3, 3 };   /* stage 1 has no second slot */
  const pp_time_extras extras = { .first = { .forward = 10 }, .last = { .full = 100 } };
  const double expected[] = { 13, 113, 3, -1, 3, 103 };
  assert_int_equal(pp_times_adjust(&schedule, &extras, stage, pair, NULL, NULL), PP_OK);
  for (int k = 0; k < 6; k++) assert_near(pair[k], expected[k]);
  /* The same by the forward's stage, and beside it by the backward's. */
  double by_stage[] = { 3, 3, 3 }, beside[3];
  assert_int_equal(pp_times_adjust(&schedule, &extras, stage, by_stage, beside, NULL), PP_OK);
  const pp_times matrix = { .stage = stage, .pair = pair }, sums = { .stage = stage, .pair = by_stage, .pair_beside = beside };
  for (int forward = 0; forward <= 2; forward += 2)
    for (int backward = 0; backward <= 2; backward += 2)
      assert_near(pp_pair_seconds(&schedule, &sums, forward, backward), pp_pair_seconds(&schedule, &matrix, forward, backward));
  pp_schedule_free(&schedule);
}

/* -- programs that are none of a training step ------------------------------------------------------------------------------------------ */

static void what_is_not_verified_is_not_run(void **state) {
  (void)state;
  static const struct { const char *text, *id; } cases[] = {
    { "0F0,0F1\n1F0,1F1\n", "engine.missing_action" },          /* only forwards */
    { "0F0,1F0,0F1,2F0\n", "engine.missing_action" },           /* fewer actions than (stage, microbatch) pairs */
    { "1F0,0F0,0F1,0B0,0B1\n1B0,1F1,1B1\n", "engine.wrong_rank" },
    { "0F0,0B0,0B0\n", "engine.duplicate_action" },
    { "0B0,0F0\n", "engine.action_order" },
    { "0F0,1B0,1F0,0B0\n", "engine.action_order" },
    { "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "engine.deadlock" },
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    pp_schedule schedule = read_text(cases[k].text, 1);
    assert_false(schedule.verified);
    for (int kind = PP_RUNTIME_IDEAL; kind <= PP_RUNTIME_TORCH_MULTI; kind += PP_RUNTIME_TORCH_MULTI) {
      pp_simulation result;
      pp_error error;
      assert_int_equal(run(&schedule, pp_runtime_preset((pp_runtime_kind)kind), 0, &result, &error), PP_ILLEGAL);
      assert_string_equal(error.id, cases[k].id);
      assert_null(result.busy);
    }
    pp_schedule_free(&schedule);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_microbatch_takes_the_way_of_its_stages),
    cmocka_unit_test(one_rank_is_always_busy),
    cmocka_unit_test(the_other_direction_runs_beside_the_first),
    cmocka_unit_test(a_rank_holds_the_buffers_of_its_own_stages),
    cmocka_unit_test(bytes_are_those_of_each_stage),
    cmocka_unit_test(ranks_that_wait_cost_nothing),
    cmocka_unit_test(a_pair_has_the_extras_of_the_stages_that_its_rank_holds),
    cmocka_unit_test(what_is_not_verified_is_not_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

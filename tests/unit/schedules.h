/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules.h: what the tests of schedules share: random numbers with a seed, one-line builders, simulation with equal stages.
*/
#ifndef TEST_SCHEDULES_H
#define TEST_SCHEDULES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/schedule.h"
#include "core/schedule_verify.h"
#include "core/simulate.h"

/* Numbers 1 … n from a linear congruential generator (Knuth's MMIX constants): the same on every machine. */
static inline int draw(uint64_t *seed, int n) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return 1 + (int)((*seed >> 33) % (uint64_t)n);
}

/* A request of a kind with the chunks it needs (interleaved: 2). */
static inline pp_schedule_request request_of(pp_schedule_kind kind, int ranks, int microbatches) {
  int chunks = pp_schedule_traits_of(kind)->chunks;
  return (pp_schedule_request){ .kind = kind, .ranks = ranks, .microbatches = microbatches, .chunks = chunks ? chunks : 2 };
}

static inline pp_schedule built(pp_schedule_request request) {
  pp_schedule schedule;
  pp_error error;
  if (pp_schedule_build(&request, &schedule, &error) != PP_OK) fail_msg("%s", error.message);
  return schedule;
}

typedef struct {
  double f, i, w, fb;   /* fb 0: F + I + W */
  double p2p;
} equal_times;

/* Simulates with the same times on every stage; B = I + W. The caller frees the result. */
static inline pp_simulation simulated(const pp_schedule *schedule, equal_times times) {
  size_t stages = (size_t)schedule->stages, pairs = stages * (size_t)schedule->chunks_per_rank;
  pp_stage_times *stage = malloc(stages * sizeof *stage);
  double *pair = malloc(pairs * sizeof *pair);
  pp_simulation result;
  pp_error error;
  if (!stage || !pair) abort();
  for (size_t s = 0; s < stages; s++)
    stage[s] = (pp_stage_times){ .forward = times.f, .input = times.i, .weight = times.w, .full = times.i + times.w };
  for (size_t k = 0; k < pairs; k++) pair[k] = times.fb > 0 ? times.fb : times.f + times.i + times.w;
  pp_times all = { .stage = stage, .pair = pair, .p2p = times.p2p };
  pp_status status = pp_simulate(schedule, &all, false, &result, &error);
  free(stage);
  free(pair);
  if (status != PP_OK) fail_msg("%s", error.message);
  return result;
}

/* The rank's actions with commas between them, "OVERLAP_F_B" left out, in a static buffer. */
static inline const char *actions_of(const pp_schedule *schedule, int rank) {
  static char text[1 << 16];
  char *at = text;
  for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
    char one[PP_ACTION_TEXT];
    pp_action_print(one, sizeof one, &schedule->action[i]);
    char *suffix = strstr(one, "OVERLAP");
    if (suffix) *suffix = '\0';
    at += snprintf(at, (size_t)(text + sizeof text - at), "%s%s", at == text ? "" : ",", one);
  }
  return text;
}

/* Peak in chunks of a rank; pending 1: freed at W, 0: freed at I. */
static inline double peak_of(const pp_schedule *schedule, int rank, double pending) {
  double ones[512], pendings[512];
  for (int s = 0; s < schedule->stages && s < 512; s++) {
    ones[s] = 1;
    pendings[s] = pending;
  }
  return pp_schedule_peak(schedule, rank, ones, pendings);
}

static inline int is_near(double a, double b) { return fabs(a - b) <= 1e-9 * (1 + fabs(b)); }
#define assert_near(a, b) assert_true(is_near(a, b))

#endif

/*
** schedule_bench.c: nanoseconds an action for building, verifying and simulating, from a plan's size to millions of actions: all are linear.
** CPU time of the fastest of several runs. Rows of bench.sh.
*/
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/schedule.h"
#include "core/schedule_verify.h"
#include "core/simulate.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Repetitions that give each timing some milliseconds. */
static int repetitions(size_t actions) {
  size_t times = 4000000 / (actions + 1);
  return times < 1 ? 1 : (int)times;
}

static void keep_least(double *least, double value) {
  if (*least <= 0 || value < *least) *least = value;
}

static void bench(pp_schedule_kind kind, int ranks, int microbatches) {
  const pp_schedule_traits *traits = pp_schedule_traits_of(kind);
  pp_schedule_request request = { .kind = kind, .ranks = ranks, .microbatches = microbatches, .chunks = traits->chunks ? traits->chunks : 2 };
  pp_schedule schedule;
  pp_error error;
  if (pp_schedule_build(&request, &schedule, &error) != PP_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  size_t actions = schedule.first[ranks], pairs = (size_t)schedule.stages * (size_t)schedule.chunks_per_rank;
  pp_stage_times *stage = malloc((size_t)schedule.stages * sizeof *stage);
  double *pair = malloc(pairs * sizeof *pair);
  if (!stage || !pair) exit(1);
  for (int s = 0; s < schedule.stages; s++) stage[s] = (pp_stage_times){ 1 + .01 * (s % 3), 1.1, .9, 2 };
  for (size_t k = 0; k < pairs; k++) pair[k] = 2.6;
  pp_times times = { .stage = stage, .pair = pair, .p2p = .01 };
  pp_workspace workspace = { 0 };
  double build = 0, verify = 0, simulate = 0;
  int n = repetitions(actions);
  for (int pass = 0; pass < 5; pass++) {
    double start = seconds();
    for (int k = 0; k < n; k++) {
      pp_schedule again;
      if (pp_schedule_build(&request, &again, &error) != PP_OK) exit(1);
      pp_schedule_free(&again);
    }
    double built = seconds();
    for (int k = 0; k < n; k++)
      if (pp_schedule_verify(&schedule, &error) != PP_OK) exit(1);
    double verified = seconds();
    for (int k = 0; k < n; k++) {
      pp_simulation result;
      if (pp_simulate_in(&schedule, &times, false, &workspace, &result, &error) != PP_OK) exit(1);
    }
    double done = seconds();
    keep_least(&build, built - start);
    keep_least(&verify, verified - built);
    keep_least(&simulate, done - verified);
  }
  double scale = 1e9 / ((double)n * (double)actions);
  printf("schedule\t%s, P %d, M %d\tbuild %.1f, verify %.1f, simulate %.1f ns an action\t%zu actions\n", traits->name, ranks, microbatches,
         build * scale, verify * scale, simulate * scale, actions);
  pp_workspace_free(&workspace);
  free(pair);
  free(stage);
  pp_schedule_free(&schedule);
}

int main(void) {
  static const int sizes[][2] = { { 8, 64 }, { 16, 120 }, { 16, 960 }, { 64, 4096 } };
  for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
    for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
      int ranks = sizes[size][0], microbatches = sizes[size][1];
      if (kind == PP_INTERLEAVED_1F1B) microbatches -= microbatches % ranks;
      bench((pp_schedule_kind)kind, ranks, microbatches);
    }
  return 0;
}

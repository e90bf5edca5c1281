/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_bench.c: nanoseconds an action for building, verifying and simulating schedules of a thousand to ten million actions: all three
** are linear, so the time of an action may grow only by what no longer fits the caches. CPU time of the fastest of several runs. Rows of
** bench.sh; with arguments KIND P M the three numbers and the actions of that one schedule.
**
** What bounds simulation: while it fits the caches, the chain of a maximum and an addition of floating-point numbers an action (3 ns), and a
** mispredicted branch whenever a rank has to wait for another (after every second action in 1F1B); beyond them, memory: an action is
** 16 bytes to read, a result 8 to write and read. A pair is one action here, with the work of two. Greedy kinds are not written down but
** found, step by step, which is what their building costs.
*/
#define _POSIX_C_SOURCE 200809L

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/schedule.h"
#include "core/schedule_verify.h"
#include "core/simulate.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Repetitions that give each timing some milliseconds; fewer where one build takes long. */
static int repetitions(size_t actions, double build_seconds) {
  double times = 4e6 / (double)(actions + 1), most = .02 / build_seconds;
  if (most < times) times = most;
  return times < 1 ? 1 : (int)times;
}

static void keep_least(double *least, double value) {
  if (*least <= 0 || value < *least) *least = value;
}

typedef struct {
  double build, verify, simulate;   /* nanoseconds an action */
  size_t actions;
} timing;

static timing bench(pp_schedule_request request) {
  pp_schedule schedule;
  pp_error error;
  double before = seconds();
  if (pp_schedule_build(&request, &schedule, &error) != PP_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  double once = seconds() - before;
  size_t actions = schedule.first[request.ranks], pairs = (size_t)schedule.stages * (size_t)schedule.chunks_per_rank;
  pp_stage_times *stage = malloc((size_t)schedule.stages * sizeof *stage);
  double *pair = malloc(pairs * sizeof *pair);
  if (!stage || !pair) exit(1);
  for (int s = 0; s < schedule.stages; s++) stage[s] = (pp_stage_times){ 1 + .01 * (s % 3), 1.1, .9, 2 };
  for (size_t k = 0; k < pairs; k++) pair[k] = 2.6;
  pp_times times = { .stage = stage, .pair = pair, .p2p = .01 };
  pp_workspace workspace = { 0 };
  timing best = { .actions = actions };
  int n = repetitions(actions, once > 1e-9 ? once : 1e-9);
  for (int pass = 0; pass < (actions > 1000000 ? 3 : 5); pass++) {
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
    double done = seconds(), scale = 1e9 / ((double)n * (double)actions);
    keep_least(&best.build, scale * (built - start));
    keep_least(&best.verify, scale * (verified - built));
    keep_least(&best.simulate, scale * (done - verified));
  }
  pp_workspace_free(&workspace);
  free(pair);
  free(stage);
  pp_schedule_free(&schedule);
  return best;
}

static pp_schedule_request request_of(pp_schedule_kind kind, int ranks, int microbatches) {
  int chunks = pp_schedule_traits_of(kind)->chunks;
  return (pp_schedule_request){ .kind = kind, .ranks = ranks, .microbatches = microbatches - microbatches % ranks, .chunks = chunks ? chunks : 2 };
}

static timing print_row(pp_schedule_request request) {
  timing found = bench(request);
  printf("schedule\t%s, P %d, M %d\tbuild %.1f, verify %.1f, simulate %.1f ns an action\t%zu actions\n", pp_schedule_traits_of(request.kind)->name,
         request.ranks, request.microbatches, found.build, found.verify, found.simulate, found.actions);
  fflush(stdout);
  return found;
}

/* Microbatches for which a kind on that many ranks has about so many actions. */
static int microbatches_for(pp_schedule_kind kind, int ranks, double actions) {
  int sample = 16 * ranks;
  pp_schedule_request request = request_of(kind, ranks, sample);
  return (int)(actions / (double)pp_schedule_actions(&request) * sample + .5);
}

/*
** One build of ten million actions in memory that nobody used before: the kernel zeroes every page, which takes several times longer than
** writing the actions. From then on, where the C library allows, memory that was used before is used again.
*/
static void print_fresh_build(void) {
  pp_schedule_request request = request_of(PP_1F1B, 8, 625000);
  pp_schedule schedule;
  pp_error error;
  double start = seconds();
  if (pp_schedule_build(&request, &schedule, &error) != PP_OK) exit(1);
  double done = seconds();
  printf("schedule\t1f1b, P 8, M 625000, in fresh memory\tbuild %.1f ns an action\t%zu actions\n",
         1e9 * (done - start) / (double)schedule.first[8], schedule.first[8]);
  pp_schedule_free(&schedule);
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

/* From a thousand actions, two microbatches a rank at least, to ten million. */
static void print_growth(pp_schedule_kind kind) {
  enum { RANKS = 8, SIZES = 5 };
  timing first = { 0 }, last = { 0 };
  double actions = 1e3;
  for (int size = 0; size < SIZES; size++, actions *= 10) {
    timing found = print_row(request_of(kind, RANKS, microbatches_for(kind, RANKS, actions)));
    if (size == 0) first = found;
    last = found;
  }
  printf("schedule\t%s, growth from %zu to %zu actions\tbuild %.2f, verify %.2f, simulate %.2f times an action's time\twanted: at most 2\n",
         pp_schedule_traits_of(kind)->name, first.actions, last.actions, last.build / first.build, last.verify / first.verify,
         last.simulate / first.simulate);
}

int main(int count, char **argument) {
  if (count == 4) {
    int kind = pp_schedule_kind_of(argument[1]);
    if (kind < 0) return 1;
    timing found = bench(request_of((pp_schedule_kind)kind, atoi(argument[2]), atoi(argument[3])));
    printf("%g %g %g %zu\n", found.build, found.verify, found.simulate, found.actions);
    return 0;
  }
  print_fresh_build();
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    print_growth((pp_schedule_kind)kind);
    print_row(request_of((pp_schedule_kind)kind, 64, 4096));
  }
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_bound.c: a lower bound of a step's seconds, without building anything. See evaluate_bound.h.
*/
#include "core/evaluate_bound.h"

#include <math.h>

#include "core/evaluate_time.h"

/* What is certain about one rank. All in seconds. */
typedef struct {
  double work;       /* everything it executes, no overlap */
  double before;     /* of that, what precedes the end of its last backward: all but split-off W */
  double head, tail; /* the pipeline filling down to its earliest stage, draining from its earliest stage */
  double saving;     /* most that overlapped pairs save: every forward is in one at most */
} certain_work;

/* The rank's slots: its stages of both chains, at most as many as fit `slot`. */
static void add_stage(certain_work *rank, const pp_stage_seconds *stage, double microbatches, bool split) {
  double backward = split ? fmin(stage->full, stage->input + stage->weight) : stage->full;
  double until_input = split ? fmin(stage->full, stage->input) : stage->full;
  rank->work += microbatches * (stage->forward + backward);
  rank->before += microbatches * (stage->forward + until_input);
}

static double pair_saving(const pp_device *device, const pp_stage_seconds *ahead, const pp_stage_seconds *back) {
  return fmax(0, ahead->forward + back->full - pp_cost_pair(device, ahead, back));
}

/* The most that a pair with the stage's forward saves. Its backward is of the stage that a V or two chains put beside it, or of any in a loop. */
static double stage_saving(const pp_device *device, const pp_candidate *candidate, const pp_stage_seconds *seconds, int stage) {
  const int stages = pp_stages_count(candidate), ranks = candidate->layout.pipeline;
  double most = 0;
  if (pp_stages_traits(candidate)->placement != PP_PLACE_LOOP) return pair_saving(device, &seconds[stage], &seconds[stages - 1 - stage]);
  for (int other = stage % ranks; other < stages; other += ranks)
    most = fmax(most, pair_saving(device, &seconds[stage], &seconds[other]));
  return most;
}

static double rank_bound(const certain_work *rank) {
  return rank->head + fmax(fmax(0, rank->work - rank->saving), fmax(0, rank->before - rank->saving) + rank->tail);
}

double pp_evaluate_bound(const pp_priced *of) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  certain_work rank[PP_MAX_LAYERS];
  pp_device device;
  pp_timing timing = { 0 };
  double filled = 0, drained = 0;
  int ranks = of->candidate->layout.pipeline;
  if (pp_stages_fill(of, stages, NULL) != PP_OK) return INFINITY;
  pp_stages_seconds(of, stages, seconds);
  if (!traits) {
    timing.makespan_seconds = pp_evaluate_alone(of, stages, seconds, pp_evaluate_pairs_overlap(of), &timing.host_wait_seconds);
    pp_evaluate_finish(of, stages, &timing);
    return timing.step_seconds;
  }
  pp_evaluate_pair_device(of, &device);
  for (int r = 0; r < ranks; r++) rank[r] = (certain_work){ 0, 0, INFINITY, INFINITY, 0 };
  for (int s = 0; s < pp_stages_count(of->candidate); s++) {
    int holder[2], holders = pp_stages_ranks(of->candidate, s, holder);
    const double microbatches = (double)of->candidate->microbatches / traits->chains;
    if (s > 0) {
      int previous[2];
      pp_stages_ranks(of->candidate, s - 1, previous);
      double hop = previous[0] == holder[0] ? 0 : of->costs->hop;
      filled += seconds[s - 1].forward + hop;
      drained += (traits->split_backward ? fmin(seconds[s - 1].full, seconds[s - 1].input) : seconds[s - 1].full) + hop;
    }
    for (int i = 0; i < holders; i++) {
      certain_work *here = &rank[holder[i]];
      add_stage(here, &seconds[s], microbatches, traits->split_backward);
      here->head = fmin(here->head, filled);
      here->tail = fmin(here->tail, drained);
      if (pp_evaluate_pairs_overlap(of)) here->saving += microbatches * stage_saving(&device, of->candidate, seconds, s);
    }
  }
  double fastest = INFINITY;
  for (int r = 0; r < ranks; r++) {
    timing.makespan_seconds = fmax(timing.makespan_seconds, rank_bound(&rank[r]));
    fastest = fmin(fastest, pp_evaluate_slowness(of->problem, ranks, r));
  }
  timing.makespan_seconds *= fmin(1, fastest);  /* hops do not shrink, but as a bound it holds */
  pp_evaluate_finish(of, stages, &timing);
  return timing.step_seconds * (1 - 1e-9);  /* the sums above round differently from a simulation's */
}

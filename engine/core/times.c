/* SPDX-License-Identifier: Apache-2.0 */
/*
** times.c: see times.h.
*/
#include "core/times.h"

#include "core/meter.h"

static bool are_times(const pp_stage_times *times) {
  return pp_is_seconds(times->forward) && pp_is_seconds(times->input) && pp_is_seconds(times->weight) && pp_is_seconds(times->full);
}

static pp_status check_extras(const pp_schedule *schedule, const pp_time_extras *extras, pp_error *error) {
  if (!are_times(&extras->first)) return pp_fail(error, PP_INVALID, "extra times of the first stage must be " PP_SECONDS);
  if (!are_times(&extras->last)) return pp_fail(error, PP_INVALID, "extra times of the last stage must be " PP_SECONDS);
  if (!pp_is_seconds(extras->launch)) return pp_fail(error, PP_INVALID, "launch must be " PP_SECONDS ", got %g", extras->launch);
  for (int rank = 0; extras->rank_speed && rank < schedule->request.ranks; rank++)
    if (!(extras->rank_speed[rank] >= PP_LEAST_SPEED && extras->rank_speed[rank] <= PP_MOST_SPEED))
      return pp_fail(error, PP_INVALID, "rank_speed of rank %d must be %g … %g, got %g", rank, PP_LEAST_SPEED, PP_MOST_SPEED,
                     extras->rank_speed[rank]);
  return PP_OK;
}

/* The extra work of a stage: nothing, or that of its chain's ends; of both when the chain is one stage. */
static pp_stage_times extra_of(const pp_schedule *schedule, const pp_time_extras *extras, int stage) {
  pp_stage_times sum = { 0 };
  if (stage % schedule->stages_per_chain == 0) sum = extras->first;
  if ((stage + 1) % schedule->stages_per_chain == 0) {
    sum.forward += extras->last.forward;
    sum.input += extras->last.input;
    sum.weight += extras->last.weight;
    sum.full += extras->last.full;
  }
  return sum;
}

/* Of a pair whose forward is in that stage, with the backward of any of its rank's. */
static void adjust_pairs(const pp_schedule *schedule, const pp_time_extras *extras, int stage, double speed, double *pair) {
  const int rank = schedule->rank_of[stage];
  const double forward = extra_of(schedule, extras, stage).forward;
  for (int k = 0; k < pp_schedule_stages_on(schedule, rank); k++) {
    const double backward = extra_of(schedule, extras, pp_schedule_stages_of(schedule, rank)[k]).full;
    pair[k] = (pair[k] + forward + backward) / speed + extras->launch;
  }
}

pp_status pp_times_adjust(const pp_schedule *schedule, const pp_time_extras *extras, pp_stage_times *stage, double *pair, double *beside,
                          pp_error *error) {
  pp_status status = check_extras(schedule, extras, error);
  if (status != PP_OK) return status;
  int slots = schedule->chunks_per_rank;
  pp_spend((uint64_t)schedule->stages * (8 + (pair && !beside ? 4 * (uint64_t)slots : 0)));
  for (int s = 0; s < schedule->stages; s++) {
    double speed = extras->rank_speed ? extras->rank_speed[schedule->rank_of[s]] : 1;
    pp_stage_times extra = extra_of(schedule, extras, s);
    stage[s].forward = (stage[s].forward + extra.forward) / speed + extras->launch;
    stage[s].input = (stage[s].input + extra.input) / speed + extras->launch;
    stage[s].weight = (stage[s].weight + extra.weight) / speed + extras->launch;
    stage[s].full = (stage[s].full + extra.full) / speed + extras->launch;
    if (pair && !beside) adjust_pairs(schedule, extras, s, speed, pair + (size_t)s * (size_t)slots);
    if (pair && beside) pair[s] = (pair[s] + extra.forward) / speed + extras->launch;
    if (beside) beside[s] = extra.full / speed;
  }
  return PP_OK;
}

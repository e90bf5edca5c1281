/* SPDX-License-Identifier: Apache-2.0 */
/*
** floor.c: what a candidate takes at least. See floor.h.
*/
#include "core/floor.h"

#include <math.h>

#include "core/evaluate_memory.h"
#include "core/evaluate_time.h"
#include "core/stages.h"

pp_floor_parts pp_floor_parts_of(const pp_layout_costs *costs, bool kernel, const pp_stage *whole) {
  pp_floor_parts parts;
  pp_stage_seconds seconds;
  pp_cost_stage(whole, costs->seconds[kernel], &seconds);
  parts.work = seconds.forward + fmin(seconds.full, seconds.input + seconds.weight);
  parts.forward = seconds.forward;
  parts.alltoall = seconds.alltoall_forward + seconds.alltoall_backward;
  for (int i = 0; i < 2; i++) {
    pp_stage_memory held;
    pp_memory_stages(whole, 1, costs->bytes[i], &held);
    parts.state[i] = held.state.parameters + held.state.gradients + held.state.optimizer;
    parts.stored[i] = held.stored;
  }
  return parts;
}

/* Most that overlapped pairs save of a microbatch: all its all-to-all, or what is known to be hidden of it; where pairs were measured, all of
** its forward. */
static double most_saved(const pp_priced *of, const pp_floor_parts *parts) {
  if (!pp_evaluate_pairs_overlap(of)) return 0;
  if (of->costs->pair_share > 0) return parts->forward;
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  const double share = traits && traits->needs_kernel ? 0 : of->problem->device->hidden_share;  /* as pp_evaluate_pair_device */
  return (share > 0 ? share : 1) * parts->alltoall;
}

static double mean_seconds(const pp_priced *of, const pp_floor_parts *parts) {
  const pp_problem *problem = of->problem;
  double fastest = 1;
  for (int r = 0; problem->speeds > 0 && r < of->candidate->layout.pipeline; r++)
    fastest = fmin(fastest, pp_evaluate_slowness(problem, of->candidate->layout.pipeline, r));
  const double work = fmax(0, parts->work - most_saved(of, parts));
  return work * (double)of->candidate->microbatches / of->candidate->layout.pipeline * fastest;
}

static double mean_bytes(const pp_priced *of, const pp_floor_parts *parts) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  const int copies = traits ? traits->copies : 1;
  return (copies * parts->state[copies - 1] + parts->stored[copies - 1]) / of->candidate->layout.pipeline +
         pp_evaluate_overhead(of->problem, of->candidate, PP_EVERY_RANK);
}

pp_floor pp_floor_of(const pp_priced *of, const pp_floor_parts *parts) {
  /* the sums round differently from those over stages */
  return (pp_floor){ (mean_seconds(of, parts) + of->problem->step_overhead_seconds) * (1 - 1e-9), mean_bytes(of, parts) * (1 - 1e-9) };
}

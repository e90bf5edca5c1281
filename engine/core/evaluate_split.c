/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_split.c: by which seconds splits of one candidate are compared. See evaluate_split.h.
*/
#include "core/evaluate_split.h"

#include "core/evaluate_memory.h"
#include "core/evaluate_time.h"
#include "core/meter.h"

void pp_comparison_free(pp_comparison *comparison) {
  if (comparison->built) pp_schedule_free(&comparison->longer);
  comparison->built = false;
}

/* The group after which a schedule with groups repeats; elsewhere both directions of every rank. */
static int64_t period_of(const pp_candidate *candidate) {
  const int64_t group = pp_candidate_group(candidate);
  return group > 0 ? group : 2 * (int64_t)candidate->layout.pipeline;
}

/* Two periods more than the capped program, for interleaved groups may take turns, but not more than there are: then nothing has to be
** extrapolated. A microbatch of looped BFS goes round P ranks before it comes back, so that one says nothing of those after it; GPipe's step
** grows by the slowest F and the slowest B with each from the first one on. */
static int64_t longer_microbatches(const pp_candidate *candidate, const pp_schedule *program) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  if (traits->holds == PP_HOLDS_ALL && traits->chunks != 1) return candidate->microbatches;
  int64_t longer = program->request.microbatches + 2 * period_of(candidate);
  return longer < candidate->microbatches ? longer : candidate->microbatches;
}

/* Kept from candidate to candidate, for many want the same. */
static pp_status build_longer(const pp_candidate *candidate, const pp_schedule *program, pp_comparison *out, pp_error *error) {
  const int64_t microbatches = longer_microbatches(candidate, program);
  const pp_schedule_request request = pp_evaluate_stand_in(candidate, microbatches);
  if (out->built && out->longer.request.microbatches == microbatches) return PP_OK;
  pp_comparison_free(out);
  pp_status status = pp_schedule_build(&request, &out->longer, error);
  out->built = status == PP_OK;
  return status;
}

pp_status pp_evaluate_split(const pp_priced *of, const pp_schedule *program, pp_comparison *comparison, pp_workspace *workspace,
                            double *seconds, pp_error *error) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds stage_seconds[PP_MAX_LAYERS];
  pp_program_times of_program;
  pp_simulation shorter, longer;
  pp_timing timing;
  int64_t more = of->candidate->microbatches - program->request.microbatches;
  pp_status status = pp_stages_fill(of, stages, error);
  if (status == PP_OK && more > 0) status = build_longer(of->candidate, program, comparison, error);
  if (status != PP_OK) return status;
  pp_stages_seconds(of, stages, stage_seconds);
  status = pp_evaluate_times(of, program, stages, stage_seconds, pp_evaluate_pairs_overlap(of), &of_program, error);
  if (status != PP_OK) return status;
  const pp_times times = pp_evaluate_pp_times(&of_program, of->costs->hop);
  const bool whole = more > 0 && comparison->longer.request.microbatches == of->candidate->microbatches;
  status = pp_simulate_in(whole ? &comparison->longer : program, &times, false, workspace, &shorter, error);
  timing.makespan_seconds = shorter.makespan;
  if (whole) more = 0;
  if (status == PP_OK && more > 0) status = pp_simulate_in(&comparison->longer, &times, false, workspace, &longer, error);
  pp_free(of_program.stage);
  if (status != PP_OK) return status;
  if (more > 0)
    timing.makespan_seconds += (longer.makespan - shorter.makespan) * (double)more /
                               (comparison->longer.request.microbatches - program->request.microbatches);
  pp_evaluate_finish(of, stages, &timing);
  *seconds = timing.step_seconds;
  return PP_OK;
}

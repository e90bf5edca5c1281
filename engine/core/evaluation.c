/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluation.c: see evaluation.h.
*/
#include "core/evaluation.h"

#include <math.h>

#include "core/fit.h"

static pp_problem without_heat(const pp_problem *problem) {
  pp_problem cool = *problem;
  cool.hardware.heat_slope = 0;
  return cool;
}

/* The step on cards that do not heat up: `timing` itself where they do not anyway. */
static pp_status cool_time(const pp_priced *of, bool overlap, const pp_timing *timing, pp_timing *out, pp_error *error) {
  const pp_problem cool = without_heat(of->problem);
  const pp_priced cooled = { &cool, of->candidate, of->costs, of->kernel };
  *out = *timing;
  return of->problem->hardware.heat_slope > 0 ? pp_evaluate_time(&cooled, overlap, out, NULL, NULL, error) : PP_OK;
}

/* What hand-overs add: its makespan less that of a network on which they take no time. */
static pp_status compute_hops(pp_evaluation *out, pp_error *error) {
  pp_layout_costs no_hops = *out->of.costs;
  const pp_priced of = { out->of.problem, out->of.candidate, &no_hops, out->of.kernel };
  pp_timing instant;
  no_hops.hop = no_hops.waiting = 0;
  pp_status status = pp_evaluate_time(&of, true, &instant, NULL, NULL, error);
  if (status == PP_OK) out->hop_exposed = fmax(0, out->timing.makespan_seconds - instant.makespan_seconds);
  return status;
}

static pp_status compute_time(pp_evaluation *out, pp_error *error) {
  const pp_priced *of = &out->of;
  pp_status status = pp_evaluate_check(of->problem, of->candidate, error);
  if (status == PP_OK) status = pp_stages_fill(of, out->stage, error);
  if (status != PP_OK) return status;
  out->stages = pp_stages_count(of->candidate);
  pp_stages_seconds(of, out->stage, out->seconds);
  status = pp_evaluate_time(of, true, &out->timing, &out->schedule, &out->simulation, error);
  if (status != PP_OK) return status;
  out->has_simulation = out->traits != NULL;
  out->no_overlap = out->cool = out->timing;
  if (!out->traits) return pp_evaluate_pairs_overlap(of) ? pp_evaluate_time(of, false, &out->no_overlap, NULL, NULL, error) : PP_OK;
  if (out->traits->overlaps) status = pp_evaluate_time(of, false, &out->no_overlap, NULL, NULL, error);
  if (status == PP_OK) status = cool_time(of, true, &out->timing, &out->cool, error);
  return status == PP_OK ? compute_hops(out, error) : status;
}

/* The program that memory is counted over: a capped one, or the whole one where its order follows from times. */
static const pp_schedule *memory_schedule(const pp_evaluation *evaluation) {
  return evaluation->has_program ? &evaluation->program.schedule : &evaluation->schedule;
}

/* After compute_time. */
static pp_status compute_memory(pp_evaluation *out, pp_error *error) {
  const pp_candidate *candidate = out->of.candidate;
  if (out->traits && !pp_schedule_is_planned((pp_schedule_kind)candidate->kind)) {
    pp_status status = pp_memory_program_build(candidate, &out->program, error);
    if (status != PP_OK) return status;
    out->has_program = true;
  }
  pp_status status = pp_evaluate_ranks(&out->of, out->traits ? memory_schedule(out) : NULL, out->bytes, error);
  for (int rank = 1; status == PP_OK && rank < candidate->layout.pipeline; rank++)
    if (out->bytes[rank].total > out->bytes[out->fullest].total) out->fullest = rank;
  return status;
}

pp_status pp_evaluation_compute(const pp_priced *of, pp_evaluation *out, pp_error *error) {
  out->of = *of;
  out->traits = pp_stages_traits(of->candidate);
  pp_status status = compute_time(out, error);
  return status == PP_OK ? compute_memory(out, error) : status;
}

void pp_evaluation_free(pp_evaluation *evaluation) {
  if (evaluation->has_simulation) {
    pp_simulation_free(&evaluation->simulation);
    pp_schedule_free(&evaluation->schedule);
  }
  if (evaluation->has_program) pp_memory_program_free(&evaluation->program);
  evaluation->has_simulation = evaluation->has_program = false;
}

int pp_evaluation_slots(const pp_evaluation *evaluation) {
  return evaluation->traits ? memory_schedule(evaluation)->chunks_per_rank : 1;
}

int pp_evaluation_stage_in_slot(const pp_evaluation *evaluation, int rank, int slot) {
  const pp_schedule *schedule = memory_schedule(evaluation);
  return evaluation->traits ? pp_schedule_stages_of(schedule, rank)[slot] % schedule->stages_per_chain : 0;
}

pp_held_parameters pp_evaluation_parameters(const pp_evaluation *evaluation) {
  const int ranks = evaluation->of.candidate->layout.pipeline, copies = evaluation->traits ? evaluation->traits->copies : 1;
  double dense[PP_MAX_LAYERS], expert[PP_MAX_LAYERS];
  pp_held_parameters held = { 0, 0 };
  pp_evaluate_parameters(&evaluation->of, evaluation->stage, dense, expert);
  for (int rank = 0; rank < ranks; rank++) {
    held.resident = fmax(held.resident, dense[rank] + expert[rank]);
    held.unique += (dense[rank] + expert[rank]) / ranks / copies;
  }
  return held;
}

/* What one rank does in a step. */
typedef struct {
  double work, alltoall, tensor, context, context_exposed;
} rank_parts;

static rank_parts parts_of(const pp_evaluation *evaluation, int rank) {
  const double per_stage = (double)evaluation->of.candidate->microbatches / (evaluation->traits ? evaluation->traits->chains : 1);
  rank_parts here = { 0, 0, 0, 0, 0 };
  for (int slot = 0; slot < pp_evaluation_slots(evaluation); slot++) {
    const pp_stage_seconds *seconds = &evaluation->seconds[pp_evaluation_stage_in_slot(evaluation, rank, slot)];
    here.work += per_stage * (seconds->forward + seconds->full);
    here.alltoall += per_stage * (seconds->alltoall_forward + seconds->alltoall_backward);
    here.tensor += per_stage * seconds->tensor;
    here.context += per_stage * seconds->context;
    here.context_exposed += per_stage * seconds->context_exposed;
  }
  return here;
}

pp_step_parts pp_evaluation_parts(const pp_evaluation *evaluation) {
  const int ranks = evaluation->of.candidate->layout.pipeline;
  pp_step_parts parts = { 0, 0, 0, 0, 0, 0, 0 };
  for (int rank = 0; rank < ranks; rank++) {
    const rank_parts here = parts_of(evaluation, rank);
    const double busy = evaluation->traits ? evaluation->simulation.busy[rank] : evaluation->timing.makespan_seconds;
    parts.work += here.work / ranks;
    parts.ideal += (here.work - here.alltoall) / ranks;
    if (here.alltoall > parts.alltoall) {
      parts.alltoall = here.alltoall;
      parts.alltoall_exposed = fmin(here.alltoall, fmax(0, busy - (here.work - here.alltoall)));
    }
    parts.tensor = fmax(parts.tensor, here.tensor);
    if (here.context > parts.context) {
      parts.context = here.context;
      parts.context_exposed = here.context_exposed;
    }
  }
  return parts;
}

/* Its layers split anew: in *candidate, over layers[]. */
static pp_status fit_baseline(const pp_priced *of, pp_candidate *candidate, int *layers, pp_fit *fit, pp_error *error) {
  pp_fit_programs programs = { .workspace = { 0 } };
  pp_status status = pp_fit_programs_build(candidate, &programs, error);
  if (status != PP_OK) return status;
  status = pp_fit_candidate(of, &programs, layers, fit, error);
  pp_fit_programs_free(&programs);
  pp_workspace_free(&programs.workspace);
  if (status != PP_OK) return status;
  candidate->layers_per_stage = fit->layers;
  candidate->limit = fit->limit;
  return PP_OK;
}

pp_status pp_evaluation_baseline(const pp_priced *of, pp_schedule_kind kind, pp_baseline *out, pp_error *error) {
  pp_candidate candidate = *of->candidate;
  pp_problem free = *of->problem;   /* of a given split, which is the plan's own */
  const pp_priced baseline = { &free, &candidate, of->costs, of->kernel };
  int layers[PP_MAX_LAYERS];
  pp_fit fit;
  candidate.kind = (int)kind;
  candidate.layout.chunks = candidate.configured_virtual = 1;
  candidate.group = candidate.limit = 0;
  candidate.layers_per_stage = NULL;
  free.layers_per_stage = NULL;
  pp_status status = pp_evaluate_check(&free, &candidate, error);
  if (status == PP_OK) status = fit_baseline(&baseline, &candidate, layers, &fit, error);
  if (status == PP_OK) status = pp_evaluate_time(&baseline, false, &out->timing, NULL, NULL, error);
  if (status != PP_OK) return status;
  out->bytes = fit.bytes;
  return cool_time(&baseline, false, &out->timing, &out->cool, error);
}

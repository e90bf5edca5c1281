/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_memory.c: bytes of one candidate's ranks. See evaluate_memory.h.
*/
#include "core/evaluate_memory.h"

#include <math.h>
#include <string.h>

#include "core/meter.h"

int64_t pp_evaluate_capped_microbatches(const pp_candidate *candidate) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  int64_t ranks = candidate->layout.pipeline, microbatches = candidate->microbatches, cap;
  if (!traits) return 1;
  switch (traits->holds) {
    case PP_HOLDS_ALL:   /* see pp_evaluate_repeats */
      cap = 1;
      break;
    case PP_HOLDS_RANKS:   /* rank r holds min(P − r, M) */
      cap = ranks;
      break;
    case PP_HOLDS_GROUPS: {
      int64_t group = pp_candidate_group(candidate);   /* steady state repeats with the group; the last, smaller group has to stay */
      cap = 3 * group + microbatches % group;
      break;
    }
    default:        /* warm-up of at most 2P forwards, cool-down alike, and some of what repeats between; even where M is */
      cap = 6 * ranks;
      if (cap % 2 != microbatches % 2) cap++;
      break;
  }
  return microbatches < cap ? microbatches : cap;
}

int64_t pp_evaluate_repeats(const pp_candidate *candidate) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  return traits && traits->holds == PP_HOLDS_ALL ? candidate->microbatches : 1;
}

pp_schedule_request pp_evaluate_stand_in(const pp_candidate *candidate, int64_t microbatches) {
  pp_schedule_request request = pp_candidate_shortened(candidate, microbatches);
  const pp_schedule_kind kind = pp_schedule_traits_of(request.kind)->stand_in;
  if (kind != request.kind) request.limit = 0;
  request.kind = kind;
  return request;
}

static inline void count_up(uint32_t *now, uint32_t *most) {
  if (++*now > *most) *most = *now;
}

static inline void raise_most(pp_most_held *most, uint32_t stored, uint32_t pending) {
  if (stored > most->stored) most->stored = stored;
  if (pending > most->pending) most->pending = pending;
  if (stored + pending > most->both) most->both = stored + pending;
}

/* The most that each slot of a rank ever holds, stored and pending, and the rank. `now` has room for both counts of every slot. */
static void rank_profile(const pp_schedule *schedule, int rank, uint32_t *now, uint32_t *stored, uint32_t *pending, pp_most_held *most) {
  const size_t slots = (size_t)schedule->chunks_per_rank;
  const pp_action *end = schedule->action + schedule->first[rank + 1];
  uint32_t *now_pending = now + slots, all_stored = 0, all_pending = 0;
  memset(now, 0, 2 * slots * sizeof *now);
  for (const pp_action *action = schedule->action + schedule->first[rank]; action < end; action++) {
    const int slot = schedule->slot_of[action->stage];
    switch (action->kind) {
      case PP_F: case PP_FB:
        count_up(&now[slot], &stored[slot]);
        raise_most(most, ++all_stored, all_pending);
        if (action->kind == PP_F) break;
        now[schedule->slot_of[action->stage_b]]--;
        all_stored--;
        break;
      case PP_I:
        count_up(&now_pending[slot], &pending[slot]);
        now[slot]--;
        raise_most(most, --all_stored, ++all_pending);
        break;
      case PP_W:
        now_pending[slot]--;
        all_pending--;
        break;
      default:
        now[slot]--;
        all_stored--;
        break;
    }
  }
}

pp_status pp_memory_program_build(const pp_candidate *candidate, pp_memory_program *out, pp_error *error) {
  pp_schedule_request request;
  pp_status status;
  size_t entries, slots;
  request = pp_evaluate_stand_in(candidate, pp_evaluate_capped_microbatches(candidate));
  status = pp_schedule_build(&request, &out->schedule, error);
  if (status != PP_OK) return status;
  slots = (size_t)out->schedule.chunks_per_rank;
  entries = (size_t)request.ranks * slots;
  out->stored = pp_allocate_zeros((2 * entries + 2 * slots) * sizeof *out->stored + (size_t)request.ranks * sizeof *out->held);
  if (!out->stored) {
    pp_schedule_free(&out->schedule);
    return pp_fail(error, PP_NO_MEMORY, "not enough memory for the profile of %d ranks", request.ranks);
  }
  out->pending = out->stored + entries;
  uint32_t *scratch = out->pending + entries;
  out->held = (pp_most_held *)(void *)(scratch + 2 * slots);
  for (int rank = 0; rank < request.ranks; rank++)
    rank_profile(&out->schedule, rank, scratch, out->stored + (size_t)rank * slots, out->pending + (size_t)rank * slots, &out->held[rank]);
  return PP_OK;
}

void pp_memory_program_free(pp_memory_program *program) {
  pp_schedule_free(&program->schedule);
  pp_free(program->stored);
  program->stored = program->pending = NULL;
  program->held = NULL;
}

double pp_evaluate_overhead(const pp_problem *problem, const pp_candidate *candidate, int rank) {
  const pp_layout *layout = &candidate->layout;
  const double process = problem->overhead_bytes + pp_communicators_bytes(&problem->communicators, problem->model, problem->training, layout,
                                                                          candidate->configured_virtual > 1, rank);
  if (layout->pipeline == 1 || problem->buffered_messages <= 0) return process;
  return process + problem->buffered_messages * layout->chunks * (double)candidate->microbatches *
                                       pp_cost_hop_bytes(problem->model, layout, problem->training);
}

static double overhead_of(const pp_priced *of, int rank) { return pp_evaluate_overhead(of->problem, of->candidate, rank); }

/* What each stage of a chain needs, at the microbatches of a memory program. */
static pp_status fill_memory(const pp_priced *of, pp_stage_memory *out, pp_error *error) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  const double repeats = (double)pp_evaluate_repeats(of->candidate);
  pp_stage stages[PP_MAX_LAYERS];
  pp_status status = pp_stages_fill(of, stages, error);
  if (status != PP_OK) return status;
  pp_memory_stages(stages, pp_stages_count(of->candidate), of->costs->bytes[traits ? traits->copies - 1 : 0], out);
  for (int s = 0; s < pp_stages_count(of->candidate); s++) out[s].stored *= repeats;
  return PP_OK;
}

/* Where a forward runs beside the backward before it, the one has stored as many layers as the other has dropped, and the layer they are at. */
static double another_layer(const pp_priced *of) {
  double most = 0;
  if (!pp_stages_overlap_alone(of)) return 0;
  for (int i = 0; i < PP_BLOCKS; i++)
    if (pp_model_has_layers_of(of->problem->model, (pp_block)i)) most = fmax(most, of->costs->bytes[0][i].stored);
  return most;
}

pp_status pp_evaluate_ranks(const pp_priced *of, const pp_schedule *program, pp_rank_bytes *out, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  double scratch[4 * PP_MAX_LAYERS];
  pp_status status = fill_memory(of, stages, error);
  if (status != PP_OK) return status;
  if (!program) pp_memory_holding(stages, stages->stored + another_layer(of), overhead_of(of, 0), out);
  else for (int r = 0; r < of->candidate->layout.pipeline; r++) pp_memory_rank(program, r, stages, overhead_of(of, r), scratch, &out[r]);
  return PP_OK;
}

pp_status pp_evaluate_memory(const pp_priced *of, const pp_memory_program *program, pp_rank_bytes *out, int *rank, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  double bound[PP_MAX_LAYERS], scratch[4 * PP_MAX_LAYERS];
  int ranks = of->candidate->layout.pipeline, first = 0;
  *rank = 0;
  if (!program) return pp_evaluate_ranks(of, NULL, out, error);
  pp_status status = fill_memory(of, stages, error);
  if (status != PP_OK) return status;
  for (int r = 0; r < ranks; r++) {
    const size_t slots = (size_t)r * (size_t)program->schedule.chunks_per_rank;
    pp_rank_bytes most;
    pp_memory_rank_bound(&program->schedule, r, stages, program->stored + slots, program->pending + slots, &program->held[r],
                         overhead_of(of, r), &most);
    bound[r] = most.total;
    if (bound[r] > bound[first]) first = r;
  }
  /* The likeliest rank first: it rules most others out. */
  pp_memory_rank(&program->schedule, first, stages, overhead_of(of, first), scratch, out);
  *rank = first;
  for (int r = 0; r < ranks; r++) {
    pp_rank_bytes here;
    if (r == first || bound[r] < out->total) continue;
    pp_memory_rank(&program->schedule, r, stages, overhead_of(of, r), scratch, &here);
    if (here.total > out->total || (here.total >= out->total && r < *rank)) {
      *out = here;
      *rank = r;
    }
  }
  return PP_OK;
}

pp_status pp_evaluate_limited_memory(const pp_priced *of, double *bytes, int *rank, int *limit, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  const int ranks = of->candidate->layout.pipeline;
  double most = 2.0 * ranks;
  pp_status status = fill_memory(of, stages, error);
  if (status != PP_OK) return status;
  for (int r = 0; r < ranks; r++) {
    const double chunk = fmax(stages[r].stored, stages[r].pending);
    pp_rank_bytes empty;
    pp_memory_holding(&stages[r], 0, overhead_of(of, r), &empty);
    if (chunk > 0) most = fmin(most, floor((of->problem->usable_bytes - empty.total) / chunk));
  }
  *limit = most > ranks ? (int)most : ranks;
  *bytes = -1;
  for (int r = 0; r < ranks; r++) {
    pp_rank_bytes full;
    pp_memory_holding(&stages[r], *limit * fmax(stages[r].stored, stages[r].pending), overhead_of(of, r), &full);
    if (full.total <= *bytes) continue;
    *bytes = full.total;
    *rank = r;
  }
  return PP_OK;
}

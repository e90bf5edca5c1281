/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule.c: where stages live, the program of a request, and properties of any program. Which requests are legal is schedule_request.c's
** subject; the orders themselves are in schedules_*.c. See schedule.h.
*/
#include "core/schedule.h"

#include <stdio.h>
#include <string.h>

#include "core/meter.h"
#include "core/schedules.h"

#define CONSTRUCTOR_OF_ROW(kind, name, title, family, shape, backward, pairs, grouping, least, holds, periods, stand_in, constructor, law) \
  [PP_##kind] = &pp_construct_##constructor,

static const pp_constructor *const constructors[PP_SCHEDULE_KINDS] = { PP_SCHEDULES(CONSTRUCTOR_OF_ROW) };

bool pp_schedule_has_eight_steps(pp_schedule_kind kind) {
  return kind != PP_CUSTOM && constructors[kind] == &pp_construct_eight_step;
}

/* -- building ------------------------------------------------------------------------------------------------------------------------- */

static int rank_of_stage(const pp_schedule *schedule, pp_placement placement, int stage) {
  int ranks = schedule->request.ranks, within = stage % schedule->stages_per_chain;
  switch (placement) {
    case PP_PLACE_V: return within < ranks ? within : 2 * ranks - 1 - within;
    case PP_PLACE_BIDIRECTIONAL: return stage < schedule->stages_per_chain ? within : ranks - 1 - within;
    default: return within % ranks;
  }
}

int pp_schedule_place(pp_schedule *schedule) {
  int ranks = schedule->request.ranks, most = 0, *first_slot = schedule->first_slot;
  memset(first_slot, 0, ((size_t)ranks + 1) * sizeof *first_slot);
  for (int stage = 0; stage < schedule->stages; stage++) {
    int *held = &first_slot[schedule->rank_of[stage] + 1];
    schedule->slot_of[stage] = (*held)++;
    if (*held > most) most = *held;
  }
  for (int rank = 0; rank < ranks; rank++) first_slot[rank + 1] += first_slot[rank];
  for (int stage = 0; stage < schedule->stages; stage++)
    schedule->stage_at[first_slot[schedule->rank_of[stage]] + schedule->slot_of[stage]] = stage;
  return most;
}

size_t pp_schedule_actions(const pp_schedule_request *request) {
  size_t actions = 0;
  pp_spend(4 * (uint64_t)request->ranks);
  for (int rank = 0; rank < request->ranks; rank++) actions += constructors[request->kind]->count(request, rank);
  return actions;
}

static size_t bytes_of(const pp_schedule_request *request) {
  size_t ranks = (size_t)request->ranks, stages = ranks * (size_t)request->chunks * (size_t)pp_schedule_traits_of(request->kind)->chains;
  return pp_schedule_actions(request) * sizeof(pp_action) + (ranks + 1) * (sizeof(size_t) + sizeof(int)) + 3 * stages * sizeof(int);
}

/* Sizes, and one block for everything: actions first, for they are the largest and want the start's alignment. */
static pp_status lay_out(const pp_schedule_request *request, pp_schedule *schedule, pp_error *error) {
  int chains = pp_schedule_traits_of(request->kind)->chains;
  *schedule = (pp_schedule){ .request = *request, .traits = *pp_schedule_traits_of(request->kind), .verified = true,
                              .chains = chains };
  schedule->chunks_per_rank = request->chunks * chains;
  schedule->stages_per_chain = request->ranks * request->chunks;
  schedule->stages = schedule->stages_per_chain * chains;
  schedule->microbatches_per_chain = request->microbatches / chains;

  size_t actions = pp_schedule_actions(request);
  char *memory = pp_allocate(bytes_of(request));
  if (!memory) {
    *schedule = (pp_schedule){ 0 };
    return pp_fail(error, PP_NO_MEMORY, "not enough memory for a schedule of %zu actions", actions);
  }
  schedule->action = (pp_action *)(void *)memory;
  schedule->first = (size_t *)(void *)(memory + actions * sizeof(pp_action));
  schedule->first_slot = (int *)(void *)(schedule->first + request->ranks + 1);
  schedule->rank_of = schedule->first_slot + request->ranks + 1;
  schedule->slot_of = schedule->rank_of + schedule->stages;
  schedule->stage_at = schedule->slot_of + schedule->stages;
  return PP_OK;
}

pp_status pp_schedule_build(const pp_schedule_request *request, pp_schedule *out, pp_error *error) {
  pp_status status = pp_schedule_check(request, error);
  *out = (pp_schedule){ 0 };
  if (status == PP_OK) status = lay_out(request, out, error);
  if (status != PP_OK) return status;
  for (int stage = 0; stage < out->stages; stage++) out->rank_of[stage] = rank_of_stage(out, out->traits.placement, stage);
  pp_schedule_place(out);
  out->request.times = NULL;
  const pp_constructor *constructor = constructors[request->kind];
  out->first[0] = 0;
  for (int rank = 0; rank < request->ranks; rank++) out->first[rank + 1] = out->first[rank] + constructor->count(request, rank);
  if (constructor->write_all) {
    status = constructor->write_all(request, out, error);
    if (status != PP_OK) pp_schedule_free(out);
    return status;
  }
  pp_writer writer = { .next = out->action };
  for (int rank = 0; rank < request->ranks; rank++) {
    if (!pp_spend(8 + 2 * (out->first[rank + 1] - out->first[rank]))) {
      pp_schedule_free(out);
      return pp_stopped(error);
    }
    writer.stage_at = pp_schedule_stages_of(out, rank);
    constructor->write(request, rank, &writer);
  }
  return PP_OK;
}

void pp_schedule_free(pp_schedule *schedule) {
  pp_free(schedule->action);   /* the start of the one allocation */
  *schedule = (pp_schedule){ 0 };
}

/* -- properties of a program ---------------------------------------------------------------------------------------------------------- */

int pp_action_print(char *buffer, size_t size, const pp_action *action) {
  if (action->kind == PP_FB)
    return snprintf(buffer, size, "(%uF%u;%uB%u)OVERLAP_F_B", action->stage, action->microbatch, action->stage_b, action->microbatch_b);
  return snprintf(buffer, size, "%u%c%u", action->stage, PP_KIND_LETTERS[action->kind], action->microbatch);
}

double pp_schedule_peak(const pp_schedule *schedule, int rank, const double *stored, const double *pending) {
  double held = 0, peak = 0;
  pp_spend(1 + schedule->first[rank + 1] - schedule->first[rank]);
  for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
    const pp_action *action = &schedule->action[i];
    switch (action->kind) {
      case PP_F: case PP_FB: held += stored[action->stage]; break;
      case PP_B: held -= stored[action->stage]; break;
      case PP_I: held += pending[action->stage] - stored[action->stage]; break;
      default: held -= pending[action->stage]; break;
    }
    if (held > peak) peak = held;
    if (action->kind == PP_FB) held -= stored[action->stage_b];
  }
  return peak;
}

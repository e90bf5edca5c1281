/* SPDX-License-Identifier: Apache-2.0 */
/*
** lowering.c: the messages of a program, and how a lowering writes a rank's steps. See lowering.h.
*/
#include "core/lowering.h"

#include <stdio.h>

/* -- messages ------------------------------------------------------------------------------------------------------------------------- */

/* The stage that a message goes to. */
static int receiver(const pp_message_end *end) { return end->backward ? end->stage - 1 : end->stage + 1; }

bool pp_lower_leaves(const pp_schedule *schedule, int stage, bool backward) {
  if (backward) return stage % schedule->stages_per_chain != 0 && schedule->rank_of[stage] != schedule->rank_of[stage - 1];
  return (stage + 1) % schedule->stages_per_chain != 0 && schedule->rank_of[stage] != schedule->rank_of[stage + 1];
}

bool pp_lower_output(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out) {
  *out = (pp_message_end){ .microbatch = microbatch, .stage = (uint16_t)stage, .backward = backward, .other = PP_NO_BATCH };
  return pp_lower_leaves(lowering->schedule, stage, backward);
}

bool pp_lower_input(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out) {
  const pp_schedule *schedule = lowering->schedule;
  bool edge = backward ? (stage + 1) % schedule->stages_per_chain == 0 : stage % schedule->stages_per_chain == 0;
  int sender = backward ? stage + 1 : stage - 1;
  if (edge || !pp_lower_leaves(schedule, sender, backward)) return false;
  *out = (pp_message_end){ .microbatch = microbatch, .stage = (uint16_t)sender, .backward = backward, .receive = true,
                           .other = PP_NO_BATCH };
  return true;
}

int pp_message_end_print(char *buffer, size_t size, const pp_message_end *end) {
  return snprintf(buffer, size, "%d%s_%c%u", end->receive ? receiver(end) : end->stage, end->receive ? "RECV" : "SEND",
                  end->backward ? 'B' : 'F', end->microbatch);
}

/* -- steps ---------------------------------------------------------------------------------------------------------------------------- */

void pp_lower_step(pp_lowering *lowering, int rank, pp_step_kind kind, size_t index) {
  lowering->out->step[lowering->out->last[rank]++] = (pp_step){ (uint32_t)kind, (uint32_t)index };
}

static uint32_t queue_of(const pp_lowering *lowering, int rank, const pp_message_end *ends, int count) {
  if (lowering->runtime->queues == PP_QUEUE_ONE) return (uint32_t)rank;
  if (lowering->runtime->queues == PP_QUEUE_PER_WAY && count == 1 && ends[0].receive)
    return (uint32_t)(lowering->schedule->request.ranks + rank);
  if (lowering->runtime->queues == PP_QUEUE_PER_WAY) return (uint32_t)rank;
  for (int i = 1; i < count; i++)
    if (ends[i].receive != ends[0].receive) return (uint32_t)rank;
  int own = ends[0].receive ? receiver(&ends[0]) : ends[0].stage;
  bool up = ends[0].receive == ends[0].backward;   /* the neighbour is stage own + 1 */
  return lowering->peer_queue[up][own];
}

uint32_t pp_lower_post(pp_lowering *lowering, int rank, const pp_message_end *ends, int count) {
  pp_lowered *out = lowering->out;
  uint32_t number = out->batches++;
  out->batch[number] = (pp_batch){ .first = lowering->ends, .count = (uint32_t)count, .rank = (uint32_t)rank,
                                   .queue = queue_of(lowering, rank, ends, count) };
  for (int i = 0; i < count; i++) {
    out->end[lowering->ends++] = ends[i];
    lowering->batch_of[ends[i].receive][pp_lower_number_of(lowering->schedule, &ends[i])] = number;
  }
  pp_lower_step(lowering, rank, PP_STEP_POST, number);
  return number;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** lowering.h: what the lowerings of the runtimes share: writing a rank's steps. Internal to engine/core.
*/
#ifndef PP_LOWERING_H
#define PP_LOWERING_H

#include "core/runtime.h"

typedef struct {
  const pp_schedule *schedule;
  const pp_runtime *runtime;
  pp_lowered *out;
  uint32_t *batch_of[2];    /* [receive][pp_lower_number]: the batch that holds that end */
  uint32_t *peer_queue[2];  /* [towards stage + 1][stage]: queue of messages with that neighbour, for PP_QUEUE_PER_PEER */
  size_t most_ends;         /* that there can be */
  uint32_t ends;            /* written so far */
} pp_lowering;

/* The next `bytes` of a block that starts at `memory`; *at is where they begin, and moves on. Of NULL only *at, so as to measure. */
static inline void *pp_lower_carve(char *memory, size_t *at, size_t bytes) {
  void *piece = memory ? memory + *at : NULL;
  *at += (bytes + 7) / 8 * 8;
  return piece;
}

/* Does what a stage makes leave its rank? Not at the end of a chain, and not where the neighbour lives on the same rank. */
bool pp_lower_leaves(const pp_schedule *schedule, int stage, bool backward);

/* The end of the message that brings what F (backward = false) or B and I of a stage wait for; false when it comes from this rank. */
bool pp_lower_input(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out);
/* The end of the message that takes away what F or B and I of a stage made; false when it stays on this rank. */
bool pp_lower_output(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out);

/* Results of forwards and backwards, whether they are sent or stay on the rank. */
static inline size_t pp_lower_messages(const pp_schedule *schedule) {
  return 2 * (size_t)schedule->stages * (size_t)schedule->microbatches_per_chain;
}

/* Place of a result among all of the schedule: 0 … pp_lower_messages − 1. */
static inline size_t pp_lower_number(const pp_schedule *schedule, int stage, uint32_t microbatch, bool backward) {
  size_t row = (backward ? (size_t)schedule->stages : 0) + (size_t)stage;
  return row * (size_t)schedule->microbatches_per_chain + microbatch;
}

static inline size_t pp_lower_number_of(const pp_schedule *schedule, const pp_message_end *end) {
  return pp_lower_number(schedule, end->stage, end->microbatch, end->backward);
}

void pp_lower_step(pp_lowering *lowering, int rank, pp_step_kind kind, size_t index);
/* Posts a batch of count ≥ 1 ends; returns its number. */
uint32_t pp_lower_post(pp_lowering *lowering, int rank, const pp_message_end *ends, int count);

#endif

/*
** runtime_lower.h: what the lowerings of the runtimes share: writing a rank's steps. Internal to engine/core.
*/
#ifndef PP_RUNTIME_LOWER_H
#define PP_RUNTIME_LOWER_H

#include "core/runtime.h"

typedef struct {
  const pp_schedule *schedule;
  const pp_runtime *runtime;
  pp_lowered *out;
  uint32_t *batch_of[2];    /* [receive][pp_lower_number]: the batch that holds that end */
  uint32_t *peer_queue[2];  /* [towards stage + 1][stage]: queue of messages with that neighbour, for PP_QUEUE_PER_PEER */
  uint32_t ends;            /* written so far */
} pp_lowering;

/* The end of the message that brings what F (backward = false) or B and I of a stage wait for; false when it comes from this rank. */
bool pp_lower_input(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out);
/* The end of the message that takes away what F or B and I of a stage made; false when it stays on this rank. */
bool pp_lower_output(const pp_lowering *lowering, int stage, uint32_t microbatch, bool backward, pp_message_end *out);

/* Place of a message, or of the result that stays on the rank, among all of the schedule: 0 … 2 × stages × microbatches_per_chain − 1. */
static inline size_t pp_lower_number(const pp_schedule *schedule, int stage, uint32_t microbatch, bool backward) {
  size_t row = (backward ? (size_t)schedule->stages : 0) + (size_t)stage;
  return row * (size_t)schedule->microbatches_per_chain + microbatch;
}

void pp_lower_step(pp_lowering *lowering, int rank, pp_step_kind kind, size_t index);
/* Posts a batch of count ≥ 1 ends; returns its number. */
uint32_t pp_lower_post(pp_lowering *lowering, int rank, const pp_message_end *ends, int count);

/* The lowerings: see runtime_torch.c and runtime_deepseek.c. */
void pp_lower_torch_single(pp_lowering *lowering);
pp_status pp_lower_torch_multi(pp_lowering *lowering, pp_error *error);
void pp_lower_deepseek(pp_lowering *lowering);

#endif

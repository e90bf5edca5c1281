/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_megatron.c: the order in which megatron-core's schedules post messages, and who waits for them. See runtime.h.
** Source: megatron-core 0.19.2, megatron/core/pipeline_parallel: schedules.py (forward_backward_pipelining_without_interleaving and
** …_with_interleaving) and p2p_communication.py (_communicate, _p2p_ops), with what Megatron-LM sets (argument_utils.py,
** core_transformer_config_from_args): 1F1B batches messages, interleaving overlaps them; results are freed once they were sent.
*/
#include "core/runtime_megatron.h"

/* The next action of the same direction as `from` on that rank, or `end`. */
static size_t next_alike(const pp_schedule *schedule, size_t from, size_t end) {
  const bool backward = schedule->action[from].kind != PP_F;
  size_t next = from + 1;
  while (next < end && (schedule->action[next].kind != PP_F) != backward) next++;
  return next;
}

static bool output_of(const pp_lowering *lowering, const pp_action *action, pp_message_end *end) {
  return pp_lower_output(lowering, action->stage, action->microbatch, action->kind != PP_F, end);
}

/* Posts the receive for an action; PP_NO_BATCH where nothing is to be received. */
static uint32_t receive_for(pp_lowering *lowering, int rank, size_t action, size_t end) {
  pp_message_end message;
  if (action >= end) return PP_NO_BATCH;
  const pp_action *of = &lowering->schedule->action[action];
  if (!pp_lower_input(lowering, of->stage, of->microbatch, of->kind != PP_F, &message)) return PP_NO_BATCH;
  return pp_lower_post(lowering, rank, &message, 1);
}

static void wait_for(pp_lowering *lowering, int rank, uint32_t *batch) {
  if (*batch != PP_NO_BATCH) pp_lower_step(lowering, rank, PP_STEP_WAIT, *batch);
  *batch = PP_NO_BATCH;
}

/* 1F1B: what an action made is sent together with the receive of the next where that is of the other kind, else by itself; either way card
** and host wait for it at once (_communicate: wait_on_reqs and batch_p2p_sync). */
static void lower_1f1b_rank(pp_lowering *lowering, int rank) {
  const pp_schedule *schedule = lowering->schedule;
  const size_t end = schedule->first[rank + 1];
  pp_message_end ends[2];
  int held = 0;   /* ends that wait in ends[] to be posted */
  for (size_t i = schedule->first[rank]; i < end; i++) {
    const pp_action *action = &schedule->action[i];
    const bool backward = action->kind != PP_F, turns = i + 1 < end && (schedule->action[i + 1].kind != PP_F) != backward;
    held += pp_lower_input(lowering, action->stage, action->microbatch, backward, &ends[held]);
    if (held > 0) pp_lower_step(lowering, rank, PP_STEP_WAIT, pp_lower_post(lowering, rank, ends, held));
    pp_lower_step(lowering, rank, PP_STEP_ACTION, i);
    held = output_of(lowering, action, &ends[0]);
    if (held == 0 || turns) continue;
    pp_lower_step(lowering, rank, PP_STEP_WAIT, pp_lower_post(lowering, rank, ends, held));
    held = 0;
  }
}

/*
** Interleaved: after an action its result is sent and the receive for the next action of its direction posted. While it warms up, which is until the
** forward before its first backward, and behind its last pair of a forward and a backward the card waits for both at once; in between it waits for a
** forward's send at once, for a backward's after the next one, and for a receive before the action that needs it. Where all forwards come first none
** are paired.
*/
static void lower_interleaved_rank(pp_lowering *lowering, int rank) {
  const pp_schedule *schedule = lowering->schedule;
  const size_t begin = schedule->first[rank], end = schedule->first[rank + 1];
  uint32_t received[2] = { PP_NO_BATCH, PP_NO_BATCH }, sent = PP_NO_BATCH, last_sent = PP_NO_BATCH;
  size_t first_backward = begin, last_forward = begin;
  while (first_backward < end && schedule->action[first_backward].kind == PP_F) first_backward++;
  for (size_t i = begin; i < end; i++)
    if (schedule->action[i].kind == PP_F) last_forward = i;
  const bool pairs = last_forward > first_backward;
  const size_t warm = first_backward - (pairs ? 1 : 0), cool = last_forward + (pairs ? 2 : 1);
  received[0] = receive_for(lowering, rank, begin, end);
  for (size_t i = begin; i < end; i++) {
    const pp_action *action = &schedule->action[i];
    const bool backward = action->kind != PP_F, at_once = i < warm || i >= cool;
    wait_for(lowering, rank, &received[backward]);
    pp_lower_step(lowering, rank, PP_STEP_ACTION, i);
    pp_message_end message;
    sent = output_of(lowering, action, &message) ? pp_lower_post(lowering, rank, &message, 1) : PP_NO_BATCH;
    received[backward] = receive_for(lowering, rank, next_alike(schedule, i, end), end);
    if (backward && !at_once) {
      wait_for(lowering, rank, &last_sent);
      last_sent = sent;
    } else {
      wait_for(lowering, rank, &sent);
    }
    if (at_once) wait_for(lowering, rank, &received[backward]);
    if (i + 1 == warm) received[1] = receive_for(lowering, rank, first_backward, end);
  }
  wait_for(lowering, rank, &last_sent);
}

void pp_lower_megatron(pp_lowering *lowering) {
  const bool interleaved = lowering->schedule->chunks_per_rank > 1;
  lowering->out->syncs = !interleaved;
  for (int rank = 0; rank < lowering->schedule->request.ranks; rank++)
    if (interleaved) lower_interleaved_rank(lowering, rank);
    else lower_1f1b_rank(lowering, rank);
}

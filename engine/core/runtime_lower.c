/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_lower.c: the presets of runtimes, what they can run, and the memory that a lowering needs. See runtime.h; the lowerings themselves
** are runtime_torch.h's and runtime_deepseek.h's.
**
** What a preset says was read in the runtimes' sources and holds for the versions named here:
**   torch-single  PyTorch's ScheduleGPipe and Schedule1F1B: a receive is posted just before the action that needs it.
**   torch-multi   PyTorch's _PipelineScheduleRuntime, to which all schedules with several stages a rank belong: a receive is posted when
**                 the sender's action is planned, usually long before it is needed, and blocks what follows it (pytorch/pytorch issues
**                 188833 and 175225). That holds for PyTorch 2.11, where every message took the communicator's one stream; since pull
**                 request 175712 (it is in 2.13) messages take a stream for each peer: queues per peer. defer_pp_recv of 2.13 posts
**                 receives before use.
**   megatron      megatron-core 0.19.2, see runtime_megatron.c. With two ranks its overlapped messages take a communicator each way; for more
**                 ranks the same is taken here.
**   deepseek      DualPipe's and DualPipeV's step(): what is pending is posted as one group before each action, which waits for all of it.
** PyTorch does not compute the gradient of the model's input (stage.py, backward_one_chunk): I of the first stage has nothing to do and
** its W is the whole backward.
*/
#include <math.h>
#include <string.h>

#include "core/lowering.h"
#include "core/meter.h"
#include "core/runtime_deepseek.h"
#include "core/runtime_megatron.h"
#include "core/runtime_torch.h"
#include "core/schedule_verify.h"
#include "core/schedules.h"

static const pp_runtime presets[PP_RUNTIMES] = {
  [PP_RUNTIME_IDEAL] = { "ideal", PP_RUNTIME_IDEAL, PP_QUEUE_ONE, PP_RECEIVE_BEFORE_USE, PP_PAIR_OVERLAPPED,
                         .first_skips_input = false, .memory = PP_MEMORY_UNKNOWN },
  [PP_RUNTIME_TORCH_SINGLE] = { "torch-single", PP_RUNTIME_TORCH_SINGLE, PP_QUEUE_ONE, PP_RECEIVE_BEFORE_USE, PP_PAIR_OVERLAPPED,
                                .first_skips_input = true, .memory = PP_MEMORY_TORCH },
  [PP_RUNTIME_TORCH_MULTI] = { "torch-multi", PP_RUNTIME_TORCH_MULTI, PP_QUEUE_ONE, PP_RECEIVE_EARLY, PP_PAIR_IN_TURN,
                               .first_skips_input = true, .memory = PP_MEMORY_TORCH },
  [PP_RUNTIME_DEEPSEEK] = { "deepseek", PP_RUNTIME_DEEPSEEK, PP_QUEUE_ONE, PP_RECEIVE_BEFORE_USE, PP_PAIR_OVERLAPPED,
                            .first_skips_input = false, .memory = PP_MEMORY_LEAN },
  [PP_RUNTIME_PIPEPLAN] = { "pipeplan", PP_RUNTIME_DEEPSEEK, PP_QUEUE_ONE, PP_RECEIVE_BEFORE_USE, PP_PAIR_OVERLAPPED,
                            .first_skips_input = false, .memory = PP_MEMORY_LEAN },
  [PP_RUNTIME_MEGATRON] = { "megatron", PP_RUNTIME_MEGATRON, PP_QUEUE_PER_WAY, PP_RECEIVE_BEFORE_USE, PP_PAIR_OVERLAPPED,
                            .first_skips_input = true, .memory = PP_MEMORY_STORED },
};

const pp_runtime *pp_runtime_preset(pp_runtime_kind kind) { return &presets[kind]; }

int pp_runtime_kind_of(const char *name) {
  for (int kind = 0; kind < PP_RUNTIMES; kind++)
    if (strcmp(presets[kind].name, name) == 0) return kind;
  return -1;
}

/* -- memory --------------------------------------------------------------------------------------------------------------------------- */

/* Message ends of a rank, for each microbatch. */
static size_t ends_on(const pp_lowering *lowering, int rank) {
  size_t count = 0;
  for (int slot = 0; slot < pp_schedule_stages_on(lowering->schedule, rank); slot++) {
    int stage = pp_schedule_stages_of(lowering->schedule, rank)[slot];
    for (int backward = 0; backward <= 1; backward++) {
      pp_message_end end;
      count += pp_lower_input(lowering, stage, 0, backward, &end);
      count += pp_lower_output(lowering, stage, 0, backward, &end);
    }
  }
  return count;
}

/* Fills first[] and last[] of the ranks with where their steps may begin, unless they are NULL; returns how many there may be. */
static size_t plan_steps(pp_lowering *lowering, pp_lowered *out) {
  const pp_schedule *schedule = lowering->schedule;
  size_t steps = 0;
  lowering->most_ends = 0;
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    size_t actions = schedule->first[rank + 1] - schedule->first[rank];
    size_t ends = ends_on(lowering, rank) * (size_t)schedule->microbatches_per_chain;
    if (out->first) out->first[rank] = out->last[rank] = steps;
    steps += (schedule->traits.overlaps ? 2 : 1) * actions + 2 * ends;   /* each may be posted and waited for by itself */
    lowering->most_ends += ends;
  }
  return steps;
}

/* Lays out what is made in `memory`, or only says how many bytes that is. */
static size_t lay_out(pp_lowering *lowering, pp_lowered *out, char *memory) {
  size_t ranks = (size_t)lowering->schedule->request.ranks, at = 0;
  *out = (pp_lowered){ .ranks = lowering->schedule->request.ranks };
  out->first = pp_lower_carve(memory, &at, ranks * sizeof *out->first);
  out->last = pp_lower_carve(memory, &at, ranks * sizeof *out->last);
  size_t steps = plan_steps(lowering, out);
  out->step = pp_lower_carve(memory, &at, steps * sizeof *out->step);
  out->batch = pp_lower_carve(memory, &at, lowering->most_ends * sizeof *out->batch);
  out->end = pp_lower_carve(memory, &at, lowering->most_ends * sizeof *out->end);
  return at;
}

typedef struct {
  int rank;
  uint32_t queue;
} known_queue;

/* The same for what is needed only meanwhile; *last is plan_queues', *scratch the lowering's own. */
static size_t lay_out_work(pp_lowering *lowering, known_queue **last, void **scratch, char *memory) {
  const pp_schedule *schedule = lowering->schedule;
  size_t messages = pp_lower_messages(schedule), stages = (size_t)schedule->stages, at = 0;
  for (int k = 0; k < 2; k++) {
    lowering->batch_of[k] = pp_lower_carve(memory, &at, messages * sizeof(uint32_t));
    lowering->peer_queue[k] = pp_lower_carve(memory, &at, stages * sizeof(uint32_t));
  }
  *last = pp_lower_carve(memory, &at, (size_t)schedule->request.ranks * sizeof **last);
  *scratch = pp_lower_carve(memory, &at, lowering->runtime->kind == PP_RUNTIME_TORCH_MULTI ? pp_lower_torch_multi_bytes(lowering) : 0);
  return at;
}

void pp_lowered_free(pp_lowered *lowered) {
  pp_free(lowered->first);   /* the start of the one allocation */
  *lowered = (pp_lowered){ .first = NULL };
}

/* -- the whole ------------------------------------------------------------------------------------------------------------------------ */

/* Numbers the queues: one a rank, then, if asked for, one for each pair of a rank and a peer it exchanges messages with. O(stages). */
static void plan_queues(pp_lowering *lowering, known_queue *last) {
  const pp_schedule *schedule = lowering->schedule;
  int ranks = schedule->request.ranks;
  lowering->out->queues = (uint32_t)ranks * (lowering->runtime->queues == PP_QUEUE_PER_WAY ? 2 : 1);
  if (lowering->runtime->queues != PP_QUEUE_PER_PEER) return;
  for (int peer = 0; peer < ranks; peer++) last[peer].rank = -1;   /* [peer]: of the rank seen last, its queue */
  for (int rank = 0; rank < ranks; rank++) {
    for (int slot = 0; slot < pp_schedule_stages_on(schedule, rank); slot++) {
      int stage = pp_schedule_stages_of(schedule, rank)[slot];
      for (int up = 0; up <= 1; up++) {
        if (!pp_lower_leaves(schedule, stage, !up)) continue;
        int peer = schedule->rank_of[up ? stage + 1 : stage - 1];
        if (last[peer].rank != rank) last[peer] = (known_queue){ rank, lowering->out->queues++ };
        lowering->peer_queue[up][stage] = last[peer].queue;
      }
    }
  }
}

/* Tells each message end which batch holds the other. */
static void join_ends(pp_lowering *lowering) {
  pp_spend(2 * (uint64_t)lowering->ends);
  for (uint32_t i = 0; i < lowering->ends; i++) {
    pp_message_end *end = &lowering->out->end[i];
    end->other = lowering->batch_of[!end->receive][pp_lower_number_of(lowering->schedule, end)];
  }
}

static pp_status check_kind(const pp_schedule *schedule, const pp_runtime *runtime, pp_error *error) {
  pp_schedule_kind kind = schedule->request.kind;
  const char *name = schedule->traits.name;
  const pp_runtime *preset = pp_runtime_preset(runtime->kind);
  switch (runtime->kind) {
    case PP_RUNTIME_TORCH_SINGLE:
      if (kind == PP_GPIPE || kind == PP_1F1B) break;
      return pp_illegal(error, "engine.runtime", "runtime", NAN, "torch-single runs gpipe and 1f1b, not %s; torch-multi may", name);
    case PP_RUNTIME_TORCH_MULTI:
      if (schedule->chains == 1) return PP_OK;
      return pp_illegal(error, "engine.runtime", "runtime", NAN, "torch-multi runs no bidirectional schedule such as %s", name);
    case PP_RUNTIME_DEEPSEEK:
      if (pp_schedule_has_eight_steps(kind)) break;
      return pp_illegal(error, "engine.runtime", "runtime", NAN, "%s runs dualpipe and dualpipev, not %s", runtime->name, name);
    case PP_RUNTIME_MEGATRON:
      if (kind == PP_1F1B || kind == PP_INTERLEAVED_1F1B) break;
      return pp_illegal(error, "engine.runtime", "runtime", NAN, "megatron runs 1f1b and interleaved_1f1b, not %s", name);
    default:
      return pp_fail(error, PP_INVALID, "the %s runtime posts no messages", runtime->name);
  }
  if (runtime->receives != preset->receives)
    return pp_illegal(error, "engine.runtime", "receives", NAN, "%s posts receives right before they are needed", runtime->name);
  if (runtime->pairs != preset->pairs)
    return pp_illegal(error, "engine.runtime", "pairs", NAN, "%s posts the messages of a pair together", runtime->name);
  return PP_OK;
}

static pp_status check_size(const pp_schedule *schedule, const pp_runtime *runtime, pp_error *error) {
  const size_t actions = schedule->first[schedule->request.ranks];
  if (actions <= PP_MAX_LOWERED) return PP_OK;
  if (schedule->request.kind != PP_CUSTOM && pp_schedule_check_within(&schedule->request, PP_MAX_LOWERED, error) == PP_ILLEGAL)
    return PP_ILLEGAL;
  return pp_illegal(error, "engine.too_many_actions", "", NAN, "the %s runtime is simulated for at most %d actions, not %zu", runtime->name,
                    PP_MAX_LOWERED, actions);
}

static pp_status check(const pp_schedule *schedule, const pp_runtime *runtime, pp_error *error) {
  pp_status status = check_kind(schedule, runtime, error);
  if (status == PP_OK) status = check_size(schedule, runtime, error);
  if (status != PP_OK || schedule->verified) return status;
  return pp_schedule_verify(schedule, error);   /* what follows counts on two ends of each message */
}

static void lower(pp_lowering *lowering, known_queue *last, void *scratch) {
  const size_t messages = pp_lower_messages(lowering->schedule);
  pp_spend(16 * (lowering->schedule->first[lowering->schedule->request.ranks] + (uint64_t)lowering->schedule->stages));
  for (int k = 0; k < 2; k++) memset(lowering->batch_of[k], 0xFF, messages * sizeof(uint32_t));   /* PP_NO_BATCH */
  plan_queues(lowering, last);
  if (lowering->runtime->kind == PP_RUNTIME_TORCH_MULTI) pp_lower_torch_multi(lowering, scratch);
  else if (lowering->runtime->kind == PP_RUNTIME_TORCH_SINGLE) pp_lower_torch_single(lowering);
  else if (lowering->runtime->kind == PP_RUNTIME_MEGATRON) pp_lower_megatron(lowering);
  else pp_lower_deepseek(lowering);
  join_ends(lowering);
}

pp_status pp_runtime_lower(const pp_schedule *schedule, const pp_runtime *runtime, pp_lowered *out, pp_error *error) {
  pp_lowering lowering = { .schedule = schedule, .runtime = runtime, .out = out };
  known_queue *last;
  void *scratch;
  *out = (pp_lowered){ 0 };
  pp_status status = check(schedule, runtime, error);
  if (status != PP_OK) return status;
  char *kept = pp_allocate(lay_out(&lowering, out, NULL)), *work = pp_allocate_zeros(lay_out_work(&lowering, &last, &scratch, NULL));
  if (kept && work) {
    lay_out(&lowering, out, kept);
    lay_out_work(&lowering, &last, &scratch, work);
    lower(&lowering, last, scratch);
    if (!pp_spend(0)) status = pp_stopped(error);
  } else {
    status = pp_fail(error, PP_NO_MEMORY, "not enough memory to lower %zu actions", schedule->first[schedule->request.ranks]);
  }
  if (status != PP_OK) pp_free(kept);
  if (status != PP_OK) *out = (pp_lowered){ 0 };
  pp_free(work);
  return status;
}

/*
** runtime_memory.c: what a runtime holds beside the activations that the schedule needs. See pp_runtime_peaks in runtime.h.
**
** What PyTorch's runtimes keep was read off the allocator's peaks of 24 runs on 4 H200 (PyTorch 2.11, equal transformer blocks; they are in
** tests/data/gpu): buffers to receive in, and the last stage's outputs, are there for all microbatches at once, also for a hand-over on the
** same rank (torch/distributed/pipelining/stage.py, _prepare_forward_infra and _prepare_backward_infra); I frees nothing, and leaves
** gradients of the outputs of layers until W; the gradient that I sends to another rank stays until the step ends. So it is a description of
** these runs that holds for every number of microbatches among them, not a derivation.
*/
#include <math.h>

#include "core/runtime.h"

typedef struct {
  const pp_schedule *schedule;
  const pp_runtime *runtime;
  const pp_stage_bytes *bytes;
  double held, peak;
} walk;

static void add(walk *self, double bytes) {
  self->held += bytes;
  self->peak = fmax(self->peak, self->held);
}

static bool is_first(const walk *self, int stage) { return stage % self->schedule->stages_per_chain == 0; }

static void backward(walk *self, int stage) {
  add(self, self->bytes[stage].transient);
  add(self, -self->bytes[stage].transient - self->bytes[stage].stored);
}

static void input(walk *self, int stage) {
  bool sends = !is_first(self, stage) && self->schedule->rank_of[stage] != self->schedule->rank_of[stage - 1];
  if (is_first(self, stage) && self->runtime->first_skips_input) return;
  add(self, self->bytes[stage].output_gradients + (sends ? self->bytes[stage].message : 0));
}

static void weight(walk *self, int stage) {
  bool whole = is_first(self, stage) && self->runtime->first_skips_input;
  if (whole) backward(self, stage);
  else add(self, -self->bytes[stage].stored - self->bytes[stage].output_gradients);
}

static double walk_rank(walk *self, int rank) {
  self->held = self->peak = 0;
  for (size_t i = self->schedule->first[rank]; i < self->schedule->first[rank + 1]; i++) {
    const pp_action *action = &self->schedule->action[i];
    if (action->kind == PP_F || action->kind == PP_FB) add(self, self->bytes[action->stage].stored);
    if (action->kind == PP_B) backward(self, action->stage);
    if (action->kind == PP_FB) backward(self, action->stage_b);
    if (action->kind == PP_I) input(self, action->stage);
    if (action->kind == PP_W) weight(self, action->stage);
  }
  return self->peak;
}

/* A message for each microbatch: received forwards, received backwards, and what the last stage returns. */
static double buffers(const walk *self, int rank) {
  const pp_schedule *schedule = self->schedule;
  double sum = 0;
  for (int slot = 0; slot < schedule->chunks_per_rank; slot++) {
    int stage = schedule->stage_at[rank * schedule->chunks_per_rank + slot];
    double message = self->bytes[stage].message;
    if (!is_first(self, stage)) sum += message;
    sum += message;   /* of the next stage's backward, or the output */
  }
  return sum * schedule->microbatches_per_chain;
}

pp_status pp_runtime_peaks(const pp_schedule *schedule, const pp_runtime *runtime, const pp_stage_bytes *bytes, double *peaks,
                           pp_error *error) {
  walk self = { .schedule = schedule, .runtime = runtime, .bytes = bytes };
  if (!runtime->memory_is_known)
    return pp_illegal(error, "engine.runtime", "runtime", NAN, "what the %s runtime holds beside activations is not known", runtime->name);
  for (int rank = 0; rank < schedule->request.ranks; rank++) peaks[rank] = walk_rank(&self, rank) + buffers(&self, rank);
  return PP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_memory.c: what a runtime holds beside the activations that the schedule needs. See pp_runtime_peaks in runtime.h.
**
** What PyTorch's runtimes keep was read off the allocator's peaks of 24 runs on 4 H200 (PyTorch 2.11, equal transformer blocks; they are in
** tests/data/gpu): buffers to receive in, and the last stage's outputs, are there for all microbatches at once, also for a hand-over on the
** same rank (torch/distributed/pipelining/stage.py, _prepare_forward_infra and _prepare_backward_infra); I frees no activations, and leaves
** gradients of the outputs of layers until W; the gradient that I sends to another rank stays until the step ends. So it is a description of
** these runs that holds for every number of microbatches among them, not a derivation.
**
** The lean rule is what the executor in examples/torch holds (pipeline/dualpipe.py says it, pipeline/deferred.py does it): a received activation
** until the backward, what F stored until B or I, what W needs from I on, a received gradient while its backward runs; a result goes as soon
** as it was sent, and nothing is there for all microbatches.
**
** DeepSeek's package is as lean, but for what stays after W where linear layers are those of its example (examples/example_dualpipe.py,
** LinearFunc). There W runs weight.grad += output gradient × input while autograd records, and the input, as the backward found it, has a
** history. So weight.grad gets a history, too: it holds the output gradients of each deferred W, the received input with its gradient, and of
** a stage whose output gradient was received (into a tensor that requires a gradient) the last layer's input. That grows with every W until
** the gradients are dropped or detached; zeroing them alone keeps it. The 12 peaks of the package in tests/data/gpu are that, to a message:
** seven steps whose gradients were never dropped (tests/oracles/measured_runs.lua).
*/
#include <math.h>

#include "core/meter.h"
#include "core/runtime.h"

typedef struct {
  const pp_schedule *schedule;
  const pp_runtime *runtime;
  const pp_stage_bytes *bytes;
  double held, peak;
} walk;

/* An action that adds bytes, or frees them, and needs more while it runs. */
static void add(walk *self, double bytes, double transient) {
  double before = self->held;
  self->held += bytes;
  self->peak = fmax(self->peak, fmax(before, self->held) + transient);
}

static bool is_first(const walk *self, int stage) { return stage % self->schedule->stages_per_chain == 0; }
static bool is_last(const walk *self, int stage) { return (stage + 1) % self->schedule->stages_per_chain == 0; }

static void forward(walk *self, int stage) {
  add(self, self->bytes[stage].stored, self->bytes[stage].transient[PP_TRANSIENT_F]);
}

static void backward(walk *self, int stage) {
  add(self, -self->bytes[stage].stored, self->bytes[stage].transient[PP_TRANSIENT_B]);
}

static void input(walk *self, int stage) {
  bool sends = !is_first(self, stage) && self->schedule->rank_of[stage] != self->schedule->rank_of[stage - 1];
  if (is_first(self, stage) && self->runtime->first_skips_input) return;
  add(self, self->bytes[stage].pending - self->bytes[stage].stored + (sends ? self->bytes[stage].message : 0),
      self->bytes[stage].transient[PP_TRANSIENT_I]);
}

static void weight(walk *self, int stage) {
  bool whole = is_first(self, stage) && self->runtime->first_skips_input;
  if (whole) backward(self, stage);
  else add(self, -self->bytes[stage].pending, self->bytes[stage].transient[PP_TRANSIENT_W]);
}

/* What stays after F: what it stored but its result, which is sent at once, and what it received. */
static double lean_stored(const walk *self, int stage) {
  const pp_stage_bytes *bytes = &self->bytes[stage];
  return fmax(0, bytes->stored - bytes->output) + (is_first(self, stage) ? 0 : bytes->message);
}

static double received_gradient(const walk *self, int stage) { return is_last(self, stage) ? 0 : self->bytes[stage].message; }

/* beside: what has arrived for the other half of a pair. */
static void lean_forward(walk *self, int stage, double beside) {
  const pp_stage_bytes *bytes = &self->bytes[stage];
  add(self, lean_stored(self, stage), fmin(bytes->stored, bytes->output) + bytes->transient[PP_TRANSIENT_F] + beside);
}

/* beside: what has not left yet of the other half of a pair. */
static void lean_backward(walk *self, int stage, pp_transient kind, double beside) {
  double stays = kind == PP_TRANSIENT_I ? self->bytes[stage].deferred : 0;
  add(self, stays - lean_stored(self, stage), received_gradient(self, stage) + self->bytes[stage].transient[kind] + beside);
}

static void lean(walk *self, const pp_action *action) {
  const pp_stage_bytes *bytes = &self->bytes[action->stage];
  switch (action->kind) {
    case PP_F: lean_forward(self, action->stage, 0); break;
    case PP_B: lean_backward(self, action->stage, PP_TRANSIENT_B, 0); break;
    case PP_I: lean_backward(self, action->stage, PP_TRANSIENT_I, 0); break;
    case PP_W: add(self, bytes->after_weight - bytes->deferred, bytes->transient[PP_TRANSIENT_W]); break;
    default:
      lean_forward(self, action->stage, received_gradient(self, action->stage_b));
      lean_backward(self, action->stage_b, PP_TRANSIENT_B, is_last(self, action->stage) ? 0 : bytes->output);
  }
}

static void torch(walk *self, const pp_action *action) {
  if (action->kind == PP_F || action->kind == PP_FB) forward(self, action->stage);
  if (action->kind == PP_B) backward(self, action->stage);
  if (action->kind == PP_FB) backward(self, action->stage_b);
  if (action->kind == PP_I) input(self, action->stage);
  if (action->kind == PP_W) weight(self, action->stage);
}

static double walk_rank(walk *self, int rank) {
  self->held = self->peak = 0;
  pp_spend(1 + 4 * (self->schedule->first[rank + 1] - self->schedule->first[rank]));
  for (size_t i = self->schedule->first[rank]; i < self->schedule->first[rank + 1]; i++) {
    if (self->runtime->memory == PP_MEMORY_LEAN) lean(self, &self->schedule->action[i]);
    else torch(self, &self->schedule->action[i]);
  }
  return self->peak;
}

/* A message for each microbatch: received forwards, received backwards, and what the last stage returns. */
static double buffers(const walk *self, int rank) {
  const pp_schedule *schedule = self->schedule;
  double sum = 0;
  pp_spend(4 * (uint64_t)pp_schedule_stages_on(schedule, rank));
  for (int slot = 0; slot < pp_schedule_stages_on(schedule, rank); slot++) {
    int stage = pp_schedule_stages_of(schedule, rank)[slot];
    double message = self->bytes[stage].message;
    if (!is_first(self, stage)) sum += message;
    sum += is_last(self, stage) ? self->bytes[stage].kept : message;   /* the next stage's backward needs one */
  }
  return sum * schedule->microbatches_per_chain;
}

pp_status pp_runtime_peaks(const pp_schedule *schedule, const pp_runtime *runtime, const pp_stage_bytes *bytes, double *peaks,
                           pp_error *error) {
  walk self = { .schedule = schedule, .runtime = runtime, .bytes = bytes };
  if (runtime->memory == PP_MEMORY_UNKNOWN)
    return pp_illegal(error, "engine.runtime", "runtime", NAN, "what the %s runtime holds beside activations is not known", runtime->name);
  for (int rank = 0; rank < schedule->request.ranks; rank++)
    peaks[rank] = walk_rank(&self, rank) + (runtime->memory == PP_MEMORY_TORCH ? buffers(&self, rank) : 0);
  return PP_OK;
}

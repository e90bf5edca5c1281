/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_deepseek.c: the order in which DeepSeek's DualPipe and DualPipeV post messages. See runtime.h; the eight steps and their phases
** are those of schedules_eight_step.c.
** Messages are collected; before each action all that were collected are posted as one group, and the action waits for the whole group.
** An action's receives are collected right before it and its sends right after it, but for the cases in steps 2, 3 and 4 below.
** Source: deepseek-ai/DualPipe, dualpipe/dualpipe.py and dualpipe/dualpipev.py: step(), _commit_and_wait_comm.
*/
#include "core/runtime_deepseek.h"

#include "core/schedules.h"

enum { MOST_COLLECTED = 8 };   /* two sends and two receives of a pair, and what step 2 adds */

typedef struct {
  pp_lowering *lowering;
  int rank;
  size_t next;                         /* action */
  pp_eight_shape shape;
  int collected;
  pp_message_end end[MOST_COLLECTED];
  uint32_t messages[2][2][2];          /* [receive][backward][phase]: collected so far; microbatches are taken in order */
} group;

static void collect(group *self, bool receives, bool backward, int phase) {
  const pp_schedule *schedule = self->lowering->schedule;
  int stage = pp_schedule_stages_of(schedule, self->rank)[self->shape.slot[phase]];
  uint32_t microbatch = self->messages[receives][backward][phase];
  pp_message_end *end = &self->end[self->collected];
  if (!(receives ? pp_lower_input : pp_lower_output)(self->lowering, stage, microbatch, backward, end)) return;
  self->messages[receives][backward][phase]++;
  self->collected++;
}

static void receive_forward(group *self, int phase)  { collect(self, true, false, phase); }
static void receive_backward(group *self, int phase) { collect(self, true, true, phase); }
static void send_forward(group *self, int phase)     { collect(self, false, false, phase); }
static void send_backward(group *self, int phase)    { collect(self, false, true, phase); }

/* Posts what was collected, waits for it, and runs the rank's next action. */
static void run(group *self) {
  pp_lowering *lowering = self->lowering;
  if (self->collected > 0)
    pp_lower_step(lowering, self->rank, PP_STEP_WAIT, pp_lower_post(lowering, self->rank, self->end, self->collected));
  self->collected = 0;
  pp_lower_step(lowering, self->rank, PP_STEP_ACTION, self->next++);
}

static void forward(group *self, int phase) {
  receive_forward(self, phase);
  run(self);
  send_forward(self, phase);
}

static void backward(group *self, int phase) {
  receive_backward(self, phase);
  run(self);
  send_backward(self, phase);
}

static void pair(group *self, int forward_phase, int backward_phase, bool receives) {
  if (receives) receive_forward(self, forward_phase);
  receive_backward(self, backward_phase);
  run(self);
  send_forward(self, forward_phase);
  send_backward(self, backward_phase);
}

static void lower_step_2(group *self, int times) {
  receive_forward(self, 0);
  for (int k = 0; k < times; k++) {
    run(self);
    if (self->shape.middle) send_forward(self, 0);
    receive_forward(self, 0);
    receive_forward(self, 1);
    run(self);
    if (!self->shape.middle || k < times - 1) send_forward(self, 1);
    if (!self->shape.middle) send_forward(self, 0);
  }
}

/* The first round of step 4 on the rank in the middle, whose last F1 of step 2 was not sent yet. */
static void lower_turn(group *self) {
  run(self);
  send_forward(self, 1);
  receive_backward(self, 1);
  run(self);
  send_forward(self, 0);
  send_backward(self, 1);
}

static void lower_rank(group *self) {
  int before = self->shape.half + 1, after = self->shape.turns - self->shape.half - 1;
  int main_steps = self->shape.microbatches - 2 * self->shape.turns + self->shape.half + 1;
  for (int k = 0; k < 2 * after; k++) forward(self, 0);        /* 1 */
  lower_step_2(self, before);                                  /* 2 */
  for (int k = 0; k < after; k++) {                            /* 3: I1, W, F1 */
    backward(self, 1);
    receive_forward(self, 1);
    run(self);
    run(self);
    send_forward(self, 1);
  }
  for (int k = 0; k < main_steps; k++) {                       /* 4: step 2 received the first F0 */
    if (k == 0 && self->shape.middle) lower_turn(self);
    else pair(self, 0, 1, k > 0);
    pair(self, 1, 0, true);
  }
  for (int k = 0; k < after; k++) {                            /* 5 */
    backward(self, 1);
    pair(self, 1, 0, true);
  }
  for (int k = 0; k < before; k++) {                           /* 6 */
    backward(self, 1);
    backward(self, 0);
  }
  for (int k = 0; k < after; k++) {                            /* 7: W, I0 */
    run(self);
    backward(self, 0);
  }
  for (int k = 0; k < before; k++) run(self);                  /* 8: W */
  if (self->collected > 0) pp_lower_post(self->lowering, self->rank, self->end, self->collected);
}

void pp_lower_deepseek(pp_lowering *lowering) {
  for (int rank = 0; rank < lowering->schedule->request.ranks; rank++) {
    group self = { .lowering = lowering, .rank = rank, .next = lowering->schedule->first[rank],
                   .shape = pp_eight_shape_of(&lowering->schedule->request, rank) };
    lower_rank(&self);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_eight_step.c: DualPipe and DualPipeV: one body of eight steps, two parameterisations.
**
** A rank works on two phases: phase 0 is the chunk whose microbatches reach it first, phase 1 the other one. In DualPipe the phases are the
** two directions (a rank of the second half sees the upward one first), in DualPipeV the two legs of the V. `turns` is how many ranks a
** microbatch passes in phase 0, `half` how many of them came before this rank, `microbatches` how many each phase gets (pp_eight_shape).
** Weight gradients that an I defers wait in one queue for both phases, oldest first.
** Sources: deepseek-ai/DualPipe, dualpipe/dualpipe.py and dualpipe/dualpipev.py, step(); the steps are numbered as there.
*/
#include "core/schedules.h"

pp_eight_shape pp_eight_shape_of(const pp_schedule_request *request, int rank) {
  const int directions = pp_schedule_traits_of(request->kind)->chains, turns = request->ranks / directions;
  const bool second_half = rank >= turns;   /* never in a V */
  const int half = second_half ? request->ranks - 1 - rank : rank;
  return (pp_eight_shape){ .turns = turns, .half = half, .microbatches = request->microbatches / directions,
                           .slot = { second_half, !second_half }, .middle = half == turns - 1 };
}

/*
** Microbatches of a phase are taken in order, so a counter for forwards and one for backwards say which is next. The queue of weight
** gradients needs no memory, because its order is a property of the steps: step 3 runs each W right after its I, so the queue is empty
** when step 6 starts to defer; step 6 defers both phases in turn, step 7 only phase 0.
*/
typedef struct {
  pp_writer *writer;
  pp_eight_shape shape;
  int f[2], b[2];
  int weights_run;     /* of those that steps 6 and 7 defer */
  int first_phase;     /* phase of the first of them; the phases alternate from there until step 6 ends */
  int alternating;     /* how many alternate; after them all are of phase 0 */
  int w[2];            /* next microbatch to run W for */
} eight_order;

static void forward(eight_order *order, int phase) {
  pp_write(order->writer, PP_F, order->shape.slot[phase], order->f[phase]++);
}

static void full(eight_order *order, int phase) {
  pp_write(order->writer, PP_B, order->shape.slot[phase], order->b[phase]++);
}

static void input(eight_order *order, int phase) {
  pp_write(order->writer, PP_I, order->shape.slot[phase], order->b[phase]++);
}

static void pair(eight_order *order, int forward_phase, int backward_phase) {
  pp_write_pair(order->writer, order->shape.slot[forward_phase], order->f[forward_phase]++,
                order->shape.slot[backward_phase], order->b[backward_phase]++);
}

/* The oldest weight gradient that steps 6 and 7 deferred. */
static void weight(eight_order *order) {
  int n = order->weights_run++;
  int phase = n >= order->alternating ? 0 : n % 2 == 0 ? order->first_phase : 1 - order->first_phase;
  pp_write(order->writer, PP_W, order->shape.slot[phase], order->w[phase]++);
}

/* Step 6: h + 1 times B1, B0; from its middle on, which is exactly h + 1 backwards before its end, as I. */
static void write_step_6(eight_order *order) {
  int backwards = 2 * (order->shape.half + 1), whole = order->shape.half + 1;
  for (int k = 0; k < backwards; k++) {
    int phase = k % 2 == 0 ? 1 : 0;
    if (k < whole) {
      full(order, phase);
      continue;
    }
    if (k == whole) {
      order->first_phase = phase;
      order->alternating = backwards - whole;
      order->w[0] = order->b[0];
      order->w[1] = order->b[1];
    }
    input(order, phase);
  }
}

static void write_eight_step(const pp_schedule_request *request, int rank, pp_writer *writer) {
  eight_order order = { .writer = writer, .shape = pp_eight_shape_of(request, rank) };
  int before = order.shape.half + 1, after = order.shape.turns - order.shape.half - 1;
  int main_steps = order.shape.microbatches - 2 * order.shape.turns + order.shape.half + 1;
  for (int k = 0; k < 2 * after; k++) forward(&order, 0);                      /* 1 */
  for (int k = 0; k < before; k++) {                                           /* 2 */
    forward(&order, 0);
    forward(&order, 1);
  }
  for (int k = 0; k < after; k++) {                                            /* 3 */
    input(&order, 1);
    pp_write(writer, PP_W, order.shape.slot[1], order.b[1] - 1);
    forward(&order, 1);
  }
  for (int k = 0; k < main_steps; k++) {                                       /* 4 */
    if (k == 0 && order.shape.middle) {   /* nothing of phase 1 has come back yet that could overlap */
      forward(&order, 0);
      full(&order, 1);
    } else {
      pair(&order, 0, 1);
    }
    pair(&order, 1, 0);
  }
  for (int k = 0; k < after; k++) {                                            /* 5 */
    full(&order, 1);
    pair(&order, 1, 0);
  }
  write_step_6(&order);
  for (int k = 0; k < after; k++) {                                            /* 7 */
    weight(&order);
    input(&order, 0);
  }
  for (int k = 0; k < before; k++) weight(&order);                             /* 8 */
}

static size_t count_eight_step(const pp_schedule_request *request, int rank) {
  pp_eight_shape shape = pp_eight_shape_of(request, rank);
  int before = shape.half + 1, after = shape.turns - shape.half - 1;
  int main_steps = shape.microbatches - 2 * shape.turns + shape.half + 1;
  int actions = 2 * after + 2 * before + 3 * after + (2 * main_steps + (shape.middle ? 1 : 0)) + 2 * after + 2 * before + 2 * after + before;
  return (size_t)actions;
}

const pp_constructor pp_construct_eight_step = { .count = count_eight_step, .write = write_eight_step };

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_v.c: ZB-V in a fixed order: two chunks per rank, placed in a V, backwards split.
**
** The order is that of PyTorch's ScheduleZBVZeroBubble (torch/distributed/pipelining/schedules.py), which is written for at least 2P − 1
** microbatches; actions of microbatches that do not exist are left out, so it runs for any M ≥ 1.
*/
#include "core/meter.h"
#include "core/schedules.h"

enum { DOWN = 0, UP = 1 };   /* the rank's slots: stage r on the way down, stage 2P − 1 − r on the way up */

/* The rank's progress: how many F, I and W of each chunk the order has placed. */
typedef struct {
  pp_writer *writer;
  int microbatches;
  int f[2], i[2], w[2];
} v_order;

static void place(v_order *order, pp_action_kind kind, int slot, int *counter) {
  if (*counter < order->microbatches) pp_write(order->writer, kind, slot, *counter);
  ++*counter;
}

static void forward(v_order *order, int slot) { place(order, PP_F, slot, &order->f[slot]); }
static void input(v_order *order, int slot) { place(order, PP_I, slot, &order->i[slot]); }
static void weight(v_order *order, int slot) { place(order, PP_W, slot, &order->w[slot]); }

static void write_v(const pp_schedule_request *request, int rank, pp_writer *writer) {
  int ranks = request->ranks;
  int least = 2 * ranks - 1;
  int total = request->microbatches > least ? request->microbatches : least;
  pp_spend(12 * (uint64_t)total);
  v_order order = { .writer = writer, .microbatches = request->microbatches };
  for (int k = 0; k < 2 * (ranks - rank) - 1; k++) forward(&order, DOWN);
  for (int k = 0; k < rank; k++) {
    forward(&order, UP);
    forward(&order, DOWN);
  }
  for (int k = 0; k < ranks - rank; k++) {
    forward(&order, UP);
    input(&order, UP);
    weight(&order, UP);
  }
  while (order.f[UP] < order.f[DOWN] || order.f[DOWN] < total) {
    if (order.f[DOWN] < total) forward(&order, DOWN);
    input(&order, DOWN);
    weight(&order, DOWN);
    forward(&order, UP);
    input(&order, UP);
    weight(&order, UP);
  }
  for (int k = 0; k < rank; k++) {
    input(&order, DOWN);
    input(&order, UP);
  }
  for (int k = 0; k < ranks - rank; k++) {
    input(&order, DOWN);
    weight(&order, DOWN);
  }
  while (order.w[UP] < order.i[UP]) weight(&order, UP);
  while (order.w[DOWN] < order.i[DOWN]) weight(&order, DOWN);
}

static size_t count_v(const pp_schedule_request *request, int rank) {
  (void)rank;
  return 6 * (size_t)request->microbatches;
}

const pp_constructor pp_construct_v = { .count = count_v, .write = write_v };

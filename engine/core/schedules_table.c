/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_table.c: schedules that walk one table of (microbatch, chunk) entries: some forwards to warm up, then a forward and a backward
** in turn, then the backwards that are left. What differs between them is a handful of numbers per rank:
**
**   group     microbatches that go through a chunk before the next chunk's turn. Table entry k, for groups of N microbatches over V chunks:
**             chunk (k mod N·V) div N of the k-th's group; the last group takes the rest. Backward k is entry k with chunk V − 1 − chunk.
**   warmup    forwards before the first backward
**   pairs     the forward and the backward of a turn as one FB
**   split     backward as I, and its W later
**   lag       with split: a W, always the oldest pending, follows each I from number `lag` on; the rest come last
**   reversed  backwards take the microbatches from the last to the first
**
** Sources: 1F1B and interleaved: Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and
** get_schedule_table; with overlapped all-to-all (--overlap-moe-expert-parallel-comm) its warm-up is one forward longer, so that the two
** halves of a turn do not need each other. PyTorch torch/distributed/pipelining/schedules.py: _get_warmup_ops writes the same interleaved
** order; ScheduleInterleavedZeroBubble warms up by P − 1 − r instead of twice that, which with one chunk is ZB-H1; ScheduleLoopedBFS.
** ZB-H1 and ZB-H2: Qi et al. 2024, "Zero Bubble Pipeline Parallelism", figures 2 and 3; their warm-up factor k is 1 and 2 here, in
** units of P − 1 − r, and a rank lags k·r weight gradients behind.
*/
#include "core/schedules.h"

typedef struct {
  int entries, chunks, microbatches;
  int group, warmup, lag;
  bool pairs, split, reversed;
} table_shape;

static int smaller(int a, int b) { return a < b ? a : b; }

static table_shape shape_of(const pp_schedule_request *request, int rank) {
  const pp_schedule_traits *traits = pp_schedule_traits_of(request->kind);
  int below = request->ranks - 1 - rank;   /* ranks after this one */
  table_shape shape = { .chunks = request->chunks, .microbatches = request->microbatches, .group = request->microbatches,
                        .split = traits->split_backward, .pairs = traits->overlaps };
  shape.entries = shape.microbatches * shape.chunks;
  if (traits->grouping != PP_UNGROUPED) shape.group = pp_schedule_group(request);
  int chunks_before = (shape.chunks - 1) * shape.group;   /* forwards until the last chunk's turn */
  switch (request->kind) {
    case PP_GPIPE: case PP_LOOPED_BFS:
      shape.warmup = shape.entries;
      shape.reversed = request->kind == PP_LOOPED_BFS;
      break;
    case PP_INTERLEAVED_1F1B: case PP_INTERLEAVED_1F1B_OVERLAP:
      shape.warmup = chunks_before + 2 * below + shape.pairs;
      break;
    case PP_ZB_H1: case PP_ZB_H2: case PP_INTERLEAVED_ZERO_BUBBLE: {
      int factor = request->kind == PP_ZB_H2 ? 2 : 1;
      shape.warmup = chunks_before + factor * below;
      shape.lag = factor * rank;
      break;
    }
    default:
      shape.warmup = below;
      break;
  }
  shape.warmup = smaller(shape.warmup, shape.entries);
  return shape;
}

/* Walks the table in order, without a division per entry. */
typedef struct {
  int microbatch, chunk;
  int group_first, group_end;
} cursor;

static cursor cursor_at_start(const table_shape *shape) {
  return (cursor){ .group_end = smaller(shape->group, shape->microbatches) };
}

static void cursor_advance(cursor *at, const table_shape *shape) {
  if (++at->microbatch < at->group_end) return;
  if (++at->chunk < shape->chunks) {
    at->microbatch = at->group_first;
    return;
  }
  at->chunk = 0;
  at->group_first = at->group_end;
  at->group_end = smaller(at->group_end + shape->group, shape->microbatches);
}

/* The slot and the microbatch of the backward that stands at `at`. */
static int backward_slot(const cursor *at, const table_shape *shape) { return shape->chunks - 1 - at->chunk; }

static int backward_microbatch(const cursor *at, const table_shape *shape) {
  return shape->reversed ? shape->microbatches - 1 - at->microbatch : at->microbatch;
}

static void write_forward(pp_writer *writer, cursor *at, const table_shape *shape) {
  pp_write(writer, PP_F, at->chunk, at->microbatch);
  cursor_advance(at, shape);
}

static void write_backward(pp_writer *writer, pp_action_kind kind, cursor *at, const table_shape *shape) {
  pp_write(writer, kind, backward_slot(at, shape), backward_microbatch(at, shape));
  cursor_advance(at, shape);
}

static void write_pair(pp_writer *writer, cursor *forward, cursor *backward, const table_shape *shape) {
  pp_write_pair(writer, forward->chunk, forward->microbatch, backward_slot(backward, shape), backward_microbatch(backward, shape));
  cursor_advance(forward, shape);
  cursor_advance(backward, shape);
}

static void write_table(const pp_schedule_request *request, int rank, pp_writer *writer) {
  table_shape shape = shape_of(request, rank);
  cursor forward = cursor_at_start(&shape), backward = forward, weight = forward;
  int turns = shape.entries - shape.warmup;   /* with a forward; the backwards after them have none */
  for (int k = 0; k < shape.warmup; k++) write_forward(writer, &forward, &shape);
  for (int k = 0; k < shape.entries; k++) {
    if (k < turns && shape.pairs) {
      write_pair(writer, &forward, &backward, &shape);
      continue;
    }
    if (k < turns) write_forward(writer, &forward, &shape);
    write_backward(writer, shape.split ? PP_I : PP_B, &backward, &shape);
    if (shape.split && k >= shape.lag) write_backward(writer, PP_W, &weight, &shape);
  }
  for (int k = 0; shape.split && k < smaller(shape.lag, shape.entries); k++) write_backward(writer, PP_W, &weight, &shape);
}

static size_t count_table(const pp_schedule_request *request, int rank) {
  table_shape shape = shape_of(request, rank);
  size_t entries = (size_t)shape.entries;
  if (shape.pairs) return entries + (size_t)shape.warmup;
  return entries * (shape.split ? 3 : 2);
}

const pp_constructor pp_construct_table = { .count = count_table, .write = write_table };

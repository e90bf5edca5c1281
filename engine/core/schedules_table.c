/*
** schedules_table.c: schedules that walk one table of (microbatch, chunk) entries: some forwards to warm up, then a forward and a backward
** in turn, then the backwards that are left. What differs between them is four numbers per rank:
**
**   group     microbatches that go through a chunk before the next chunk's turn. Table entry k, for groups of N microbatches over V chunks:
**             chunk (k mod N·V) div N of the k-th's group; the last group takes the rest. Backward k is entry k with chunk V − 1 − chunk.
**   warmup    forwards before the first backward
**   split     backward as I, and its W later
**   lag       with split: a W, always the oldest pending, follows each I from number `lag` on; the rest come last
**
** Sources: 1F1B and interleaved: Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and
** get_schedule_table; PyTorch torch/distributed/pipelining/schedules.py, _get_warmup_ops, writes the same for N = M div (M div P).
** ZB-H1 and ZB-H2: Qi et al. 2024, "Zero Bubble Pipeline Parallelism", figures 2 and 3; their warm-up factor k is 1 and 2 here, in
** units of P − 1 − r, and a rank lags k·r weight gradients behind.
*/
#include "core/schedules.h"

typedef struct {
  int entries, chunks, microbatches;
  int group, warmup, lag;
  bool split;
} table_shape;

static int smaller(int a, int b) { return a < b ? a : b; }

static table_shape shape_of(const pp_schedule_request *request, int rank) {
  int below = request->ranks - 1 - rank;   /* ranks after this one */
  table_shape shape = { .chunks = request->chunks, .microbatches = request->microbatches, .group = request->microbatches };
  shape.entries = shape.microbatches * shape.chunks;
  switch (request->kind) {
    case PP_GPIPE:
      shape.warmup = shape.entries;
      break;
    case PP_INTERLEAVED_1F1B:
      shape.group = request->group ? request->group : request->ranks;
      shape.warmup = (shape.chunks - 1) * shape.group + 2 * below;
      break;
    case PP_ZB_H1: case PP_ZB_H2: {
      int factor = request->kind == PP_ZB_H2 ? 2 : 1;
      shape.warmup = factor * below;
      shape.split = true;
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

static void write_forward(pp_writer *writer, cursor *at, const table_shape *shape) {
  pp_write(writer, PP_F, at->chunk, at->microbatch);
  cursor_advance(at, shape);
}

static void write_backward(pp_writer *writer, pp_action_kind kind, cursor *at, const table_shape *shape) {
  pp_write(writer, kind, shape->chunks - 1 - at->chunk, at->microbatch);
  cursor_advance(at, shape);
}

static void write_table(const pp_schedule_request *request, int rank, pp_writer *writer) {
  table_shape shape = shape_of(request, rank);
  cursor forward = cursor_at_start(&shape), backward = forward, weight = forward;
  int forwards = 0, weights = 0;
  for (; forwards < shape.warmup; forwards++) write_forward(writer, &forward, &shape);
  for (int k = 0; k < shape.entries; k++) {
    if (forwards < shape.entries) {
      write_forward(writer, &forward, &shape);
      forwards++;
    }
    write_backward(writer, shape.split ? PP_I : PP_B, &backward, &shape);
    if (shape.split && k >= shape.lag) {
      write_backward(writer, PP_W, &weight, &shape);
      weights++;
    }
  }
  if (shape.split)
    for (; weights < shape.entries; weights++) write_backward(writer, PP_W, &weight, &shape);
}

static size_t count_table(const pp_schedule_request *request, int rank) {
  (void)rank;
  size_t entries = (size_t)request->microbatches * (size_t)request->chunks;
  return entries * (pp_schedule_traits_of(request->kind)->split_backward ? 3 : 2);
}

const pp_constructor pp_construct_table = { count_table, write_table };

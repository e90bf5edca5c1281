/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluation.h: everything that a plan says about one candidate: its stages, its step and what that would be without overlap, without
** hand-overs or on cool cards, the bytes of its ranks, and the same layout under another schedule.
*/
#ifndef PP_EVALUATION_H
#define PP_EVALUATION_H

#include "core/evaluate_memory.h"
#include "core/evaluate_time.h"

typedef struct {
  pp_priced of;
  const pp_schedule_traits *traits;  /* NULL at depth 1 */
  pp_timing timing;
  pp_timing no_overlap;          /* with pairs that take F + B */
  pp_timing cool;                /* with cards that do not heat up */
  double hop_exposed;            /* what hand-overs between ranks add to the makespan */
  int stages;
  pp_stage stage[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  bool has_simulation, has_program;
  pp_schedule schedule;          /* at the full batch, with its simulation; not at depth 1 */
  pp_simulation simulation;
  pp_memory_program program;     /* not at depth 1, nor where the whole schedule has to serve */
  pp_rank_bytes bytes[PP_MAX_LAYERS];
  int fullest;                   /* the first rank that takes most bytes */
} pp_evaluation;

/*
** Fills *out, which starts as { 0 }, for a candidate whose split is settled (fit.h). What `of` points to must outlive it. The caller frees it,
** after a failure too. PP_ILLEGAL as pp_evaluate_check. Cost: that of pp_evaluate_time two to four times, and of pp_evaluate_ranks.
*/
pp_status pp_evaluation_compute(const pp_priced *of, pp_evaluation *out, pp_error *error);
void pp_evaluation_free(pp_evaluation *evaluation);

/* How many stages a rank holds, and which stage of one chain it has in a slot. */
int pp_evaluation_slots(const pp_evaluation *evaluation);
int pp_evaluation_stage_in_slot(const pp_evaluation *evaluation, int rank, int slot);

/* Parameters on one GPU: on the rank that holds most, and what each would hold of one copy spread evenly. */
typedef struct {
  double resident, unique;
} pp_held_parameters;

pp_held_parameters pp_evaluation_parameters(const pp_evaluation *evaluation);

/*
** Seconds of one step. work: of a mean rank, each chunk executed alone; ideal: of that, without all-to-all. alltoall: of the rank that spends
** most on it, and what is exposed there: what its time holds beyond compute, for nothing of it is hidden outside overlapped pairs. tensor,
** context: collectives of the rank that spends most on them, and how much of its ring is not hidden behind attention.
*/
typedef struct {
  double work, ideal, alltoall, alltoall_exposed, tensor, context, context_exposed;
} pp_step_parts;

pp_step_parts pp_evaluation_parts(const pp_evaluation *evaluation);

/* The same layout and M under another schedule of one chunk a rank, its layers split anew, without overlap: what savings are counted against. */
typedef struct {
  double bytes;
  pp_timing timing, cool;
} pp_baseline;

/* PP_ILLEGAL where it cannot be built. */
pp_status pp_evaluation_baseline(const pp_priced *of, pp_schedule_kind kind, pp_baseline *out, pp_error *error);

#endif

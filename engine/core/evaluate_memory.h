/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_memory.h: bytes of a candidate's ranks, and the programs that they are counted over.
*/
#ifndef PP_EVALUATE_MEMORY_H
#define PP_EVALUATE_MEMORY_H

#include "core/stages.h"

/*
** Programs for memory. A rank's peak does not depend on time, and once M has reached the schedule's steady state more microbatches only
** repeat it, so the peak of a capped M is that of M; where all forwards come first, M times that of one microbatch
** (tests/unit/evaluate_test.c compares them). A capped program, and the most activations that each slot and each rank ever holds. zb_auto has ZB-H2's, an order of the kind that it plans, to compare splits by.
*/
typedef struct {
  pp_schedule schedule;
  uint32_t *stored, *pending;  /* [ranks × chunks_per_rank] */
  pp_most_held *held;          /* [ranks] */
} pp_memory_program;

/*
** The same for zb_auto, whose program is only planned when its time is asked for: bytes when the fullest rank holds as many chunks as fit
** into usable_bytes, between P and 2P (P where not even that fits), each with the larger of what is stored and what is pending. No less than
** the program takes. *limit says how many. O(P).
*/
pp_status pp_evaluate_limited_memory(const pp_priced *of, double *bytes, int *rank, int *limit, pp_error *error);

/* Bytes of a pipeline rank beside tensors of the model: as given, its communicators, and messages that a runtime allocates for each
** microbatch. PP_EVERY_RANK: no more than those of any rank. */
double pp_evaluate_overhead(const pp_problem *problem, const pp_candidate *candidate, int rank);

/* M for which a candidate's peaks times the repeats are those at its microbatches: at most some multiple of P. */
int64_t pp_evaluate_capped_microbatches(const pp_candidate *candidate);
/* M of kinds that run all forwards before any backward, whose cap is 1; 1 of others. */
int64_t pp_evaluate_repeats(const pp_candidate *candidate);

/* PP_ILLEGAL as pp_candidate_check. Depth 1 has none. The caller frees *out. */
pp_status pp_memory_program_build(const pp_candidate *candidate, pp_memory_program *out, pp_error *error);
void pp_memory_program_free(pp_memory_program *program);

/* Bytes of every rank, out[P]: over the schedule of a memory program, or of the whole one for zb_auto, whose order follows from times. `program`
** is NULL at depth 1. O(actions of the program). */
pp_status pp_evaluate_ranks(const pp_priced *of, const pp_schedule *program, pp_rank_bytes *out, pp_error *error);

/*
** The fullest rank of those and its number (the first of equals). `program` is NULL at depth 1. Ranks whose upper bound is below the fullest
** found are not walked.
*/
pp_status pp_evaluate_memory(const pp_priced *of, const pp_memory_program *program, pp_rank_bytes *out, int *rank, pp_error *error);

/* What stands for a candidate's program where it is not planned yet, at so many microbatches: schedule_kinds.h. */
pp_schedule_request pp_evaluate_stand_in(const pp_candidate *candidate, int64_t microbatches);

#endif

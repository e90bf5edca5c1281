/* SPDX-License-Identifier: Apache-2.0 */
/*
** candidate.h: which layouts and schedules a plan can be made of.
** Enumerates tensor, context, expert, data and pipeline degrees with every schedule that may be planned, under framework-neutral legality
** only: what divides what. Whether a candidate is a good idea, fits, or obeys a framework is for rules, costs and memory to say.
*/
#ifndef PP_CANDIDATE_H
#define PP_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/layout.h"
#include "core/model.h"
#include "core/schedule.h"

enum { PP_NO_SCHEDULE = -1 };  /* at pipeline depth 1 */

typedef struct {
  pp_layout layout;                /* chunks: stages per rank and direction, 2 for V placements */
  int kind;                        /* pp_schedule_kind or PP_NO_SCHEDULE */
  int configured_virtual;          /* V as users configure it: chunks of an interleaved schedule, otherwise 1 (or what was fixed) */
  int group;                       /* as in pp_schedule_request */
  int limit;                       /* zb_auto: chunks that a rank may hold, P … 2P, as many as fit (fit.h); 0 elsewhere and before */
  const int *layers_per_stage;     /* what fitting into memory took, or NULL: as many as balance time. Not owned */
  int64_t microbatches;            /* M per pipeline and step at the full batch: what time and memory are computed at */
  int64_t smallest_microbatches;   /* M at the smallest batch of a ramp: what legality is judged at */
  int choice;                      /* of the space that it was enumerated from */
} pp_candidate;

/* What is fixed; 0 is free. kind is PP_SCHEDULE_KINDS when free. A fixed value is enumerated even where it is illegal, so that rules can
** judge it and name the nearest legal one. */
typedef struct {
  int tensor, context, expert, expert_tensor, data, pipeline, configured_virtual;
  int64_t microbatches;            /* at the full batch */
  int kind;
  int stages;                      /* entries of a given layers_per_stage: stages of one chain */
} pp_fixed;

typedef struct {
  const pp_model *model;
  int64_t gpus, global_batch, smallest_batch, micro_batch;  /* batches in sequences; both multiples of what is planned */
  int scale_up_gpus;               /* TP at pipeline depth 1 stays within it */
  bool planned[PP_SCHEDULE_KINDS]; /* schedules that may be planned */
  bool experts_as_tensor;          /* expert TP, where it is not fixed, is TP and not 1 */
  bool experts_apart;              /* beside that 1 is tried too, where TP is not fixed */
  bool rounds;                     /* groups of microbatches by PP_GROUP_ROUNDS, whatever the schedule's own rule */
  pp_fixed fixed;
  /* How far free degrees are enumerated: bounds of the work, not judgements. */
  int max_tensor, max_context, max_chunks;
  int choice;                      /* what its candidates say they are of */
  bool alone;                      /* without a pipeline only */
} pp_candidate_space;

typedef struct {
  size_t count, capacity;
  pp_candidate *candidate;
} pp_candidates;

/*
** Appends to *out, which starts as { 0 }, all candidates in order of P, TP, CP, EP, expert TP, schedule, V: layouts with GPUs =
** TP × CP × DP × P, M = batch / (DP × microbatch size) integral at both batches.
**   TP            divides the heads, and the key-value heads or is a multiple of them (they are then replicated), and the dense MLP
**   CP            powers of two
**   EP            divides the experts; EP × expert TP × P divides GPUs. Expert TP, unless fixed, is what trainers take it for: TP or 1; as TP it
**                 divides the width of an expert
**   P             divides GPUs / (TP × CP), and P × V ≤ layers
**   V             1; 2 for V placements; 2 … max_chunks for interleaved
**   group         by rounds; or where it is P by default the smallest N ≥ P with M mod N = 0 or ≥ P at both batches (Megatron's rule), P if
**                 there is none
** Depth 1 is always there, with schedule none, TP within scale_up_gpus, and only TP, CP, EP, expert TP taken from what is fixed, unless
** the fixed depth is 1. PP_NO_MEMORY; the caller frees *out, after a failure too.
*/
pp_status pp_candidates_enumerate(const pp_candidate_space *space, pp_candidates *out, pp_error *error);
void pp_candidates_free(pp_candidates *candidates);

/* The schedule that a candidate asks for, at so many microbatches. Not for PP_NO_SCHEDULE. */
pp_schedule_request pp_candidate_request(const pp_candidate *candidate, int64_t microbatches);

/* Microbatches in a group of its schedule, 0 where it has none. Not for PP_NO_SCHEDULE. */
int pp_candidate_group(const pp_candidate *candidate);

/* The program of fewer microbatches whose groups are as large as in the candidate's whole program. */
pp_schedule_request pp_candidate_shortened(const pp_candidate *candidate, int64_t microbatches);

/*
** Is it legal? PP_ILLEGAL with the rule: engine.tensor_heads, engine.expert_count, engine.expert_columns, engine.layers_below_stages, or what
** pp_schedule_check_within says at the smallest batch and then at the full one, of no more than so many actions or, without a limit, INT64_MAX.
*/
pp_status pp_candidate_check_within(const pp_candidate *candidate, const pp_model *model, int64_t actions, pp_error *error);
pp_status pp_candidate_check(const pp_candidate *candidate, const pp_model *model, pp_error *error);

#endif

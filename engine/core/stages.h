/* SPDX-License-Identifier: Apache-2.0 */
/*
** stages.h: the stages of a candidate: which layers each holds, and what that takes.
*/
#ifndef PP_STAGES_H
#define PP_STAGES_H

#include "core/price.h"
#include "core/split_cache.h"

/* Stages of one chain: P × V. For candidates that pp_stages_fill or pp_candidate_check accepts: others may have more than an int holds. */
int pp_stages_count(const pp_candidate *candidate);
/* NULL at depth 1. */
const pp_schedule_traits *pp_stages_traits(const pp_candidate *candidate);
/* Without a pipeline: do a microbatch's backward and the next one's forward run side by side? See overlap_alone of pp_training. */
bool pp_stages_overlap_alone(const pp_priced *of);
/* Which ranks hold a stage of one chain: two for bidirectional schedules. Returns how many. */
int pp_stages_ranks(const pp_candidate *candidate, int stage, int rank[2]);

/*
** The stages of one chain, out[P × V]. Layers as the problem gives them, as the candidate has them, or the first of pp_stages_splits.
** PP_ILLEGAL when there are fewer layers than stages.
*/
pp_status pp_stages_fill(const pp_priced *of, pp_stage *out, pp_error *error);
void pp_stages_seconds(const pp_priced *of, const pp_stage *stages, pp_stage_seconds *out);

/*
** Splits that are worth comparing, without repetition, when the split is the planner's to choose: ranks balanced, the ends empty if need be;
** interleaved: chunks balanced in phases, likewise; ranks balanced with a layer at least on every stage. Which is the fastest depends on
** the schedule: only a simulation tells. Returns how many; 0: the split is given or even. `cache`, of candidates of the same model, may be
** NULL.
*/
int pp_stages_splits(const pp_priced *of, pp_split_cache *cache, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]);

/*
** The first of these with its layers on early ranks, for schedules with one chunk a rank: as many as each has room for (pp_split_forward), or
** balanced, the first of equals with a layer more (pp_split.outer). False where that is the same, or the split is given or even.
*/
typedef enum { PP_EARLY_FULL, PP_EARLY_EQUAL, PP_EARLY_SPLITS } pp_early_split;
bool pp_stages_early(const pp_priced *of, pp_early_split which, int *layers);

/*
** Makes the fullest rank emptier. In a V or with two chains first by evening out its own stages, for the early one holds many microbatches
** and the late one few; then by the balanced split with one layer less on `rank` than `stages` has there. most[P] carries the limits of
** ranks from call to call (INT_MAX: none). Writes layers[P × V]; false when that rank has nothing to give, or its split is given or even.
*/
bool pp_stages_squeeze(const pp_priced *of, const pp_stage *stages, int rank, int *most, int *layers);

#endif

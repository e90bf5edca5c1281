/* SPDX-License-Identifier: Apache-2.0 */
/*
** fit.h: how a candidate's layers are split, and what its fullest rank then takes: of the splits that fit into memory the fastest.
*/
#ifndef PP_FIT_H
#define PP_FIT_H

#include "core/evaluate_memory.h"
#include "core/evaluate_split.h"

/* The fullest rank, and what it would take with one copy of its stages: a second copy is half of its weights and gradients, for the
** optimizer's state is spread over both. one_copy is NAN where there is one anyway. limit: of zb_auto, 0 elsewhere. layers: see below. */
typedef struct {
  double bytes, one_copy;
  int rank, limit;
  const int *layers;
} pp_fit;

/* What candidates of one schedule, P, V, group and capped M share. Starts as { 0 }; the workspace may serve several of them in turn, and so
** may the splits of one model, which belong to who gives them, or NULL. */
typedef struct {
  pp_memory_program memory;
  pp_comparison comparison;
  pp_workspace workspace;
  pp_split_cache *splits;
} pp_fit_programs;

/* PP_ILLEGAL as pp_candidate_check. Depth 1 has none. */
pp_status pp_fit_programs_build(const pp_candidate *candidate, pp_fit_programs *out, pp_error *error);
/* All but the workspace and the splits. */
void pp_fit_programs_free(pp_fit_programs *programs);

/*
** Chooses the split, for zb_auto the limit too, and says what it takes: the candidate's layers_per_stage is to become out->layers, which is
** NULL where that is the first of pp_stages_splits, given or even, otherwise layers[P × V], and its limit out->limit. Where stages balanced by
** time do not fit but come near, layers move to emptier ranks, which costs time. Of splits as fast the one that takes least memory; where
** none fits, that too. Layers move to early ranks where that wins enough. What is near, as fast and enough the problem says. `programs` is NULL at depth 1.
*/
pp_status pp_fit_candidate(const pp_priced *of, pp_fit_programs *programs, int *layers, pp_fit *out, pp_error *error);

/* Without simulating anything: no more than the step seconds of any split that pp_fit_candidate may choose, where balanced stages fit, so that it
** chooses one that fits. NAN where only that call can tell. */
pp_status pp_fit_bound(const pp_priced *of, pp_fit_programs *programs, double *seconds, pp_error *error);

#endif

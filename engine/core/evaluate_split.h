/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_split.h: by which seconds splits of one candidate are compared.
*/
#ifndef PP_EVALUATE_SPLIT_H
#define PP_EVALUATE_SPLIT_H

#include "core/simulate.h"
#include "core/stages.h"

/* A program with some microbatches more than the memory program of a candidate, built when first needed. Starts as { .built = false }. */
typedef struct {
  bool built;
  pp_schedule longer;
} pp_comparison;

void pp_comparison_free(pp_comparison *comparison);

/*
** Seconds by which splits of one candidate can be compared: those of a step. Few microbatches are simulated whole; of more, the capped
** program and a longer one, as if those beyond took what those took by which these differ. Candidates with the same program share
** *comparison; *workspace as pp_simulate_in. O(actions of the programs).
*/
pp_status pp_evaluate_split(const pp_priced *of, const pp_schedule *program, pp_comparison *comparison, pp_workspace *workspace,
                            double *seconds, pp_error *error);

#endif

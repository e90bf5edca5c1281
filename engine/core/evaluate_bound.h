/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_bound.h: a lower bound of what a candidate's step takes.
*/
#ifndef PP_EVALUATE_BOUND_H
#define PP_EVALUATE_BOUND_H

#include "core/stages.h"

/*
** No more than the step seconds of pp_evaluate_time with overlap, without building anything: the busiest rank's work, less the most that its
** overlapped pairs can save, after the pipeline has filled down to that rank and before it has drained. INFINITY when there are fewer
** layers than stages. O(P × V), with pairs in a loop O(P × V²), and a split where layers are not given.
*/
double pp_evaluate_bound(const pp_priced *of);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** floor.h: what a candidate takes at least, from the prices of its layout alone: no split, no program, no bubble. What a search asks first.
*/
#ifndef PP_FLOOR_H
#define PP_FLOOR_H

#include "core/price.h"

typedef struct {
  double seconds;  /* of a step */
  double bytes;    /* of the fullest rank */
} pp_floor;

/* What all schedules of one layout have in common: of the whole model and one microbatch. */
typedef struct {
  double work, forward, alltoall;   /* seconds */
  double state[2], stored[2];       /* bytes: weights, gradients and optimizer; activations [copies − 1] */
} pp_floor_parts;

/* `whole`: the model as one stage. */
pp_floor_parts pp_floor_parts_of(const pp_layout_costs *costs, bool kernel, const pp_stage *whole);

/*
** However layers are split, some rank works as long as the mean does, and some rank holds as much: of the weights, gradients and optimizer of
** the model, and of one microbatch's activations in each stage of a chain, for the forwards of a microbatch all come before its backwards.
** O(1).
*/
pp_floor pp_floor_of(const pp_priced *of, const pp_floor_parts *parts);

#endif

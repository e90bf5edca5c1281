/* SPDX-License-Identifier: Apache-2.0 */
/*
** times.h: from what a user knows of stages and devices to the seconds that a simulation takes: extra work of the first and the last
** stage, ranks of different speed, and what each action costs beside its work.
*/
#ifndef PP_TIMES_H
#define PP_TIMES_H

#include "core/simulate.h"

#define PP_LEAST_SPEED 1e-6
#define PP_MOST_SPEED 1e6

typedef struct {
  pp_stage_times first, last;   /* seconds beside the layers: of each chain's first stage (embedding) and last (head and loss) */
  const double *rank_speed;     /* [ranks] 1: as the times say, 0.5: half as fast; NULL: all 1 */
  double launch;                /* seconds that every action takes beside its work, on a rank of any speed */
} pp_time_extras;

/*
** Changes, in place, the seconds of each stage's layers into those of its actions: (layers + first or last) / speed + launch.
** stage: [stages]; pair: as in pp_times, or NULL; beside: NULL, or [stages], which is filled, as pp_times' pair_beside. A pair has the extra
** work of both its halves and one launch.
** PP_INVALID when an extra or a speed is out of range. O(stages), with a pair of two stages O(stages × chunks_per_rank).
*/
pp_status pp_times_adjust(const pp_schedule *schedule, const pp_time_extras *extras, pp_stage_times *stage, double *pair, double *beside,
                          pp_error *error);

/* Seconds of a message over a link: latency + bytes / bandwidth (bytes per second). */
static inline double pp_hop_seconds(double latency, double bytes, double bandwidth) { return latency + bytes / bandwidth; }

#endif

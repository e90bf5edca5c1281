/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_greedy.h: list scheduling: what schedules that are planned from times are written with. Internal to engine/core.
**
** All ranks run at once, in the order of time, and a rank that is free decides what it does next. Its forwards and backwards stand in
** queues, in the order of microbatches: with one chunk a rank F, I; with two in a V F of the way down, F of the way up, I of the way down
** again, I of the way up. So even queues hand over to the next rank, odd ones to the previous one, and at the end of the way the next queue
** of the same rank takes over. A plan gives each entry a key; the entry of the lowest key is the rank's turn. What a rule adds is what it
** may do while its turn has not come: run something else, or a W.
*/
#ifndef PP_SCHEDULES_GREEDY_H
#define PP_SCHEDULES_GREEDY_H

#include "core/schedule.h"

enum { PP_MOST_QUEUES = 4 };

typedef struct {
  int ranks, microbatches;
  int queues;              /* 2: one chunk a rank; 4: two, placed in a V */
  double limit;            /* chunks that a rank may hold, ≥ 1 */
  double released;         /* share of a chunk that its I frees */
  double hop;              /* seconds */
  const double *seconds;   /* [ranks × queues] of an entry */
  const double *weight;    /* [ranks × queues / 2] of a W of the chunk whose F is that queue */
} pp_greedy_problem;

/* When a W runs before its memory is wanted and before nothing else is left. */
typedef enum {
  PP_FILL_FITTING,  /* when what the rank waits for is not due before it ends */
  PP_FILL_WORST,    /* also when waiting would make the rank the one that has waited longest */
  PP_FILL_ANY       /* instead of any wait */
} pp_greedy_fill;

/* May an F run before its turn? */
typedef enum {
  PP_EARLY_NEVER,
  PP_EARLY_WITH_ROOM,  /* as long as `reserve` chunks' memory is left for others */
  PP_EARLY_AS_PLANNED  /* as long as its chunk has no more forwards ahead of backwards than the plan ever has there */
} pp_greedy_early;

typedef struct {
  const int64_t *key;      /* [ranks × queues] of microbatch 0 */
  int64_t period;          /* from one microbatch's key to the next one's */
  pp_greedy_fill fill;
  pp_greedy_early forwards;
  int reserve;
  bool inputs;             /* may an I run before its turn? */
  bool blind;              /* before their turn: also when nobody knows yet how long the wait for the turn is */
  bool drain;              /* once a rank has begun its last microbatch: first come, first served */
} pp_greedy_plan;

typedef struct {
  double makespan, span;   /* as pp_simulation's makespan and max_span */
} pp_greedy_score;

/* Bytes of scratch memory that pp_greedy_run wants. */
size_t pp_greedy_scratch(const pp_greedy_problem *problem);

/*
** Runs the plan; with `out` not NULL writes the actions of all ranks into it, which is laid out. False when ranks wait for each other or for
** memory for ever. O(actions × log ranks).
*/
bool pp_greedy_run(const pp_greedy_problem *problem, const pp_greedy_plan *plan, void *scratch, pp_schedule *out, pp_greedy_score *score);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_time.h: what a candidate's step takes.
*/
#ifndef PP_EVALUATE_TIME_H
#define PP_EVALUATE_TIME_H

#include "core/simulate.h"
#include "core/stages.h"

/* Parameters on one GPU of each rank, all its stages and both copies: dense[P] without, expert[P] only routed experts. */
void pp_evaluate_parameters(const pp_priced *of, const pp_stage *stages, double *dense, double *expert);

typedef struct {
  double step_seconds;      /* makespan + what runs beside the pipeline */
  double makespan_seconds;
  double bubble_fraction;
  double host_wait_seconds; /* of the rank whose card waits most for its host; 0 where nothing is known of hosts */
  pp_step_seconds step;     /* of the rank that takes longest */
} pp_timing;

/*
** A step of more actions than PP_MOST_WHOLE is simulated by the periods of its schedule (steady.h), or not at all: some schedules have none,
** and under a framework's runtime, with contention and heat, no period is like the one before. PP_MOST_PERIODS is twenty times what any
** step needed that was tried.
*/
enum { PP_MOST_WHOLE = PP_MAX_LOWERED, PP_MOST_PERIODS = 1 << 17 };

/* Is it legal, and can its step be simulated? PP_ILLEGAL as pp_candidate_check_within, of PP_MOST_WHOLE actions where they have no periods. */
pp_status pp_evaluate_check(const pp_problem *problem, const pp_candidate *candidate, pp_error *error);

/*
** Simulates the step of a candidate that pp_evaluate_check accepts, at the full batch. `overlap` false: overlapped pairs take F + B, whatever
** the kernel. With `schedule` and `simulation` not NULL the caller gets the program, or the shorter one that stands for it, and its
** simulation, and frees both; not at depth 1, which has neither. Under the problem's runtime where it can run the schedule; of PyTorch's two
** the one that can, with pairs that overlap nothing as two actions, as a plan's program has them; else under the ideal one, on cards as hot
** as they get.
** O(P × M × V) up to PP_MOST_WHOLE actions; beyond, see pp_steady_simulate. PP_ILLEGAL as that.
*/
pp_status pp_evaluate_time(const pp_priced *of, bool overlap, pp_timing *out, pp_schedule *schedule, pp_simulation *simulation,
                           pp_error *error);

/* What evaluate_split.c and evaluate_bound.c share with it. */

/* Adds to a makespan what the step takes beside the pipeline. */
void pp_evaluate_finish(const pp_priced *of, const pp_stage *stages, pp_timing *timing);
/* Do pairs take another time than F and B one after the other? Without a pipeline as pp_stages_overlap_alone. */
bool pp_evaluate_pairs_overlap(const pp_priced *of);
/*
** All microbatches of a stage without a pipeline: where pairs overlap, a forward, a pair between each two microbatches, a backward, with the host
** always ahead; else behind the host, where the profile says what it takes. The card is as hot as a training makes it: always busy, but for the
** seconds that it waits for its host, which go to `waits`.
*/
double pp_evaluate_alone(const pp_priced *of, const pp_stage *stages, const pp_stage_seconds *seconds, bool overlaps, double *waits);
/* The device as pairs of a candidate with a schedule find it: what they hide, and how much of it. */
void pp_evaluate_pair_device(const pp_priced *of, pp_device *device);

/* What a rank's card takes over what a mean one does. */
double pp_evaluate_slowness(const pp_problem *problem, int ranks, int rank);
/* What the actions of a program take, in arrays of one allocation that `stage` owns; pair is NULL where pairs overlap nothing. */
typedef struct {
  pp_stage_times *stage;
  pp_host_times *host;      /* NULL: nothing is known of hosts */
  double *pair;
} pp_program_times;

pp_status pp_evaluate_times(const pp_priced *of, const pp_schedule *schedule, const pp_stage *stages, const pp_stage_seconds *seconds,
                            bool overlaps, pp_program_times *out, pp_error *error);
static inline pp_times pp_evaluate_pp_times(const pp_program_times *of, double hop) {
  return (pp_times){ .stage = of->stage, .pair = of->pair, .p2p = hop, .host = of->host };
}

/* Does the problem's profile say what actions take their hosts? */
static inline bool pp_evaluate_hosted(const pp_problem *problem) { return problem->profile && problem->profile->has_hosts; }

#endif

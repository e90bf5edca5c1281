/*
** evaluate.h: what a candidate takes: bytes on its fullest rank, seconds of a step, and a lower bound of those seconds.
*/
#ifndef PP_EVALUATE_H
#define PP_EVALUATE_H

#include "core/simulate.h"
#include "core/stages.h"

/* Parameters on one GPU of each rank, all its stages and both copies: dense[P] without, expert[P] only routed experts. */
void pp_evaluate_parameters(const pp_candidate *candidate, const pp_layout_costs *costs, const pp_stage *stages, double *dense,
                            double *expert);

typedef struct {
  double step_seconds;      /* makespan + what runs beside the pipeline */
  double makespan_seconds;
  double bubble_fraction;
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
** simulation, and frees both; not at depth 1, which has neither. Under the problem's runtime
** where it can run the schedule; of PyTorch's two the one that can, with pairs that overlap nothing as two actions, as a plan's program has
** them; else under the ideal one, on cards as hot as they get.
** O(P × M × V) up to PP_MOST_WHOLE actions; beyond, see pp_steady_simulate. PP_ILLEGAL as that.
*/
pp_status pp_evaluate_time(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                           bool overlap, pp_timing *out, pp_schedule *schedule, pp_simulation *simulation, pp_error *error);

/* A program with some microbatches more than the memory program of a candidate, built when first needed. Starts as { .built = false }. */
typedef struct {
  bool built;
  pp_schedule longer;
} pp_comparison;

void pp_comparison_free(pp_comparison *comparison);

/*
** Seconds by which splits of one candidate can be compared: those of a step. Few microbatches are simulated whole; of more, the capped
** program and a longer one, as if those beyond took what those took by which these differ. Candidates with the same program share *comparison; *workspace as
** pp_simulate_in. O(actions of the programs).
*/
pp_status pp_evaluate_split(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                            const pp_schedule *program, pp_comparison *comparison, pp_workspace *workspace, double *seconds, pp_error *error);

/*
** No more than the step seconds of pp_evaluate_time with overlap, without building anything: the busiest rank's work, less the most that its
** overlapped pairs can save, after the pipeline has filled down to that rank and before it has drained. INFINITY when there are fewer
** layers than stages. O(P × V), with pairs in a loop O(P × V²), and a split where layers are not given.
*/
double pp_evaluate_bound(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel);

/*
** Programs for memory. A rank's peak does not depend on time, and once M has reached the schedule's steady state more microbatches only
** repeat it, so the peak of a capped M is that of M; where all forwards come first, M times that of one microbatch
** (tests/unit/evaluate_test.c compares them). A capped program, and for each rank and
** slot the most activations it ever holds. zb_auto has ZB-H2's, an order of the kind that it plans, to compare splits by.
*/
typedef struct {
  pp_schedule schedule;
  uint32_t *stored, *pending;  /* [ranks × chunks_per_rank] */
} pp_memory_program;

/*
** The same for zb_auto, whose program is only planned when its time is asked for: bytes when the fullest rank holds as many chunks as fit
** into usable_bytes, between P and 2P (P where not even that fits), each with the larger of what is stored and what is pending. No less than
** the program takes. *limit says how many. O(P).
*/
pp_status pp_evaluate_limited_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                                     double *bytes, int *rank, int *limit, pp_error *error);

/* Bytes of every GPU beside tensors of the model: as given, and messages that a runtime allocates for each microbatch. */
double pp_evaluate_overhead(const pp_problem *problem, const pp_candidate *candidate);

/* M for which a candidate's peaks times the repeats are those at its microbatches: at most some multiple of P. */
int64_t pp_evaluate_capped_microbatches(const pp_candidate *candidate);
/* M of kinds that run all forwards before any backward, whose cap is 1; 1 of others. */
int64_t pp_evaluate_repeats(const pp_candidate *candidate);

/* PP_ILLEGAL as pp_candidate_check. Depth 1 has none. The caller frees *out. */
pp_status pp_memory_program_build(const pp_candidate *candidate, pp_memory_program *out, pp_error *error);
void pp_memory_program_free(pp_memory_program *program);

/* Bytes of every rank, out[P]: over the schedule of a memory program, or of the whole one for zb_auto, whose order follows from times. `program`
** is NULL at depth 1. O(actions of the program). */
pp_status pp_evaluate_ranks(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                            const pp_schedule *program, pp_rank_bytes *out, pp_error *error);

/*
** The fullest rank of those and its number (the first of equals). `program` is NULL at depth 1. Ranks whose upper bound is below the fullest
** found are not walked.
*/
pp_status pp_evaluate_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                             const pp_memory_program *program, pp_rank_bytes *out, int *rank, pp_error *error);

#endif

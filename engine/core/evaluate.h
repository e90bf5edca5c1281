/*
** evaluate.h: what a candidate takes: bytes on its fullest rank, seconds of a step, and a lower bound of those seconds.
*/
#ifndef PP_EVALUATE_H
#define PP_EVALUATE_H

#include "core/candidate.h"
#include "core/cost.h"
#include "core/memory.h"
#include "core/simulate.h"
#include "core/split.h"

/* What all candidates of one search share. */
typedef struct {
  const pp_model *model;
  const pp_training *training;
  const pp_device *device;         /* hides_alltoall is ignored: each candidate has its own kernel */
  const pp_network *network;
  const int *layers_per_stage;     /* as fixed, for candidates with that many stages; or NULL */
  int given_stages;
  bool even_layers[PP_SCHEDULE_KINDS];  /* schedules whose stages must hold equally many layers where that is possible; else balanced by time */
  double usable_bytes;             /* of a GPU: where stages balanced by time take more, layers move to emptier ranks */
  double overhead_bytes;           /* of every GPU: context, communicators, allocator */
  double step_overhead_seconds;    /* of every step, beside the pipeline */
} pp_problem;

/* Costs of one layout's blocks: shared by all its schedules. */
typedef struct {
  pp_block_seconds seconds[2][PP_BLOCKS];  /* [is there a custom all-to-all kernel?] */
  double hop;                          /* seconds of a hand-over between ranks */
  pp_block_bytes bytes[2][PP_BLOCKS];  /* [copies − 1] */
  double dense[PP_BLOCKS], expert[PP_BLOCKS];  /* parameters of one block on one GPU: all but routed experts; routed experts */
  double embedding_copy[PP_BLOCKS];    /* what it needs beside them on a rank without the embedding: tied output weights, MTP's input */
} pp_layout_costs;

/* PP_INVALID when the shape or recipe cannot be priced. */
pp_status pp_evaluate_layout(const pp_problem *problem, const pp_layout *layout, pp_layout_costs *out, pp_error *error);

/*
** `kernel` below: does the candidate have a custom all-to-all kernel? It makes the all-to-all itself faster and lets it run beside compute.
*/

/* All-to-all seconds / seconds of the layout's work, before any overlap. 0 without experts. Derived: both sums run over all blocks of the
** model once per microbatch, so M and P cancel. */
double pp_evaluate_alltoall_fraction(const pp_model *model, const pp_layout_costs *costs, bool kernel);

/*
** The stages of one chain, out[P × V], and their seconds. Layers as the problem gives them, as the candidate has them, or so that the rank
** that takes longest takes least (split.h). PP_ILLEGAL when there are fewer layers than stages.
*/
pp_status pp_evaluate_stages(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                             pp_stage *out, pp_error *error);
void pp_evaluate_stage_seconds(const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel, const pp_stage *stages,
                               pp_stage_seconds *out);

/*
** Makes the fullest rank emptier. In a V or with two chains first by evening out its own stages, for the early one holds many microbatches
** and the late one few; then by the balanced split with one layer less on `rank` than `stages` has there. most[P] carries the limits of
** ranks from call to call (INT_MAX: none). Writes layers[P × V]; false when that rank has nothing to give, or its split is given or even.
*/
bool pp_evaluate_squeeze(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                         const pp_stage *stages, int rank, int *most, int *layers);

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
** Simulates the step at the full batch. `overlap` false: overlapped pairs take F + B, whatever the kernel. With `schedule` and `simulation`
** not NULL the caller gets the program and its simulation, and frees both; not at depth 1, which has neither.
** PP_ILLEGAL as pp_candidate_check. O(P × M × V).
*/
pp_status pp_evaluate_time(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                           bool overlap, pp_timing *out, pp_schedule *schedule, pp_simulation *simulation, pp_error *error);

/*
** No more than the step seconds of pp_evaluate_time with overlap, without building anything: the busiest rank's work, less the most that its
** overlapped pairs can save, after the pipeline has filled down to that rank and before it has drained. INFINITY when there are fewer
** layers than stages. O(P × V).
*/
double pp_evaluate_bound(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel);

/*
** Programs for memory. A rank's peak does not depend on time, and once M has reached the schedule's steady state more microbatches only
** repeat it, so the peak of a capped M is that of M (tests/unit/evaluate_test.c compares them). A capped program, and for each rank and
** slot the most activations it ever holds.
*/
typedef struct {
  pp_schedule schedule;
  uint32_t *stored, *pending;  /* [ranks × chunks_per_rank] */
} pp_memory_program;

/* M for which a candidate's peaks are those at `microbatches`: at most some multiple of P. */
int64_t pp_evaluate_capped_microbatches(const pp_candidate *candidate, int64_t microbatches);

/* PP_ILLEGAL as pp_candidate_check. Depth 1 has none. The caller frees *out. */
pp_status pp_memory_program_build(const pp_candidate *candidate, pp_memory_program *out, pp_error *error);
void pp_memory_program_free(pp_memory_program *program);

/*
** The fullest rank's bytes and its number (the first of equals). `copies` as pp_memory_blocks. `program` is NULL at depth 1. Ranks whose
** upper bound is below the fullest found are not walked.
*/
pp_status pp_evaluate_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, int copies,
                             bool kernel, const pp_memory_program *program, pp_rank_bytes *out, int *rank, pp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** search.h: a table of candidates as columns that conditions read, filled in as far as someone asks: bytes and seconds are computed only
** for the rows that are still in question.
*/
#ifndef PP_SEARCH_H
#define PP_SEARCH_H

#include "core/condition.h"
#include "core/evaluate_bound.h"
#include "core/evaluate_time.h"
#include "core/fit.h"
#include "core/floor.h"

/* One value per row each. Strings are the caller's symbols. */
typedef enum {
  PP_COLUMN_TENSOR, PP_COLUMN_CONTEXT, PP_COLUMN_EXPERT, PP_COLUMN_EXPERT_TENSOR, PP_COLUMN_DATA, PP_COLUMN_PIPELINE, PP_COLUMN_VIRTUAL,
  PP_COLUMN_MICROBATCHES,           /* at the smallest batch: what legality is judged at */
  PP_COLUMN_MICROBATCHES_PER_RANK,
  PP_COLUMN_SCHEDULE, PP_COLUMN_FAMILY,
  PP_COLUMN_EXPERT_LINK,            /* NAN at EP 1 */
  PP_COLUMN_KERNEL,                 /* NAN until set; a symbol (2 and up): it hides all-to-all behind compute */
  PP_COLUMN_ALLTOALL_FRACTION,
  PP_COLUMN_STAGES,                 /* P × V of one chain; not a field of the vocabulary */
  PP_COLUMN_ONE_COPY_BYTES,         /* peak_bytes if a two-copy schedule kept one; NAN elsewhere; not a field of the vocabulary */
  /* NAN until computed */
  PP_COLUMN_PEAK_BYTES, PP_COLUMN_STEP_SECONDS, PP_COLUMN_BUBBLE_FRACTION,
  PP_COLUMN_TRAINING_DAYS, PP_COLUMN_GPU_HOURS, PP_COLUMN_COST,  /* of the run at the full batch, by step_seconds */
  PP_COLUMN_AVOIDABLE_SECONDS, PP_COLUMN_AVOIDABLE_FRACTION,     /* how much faster a step is without a pipeline; NAN without one too */
  PP_COLUMNS
} pp_search_column;

extern const char *const pp_search_column_names[PP_COLUMNS];

/* Symbols of the values that string columns take: [kind + 1], PP_NO_SCHEDULE first. */
typedef struct {
  double schedule[PP_SCHEDULE_KINDS + 1], family[PP_SCHEDULE_KINDS + 1];
} pp_search_symbols;

/* What a call of a custom all-to-all kernel takes beside its transfers. */
typedef struct {
  double kernel;               /* its symbol, as in PP_COLUMN_KERNEL */
  double seconds;
} pp_kernel_latency;

/* One of the things that all rows may be planned with: a recipe and so many GPUs. */
typedef struct {
  pp_problem problem;
  pp_candidate_space space;
} pp_search_choice;

typedef struct {
  pp_problem *problem;         /* [choices] */
  int choices;
  const pp_kernel_latency *latency;  /* [latencies] of kernels by symbol; others take the device's alltoall_latency. Not owned */
  size_t latencies;
  pp_candidates candidates;    /* choice by choice */
  uint32_t *layout_of;         /* [rows] index into costs: one for each layout and kernel */
  pp_layout_costs *costs;
  double *column[PP_COLUMNS];  /* [rows] each */
  double alone_seconds;        /* the best step without a pipeline; NAN: there is none, or nobody asked */
  double *bound;               /* [rows] NAN until computed; without peak_bytes: of any split, for the row fits */
  bool has_floors;
  pp_floor *floor;             /* [rows] once they were asked for */
  int *fullest;                /* [rows] the rank of peak_bytes */
  int **split;                 /* [rows] layers per stage where they are not the first of pp_stages_splits; candidates point to them */
  pp_split_cache splits;       /* of all rows */
} pp_search;

/*
** Enumerates the candidates of each choice, 1 or more, and fills what is known before anything is built. What the problems and `latency` point
** to must outlive the search.
** `out` may be freed after a failure too. PP_INVALID when the model or the recipe cannot be priced.
*/
pp_status pp_search_open(const pp_search_choice *choice, int choices, const pp_kernel_latency *latency, size_t latencies,
                         const pp_search_symbols *symbols, pp_search *out, pp_error *error);
void pp_search_free(pp_search *search);

/* About what an open one holds. */
size_t pp_search_bytes(const pp_search *search);

/* To be called when PP_COLUMN_KERNEL changed: prices what the kernels' latency changes, computes alltoall_fraction and forgets bytes, seconds
** and bounds, which depend on them. */
pp_status pp_search_kernels_changed(pp_search *search, pp_error *error);

/* To be called when the best step without a pipeline is found: what the rows that were simulated could save follows from it. */
void pp_search_set_alone(pp_search *search, double seconds);

/*
** Fills peak_bytes for the rows of the mask; what cannot be built stays NAN. Each program is built once, whatever the number of layouts.
** Bytes and seconds follow from the split of the layers, so it is chosen here (fit.h).
*/
pp_status pp_search_memory(pp_search *search, const pp_mask_word *mask, pp_error *error);

/* The same for one row; PP_ILLEGAL when it cannot be built. Bounds and seconds of a row see to it by themselves. */
pp_status pp_search_settle(pp_search *search, size_t row, pp_error *error);

/* The row's candidate with its prices: for evaluation.h. Good until kernels change. */
pp_priced pp_search_priced(const pp_search *search, size_t row);

/* What the row takes at least, of all rows computed at once. */
pp_floor pp_search_floor(pp_search *search, size_t row);

/* Lower bound of the row's step_seconds, computed once. */
double pp_search_bound(pp_search *search, size_t row);

/*
** Takes from the mask the rows of which some condition is not known to hold. Of a row that was not simulated, step_seconds and what follows
** from it are at least what its bound makes them: so the conditions may ask of those only that they be over, or at least, something else.
** Rows whose bytes are not known are taken out too. O(rows × conditions) beside the bounds.
*/
void pp_search_match_late(pp_search *search, const pp_condition *conditions, size_t count, pp_mask_word *mask);

/* Fills step_seconds and bubble_fraction. PP_ILLEGAL when the row cannot be built. */
pp_status pp_search_simulate(pp_search *search, size_t row, pp_error *error);

/*
** The fastest row of the mask and all rows (in `within`, may be NULL) at most `tolerance` (a fraction) slower, among those faster than
** `limit` seconds (INFINITY: all) and take at most `bytes` on their fullest rank (INFINITY: any). Of equals the first. Rows that cannot be
** built are passed over. *found is false when none is left.
** Rows are split, and their bytes summed, in order of their floor, and simulated in order of their bound: only what neither rules out.
** O(rows × log rows) beside that.
*/
pp_status pp_search_best(pp_search *search, const pp_mask_word *mask, double tolerance, double limit, double bytes, bool *found, size_t *best,
                         pp_mask_word *within, pp_error *error);

#endif

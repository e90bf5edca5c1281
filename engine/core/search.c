/* SPDX-License-Identifier: Apache-2.0 */
/*
** search.c: the table of candidates. See search.h.
*/
#include "core/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/meter.h"
#include "core/search_prices.h"

const char *const pp_search_column_names[PP_COLUMNS] = {
  [PP_COLUMN_TENSOR] = "tensor_parallel",
  [PP_COLUMN_CONTEXT] = "context_parallel",
  [PP_COLUMN_EXPERT] = "expert_parallel",
  [PP_COLUMN_EXPERT_TENSOR] = "expert_tensor_parallel",
  [PP_COLUMN_DATA] = "data_parallel",
  [PP_COLUMN_PIPELINE] = "pipeline_parallel",
  [PP_COLUMN_VIRTUAL] = "virtual",
  [PP_COLUMN_MICROBATCHES] = "microbatches",
  [PP_COLUMN_MICROBATCHES_PER_RANK] = "microbatches_per_rank",
  [PP_COLUMN_SCHEDULE] = "schedule",
  [PP_COLUMN_FAMILY] = "schedule_family",
  [PP_COLUMN_EXPERT_LINK] = "expert_link",
  [PP_COLUMN_KERNEL] = "alltoall_kernel",
  [PP_COLUMN_ALLTOALL_FRACTION] = "alltoall_fraction",
  [PP_COLUMN_STAGES] = "stages",
  [PP_COLUMN_ONE_COPY_BYTES] = "one_copy_bytes",
  [PP_COLUMN_PEAK_BYTES] = "peak_bytes",
  [PP_COLUMN_STEP_SECONDS] = "step_seconds",
  [PP_COLUMN_BUBBLE_FRACTION] = "bubble_fraction",
  [PP_COLUMN_TRAINING_DAYS] = "training_days",
  [PP_COLUMN_GPU_HOURS] = "gpu_hours",
  [PP_COLUMN_COST] = "cost",
  [PP_COLUMN_AVOIDABLE_SECONDS] = "pipeline_avoidable_seconds",
  [PP_COLUMN_AVOIDABLE_FRACTION] = "pipeline_avoidable_fraction",
};

/* ------------------------------------------------------------------------------------------------------------------------- the table */

static pp_status allocate(pp_search *search, pp_error *error) {
  size_t rows = search->candidates.count;
  size_t cells = rows * (PP_COLUMNS + 1);   /* one block of columns, owned by the first */
  double *block = pp_allocate(cells * sizeof *block);
  search->column[0] = block;
  search->layout_of = pp_allocate(rows * sizeof *search->layout_of);
  search->floor = pp_allocate_zeros(rows * sizeof *search->floor);
  search->fullest = pp_allocate_zeros(rows * sizeof *search->fullest);
  search->split = pp_allocate_zeros(rows * sizeof *search->split);
  if (!block || !search->layout_of || !search->floor || !search->fullest || !search->split)
    return pp_fail(error, PP_NO_MEMORY, "not enough memory for %zu candidates", rows);
  for (size_t i = 0; i < cells; i++) block[i] = NAN;
  for (size_t c = 1; c < PP_COLUMNS; c++) search->column[c] = block + c * rows;
  search->bound = block + PP_COLUMNS * rows;
  return PP_OK;
}

static void fill_row(pp_search *search, const pp_search_symbols *symbols, size_t row) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_layout *layout = &candidate->layout;
  double **column = search->column;
  column[PP_COLUMN_TENSOR][row] = layout->tensor;
  column[PP_COLUMN_CONTEXT][row] = layout->context;
  column[PP_COLUMN_EXPERT][row] = layout->expert;
  column[PP_COLUMN_EXPERT_TENSOR][row] = layout->expert_tensor;
  column[PP_COLUMN_DATA][row] = layout->data;
  column[PP_COLUMN_PIPELINE][row] = layout->pipeline;
  column[PP_COLUMN_VIRTUAL][row] = candidate->configured_virtual;
  column[PP_COLUMN_MICROBATCHES][row] = (double)candidate->smallest_microbatches;
  column[PP_COLUMN_MICROBATCHES_PER_RANK][row] = (double)candidate->smallest_microbatches / layout->pipeline;
  column[PP_COLUMN_SCHEDULE][row] = symbols->schedule[candidate->kind + 1];
  column[PP_COLUMN_FAMILY][row] = symbols->family[candidate->kind + 1];
  if (layout->expert > 1)  /* expert TP lies inside, as in Megatron-Core's rank order */
    column[PP_COLUMN_EXPERT_LINK][row] = pp_comm_tier(pp_search_problem(search, row)->network, layout->expert, layout->expert_tensor)->bandwidth;
  column[PP_COLUMN_STAGES][row] = (double)layout->pipeline * layout->chunks;
}

pp_status pp_search_open(const pp_search_choice *choice, int choices, const pp_kernel_latency *latency, size_t latencies,
                         const pp_search_symbols *symbols, pp_search *out, pp_error *error) {
  pp_status status = PP_OK;
  *out = (pp_search){ .choices = choices, .latency = latency, .latencies = latencies, .alone_seconds = NAN };
  out->problem = pp_allocate((size_t)choices * sizeof *out->problem);
  if (!out->problem) return pp_fail(error, PP_NO_MEMORY, "not enough memory for %d choices", choices);
  for (int i = 0; i < choices && status == PP_OK; i++) {
    pp_candidate_space space = choice[i].space;
    space.choice = i;
    out->problem[i] = choice[i].problem;
    status = pp_candidates_enumerate(&space, &out->candidates, error);
  }
  if (status == PP_OK) status = allocate(out, error);
  if (status != PP_OK) return status;
  for (size_t row = 0; row < out->candidates.count; row++) fill_row(out, symbols, row);
  return pp_search_kernels_changed(out, error);
}

void pp_search_free(pp_search *search) {
  for (size_t row = 0; search->split && row < search->candidates.count; row++) pp_free(search->split[row]);
  pp_free(search->split);
  pp_split_cache_free(&search->splits);
  pp_candidates_free(&search->candidates);
  pp_free(search->problem);
  pp_free(search->column[0]);
  pp_free(search->floor);
  pp_free(search->layout_of);
  pp_free(search->fullest);
  pp_free(search->costs);
  *search = (pp_search){ .costs = NULL };
}

size_t pp_search_bytes(const pp_search *search) {
  const size_t rows = search->candidates.count, prices = rows > 0 ? (size_t)search->layout_of[rows - 1] + 1 : 0;
  const size_t row = sizeof *search->candidates.candidate + (PP_COLUMNS + 1) * sizeof(double) + sizeof *search->layout_of +
                     sizeof *search->floor + sizeof *search->fullest + sizeof *search->split;
  return rows * row + prices * sizeof *search->costs;
}

static const pp_layout_costs *costs_of(const pp_search *search, size_t row) {
  return &search->costs[search->layout_of[row]];
}

pp_priced pp_search_priced(const pp_search *search, size_t row) {
  return (pp_priced){ pp_search_problem(search, row), &search->candidates.candidate[row], costs_of(search, row), pp_search_has_kernel(search, row) };
}

static void fill_avoidable(pp_search *search, size_t row) {
  const double step = search->column[PP_COLUMN_STEP_SECONDS][row], alone = search->column[PP_COLUMN_PIPELINE][row] > 1 ? search->alone_seconds : NAN;
  search->column[PP_COLUMN_AVOIDABLE_SECONDS][row] = step - alone;
  search->column[PP_COLUMN_AVOIDABLE_FRACTION][row] = (step - alone) / step;
}

void pp_search_set_alone(pp_search *search, double seconds) {
  search->alone_seconds = seconds;
  for (size_t row = 0; row < search->candidates.count; row++) fill_avoidable(search, row);
}

/* What a step of so many seconds makes of the whole run; NAN: forgets it. */
static void fill_time(pp_search *search, size_t row, double step_seconds, double bubble_fraction) {
  const pp_problem *problem = pp_search_problem(search, row);
  const double days = step_seconds * problem->run_days_per_second, hours = days * problem->gpu_hours_per_day;
  search->column[PP_COLUMN_STEP_SECONDS][row] = step_seconds;
  search->column[PP_COLUMN_BUBBLE_FRACTION][row] = bubble_fraction;
  search->column[PP_COLUMN_TRAINING_DAYS][row] = days;
  search->column[PP_COLUMN_GPU_HOURS][row] = hours;
  search->column[PP_COLUMN_COST][row] = hours * problem->price_per_gpu_hour;
  fill_avoidable(search, row);
}

static void forget_time(pp_search *search, size_t row) {
  search->bound[row] = NAN;
  fill_time(search, row, NAN, NAN);
}

static void forget_split(pp_search *search, size_t row) {
  search->candidates.candidate[row].layers_per_stage = NULL;
  pp_free(search->split[row]);
  search->split[row] = NULL;
}

pp_status pp_search_kernels_changed(pp_search *search, pp_error *error) {
  double **column = search->column;
  pp_status status = pp_search_price(search, error);
  if (status != PP_OK) return status;
  search->has_floors = false;
  for (size_t row = 0; row < search->candidates.count; row++) {
    bool as_before = row > 0 && search->layout_of[row] == search->layout_of[row - 1] &&
                     pp_search_has_kernel(search, row) == pp_search_has_kernel(search, row - 1);
    forget_time(search, row);
    forget_split(search, row);
    column[PP_COLUMN_PEAK_BYTES][row] = column[PP_COLUMN_ONE_COPY_BYTES][row] = NAN;
    column[PP_COLUMN_ALLTOALL_FRACTION][row] =
      as_before ? column[PP_COLUMN_ALLTOALL_FRACTION][row - 1]
                : pp_price_alltoall_fraction(pp_search_problem(search, row)->model, costs_of(search, row), pp_search_has_kernel(search, row));
  }
  return PP_OK;
}

/* ---------------------------------------------------------------------------------------------------------------------------- memory */

/* Rows that need the same program. */
typedef struct {
  int kind, pipeline, chunks, group;
  int64_t microbatches;
  size_t row;
} program_key;

static program_key key_of(const pp_candidate *candidate, size_t row) {
  program_key key = { candidate->kind, candidate->layout.pipeline, candidate->layout.chunks, 0, 1, row };
  if (candidate->kind == PP_NO_SCHEDULE) return key;
  key.kind = (int)pp_stages_traits(candidate)->stand_in;
  const pp_schedule_request request = pp_candidate_shortened(candidate, pp_evaluate_capped_microbatches(candidate));
  key.group = pp_schedule_group(&request);
  key.microbatches = request.microbatches;
  return key;
}

static int compare_numbers(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_programs(const program_key *a, const program_key *b) {
  int order = compare_numbers(a->kind, b->kind);
  if (!order) order = compare_numbers(a->pipeline, b->pipeline);
  if (!order) order = compare_numbers(a->chunks, b->chunks);
  if (!order) order = compare_numbers(a->group, b->group);
  return order ? order : compare_numbers(a->microbatches, b->microbatches);
}

static int by_program(const void *left, const void *right) {
  const program_key *a = left, *b = right;
  int order = compare_programs(a, b);
  return order ? order : compare_numbers((int64_t)a->row, (int64_t)b->row);
}

/* `programs` is NULL at depth 1. */
static pp_status fill_memory(pp_search *search, size_t row, pp_fit_programs *programs, pp_error *error) {
  pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_priced of = pp_search_priced(search, row);
  const size_t bytes = (size_t)pp_stages_count(candidate) * sizeof(int);
  int layers[PP_MAX_LAYERS];
  pp_fit fit;
  pp_status status = pp_fit_candidate(&of, programs, layers, &fit, error);
  if (status != PP_OK) return status;
  candidate->limit = fit.limit;
  if (fit.layers) {
    candidate->layers_per_stage = search->split[row] = pp_allocate(bytes);
    if (!search->split[row]) return pp_fail(error, PP_NO_MEMORY, "not enough memory for a split of %zu stages", bytes / sizeof(int));
    memcpy(search->split[row], layers, bytes);
  }
  search->column[PP_COLUMN_PEAK_BYTES][row] = fit.bytes;
  search->column[PP_COLUMN_ONE_COPY_BYTES][row] = fit.one_copy;
  search->fullest[row] = fit.rank;
  return PP_OK;
}

pp_status pp_search_settle(pp_search *search, size_t row, pp_error *error) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  pp_fit_programs programs = { .splits = &search->splits };
  pp_status status;
  if (!isnan(search->column[PP_COLUMN_PEAK_BYTES][row])) return PP_OK;
  status = pp_evaluate_check(pp_search_problem(search, row), candidate, error);
  if (status != PP_OK) return status;
  if (candidate->kind == PP_NO_SCHEDULE) return fill_memory(search, row, NULL, error);
  status = pp_fit_programs_build(candidate, &programs, error);
  if (status != PP_OK) return status;
  status = fill_memory(search, row, &programs, error);
  pp_fit_programs_free(&programs);
  pp_workspace_free(&programs.workspace);
  return status;
}

/* Adds the row's key, where its bytes are not known and it can be built. */
static void ask_memory(const pp_search *search, size_t row, program_key *key, size_t *count) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  if (!isnan(search->column[PP_COLUMN_PEAK_BYTES][row])) return;
  if (pp_evaluate_check(pp_search_problem(search, row), candidate, NULL) == PP_OK) key[(*count)++] = key_of(candidate, row);
}

/* Bytes of a row; or, where that can be told without comparing its splits and is enough, that it fits, by a bound. */
static pp_status fill_memory_or_bound(pp_search *search, size_t row, pp_fit_programs *programs, bool enough, pp_error *error) {
  const pp_priced of = pp_search_priced(search, row);
  pp_status status = enough ? pp_fit_bound(&of, programs, &search->bound[row], error) : PP_OK;
  if (status == PP_OK && (!enough || isnan(search->bound[row]))) status = fill_memory(search, row, programs, error);
  return status;
}

/* Bytes of the rows of those keys, or a bound where that is enough. */
static pp_status memory_of(pp_search *search, program_key *key, size_t count, bool bound, pp_error *error) {
  pp_fit_programs programs = { .splits = &search->splits };
  pp_status built = PP_ILLEGAL, status = PP_OK;
  qsort(key, count, sizeof *key, by_program);
  for (size_t i = 0; i < count && status == PP_OK; i++) {
    if (i == 0 || compare_programs(&key[i], &key[i - 1]) != 0) {
      if (built == PP_OK) pp_fit_programs_free(&programs);
      built = PP_ILLEGAL;
      if (key[i].kind != PP_NO_SCHEDULE) built = pp_fit_programs_build(&search->candidates.candidate[key[i].row], &programs, error);
      if (built != PP_OK && built != PP_ILLEGAL) status = built;
    }
    if (built == PP_OK || key[i].kind == PP_NO_SCHEDULE)
      status = fill_memory_or_bound(search, key[i].row, key[i].kind == PP_NO_SCHEDULE ? NULL : &programs, bound, error);
    if (status == PP_ILLEGAL) status = PP_OK;
  }
  if (built == PP_OK) pp_fit_programs_free(&programs);
  pp_workspace_free(&programs.workspace);
  return status;
}

pp_status pp_search_memory(pp_search *search, const pp_mask_word *mask, pp_error *error) {
  size_t rows = search->candidates.count, count = 0;
  program_key *key = pp_allocate(rows * sizeof *key);
  if (!key) return pp_fail(error, PP_NO_MEMORY, "not enough memory to sort %zu candidates", rows);
  for (size_t row = 0; row < rows; row++)
    if (pp_mask_has(mask, row)) ask_memory(search, row, key, &count);
  pp_status status = memory_of(search, key, count, false, error);
  pp_free(key);
  return status;
}

/* ------------------------------------------------------------------------------------------------------------------------------ time */

/* Neighbours share a layout and its prices. A model that cannot be laid out has floors of 0. */
static void fill_floors(pp_search *search) {
  pp_stage whole;
  pp_floor_parts parts = { 0 };
  if (search->has_floors || pp_layout_stages(search->problem[0].model, 1, NULL, &whole, NULL) != PP_OK) return;
  for (size_t row = 0; row < search->candidates.count; row++) {
    const pp_priced of = pp_search_priced(search, row);
    if (row == 0 || search->layout_of[row] != search->layout_of[row - 1] || of.kernel != pp_search_has_kernel(search, row - 1))
      parts = pp_floor_parts_of(of.costs, of.kernel, &whole);
    search->floor[row] = pp_floor_of(&of, &parts);
  }
  search->has_floors = true;
}

pp_floor pp_search_floor(pp_search *search, size_t row) {
  fill_floors(search);
  return search->floor[row];
}

double pp_search_bound(pp_search *search, size_t row) {
  if (isnan(search->bound[row]) || isnan(search->column[PP_COLUMN_PEAK_BYTES][row])) {
    /* Where it fails, so will the simulation, which says why; a bound of 0 has it tried. */
    if (pp_search_settle(search, row, NULL) == PP_NO_MEMORY) return 0;
    const pp_priced of = pp_search_priced(search, row);
    search->bound[row] = pp_evaluate_bound(&of);
  }
  return search->bound[row];
}

static bool holds_late(pp_search *search, const pp_condition *conditions, size_t count, size_t row) {
  const bool known = !isnan(search->column[PP_COLUMN_STEP_SECONDS][row]);
  size_t held = 0;
  if (isnan(search->column[PP_COLUMN_PEAK_BYTES][row])) return false;
  if (!known) fill_time(search, row, pp_search_bound(search, row), NAN);
  while (held < count && pp_condition_holds(&conditions[held], row)) held++;
  if (!known) fill_time(search, row, NAN, NAN);
  return held == count;
}

void pp_search_match_late(pp_search *search, const pp_condition *conditions, size_t count, pp_mask_word *mask) {
  for (size_t row = 0; row < search->candidates.count; row++)
    if (pp_mask_has(mask, row) && !holds_late(search, conditions, count, row)) mask[row / 64] &= ~((pp_mask_word)1 << row % 64);
}

pp_status pp_search_simulate(pp_search *search, size_t row, pp_error *error) {
  const pp_priced of = pp_search_priced(search, row);
  pp_timing timing;
  pp_status status;
  if (!isnan(search->column[PP_COLUMN_STEP_SECONDS][row])) return PP_OK;
  status = pp_search_settle(search, row, error);
  if (status == PP_OK)
    status = pp_evaluate_time(&of, true, &timing, NULL, NULL, error);
  if (status != PP_OK) return status;
  fill_time(search, row, timing.step_seconds, timing.bubble_fraction);
  return PP_OK;
}

/* Rows by the least that their step may take. */
typedef struct {
  double seconds;
  size_t row;
} timed_row;

static int by_seconds(const void *left, const void *right) {
  const timed_row *a = left, *b = right;
  if (a->seconds < b->seconds) return -1;
  if (a->seconds > b->seconds) return 1;
  return compare_numbers((int64_t)a->row, (int64_t)b->row);
}

/* A heap with the least on top. */
static void push(timed_row *heap, size_t *count, timed_row entry) {
  size_t at = (*count)++;
  for (; at > 0 && by_seconds(&entry, &heap[(at - 1) / 2]) < 0; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = entry;
}

static timed_row pop(timed_row *heap, size_t *count) {
  const timed_row top = heap[0], last = heap[--*count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= *count) break;
    if (child + 1 < *count && by_seconds(&heap[child + 1], &heap[child]) < 0) child++;
    if (by_seconds(&last, &heap[child]) <= 0) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return top;
}

/* What a search for the fastest rows has in hand. */
typedef struct {
  timed_row *order, *heap;   /* [rows] by floor, of which `next` are done; by bound, of those */
  program_key *key;          /* [rows] of those whose bytes are asked for */
  size_t rows, next, waiting;
} best_work;

/* Rows whose bytes are asked for at once, for they share programs: so many at least, and a quarter of those that were asked for before, so
** that at most a quarter of the work is for nothing. */
enum { PP_LEAST_BATCH = 64, PP_BATCH_SHARE = 4 };

/* Is a row known to fit, of whose splits none is chosen yet? */
static bool only_fits(const pp_search *search, size_t row) {
  return isnan(search->column[PP_COLUMN_PEAK_BYTES][row]) && !isnan(search->bound[row]);
}

/* A row whose bytes are not known only where any number will do. */
static bool takes_at_most(const pp_search *search, size_t row, double bytes) {
  if (bytes == INFINITY || (only_fits(search, row) && pp_search_problem(search, row)->usable_bytes <= bytes)) return true;
  return search->column[PP_COLUMN_PEAK_BYTES][row] <= bytes;
}

/* Bytes and bounds of the next rows in order of their floor, as far as that is at most `most` seconds. */
static pp_status settle_batch(pp_search *search, best_work *work, double most, double bytes, pp_error *error) {
  const size_t first = work->next, share = first / PP_BATCH_SHARE, batch = share > PP_LEAST_BATCH ? share : PP_LEAST_BATCH;
  const bool bound = bytes >= search->problem[0].usable_bytes;   /* that a row fits is all that is asked */
  size_t asked = 0;
  for (; work->next < work->rows && work->order[work->next].seconds <= most && work->next - first < batch; work->next++) {
    const size_t row = work->order[work->next].row;
    if (!bound || !only_fits(search, row)) ask_memory(search, row, work->key, &asked);
  }
  pp_status status = memory_of(search, work->key, asked, bound, error);
  for (size_t i = first; i < work->next && status == PP_OK; i++) {
    const size_t row = work->order[i].row;
    if (!takes_at_most(search, row, bytes)) continue;
    push(work->heap, &work->waiting, (timed_row){ only_fits(search, row) ? search->bound[row] : pp_search_bound(search, row), row });
  }
  return status;
}

/* Chooses the split of a row that is only known to fit. Says whether it then has to wait again, for its bound has grown. */
static pp_status settle_waiting(pp_search *search, best_work *work, timed_row *row, bool *waits, pp_error *error) {
  *waits = false;
  if (!only_fits(search, row->row)) return PP_OK;
  search->bound[row->row] = NAN;
  const pp_status status = pp_search_settle(search, row->row, error);
  if (status != PP_OK) return status;
  const double before = row->seconds;
  row->seconds = pp_search_bound(search, row->row);
  *waits = row->seconds > before;
  if (*waits) push(work->heap, &work->waiting, *row);
  return PP_OK;
}

/* Goes on until nothing that is left can be within the tolerance of the fastest, which is in *best. */
static pp_status find_best(pp_search *search, best_work *work, double tolerance, double limit, double bytes, bool *found, size_t *best,
                           pp_error *error) {
  const double *seconds = search->column[PP_COLUMN_STEP_SECONDS];
  double fastest = INFINITY;
  for (;;) {
    const double most = fmin(limit, fastest * (1 + tolerance));
    const double ahead = work->next < work->rows ? work->order[work->next].seconds : INFINITY;
    const double bound = work->waiting > 0 ? work->heap[0].seconds : INFINITY;
    pp_status status;
    if (fmin(ahead, bound) > most || (work->next == work->rows && work->waiting == 0)) return PP_OK;
    if (ahead <= bound && work->next < work->rows) {
      status = settle_batch(search, work, most, bytes, error);
      if (status != PP_OK) return status;
      continue;
    }
    timed_row first = pop(work->heap, &work->waiting);
    const size_t row = first.row;
    bool waits;
    status = settle_waiting(search, work, &first, &waits, error);
    if (status == PP_OK && waits) continue;
    if (status == PP_OK) status = pp_search_simulate(search, row, error);
    if (status == PP_ILLEGAL) continue;
    if (status != PP_OK) return status;
    if (seconds[row] >= limit || seconds[row] > fastest || (seconds[row] >= fastest && row > *best)) continue;
    *found = true;
    *best = row;
    fastest = seconds[row];
  }
}

pp_status pp_search_best(pp_search *search, const pp_mask_word *mask, double tolerance, double limit, double bytes, bool *found, size_t *best,
                         pp_mask_word *within, pp_error *error) {
  const size_t rows = search->candidates.count;
  const double *seconds = search->column[PP_COLUMN_STEP_SECONDS];
  best_work work = { .order = pp_allocate(2 * rows * sizeof *work.order), .key = pp_allocate(rows * sizeof *work.key) };
  pp_status status;
  *found = false;
  if (!work.order || !work.key) {
    pp_free(work.order);
    pp_free(work.key);
    return pp_fail(error, PP_NO_MEMORY, "not enough memory to sort %zu candidates", rows);
  }
  work.heap = work.order + rows;
  fill_floors(search);
  for (size_t row = 0; row < rows; row++) {
    const pp_floor floor = search->floor[row];
    if (!pp_mask_has(mask, row) || floor.seconds >= limit || floor.bytes > bytes) continue;
    work.order[work.rows++] = (timed_row){ floor.seconds, row };
  }
  qsort(work.order, work.rows, sizeof *work.order, by_seconds);
  status = find_best(search, &work, tolerance, limit, bytes, found, best, error);
  if (status == PP_OK && within) {
    memset(within, 0, pp_mask_words(rows) * sizeof *within);
    for (size_t i = 0; i < work.rows && *found; i++) {
      const size_t row = work.order[i].row;
      if (takes_at_most(search, row, bytes) && seconds[row] < limit && seconds[row] <= seconds[*best] * (1 + tolerance)) pp_mask_add(within, row);
    }
  }
  pp_free(work.order);
  pp_free(work.key);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** What the engine computes in two ways agrees: over random problems, with every optional term switched on at some time.
** PIPEPLAN_PROBLEMS=N tries N times as many.
*/
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "problems.h"

/* Of a row: what a failure needs to be found again. */
static void tell(const char *what, uint32_t first, const pp_candidate *candidate, double one, double other) {
  fail_msg("seed %u, %s P %d V %d M %lld TP %d CP %d EP %d ETP %d: %s: %.17g, %.17g", first, name_of(candidate), candidate->layout.pipeline,
           candidate->layout.chunks, (long long)candidate->microbatches, candidate->layout.tensor, candidate->layout.context,
           candidate->layout.expert, candidate->layout.expert_tensor, what, one, other);
}

/* False where there is nothing to compare. */
typedef bool row_check(const random_problem *problem, pp_search *search, size_t row, uint32_t seed);

/* Rows of so many problems that can be built; returns how many were compared. */
static size_t each_row(int problems, uint32_t seed, row_check *check) {
  const char *times = getenv("PIPEPLAN_PROBLEMS");
  random_problem problem;
  size_t rows = 0;
  if (times) problems *= atoi(times);
  for (int i = 0; i < problems; i++) {
    const uint32_t first = seed;
    pp_search search;
    set_random(&problem, &seed);
    open_random(&problem, &seed, &search);
    for (size_t row = (size_t)any_of(&seed, 5); row < search.candidates.count; row += 1 + (size_t)any_of(&seed, 9)) {
      if (pp_search_settle(&search, row, NULL) != PP_OK) continue;
      rows += check(&problem, &search, row, first);
    }
    pp_search_free(&search);
  }
  return rows;
}

static const pp_layout_costs *row_costs(const pp_search *search, size_t row) { return &search->costs[search->layout_of[row]]; }

static pp_status whole_program(const pp_search *search, size_t row, pp_schedule *out) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  return pp_schedule_build(&request, out, NULL);
}

/* -- memory --------------------------------------------------------------------------------------------------------------------------- */

static int same_node(const pp_communicators *of, int a, int b) { return of->node == 0 || a / of->node == b / of->node; }

/* Communicators of the first GPU of a pipeline rank, its peers looked up one by one: GPUs are numbered TP, CP, DP, pipeline; experts lie over
** expert TP and EP, in that order. */
static double communicators_by_hand(const pp_problem *problem, const pp_candidate *candidate, int rank) {
  const pp_communicators *of = &problem->communicators;
  const pp_layout *l = &candidate->layout;
  const int stage = l->tensor * l->context * l->data, world = stage * l->pipeline, gpu = rank * stage;
  const bool ring = candidate->configured_virtual > 1, pairs = ring && of->has[PP_GROUP_PAIRS];
  const bool ends = rank == 0 || rank + 1 == l->pipeline;
  const struct { pp_group group; bool used; int size; } collective[] = {
    { PP_GROUP_WORLD, true, world }, { PP_GROUP_TENSOR, true, l->tensor }, { PP_GROUP_DATA, true, l->context * l->data },
    { PP_GROUP_MODEL, true, l->tensor * l->pipeline }, { PP_GROUP_OPTIMIZER, problem->training->shard_optimizer, world },
    { PP_GROUP_EMBEDDING, problem->model->tied_embeddings && l->pipeline > 1 && ends, 2 },
    { PP_GROUP_DISPATCH, l->expert > 1, l->expert * l->expert_tensor },
    { PP_GROUP_EXPERT_DATA, l->expert > 1, stage / (l->expert * l->expert_tensor) } };
  double bytes = 0;
  for (size_t i = 0; i < sizeof collective / sizeof *collective; i++)
    if (of->has[collective[i].group] && collective[i].used) bytes += collective[i].size > 1 ? of->several : of->one;
  if (l->pipeline > 1 && (pairs || of->has[PP_GROUP_PIPELINE])) {
    bytes += pairs ? 2 * of->messages : of->messages;
    for (int other = 0; other < l->pipeline; other++) {
      const int apart = abs(other - rank);
      if (apart == 1 || (ring && apart > 0 && apart == l->pipeline - 1)) bytes += same_node(of, other * stage, gpu) * of->peer;
    }
  }
  if (of->has[PP_GROUP_CONTEXT] && l->context > 1) {
    int peers = 0;
    for (int c = 1; c < l->context; c++) peers += same_node(of, c * l->tensor, 0);
    bytes += of->messages + (peers > 2 ? 2 : peers) * of->peer;
  }
  if (of->has[PP_GROUP_EXPERT] && l->expert > 1) {
    bytes += of->messages;
    for (int e = 1; e < l->expert; e++) bytes += same_node(of, e * l->expert_tensor, 0) * of->peer;
  }
  return bytes;
}

/* The terms of one rank added up by hand from the bytes of its blocks: the sum that memory.h describes. */
static pp_rank_bytes by_hand(const random_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                             const pp_schedule *schedule, int rank) {
  const pp_block_bytes *blocks = costs->bytes[schedule->traits.copies - 1];
  double stored[4 * PP_MAX_LAYERS], pending[4 * PP_MAX_LAYERS], shape[PP_SHAPES] = { 0 };
  pp_stage stages[PP_MAX_LAYERS];
  pp_rank_bytes sum = { 0 };
  double update = 0;
  const pp_state_bytes *copy = NULL;
  bool has_embedding = false;
  assert_int_equal(pp_stages_fill(&(pp_priced){ &problem->c.problem, candidate, costs, kernel }, stages, NULL), PP_OK);
  for (int s = 0; s < schedule->stages; s++) {
    stored[s] = pending[s] = 0;
    if (schedule->rank_of[s] != rank) continue;
    for (int i = 0; i < PP_BLOCKS; i++) {
      const double count = stages[s % schedule->stages_per_chain].count[i];
      if (count <= 0) continue;
      stored[s] += count * blocks[i].stored;
      pending[s] += count * blocks[i].pending;
      sum.parameters += count * blocks[i].state.parameters;
      sum.gradients += count * blocks[i].state.gradients;
      sum.optimizer += count * blocks[i].state.optimizer;
      sum.host += count * blocks[i].state.host;
      update += count * blocks[i].state.update;
      sum.transient = fmax(sum.transient, blocks[i].transient);
      for (int k = 0; k < PP_SHAPES; k++) shape[k] = fmax(shape[k], blocks[i].weight_gradients[k]);
      has_embedding = has_embedding || i == PP_BLOCK_EMBEDDING;
      if (blocks[i].embedding_copy.parameters > 0) copy = &blocks[i].embedding_copy;
    }
  }
  if (copy && !has_embedding) {
    sum.parameters += copy->parameters;
    sum.gradients += copy->gradients;
    sum.optimizer += copy->optimizer;
    sum.host += copy->host;
    update += copy->update;
  }
  for (int k = 0; k < PP_SHAPES; k++) sum.transient += shape[k];
  sum.activations = pp_schedule_peak(schedule, rank, stored, pending);
  sum.transient = fmax(sum.transient, update - sum.activations);   /* the update comes when no activations are there */
  sum.overhead = problem->c.problem.overhead_bytes + communicators_by_hand(&problem->c.problem, candidate, rank);
  if (problem->c.problem.buffered_messages > 0)
    sum.overhead += problem->c.problem.buffered_messages * candidate->layout.chunks * (double)candidate->microbatches *
                    pp_cost_hop_bytes(&problem->c.model, &candidate->layout, &problem->c.training);
  sum.total = sum.parameters + sum.gradients + sum.optimizer + sum.activations + sum.transient + sum.overhead;
  return sum;
}

/*
** What a plan prints of each rank: the same number as the column that was judged, and each term as added up by hand over the whole program,
** whatever was capped, bounded and left out on the way.
*/
static bool check_ranks(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_layout_costs *costs = row_costs(search, row);
  const bool kernel = row_has_kernel(search, row);
  pp_rank_bytes ranks[PP_MAX_LAYERS];
  pp_memory_program program;
  double most = 0;
  if (candidate->kind == PP_ZB_AUTO) return false;
  const bool alone = candidate->kind == PP_NO_SCHEDULE;
  if (!alone) assert_int_equal(pp_memory_program_build(candidate, &program, NULL), PP_OK);
  const pp_priced of = { &problem->c.problem, candidate, costs, kernel };
  assert_int_equal(pp_evaluate_ranks(&of, alone ? NULL : &program.schedule, ranks, NULL), PP_OK);
  for (int rank = 0; rank < candidate->layout.pipeline; rank++) {
    const pp_rank_bytes *here = &ranks[rank];
    const double sum = here->parameters + here->gradients + here->optimizer + here->activations + here->transient + here->overhead;
    if (fabs(sum - here->total) > 1e-12 * sum) tell("terms, total", seed, candidate, sum, here->total);
    most = fmax(most, here->total);
  }
  if (most < search->column[PP_COLUMN_PEAK_BYTES][row] || most > search->column[PP_COLUMN_PEAK_BYTES][row])
    tell("fullest rank, peak_bytes", seed, candidate, most, search->column[PP_COLUMN_PEAK_BYTES][row]);
  if (alone) return true;
  pp_schedule schedule;
  assert_int_equal(whole_program(search, row, &schedule), PP_OK);
  for (int rank = 0; rank < candidate->layout.pipeline; rank++) {
    const pp_rank_bytes *here = &ranks[rank], hand = by_hand(problem, candidate, costs, kernel, &schedule, rank);
    const double printed[] = { here->parameters, here->gradients, here->optimizer, here->activations, here->transient, here->overhead, here->host };
    const double wanted[] = { hand.parameters, hand.gradients, hand.optimizer, hand.activations, hand.transient, hand.overhead, hand.host };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      if (fabs(printed[i] - wanted[i]) > 1e-12 * wanted[i]) tell("a rank's term", seed, candidate, wanted[i], printed[i]);
  }
  pp_schedule_free(&schedule);
  pp_memory_program_free(&program);
  return true;
}

static void every_rank_is_the_sum_of_its_terms_and_the_fullest_is_the_peak(void **state) {
  (void)state;
  assert_true(each_row(300, 2, check_ranks) > 2000);
}

/* Weights are counted by their bytes for memory, and by their number for what a step reduces, gathers and updates. */
static bool check_parameters(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_training *training = &problem->c.training;
  double dense[PP_MAX_LAYERS], expert[PP_MAX_LAYERS];
  pp_rank_bytes ranks[PP_MAX_LAYERS];
  pp_stage stages[PP_MAX_LAYERS];
  pp_schedule schedule;
  if (training->shard_parameters || problem->c.problem.profile || candidate->kind == PP_NO_SCHEDULE) return false;
  const pp_layout_costs *costs = row_costs(search, row);
  assert_int_equal(whole_program(search, row, &schedule), PP_OK);
  const pp_priced of = { &problem->c.problem, candidate, costs, row_has_kernel(search, row) };
  assert_int_equal(pp_stages_fill(&of, stages, NULL), PP_OK);
  assert_int_equal(pp_evaluate_ranks(&of, &schedule, ranks, NULL), PP_OK);
  pp_evaluate_parameters(&of, stages, dense, expert);
  for (int rank = 0; rank < candidate->layout.pipeline; rank++) {
    const double number = dense[rank] + expert[rank], counted = ranks[rank].parameters / training->parameter_bytes;
    if (fabs(number - counted) > 1e-12 * number) tell("parameters, their bytes", seed, candidate, number, counted);
  }
  pp_schedule_free(&schedule);
  return true;
}

static void a_rank_holds_the_weights_that_its_step_updates(void **state) {
  (void)state;
  assert_true(each_row(100, 6, check_parameters) > 600);
}

/* The bound that rules ranks out without a walk, on every rank, with what makes it a bound on none: nothing but activations. */
static bool check_rank_bound(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_layout_costs *costs = row_costs(search, row);
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_memory needs[PP_MAX_LAYERS];
  pp_memory_program program;
  double scratch[4 * PP_MAX_LAYERS];
  if (candidate->kind == PP_NO_SCHEDULE) return false;
  assert_int_equal(pp_stages_fill(&(pp_priced){ &problem->c.problem, candidate, costs, false }, stages, NULL), PP_OK);
  assert_int_equal(pp_memory_program_build(candidate, &program, NULL), PP_OK);
  pp_memory_stages(stages, pp_stages_count(candidate), costs->bytes[program.schedule.traits.copies - 1], needs);
  for (int rank = 0; rank < candidate->layout.pipeline; rank++) {
    const size_t slots = (size_t)rank * (size_t)program.schedule.chunks_per_rank;
    const double overhead = pp_evaluate_overhead(&problem->c.problem, candidate, rank);
    pp_rank_bytes value, bound;
    assert_true(overhead >= pp_evaluate_overhead(&problem->c.problem, candidate, PP_EVERY_RANK));
    pp_memory_rank(&program.schedule, rank, needs, overhead, scratch, &value);
    pp_memory_rank_bound(&program.schedule, rank, needs, program.stored + slots, program.pending + slots, &program.held[rank], overhead,
                         &bound);
    if (value.total > bound.total) tell("rank, its bound", seed, candidate, value.total, bound.total);
    if (value.activations > bound.activations) tell("activations, their bound", seed, candidate, value.activations, bound.activations);
    if (!problem->c.training.unfused_optimizer) assert_memory_equal(&value.transient, &bound.transient, sizeof value.transient);
    assert_memory_equal(&value.optimizer, &bound.optimizer, sizeof value.optimizer);
  }
  pp_memory_program_free(&program);
  return true;
}

static void no_rank_takes_more_than_its_bound(void **state) {
  (void)state;
  assert_true(each_row(200, 3, check_rank_bound) > 1500);
}

/* Where the first split takes four times what there is, none of the others fits: pp_fit_candidate does not ask them. */
static bool check_splits(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  static int splits[PP_MOST_SPLITS][PP_MAX_LAYERS];
  pp_candidate candidate = search->candidates.candidate[row];
  const pp_priced of = { &problem->c.problem, &candidate, row_costs(search, row), row_has_kernel(search, row) };
  pp_memory_program program;
  double first = 0;
  if (candidate.kind == PP_NO_SCHEDULE) return false;
  const int count = pp_stages_splits(&of, NULL, splits);
  if (count < 2 || pp_memory_program_build(&candidate, &program, NULL) != PP_OK) return false;
  for (int i = 0; i < count; i++) {
    pp_rank_bytes bytes;
    int rank;
    candidate.layers_per_stage = splits[i];
    assert_int_equal(pp_evaluate_memory(&of, &program, &bytes, &rank, NULL), PP_OK);
    if (i == 0) first = bytes.total;
    if (first > 4 * bytes.total) tell("first split, another", seed, &candidate, first, bytes.total);
  }
  pp_memory_program_free(&program);
  return true;
}

static void no_other_split_takes_a_quarter_of_the_first(void **state) {
  (void)state;
  assert_true(each_row(300, 9, check_splits) > 2000);
}

/* zb_auto's program, planned from the very times under the row's limit. */
static bool check_limited(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const double peak = search->column[PP_COLUMN_PEAK_BYTES][row];
  pp_rank_bytes ranks[PP_MAX_LAYERS];
  pp_schedule schedule;
  pp_simulation simulation;
  pp_timing timing;
  if (candidate->kind != PP_ZB_AUTO) return false;
  const pp_priced of = { &problem->c.problem, candidate, row_costs(search, row), row_has_kernel(search, row) };
  assert_int_equal(pp_evaluate_time(&of, true, &timing, &schedule, &simulation, NULL), PP_OK);
  assert_int_equal(pp_evaluate_ranks(&of, &schedule, ranks, NULL), PP_OK);
  for (int rank = 0; rank < candidate->layout.pipeline; rank++)
    if (ranks[rank].total > peak * (1 + 1e-12)) tell("zb_auto's rank, peak_bytes", seed, candidate, ranks[rank].total, peak);
  pp_simulation_free(&simulation);
  pp_schedule_free(&schedule);
  return true;
}

static void zb_auto_holds_no_more_than_it_was_judged_by(void **state) {
  (void)state;
  assert_true(each_row(600, 4, check_limited) > 250);
}

/* -- time ----------------------------------------------------------------------------------------------------------------------------- */

static bool check_time_bound(const random_problem *problem, pp_search *search, size_t row, uint32_t seed) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  pp_error error;
  (void)problem;
  const double bound = pp_search_bound(search, row);
  if (pp_search_simulate(search, row, &error) != PP_OK) fail_msg("seed %u, %s: %s", seed, name_of(candidate), error.message);
  const double seconds = search->column[PP_COLUMN_STEP_SECONDS][row];
  if (!(bound >= 0 && bound <= seconds && isfinite(seconds))) tell("bound, step", seed, candidate, bound, seconds);
  const pp_floor floor = pp_search_floor(search, row);
  if (!(floor.seconds >= 0 && floor.seconds <= seconds)) tell("floor, step", seed, candidate, floor.seconds, seconds);
  if (!(floor.bytes >= 0 && floor.bytes <= search->column[PP_COLUMN_PEAK_BYTES][row]))
    tell("floor, peak bytes", seed, candidate, floor.bytes, search->column[PP_COLUMN_PEAK_BYTES][row]);
  return true;
}

static void no_step_is_faster_than_its_bound(void **state) {
  (void)state;
  assert_true(each_row(200, 5, check_time_bound) > 1500);
}

/* -- search --------------------------------------------------------------------------------------------------------------------------- */

enum { RECIPES = 3, CHOICES = 2 * RECIPES };

/* Recompute of everything, larger microbatches, what else is sharded; on all GPUs, and on half of them. */
static void choices_of(random_problem *problem, pp_training training[RECIPES], pp_search_choice choice[CHOICES]) {
  const search_case *c = &problem->c;
  for (int i = 0; i < RECIPES; i++) training[i] = c->training;
  training[1].recompute.full = true;
  training[1].shard_parameters = !c->training.shard_parameters;
  training[2].micro_batch *= 2;
  for (int i = 0; i < CHOICES; i++) {
    choice[i] = (pp_search_choice){ c->problem, c->space };
    choice[i].problem.training = &training[i % RECIPES];
    choice[i].space.micro_batch = training[i % RECIPES].micro_batch;
    if (i >= RECIPES) choice[i].space.gpus /= 2;
  }
  choice[1].space.alone = true;
}

static void open_choices(const pp_search_choice *choice, pp_search *out) {
  pp_search_symbols symbols;
  pp_error error;
  for (int i = 0; i <= PP_SCHEDULE_KINDS; i++) symbols.schedule[i] = symbols.family[i] = 2 + i;
  if (pp_search_open(choice, CHOICES, NULL, 0, &symbols, out, &error) != PP_OK) fail_msg("%s", error.message);
}

/* Every row of every choice one by one, and what the search finds without looking at most of them. share: of the usable bytes, that a row may
** take. */
static bool check_best(uint32_t seed, double tolerance, double share) {
  static random_problem problem;
  const uint32_t first = seed;
  pp_training training[RECIPES];
  pp_search_choice choice[CHOICES];
  pp_search lazy, whole;
  pp_error error;
  size_t best = 0, fastest = SIZE_MAX;
  bool found;
  set_random(&problem, &seed);
  if (!isfinite(problem.c.problem.usable_bytes)) problem.c.problem.usable_bytes = 24 * GIB;
  const double most = problem.c.problem.usable_bytes * share;
  choices_of(&problem, training, choice);
  open_choices(choice, &lazy);
  open_choices(choice, &whole);
  const size_t rows = whole.candidates.count;
  pp_mask_word *mask = calloc(pp_mask_words(rows) + 1, sizeof *mask), *within = calloc(pp_mask_words(rows) + 1, sizeof *within);
  bool *good = calloc(rows + 1, sizeof *good);
  const double *seconds = whole.column[PP_COLUMN_STEP_SECONDS];
  for (size_t row = 0; row < rows; row++) {
    if (any_of(&seed, 4) == 0) continue;
    pp_mask_add(mask, row);
    if (pp_search_simulate(&whole, row, NULL) != PP_OK) continue;
    good[row] = most == INFINITY || whole.column[PP_COLUMN_PEAK_BYTES][row] <= most;
    if (good[row] && (fastest == SIZE_MAX || seconds[row] < seconds[fastest])) fastest = row;
  }
  if (pp_search_best(&lazy, mask, tolerance, INFINITY, most, &found, &best, within, &error) != PP_OK) fail_msg("seed %u: %s", first, error.message);
  if (found != (fastest != SIZE_MAX)) fail_msg("seed %u: found %d", first, found);
  if (found && best != fastest) fail_msg("seed %u: row %zu, not %zu", first, best, fastest);
  for (size_t row = 0; row < rows; row++)
    if (pp_mask_has(within, row) != (found && good[row] && seconds[row] <= seconds[fastest] * (1 + tolerance)))
      fail_msg("seed %u: row %zu of %zu", first, row, rows);
  free(mask);
  free(within);
  free(good);
  pp_search_free(&lazy);
  pp_search_free(&whole);
  return found;
}

static void the_fastest_of_all_choices_is_what_one_by_one_finds(void **state) {
  int found = 0;
  (void)state;
  for (uint32_t seed = 1; seed <= 60; seed++) found += check_best(seed, seed % 3 == 0 ? 0 : 0.05, seed % 4 == 0 ? INFINITY : seed % 4 == 1 ? 0.6 : 1);
  assert_true(found > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_rank_is_the_sum_of_its_terms_and_the_fullest_is_the_peak),
    cmocka_unit_test(a_rank_holds_the_weights_that_its_step_updates),
    cmocka_unit_test(no_rank_takes_more_than_its_bound),
    cmocka_unit_test(no_other_split_takes_a_quarter_of_the_first),
    cmocka_unit_test(zb_auto_holds_no_more_than_it_was_judged_by),
    cmocka_unit_test(no_step_is_faster_than_its_bound),
    cmocka_unit_test(the_fastest_of_all_choices_is_what_one_by_one_finds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* search.c: the table of candidates, and the fastest of a mask without simulating all of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "searches.h"

/* Kinds are their own symbols here, from 2. */
static pp_search_symbols symbols(void) {
  pp_search_symbols out;
  for (int i = 0; i <= PP_SCHEDULE_KINDS; i++) out.schedule[i] = out.family[i] = 2 + i;
  return out;
}

static void open_search(const search_case *c, pp_search *out) {
  pp_search_symbols names = symbols();
  pp_error error;
  if (pp_search_open(&c->problem, &c->space, &names, out, &error) != PP_OK) fail_msg("%s", error.message);
}

static pp_mask_word *mask_of(const pp_search *search, bool all) {
  size_t rows = search->candidates.count;
  pp_mask_word *mask = calloc(pp_mask_words(rows), sizeof *mask);
  for (size_t row = 0; all && row < rows; row++) mask[row / 64] |= (pp_mask_word)1 << row % 64;
  return mask;
}

static bool has(const pp_mask_word *mask, size_t row) {
  return mask[row / 64] >> row % 64 & 1;
}

static void give_kernels(pp_search *search) {
  for (size_t row = 0; row < search->candidates.count; row++) search->column[PP_COLUMN_KERNEL][row] = 99;
  pp_search_kernels_changed(search);
}

static void small_case(search_case *c) {
  set_case(c, deepseek_v3(17, 2, 1), 128, 1024);
}

static void best_is_what_simulating_everything_finds(void **state) {
  search_case c;
  pp_search lazy, whole;
  bool found;
  size_t best, simulated = 0, fastest = SIZE_MAX;
  (void)state;
  small_case(&c);
  open_search(&c, &lazy);
  open_search(&c, &whole);
  pp_mask_word *all = mask_of(&lazy, true), *within = mask_of(&lazy, false);
  for (size_t row = 0; row < whole.candidates.count; row++) {
    const double *seconds = whole.column[PP_COLUMN_STEP_SECONDS];
    if (pp_search_simulate(&whole, row, NULL) != PP_OK) continue;
    if (fastest == SIZE_MAX || seconds[row] < seconds[fastest]) fastest = row;
  }
  assert_int_equal(pp_search_best(&lazy, all, 0.25, INFINITY, &found, &best, within, NULL), PP_OK);
  assert_true(found);
  assert_int_equal(best, fastest);
  for (size_t row = 0; row < whole.candidates.count; row++) {
    double seconds = whole.column[PP_COLUMN_STEP_SECONDS][row];
    assert_int_equal(has(within, row), seconds <= 1.25 * whole.column[PP_COLUMN_STEP_SECONDS][fastest]);
    if (!isnan(lazy.column[PP_COLUMN_STEP_SECONDS][row])) simulated++;
  }
  assert_true(simulated < whole.candidates.count / 2);
  free(all);
  free(within);
  pp_search_free(&lazy);
  pp_search_free(&whole);
}

static void nothing_under_a_limit_is_found_without_simulating(void **state) {
  search_case c;
  pp_search search;
  bool found;
  size_t best;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  pp_mask_word *all = mask_of(&search, true);
  assert_int_equal(pp_search_best(&search, all, 0, 1e-6, &found, &best, NULL, NULL), PP_OK);
  assert_false(found);
  for (size_t row = 0; row < search.candidates.count; row++) assert_true(isnan(search.column[PP_COLUMN_STEP_SECONDS][row]));
  free(all);
  pp_search_free(&search);
}

static void memory_is_filled_where_a_row_can_be_built_and_nowhere_else(void **state) {
  search_case c;
  pp_search search;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  pp_mask_word *all = mask_of(&search, true);
  assert_int_equal(pp_search_memory(&search, all, NULL), PP_OK);
  for (size_t row = 0; row < search.candidates.count; row++) {
    const pp_candidate *candidate = &search.candidates.candidate[row];
    double bytes = search.column[PP_COLUMN_PEAK_BYTES][row], one_copy = search.column[PP_COLUMN_ONE_COPY_BYTES][row];
    assert_int_equal(isnan(bytes), pp_candidate_check(candidate, &c.model, NULL) != PP_OK);
    assert_int_equal(!isnan(one_copy), candidate->kind == PP_DUALPIPE && !isnan(bytes));
    if (isnan(bytes)) continue;
    assert_true(bytes > c.problem.overhead_bytes);
    if (candidate->kind == PP_NO_SCHEDULE) continue;
    pp_memory_program program;
    pp_rank_bytes alone;
    int rank;
    assert_int_equal(pp_memory_program_build(candidate, &program, NULL), PP_OK);
    assert_int_equal(pp_evaluate_memory(&c.problem, candidate, &search.costs[search.layout_of[row]], candidate->kind == PP_DUALPIPE ? 2 : 1,
                                        false, &program, &alone, &rank, NULL), PP_OK);
    expect(alone.total, bytes, 1e-12);
    assert_int_equal(rank, search.fullest[row]);
    pp_memory_program_free(&program);
  }
  free(all);
  pp_search_free(&search);
}

/* What a rank holds too much of goes to ranks that have room, at the price of time. */
static void stages_that_nearly_fit_give_layers_to_emptier_ranks(void **state) {
  search_case c;
  pp_search roomy, tight;
  size_t squeezed = 0;
  (void)state;
  set_deepseek(&c);
  c.problem.usable_bytes = INFINITY;
  open_search(&c, &roomy);
  give_kernels(&roomy);
  pp_mask_word *all = mask_of(&roomy, true);
  assert_int_equal(pp_search_memory(&roomy, all, NULL), PP_OK);
  for (size_t row = 0; row < roomy.candidates.count; row++) {
    double balanced = roomy.column[PP_COLUMN_PEAK_BYTES][row];
    assert_null(roomy.candidates.candidate[row].layers_per_stage);
    if (roomy.candidates.candidate[row].kind == PP_NO_SCHEDULE || isnan(balanced)) continue;
    c.problem.usable_bytes = balanced * 0.97;
    open_search(&c, &tight);
    give_kernels(&tight);
    assert_int_equal(pp_search_memory(&tight, all, NULL), PP_OK);
    if (tight.candidates.candidate[row].layers_per_stage) {
      squeezed++;
      assert_true(tight.column[PP_COLUMN_PEAK_BYTES][row] <= c.problem.usable_bytes);
    } else {
      expect(balanced, tight.column[PP_COLUMN_PEAK_BYTES][row], 1e-12);
    }
    pp_search_free(&tight);
  }
  assert_true(squeezed > 10);
  free(all);
  pp_search_free(&roomy);
}

/* 8 GPUs a domain: EP 8 stays inside, EP 16 leaves it. */
static void the_expert_link_is_the_slowest_that_the_group_crosses(void **state) {  /* ruling 16 */
  search_case c;
  pp_search search;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  for (size_t row = 0; row < search.candidates.count; row++) {
    double link = search.column[PP_COLUMN_EXPERT_LINK][row];
    int expert = search.candidates.candidate[row].layout.expert;
    if (expert == 1) assert_true(isnan(link));
    else expect(expert <= 8 ? 160e9 : 50e9, link, 1e-12);
  }
  pp_search_free(&search);
}

static void a_kernel_makes_overlapping_schedules_faster_again(void **state) {
  search_case c;
  pp_search search;
  (void)state;
  set_deepseek(&c);
  open_search(&c, &search);
  for (size_t row = 0; row < search.candidates.count; row++) {
    double plain, fraction = search.column[PP_COLUMN_ALLTOALL_FRACTION][row];
    if (search.candidates.candidate[row].kind != PP_DUALPIPE || pp_search_simulate(&search, row, NULL) != PP_OK) continue;
    plain = search.column[PP_COLUMN_STEP_SECONDS][row];
    search.column[PP_COLUMN_KERNEL][row] = 99;
    pp_search_kernels_changed(&search);
    assert_true(search.column[PP_COLUMN_ALLTOALL_FRACTION][row] < fraction);
    assert_int_equal(pp_search_simulate(&search, row, NULL), PP_OK);
    assert_true(search.column[PP_COLUMN_STEP_SECONDS][row] < plain);
    search.column[PP_COLUMN_KERNEL][row] = 0;
    pp_search_kernels_changed(&search);
  }
  pp_search_free(&search);
}

static void an_empty_table_has_nothing_to_find(void **state) {
  search_case c;
  pp_search search;
  bool found;
  size_t best;
  (void)state;
  set_deepseek(&c);
  c.space.global_batch = c.space.smallest_batch = 15361;
  open_search(&c, &search);
  assert_int_equal(search.candidates.count, 0);
  assert_int_equal(pp_search_memory(&search, NULL, NULL), PP_OK);
  assert_int_equal(pp_search_best(&search, NULL, 0, INFINITY, &found, &best, NULL, NULL), PP_OK);
  assert_false(found);
  pp_search_free(&search);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(best_is_what_simulating_everything_finds),
    cmocka_unit_test(nothing_under_a_limit_is_found_without_simulating),
    cmocka_unit_test(memory_is_filled_where_a_row_can_be_built_and_nowhere_else),
    cmocka_unit_test(stages_that_nearly_fit_give_layers_to_emptier_ranks),
    cmocka_unit_test(the_expert_link_is_the_slowest_that_the_group_crosses),
    cmocka_unit_test(a_kernel_makes_overlapping_schedules_faster_again),
    cmocka_unit_test(an_empty_table_has_nothing_to_find),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

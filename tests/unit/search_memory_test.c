/* SPDX-License-Identifier: Apache-2.0 */
/* candidate.c, evaluate.c, search.c and what they call, json_check.c: each allocation fails once; the status says so and nothing is left behind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "allocations.h"
#include "core/json_check.h"
#include "searches.h"

static const pp_search_symbols symbols = { .schedule = { 2, 3, 4, 5, 6, 7, 8, 9, 10 }, .family = { 2, 3, 4, 5, 6, 7, 8, 9, 10 } };

/* Calls attempt(case) with its 1st, 2nd, … allocation failing until it needs no more → how many it needs. */
static size_t each_allocation_fails(pp_status (*attempt)(void *), void *given) {
  size_t before = allocations.live;
  for (size_t n = 1;; n++) {
    fail_allocation(n);
    pp_status status = attempt(given);
    bool failed = allocations.asked >= n;
    fail_allocation(0);
    assert_int_equal(status, failed ? PP_NO_MEMORY : PP_OK);
    assert_int_equal(allocations.live, before);
    if (!failed) return n - 1;
  }
}

static pp_status open_and_free(void *given) {
  const search_case *c = given;
  pp_search search;
  pp_error error;
  pp_status status = pp_search_open(&(pp_search_choice){ c->problem, c->space }, 1, NULL, 0, &symbols, &search, &error);
  pp_search_free(&search);
  return status;
}

static void opening_a_search_survives_each_failing_allocation(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  assert_true(each_allocation_fails(open_and_free, &c) >= 6);   /* candidates, columns, layouts, ranks, splits, costs */
}

/* A search with the rows that are asked for. */
typedef struct {
  search_case c;
  pp_search search;
  pp_mask_word *mask;
} opened;

static void open_search(opened *out, double usable_bytes) {
  pp_error error;
  set_deepseek(&out->c);
  out->c.problem.usable_bytes = usable_bytes;
  if (pp_search_open(&(pp_search_choice){ out->c.problem, out->c.space }, 1, NULL, 0, &symbols, &out->search, &error) != PP_OK) fail_msg("%s", error.message);
  out->mask = calloc(pp_mask_words(out->search.candidates.count), sizeof *out->mask);
  assert_non_null(out->mask);
}

static void close_search(opened *at) {
  free(at->mask);
  pp_search_free(&at->search);
  assert_int_equal(allocations.live, 0);
}

static void ask_for(opened *at, size_t row) { at->mask[row / 64] |= (pp_mask_word)1 << row % 64; }

/* The first row that has a schedule, and one that can be built. */
static size_t first_legal(const opened *at) {
  const pp_candidate *candidate = at->search.candidates.candidate;
  size_t row = 0;
  while (candidate[row].kind == PP_NO_SCHEDULE || pp_candidate_check(&candidate[row], at->c.problem.model, NULL) != PP_OK) row++;
  return row;
}

/* What an earlier attempt computed is forgotten. */
static void forget(opened *at) { assert_int_equal(pp_search_kernels_changed(&at->search, NULL), PP_OK); }

static pp_status measure_memory(void *given) {
  opened *at = given;
  pp_error error;
  forget(at);
  pp_status status = pp_search_memory(&at->search, at->mask, &error);
  forget(at);
  return status;
}

/* A search whose memory is such that the first row for which that can be said fits only after layers have moved. */
static void open_tight_search(opened *out) {
  open_search(out, INFINITY);
  size_t rows = out->search.candidates.count;
  for (size_t row = 0; row < rows; row++) {
    memset(out->mask, 0, pp_mask_words(rows) * sizeof *out->mask);
    ask_for(out, row);
    out->search.problem->usable_bytes = INFINITY;
    assert_int_equal(pp_search_memory(&out->search, out->mask, NULL), PP_OK);
    out->search.problem->usable_bytes = 0.97 * out->search.column[PP_COLUMN_PEAK_BYTES][row];
    forget(out);
    if (out->search.candidates.candidate[row].kind == PP_NO_SCHEDULE || isnan(out->search.problem->usable_bytes)) continue;
    assert_int_equal(pp_search_memory(&out->search, out->mask, NULL), PP_OK);
    if (out->search.split[row] && out->search.column[PP_COLUMN_PEAK_BYTES][row] <= out->search.problem->usable_bytes) return;
  }
  fail_msg("no row fits after layers have moved");
}

static void measuring_memory_survives_each_failing_allocation(void **state) {
  opened at;
  (void)state;
  open_tight_search(&at);
  forget(&at);
  assert_true(each_allocation_fails(measure_memory, &at) >= 4);   /* the order of rows, a program, its profile, the split */
  close_search(&at);
}

/* Rows have their bytes already; what is simulated is forgotten between attempts. */
static pp_status find_best(void *given) {
  opened *at = given;
  pp_error error;
  bool found;
  size_t best = 0, first = allocations.first;
  fail_allocation(0);
  forget(at);
  assert_int_equal(pp_search_memory(&at->search, at->mask, NULL), PP_OK);
  fail_allocation(first);
  return pp_search_best(&at->search, at->mask, 0.02, INFINITY, INFINITY, &found, &best, NULL, &error);
}

static void finding_the_fastest_survives_each_failing_allocation(void **state) {
  opened at;
  (void)state;
  open_search(&at, 73 * GIB);
  for (size_t row = 0; row < at.search.candidates.count; row += 7) ask_for(&at, row);
  assert_int_equal(pp_search_memory(&at.search, at.mask, NULL), PP_OK);
  assert_true(each_allocation_fails(find_best, &at) > 4);   /* the order of rows; per simulated row its program, times and results */
  close_search(&at);
}

/* No bound is a bound that rules nothing out: the row is simulated, which says what is wrong. */
static void a_bound_without_memory_is_zero_and_not_kept(void **state) {
  opened at;
  (void)state;
  open_search(&at, 73 * GIB);
  const size_t row = first_legal(&at);
  fail_allocation(1);
  double bound = pp_search_bound(&at.search, row);
  assert_true(bound <= 0);
  fail_allocation(0);
  assert_true(pp_search_bound(&at.search, row) > 0);
  close_search(&at);
}

static pp_status time_and_keep(void *given) {
  opened *at = given;
  pp_timing timing;
  pp_schedule schedule = { 0 };
  pp_simulation simulation = { 0 };
  pp_error error;
  size_t row = first_legal(at);
  const pp_priced of = { &at->c.problem, &at->search.candidates.candidate[row], &at->search.costs[at->search.layout_of[row]], true };
  pp_status status = pp_evaluate_time(&of, true, &timing, &schedule, &simulation, &error);
  if (status == PP_OK) {
    pp_schedule_free(&schedule);
    pp_simulation_free(&simulation);
  }
  return status;
}

static void timing_a_candidate_survives_each_failing_allocation(void **state) {
  opened at;
  (void)state;
  open_search(&at, 73 * GIB);
  assert_true(each_allocation_fails(time_and_keep, &at) >= 3);
  close_search(&at);
}

static pp_status check_json(void *given) {
  pp_json_problem problem;
  return pp_json_check(given, strlen(given), PP_JSON_MAX_DEPTH, &problem);
}

static void checking_json_survives_each_failing_allocation(void **state) {
  char text[4096] = "{";
  (void)state;
  for (int i = 0; i < 100; i++) snprintf(text + strlen(text), 16, "%s\"k%d\":1", i > 0 ? "," : "", i);
  strcat(text, "}");
  assert_int_equal(each_allocation_fails(check_json, text), 2);   /* room for 64 keys, then for 128 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(opening_a_search_survives_each_failing_allocation),
    cmocka_unit_test(measuring_memory_survives_each_failing_allocation),
    cmocka_unit_test(finding_the_fastest_survives_each_failing_allocation),
    cmocka_unit_test(a_bound_without_memory_is_zero_and_not_kept),
    cmocka_unit_test(timing_a_candidate_survives_each_failing_allocation),
    cmocka_unit_test(checking_json_survives_each_failing_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

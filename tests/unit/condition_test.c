/* SPDX-License-Identifier: Apache-2.0 */
/* condition.c: what each operator means, for values, absent values and columns. The meanings are those that condition.h states. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/condition.h"

/* field OP low (..high), both constants */
static bool holds(double field, pp_operator operator, double low, double high) {
  pp_condition condition = { { &field, true }, operator, { &low, true }, { &high, true }, NULL, 0 };
  return pp_condition_holds(&condition, 0);
}

static bool holds_set(double field, pp_operator operator, const double *set, size_t size) {
  pp_condition condition = { { &field, true }, operator, { NULL, true }, { NULL, true }, set, size };
  return pp_condition_holds(&condition, 0);
}

static void a_strict_bound_leaves_its_value_out(void **state) {
  (void)state;
  assert_true(holds(99, PP_UNDER, 100, 0));
  assert_false(holds(100, PP_UNDER, 100, 0));
  assert_true(holds(101, PP_OVER, 100, 0));
  assert_false(holds(100, PP_OVER, 100, 0));
}

static void a_weak_bound_includes_its_value(void **state) {
  (void)state;
  assert_true(holds(100, PP_AT_MOST, 100, 0));
  assert_false(holds(101, PP_AT_MOST, 100, 0));
  assert_true(holds(100, PP_AT_LEAST, 100, 0));
  assert_false(holds(99, PP_AT_LEAST, 100, 0));
}

static void between_includes_both_ends(void **state) {
  (void)state;
  assert_false(holds(15, PP_BETWEEN, 16, 32));
  assert_true(holds(16, PP_BETWEEN, 16, 32));
  assert_true(holds(32, PP_BETWEEN, 16, 32));
  assert_false(holds(33, PP_BETWEEN, 16, 32));
}

static void equality_is_exact(void **state) {
  (void)state;
  assert_true(holds(25e9, PP_EQUAL, 25e9, 0));
  assert_false(holds(25e9, PP_EQUAL, 25e9 + 1, 0));
}

static void parity_is_of_integers_only(void **state) {
  (void)state;
  assert_true(holds(3, PP_ODD, 0, 0));
  assert_true(holds(-3, PP_ODD, 0, 0));
  assert_false(holds(4, PP_ODD, 0, 0));
  assert_true(holds(4, PP_EVEN, 0, 0));
  assert_true(holds(0, PP_EVEN, 0, 0));
  assert_false(holds(2.5, PP_ODD, 0, 0));
  assert_false(holds(2.5, PP_EVEN, 0, 0));
}

static void multiples_are_exact_and_nothing_is_a_multiple_of_zero(void **state) {
  (void)state;
  assert_true(holds(24, PP_MULTIPLE_OF, 8, 0));
  assert_false(holds(25, PP_MULTIPLE_OF, 8, 0));
  assert_false(holds(24, PP_NOT_MULTIPLE_OF, 8, 0));
  assert_true(holds(25, PP_NOT_MULTIPLE_OF, 8, 0));
  assert_false(holds(24, PP_MULTIPLE_OF, 0, 0));
}

static void a_set_holds_what_is_in_it(void **state) {
  const double set[] = { 2, 5 };
  (void)state;
  assert_true(holds_set(5, PP_ONE_OF, set, 2));
  assert_false(holds_set(3, PP_ONE_OF, set, 2));
  assert_false(holds_set(5, PP_NONE_OF, set, 2));
  assert_true(holds_set(3, PP_NONE_OF, set, 2));
  assert_false(holds_set(3, PP_ONE_OF, set, 0));
}

static void an_absent_field_satisfies_only_none_of(void **state) {
  const double set[] = { 2 };
  (void)state;
  for (int operator = PP_EQUAL; operator <= PP_EVEN; operator++) {
    double absent = NAN, low = 0, high = 1;
    pp_condition condition = { { &absent, true }, (pp_operator)operator, { &low, true }, { &high, true }, set, 1 };
    assert_int_equal(pp_condition_holds(&condition, 0), operator == PP_NONE_OF);
  }
}

static void an_absent_right_side_satisfies_nothing(void **state) {
  const pp_operator operators[] = { PP_EQUAL, PP_UNDER, PP_AT_MOST, PP_OVER, PP_AT_LEAST, PP_BETWEEN, PP_MULTIPLE_OF, PP_NOT_MULTIPLE_OF };
  (void)state;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) assert_false(holds(1, operators[i], NAN, 2));
  assert_false(holds(1, PP_BETWEEN, 0, NAN));
}

static void a_mask_holds_the_rows_for_which_all_conditions_hold(void **state) {
  double depth[130], limit = 64, absent = NAN, one = 1;
  pp_mask_word mask[3];
  pp_condition conditions[2] = {
    { { depth, false }, PP_OVER, { &limit, true }, { NULL, true }, NULL, 0 },
    { { depth, false }, PP_EVEN, { NULL, true }, { NULL, true }, NULL, 0 },
  };
  (void)state;
  for (int i = 0; i < 130; i++) depth[i] = i;
  assert_int_equal(pp_mask_words(130), 3);
  assert_int_equal(pp_mask_words(128), 2);
  pp_conditions_match(conditions, 2, 130, mask);
  for (size_t i = 0; i < 130; i++) assert_int_equal(mask[i / 64] >> i % 64 & 1, i > 64 && i % 2 == 0);
  assert_true(mask[2] >> 2 == 0);  /* bits past the last row */
  pp_conditions_match(conditions, 0, 130, mask);
  assert_true(mask[0] == UINT64_MAX && mask[1] == UINT64_MAX && mask[2] == 3);
  conditions[0] = (pp_condition){ { &absent, true }, PP_EQUAL, { &one, true }, { NULL, true }, NULL, 0 };
  pp_conditions_match(conditions, 2, 130, mask);
  assert_true(mask[0] == 0 && mask[1] == 0 && mask[2] == 0);
}

static void a_bound_may_itself_be_a_column(void **state) {
  const double peak[] = { 70, 90, 80 }, device[] = { 80, 80, 80 };
  pp_mask_word mask;
  pp_condition condition = { { peak, false }, PP_OVER, { device, false }, { NULL, true }, NULL, 0 };
  (void)state;
  pp_conditions_match(&condition, 1, 3, &mask);
  assert_int_equal(mask, 2);
}

/* Whole words of rows are matched another way than one row: every operator, values and right sides absent, sets empty, rows no whole words. */
static void a_mask_is_what_each_row_says(void **state) {
  enum { ROWS = 200 };
  double value[ROWS], other[ROWS], constant[] = { 3, 0, -1, NAN }, set[] = { 1, 3, -1 };
  uint32_t seed = 5;
  (void)state;
  for (int i = 0; i < ROWS; i++) {
    seed = seed * 1664525u + 1013904223u;
    value[i] = seed >> 28 == 0 ? NAN : (double)(seed >> 29) - 2;
    other[i] = seed >> 20 & 15 ? (double)(seed >> 17 & 7) - 2 : NAN;
  }
  for (int op = PP_EQUAL; op <= PP_EVEN; op++)
    for (size_t low = 0; low < 5; low++)
      for (size_t size = 0; size < 4; size++)
        for (size_t rows = ROWS - 9; rows <= ROWS; rows += 9) {
          const pp_column bound = low < 4 ? (pp_column){ &constant[low], true } : (pp_column){ other, false };
          const pp_condition condition = { { value, false }, (pp_operator)op, bound, { &constant[0], true }, set, size };
          pp_mask_word mask[4] = { 0 };
          pp_conditions_match(&condition, 1, rows, mask);
          for (size_t row = 0; row < 256; row++) {
            const bool held = row < rows && pp_condition_holds(&condition, row);
            if ((mask[row / 64] >> row % 64 & 1) != held) fail_msg("operator %d, low %zu, set of %zu: row %zu of %zu", op, low, size, row, rows);
          }
        }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_strict_bound_leaves_its_value_out),
    cmocka_unit_test(a_weak_bound_includes_its_value),
    cmocka_unit_test(between_includes_both_ends),
    cmocka_unit_test(equality_is_exact),
    cmocka_unit_test(parity_is_of_integers_only),
    cmocka_unit_test(multiples_are_exact_and_nothing_is_a_multiple_of_zero),
    cmocka_unit_test(a_set_holds_what_is_in_it),
    cmocka_unit_test(an_absent_field_satisfies_only_none_of),
    cmocka_unit_test(an_absent_right_side_satisfies_nothing),
    cmocka_unit_test(a_mask_holds_the_rows_for_which_all_conditions_hold),
    cmocka_unit_test(a_bound_may_itself_be_a_column),
    cmocka_unit_test(a_mask_is_what_each_row_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: what a caller finds in a pp_error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/error.h"

static void a_failure_carries_its_message_and_no_rule(void **state) {
  pp_error error;
  (void)state;
  assert_int_equal(pp_fail(&error, PP_INVALID, "ranks is %d", 0), PP_INVALID);
  assert_string_equal(error.message, "ranks is 0");
  assert_string_equal(error.id, "");
  assert_true(isnan(error.nearest));
}

static void a_field_outside_its_range_is_named_with_the_nearest_value(void **state) {
  pp_error error;
  (void)state;
  assert_int_equal(pp_invalid(&error, "experts", 0, "'experts' is %d", -1), PP_INVALID);
  assert_string_equal(error.message, "'experts' is -1");
  assert_string_equal(error.id, "");
  assert_string_equal(error.field, "experts");
  assert_true(error.nearest >= 0 && error.nearest <= 0);
}

static void an_illegal_request_names_rule_field_and_nearest_value(void **state) {
  pp_error error;
  (void)state;
  assert_int_equal(pp_illegal(&error, "engine.odd_depth", "ranks", 4, "ranks is %d", 5), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.odd_depth");
  assert_string_equal(error.field, "ranks");
  assert_true(error.nearest >= 4 && error.nearest <= 4);
}

static void a_caller_may_not_care(void **state) {
  (void)state;
  assert_int_equal(pp_fail(NULL, PP_NO_MEMORY, "x"), PP_NO_MEMORY);
  assert_int_equal(pp_invalid(NULL, "ranks", NAN, "x"), PP_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_failure_carries_its_message_and_no_rule),
    cmocka_unit_test(a_field_outside_its_range_is_named_with_the_nearest_value),
    cmocka_unit_test(an_illegal_request_names_rule_field_and_nearest_value),
    cmocka_unit_test(a_caller_may_not_care),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

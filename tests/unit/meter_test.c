/* SPDX-License-Identifier: Apache-2.0 */
/*
** Work and memory of a computation end where its meter says, and are given back to the meter that counted them.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/meter.h"
#include "core/runtime.h"
#include "core/schedule.h"
#include "core/simulate.h"

static void without_a_meter_nothing_is_refused(void **state) {
  (void)state;
  assert_null(pp_meter_use(NULL));
  assert_true(pp_spend(UINT64_MAX));
  for (size_t bytes = 0; bytes <= 100; bytes += 100) {
    void *block = pp_allocate(bytes);
    assert_non_null(block);
    pp_free(block);
  }
}

static void work_ends_at_the_limit_and_stays_ended(void **state) {
  (void)state;
  pp_meter meter = { .limit = 100, .cap = 1000 };
  pp_meter_use(&meter);
  assert_true(pp_spend(100));
  assert_false(pp_spend(1));
  meter.spent = 0;
  assert_false(pp_spend(0));
  assert_true(meter.exhausted);
  pp_meter_use(NULL);
}

static void work_does_not_wrap_around(void **state) {
  (void)state;
  pp_meter meter = { .limit = 100 };
  pp_meter_use(&meter);
  pp_spend(UINT64_MAX);
  assert_false(pp_spend(UINT64_MAX));
  pp_meter_use(NULL);
}

static void memory_ends_at_the_cap(void **state) {
  (void)state;
  pp_meter meter = { .limit = UINT64_MAX, .cap = 1000 };
  pp_meter_use(&meter);
  void *block = pp_allocate(900);
  assert_non_null(block);
  assert_false(meter.full);
  assert_null(pp_allocate(100));
  assert_true(meter.full);
  assert_null(pp_allocate(SIZE_MAX));
  pp_free(block);
  assert_int_equal(meter.used, 0);
  assert_in_range(meter.peak, 900, 1000);
  pp_meter_use(NULL);
}

static void a_block_goes_back_to_the_meter_that_counted_it(void **state) {
  (void)state;
  pp_meter first = { .limit = UINT64_MAX, .cap = 1000 }, second = first;
  pp_meter_use(&first);
  char *block = pp_allocate(10);
  strcpy(block, "kept");
  assert_ptr_equal(pp_meter_use(&second), &first);
  block = pp_resize(block, 500);
  assert_string_equal(block, "kept");
  assert_int_equal(first.used, 0);
  assert_true(second.used >= 500);
  pp_meter_use(NULL);
  pp_free(block);
  assert_int_equal(second.used, 0);
}

static void *idle;
static void drop_idle(pp_meter *meter) {
  (void)meter;
  pp_free(idle);
  idle = NULL;
}

static void what_can_be_reclaimed_is_before_anything_is_refused(void **state) {
  (void)state;
  pp_meter meter = { .limit = UINT64_MAX, .cap = 1000, .reclaim = drop_idle };
  pp_meter_use(&meter);
  idle = pp_allocate(800);
  void *block = pp_allocate(800);
  assert_non_null(block);
  assert_null(idle);
  assert_false(meter.full);
  pp_free(block);
  pp_meter_use(NULL);
}

/* Building, simulating and lowering 2,000 microbatches on 16 ranks, stopped at every thousandth unit of what it takes. */
static pp_status all_of_it(pp_error *error) {
  const pp_schedule_request request = { .kind = PP_V_HALF, .ranks = 16, .microbatches = 200, .chunks = 2 };
  pp_stage_times times[32];
  const pp_hardware hardware = { .contention = 1.2, .heat_onset = 0.5, .heat_slope = 0.1, .heat_tau = 10 };
  pp_schedule schedule;
  pp_simulation result;
  for (int s = 0; s < 32; s++) times[s] = (pp_stage_times){ 1, 1, 1, 2 };
  pp_status status = pp_schedule_build(&request, &schedule, error);
  if (status != PP_OK) return status;
  status = pp_runtime_simulate(&schedule, &(pp_times){ .stage = times, .p2p = 0.1 }, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), &hardware, true,
                               &result, error);
  if (status == PP_OK) pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  return status;
}

static void computations_that_are_stopped_say_so_and_keep_nothing(void **state) {
  (void)state;
  pp_meter meter = { .limit = UINT64_MAX, .cap = SIZE_MAX };
  pp_error error;
  pp_meter_use(&meter);
  assert_int_equal(all_of_it(&error), PP_OK);
  const uint64_t all = meter.spent;
  const size_t most = meter.peak;
  assert_true(all > 3 * 200 * 16 * 2);   /* actions */
  for (uint64_t limit = 0; limit < all; limit += all / 100) {
    meter = (pp_meter){ .limit = limit, .cap = SIZE_MAX };
    assert_int_equal(all_of_it(&error), PP_STOPPED);
    assert_int_equal(meter.used, 0);
  }
  for (size_t cap = 0; cap < most; cap += most / 100) {
    meter = (pp_meter){ .limit = UINT64_MAX, .cap = cap };
    assert_int_equal(all_of_it(&error), PP_NO_MEMORY);
    assert_true(meter.full);
    assert_int_equal(meter.used, 0);
  }
  pp_meter_use(NULL);
}

static void the_same_work_costs_the_same(void **state) {
  (void)state;
  uint64_t spent[2];
  for (int i = 0; i < 2; i++) {
    pp_meter meter = { .limit = UINT64_MAX, .cap = SIZE_MAX };
    pp_meter_use(&meter);
    assert_int_equal(all_of_it(NULL), PP_OK);
    spent[i] = meter.spent;
  }
  assert_int_equal(spent[0], spent[1]);
  pp_meter_use(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_a_meter_nothing_is_refused),
    cmocka_unit_test(work_ends_at_the_limit_and_stays_ended),
    cmocka_unit_test(work_does_not_wrap_around),
    cmocka_unit_test(memory_ends_at_the_cap),
    cmocka_unit_test(a_block_goes_back_to_the_meter_that_counted_it),
    cmocka_unit_test(what_can_be_reclaimed_is_before_anything_is_refused),
    cmocka_unit_test(computations_that_are_stopped_say_so_and_keep_nothing),
    cmocka_unit_test(the_same_work_costs_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

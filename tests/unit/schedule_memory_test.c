/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of schedules and simulations: each allocation fails once; nothing leaks, nothing is left half made, the status says so. */
#include "schedules.h"

#include "allocations.h"
#include "core/runtime.h"
#include "core/schedule_csv.h"
#include "core/steady.h"

static const pp_stage_times stages[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };
static const pp_times times = { .stage = stages };

static void building_survives_each_failing_allocation(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_ZB_V, 2, 4);
  pp_schedule schedule;
  pp_error error;
  fail_allocation(1);
  assert_int_equal(pp_schedule_build(&request, &schedule, &error), PP_NO_MEMORY);
  assert_null(schedule.action);
  fail_allocation(2);   /* one allocation a schedule: the second never comes */
  assert_int_equal(pp_schedule_build(&request, &schedule, &error), PP_OK);
  assert_int_equal(allocations.asked, 1);
  fail_allocation(1);
  assert_int_equal(pp_schedule_verify(&schedule, &error), PP_NO_MEMORY);
  fail_allocation(2);   /* one allocation here too */
  assert_int_equal(pp_schedule_verify(&schedule, &error), PP_OK);
  assert_int_equal(allocations.asked, 1);
  schedule.microbatches_per_chain = 1000;
  for (size_t n = 1; n <= 2; n++) {
    fail_allocation(n);
    assert_int_equal(pp_schedule_verify(&schedule, &error), n == 1 ? PP_NO_MEMORY : PP_ILLEGAL);
  }
  assert_int_equal(allocations.asked, 1);
  assert_int_equal(allocations.live, 1);
  fail_allocation(0);
  pp_schedule_free(&schedule);
  assert_int_equal(allocations.live, 0);
}

static void reading_survives_each_failing_allocation(void **state) {
  (void)state;
  static const char text[] = "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n";
  pp_schedule schedule;
  pp_error error;
  size_t n = 1;
  for (;; n++) {
    fail_allocation(n);
    pp_status status = pp_schedule_read_csv(text, sizeof text - 1, 1, &schedule, NULL, &error);
    if (status == PP_OK) break;
    assert_int_equal(status, PP_NO_MEMORY);
    assert_null(schedule.action);
    assert_int_equal(allocations.live, 0);
  }
  fail_allocation(0);
  assert_int_equal(n, 4);
  pp_schedule_free(&schedule);
  assert_int_equal(pp_schedule_read_csv("0F0,0B0\n2F0,2B0", 15, 1, &schedule, NULL, &error), PP_ILLEGAL);
  assert_int_equal(allocations.live, 0);
}

static void simulating_survives_each_failing_allocation(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_ZB_V, 2, 4));
  pp_simulation result;
  pp_error error;
  int n = 0;
  for (;; n++) {
    fail_allocation((size_t)n + 1);
    pp_status status = pp_simulate(&schedule, &times, true, &result, &error);
    if (status == PP_OK) break;
    assert_int_equal(status, PP_NO_MEMORY);
    assert_null(result.busy);
  }
  fail_allocation(0);
  assert_int_equal(n, 2);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  assert_int_equal(allocations.live, 0);
}

/* torch-multi with a queue for each peer asks for all that any lowering asks for. */
static void runtimes_survive_each_failing_allocation(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_ZB_V, 2, 4));
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  pp_hardware hardware = { .contention = 1.2, .heat_slope = 0.1, .heat_tau = 1 };
  pp_simulation result;
  pp_error error;
  runtime.queues = PP_QUEUE_PER_PEER;
  size_t n = 0;
  for (;; n++) {
    fail_allocation(n + 1);
    pp_status status = pp_runtime_simulate(&schedule, &times, &runtime, &hardware, true, &result, &error);
    if (status == PP_OK) break;
    assert_int_equal(status, PP_NO_MEMORY);
    assert_null(result.busy);
  }
  fail_allocation(0);
  assert_int_equal(n, 4);   /* lowered, work, run, result */
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  assert_int_equal(allocations.live, 0);
}

static void periods_survive_each_failing_allocation(void **state) {
  (void)state;
  const pp_schedule_request request = request_of(PP_ZB_V, 2, 1000);
  pp_schedule_request shorter;
  pp_simulation result;
  pp_error error;
  size_t n = 0;
  assert_true(pp_steady_shorten(&request, &shorter));
  pp_schedule schedule = built(shorter);
  for (;; n++) {
    fail_allocation(n + 1);
    pp_status status = pp_steady_simulate(&schedule, 1000, &times, INT64_MAX, &result, NULL, &error);
    if (status == PP_OK) break;
    assert_int_equal(status, PP_NO_MEMORY);
    assert_null(result.busy);
    assert_int_equal(allocations.live, 1);
  }
  fail_allocation(0);
  assert_int_equal(n, 3);   /* run, orbit, result */
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
  assert_int_equal(allocations.live, 0);
}

static void a_workspace_allocates_only_to_grow(void **state) {
  (void)state;
  pp_schedule small = built(request_of(PP_ZB_V, 2, 4)), large = built(request_of(PP_ZB_V, 2, 40));
  pp_workspace workspace = { 0 };
  pp_simulation result;
  pp_error error;
  fail_allocation(1);
  assert_int_equal(pp_simulate_in(&large, &times, false, &workspace, &result, &error), PP_NO_MEMORY);
  fail_allocation(0);
  assert_int_equal(pp_simulate_in(&large, &times, false, &workspace, &result, &error), PP_OK);
  fail_allocation(1);
  assert_int_equal(pp_simulate_in(&small, &times, true, &workspace, &result, &error), PP_OK);
  assert_int_equal(pp_simulate_in(&large, &times, true, &workspace, &result, &error), PP_NO_MEMORY);   /* intervals need more */
  fail_allocation(1);
  assert_int_equal(pp_simulate_in(&large, &times, false, &workspace, &result, &error), PP_OK);   /* what it had is still there */
  fail_allocation(0);
  pp_workspace_free(&workspace);
  pp_schedule_free(&small);
  pp_schedule_free(&large);
  assert_int_equal(allocations.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(building_survives_each_failing_allocation),
    cmocka_unit_test(reading_survives_each_failing_allocation),
    cmocka_unit_test(simulating_survives_each_failing_allocation),
    cmocka_unit_test(runtimes_survive_each_failing_allocation),
    cmocka_unit_test(periods_survive_each_failing_allocation),
    cmocka_unit_test(a_workspace_allocates_only_to_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

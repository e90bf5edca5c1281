/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts beside their cards (simulate.h), worked out by hand for one rank, in the ideal runtime and in a real one. */
#include "schedules.h"

#include "core/runtime.h"
#include "core/steady.h"

/* Of a rank by itself, with a stage of these seconds whose actions take the host so long: what a step takes, and the card waits for its host. */
static pp_simulation behind_host(pp_schedule_kind kind, int microbatches, const pp_runtime *runtime, pp_stage_times card, pp_host_times host) {
  const pp_hardware hardware = { .contention = 1 };
  pp_schedule schedule = built(request_of(kind, 1, microbatches));
  const pp_times times = { .stage = &card, .host = &host };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, runtime, &hardware, false, &result, &error), PP_OK);
  pp_schedule_free(&schedule);
  return result;
}

static pp_runtime multi_with_input_gradient(void) {
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  runtime.first_skips_input = false;
  return runtime;
}

/*
** By hand, F B F B F B: the host hands F over in 3 and the card takes 2, so that the first F ends at 3, having waited 1; B, of 4, is handed over
** at 4 and ends at 7; the host hands the second F over from 4 to 7, while the card is busy, and is ahead from then on: 3 + 4 + 2 × 6 = 19.
*/
static void a_card_waits_for_its_host_until_it_is_ahead(void **state) {
  (void)state;
  const pp_runtime multi = multi_with_input_gradient();
  const pp_runtime *runtimes[] = { pp_runtime_preset(PP_RUNTIME_IDEAL), &multi };
  const pp_stage_times card = { 2, 2, 2, 4 };
  for (int k = 0; k < 2; k++) {
    pp_simulation result = behind_host(PP_1F1B, 3, runtimes[k], card, (pp_host_times){ .seconds = { 3, 0, 0, 1 } });
    assert_near(result.makespan, 19);
    assert_near(result.host_wait[0], 1);
    assert_near(result.busy[0], 19);
    pp_simulation_free(&result);
    result = behind_host(PP_1F1B, 3, runtimes[k], card, (pp_host_times){ .seconds = { 0, 0, 0, 0 } });
    assert_near(result.makespan, 18);
    assert_near(result.host_wait[0], 0);
    pp_simulation_free(&result);
  }
}

/*
** By hand, F I W F I W with F of 8 on the card and 6 on the host, which waits in it: it comes back when the card has 2 left. I takes 8 and 6, W 7
** and 14. F ends at 8 and the host is back at 6; I 8 to 16, handed over at 12; W begins at 16 and is handed over at 26, 3 later than the card
** were done. The second round begins with both at 26 and ends at 52. Were the host never to wait it would be at 26 too, and so would the step.
** With W of 9 the host is at 21 where the card ends W at 23: then F begins at 23 and ends at 31; a host that waits is back at 29, I 31 to 39, and
** W ends at max(46, 29 + 6 + 9) = 46.
*/
static void a_host_that_waits_for_its_card_is_ahead_by_what_the_card_has_left(void **state) {
  (void)state;
  const pp_runtime multi = multi_with_input_gradient();
  const pp_runtime *runtimes[] = { pp_runtime_preset(PP_RUNTIME_IDEAL), &multi };
  const pp_stage_times card = { 8, 8, 7, 15 };
  for (int k = 0; k < 2; k++) {
    pp_simulation result = behind_host(PP_ZB_H1, 2, runtimes[k], card, (pp_host_times){ .seconds = { 6, 6, 14, 20 }, .forward_waits = true });
    assert_near(result.makespan, 52);
    assert_near(result.host_wait[0], 6);
    pp_simulation_free(&result);
    result = behind_host(PP_ZB_H1, 2, runtimes[k], card, (pp_host_times){ .seconds = { 6, 6, 9, 15 }, .forward_waits = true });
    assert_near(result.makespan, 46);
    assert_near(result.host_wait[0], 0);
    pp_simulation_free(&result);
  }
}

/* Where nothing waits a host is ahead by all that it can be: W of 14 and 7 on the card, F and I of 8 and 1: the card is the slower in all. */
static void a_host_that_never_waits_gains_in_one_action_what_it_loses_in_another(void **state) {
  (void)state;
  const pp_runtime multi = multi_with_input_gradient();
  const pp_runtime *runtimes[] = { pp_runtime_preset(PP_RUNTIME_IDEAL), &multi };
  for (int k = 0; k < 2; k++) {
    pp_simulation result = behind_host(PP_ZB_H1, 4, runtimes[k], (pp_stage_times){ 8, 8, 7, 15 }, (pp_host_times){ .seconds = { 1, 1, 14, 15 } });
    assert_near(result.makespan, 4 * 23);
    pp_simulation_free(&result);
    /* with a wait in F it loses the lead each time: F 8, back at its end but 7; I 8; W is handed over at 8 − 7 + 1 + 14 = 16 and ends at 23 */
    result = behind_host(PP_ZB_H1, 4, runtimes[k], (pp_stage_times){ 8, 1, 1, 2 }, (pp_host_times){ .seconds = { 8, 1, 14, 15 }, .forward_waits = true });
    assert_near(result.makespan, 4 * 23);
    pp_simulation_free(&result);
  }
}

/*
** By hand: F of 8 and 8, in which the host waits; I of 8 and 6 that on an idle card takes 10, for the host begins by walking a graph; W of 7 and 11.
** F ends at 8 with the host, I begins then and ends at 18 instead of 16; the host is done with it at 14 and with W at 25, when the card is too.
** The second round is as long.
*/
static void what_a_host_does_before_it_hands_anything_over_delays_the_card(void **state) {
  (void)state;
  const pp_runtime multi = multi_with_input_gradient();
  const pp_runtime *runtimes[] = { pp_runtime_preset(PP_RUNTIME_IDEAL), &multi };
  for (int k = 0; k < 2; k++) {
    pp_simulation result = behind_host(PP_ZB_H1, 2, runtimes[k], (pp_stage_times){ 8, 8, 7, 15 }, (pp_host_times){
      .seconds = { 8, 6, 11, 17 }, .beyond = { 0, 2, 0, 0 }, .forward_waits = true });
    assert_near(result.makespan, 50);
    assert_near(result.host_wait[0], 4);
    pp_simulation_free(&result);
  }
}

/* Twice as long an idle wait for hosts lets a card cool: what it waits is not counted as work. */
static void a_card_that_waits_for_its_host_stays_cool(void **state) {
  (void)state;
  const pp_hardware warm = { .contention = 1, .heat_slope = 1, .heat_onset = 0.6, .heat_tau = 1e-3 };
  const pp_runtime multi = multi_with_input_gradient();
  pp_schedule schedule = built(request_of(PP_1F1B, 1, 100));
  const pp_stage_times card = { 1, 1, 1, 2 };
  const pp_host_times late = { .seconds = { 10, 0, 0, 20 } };
  pp_times times = { .stage = &card };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, &multi, &warm, false, &result, &error), PP_OK);
  assert_true(fabs(result.makespan / (2 * 300) - 1) < 1e-3);   /* hot all the time */
  pp_simulation_free(&result);
  times.host = &late;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, &multi, &warm, false, &result, &error), PP_OK);
  assert_near(result.makespan, 100 * 30);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/* Periods of a long step are simulated without hosts: that is said, not passed over. */
static void a_step_of_periods_takes_no_hosts(void **state) {
  (void)state;
  const pp_schedule_request whole = request_of(PP_1F1B, 2, 1000);
  const pp_stage_times card[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };
  const pp_host_times host[] = { { .seconds = { 9, 0, 0, 9 } }, { .seconds = { 9, 0, 0, 9 } } };
  pp_schedule_request shorter;
  assert_true(pp_steady_shorten(&whole, &shorter));
  pp_schedule schedule = built(shorter);
  pp_times times = { .stage = card };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_steady_simulate(&schedule, 1000, &times, 1000, &result, NULL, &error), PP_OK);
  assert_near(result.host_wait[1], 0);
  pp_simulation_free(&result);
  times.host = host;
  assert_int_equal(pp_steady_simulate(&schedule, 1000, &times, 1000, &result, NULL, &error), PP_INVALID);
  pp_schedule_free(&schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_card_waits_for_its_host_until_it_is_ahead),
    cmocka_unit_test(a_host_that_waits_for_its_card_is_ahead_by_what_the_card_has_left),
    cmocka_unit_test(a_host_that_never_waits_gains_in_one_action_what_it_loses_in_another),
    cmocka_unit_test(what_a_host_does_before_it_hands_anything_over_delays_the_card),
    cmocka_unit_test(a_card_that_waits_for_its_host_stays_cool),
    cmocka_unit_test(a_step_of_periods_takes_no_hosts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

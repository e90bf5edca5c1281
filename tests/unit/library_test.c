/* SPDX-License-Identifier: Apache-2.0 */
/*
** library_test.c: pipeplan.h as a program in C uses it: statuses, answers, one planner after a failure, two threads with a planner each.
*/
#define _POSIX_C_SOURCE 200809L
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pipeplan.h"

static const char good[] =
  "{\"cluster\":{\"gpus\":64,\"accelerator\":\"H100-SXM\",\"network\":{\"fabric\":\"infiniband\",\"per_gpu\":\"400Gbps\"}},"
  "\"model\":{\"architecture\":\"dense\",\"total\":\"70B\",\"layers\":80},\"training\":{\"tokens\":\"1T\",\"global_batch_size\":512},"
  "\"parallelism\":{\"tensor\":8,\"pipeline\":4}}";
static const char small[] =
  "{\"cluster\":{\"gpus\":64,\"accelerator\":\"H100-SXM\"},\"model\":{\"architecture\":\"dense\",\"total\":\"7B\",\"layers\":32},"
  "\"training\":{\"tokens\":\"1T\"}}";
static const char options[] = "{\"date\":\"2026-12-01\"}";

static void says(const pipeplan *planner, const char *words) {
  if (!strstr(pipeplan_answer(planner), words)) fail_msg("%s is not in %s", words, pipeplan_answer(planner));
}

static void a_planner_plans_refuses_and_goes_on_after_a_mistake(void **state) {
  pipeplan *planner;
  char *first;
  (void)state;
  assert_int_equal(pipeplan_open(options, &planner), PIPEPLAN_OK);
  assert_string_equal(pipeplan_answer(planner), "");
  assert_int_equal(pipeplan_plan(planner, good), PIPEPLAN_OK);
  says(planner, "\"status\":\"planned\"");
  says(planner, "\"$schema\":\"urn:pipeplan:plan:1\"");
  first = strdup(pipeplan_answer(planner));
  assert_int_equal(pipeplan_plan(planner, small), PIPEPLAN_REFUSED);
  says(planner, "\"id\":\"fits_one_gpu\"");
  assert_int_equal(pipeplan_plan(planner, "{\"cluster\":{\"gpu\":1}}"), PIPEPLAN_USAGE);
  says(planner, "{\"error\":{\"message\":\"spec: cluster.gpu is no field of a spec");
  assert_int_equal(pipeplan_plan(planner, "[1]"), PIPEPLAN_USAGE);
  assert_int_equal(pipeplan_plan(planner, ""), PIPEPLAN_USAGE);
  assert_int_equal(pipeplan_plan(planner, good), PIPEPLAN_OK);
  assert_string_equal(pipeplan_answer(planner), first);
  free(first);
  pipeplan_close(planner);
}

static void what_cannot_be_opened_says_why_and_answers_nothing_else(void **state) {
  static const struct { const char *options; int status; const char *words; } cases[] = {
    { "{", PIPEPLAN_USAGE, "options:1:" },
    { "[]", PIPEPLAN_USAGE, "expected an object" },
    { "{\"policy\":{\"file\":\"x\"}}", PIPEPLAN_USAGE, "expected a path" },
    { "{\"polici\":\"x\"}", PIPEPLAN_USAGE, "no option 'polici'" },
    { "{\"set\":null}", PIPEPLAN_USAGE, "set is null: expected parameters" },
    { "{\"date\":\"tomorrow\"}", PIPEPLAN_USAGE, "date is tomorrow: expected a date such as" },
    { "{\"frontier\":true}", PIPEPLAN_USAGE, "no option 'frontier'" },
    { "{\"in_force\":1}", PIPEPLAN_USAGE, "expected true or false" },
    { "{\"set\":{\"tie_fraktion\":1}}", PIPEPLAN_UNLOADABLE, "tie_fraction" },
    { "{\"policy\":[\"/nonexistent.lua\"]}", PIPEPLAN_UNLOADABLE, "/nonexistent.lua: cannot be read" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pipeplan *planner;
    assert_int_equal(pipeplan_open(cases[i].options, &planner), cases[i].status);
    says(planner, cases[i].words);
    assert_int_equal(pipeplan_plan(planner, good), cases[i].status);
    says(planner, cases[i].words);
    pipeplan_close(planner);
  }
  assert_int_equal(pipeplan_plan(NULL, good), PIPEPLAN_OVER_BUDGET);  /* no memory for a planner */
  says(NULL, "out of memory");
  pipeplan_close(NULL);
  assert_int_equal(pipeplan_open(NULL, NULL), PIPEPLAN_USAGE);   /* nowhere to put one */
  pipeplan *planner;
  assert_int_equal(pipeplan_open(NULL, &planner), PIPEPLAN_OK);
  assert_int_equal(pipeplan_plan(planner, NULL), PIPEPLAN_USAGE);
  says(planner, "the text ends");
  pipeplan_close(planner);
  assert_string_equal(pipeplan_version(), PP_VERSION);
}

static void *plan_some(void *answer) {
  pipeplan *planner;
  pipeplan_open(options, &planner);
  for (int i = 0; i < 3; i++) pipeplan_plan(planner, good);
  *(char **)answer = strdup(pipeplan_answer(planner));
  pipeplan_close(planner);
  return NULL;
}

static void two_threads_plan_at_once_and_alike(void **state) {
  pthread_t threads[2];
  char *answers[2];
  (void)state;
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, plan_some, &answers[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_non_null(strstr(answers[0], "\"status\":\"planned\""));
  assert_string_equal(answers[0], answers[1]);
  for (int i = 0; i < 2; i++) free(answers[i]);
}

/* musl gives threads 128 KiB. */
static void a_thread_of_little_stack_plans_the_same(void **state) {
  pthread_attr_t attributes;
  pthread_t thread;
  char *answers[2];
  (void)state;
  plan_some(&answers[0]);
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  assert_int_equal(pthread_create(&thread, &attributes, plan_some, &answers[1]), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  assert_non_null(strstr(answers[0], "\"status\":\"planned\""));
  assert_string_equal(answers[0], answers[1]);
  for (int i = 0; i < 2; i++) free(answers[i]);
}

/* A locale that writes 1,5, of the system or made for the test; false where there is none and none can be made. */
static bool write_commas(void) {
  static char place[] = "/tmp/pipeplan-locale-XXXXXX";
  char command[128];
  if (setlocale(LC_ALL, "de_DE.UTF-8")) return true;
  if (!mkdtemp(place)) return false;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", place);
  const bool made = system(command) == 0;
  setenv("LOCPATH", place, 1);
  const bool set = made && setlocale(LC_ALL, "de_DE.UTF-8");
  snprintf(command, sizeof command, "rm -r %s", place);
  return system(command) == 0 && set;
}

static void a_locale_of_commas_changes_nothing(void **state) {
  char *answers[2], written[8];
  (void)state;
  plan_some(&answers[0]);
  if (!write_commas()) {
    free(answers[0]);
    puts("skipped: there is no locale de_DE.UTF-8, and localedef makes none (Debian: locales)");
    skip();
  }
  plan_some(&answers[1]);
  assert_string_equal(answers[0], answers[1]);
  snprintf(written, sizeof written, "%.1f", 1.5);
  assert_string_equal(written, "1,5");   /* the caller's locale is as it was */
  setlocale(LC_ALL, "C");
  for (int i = 0; i < 2; i++) free(answers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_planner_plans_refuses_and_goes_on_after_a_mistake),
    cmocka_unit_test(what_cannot_be_opened_says_why_and_answers_nothing_else),
    cmocka_unit_test(two_threads_plan_at_once_and_alike),
    cmocka_unit_test(a_thread_of_little_stack_plans_the_same),
    cmocka_unit_test(a_locale_of_commas_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

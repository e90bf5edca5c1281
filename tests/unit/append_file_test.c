/* SPDX-License-Identifier: Apache-2.0 */
/* append_file.c: lines of several processes stay whole, and what is no regular file is refused without waiting for it. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/append_file.h"

enum { LINE = 10000, LINES = 60, WRITERS = 4 };   /* a line is longer than PIPE_BUF and a page */

static char place[] = "/tmp/pipeplan-append-XXXXXX";

static int enter_place(void **state) {
  (void)state;
  return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave_place(void **state) {
  (void)state;
  unlink("f");
  unlink("fifo");
  return chdir("/") == 0 && rmdir(place) == 0 ? 0 : -1;
}

static int remove_file(void **state) {
  (void)state;
  unlink("f");
  return 0;
}

static void assert_refused(const char *path, const char *text, const char *why) {
  pp_error error;
  assert_int_equal(pp_append(path, text, strlen(text), false, &error), PP_INVALID);
  assert_string_equal(error.message, why);
}

static void assert_text(const char *expected) {
  char text[64] = "";
  FILE *file = fopen("f", "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, expected);
}

static void a_file_is_made_and_grows_at_its_end(void **state) {
  pp_error error;
  (void)state;
  assert_int_equal(pp_append("f", "", 0, false, &error), PP_OK);
  assert_text("");
  assert_int_equal(pp_append("f", "one\n", 4, true, &error), PP_OK);
  assert_int_equal(pp_append("f", "two\n", 4, false, &error), PP_OK);
  assert_text("one\ntwo\n");
}

static void a_line_begins_behind_one_that_is_torn(void **state) {
  FILE *file = fopen("f", "w");
  (void)state;
  assert_non_null(file);
  fputs("{\"torn\": ", file);
  fclose(file);
  assert_int_equal(pp_append("f", "", 0, false, NULL), PP_OK);
  assert_text("{\"torn\": ");
  assert_int_equal(pp_append("f", "one\n", 4, false, NULL), PP_OK);
  assert_int_equal(pp_append("f", "two\n", 4, false, NULL), PP_OK);
  assert_text("{\"torn\": \none\ntwo\n");
}

static void what_is_no_regular_file_is_refused_at_once(void **state) {
  (void)state;
  assert_int_equal(mkfifo("fifo", 0600), 0);
  assert_refused("fifo", "x\n", "it is no regular file");   /* nobody reads it: waiting would be for ever */
  assert_refused("/dev/null", "x\n", "it is no regular file");
  assert_refused(".", "x\n", "Is a directory");
  assert_refused("nowhere/f", "x\n", "No such file or directory");
  assert_refused("", "x\n", "No such file or directory");
}

static _Noreturn void append_lines(char letter) {
  static char line[LINE];
  pp_error error;
  memset(line, letter, LINE);
  line[LINE - 1] = '\n';
  for (int i = 0; i < LINES; i++)
    if (pp_append("f", line, LINE, false, &error) != PP_OK) _exit(1);
  _exit(0);
}

static void lines_of_several_processes_stay_whole(void **state) {
  static char line[LINE + 2];
  int of[WRITERS] = { 0 }, status;
  (void)state;
  for (int i = 0; i < WRITERS; i++)
    if (fork() == 0) append_lines((char)('a' + i));
  for (int i = 0; i < WRITERS; i++) {
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
  }
  FILE *file = fopen("f", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    assert_int_equal(strlen(line), LINE);
    assert_int_equal(strspn(line, (char[]){ line[0], '\0' }), LINE - 1);
    of[line[0] - 'a']++;
  }
  fclose(file);
  for (int i = 0; i < WRITERS; i++) assert_int_equal(of[i], LINES);
}

static void a_line_that_does_not_fit_is_said_to_be_cut(void **state) {
  struct rlimit usual, small;
  pp_error error;
  (void)state;
  assert_int_equal(pp_append("f", "12345\n", 6, false, &error), PP_OK);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
  small = usual;
  small.rlim_cur = 8;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const pp_status part = pp_append("f", "6789\n", 5, false, &error);
  const pp_status none = pp_append("f", "x\n", 2, false, NULL);
  setrlimit(RLIMIT_FSIZE, &usual);
  assert_int_equal(part, PP_INVALID);
  assert_int_equal(none, PP_INVALID);
  assert_string_equal(error.message, "only a part of the line fits: no space is left there");
  assert_text("12345\n67");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(a_file_is_made_and_grows_at_its_end, remove_file),
    cmocka_unit_test_teardown(a_line_begins_behind_one_that_is_torn, remove_file),
    cmocka_unit_test_teardown(what_is_no_regular_file_is_refused_at_once, remove_file),
    cmocka_unit_test_teardown(lines_of_several_processes_stay_whole, remove_file),
    cmocka_unit_test_teardown(a_line_that_does_not_fit_is_said_to_be_cut, remove_file),
  };
  return cmocka_run_group_tests(tests, enter_place, leave_place);
}

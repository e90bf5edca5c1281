/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.c and leftovers.c where a process is ended by a signal: what is not whole yet is gone, the old file is as it was. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/leftovers.h"
#include "host/output_file.h"

static char place[] = "/tmp/pipeplan-output-XXXXXX";

static void write_old_file(void) {
  FILE *file = fopen("f", "w");
  assert_non_null(file);
  assert_true(fputs("old", file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static int enter_place(void **state) {
  (void)state;
  if (!mkdtemp(place) || chdir(place) != 0) return -1;
  write_old_file();
  return 0;
}

static int leave_place(void **state) {
  (void)state;
  unlink("f");
  return chdir("/") == 0 && rmdir(place) == 0 ? 0 : -1;
}

/* There is nothing but f in the place, and this is in it. */
static void assert_only_file(const char *expected) {
  char text[64] = "";
  FILE *file = fopen("f", "r");
  struct dirent *entry;
  DIR *directory = opendir(".");
  assert_non_null(file);
  assert_non_null(directory);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, expected);
  while ((entry = readdir(directory)) != NULL)
    if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2) assert_string_equal(entry->d_name, "f");
  closedir(directory);
}

/* In a child: the assertions of cmocka would go on in the wrong process. */
static void must(bool condition) {
  if (!condition) _exit(99);
}

static void begin_file(pp_output_file *file) {
  pp_error error;
  must(pp_output_open(file, "f", &error) == PP_OK && file->temporary[0] != '\0');
  must(pp_output_write(file, "new", 3, &error) == PP_OK && access(file->temporary, F_OK) == 0);
}

static int end_of(pid_t child) {
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void a_signal_removes_the_temporary_file_and_ends_the_process_as_ever(void **state) {
  static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ };
  (void)state;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    pid_t child = fork();
    int status;
    if (child == 0) {
      static pp_output_file file;
      setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
      signal(signals[i], SIG_DFL);   /* whoever started the tests, such as nohup, may ignore it */
      begin_file(&file);
      raise(signals[i]);
      _exit(98);
    }
    status = end_of(child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signals[i]);
    assert_only_file("old");
  }
}

static void a_signal_that_is_ignored_stays_so(void **state) {
  pid_t child = fork();
  (void)state;
  if (child == 0) {
    static pp_output_file file;
    pp_error error;
    signal(SIGHUP, SIG_IGN);
    begin_file(&file);
    raise(SIGHUP);
    must(pp_output_finish(&file, &error) == PP_OK);
    _exit(0);
  }
  assert_int_equal(end_of(child), 0);
  assert_only_file("new");
  write_old_file();
}

static void what_is_discarded_leaves_nothing(void **state) {
  static pp_output_file file;
  (void)state;
  begin_file(&file);
  pp_output_discard(&file);
  pp_output_discard(&file);
  assert_only_file("old");
}

/* The child that a signal is to end waits for something that never comes; its own end shows on the pipe that it holds. */
static void a_signal_ends_the_children(void **state) {
  int alive[2], ready[2], status;
  char byte;
  pid_t child;
  (void)state;
  assert_int_equal(pipe(alive), 0);
  assert_int_equal(pipe(ready), 0);
  child = fork();
  if (child == 0) {
    sigset_t before;
    pid_t grandchild;
    pp_leftovers_hold(&before);
    grandchild = fork();
    if (grandchild > 0) pp_leftovers_child(grandchild);
    pp_leftovers_release(&before);
    if (grandchild == 0) {
      must(write(ready[1], "", 1) == 1);
      for (;;) pause();
    }
    close(alive[1]);
    for (;;) pause();
  }
  close(alive[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  assert_int_equal(kill(child, SIGTERM), 0);
  assert_int_equal(read(alive[0], &byte, 1), 0);  /* until nobody holds the other end */
  status = end_of(child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void a_file_is_continued_after_what_is_kept(void **state) {
  static pp_output_file file;
  pp_error error;
  (void)state;
  assert_int_equal(pp_output_continue(&file, "f", 2, &error), PP_OK);
  pp_output_discard(&file);
  assert_only_file("old");
  assert_int_equal(pp_output_continue(&file, "f", 2, &error), PP_OK);
  assert_only_file("old");
  assert_int_equal(pp_output_finish(&file, &error), PP_OK);
  assert_only_file("ol");
  write_old_file();
  assert_int_equal(pp_output_continue(&file, "f", 2, &error), PP_OK);
  assert_int_equal(pp_output_write(&file, "new", 3, &error), PP_OK);
  assert_int_equal(pp_output_flush(&file, &error), PP_OK);
  assert_only_file("olnew");
  assert_int_equal(pp_output_finish(&file, &error), PP_OK);
  write_old_file();
}

static void a_file_that_is_continued_has_one_writer(void **state) {
  static pp_output_file file, second;
  pp_error error;
  (void)state;
  assert_int_equal(pp_output_continue(&file, "f", 3, &error), PP_OK);
  assert_int_equal(pp_output_continue(&second, "f", 0, &error), PP_INVALID);
  assert_string_equal(error.message, "another process is writing it");
  pp_output_discard(&file);
  assert_only_file("old");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_signal_removes_the_temporary_file_and_ends_the_process_as_ever),
    cmocka_unit_test(a_signal_that_is_ignored_stays_so),
    cmocka_unit_test(what_is_discarded_leaves_nothing),
    cmocka_unit_test(a_signal_ends_the_children),
    cmocka_unit_test(a_file_is_continued_after_what_is_kept),
    cmocka_unit_test(a_file_that_is_continued_has_one_writer),
  };
  return cmocka_run_group_tests(tests, enter_place, leave_place);
}

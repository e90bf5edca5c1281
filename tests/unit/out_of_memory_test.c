/* SPDX-License-Identifier: Apache-2.0 */
/*
** Commands, from an empty Lua state to the text that they print, in a process whose memory runs out at the N-th allocation for N = 1, 2, 3, …: each
** ends in that text or in a Lua error that says it was memory, and gives back all it took. Lua's allocations, those of the policy's
** state and those of the C core count alike.
**
** Under ctest a fixed share of all N is tried. All of them: `out_of_memory_test --every [COMMAND]`, from the source tree; that takes an hour each of
** the longest two. `--every COMMAND FIRST` goes on behind a sweep that was ended, at the joined run FIRST of APART.
*/
#define _DEFAULT_SOURCE   /* mkstemp, fork under a strict standard */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "allocations.h"
#include "lua/stdlib.h"

#define MOST_ARGUMENTS 16

static char plan_file[] = "/tmp/pipeplan-XXXXXX";

typedef struct {
  const char *name, *module;
  const char *arguments[MOST_ARGUMENTS];
  char *expected;         /* what it prints, with __real_malloc */
} command;

static command commands[] = {
  { .name = "plan", .module = "pipeplan.cli.plan",
    .arguments = { "tests/fixtures/small_moe.json", "--policy", "examples/sites/aws-p5.lua", "--policy", "tests/fixtures/function_rule.lua",
                   "--date", "2026-11-27", "--format", "json" } },
  { .name = "explain", .module = "pipeplan.cli.plan",
    .arguments = { "tests/fixtures/small_moe.json", "--policy", "tests/fixtures/function_rule.lua", "--date", "2026-11-27", "--explain" } },
  { .name = "simulate", .module = "pipeplan.cli.simulate",
    .arguments = { "zb_auto", "--ranks", "4", "--microbatches", "8", "--times", "1,1,1", "--runtime", "torch-multi", "--format", "json" } },
  { .name = "monitor", .module = "pipeplan.cli.monitor",
    .arguments = { plan_file, "examples/monitor/straggler.log", "examples/monitor/dmon.txt", "--format", "json" } },
  { .name = "check", .module = "pipeplan.cli.policy",
    .arguments = { "check", "--policy", "tests/fixtures/function_rule.lua", "--date", "2026-11-27", "--no-witnesses", "--format", "json" } },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

enum { TEXT, OUT_OF_MEMORY, WRONG, GOES_ON };   /* how a run in a process of its own ends: its exit status */

static size_t failed_at;               /* the allocation that failed; 0: none */

/* -- one run -------------------------------------------------------------------------------------------------------------------------- */

static void *allocate(void *unused, void *pointer, size_t old_size, size_t size) {
  (void)unused;
  (void)old_size;
  if (size > 0) return realloc(pointer, size);
  free(pointer);
  return NULL;
}

/* The text on top, which a command may hand out piece by piece. */
static void join_pieces(lua_State *L) {
  luaL_Buffer text;
  int function = lua_gettop(L);
  if (!lua_isfunction(L, function)) return;
  luaL_buffinit(L, &text);
  for (;;) {
    lua_pushvalue(L, function);
    lua_call(L, 0, 1);
    if (lua_isnil(L, -1)) break;
    luaL_addvalue(&text);
  }
  lua_pop(L, 1);
  luaL_pushresult(&text);
}

/* Runs protected: (command) → its text. */
static int run_command(lua_State *L) {
  const command *which = lua_touserdata(L, 1);
  luaL_openlibs(L);
  pp_open_stdlib(L, NULL);
  lua_getglobal(L, "require");
  lua_pushstring(L, which->module);
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "run");
  lua_newtable(L);
  for (int i = 0; which->arguments[i]; i++) {
    lua_pushstring(L, which->arguments[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_call(L, 1, 1);
  join_pieces(L);
  return 1;
}

static char *kept(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = __real_malloc(size);
  assert_non_null(copy);
  memcpy(copy, text, size);
  return copy;
}

/* Says what is wrong with the run in which allocation `at` failed, and ends the process: it is a child, or the test's own. */
__attribute__((format(printf, 2, 3), noreturn)) static void wrong(const command *which, const char *format, ...) {
  va_list arguments;
  fprintf(stderr, "%s, allocation %zu: ", which->name, failed_at);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  fflush(stderr);
  _exit(WRONG);
}

/* Runs a command. In a child that `branch` made it ends the process. True when it ended in its text; otherwise the error says that it was memory. */
static bool run(command *which) {
  bool good = false;
  lua_State *L = lua_newstate(allocate, NULL);
  if (L) {
    lua_pushcfunction(L, run_command);   /* needs no memory: the stack is there */
    lua_pushlightuserdata(L, which);
    good = lua_pcall(L, 1, 1, 0) == LUA_OK;
    fail_allocation(0);
    allocations.before = NULL;
    const char *text = luaL_tolstring(L, -1, NULL);
    if (good && !which->expected) which->expected = kept(text);
    if (good && strcmp(text, which->expected) != 0) wrong(which, "another text");
    if (!good && !strstr(text, "memory")) wrong(which, "%s", text);
    lua_close(L);
  }
  allocations.before = NULL;
  fail_allocation(0);
  if (allocations.live != 0) wrong(which, "%zu blocks are left", allocations.live);
  if (failed_at > 0) _exit(good ? TEXT : OUT_OF_MEMORY);
  return good;
}

/* -- all N, or some ------------------------------------------------------------------------------------------------------------------- */

/*
** Memory that runs out for good: one run of the command, which branches at each N of the sweep: a child goes on in which the N-th allocation and
** all behind it fail. So what comes before N is computed once, and a child costs only what unwinds.
**
** One allocation that fails: Lua collects its garbage and asks again, so that most runs go on to their text, and an N would cost a run. So
** they are joined: a run itself fails one allocation in APART, where a child in which it fails says first that the run goes on from there. All N
** are as many such runs as APART, each begun one later.
**
** A share of all N: all of the first EACH, then steps of one in STEP, in the joined run of one in STEP_ONCE, for what is made once is made early.
*/
enum { EACH = 48, STEP = 8, STEP_ONCE = 24, APART = 256, FURTHER = 2048 /* allocations behind which a run goes on */ };

static bool every;
static size_t first_run = 1;   /* of the joined runs */
static struct {
  const char *name;
  size_t next;                                   /* N at which it branches */
  size_t failed, to_text, gone_on;               /* of the children: all, those that ended in the text, those whose run went on */
} sweep;

/* An open file's place is shared with the parent, which has yet to read it: the child gets files of its own, at the same places. */
static void reopen_files(void) {
  for (int file = 3; file < 64; file++) {
    char path[32];
    const off_t place = lseek(file, 0, SEEK_CUR);
    if (place < 0) continue;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const int own = open(path, O_RDONLY | O_CLOEXEC);
    if (own < 0 || lseek(own, place, SEEK_SET) != place || dup2(own, file) != file || close(own) != 0) {
      fprintf(stderr, "file %d cannot be opened again\n", file);
      _exit(WRONG);
    }
  }
}

static void end_where_it_goes_on(void) {
  if (allocations.asked >= failed_at + FURTHER) _exit(GOES_ON);
}

/* True in the child, in which allocation `asked` is to fail. In the parent the child has ended: `ended` is how. */
static bool branch(bool for_good, int *ended) {
  int status;
  const pid_t child = fork();
  if (child == 0) {
    reopen_files();
    allocations.before = for_good ? NULL : end_where_it_goes_on;
    allocations.first = failed_at = allocations.asked;
    allocations.for_good = for_good;
    return true;
  }
  if (child < 0 || waitpid(child, &status, 0) != child) wrong(&commands[0], "no child");
  if (!WIFEXITED(status) || WEXITSTATUS(status) == WRONG || WEXITSTATUS(status) > GOES_ON) {
    fprintf(stderr, "%s: allocation %zu failed %s, and the command ended with wait status %d\n", sweep.name, allocations.asked,
            for_good ? "for good" : "once", status);
    _exit(WRONG);
  }
  *ended = WEXITSTATUS(status);
  sweep.failed++;
  sweep.to_text += *ended == TEXT;
  sweep.gone_on += *ended == GOES_ON;
  return false;
}

static void fail_for_good_where_due(void) {
  int ended;
  if (allocations.asked != sweep.next || branch(true, &ended)) return;
  sweep.next += every || sweep.next < EACH ? 1 : sweep.next / STEP;
}

static void fail_once_where_due(void) {
  int ended;
  if (allocations.asked != sweep.next || branch(false, &ended)) return;
  sweep.next += every ? APART : sweep.next < EACH ? 1 : sweep.next / STEP_ONCE;
  if (ended == OUT_OF_MEMORY) return;
  allocations.first = allocations.asked;   /* fails here too */
  sweep.next++;                            /* what is asked for again */
}

/* A run that branches by `where_due`, at N = first at first. It ends in its text, for it fails only what a child went on from. */
static void run_branching(command *which, void (*where_due)(void), size_t first) {
  sweep.next = first;
  fail_allocation(0);
  allocations.before = where_due;
  if (!run(which)) wrong(which, "a child went on from each allocation that failed, the run from %zu did not", first);
}

/* Memory that runs out for good ends in an error; one failed allocation in the text or an error. What the engine asks for itself is not asked for
** again: that is up to half of what is tried, for Lua's small blocks come from a pool. */
static void survives(command *which) {
  if (!which->expected) assert_true(run(which));
  memset(&sweep, 0, sizeof sweep);
  sweep.name = which->name;
  if (first_run == 1) {
    run_branching(which, fail_for_good_where_due, 1);
    assert_true(sweep.failed > 80);
    assert_int_equal(sweep.to_text + sweep.gone_on, 0);
  }
  const size_t for_good = sweep.failed;
  for (size_t first = first_run; first <= (every ? APART : 1); first++) {
    run_branching(which, fail_once_where_due, first);
    if (every && first % 16 == 0) fprintf(stderr, "# %s: %zu of %d joined runs\n", which->name, first, APART);
  }
  const size_t once = sweep.failed - for_good;
  assert_true(3 * (sweep.to_text + sweep.gone_on) > once);
  printf("# %s: %zu allocations failed for good, %zu once%s\n", which->name, for_good, once, every ? "" : "; --every tries all");
  fflush(stdout);
}

static void plan_survives_memory_that_runs_out(void **state) { (void)state; survives(&commands[0]); }
static void explain_survives_memory_that_runs_out(void **state) { (void)state; survives(&commands[1]); }
static void simulate_survives_memory_that_runs_out(void **state) { (void)state; survives(&commands[2]); }

static void monitor_survives_memory_that_runs_out(void **state) {
  (void)state;
  const int file = mkstemp(plan_file);
  assert_true(file >= 0);
  if (!commands[0].expected) assert_true(run(&commands[0]));
  const char *plan = commands[0].expected;
  assert_int_equal(write(file, plan, strlen(plan)), (ssize_t)strlen(plan));
  close(file);
  survives(&commands[3]);
  remove(plan_file);
}

static void check_survives_memory_that_runs_out(void **state) { (void)state; survives(&commands[4]); }

int main(int argc, char **argv) {
  const struct CMUnitTest tests[COMMANDS] = {
    cmocka_unit_test(plan_survives_memory_that_runs_out),
    cmocka_unit_test(explain_survives_memory_that_runs_out),
    cmocka_unit_test(simulate_survives_memory_that_runs_out),
    cmocka_unit_test(monitor_survives_memory_that_runs_out),
    cmocka_unit_test(check_survives_memory_that_runs_out),
  };
  every = argc > 1 && strcmp(argv[1], "--every") == 0;
  if (every && argc > 3) first_run = (size_t)strtoul(argv[3], NULL, 10);
  assert_true(first_run >= 1 && first_run <= APART);
  for (int i = 0; every && argc > 2 && i < COMMANDS; i++) {
    const struct CMUnitTest one[] = { tests[i] };
    if (strcmp(argv[2], commands[i].name) == 0) return cmocka_run_group_tests(one, NULL, NULL);
  }
  const int status = cmocka_run_group_tests(tests, NULL, NULL);
  for (int i = 0; i < COMMANDS; i++) __real_free(commands[i].expected);
  return status;
}

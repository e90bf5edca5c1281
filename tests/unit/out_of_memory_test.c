/*
** Commands, from an empty Lua state to the text that they print, in a process whose memory runs out at the N-th allocation for N = 1, 2, 3, …: each
** ends in that text or in a Lua error that says it was memory, and gives back all it took. Lua's allocations, those of the policy's
** state and those of the C core count alike.
**
** Under ctest a fixed share of all N is tried. All of them: `out_of_memory_test --every [COMMAND]`, from the source tree.
*/
#define _DEFAULT_SOURCE   /* mkstemp under a strict standard */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* True when it ended in its text; otherwise the error says that it was memory. */
static bool run(command *which, size_t at, bool ever_after) {
  bool good = false;
  fail_allocation(at);
  allocations.for_good = ever_after;
  lua_State *L = lua_newstate(allocate, NULL);
  if (L) {
    lua_pushcfunction(L, run_command);   /* needs no memory: the stack is there */
    lua_pushlightuserdata(L, which);
    good = lua_pcall(L, 1, 1, 0) == LUA_OK;
    allocations.first = 0;
    const char *text = luaL_tolstring(L, -1, NULL);
    if (good && !which->expected) which->expected = kept(text);
    if (good && strcmp(text, which->expected) != 0) fail_msg("%s: another text when allocation %zu failed", which->name, at);
    if (!good && !strstr(text, "memory")) fail_msg("%s, allocation %zu: %s", which->name, at, text);
    lua_close(L);
  }
  allocations.first = 0;
  if (allocations.live != 0) fail_msg("%s: %zu blocks are left when allocation %zu failed", which->name, allocations.live, at);
  return good;
}

/* -- all N, or some ------------------------------------------------------------------------------------------------------------------- */

static bool every;

/*
** All of the first `each`, then steps of one in `step`: what is made once is made early. Each N is a run of the command, so that all of them take
** minutes to hours; a sanitizer makes each run slow.
*/
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 40, STEP = 12, CI_EACH = 60, CI_STEP = 20 };
#else
enum { EACH = 60, STEP = 16, CI_EACH = 150, CI_STEP = 50 };
#endif
static size_t next(size_t n) {
  const bool thorough = getenv("CI") != NULL;
  const size_t each = thorough ? CI_EACH : EACH, step = thorough ? CI_STEP : STEP;
  return n + (every || n < each ? 1 : n / step);
}

/* Memory that runs out for good ends in an error; one failed allocation in the text or an error, for Lua collects its garbage and asks again. */
static void sweep(command *which) {
  assert_true(run(which, 0, false));
  const size_t all = allocations.asked;
  assert_true(all > 1000);
  /* Lua seeds its hashes anew in each state, so the number of allocations differs a little from run to run. */
  const size_t most = all + all / 50, least = all - all / 50;
  size_t runs = 0, good = 0, single = 0;
  for (size_t n = 1; n <= least; n = next(n), runs++) assert_false(run(which, n, true));
  assert_true(run(which, most, true));
  for (size_t n = 1; n <= all; n = every ? n + 1 : next(n + 2), single++) good += run(which, n, false);
  assert_true(good > single / 2);
  printf("# %s: %zu of %zu allocations failed for good, %zu once%s\n", which->name, runs, all, single,
         every ? "" : "; each is a run of the command, and all of them take from minutes to hours: --every");
  fflush(stdout);
}

static void plan_survives_memory_that_runs_out(void **state) { (void)state; sweep(&commands[0]); }
static void explain_survives_memory_that_runs_out(void **state) { (void)state; sweep(&commands[1]); }
static void simulate_survives_memory_that_runs_out(void **state) { (void)state; sweep(&commands[2]); }

static void monitor_survives_memory_that_runs_out(void **state) {
  (void)state;
  const int file = mkstemp(plan_file);
  assert_true(file >= 0);
  if (!commands[0].expected) assert_true(run(&commands[0], 0, false));
  const char *plan = commands[0].expected;
  assert_int_equal(write(file, plan, strlen(plan)), (ssize_t)strlen(plan));
  close(file);
  sweep(&commands[3]);
  remove(plan_file);
}

static void check_survives_memory_that_runs_out(void **state) { (void)state; sweep(&commands[4]); }

int main(int argc, char **argv) {
  const struct CMUnitTest tests[COMMANDS] = {
    cmocka_unit_test(plan_survives_memory_that_runs_out),
    cmocka_unit_test(explain_survives_memory_that_runs_out),
    cmocka_unit_test(simulate_survives_memory_that_runs_out),
    cmocka_unit_test(monitor_survives_memory_that_runs_out),
    cmocka_unit_test(check_survives_memory_that_runs_out),
  };
  every = argc > 1 && strcmp(argv[1], "--every") == 0;
  for (int i = 0; every && argc > 2 && i < COMMANDS; i++) {
    const struct CMUnitTest one[] = { tests[i] };
    if (strcmp(argv[2], commands[i].name) == 0) return cmocka_run_group_tests(one, NULL, NULL);
  }
  const int status = cmocka_run_group_tests(tests, NULL, NULL);
  for (int i = 0; i < COMMANDS; i++) __real_free(commands[i].expected);
  return status;
}

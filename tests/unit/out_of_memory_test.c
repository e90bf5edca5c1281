/*
** A whole plan, from an empty Lua state to its JSON, in a process whose memory runs out at the N-th allocation for N = 1, 2, 3, …: each
** ends in the plan or in a Lua error, and gives back all it took. Lua's allocations, those of the policy's state and those of the C core
** count alike.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "allocations.h"
#include "host/stdlib.h"

static void *allocate(void *unused, void *pointer, size_t old_size, size_t size) {
  (void)unused;
  (void)old_size;
  if (size > 0) return realloc(pointer, size);
  free(pointer);
  return NULL;
}

/* Runs protected: → the plan as text. */
static int plan(lua_State *L) {
  static const char *const arguments[] = {
    "examples/specs/mixtral-8x7b.json", "--policy", "examples/sites/aws-p5.lua", "--policy", "tests/fixtures/function_rule.lua",
    "--date", "2026-11-27", "--format", "json",
  };
  luaL_openlibs(L);
  pp_open_stdlib(L, NULL);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "pipeplan.cli.plan");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "run");
  lua_newtable(L);
  for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
    lua_pushstring(L, arguments[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_call(L, 1, 1);
  return 1;
}

static char *expected;  /* the plan, with __real_malloc */

static void keep(const char *text) {
  size_t size = strlen(text) + 1;
  expected = __real_malloc(size);
  assert_non_null(expected);
  memcpy(expected, text, size);
}

/* One run. True when it ended in the plan; otherwise the error says that it was memory. */
static bool run(size_t at, bool ever_after) {
  bool planned = false;
  fail_allocation(at);
  allocations.for_good = ever_after;
  lua_State *L = lua_newstate(allocate, NULL);
  if (L) {
    lua_pushcfunction(L, plan);   /* needs no memory: the stack is there */
    planned = lua_pcall(L, 0, 1, 0) == LUA_OK;
    allocations.first = 0;
    const char *text = luaL_tolstring(L, -1, NULL);
    if (planned && !expected) keep(text);
    if (planned) assert_string_equal(text, expected);
    else assert_non_null(strstr(text, "memory"));
    lua_close(L);
  }
  allocations.first = 0;
  assert_int_equal(allocations.live, 0);
  return planned;
}

/* Where CI is set every allocation of the first few hundred, then steps of a hundredth; otherwise, and where a sanitizer makes each run slow,
** fewer. */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 60, STEP = 20 };
#else
enum { EACH = 300, STEP = 100 };
#endif
static size_t next(size_t n) {
  const bool thorough = getenv("CI") != NULL;
  const size_t each = thorough ? EACH : 60, step = thorough ? STEP : 20;
  return n + (n < each ? 1 : n / step);
}

static void memory_that_runs_out_ends_in_an_error(void **state) {
  (void)state;
  assert_true(run(0, false));
  size_t all = allocations.asked;
  assert_true(all > 10000);
  /* Lua seeds its hashes anew in each state, so the number of allocations differs a little from run to run. */
  size_t most = all + all / 50, least = all - all / 50;
  for (size_t n = 1; n <= least; n = next(n)) assert_false(run(n, true));
  assert_true(run(most, true));
}

/* Lua collects its garbage and asks again; the core does not. */
static void one_failed_allocation_changes_no_plan(void **state) {
  (void)state;
  assert_true(run(0, false));
  size_t all = allocations.asked, planned = 0, runs = 0;
  for (size_t n = 1; n <= all; n = next(n + 2), runs++) planned += run(n, false);
  assert_true(planned > runs / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_that_runs_out_ends_in_an_error),
    cmocka_unit_test(one_failed_allocation_changes_no_plan),
  };
  int status = cmocka_run_group_tests(tests, NULL, NULL);
  __real_free(expected);
  return status;
}

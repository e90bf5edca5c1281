/* SPDX-License-Identifier: Apache-2.0 */
/* embed_names.c: bytecode without names runs as before, and says file and line of what goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <lauxlib.h>
#include <lualib.h>

#include "../../engine/embed_names.h"

/* Each kind of constant, a long string, varargs, upvalues of upvalues, a line far from the one before, and two mistakes. */
static const char program[] =
  "local one, half, no, yes, none = 1, 0.5, false, true, nil\n"
  "local long = 'a string that is longer than the forty bytes up to which Lua keeps only one of each'\n"
  "local function counter(...)\n"
  "  local count, given = select('#', ...), { ... }\n"
  "  return function(step)\n"
  "    count = count + (step or one) * half * 2\n"
  "    return function() return count, given[1], no, yes, none, #long, math.maxinteger, 1e300 end\n"
  "  end\n"
  "end\n"
  "local function wrong() local missing\n"
  "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
  "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
  "  return missing.field end\n"
  "local good, message = pcall(wrong)\n"
  "local debugged = debug.getinfo(wrong, 'S')\n"
  "return message, debugged.linedefined, debugged.lastlinedefined, debug.getlocal(wrong, 1), counter('x', 'y')(3)()\n";

static int line_of(const char *text) {
  int line = 1;
  for (const char *at = program; at < strstr(program, text); at++) line += *at == '\n';
  return line;
}

typedef struct {
  char *bytes;
  size_t size;
} dump;

static int add(lua_State *L, const void *bytes, size_t size, void *data) {
  dump *out = data;
  (void)L;
  out->bytes = realloc(out->bytes, out->size + size);
  memcpy(out->bytes + out->size, bytes, size);
  out->size += size;
  return 0;
}

static dump dumped(lua_State *L) {
  dump out = { NULL, 0 };
  assert_int_equal(luaL_loadbufferx(L, program, sizeof program - 1, "@some/file.lua", "t"), LUA_OK);
  lua_dump(L, add, &out, 0);
  return out;
}

/* Runs it, and leaves what it returns. */
static void run(lua_State *L, const char *code, size_t size) {
  lua_settop(L, 0);
  assert_int_equal(luaL_loadbufferx(L, code, size, "=another", "b"), LUA_OK);
  assert_int_equal(lua_pcall(L, 0, LUA_MULTRET, 0), LUA_OK);
}

static void what_runs_is_the_same_but_for_names(void **state) {
  lua_State *L = luaL_newstate();
  char expected[100];
  (void)state;
  luaL_openlibs(L);
  dump code = dumped(L);
  run(L, code.bytes, code.size);
  snprintf(expected, sizeof expected, "some/file.lua:%d: attempt to index a nil value (local 'missing')", line_of("return missing"));
  assert_string_equal(lua_tostring(L, 1), expected);
  const int results = lua_gettop(L);
  const size_t left = pp_leave_out_names(code.bytes, code.size);
  assert_in_range(left, 1, code.size - 60);
  run(L, code.bytes, left);
  assert_int_equal(lua_gettop(L), results);
  *strchr(expected, '(') = '\0';
  expected[strlen(expected) - 1] = '\0';
  assert_string_equal(lua_tostring(L, 1), expected);
  assert_int_equal(lua_tointeger(L, 2), line_of("local function wrong"));
  assert_int_equal(lua_tointeger(L, 3), line_of("return missing"));
  assert_true(lua_isnil(L, 4));
  assert_true(lua_tonumber(L, 5) == 5);
  assert_string_equal(lua_tostring(L, 6), "x");
  assert_true(lua_isboolean(L, 7) && !lua_toboolean(L, 7) && lua_toboolean(L, 8) && lua_isnil(L, 9));
  assert_int_equal(lua_tointeger(L, 10), 83);
  assert_true(lua_tointeger(L, 11) == LUA_MAXINTEGER && lua_tonumber(L, 12) == 1e300);
  const size_t again = pp_leave_out_names(code.bytes, left);
  assert_int_equal(again, left);
  free(code.bytes);
  lua_close(L);
}

/* Of exactly as many bytes, so that a sanitizer sees one too many. */
static void what_is_cut_off_is_refused(void **state) {
  lua_State *L = luaL_newstate();
  (void)state;
  dump code = dumped(L);
  for (size_t size = 0; size < code.size; size++) {
    char *part = malloc(size > 0 ? size : 1);
    memcpy(part, code.bytes, size);
    assert_int_equal(pp_leave_out_names(part, size), 0);
    free(part);
  }
  free(code.bytes);
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_runs_is_the_same_but_for_names),
    cmocka_unit_test(what_is_cut_off_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

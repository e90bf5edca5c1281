/* SPDX-License-Identifier: Apache-2.0 */
/* arguments.c: what a caller reads when an argument is wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <lauxlib.h>
#include <lualib.h>

#include "lua/arguments.h"

static const char *const known[] = { "ranks", "seconds", "kind", "exact", "times", NULL };
static const char *const kinds[] = { "gpipe", "1f1b", "zb_v", NULL };

/* A call with every sort of argument: t → ranks, seconds, kind, exact. */
static int call(lua_State *L) {
  pp_args_begin(L, 1, "engine.try", known);
  lua_pushinteger(L, pp_args_integer(L, 1, "engine.try", "ranks", 1, INT64_MAX));
  lua_pushnumber(L, pp_args_number_or(L, 1, "engine.try", "seconds", 0, 10, 2.5));
  lua_pushinteger(L, pp_args_option(L, 1, "engine.try", "kind", kinds, 0));
  lua_pushboolean(L, pp_args_boolean_or(L, 1, "engine.try", "exact", true));
  if (pp_args_has(L, 1, "times")) pp_args_table(L, 1, "engine.try", "times");
  return 4;
}

static lua_State *state_with_call(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, call);
  lua_setglobal(L, "try");
  return L;
}

/* Runs `code`, expects an error, compares its message behind the position. */
static void expect_error(const char *code, const char *message) {
  lua_State *L = state_with_call();
  assert_int_not_equal(luaL_dostring(L, code), LUA_OK);
  const char *text = strstr(lua_tostring(L, -1), ":1: ");
  assert_non_null(text);
  assert_string_equal(text + strlen(":1: "), message);
  lua_close(L);
}

static void good_arguments_come_through(void **unused) {
  lua_State *L = state_with_call();
  (void)unused;
  assert_int_equal(luaL_dostring(L, "return try{ ranks = 8.0, seconds = 1, kind = 'zb_v', exact = false }"), LUA_OK);
  assert_int_equal(lua_tointeger(L, 1), 8);
  assert_true(fabs(lua_tonumber(L, 2) - 1) < 1e-12);
  assert_int_equal(lua_tointeger(L, 3), 2);
  assert_false(lua_toboolean(L, 4));
  lua_close(L);
}

static void absent_arguments_have_their_defaults(void **unused) {
  lua_State *L = state_with_call();
  (void)unused;
  assert_int_equal(luaL_dostring(L, "return try{ ranks = 1 }"), LUA_OK);
  assert_true(fabs(lua_tonumber(L, 2) - 2.5) < 1e-12);
  assert_int_equal(lua_tointeger(L, 3), 0);
  assert_true(lua_toboolean(L, 4));
  lua_close(L);
}

static void a_wrong_argument_is_named_with_what_was_expected_and_what_came(void **unused) {
  (void)unused;
  expect_error("try{ ranks = 0 }", "engine.try: 'ranks' must be an integer ≥ 1, got 0");
  expect_error("try{ ranks = 1.5 }", "engine.try: 'ranks' must be an integer ≥ 1, got 1.5");
  expect_error("try{ ranks = '8' }", "engine.try: 'ranks' must be an integer ≥ 1, got the string '8'");
  expect_error("try{ }", "engine.try: 'ranks' must be an integer ≥ 1, got nothing");
  expect_error("try{ ranks = 1, seconds = 11 }", "engine.try: 'seconds' must be a number from 0 to 10, got 11");
  expect_error("try{ ranks = 1, seconds = 0/0 }", "engine.try: 'seconds' must be a number from 0 to 10, got nan");
  expect_error("try{ ranks = 1, kind = 'zb' }", "engine.try: 'kind' must be gpipe, 1f1b or zb_v, got the string 'zb'");
  expect_error("try{ ranks = 1, exact = 1 }", "engine.try: 'exact' must be true or false, got 1");
  expect_error("try{ ranks = 1, times = {} } try{ ranks = 1, times = 2 }", "engine.try: 'times' must be a table, got 2");
}

static void an_unknown_argument_is_answered_with_the_nearest(void **unused) {
  (void)unused;
  expect_error("try{ rank = 1 }", "engine.try: no argument 'rank', did you mean 'ranks'?");
  expect_error("try{ zzzzzz = 1, nothing_like_it = 1 }", "engine.try: no argument 'nothing_like_it'");
  expect_error("try{ 8 }", "engine.try: argument names are strings, got the key 1");
  expect_error("try(8)", "engine.try: one table of named arguments expected, got 8");
}

static void an_illegal_request_is_nil_and_a_table(void **unused) {
  lua_State *L = luaL_newstate();
  pp_error error;
  (void)unused;
  pp_illegal(&error, "engine.odd_depth", "ranks", 4, "ranks is 5");
  assert_int_equal(pp_push_illegal(L, &error), 2);
  assert_true(lua_isnil(L, 1));
  lua_getfield(L, 2, "nearest");
  assert_true(lua_isinteger(L, -1));
  assert_int_equal(lua_tointeger(L, -1), 4);
  lua_getfield(L, 2, "id");
  assert_string_equal(lua_tostring(L, -1), "engine.odd_depth");
  lua_close(L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_arguments_come_through),
    cmocka_unit_test(absent_arguments_have_their_defaults),
    cmocka_unit_test(a_wrong_argument_is_named_with_what_was_expected_and_what_came),
    cmocka_unit_test(an_unknown_argument_is_answered_with_the_nearest),
    cmocka_unit_test(an_illegal_request_is_nil_and_a_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** statements.c: the verbs, which record what a policy states and where, and the constructors of conditions. May longjmp.
** What a statement means is decided in stdlib/policy, on the copy.
*/
#include "host/statements.h"

#include <lauxlib.h>
#include <string.h>

#include "host/copy.h"
#include "host/sandbox_state.h"

/* Registry keys: the list of statements of the file being run, and the functions of all files by handle. */
static const char statements_key = 0;
static const char functions_key = 0;

static void push_list(lua_State *L, const void *registry_key) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, registry_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, registry_key);
}

void pp_reset_statements(lua_State *L) {
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &statements_key);
}

void pp_push_statements(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &statements_key);
}

void pp_push_function(lua_State *L, lua_Integer handle) {
  push_list(L, &functions_key);
  lua_rawgeti(L, -1, handle);
  lua_remove(L, -2);
}

lua_Integer pp_count_functions(lua_State *L) {
  lua_Integer count;
  push_list(L, &functions_key);
  count = (lua_Integer)lua_rawlen(L, -1);
  lua_pop(L, 1);
  return count;
}

/* Keeps a function and puts { [PP_TAG] = "function", handle, file, first line, last line } in its place. */
static const char *keep_function(lua_State *L, int index) {
  lua_Integer handle;
  lua_Debug source;
  index = lua_absindex(L, index);
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &source);
  push_list(L, &functions_key);
  handle = (lua_Integer)lua_rawlen(L, -1) + 1;
  lua_pushvalue(L, index);
  lua_rawseti(L, -2, handle);
  lua_pop(L, 1);
  lua_createtable(L, 4, 1);
  lua_pushliteral(L, "function");
  lua_rawsetp(L, -2, PP_TAG);
  lua_pushinteger(L, handle);
  lua_rawseti(L, -2, 1);
  lua_pushstring(L, source.source + (*source.source == '@'));
  lua_rawseti(L, -2, 2);
  lua_pushinteger(L, source.linedefined);
  lua_rawseti(L, -2, 3);
  lua_pushinteger(L, source.lastlinedefined);
  lua_rawseti(L, -2, 4);
  return NULL;
}

/* verb(argument). Upvalue: the verb. */
static int record_statement(lua_State *L) {
  const char *verb = lua_tostring(L, lua_upvalueindex(1)), *problem;
  bool named = strcmp(verb, "site") == 0;
  lua_Debug caller;
  if (!pp_sandbox_of(L)->loading) return luaL_error(L, "'%s' is a statement of a file; a rule's function only answers true or false", verb);
  if (lua_gettop(L) != 1 || lua_type(L, 1) != (named ? LUA_TSTRING : LUA_TTABLE))
    return luaL_error(L, named ? "write %s \"name\"" : "write %s { … }", verb);
  push_list(L, &statements_key);
  if (lua_rawlen(L, -1) == PP_MOST_STATEMENTS)
    return luaL_error(L, "a policy file has at most %d statements; what it states beyond belongs in another", PP_MOST_STATEMENTS);
  lua_createtable(L, 0, 4);
  lua_pushstring(L, verb);
  lua_setfield(L, -2, "verb");
  lua_pushliteral(L, "?");
  lua_pushinteger(L, 0);
  if (lua_getstack(L, 1, &caller) && lua_getinfo(L, "Sl", &caller) && caller.currentline > 0) {
    lua_pop(L, 2);
    lua_pushstring(L, caller.source + (*caller.source == '@'));
    lua_pushinteger(L, caller.currentline);
  }
  lua_setfield(L, -3, "line");
  lua_setfield(L, -2, "file");
  problem = pp_copy(L, 1, L, keep_function);
  if (problem) return luaL_error(L, "%s: %s", verb, problem);
  lua_setfield(L, -2, "argument");
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return 0;
}

void pp_push_verb(lua_State *L, const char *verb) {
  lua_pushstring(L, verb);
  lua_pushcclosure(L, record_statement, 1);
}

/* operator(right side[, right side]). Upvalues: the operator, how many right sides. */
static int construct(lua_State *L) {
  int sides = (int)lua_tointeger(L, lua_upvalueindex(2));
  if (lua_gettop(L) != sides)
    return luaL_error(L, "%s takes %d value%s, got %d", lua_tostring(L, lua_upvalueindex(1)), sides, sides == 1 ? "" : "s", lua_gettop(L));
  lua_createtable(L, sides, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_rawsetp(L, -2, PP_TAG);
  for (int i = 1; i <= sides; i++) {
    lua_pushvalue(L, i);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* Conditions without a right side are values, and light userdata so that no policy can change them for another. */
static const struct {
  const char *name;
  int sides;
} constructors[] = {
  { "any", 0 }, { "at_least", 1 }, { "at_most", 1 }, { "between", 2 }, { "equal", 1 }, { "even", 0 }, { "multiple_of", 1 },
  { "none_of", 1 }, { "not_multiple_of", 1 }, { "odd", 0 }, { "over", 1 }, { "under", 1 },
};

void pp_push_constructor(lua_State *L, const char *name) {
  for (size_t i = 0; i < sizeof constructors / sizeof *constructors; i++) {
    if (strcmp(constructors[i].name, name) != 0) continue;
    if (constructors[i].sides == 0) {
      lua_pushlightuserdata(L, (void *)&constructors[i]);
      return;
    }
    lua_pushstring(L, name);
    lua_pushinteger(L, constructors[i].sides);
    lua_pushcclosure(L, construct, 2);
    return;
  }
  lua_pushnil(L);
}

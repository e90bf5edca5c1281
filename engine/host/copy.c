/* SPDX-License-Identifier: Apache-2.0 */
/*
** copy.c: see copy.h.
*/
#include "host/copy.h"

#include <stdbool.h>

#include "host/budget.h"

const char pp_tag = 0;

typedef struct {
  lua_State *from, *to;
  pp_copy_function *function;
  size_t values;
} job;

static const char *copy_value(job *j, int index, int depth);

/* With room for what it will hold: a table that grows is laid out anew at every doubling. A border says little of a table with holes. */
static void make_table(job *j, int index) {
  lua_Unsigned border = lua_rawlen(j->from, index);
  int entries = 0, listed;
  lua_pushnil(j->from);
  while (lua_next(j->from, index)) {
    lua_pop(j->from, 1);
    if (++entries < PP_COPY_VALUES) continue;
    lua_pop(j->from, 1);
    break;
  }
  listed = border < (lua_Unsigned)entries ? (int)border : entries;
  lua_createtable(j->to, listed, entries - listed);
}

static const char *copy_table(job *j, int index, int depth) {
  int copy;
  if (depth == PP_COPY_DEPTH) return "tables are nested deeper than 8 levels, or contain themselves";
  if (!lua_checkstack(j->from, 8) || !lua_checkstack(j->to, 8)) return "no stack space";
  index = lua_absindex(j->from, index);
  make_table(j, index);
  copy = lua_gettop(j->to);
  lua_pushnil(j->from);
  while (lua_next(j->from, index)) {
    int value = lua_gettop(j->from), key = value - 1, type = lua_type(j->from, key);
    const char *problem = NULL;
    if (type != LUA_TSTRING && type != LUA_TLIGHTUSERDATA && !lua_isinteger(j->from, key)) problem = "keys of tables are names or 1, 2, 3 …";
    if (!problem) problem = copy_value(j, key, depth + 1);
    if (!problem) problem = copy_value(j, value, depth + 1);
    if (problem) {
      lua_settop(j->to, copy - 1);
      if (j->to != j->from) lua_settop(j->from, key - 1);
      return problem;
    }
    lua_rawset(j->to, copy);
    lua_settop(j->from, key);
  }
  return NULL;
}

static const char *copy_value(job *j, int index, int depth) {
  if (++j->values > PP_COPY_VALUES) return "more than 20000 values";
  switch (lua_type(j->from, index)) {
    case LUA_TNIL: lua_pushnil(j->to); return NULL;
    case LUA_TBOOLEAN: lua_pushboolean(j->to, lua_toboolean(j->from, index)); return NULL;
    case LUA_TLIGHTUSERDATA: lua_pushlightuserdata(j->to, lua_touserdata(j->from, index)); return NULL;
    case LUA_TNUMBER:
      if (lua_isinteger(j->from, index)) lua_pushinteger(j->to, lua_tointeger(j->from, index));
      else lua_pushnumber(j->to, lua_tonumber(j->from, index));
      return NULL;
    case LUA_TSTRING: {
      size_t length;
      const char *text = lua_tolstring(j->from, index, &length);
      lua_pushlstring(j->to, text, length);
      pp_budget_admit(j->to, text, length);
      return NULL;
    }
    case LUA_TTABLE: return copy_table(j, index, depth);
    case LUA_TFUNCTION: return j->function ? j->function(j->from, index) : "a function cannot be copied";
    default: return "only numbers, strings, booleans, lists and tables can be given";
  }
}

const char *pp_copy(lua_State *from, int index, lua_State *to, pp_copy_function *function) {
  job j = { from, to, function, 0 };
  if (!lua_checkstack(from, 8) || !lua_checkstack(to, 8)) return "no stack space";
  return copy_value(&j, lua_absindex(from, index), 0);
}

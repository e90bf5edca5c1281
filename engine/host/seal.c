/* SPDX-License-Identifier: Apache-2.0 */
/*
** seal.c: what a rule's function reaches and outlives its call stays as it was when its layer was loaded, so that no call sees another one, and
** no layer above changes what it says.
** Its variables from outside (upvalues), those of functions that it can call, and the tables in them: tables become views that refuse to be
** written, variables are compared with what they were after each call, and put back.
*/
#include "host/seal.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "core/meter.h"
#include "host/budget.h"
#include "host/statements.h"
#include "host/views.h"

/* Registry key: handle of a function → its variables: a list of (function, number of the upvalue, name, value), four entries each. */
static const char variables_key = 0;

enum { VISIT = 16 };   /* units of looking at a variable, or an entry of a table */

/* -- the walk ------------------------------------------------------------------------------------------------------------------------- */

/* Stack indices of what a walk keeps. */
enum { AHEAD = 1, NAMES, SEEN, VARIABLES };

/* Notes the value on top, called that, unless it cannot hold anything or is known. Pops it. */
static void visit_later(lua_State *L, const char *name) {
  const int type = lua_type(L, -1);
  pp_spend(VISIT);
  if (type == LUA_TTABLE || type == LUA_TFUNCTION) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, SEEN) == LUA_TNIL) {
      const lua_Integer next = (lua_Integer)lua_rawlen(L, AHEAD) + 1;
      lua_pushvalue(L, -2);
      lua_rawseti(L, AHEAD, next);
      lua_pushstring(L, name);
      lua_rawseti(L, NAMES, next);
      lua_pushvalue(L, -2);
      lua_pushboolean(L, 1);
      lua_rawset(L, SEEN);
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The function on top, called that. Upvalues of C functions have no names. */
static void visit_function(lua_State *L, const char *called) {
  const int function = lua_gettop(L);
  const char *name;
  for (int n = 1; (name = lua_getupvalue(L, function, n)) != NULL; n++) {
    if (*name == '\0') name = called;
    if (lua_rawgetp(L, SEEN, lua_upvalueid(L, function, n)) == LUA_TNIL) {
      const lua_Integer next = (lua_Integer)lua_rawlen(L, VARIABLES);
      lua_pushboolean(L, 1);
      lua_rawsetp(L, SEEN, lua_upvalueid(L, function, n));
      lua_pushvalue(L, function);
      lua_rawseti(L, VARIABLES, next + 1);
      lua_pushinteger(L, n);
      lua_rawseti(L, VARIABLES, next + 2);
      lua_pushstring(L, name);
      lua_rawseti(L, VARIABLES, next + 3);
      lua_pushvalue(L, function + 1);
      if (lua_isnil(L, -1)) {   /* an entry of a list all the same */
        lua_pop(L, 1);
        lua_pushlightuserdata(L, (void *)&variables_key);
      }
      lua_rawseti(L, VARIABLES, next + 4);
    }
    lua_pop(L, 1);
    visit_later(L, name);
  }
}

/* The table on top, called that. One that is a view already may hold functions; others with a metatable are the host's. */
static void visit_table(lua_State *L, const char *name) {
  const int table = lua_gettop(L);
  char message[160];
  pp_view_inside(L, table);
  const bool plain = lua_rawequal(L, table, table + 1);
  if (plain && luaL_getmetafield(L, table, "__index") != LUA_TNIL) return;
  for (lua_pushnil(L); lua_next(L, table + 1); ) visit_later(L, name);
  if (!plain) return;
  snprintf(message, sizeof message, "'%.64s' may not be changed any more: a rule's function reads it in every call", name);
  lua_settop(L, table);
  pp_seal_table(L, message);
}

void pp_seal(lua_State *L, lua_Integer handle) {
  lua_settop(L, 0);
  for (int i = AHEAD; i <= VARIABLES; i++) lua_newtable(L);
  pp_push_function(L, handle);
  visit_later(L, "?");
  for (lua_Integer i = 1; lua_rawgeti(L, NAMES, i) == LUA_TSTRING; i++) {
    const char *name = lua_tostring(L, -1);
    if (lua_rawgeti(L, AHEAD, i) == LUA_TFUNCTION) visit_function(L, name);
    else visit_table(L, name);
    pp_charge(L, 1);
    lua_settop(L, VARIABLES);
  }
  lua_settop(L, VARIABLES);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &variables_key) != LUA_TTABLE) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &variables_key);
    lua_replace(L, -2);
  }
  lua_pushvalue(L, VARIABLES);
  lua_rawseti(L, -2, handle);
}

/* -- before and after a call ---------------------------------------------------------------------------------------------------------- */

/* Pushes a function's list of variables, or nil. Never raises. */
static bool push_variables(lua_State *L, lua_Integer handle) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &variables_key) != LUA_TTABLE) return false;
  return lua_rawgeti(L, -1, handle) == LUA_TTABLE;
}

bool pp_is_sealed(lua_State *L, lua_Integer handle) {
  const int top = lua_gettop(L);
  const bool sealed = push_variables(L, handle);
  lua_settop(L, top);
  return sealed;
}

void pp_charge_variables(lua_State *L, lua_Integer handle) {
  const int top = lua_gettop(L);
  if (push_variables(L, handle)) pp_charge(L, VISIT * (uint64_t)lua_rawlen(L, -1) / 4);
  lua_settop(L, top);
}

/* Are the two values on top the same to whoever reads them? 1 and 1.0 are not, 0.0 and -0.0 neither. */
static bool is_same(lua_State *L) {
  if (lua_type(L, -1) != LUA_TNUMBER || lua_type(L, -2) != LUA_TNUMBER) return lua_rawequal(L, -1, -2);
  if (lua_isinteger(L, -1) != lua_isinteger(L, -2)) return false;
  if (lua_isinteger(L, -1)) return lua_tointeger(L, -1) == lua_tointeger(L, -2);
  const lua_Number a = lua_tonumber(L, -1), b = lua_tonumber(L, -2);
  return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

bool pp_put_back(lua_State *L, lua_Integer handle, char *name, size_t size) {
  const int top = lua_gettop(L);
  bool same = true;
  if (push_variables(L, handle)) {
    for (lua_Integer i = 1; lua_rawgeti(L, top + 2, i) == LUA_TFUNCTION; i += 4) {
      lua_rawgeti(L, top + 2, i + 1);
      lua_rawgeti(L, top + 2, i + 2);
      const int n = (int)lua_tointeger(L, -2);
      lua_getupvalue(L, top + 3, n);
      if (lua_rawgeti(L, top + 2, i + 3) == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == (void *)&variables_key) {
        lua_pop(L, 1);
        lua_pushnil(L);
      }
      if (!is_same(L)) {
        if (same) snprintf(name, size, "%s", lua_tostring(L, top + 5));
        same = false;
        lua_setupvalue(L, top + 3, n);
      }
      lua_settop(L, top + 2);
    }
  }
  lua_settop(L, top);
  return same;
}

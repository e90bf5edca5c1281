/* SPDX-License-Identifier: Apache-2.0 */
/*
** views.c: see views.h.
*/
#include "host/views.h"

#include <lauxlib.h>

/* Key of the table behind a view, in its metatable. */
static const char inside_key = 0;

static int refuse_writing(lua_State *L) {
  luaL_where(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_concat(L, 2);
  return lua_error(L);
}

/* A view's own __call: forwards to the callable table behind it. */
static int call_through(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_replace(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  return lua_gettop(L);
}

static int length_through(lua_State *L) {
  lua_pushinteger(L, luaL_len(L, lua_upvalueindex(1)));
  return 1;
}

/* Gives the table on top the metatable of a view of the table at an index. `message` is what writing raises. */
static void show(lua_State *L, int table, const char *message) {
  lua_createtable(L, 0, 5);
  lua_pushvalue(L, table);
  lua_rawsetp(L, -2, &inside_key);
  lua_pushvalue(L, table);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, message);
  lua_pushcclosure(L, refuse_writing, 1);
  lua_setfield(L, -2, "__newindex");
  lua_pushvalue(L, table);
  lua_pushcclosure(L, length_through, 1);
  lua_setfield(L, -2, "__len");
  if (luaL_getmetafield(L, table, "__call") != LUA_TNIL) {
    lua_pop(L, 1);
    lua_pushvalue(L, table);
    lua_pushcclosure(L, call_through, 1);
    lua_setfield(L, -2, "__call");
  }
  lua_setmetatable(L, -2);
}

void pp_freeze(lua_State *L, const char *name) {
  int table = lua_gettop(L);
  luaL_checkstack(L, 8, name);
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    if (lua_type(L, -1) != LUA_TTABLE) continue;
    pp_freeze(L, name);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, table);  /* an existing key: allowed while traversing */
  }
  lua_pushfstring(L, "%s is read-only in policies", name);
  lua_newtable(L);
  show(L, table, lua_tostring(L, -2));
  lua_replace(L, table);
  lua_settop(L, table);
}

void pp_seal_table(lua_State *L, const char *message) {
  int table = lua_gettop(L);
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, table); ) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, table + 1);
  }
  lua_pushvalue(L, table);
  show(L, table + 1, message);
  for (lua_pushnil(L); lua_next(L, table); ) {
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, table);
  }
  lua_settop(L, table);
}

void pp_view_inside(lua_State *L, int index) {
  index = lua_absindex(L, index);
  if (lua_type(L, index) == LUA_TTABLE && lua_getmetatable(L, index)) {
    if (lua_rawgetp(L, -1, &inside_key) == LUA_TTABLE) {
      lua_remove(L, -2);
      return;
    }
    lua_pop(L, 2);
  }
  lua_pushvalue(L, index);
}

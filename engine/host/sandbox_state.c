/* SPDX-License-Identifier: Apache-2.0 */
/*
** sandbox_state.c: see sandbox_state.h.
*/
#include "host/sandbox_state.h"

const char pp_names_key = 0;

static const char sandbox_key = 0;

void pp_sandbox_bind(lua_State *L, pp_sandbox *sandbox) {
  lua_pushlightuserdata(L, sandbox);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &sandbox_key);
}

pp_sandbox *pp_sandbox_of(lua_State *L) {
  pp_sandbox *sandbox;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &sandbox_key);
  sandbox = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return sandbox;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** module.c: `require "pipeplan"` in a stock lua5.4: the same engine and the same stdlib, for tests and scripts.
** The interpreter brings Lua; this module links none. May longjmp.
*/
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "lua/stdlib.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int luaopen_pipeplan(lua_State *L);

/* PIPEPLAN_STDLIB names a directory to read stdlib from, as --stdlib does for the program. */
EXPORT int luaopen_pipeplan(lua_State *L) {
  luaL_checkversion(L);
  pp_open_stdlib(L, getenv("PIPEPLAN_STDLIB"));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "pipeplan.init");
  lua_call(L, 1, 1);
  return 1;
}

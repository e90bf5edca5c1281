/* SPDX-License-Identifier: Apache-2.0 */
/*
** trusted.c: see trusted.h. Not in stdlib.c, which the Lua module has too: there the interpreter has opened what it will.
*/
#include "lua/trusted.h"

#include <lauxlib.h>
#include <lualib.h>

#include "lua/stdlib.h"

void pp_open_trusted(lua_State *L, const char *stdlib_directory) {
  lua_pushboolean(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "LUA_NOENV");
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_pushliteral(L, "");
  lua_setfield(L, -2, "path");
  lua_pushliteral(L, "");
  lua_setfield(L, -2, "cpath");
  lua_pop(L, 1);
  pp_open_stdlib(L, stdlib_directory);
}

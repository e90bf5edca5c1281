/* SPDX-License-Identifier: Apache-2.0 */
/*
** trusted.h: a Lua state of ours, for whoever has none: the program and libpipeplan.
*/
#ifndef PP_TRUSTED_H
#define PP_TRUSTED_H

#include <lua.h>

/*
** Opens Lua's libraries and stdlib (lua/stdlib.h). No file is code here unless stdlib_directory names it: modules are looked for neither in
** the current directory nor where LUA_PATH and LUA_CPATH say. (Tests of policies run busted, from the tree of the system's Lua:
** analysis/runner.lua.) May raise a Lua error.
*/
void pp_open_trusted(lua_State *L, const char *stdlib_directory);

#endif

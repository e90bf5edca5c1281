/* SPDX-License-Identifier: Apache-2.0 */
/*
** primitives.h: the modules of `engine` that policies may call too: arithmetic, charged for what it does. May longjmp.
*/
#ifndef PP_LUA_PRIMITIVES_H
#define PP_LUA_PRIMITIVES_H

#include <lua.h>

/* Pushes a table with a field per module. */
int pp_open_primitives(lua_State *L);

#endif

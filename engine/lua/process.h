/* SPDX-License-Identifier: Apache-2.0 */
/*
** process.h: `engine.process`. See process.c.
*/
#ifndef PP_LUA_PROCESS_H
#define PP_LUA_PROCESS_H

#include <lua.h>

/* Pushes the table `engine.process`. May longjmp. */
int pp_open_process(lua_State *L);

#endif

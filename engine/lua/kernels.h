/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels.h: `engine.kernels`. See kernels.c.
*/
#ifndef PP_LUA_KERNELS_H
#define PP_LUA_KERNELS_H

#include <lua.h>

/* Pushes the table `engine.kernels`. May longjmp. */
int pp_open_kernels(lua_State *L);

#endif

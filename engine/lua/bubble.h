/* SPDX-License-Identifier: Apache-2.0 */
/*
** bubble.h: engine.bubble, which is a function: the closed form of a schedule's bubble. May longjmp.
*/
#ifndef PP_LUA_BUBBLE_H
#define PP_LUA_BUBBLE_H

#include <lua.h>

int pp_open_bubble(lua_State *L);

#endif

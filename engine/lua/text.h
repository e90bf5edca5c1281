/* SPDX-License-Identifier: Apache-2.0 */
/*
** text.h: `engine.text`. See text.c.
*/
#ifndef PP_LUA_TEXT_H
#define PP_LUA_TEXT_H

#include <lua.h>

/* Pushes the table `engine.text`. May longjmp. */
int pp_open_text(lua_State *L);

#endif

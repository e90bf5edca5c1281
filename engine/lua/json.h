/* SPDX-License-Identifier: Apache-2.0 */
/*
** json.h: `engine.json`. See json.c.
*/
#ifndef PP_LUA_JSON_H
#define PP_LUA_JSON_H

#include <lua.h>

/* Pushes the table `engine.json`. May longjmp. */
int pp_open_json(lua_State *L);

#endif

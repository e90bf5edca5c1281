/* SPDX-License-Identifier: Apache-2.0 */
/*
** engine.h: the binding layer. One file per core module, tables in and out, nothing else.
** Every function named pp_open_… pushes one table and may longjmp; so may everything in engine/lua, which therefore keeps no malloc'ed
** thing alive across a call into Lua: what must live is a userdata.
*/
#ifndef PP_LUA_ENGINE_H
#define PP_LUA_ENGINE_H

#include <lauxlib.h>
#include <lua.h>

/* The table `engine`, with a field per module. */
int pp_open_engine(lua_State *L);

#endif

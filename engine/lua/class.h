/* SPDX-License-Identifier: Apache-2.0 */
/*
** class.h: classes of userdata, for what Lua holds of the C heap. May longjmp.
*/
#ifndef PP_LUA_CLASS_H
#define PP_LUA_CLASS_H

#include <lauxlib.h>
#include <lua.h>

/* Registers a class once, with what frees an object and, where scripts see objects, its methods; NULL where they do not. Pushes nothing. */
void pp_new_class(lua_State *L, const char *name, lua_CFunction gc, const luaL_Reg *methods);

#endif

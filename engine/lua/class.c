/* SPDX-License-Identifier: Apache-2.0 */
/*
** class.c: see class.h.
*/
#include "lua/class.h"

void pp_new_class(lua_State *L, const char *name, lua_CFunction gc, const luaL_Reg *methods) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pushboolean(L, 0);   /* scripts see no metatable */
  lua_setfield(L, -2, "__metatable");
  if (methods) {
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
  }
  lua_pop(L, 1);
}

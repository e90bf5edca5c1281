/*
** class.h: the metatable of objects that the bindings hand out. May longjmp.
*/
#ifndef PP_LUA_CLASS_H
#define PP_LUA_CLASS_H

#include <lauxlib.h>

/* Makes the metatable called `name`, with what collects an object and its methods (NULL: it has none). Scripts see no metatable. */
void pp_new_class(lua_State *L, const char *name, lua_CFunction gc, const luaL_Reg *methods);

#endif

/*
** memory.h: engine.memory: bytes of blocks and of the ranks of a pipeline.
*/
#ifndef PP_LUA_MEMORY_H
#define PP_LUA_MEMORY_H

#include <lua.h>

int pp_open_memory(lua_State *L);

#endif

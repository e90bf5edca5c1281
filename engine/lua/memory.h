/* SPDX-License-Identifier: Apache-2.0 */
/*
** memory.h: engine.memory: bytes of blocks and of the ranks of a pipeline.
*/
#ifndef PP_LUA_MEMORY_H
#define PP_LUA_MEMORY_H

#include <lua.h>

#include "core/memory.h"

/* Pushes the terms of a rank, and what they come to, as a table. */
void pp_push_rank(lua_State *L, const pp_rank_bytes *rank);

int pp_open_memory(lua_State *L);

#endif

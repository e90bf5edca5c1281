/* SPDX-License-Identifier: Apache-2.0 */
/*
** cost.h: engine.cost: seconds of blocks, stages, pairs, steps and hand-overs.
*/
#ifndef PP_LUA_COST_H
#define PP_LUA_COST_H

#include <lua.h>

int pp_open_cost(lua_State *L);

#endif

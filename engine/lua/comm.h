/* SPDX-License-Identifier: Apache-2.0 */
/*
** comm.h: engine.comm: time of transfers over a tiered network.
*/
#ifndef PP_LUA_COMM_H
#define PP_LUA_COMM_H

#include <lua.h>

int pp_open_comm(lua_State *L);

#endif

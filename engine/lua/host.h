/* SPDX-License-Identifier: Apache-2.0 */
/*
** host.h: engine.host: the sandbox of policies, for stdlib/policy.
*/
#ifndef PP_LUA_HOST_H
#define PP_LUA_HOST_H

#include <lua.h>

int pp_open_host(lua_State *L);

#endif

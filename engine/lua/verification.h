/* SPDX-License-Identifier: Apache-2.0 */
/*
** verification.h: the methods :verify and :receive_buffers of schedules, and what is wrong with a program as a Lua table. May longjmp.
*/
#ifndef PP_LUA_VERIFICATION_H
#define PP_LUA_VERIFICATION_H

#include <lua.h>

/* schedule:verify{ … }, schedule:receive_buffers(): see verification.c. */
int pp_schedule_verify_method(lua_State *L);
int pp_schedule_receive_buffers_method(lua_State *L);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule.h: engine.schedule: the kinds there are, and schedules as objects with methods. May longjmp.
*/
#ifndef PP_LUA_SCHEDULE_H
#define PP_LUA_SCHEDULE_H

#include <lua.h>

int pp_open_schedule(lua_State *L);

#endif

/*
** schedule.h: engine.schedule: schedules as objects, and the arguments that describe one. May longjmp.
*/
#ifndef PP_LUA_SCHEDULE_H
#define PP_LUA_SCHEDULE_H

#include <lua.h>

#include "core/schedule.h"

int pp_open_schedule(lua_State *L);

/*
** Reads { [kind_field] = name, ranks, microbatches, virtual?, group?, limit? } of an arguments table. virtual is by default what the kind needs, 2
** where it takes any (as PyTorch's visualiser); group is microbatches, "rounds" (PyTorch's rule) or absent: the kind's own rule. Legality is
** not judged here.
*/
void pp_check_schedule_request(lua_State *L, int index, const char *call, const char *kind_field, pp_schedule_request *out);

/* The schedule object at that index, or a Lua error. */
const pp_schedule *pp_check_schedule(lua_State *L, int index);

#endif

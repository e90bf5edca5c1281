/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_object.h: schedules as Lua holds them, and the arguments that ask for one. May longjmp.
*/
#ifndef PP_LUA_SCHEDULE_OBJECT_H
#define PP_LUA_SCHEDULE_OBJECT_H

#include <lauxlib.h>
#include <lua.h>

#include "core/schedule.h"

/* Registers the class, with these methods. */
void pp_open_schedule_object(lua_State *L, const luaL_Reg *methods);

/* Pushes an empty schedule that the collector frees. */
pp_schedule *pp_push_schedule(lua_State *L);

/* The schedule object at that index, or a Lua error. */
const pp_schedule *pp_check_schedule(lua_State *L, int index);

/* The rank at that index, from 0. */
int pp_check_rank(lua_State *L, const pp_schedule *schedule, int index, const char *call);

/* Actions of a schedule from `first` up to `end`. */
typedef struct {
  size_t first, end;
} pp_action_range;

/* The actions of the rank at `index`: those from the place at index + 1 (default 1) to the one at index + 2 (default: the last), as many of
** them as there are. Charges for them. */
pp_action_range pp_check_range(lua_State *L, const pp_schedule *schedule, int index, const char *call);

/*
** Reads { [kind_field] = name, ranks, microbatches, virtual?, group?, limit? } of an arguments table. virtual is by default what the kind needs, 2
** where it takes any (as PyTorch's visualiser); group is microbatches, "rounds" (PyTorch's rule) or absent: the kind's own rule. Legality is
** not judged here.
*/
void pp_check_schedule_request(lua_State *L, int index, const char *call, const char *kind_field, pp_schedule_request *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** simulation.h: the methods :simulate and :lowered of schedules, and memory for simulations that the collector frees. May longjmp.
*/
#ifndef PP_LUA_SIMULATION_H
#define PP_LUA_SIMULATION_H

#include <lua.h>

#include "core/simulate.h"

/* schedule:simulate{ … } and schedule:lowered{ … }: see simulation.c. */
int pp_schedule_simulate(lua_State *L);
int pp_schedule_lowered(lua_State *L);

/*
** Fills values[stages] from a field of the arguments at an index that is one number for all stages or a list with one per stage. For a
** bidirectional schedule the list may leave out the second direction, which holds the same slices. False when the field is absent.
*/
bool pp_check_stage_seconds(lua_State *L, int index, const char *caller, const char *name, int stages, int stages_per_chain, double *values);

/* Pushes a workspace that the collector frees, if pp_workspace_free does not before. */
pp_workspace *pp_push_workspace(lua_State *L);
/* Registers the classes of what simulations hold outside Lua. */
void pp_open_simulation(lua_State *L);

#endif

/*
** simulation.h: the method :simulate of schedules, and memory for simulations that the collector frees. May longjmp.
*/
#ifndef PP_LUA_SIMULATION_H
#define PP_LUA_SIMULATION_H

#include <lua.h>

#include "core/simulate.h"

/* schedule:simulate{ … }: see simulation.c. */
int pp_schedule_simulate(lua_State *L);

/* Pushes a workspace that the collector frees, if pp_workspace_free does not before. */
pp_workspace *pp_push_workspace(lua_State *L);
/* Registers the class of workspaces. */
void pp_open_workspace(lua_State *L);

#endif

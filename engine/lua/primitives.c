/* SPDX-License-Identifier: Apache-2.0 */
/*
** primitives.c: see primitives.h.
*/
#include "lua/primitives.h"

#include <lauxlib.h>

#include "lua/bubble.h"
#include "lua/comm.h"
#include "lua/cost.h"
#include "lua/memory.h"
#include "lua/model.h"
#include "lua/schedule.h"

/* Opened in this order; each pushes its table (bubble: its one function). */
static const luaL_Reg modules[] = {
  { "bubble",   pp_open_bubble },
  { "comm",     pp_open_comm },
  { "cost",     pp_open_cost },
  { "memory",   pp_open_memory },
  { "model",    pp_open_model },
  { "schedule", pp_open_schedule },
  { NULL, NULL }
};

int pp_open_primitives(lua_State *L) {
  lua_newtable(L);
  for (const luaL_Reg *module = modules; module->name; module++) {
    lua_pushcfunction(L, module->func);
    lua_call(L, 0, 1);
    lua_setfield(L, -2, module->name);
  }
  return 1;
}

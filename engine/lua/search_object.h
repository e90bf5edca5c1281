/* SPDX-License-Identifier: Apache-2.0 */
/*
** search_object.h: the userdata behind engine.search{…}, which search_open.c makes and search.c answers for.
*/
#ifndef PP_LUA_SEARCH_OBJECT_H
#define PP_LUA_SEARCH_OBJECT_H

#include <lua.h>

#include "core/search.h"
#include "lua/profile.h"

#define PP_SEARCH_TYPE "pipeplan.candidates"

enum { PP_MAX_FACTS = 96, PP_MAX_LATENCIES = 256, PP_MAX_CHOICES = 256 };

/* A request field: the same for all candidates, or for all of a choice. */
typedef struct {
  char name[48];
  double value;
  const double *values;        /* [rows], or NULL */
} pp_fact;

/* The userdata behind engine.search{…}. It owns everything its search points to. User values: the facts' Lua values by name, of each choice
** in a list where they differ; the blocks that facts' values and the choices' recipes stand in. */
typedef struct {
  pp_model model;
  pp_training training;        /* of the first choice, where there is a list of them */
  pp_device device;
  pp_network network;
  pp_lua_profile profile;
  int layers_per_stage[PP_MAX_LAYERS];
  double usable_bytes;
  pp_candidate_space space;
  pp_search search;
  size_t latencies;
  pp_kernel_latency latency[PP_MAX_LATENCIES];
  size_t facts;
  pp_fact fact[PP_MAX_FACTS];
  size_t held;                 /* bytes of it that are counted in the state's pp_held */
} pp_lua_search;

/*
** What the searches of a state hold in bytes that Lua's collector does not see: to it each is small, so a plan that asks fifty what-ifs would
** keep them all. The first upvalue, a userdata, of what makes them and of their __gc.
*/
typedef struct {
  size_t bytes, settled;       /* now, and after the last collection that they made */
} pp_held;

/* engine.search{…}: see search_open.c. The table of arguments is at index 2. */
int pp_lua_search_make(lua_State *L);

/* Keeps the block on top of the stack for as long as the search at that index lives, and pops it. */
void pp_lua_search_keep(lua_State *L, int index);

#endif

/*
** search.h: what the files of engine.search share. Everything here may longjmp.
*/
#ifndef PP_LUA_SEARCH_H
#define PP_LUA_SEARCH_H

#include <lua.h>

#include "core/search.h"
#include "lua/profile.h"

enum { PP_MAX_FACTS = 96, PP_MAX_LATENCIES = 256 };

/* A request field: the same for all candidates. */
typedef struct {
  char name[48];
  double value;
} pp_fact;

/* The userdata behind engine.search{…}. It owns everything its search points to. User value 1: table of the facts' Lua values. */
typedef struct {
  pp_model model;
  pp_training training;
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
} pp_lua_search;

/* The search at index 1 and the candidate number at index 2, from 0. */
pp_lua_search *pp_check_search(lua_State *L);
size_t pp_check_row(lua_State *L, const pp_lua_search *self);

/* candidates:evaluate(row): see evaluation.c. */
int pp_search_evaluate(lua_State *L);

int pp_open_search(lua_State *L);

#endif

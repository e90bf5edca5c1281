/* SPDX-License-Identifier: Apache-2.0 */
/*
** profile.c: checking measured stages. May longjmp. See profile.h.
*/
#include "lua/profile.h"

#include <lauxlib.h>
#include <math.h>

#include "lua/arguments.h"
#include "lua/recipe.h"

/* The profile's stage on top of the stack. NAN where a quantity is absent. */
static void check_profile_stage(lua_State *L, pp_profile_stage *out) {
  static const char call[] = "profile stage";
  static const char *const known[] = { "blocks", "F", "B", "I", "W", "FB", "parameters", "gradients", "stored", "pending", "transient", "host",
                                       NULL };
  static const char *const names[PP_MEASURED_QUANTITIES] = {
    [PP_MEASURED_FORWARD] = "F", [PP_MEASURED_FULL] = "B", [PP_MEASURED_INPUT] = "I", [PP_MEASURED_WEIGHT] = "W",
    [PP_MEASURED_PARAMETERS] = "parameters", [PP_MEASURED_GRADIENTS] = "gradients", [PP_MEASURED_STORED] = "stored",
    [PP_MEASURED_PENDING] = "pending", [PP_MEASURED_TRANSIENT] = "transient" };
  const int index = lua_gettop(L);
  pp_args_begin(L, index, call, known);
  pp_args_table(L, index, call, "blocks");
  pp_check_stage(L, -1, call, &out->blocks);
  lua_pop(L, 1);
  for (int i = 0; i < PP_MEASURED_QUANTITIES; i++) {
    const bool needed = i == PP_MEASURED_FORWARD || i == PP_MEASURED_FULL;
    out->of[i] = needed || pp_args_has(L, index, names[i]) ? pp_args_number(L, index, call, names[i], 0, 1e18) : NAN;
  }
  out->pair = pp_args_has(L, index, "FB") ? pp_args_number(L, index, call, "FB", 0, 1e18) : NAN;
}

/* { F, I, W, B } at the top of the stack. */
static pp_stage_times check_four(lua_State *L, const char *call) {
  const int index = lua_gettop(L);
  return (pp_stage_times){ pp_args_number(L, index, call, "F", 0, 1e18), pp_args_number(L, index, call, "I", 0, 1e18),
                           pp_args_number(L, index, call, "W", 0, 1e18), pp_args_number(L, index, call, "B", 0, 1e18) };
}

/* { F, I, W, B, beyond = { F, I, W, B }?, waits = { F?, I?, W?, B? }? } of the stage on top of the stack. */
static void check_host(lua_State *L, pp_host_times *out) {
  static const char call[] = "profile stage: host";
  static const char *const known[] = { "F", "I", "W", "B", "beyond", "waits", NULL }, *const kinds[] = { "F", "I", "W", "B", NULL };
  pp_args_table(L, lua_gettop(L), "profile stage", "host");
  const int index = lua_gettop(L);
  pp_args_begin(L, index, call, known);
  *out = (pp_host_times){ .seconds = check_four(L, call) };
  if (pp_args_has(L, index, "beyond")) {
    pp_args_table(L, index, call, "beyond");
    pp_args_begin(L, -1, "profile stage: host.beyond", kinds);
    out->beyond = check_four(L, "profile stage: host.beyond");
    lua_pop(L, 1);
  }
  if (pp_args_has(L, index, "waits")) {
    pp_args_table(L, index, call, "waits");
    pp_args_begin(L, -1, call, kinds);
    out->forward_waits = pp_args_boolean_or(L, -1, call, "F", false);
    out->input_waits = pp_args_boolean_or(L, -1, call, "I", false);
    out->weight_waits = pp_args_boolean_or(L, -1, call, "W", false);
    out->full_waits = pp_args_boolean_or(L, -1, call, "B", false);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The list of numbers > 0, or from 0 on, that is called `name` in the table at `index`; → how many, 0 where it is absent. */
static int check_ranks(lua_State *L, int index, const char *where, const char *name, bool zero, double *out) {
  int count = 0;
  if (!pp_args_has(L, index, name)) return 0;
  pp_args_table(L, index, where, name);
  const lua_Integer length = luaL_len(L, -1);
  if (length > PP_MAX_LAYERS) luaL_error(L, "%s: '%s' has more than %d ranks", where, name, PP_MAX_LAYERS);
  for (; count < length; count++) {
    lua_rawgeti(L, -1, count + 1);
    out[count] = lua_tonumber(L, -1);
    if (!(out[count] > 0 || (zero && lua_isnumber(L, -1) && out[count] == 0)))
      luaL_error(L, "%s: '%s' must hold numbers %s 0", where, name, zero ? ">=" : ">");
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return count;
}

static void check_runtime(lua_State *L, int index, pp_lua_profile *out) {
  static const char call[] = "profile", heat[] = "profile: heat";
  static const char *const known[] = { "onset", "slope", "tau", "rank_slope", NULL };
  const char *name = pp_args_string_or(L, index, call, "runtime", "ideal");
  const int kind = pp_runtime_kind_of(name);
  if (kind < 0) luaL_error(L, "profile: no runtime is called '%s'", name);
  out->runtime = kind == PP_RUNTIME_IDEAL ? NULL : pp_runtime_preset((pp_runtime_kind)kind);
  out->hardware = (pp_hardware){ .contention = pp_args_number_or(L, index, call, "contention", 1, 1e6, 1) };
  if (!pp_args_has(L, index, "heat")) return;
  pp_args_table(L, index, call, "heat");
  const int table = lua_gettop(L);
  pp_args_begin(L, table, heat, known);
  out->hardware.heat_onset = pp_args_number(L, table, heat, "onset", 0, 1);
  out->hardware.heat_slope = pp_args_number(L, table, heat, "slope", 0, 1e6);
  out->hardware.heat_tau = pp_args_number(L, table, heat, "tau", 0, 1e6);
  out->hardware.slopes = check_ranks(L, table, heat, "rank_slope", true, out->rank_slope);
  out->hardware.rank_slope = out->rank_slope;
  lua_pop(L, 1);
}

void pp_check_profile(lua_State *L, int index, pp_lua_profile *out) {
  static const char call[] = "profile";
  static const char *const known[] = { "layout", "stages", "rank_speed", "runtime", "contention", "buffered_messages", "heat", NULL };
  pp_profile *measured = &out->measured;
  index = lua_absindex(L, index);
  pp_args_begin(L, index, call, known);
  pp_args_table(L, index, call, "layout");
  pp_check_layout(L, -1, &measured->layout);
  out->speeds = check_ranks(L, index, "profile", "rank_speed", false, out->rank_speed);
  check_runtime(L, index, out);
  out->buffered_messages = pp_args_number_or(L, index, call, "buffered_messages", 0, 1e6, 0);
  pp_args_table(L, index, call, "stages");
  const lua_Integer stages = luaL_len(L, -1);
  if (stages < 1 || stages > PP_MAX_LAYERS) luaL_error(L, "profile: from 1 to %d stages expected, got %d", PP_MAX_LAYERS, (int)stages);
  for (measured->stages = 0; measured->stages < stages; measured->stages++) {
    lua_rawgeti(L, -1, measured->stages + 1);
    check_profile_stage(L, &measured->stage[measured->stages]);
    const bool hosted = pp_args_has(L, lua_gettop(L), "host");
    if (measured->stages > 0 && hosted != measured->has_hosts) luaL_error(L, "profile: 'host' expected in all stages or in none");
    measured->has_hosts = hosted;
    if (hosted) check_host(L, &measured->stage[measured->stages].host);
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}

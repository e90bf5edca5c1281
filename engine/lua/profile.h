/* SPDX-License-Identifier: Apache-2.0 */
/*
** profile.h: measured stages, for the bindings that take them. May longjmp.
*/
#ifndef PP_LUA_PROFILE_H
#define PP_LUA_PROFILE_H

#include <lua.h>

#include "core/profile.h"
#include "core/runtime.h"

/*
** { layout, stages = { { blocks, F, B, I, W, FB, parameters, gradients, stored, pending, transient, host = { F, I, W, B, beyond, waits } }, … },
** rank_speed = { numbers }, runtime, contention, buffered_messages, heat = { onset, slope, tau, rank_slope } }: seconds and bytes of a stage and
** microbatch; all but layout, blocks, F and B optional.
*/
typedef struct {
  pp_profile measured;
  int speeds;
  double rank_speed[PP_MAX_LAYERS], rank_slope[PP_MAX_LAYERS];
  const pp_runtime *runtime;   /* NULL: ideal */
  double buffered_messages;
  pp_hardware hardware;
} pp_lua_profile;

void pp_check_profile(lua_State *L, int index, pp_lua_profile *out);

#endif

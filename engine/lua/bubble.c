/* SPDX-License-Identifier: Apache-2.0 */
/*
** bubble.c: engine.bubble{ schedule, ranks, microbatches, virtual?, group?, F, I, W, B?, FB? }, seconds of one chunk
**   → { seconds, exact, conditions, low?, high? }, or nil and the broken rule. low and high bound the bubble, where a bound is known.
** May longjmp.
*/
#include "lua/bubble.h"

#include <math.h>

#include "core/bubble.h"
#include "lua/arguments.h"
#include "lua/results.h"
#include "lua/schedule_object.h"

static const char call[] = "engine.bubble";

static void set_known(lua_State *L, const char *name, double value) {
  if (!isnan(value)) pp_set_number(L, name, value);
}

static int bubble(lua_State *L) {
  static const char *const known[] = { "schedule", "ranks", "microbatches", "virtual", "group", "limit", "F", "I", "W", "B", "FB", NULL };
  pp_schedule_request request;
  pp_chunk_times times;
  pp_closed_form form;
  pp_error error;
  pp_args_begin(L, 1, call, known);
  pp_check_schedule_request(L, 1, call, "schedule", &request);
  times.forward = pp_args_number(L, 1, call, "F", 0, HUGE_VAL);
  times.input = pp_args_number(L, 1, call, "I", 0, HUGE_VAL);
  times.weight = pp_args_number(L, 1, call, "W", 0, HUGE_VAL);
  times.full = pp_args_number_or(L, 1, call, "B", 0, HUGE_VAL, 0);
  times.overlapped = pp_args_number_or(L, 1, call, "FB", 0, HUGE_VAL, 0);
  switch (pp_bubble(&request, &times, &form, &error)) {
    case PP_OK: break;
    case PP_ILLEGAL: return pp_push_illegal(L, &error);
    default: return pp_args_raise(L, call, &error);
  }
  lua_createtable(L, 0, 5);
  set_known(L, "seconds", form.seconds);
  set_known(L, "low", form.low);
  set_known(L, "high", form.high);
  pp_set_boolean(L, "exact", form.exact);
  pp_set_string(L, "conditions", form.conditions);
  return 1;
}

int pp_open_bubble(lua_State *L) {
  lua_pushcfunction(L, bubble);
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_object.c: see schedule_object.h.
*/
#include "lua/schedule_object.h"

#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/class.h"

static const char class_name[] = "pipeplan.schedule";

static int schedule_gc(lua_State *L) {
  pp_schedule_free(luaL_checkudata(L, 1, class_name));
  return 0;
}

void pp_open_schedule_object(lua_State *L, const luaL_Reg *methods) {
  pp_new_class(L, class_name, schedule_gc, methods);
}

pp_schedule *pp_push_schedule(lua_State *L) {
  pp_schedule *schedule = lua_newuserdatauv(L, sizeof *schedule, 0);
  *schedule = (pp_schedule){ 0 };
  luaL_setmetatable(L, class_name);
  return schedule;
}

const pp_schedule *pp_check_schedule(lua_State *L, int index) {
  return luaL_checkudata(L, index, class_name);
}

int pp_check_rank(lua_State *L, const pp_schedule *schedule, int index, const char *call) {
  lua_Integer rank = luaL_checkinteger(L, index);
  if (rank < 0 || rank >= schedule->request.ranks)
    return luaL_error(L, "%s: rank must be 0 … %d, got %I", call, schedule->request.ranks - 1, (LUAI_UACINT)rank);
  return (int)rank;
}

pp_action_range pp_check_range(lua_State *L, const pp_schedule *schedule, int index, const char *call) {
  const int rank = pp_check_rank(L, schedule, index, call);
  const size_t start = schedule->first[rank], count = schedule->first[rank + 1] - start;
  const lua_Integer first = luaL_optinteger(L, index + 1, 1), last = luaL_optinteger(L, index + 2, LUA_MAXINTEGER);
  pp_action_range range = { start, start };
  if (first < 1 || last < 0) luaL_error(L, "%s: places are from 1, got %I to %I", call, (LUAI_UACINT)first, (LUAI_UACINT)last);
  if (first <= last && (size_t)first <= count)
    range = (pp_action_range){ start + (size_t)first - 1, start + ((size_t)last < count ? (size_t)last : count) };
  pp_charge(L, 1 + 8 * (range.end - range.first));
  return range;
}

/* Far more than any legal value stays far more: pp_schedule_check says what the limit is. */
static int as_int(int64_t value) { return value < INT32_MAX ? (int)value : INT32_MAX; }

/* A number, 0 when absent, or "rounds". */
static int check_group(lua_State *L, int index, const char *call) {
  static const char *const rounds[] = { "rounds", NULL };
  const bool is_name = lua_getfield(L, index, "group") == LUA_TSTRING && !lua_isnumber(L, -1);
  lua_pop(L, 1);
  if (!is_name) return as_int(pp_args_integer_or(L, index, call, "group", 0, INT64_MAX, 0));
  pp_args_option(L, index, call, "group", rounds, -1);
  return PP_GROUP_ROUNDS;
}

void pp_check_schedule_request(lua_State *L, int index, const char *call, const char *kind_field, pp_schedule_request *out) {
  const char *names[PP_SCHEDULE_KINDS + 1] = { NULL };
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) names[kind] = pp_schedule_traits_of((pp_schedule_kind)kind)->name;
  pp_schedule_kind kind = (pp_schedule_kind)pp_args_option(L, index, call, kind_field, names, -1);
  int chunks = pp_schedule_traits_of(kind)->chunks;
  *out = (pp_schedule_request){ .kind = kind };
  out->ranks = as_int(pp_args_integer(L, index, call, "ranks", 1, INT64_MAX));
  out->microbatches = as_int(pp_args_integer(L, index, call, "microbatches", 1, INT64_MAX));
  out->chunks = as_int(pp_args_integer_or(L, index, call, "virtual", 1, INT64_MAX, chunks ? chunks : 2));
  out->group = check_group(L, index, call);
  out->limit = as_int(pp_args_integer_or(L, index, call, "limit", 0, INT64_MAX, 0));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule.c: engine.schedule{ kind, ranks, microbatches, virtual?, group?, limit?, released?, F?, I?, W?, p2p? } → a schedule, or nil and
** the broken rule; group is microbatches, or "rounds". Times are for zb_auto, v_half and v_min, which are planned from them; other kinds take
** and ignore them. Also a table:
**   engine.schedule.kinds            list of names
**   engine.schedule.traits(name)     → { name, title, family, placement, virtual (nil: any ≥ 2), chains, copies, split_backward, overlaps,
**                                      needs_kernel }
**   engine.schedule.check{ … }       → true, or nil and the broken rule, without building anything
**   engine.schedule.from_csv(text, { directions? }) → a schedule of kind "csv", or nil and { id, field, message, line?, column? }
** A schedule has methods, listed at the end. Ranks, stages and microbatches are numbered from 0, as everywhere in the field; a list with an
** entry per rank is a Lua list, whose entry [rank + 1] is rank's. Work costs a policy a unit per action it touches, before it is done.
** May longjmp: what the C heap holds for a call hangs on a userdata.
*/
#include "lua/schedule.h"

#include <lauxlib.h>
#include <math.h>

#include "core/schedule_csv.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/results.h"
#include "lua/schedule_object.h"
#include "lua/simulation.h"
#include "lua/verification.h"

static const char construct_call[] = "engine.schedule";
static const char csv_call[] = "engine.schedule.from_csv";

static const char *const placements[] = { "loop", "v", "bidirectional" };
static const char *const action_kinds[] = { "F", "B", "I", "W", "FB" };

/* -- what kinds there are, what is legal ----------------------------------------------------------------------------------------------- */

static void check_arguments(lua_State *L, int index, pp_schedule_request *out) {
  static const char *const known[] = { "kind", "ranks", "microbatches", "virtual", "group", "limit", "released", "F", "I", "W", "p2p", NULL };
  static const char *const times[] = { "F", "I", "W" };
  pp_args_begin(L, index, construct_call, known);
  pp_check_schedule_request(L, index, construct_call, "kind", out);
  for (int k = 0; k < 3; k++) {   /* lists are read once it is known how many stages there are */
    int type = lua_getfield(L, index, times[k]);
    lua_pop(L, 1);
    if (type != LUA_TNIL && type != LUA_TTABLE) pp_args_number(L, index, construct_call, times[k], 0, HUGE_VAL);
  }
  out->released = pp_args_number_or(L, index, construct_call, "released", 0, 1, 0);
  out->p2p = pp_args_number_or(L, index, construct_call, "p2p", 0, HUGE_VAL, 0);
}

/* The times of a request that is legal, so that it says how many stages there are; 1 where none are given. They stay on the stack. */
static void check_plan_times(lua_State *L, int index, pp_schedule_request *out) {
  if (pp_schedule_limit(out) == 0) return;
  int stages = out->ranks * out->chunks;
  pp_charge(L, (uint64_t)stages);
  pp_stage_times *times = lua_newuserdatauv(L, (size_t)stages * (sizeof *times + sizeof(double)), 0);
  double *values = (double *)(void *)(times + stages);
  for (int s = 0; s < stages; s++) times[s] = (pp_stage_times){ 1, 1, 1, 2 };
  if (pp_check_stage_seconds(L, index, construct_call, "F", stages, stages, values))
    for (int s = 0; s < stages; s++) times[s].forward = values[s];
  if (pp_check_stage_seconds(L, index, construct_call, "I", stages, stages, values))
    for (int s = 0; s < stages; s++) times[s].input = values[s];
  if (pp_check_stage_seconds(L, index, construct_call, "W", stages, stages, values))
    for (int s = 0; s < stages; s++) times[s].weight = values[s];
  out->times = times;
}

/* nil and the rule for PP_ILLEGAL, a Lua error for the rest. */
static int answer(lua_State *L, const char *call, pp_status status, const pp_error *error) {
  return status == PP_ILLEGAL ? pp_push_illegal(L, error) : pp_args_raise(L, call, error);
}

static int schedule_check(lua_State *L) {
  pp_schedule_request request;
  pp_error error;
  check_arguments(L, 1, &request);
  pp_status status = pp_schedule_check(&request, &error);
  if (status != PP_OK) return answer(L, construct_call, status, &error);
  lua_pushboolean(L, 1);
  return 1;
}

static int schedule_traits(lua_State *L) {
  int kind = pp_schedule_kind_of(luaL_checkstring(L, 1));
  if (kind < 0) return luaL_error(L, "engine.schedule.traits: no schedule is named '%s'", lua_tostring(L, 1));
  const pp_schedule_traits *traits = pp_schedule_traits_of((pp_schedule_kind)kind);
  lua_createtable(L, 0, 10);
  pp_set_string(L, "name", traits->name);
  pp_set_string(L, "title", traits->title);
  pp_set_string(L, "family", traits->family);
  pp_set_string(L, "placement", placements[traits->placement]);
  if (traits->chunks) pp_set_integer(L, "virtual", traits->chunks);
  pp_set_integer(L, "chains", traits->chains);
  pp_set_integer(L, "copies", traits->copies);
  pp_set_boolean(L, "split_backward", traits->split_backward);
  pp_set_boolean(L, "overlaps", traits->overlaps);
  pp_set_boolean(L, "needs_kernel", traits->needs_kernel);
  return 1;
}

/* -- the object ------------------------------------------------------------------------------------------------------------------------ */

static int schedule_new(lua_State *L) {   /* __call: (engine.schedule, arguments) */
  pp_schedule_request request;
  pp_error error;
  check_arguments(L, 2, &request);
  pp_status status = pp_schedule_check(&request, &error);
  if (status != PP_OK) return answer(L, construct_call, status, &error);
  check_plan_times(L, 2, &request);
  status = pp_schedule_build(&request, pp_push_schedule(L), &error);
  if (status != PP_OK) return answer(L, construct_call, status, &error);
  pp_settle(L);
  return 1;
}

/* from_csv(text, { directions = 2 }?): see schedule_csv.h. The program is as it is written: verify() says what is wrong with it. */
static int schedule_from_csv(lua_State *L) {
  static const char *const known[] = { "directions", NULL };
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  int directions = 1;
  pp_csv_place place;
  pp_error error;
  if (!lua_isnoneornil(L, 2)) {
    pp_args_begin(L, 2, csv_call, known);
    directions = (int)pp_args_integer_or(L, 2, csv_call, "directions", 1, 2, 1);
  }
  pp_status status = pp_schedule_read_csv(text, length, directions, pp_push_schedule(L), &place, &error);
  if (status != PP_OK) {
    int results = answer(L, csv_call, status, &error);
    if (place.line > 0) pp_set_integer(L, "line", (lua_Integer)place.line);
    if (place.column > 0) pp_set_integer(L, "column", (lua_Integer)place.column);
    return results;
  }
  pp_settle(L);
  return 1;
}

/* schedule:info() */
static int schedule_info(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  const pp_schedule_traits *traits = &schedule->traits;
  pp_charge(L, 2 * (uint64_t)schedule->stages);
  lua_createtable(L, 0, 12);
  pp_set_string(L, "kind", traits->name);
  pp_set_boolean(L, "split_backward", traits->split_backward);
  pp_set_boolean(L, "overlaps", traits->overlaps);
  pp_set_integer(L, "ranks", schedule->request.ranks);
  pp_set_integer(L, "microbatches", schedule->request.microbatches);
  pp_set_integer(L, "virtual", schedule->request.chunks);
  pp_set_integer(L, "stages", schedule->stages);
  pp_set_integer(L, "chains", schedule->chains);
  pp_set_integer(L, "chunks_per_rank", schedule->chunks_per_rank);
  int group = pp_schedule_group(&schedule->request);
  if (group > 0) pp_set_integer(L, "group", group);
  if (pp_schedule_limit(&schedule->request) > 0) pp_set_integer(L, "limit", pp_schedule_limit(&schedule->request));
  pp_set_integer(L, "actions", (lua_Integer)schedule->first[schedule->request.ranks]);
  lua_createtable(L, schedule->stages, 0);
  for (int stage = 0; stage < schedule->stages; stage++) {
    lua_pushinteger(L, schedule->rank_of[stage]);
    lua_rawseti(L, -2, stage + 1);
  }
  lua_setfield(L, -2, "placement");
  return 1;
}

/* schedule:actions(rank, first?, last?) */
static int schedule_actions(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  const pp_action_range range = pp_check_range(L, schedule, 2, "schedule:actions");
  lua_createtable(L, (int)(range.end - range.first), 0);
  for (size_t i = range.first; i < range.end; i++) {
    const pp_action *action = &schedule->action[i];
    lua_createtable(L, 0, action->kind == PP_FB ? 5 : 3);
    pp_set_string(L, "kind", action_kinds[action->kind]);
    pp_set_integer(L, "stage", action->stage);
    pp_set_integer(L, "microbatch", action->microbatch);
    if (action->kind == PP_FB) {
      pp_set_integer(L, "stage_b", action->stage_b);
      pp_set_integer(L, "microbatch_b", action->microbatch_b);
    }
    lua_rawseti(L, -2, (lua_Integer)(i - range.first) + 1);
  }
  return 1;
}

/* schedule:csv(rank?): PyTorch's compute-only dialect, a line per rank, without the blanks that stand for waiting; or one rank's line. */
static int schedule_csv(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  luaL_Buffer text;
  int from = 0, to = schedule->request.ranks;
  if (!lua_isnoneornil(L, 2)) {
    from = pp_check_rank(L, schedule, 2, "schedule:csv");
    to = from + 1;
  }
  pp_charge(L, 1 + 24 * (schedule->first[to] - schedule->first[from]));
  luaL_buffinit(L, &text);
  for (int rank = from; rank < to; rank++) {
    for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
      if (i > schedule->first[rank]) luaL_addchar(&text, ',');
      char *room = luaL_prepbuffsize(&text, PP_ACTION_TEXT);
      luaL_addsize(&text, (size_t)pp_action_print(room, PP_ACTION_TEXT, &schedule->action[i]));
    }
    luaL_addchar(&text, '\n');
  }
  luaL_pushresult(&text);
  return 1;
}

/* schedule:peaks(): most chunks held at once on each rank, counted until their W and, as the optimistic bound, until their I. */
static int schedule_peaks(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  size_t stages = (size_t)schedule->stages;
  double *stored = lua_newuserdatauv(L, 2 * stages * sizeof *stored, 0), *pending = stored + stages;
  lua_createtable(L, 0, 2);
  for (int freed_at_i = 0; freed_at_i <= 1; freed_at_i++) {
    for (size_t stage = 0; stage < stages; stage++) {
      stored[stage] = 1;
      pending[stage] = freed_at_i ? 0 : 1;
    }
    lua_createtable(L, schedule->request.ranks, 0);
    for (int rank = 0; rank < schedule->request.ranks; rank++) {
      lua_pushinteger(L, (lua_Integer)pp_schedule_peak(schedule, rank, stored, pending));
      lua_rawseti(L, -2, rank + 1);
    }
    lua_setfield(L, -2, freed_at_i ? "freed_at_i" : "freed_at_w");
  }
  return 1;
}

/* -- verification ---------------------------------------------------------------------------------------------------------------------- */

static const luaL_Reg schedule_methods[] = {
  { "actions",  schedule_actions },
  { "csv",      schedule_csv },
  { "info",     schedule_info },
  { "lowered",  pp_schedule_lowered },
  { "peaks",    schedule_peaks },
  { "receive_buffers", pp_schedule_receive_buffers_method },
  { "simulate", pp_schedule_simulate },
  { "verify",   pp_schedule_verify_method },
  { NULL, NULL }
};

static const luaL_Reg schedule_functions[] = {
  { "check",    schedule_check },
  { "from_csv", schedule_from_csv },
  { "traits",   schedule_traits },
  { NULL, NULL }
};

int pp_open_schedule(lua_State *L) {
  pp_open_schedule_object(L, schedule_methods);
  pp_open_simulation(L);
  luaL_newlib(L, schedule_functions);
  lua_createtable(L, PP_SCHEDULE_KINDS, 0);
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    lua_pushstring(L, pp_schedule_traits_of((pp_schedule_kind)kind)->name);
    lua_rawseti(L, -2, kind + 1);
  }
  lua_setfield(L, -2, "kinds");
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, schedule_new);
  lua_setfield(L, -2, "__call");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  return 1;
}

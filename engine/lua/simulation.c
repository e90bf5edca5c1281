/*
** simulation.c: schedule:simulate{ … }: reads what actions take, runs the simulation, answers with tables. See engine/core/simulate.h.
** May longjmp: what the C heap holds for a call hangs on a workspace that the collector frees.
*/
#include "lua/simulation.h"

#include <lauxlib.h>
#include <math.h>

#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/results.h"
#include "lua/schedule.h"

#define WORKSPACE "pipeplan.workspace"

static const char call[] = "schedule:simulate";

static int workspace_gc(lua_State *L) {
  pp_workspace_free(luaL_checkudata(L, 1, WORKSPACE));
  return 0;
}

pp_workspace *pp_push_workspace(lua_State *L) {
  pp_workspace *workspace = lua_newuserdatauv(L, sizeof *workspace, 0);
  *workspace = (pp_workspace){ 0 };
  luaL_setmetatable(L, WORKSPACE);
  return workspace;
}

void pp_open_workspace(lua_State *L) {
  luaL_newmetatable(L, WORKSPACE);
  lua_pushcfunction(L, workspace_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushboolean(L, 0);   /* scripts see no metatable */
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

bool pp_check_stage_seconds(lua_State *L, int index, const char *caller, const char *name, int stages, int stages_per_chain, double *values) {
  int type = lua_getfield(L, index, name);
  if (type == LUA_TTABLE) {
    lua_Integer length = luaL_len(L, -1);
    if (length != stages && length != stages_per_chain)
      luaL_error(L, "%s: '%s' must have %d numbers, one per stage, got %I", caller, name, stages_per_chain, (LUAI_UACINT)length);
    for (int stage = 0; stage < stages; stage++) {
      lua_geti(L, -1, stage % length + 1);
      values[stage] = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
      lua_pop(L, 1);
      if (!(values[stage] >= 0)) luaL_error(L, "%s: '%s' of stage %d must be seconds ≥ 0", caller, name, stage);
    }
    lua_pop(L, 1);
    return true;
  }
  lua_pop(L, 1);
  if (type == LUA_TNIL) return false;
  double value = pp_args_number(L, index, caller, name, 0, HUGE_VAL);
  for (int stage = 0; stage < stages; stage++) values[stage] = value;
  return true;
}

static bool check_times(lua_State *L, const char *name, const pp_schedule *schedule, double *values) {
  return pp_check_stage_seconds(L, 2, call, name, schedule->stages, schedule->stages_per_chain, values);
}

/* Fills a pp_times from the arguments at index 2; the arrays are in a userdata that stays on the stack. */
static void check_simulation_arguments(lua_State *L, const pp_schedule *schedule, pp_times *out) {
  static const char *const known[] = { "F", "I", "W", "B", "FB", "p2p", "intervals", NULL };
  static const char *const names[] = { "F", "I", "W", "B" };
  bool overlaps = schedule->traits.overlaps;   /* others have no pairs to look up */
  size_t stages = (size_t)schedule->stages, slots = overlaps ? (size_t)schedule->chunks_per_rank : 0;
  pp_args_begin(L, 2, call, known);
  double *values = lua_newuserdatauv(L, stages * (slots + 1) * sizeof *values + stages * sizeof(pp_stage_times), 0);
  double *pair = values + stages;
  pp_stage_times *stage = (pp_stage_times *)(void *)(pair + stages * slots);
  for (int k = 0; k < 4; k++) {
    bool given = check_times(L, names[k], schedule, values);
    if (!given && k < 3) pp_args_number(L, 2, call, names[k], 0, HUGE_VAL);   /* says that it is missing */
    for (size_t s = 0; s < stages; s++) {
      switch (k) {
        case 0: stage[s].forward = values[s]; break;
        case 1: stage[s].input = values[s]; break;
        case 2: stage[s].weight = values[s]; break;
        default: stage[s].full = given ? values[s] : stage[s].input + stage[s].weight; break;
      }
    }
  }
  *out = (pp_times){ .stage = stage, .p2p = pp_args_number_or(L, 2, call, "p2p", 0, HUGE_VAL, 0) };
  if (!check_times(L, "FB", schedule, values) || !overlaps) return;
  for (size_t s = 0; s < stages; s++)
    for (size_t slot = 0; slot < slots; slot++) pair[s * slots + slot] = values[s];
  out->pair = pair;
}

static void push_intervals(lua_State *L, const pp_schedule *schedule, const pp_interval *interval) {
  lua_createtable(L, schedule->request.ranks, 0);
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    size_t count = schedule->first[rank + 1] - schedule->first[rank];
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
      lua_createtable(L, 0, 2);
      pp_set_number(L, "start", interval[schedule->first[rank] + i].start);
      pp_set_number(L, "finish", interval[schedule->first[rank] + i].end);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_rawseti(L, -2, rank + 1);
  }
}

/*
** schedule:simulate{ F, I, W, B?, FB?, p2p?, intervals? }: seconds, each one number or a list with one per stage (FB: of the forward's
** stage). B is by default I + W, FB F + B. → { makespan, max_span, max_idle, min_idle, bubble_fraction, max_idle_fraction, busy, idle, span }
** and with intervals = true, intervals[rank + 1][i] = { start, finish } of the rank's i-th action.
*/
int pp_schedule_simulate(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  pp_times times;
  pp_simulation result;
  pp_error error;
  check_simulation_arguments(L, schedule, &times);
  bool intervals = pp_args_boolean_or(L, 2, call, "intervals", false);
  pp_charge(L, 1 + (uint64_t)(intervals ? 8 : 1) * schedule->first[schedule->request.ranks]);
  pp_workspace *workspace = pp_push_workspace(L);
  pp_status status = pp_simulate_in(schedule, &times, intervals, workspace, &result, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, call, &error);
  lua_createtable(L, 0, 10);
  pp_set_number(L, "makespan", result.makespan);
  pp_set_number(L, "max_span", result.max_span);
  pp_set_number(L, "max_idle", result.max_idle);
  pp_set_number(L, "min_idle", result.min_idle);
  pp_set_number(L, "bubble_fraction", result.bubble_fraction);
  pp_set_number(L, "max_idle_fraction", result.max_idle_fraction);
  pp_set_numbers(L, "busy", result.busy, result.ranks);
  pp_set_numbers(L, "idle", result.idle, result.ranks);
  pp_set_numbers(L, "span", result.span, result.ranks);
  if (intervals) {
    push_intervals(L, schedule, result.interval);
    lua_setfield(L, -2, "intervals");
  }
  pp_workspace_free(workspace);
  return 1;
}

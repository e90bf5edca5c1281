/* SPDX-License-Identifier: Apache-2.0 */
/*
** simulation.c: schedule:simulate{ … } and schedule:lowered{ … }: reads what actions take and which runtime runs them, answers with
** tables. See engine/core/simulate.h, times.h and runtime.h.
** May longjmp: what the C heap holds for a call hangs on a workspace that the collector frees.
*/
#include "lua/simulation.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "core/runtime.h"
#include "core/times.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/class.h"
#include "lua/results.h"
#include "lua/schedule_object.h"

#define WORKSPACE "pipeplan.workspace"
#define LOWERED "pipeplan.lowered"

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

static int lowered_gc(lua_State *L) {
  pp_lowered_free(luaL_checkudata(L, 1, LOWERED));
  return 0;
}

void pp_open_simulation(lua_State *L) {
  pp_new_class(L, WORKSPACE, workspace_gc, NULL);
  pp_new_class(L, LOWERED, lowered_gc, NULL);
}

/* -- numbers by stage and by rank ------------------------------------------------------------------------------------------------------ */

/* The number on top of the stack, at `place` of `what` ("stage", "rank") in the list called `name`; pops it. */
static double pop_number(lua_State *L, const char *caller, const char *name, const char *what, int place) {
  if (lua_type(L, -1) != LUA_TNUMBER)
    luaL_error(L, "%s: '%s' of %s %d must be a number, got %s", caller, name, what, place, luaL_typename(L, -1));
  double value = lua_tonumber(L, -1);
  if (!(value >= 0 && value <= PP_MOST_SECONDS))
    luaL_error(L, "%s: '%s' of %s %d must be a number from 0 to 1e30, got %f", caller, name, what, place, value);
  lua_pop(L, 1);
  return value;
}

static lua_Integer check_length(lua_State *L, const char *caller, const char *name, const char *what, int wanted, int also) {
  lua_Integer length = luaL_len(L, -1);
  if (length != wanted && length != also)
    luaL_error(L, "%s: '%s' must have %d numbers, one per %s, got %I", caller, name, wanted, what, (LUAI_UACINT)length);
  return length;
}

/*
** Fills values[count] from a field of the table at `index` that is one number for all or a list with one per `what`; a list may also have
** only `fewer` numbers, which then repeat. False when the field is absent. Numbers are seconds, bytes or speeds, up to PP_MOST_SECONDS, which
** is PP_MOST_BYTES too; what else seconds and speeds may not be the core says.
*/
static bool read_numbers(lua_State *L, int index, const char *caller, const char *name, const char *what, int count, int fewer,
                         double *values) {
  int type = lua_getfield(L, index, name);
  if (type == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  pp_charge(L, (type == LUA_TTABLE ? 8 : 1) * (uint64_t)count);
  if (type == LUA_TTABLE) {
    lua_Integer length = check_length(L, caller, name, what, fewer, count);
    for (int i = 0; i < count; i++) {
      lua_geti(L, -1, i % length + 1);
      values[i] = pop_number(L, caller, name, what, i);
    }
  } else {
    double value = pp_args_number(L, index, caller, name, 0, PP_MOST_SECONDS);
    for (int i = 0; i < count; i++) values[i] = value;
  }
  lua_pop(L, 1);
  return true;
}

bool pp_check_stage_seconds(lua_State *L, int index, const char *caller, const char *name, int stages, int stages_per_chain, double *values) {
  return read_numbers(L, index, caller, name, "stage", stages, stages_per_chain, values);
}

static bool read_stages(lua_State *L, int index, const char *name, const pp_schedule *schedule, double *values) {
  return pp_check_stage_seconds(L, index, call, name, schedule->stages, schedule->stages_per_chain, values);
}

/* Is FB a list of lists: by the stage that runs forward, then by the slot of the one that runs backward? */
static bool has_matrix(lua_State *L) {
  int top = lua_gettop(L);
  bool matrix = lua_getfield(L, 2, "FB") == LUA_TTABLE && lua_geti(L, -1, 1) == LUA_TTABLE;
  lua_settop(L, top);
  return matrix;
}

/* FB as such; pair may be NULL: it must be right also where it is not used. */
static void read_matrix(lua_State *L, const pp_schedule *schedule, double *pair) {
  int slots = schedule->chunks_per_rank;
  pp_charge(L, 8 * (uint64_t)schedule->stages);
  lua_getfield(L, 2, "FB");
  lua_Integer length = check_length(L, call, "FB", "stage", schedule->stages_per_chain, schedule->stages);
  for (int stage = 0; stage < schedule->stages; stage++) {
    if (lua_geti(L, -1, stage % length + 1) != LUA_TTABLE)
      luaL_error(L, "%s: 'FB' of stage %d must be a list as that of stage 0, got %s", call, stage, luaL_typename(L, -1));
    const int own = pp_schedule_stages_on(schedule, schedule->rank_of[stage]);
    check_length(L, call, "FB", "slot", own, own);
    pp_charge(L, 8 * (uint64_t)own);
    for (int slot = 0; slot < own; slot++) {
      lua_geti(L, -1, slot + 1);
      double value = pop_number(L, call, "FB", "slot", slot);
      if (pair) pair[stage * slots + slot] = value;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Entries of pp_times' pair: none without FB, and none for a schedule that has no pairs. */
static size_t pairs_of(lua_State *L, const pp_schedule *schedule, bool matrix) {
  if (!schedule->traits.overlaps || !pp_args_has(L, 2, "FB")) return 0;
  size_t pairs = (size_t)schedule->stages * (matrix ? (size_t)schedule->chunks_per_rank : 1);
  if (pairs > PP_MAX_ACTIONS) luaL_error(L, "%s: 'FB' of %d stages and %d slots a rank is more than %d pairs", call, schedule->stages,
                                         schedule->chunks_per_rank, PP_MAX_ACTIONS);
  return pairs;
}

/* -- times ----------------------------------------------------------------------------------------------------------------------------- */

/* F, I, W and B of every stage; B is by default I + W. */
static void read_stage_times(lua_State *L, int index, const char *where, const pp_schedule *schedule, double *values, pp_stage_times *times) {
  static const char *const names[] = { "F", "I", "W", "B" };
  for (int k = 0; k < 4; k++) {
    bool given = pp_check_stage_seconds(L, index, where, names[k], schedule->stages, schedule->stages_per_chain, values);
    if (!given && k < 3) pp_args_number(L, index, where, names[k], 0, HUGE_VAL);   /* says that it is missing */
    for (int s = 0; s < schedule->stages; s++) {
      switch (k) {
        case 0: times[s].forward = values[s]; break;
        case 1: times[s].input = values[s]; break;
        case 2: times[s].weight = values[s]; break;
        default: times[s].full = given ? values[s] : times[s].input + times[s].weight; break;
      }
    }
  }
}

/* { F?, I?, W?, B? } of the first or the last stage, beside its layers. */
static pp_stage_times read_extra(lua_State *L, const char *name, const char *where) {
  static const char *const known[] = { "F", "I", "W", "B", NULL };
  pp_stage_times extra = { 0 };
  if (!pp_args_has(L, 2, name)) return extra;
  pp_args_table(L, 2, call, name);
  int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  extra.forward = pp_args_number_or(L, index, where, "F", 0, HUGE_VAL, 0);
  extra.input = pp_args_number_or(L, index, where, "I", 0, HUGE_VAL, 0);
  extra.weight = pp_args_number_or(L, index, where, "W", 0, HUGE_VAL, 0);
  extra.full = pp_args_number_or(L, index, where, "B", 0, HUGE_VAL, extra.input + extra.weight);
  lua_pop(L, 1);
  return extra;
}

/* The field `name` of the table at `index`: true for all stages, or a list with one per stage; the bit is set where it holds. */
static void read_waits(lua_State *L, int index, const char *name, const pp_schedule *schedule, unsigned bit, unsigned *waits) {
  static const char where[] = "schedule:simulate, host.waits";
  if (lua_getfield(L, index, name) != LUA_TTABLE) {
    lua_pop(L, 1);
    if (!pp_args_boolean_or(L, index, where, name, false)) return;
    for (int s = 0; s < schedule->stages; s++) waits[s] |= bit;
    return;
  }
  pp_charge(L, 8 * (uint64_t)schedule->stages);
  const lua_Integer length = check_length(L, where, name, "stage", schedule->stages_per_chain, schedule->stages);
  for (int s = 0; s < schedule->stages; s++) {
    if (lua_geti(L, -1, s % length + 1) != LUA_TBOOLEAN)
      luaL_error(L, "%s: '%s' of stage %d must be a boolean, got %s", where, name, s, luaL_typename(L, -1));
    if (lua_toboolean(L, -1)) waits[s] |= bit;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* F, I, W and B of `name` of the table at `index`, as the seconds of the card; all 0 where it is absent. */
static void read_beyond(lua_State *L, int index, const pp_schedule *schedule, double *values, pp_stage_times *out) {
  memset(out, 0, (size_t)schedule->stages * sizeof *out);
  if (!pp_args_has(L, index, "beyond")) return;
  static const char where[] = "schedule:simulate, host.beyond";
  static const char *const kinds[] = { "F", "I", "W", "B", NULL };
  pp_args_table(L, index, "schedule:simulate, host", "beyond");
  const int table = lua_gettop(L);
  pp_args_begin(L, table, where, kinds);
  read_stage_times(L, table, where, schedule, values, out);
  lua_pop(L, 1);
}

/* host = { F, I, W, B?, beyond = { F, I, W, B? }?, waits = { F?, I?, W?, B? }? }, as the seconds of the card; B is by default I + W. */
static const pp_host_times *read_host(lua_State *L, const pp_schedule *schedule) {
  static const char where[] = "schedule:simulate, host";
  static const char *const known[] = { "F", "I", "W", "B", "beyond", "waits", NULL }, *const kinds[] = { "F", "I", "W", "B", NULL };
  const size_t stages = (size_t)schedule->stages;
  if (!pp_args_has(L, 2, "host")) return NULL;
  pp_host_times *host = lua_newuserdatauv(L, stages * (sizeof *host + sizeof(double) + sizeof(unsigned) + 2 * sizeof(pp_stage_times)), 0);
  pp_stage_times *seconds = (pp_stage_times *)(void *)(host + stages);
  pp_stage_times *beyond = seconds + stages;
  double *values = (double *)(void *)(beyond + stages);
  unsigned *waits = (unsigned *)(void *)(values + stages);
  pp_args_table(L, 2, call, "host");
  const int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  read_stage_times(L, index, where, schedule, values, seconds);
  read_beyond(L, index, schedule, values, beyond);
  memset(waits, 0, stages * sizeof *waits);
  if (pp_args_has(L, index, "waits")) {
    pp_args_table(L, index, where, "waits");
    pp_args_begin(L, index + 1, "schedule:simulate, host.waits", kinds);
    for (unsigned k = 0; k < 4; k++) read_waits(L, index + 1, kinds[k], schedule, 1u << k, waits);
    lua_pop(L, 1);
  }
  for (size_t s = 0; s < stages; s++)
    host[s] = (pp_host_times){ seconds[s], beyond[s], .forward_waits = waits[s] & 1, .input_waits = waits[s] & 2, .weight_waits = waits[s] & 4,
                               .full_waits = waits[s] & 8 };
  lua_pop(L, 1);
  return host;
}

/* p2p: seconds, or { latency, bandwidth, bytes }. */
static double read_hop(lua_State *L) {
  static const char *const known[] = { "latency", "bandwidth", "bytes", NULL };
  static const char where[] = "schedule:simulate, p2p";
  if (lua_getfield(L, 2, "p2p") != LUA_TTABLE) {
    lua_pop(L, 1);
    return pp_args_number_or(L, 2, call, "p2p", 0, HUGE_VAL, 0);
  }
  int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  double bandwidth = pp_args_number(L, index, where, "bandwidth", 0, HUGE_VAL);
  double seconds = pp_hop_seconds(pp_args_number_or(L, index, where, "latency", 0, HUGE_VAL, 0),
                                  pp_args_number(L, index, where, "bytes", 0, HUGE_VAL), bandwidth);
  if (!isfinite(seconds)) luaL_error(L, "%s: 'bandwidth' must be bytes per second > 0, got %f", where, bandwidth);
  lua_pop(L, 1);
  return seconds;
}

/* What actions take, from the arguments at index 2; the arrays are in a userdata that stays on the stack. */
static pp_times read_times(lua_State *L, const pp_schedule *schedule) {
  pp_error error;
  const bool matrix = has_matrix(L);
  size_t stages = (size_t)schedule->stages, ranks = (size_t)schedule->request.ranks, pairs = pairs_of(L, schedule, matrix);
  double *values = lua_newuserdatauv(L, (2 * stages + pairs + ranks) * sizeof *values + stages * sizeof(pp_stage_times), 0);
  double *pair = values + stages, *beside = pair + pairs, *speed = beside + stages;
  pp_stage_times *stage = (pp_stage_times *)(void *)(speed + ranks);
  read_stage_times(L, 2, call, schedule, values, stage);
  if (matrix) read_matrix(L, schedule, pairs > 0 ? pair : NULL);
  else read_stages(L, 2, "FB", schedule, pairs > 0 ? pair : values);   /* must be right also where it is not used */
  pp_time_extras extras = { .first = read_extra(L, "first_stage", "schedule:simulate, first_stage"),
                            .last = read_extra(L, "last_stage", "schedule:simulate, last_stage"),
                            .launch = pp_args_number_or(L, 2, call, "launch", 0, HUGE_VAL, 0) };
  if (read_numbers(L, 2, call, "rank_speed", "rank", (int)ranks, (int)ranks, speed)) extras.rank_speed = speed;
  if (pairs == 0) pair = NULL;
  if (pairs == 0 || matrix) beside = NULL;
  if (pp_times_adjust(schedule, &extras, stage, pair, beside, &error) != PP_OK) pp_args_raise(L, call, &error);
  return (pp_times){ .stage = stage, .pair = pair, .pair_beside = beside, .p2p = read_hop(L), .host = read_host(L, schedule) };
}

/* -- runtime --------------------------------------------------------------------------------------------------------------------------- */

/* The preset, changed by what the arguments say of it. `overlapped`: the seconds of pairs are given. */
static pp_runtime read_runtime(lua_State *L, const char *where, bool overlapped) {
  static const char *const queueing[] = { "one", "per_peer", NULL }, *const pairing[] = { "overlapped", "in_turn", "split", NULL };
  static const char *const receiving[] = { "before_use", "early", NULL };
  const char *names[PP_RUNTIMES + 1] = { NULL };
  for (int kind = 0; kind < PP_RUNTIMES; kind++) names[kind] = pp_runtime_preset((pp_runtime_kind)kind)->name;
  pp_runtime runtime = *pp_runtime_preset((pp_runtime_kind)pp_args_option(L, 2, where, "runtime", names, PP_RUNTIME_IDEAL));
  runtime.queues = (pp_queueing)pp_args_option(L, 2, where, "queues", queueing, (int)runtime.queues);
  runtime.receives = (pp_receiving)pp_args_option(L, 2, where, "receives", receiving, (int)runtime.receives);
  runtime.pairs = (pp_pairing)pp_args_option(L, 2, where, "pairs", pairing, overlapped ? PP_PAIR_OVERLAPPED : (int)runtime.pairs);
  return runtime;
}

/* Its numbers by rank are in a userdata that stays on the stack. */
static pp_hardware read_hardware(lua_State *L, int ranks) {
  static const char *const known[] = { "onset", "slope", "tau", "rank_slope", NULL };
  static const char where[] = "schedule:simulate, heat";
  pp_hardware hardware = { .contention = pp_args_number_or(L, 2, call, "contention", 1, HUGE_VAL, 1) };
  if (!pp_args_has(L, 2, "heat")) return hardware;
  double *slopes = lua_newuserdatauv(L, (size_t)ranks * sizeof *slopes, 0);
  pp_args_table(L, 2, call, "heat");
  int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  hardware.heat_onset = pp_args_number(L, index, where, "onset", 0, HUGE_VAL);
  hardware.heat_slope = pp_args_number(L, index, where, "slope", 0, HUGE_VAL);
  hardware.heat_tau = pp_args_number(L, index, where, "tau", 0, HUGE_VAL);
  if (read_numbers(L, index, where, "rank_slope", "rank", ranks, ranks, slopes)) {
    hardware.rank_slope = slopes;
    hardware.slopes = ranks;
  }
  lua_pop(L, 1);
  return hardware;
}

/* -- memory ---------------------------------------------------------------------------------------------------------------------------- */

/* Most bytes on each rank when what a microbatch stored is freed at W, or already at I. */
static void set_schedule_peaks(lua_State *L, const pp_schedule *schedule, const double *stored, double *pending, double *peaks) {
  for (int freed_at_i = 0; freed_at_i <= 1; freed_at_i++) {
    if (freed_at_i) memset(pending, 0, (size_t)schedule->stages * sizeof *pending);
    for (int rank = 0; rank < schedule->request.ranks; rank++) peaks[rank] = pp_schedule_peak(schedule, rank, stored, pending);
    pp_set_numbers(L, freed_at_i ? "freed_at_i" : "freed_at_w", peaks, schedule->request.ranks);
  }
}

/*
** bytes = { stored, pending?, deferred?, after_weight?, message?, output?, kept?, transient?, transient_forward?,
** transient_input?, transient_weight? }: adds the field peak_bytes to the table on top of the stack. pending and deferred are by default stored, output is a
** message, kept the output, all else 0.
*/
static void set_peak_bytes(lua_State *L, const pp_schedule *schedule, const pp_runtime *runtime) {
  enum { STORED, PENDING, DEFERRED, AFTER_WEIGHT, MESSAGE, OUTPUT, KEPT, TRANSIENT, NAMES = TRANSIENT + PP_TRANSIENTS };
  static const char *const known[NAMES + 1] = {
    "stored", "pending", "deferred", "after_weight", "message", "output", "kept",
    [TRANSIENT + PP_TRANSIENT_F] = "transient_forward", [TRANSIENT + PP_TRANSIENT_B] = "transient",
    [TRANSIENT + PP_TRANSIENT_I] = "transient_input", [TRANSIENT + PP_TRANSIENT_W] = "transient_weight"
  };
  static const char where[] = "schedule:simulate, bytes";
  int ranks = schedule->request.ranks;
  size_t stages = (size_t)schedule->stages;
  pp_error error;
  pp_args_table(L, 2, call, "bytes");
  int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  pp_stage_bytes *bytes = lua_newuserdatauv(L, stages * sizeof *bytes + (NAMES * stages + (size_t)ranks) * sizeof(double), 0);
  double *values[NAMES], *peaks = (double *)(void *)(bytes + stages);
  for (int k = 0; k < NAMES; k++, peaks += stages) {
    values[k] = peaks;
    if (read_stages(L, index, known[k], schedule, values[k])) continue;
    if (k == STORED) pp_args_number(L, index, where, "stored", 0, HUGE_VAL);   /* says that it is missing */
    int as = k == PENDING || k == DEFERRED ? STORED : k == OUTPUT ? MESSAGE : k == KEPT ? OUTPUT : k;   /* what was read before it */
    if (as < k) memcpy(values[k], values[as], stages * sizeof(double));
    else memset(values[k], 0, stages * sizeof(double));
  }
  for (size_t s = 0; s < stages; s++) {
    bytes[s] = (pp_stage_bytes){ .stored = values[STORED][s], .pending = values[PENDING][s], .deferred = values[DEFERRED][s],
                                 .after_weight = values[AFTER_WEIGHT][s],
                                 .message = values[MESSAGE][s], .output = values[OUTPUT][s], .kept = values[KEPT][s] };
    for (int k = 0; k < PP_TRANSIENTS; k++) bytes[s].transient[k] = values[TRANSIENT + k][s];
  }
  lua_createtable(L, 0, 4);
  set_schedule_peaks(L, schedule, values[STORED], values[PENDING], peaks);
  if (pp_runtime_peaks(schedule, runtime, bytes, peaks, &error) == PP_OK) pp_set_numbers(L, "runtime", peaks, ranks);
  else if (runtime->kind != PP_RUNTIME_IDEAL) pp_set_string(L, "runtime_unknown", error.message);
  lua_setfield(L, index - 1, "peak_bytes");
  lua_settop(L, index - 1);
}

/* -- the methods ----------------------------------------------------------------------------------------------------------------------- */

static void push_interval(lua_State *L, const pp_simulation *result, const pp_action *action, size_t number) {
  const bool in_turn = result->between && action->kind == PP_FB;
  lua_createtable(L, 0, in_turn ? 4 : 2);
  pp_set_number(L, "start", result->interval[number].start);
  pp_set_number(L, "finish", result->interval[number].end);
  if (!in_turn) return;
  pp_set_number(L, "forward_finish", result->between[number].start);
  pp_set_number(L, "backward_start", result->between[number].end);
}

/* Of the rank's actions first … last, from 0: a list. */
static void push_intervals_of(lua_State *L, const pp_schedule *schedule, const pp_simulation *result, pp_action_range range) {
  lua_createtable(L, (int)(range.end - range.first), 0);
  for (size_t i = range.first; i < range.end; i++) {
    push_interval(L, result, &schedule->action[i], i);
    lua_rawseti(L, -2, (lua_Integer)(i - range.first) + 1);
  }
}

static void push_intervals(lua_State *L, const pp_schedule *schedule, const pp_simulation *result) {
  lua_createtable(L, schedule->request.ranks, 0);
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    push_intervals_of(L, schedule, result, (pp_action_range){ schedule->first[rank], schedule->first[rank + 1] });
    lua_rawseti(L, -2, rank + 1);
  }
}

/* result.intervals_of(rank, first?, last?). Upvalues: the schedule, the results, and the workspace that they point into. */
static int intervals_of(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, lua_upvalueindex(1));
  const pp_simulation *result = lua_touserdata(L, lua_upvalueindex(2));
  push_intervals_of(L, schedule, result, pp_check_range(L, schedule, 1, "intervals_of"));
  return 1;
}

/* The function, in the place of the workspace on top of the stack. */
static void push_intervals_function(lua_State *L, const pp_simulation *result) {
  lua_pushvalue(L, 1);
  *(pp_simulation *)lua_newuserdatauv(L, sizeof *result, 0) = *result;
  lua_rotate(L, -3, -1);
  lua_pushcclosure(L, intervals_of, 3);
}

static void push_simulation(lua_State *L, const pp_simulation *result, bool hosted) {
  lua_createtable(L, 0, 13);
  pp_set_number(L, "makespan", result->makespan);
  pp_set_number(L, "max_span", result->max_span);
  pp_set_number(L, "max_idle", result->max_idle);
  pp_set_number(L, "min_idle", result->min_idle);
  pp_set_number(L, "span_bubble", result->span_bubble);
  pp_set_number(L, "bubble_fraction", result->bubble_fraction);
  pp_set_number(L, "max_idle_fraction", result->max_idle_fraction);
  pp_set_number(L, "span_bubble_fraction", result->span_bubble_fraction);
  pp_set_numbers(L, "busy", result->busy, result->ranks);
  pp_set_numbers(L, "idle", result->idle, result->ranks);
  pp_set_numbers(L, "span", result->span, result->ranks);
  if (hosted) pp_set_numbers(L, "host_wait", result->host_wait, result->ranks);
}

/* Runs it. What *out points to hangs on the workspace. */
static pp_status run(const pp_schedule *schedule, const pp_times *times, const pp_runtime *runtime, const pp_hardware *hardware,
                     bool intervals, pp_workspace *workspace, pp_simulation *out, pp_error *error) {
  if (runtime->kind == PP_RUNTIME_IDEAL && hardware->contention <= 1 && !(hardware->heat_slope > 0))
    return pp_simulate_in(schedule, times, intervals, workspace, out, error);
  pp_status status = pp_runtime_simulate(schedule, times, runtime, hardware, intervals, out, error);
  if (status == PP_OK) *workspace = (pp_workspace){ .memory = out->busy };   /* where the one allocation of the results begins */
  return status;
}

/*
** schedule:simulate{ F, I, W, B?, FB?, first_stage?, last_stage?, rank_speed?, launch?, p2p?, bytes?, runtime?, queues?, receives?, pairs?,
** contention?, heat?, host?, intervals?, intervals_of? }. Times are seconds, each one number or a list with one per stage; B is by default I + W, FB F + B.
** → { makespan, max_span, max_idle, min_idle, span_bubble, bubble_fraction, max_idle_fraction, span_bubble_fraction, busy, idle, span },
** with host = { F, I, W, B?, waits? } also host_wait, with bytes also peak_bytes, and with intervals = true intervals[rank + 1][i] = { start, finish } of the rank's i-th action; of a pair whose
** halves the runtime runs in turn also { forward_finish, backward_start }. With intervals_of = true instead intervals_of(rank, first?, last?),
** a list of those of some of a rank's actions: a table for each action takes ten times the memory that they do.
*/
int pp_schedule_simulate(lua_State *L) {
  static const char *const known[] = { "F", "I", "W", "B", "FB", "first_stage", "last_stage", "rank_speed", "launch", "p2p", "bytes",
                                       "runtime", "queues", "receives", "pairs", "contention", "heat", "host", "intervals", "intervals_of", NULL };
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  pp_simulation result;
  pp_error error;
  pp_args_begin(L, 2, call, known);
  pp_times times = read_times(L, schedule);
  pp_runtime runtime = read_runtime(L, call, times.pair != NULL);
  pp_hardware hardware = read_hardware(L, schedule->request.ranks);
  const bool intervals = pp_args_boolean_or(L, 2, call, "intervals", false);
  const bool by_piece = pp_args_boolean_or(L, 2, call, "intervals_of", false);
  pp_workspace *workspace = pp_push_workspace(L);
  pp_status status = run(schedule, &times, &runtime, &hardware, intervals || by_piece, workspace, &result, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, call, &error);
  push_simulation(L, &result, times.host != NULL);
  if (intervals) {
    push_intervals(L, schedule, &result);
    lua_setfield(L, -2, "intervals");
  }
  if (by_piece) {
    lua_pushvalue(L, -2);
    push_intervals_function(L, &result);
    lua_setfield(L, -2, "intervals_of");
  } else {
    pp_workspace_free(workspace);
  }
  if (pp_args_has(L, 2, "bytes")) set_peak_bytes(L, schedule, &runtime);
  return 1;
}

/* Half of a pair as the action it would be by itself. */
static pp_action half_of(const pp_action *pair, bool forward) {
  if (forward) return (pp_action){ .kind = PP_F, .stage = pair->stage, .microbatch = pair->microbatch };
  return (pp_action){ .kind = PP_B, .stage = pair->stage_b, .microbatch = pair->microbatch_b };
}

static void add_step(luaL_Buffer *text, const pp_schedule *schedule, const pp_lowered *lowered, const pp_step *step, bool first) {
  if (step->kind == PP_STEP_WAIT) return;
  uint32_t count = step->kind == PP_STEP_POST ? lowered->batch[step->index].count : 1;
  pp_spend(24 * (uint64_t)count);
  for (uint32_t i = 0; i < count; i++) {
    if (!first || i > 0) luaL_addchar(text, ',');
    char *room = luaL_prepbuffsize(text, PP_ACTION_TEXT);
    if (step->kind == PP_STEP_POST) {
      int length = pp_message_end_print(room, PP_ACTION_TEXT, &lowered->end[lowered->batch[step->index].first + i]);
      luaL_addsize(text, (size_t)length);
    } else {
      pp_action action = schedule->action[step->index];
      if (step->kind != PP_STEP_ACTION) action = half_of(&action, step->kind == PP_STEP_FORWARD);
      luaL_addsize(text, (size_t)pp_action_print(room, PP_ACTION_TEXT, &action));
    }
  }
}

/*
** schedule:lowered{ runtime, queues?, receives?, pairs? } → text: what each rank issues, a line a rank, in PyTorch's compute_comms dialect;
** or nil and the broken rule.
*/
int pp_schedule_lowered(lua_State *L) {
  static const char *const known[] = { "runtime", "queues", "receives", "pairs", NULL };
  static const char where[] = "schedule:lowered";
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  pp_error error;
  luaL_Buffer text;
  pp_args_begin(L, 2, where, known);
  pp_args_string(L, 2, where, "runtime");
  pp_runtime runtime = read_runtime(L, where, false);
  pp_lowered *lowered = lua_newuserdatauv(L, sizeof *lowered, 0);
  *lowered = (pp_lowered){ 0 };
  luaL_setmetatable(L, LOWERED);
  pp_status status = pp_runtime_lower(schedule, &runtime, lowered, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, where, &error);
  luaL_buffinit(L, &text);
  for (int rank = 0; rank < lowered->ranks; rank++) {
    for (size_t i = lowered->first[rank]; i < lowered->last[rank]; i++)
      add_step(&text, schedule, lowered, &lowered->step[i], i == lowered->first[rank]);
    luaL_addchar(&text, '\n');
  }
  luaL_pushresult(&text);
  pp_lowered_free(lowered);
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** search_open.c: engine.search{…}: reading the arguments of a search. May longjmp.
*/
#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "lua/arguments.h"
#include "lua/conditions.h"
#include "lua/recipe.h"
#include "lua/search_object.h"
#include "lua/shape.h"

static const char search_call[] = "engine.search";

static int degree(lua_State *L, int index, const char *name) {
  return (int)pp_args_integer_or(L, index, "engine.search: fixed", name, 1, 1 << 24, 0);
}

static void check_layers_per_stage(lua_State *L, int index, pp_lua_search *self) {
  if (lua_getfield(L, index, "layers_per_stage") == LUA_TTABLE) {
    size_t stages = (size_t)lua_rawlen(L, -1);
    if (stages < 1 || stages > PP_MAX_LAYERS) luaL_error(L, "%s: 'layers_per_stage' has %d entries", search_call, (int)stages);
    pp_check_layers(L, -1, search_call, (int)stages, self->layers_per_stage);
    self->space.fixed.stages = (int)stages;
  } else if (!lua_isnil(L, -1)) {
    luaL_error(L, "%s: 'layers_per_stage' must be a list, got %s", search_call, luaL_typename(L, -1));
  }
  lua_pop(L, 1);
}

static void check_fixed(lua_State *L, pp_lua_search *self) {
  static const char *const known[] = { "tensor", "context", "expert", "expert_tensor", "data", "pipeline", "virtual", "microbatches",
                                       "schedule", "layers_per_stage", NULL };
  pp_fixed *fixed = &self->space.fixed;
  const char *name;
  int index;
  *fixed = (pp_fixed){ .kind = PP_SCHEDULE_KINDS };
  if (!pp_args_has(L, 1, "fixed")) return;
  pp_args_table(L, 1, search_call, "fixed");
  index = lua_gettop(L);
  pp_args_begin(L, index, "engine.search: fixed", known);
  fixed->tensor = degree(L, index, "tensor");
  fixed->context = degree(L, index, "context");
  fixed->expert = degree(L, index, "expert");
  fixed->expert_tensor = degree(L, index, "expert_tensor");
  fixed->data = degree(L, index, "data");
  fixed->pipeline = degree(L, index, "pipeline");
  fixed->configured_virtual = (int)pp_args_integer_or(L, index, "engine.search: fixed", "virtual", 1, PP_MAX_LAYERS, 0);
  fixed->microbatches = pp_args_integer_or(L, index, "engine.search: fixed", "microbatches", 1, INT32_MAX, 0);
  name = pp_args_string_or(L, index, "engine.search: fixed", "schedule", NULL);
  if (name && strcmp(name, "none") != 0) {
    fixed->kind = pp_schedule_kind_of(name);
    if (fixed->kind < 0) luaL_error(L, "%s: fixed: no schedule is called '%s'", search_call, name);
  }
  check_layers_per_stage(L, index, self);
  lua_pop(L, 1);
}

/* A list of schedule names: set[kind] for each of them. */
static void check_schedules(lua_State *L, const char *field, bool set[PP_SCHEDULE_KINDS]) {
  pp_args_table(L, 1, search_call, field);
  for (lua_Integer i = 1; i <= (lua_Integer)lua_rawlen(L, -1); i++) {
    const char *name;
    int kind;
    lua_rawgeti(L, -1, i);
    name = luaL_checkstring(L, -1);
    kind = pp_schedule_kind_of(name);
    if (kind < 0) luaL_error(L, "%s: no schedule is called '%s'", search_call, name);
    set[kind] = true;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* The argument layers = { schedule = rule }: how the stages of a schedule get their layers. */
static void check_layer_rules(lua_State *L, pp_layer_rule rule[PP_SCHEDULE_KINDS]) {
  static const char *const names[PP_LAYER_RULES] = {
    [PP_LAYERS_ANY] = "any", [PP_LAYERS_EVEN] = "even", [PP_LAYERS_REMAINDER_FIRST] = "remainder_first", [PP_LAYERS_EVEN_ENDS] = "even_ends"
  };
  pp_args_table(L, 1, search_call, "layers");
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    int kind = lua_type(L, -2) == LUA_TSTRING ? pp_schedule_kind_of(lua_tostring(L, -2)) : -1, found = 0;
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (kind < 0) luaL_error(L, "%s: 'layers' must hold rules by schedule", search_call);
    while (found < PP_LAYER_RULES && strcmp(names[found], name) != 0) found++;
    if (found == PP_LAYER_RULES) luaL_error(L, "%s: 'layers' must be any, even, remainder_first or even_ends, got '%s'", search_call, name);
    rule[kind] = (pp_layer_rule)found;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void check_space(lua_State *L, pp_lua_search *self) {
  pp_candidate_space *space = &self->space;
  space->model = &self->model;
  space->gpus = pp_args_integer(L, 1, search_call, "gpus", 1, 1 << 24);
  space->global_batch = pp_args_integer(L, 1, search_call, "global_batch", 1, (int64_t)1 << 53);
  space->smallest_batch = pp_args_integer_or(L, 1, search_call, "smallest_batch", 1, space->global_batch, space->global_batch);
  space->micro_batch = self->training.micro_batch;
  space->scale_up_gpus = (int)pp_args_integer(L, 1, search_call, "scale_up_gpus", 1, 1 << 24);
  space->max_tensor = (int)pp_args_integer_or(L, 1, search_call, "max_tensor", 1, 1 << 16, 64);
  space->max_context = (int)pp_args_integer_or(L, 1, search_call, "max_context", 1, 1 << 24, 1);
  space->experts_as_tensor = pp_args_boolean_or(L, 1, search_call, "experts_as_tensor", false);
  space->experts_apart = pp_args_boolean_or(L, 1, search_call, "experts_apart", false);
  space->rounds = pp_args_boolean_or(L, 1, search_call, "rounds", false);
  space->max_chunks = (int)pp_args_integer_or(L, 1, search_call, "max_virtual", 1, PP_MAX_LAYERS, 8);
  check_schedules(L, "schedules", space->planned);
  check_fixed(L, self);
}

/* The argument kernel_latency = { name = seconds }. Symbols are compared for equality only, so that the order does not matter. */
static void check_latencies(lua_State *L, pp_lua_search *self) {
  if (!pp_args_has(L, 1, "kernel_latency")) return;
  pp_args_table(L, 1, search_call, "kernel_latency");
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    double seconds = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : -1;
    if (lua_type(L, -2) != LUA_TSTRING || !(seconds >= 0 && seconds <= 1e6))
      luaL_error(L, "%s: 'kernel_latency' must hold seconds by name", search_call);
    if (self->latencies == PP_MAX_LATENCIES) luaL_error(L, "%s: more than %d kernels", search_call, PP_MAX_LATENCIES);
    self->latency[self->latencies++] = (pp_kernel_latency){ pp_value(L, -2), seconds };
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void pp_lua_search_keep(lua_State *L, int index) {
  lua_getiuservalue(L, index, 2);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 2);
}

/* The argument choices, or the one that the other arguments make. The search is at index 2; the result is left on the stack. */
static pp_search_choice *check_choices(lua_State *L, pp_lua_search *self, const pp_problem *problem, int *count) {
  pp_search_choice *choice;
  pp_training *training = NULL;
  *count = 0;
  if (pp_args_has(L, 1, "choices")) {
    pp_args_table(L, 1, search_call, "choices");
    *count = (int)lua_rawlen(L, -1);
    if (*count < 1 || *count > PP_MAX_CHOICES) luaL_error(L, "%s: 'choices' has %d entries", search_call, *count);
    training = lua_newuserdatauv(L, (size_t)*count * sizeof *training, 0);
    pp_lua_search_keep(L, 2);
  }
  choice = lua_newuserdatauv(L, (size_t)(*count + 1) * sizeof *choice, 0);
  *choice = (pp_search_choice){ *problem, self->space };
  for (int i = 0; i < *count; i++) {
    static const char *const known[] = { "training", "gpus", "alone", NULL };
    lua_rawgeti(L, -2, i + 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    const int entry = lua_gettop(L);
    pp_args_begin(L, entry, "engine.search: choices", known);
    pp_args_table(L, entry, "engine.search: choices", "training");
    pp_check_training(L, -1, &training[i]);
    choice[i] = (pp_search_choice){ *problem, self->space };
    choice[i].problem.training = &training[i];
    choice[i].space.micro_batch = training[i].micro_batch;
    choice[i].space.gpus = pp_args_integer_or(L, entry, "engine.search: choices", "gpus", 1, self->space.gpus, self->space.gpus);
    choice[i].space.alone = pp_args_boolean_or(L, entry, "engine.search: choices", "alone", false);
    lua_pop(L, 2);
  }
  if (*count == 0) *count = 1;
  return choice;
}

static pp_search_symbols symbols_of(lua_State *L) {
  pp_search_symbols symbols;
  lua_pushliteral(L, "none");
  symbols.schedule[0] = symbols.family[0] = pp_value(L, -1);
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    const pp_schedule_traits *traits = pp_schedule_traits_of((pp_schedule_kind)kind);
    lua_pushstring(L, traits->name);
    symbols.schedule[kind + 1] = pp_value(L, -1);
    lua_pushstring(L, traits->family);
    symbols.family[kind + 1] = pp_value(L, -1);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  return symbols;
}

/* Counts what an open search holds. Collects once they hold twice what was left of them, and more than most plans ever take. */
static void hold(lua_State *L, pp_lua_search *self) {
  static const size_t unnoticed = (size_t)64 << 20;
  pp_held *held = lua_touserdata(L, lua_upvalueindex(1));
  self->held = pp_search_bytes(&self->search);
  held->bytes += self->held;
  if (held->bytes <= unnoticed + 2 * held->settled) return;
  lua_gc(L, LUA_GCCOLLECT);
  held->settled = held->bytes;
}

/*
** engine.search{ … } → candidates. What it takes, with limits and defaults, is described in stdlib/meta/generate/search.lua; a test compares.
** With `choices` the candidates are those of each recipe and number of GPUs in turn, of one that is `alone` those without a pipeline, and
** `training` is read for nothing else. A day of the run is one of all `gpus`, whatever a choice uses.
** Batches are in sequences. device.hides_alltoall does not matter, each candidate's alltoall_kernel does, with its latency;
** device.alltoall_latency is that of candidates without one, and of kernels that kernel_latency lacks. Stages get their layers by
** the rule in `layers` (core/price.h) where that gives a split, others are balanced by time.
*/
int pp_lua_search_make(lua_State *L) {
  static const char *const known[] = { "model", "training", "device", "network", "gpus", "global_batch", "smallest_batch", "scale_up_gpus",
                                       "usable_bytes", "overhead_bytes", "communicators", "hop_waiting", "step_overhead_seconds", "schedules", "layers", "fixed",
                                       "max_tensor", "max_context", "max_virtual", "kernel_latency", "rounds", "experts_as_tensor", "experts_apart", "profile",
                                       "split_tie", "split_gain", "split_overfull", "run_days_per_second", "price_per_gpu_hour", "choices", NULL };
  pp_lua_search *self;
  pp_search_symbols symbols;
  pp_problem problem;
  pp_search_choice *choice;
  int choices;
  pp_error error;
  lua_remove(L, 1);  /* the module table that is called */
  pp_args_begin(L, 1, search_call, known);
  lua_settop(L, 1);
  luaL_checkstack(L, 16, search_call);
  self = lua_newuserdatauv(L, sizeof *self, 2);
  memset(self, 0, sizeof *self);
  luaL_setmetatable(L, PP_SEARCH_TYPE);
  lua_newtable(L);
  lua_setiuservalue(L, 2, 1);
  lua_newtable(L);
  lua_setiuservalue(L, 2, 2);
  pp_args_table(L, 1, search_call, "model");
  pp_check_shape(L, 3, &self->model);
  pp_args_table(L, 1, search_call, "training");
  pp_check_training(L, 4, &self->training);
  pp_args_table(L, 1, search_call, "device");
  pp_check_device(L, 5, &self->device);
  pp_args_table(L, 1, search_call, "network");
  pp_check_network(L, 6, &self->network);
  self->usable_bytes = pp_args_number(L, 1, search_call, "usable_bytes", 0, HUGE_VAL);
  check_space(L, self);
  problem = (pp_problem){
    .model = &self->model, .training = &self->training, .device = &self->device, .network = &self->network,
    .usable_bytes = self->usable_bytes, .layers_per_stage = self->layers_per_stage, .given_stages = self->space.fixed.stages,
    .overhead_bytes = pp_args_number_or(L, 1, search_call, "overhead_bytes", 0, HUGE_VAL, 0),
    .hop_waiting = pp_args_number_or(L, 1, search_call, "hop_waiting", 0, 1, 0),
    .step_overhead_seconds = pp_args_number_or(L, 1, search_call, "step_overhead_seconds", 0, HUGE_VAL, 0),
    .split_tie = pp_args_number_or(L, 1, search_call, "split_tie", 0, 1, 0),
    .split_gain = pp_args_number_or(L, 1, search_call, "split_gain", 0, 1, 0),
    .split_overfull = pp_args_number_or(L, 1, search_call, "split_overfull", 0, 10, 0),
    .run_days_per_second = pp_args_number_or(L, 1, search_call, "run_days_per_second", 0, HUGE_VAL, NAN),
    .price_per_gpu_hour = pp_args_number_or(L, 1, search_call, "price_per_gpu_hour", 0, HUGE_VAL, NAN),
    .gpu_hours_per_day = 24.0 * (double)self->space.gpus
  };
  if (pp_args_has(L, 1, "profile")) {
    pp_args_table(L, 1, search_call, "profile");
    pp_check_profile(L, -1, &self->profile);
    lua_pop(L, 1);
    problem.profile = &self->profile.measured;
    problem.rank_speed = self->profile.rank_speed;
    problem.speeds = self->profile.speeds;
    problem.runtime = self->profile.runtime;
    problem.hardware = self->profile.hardware;
    problem.buffered_messages = self->profile.buffered_messages;
  }
  pp_check_communicators(L, 1, search_call, &problem.communicators);
  if (pp_args_has(L, 1, "layers")) check_layer_rules(L, problem.layer_rule);
  check_latencies(L, self);
  symbols = symbols_of(L);
  choice = check_choices(L, self, &problem, &choices);
  if (pp_search_open(choice, choices, self->latency, self->latencies, &symbols, &self->search, &error) != PP_OK)
    return pp_args_raise(L, search_call, &error);
  lua_settop(L, 2);
  hold(L, self);
  return 1;
}

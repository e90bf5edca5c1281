/*
** search.c: engine.search{…} → candidates: a table of columns, and masks over its rows. May longjmp.
*/
#include "lua/search.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/search.h"
#include "lua/arguments.h"
#include "lua/conditions.h"
#include "lua/evaluation.h"
#include "lua/masks.h"
#include "lua/profile.h"
#include "lua/recipe.h"
#include "lua/shape.h"

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
} pp_lua_search;

static const char search_type[] = "pipeplan.candidates";
static const char search_call[] = "engine.search";

/* The search at index 1. */
static pp_lua_search *check_search(lua_State *L) {
  return luaL_checkudata(L, 1, search_type);
}

static size_t row_count(const pp_lua_search *self) {
  return self->search.candidates.count;
}

/* The candidate number at index 2, from 0. */
static size_t check_row(lua_State *L, const pp_lua_search *self) {
  lua_Integer row = luaL_checkinteger(L, 2);
  if (row < 1 || (lua_Unsigned)row > row_count(self))
    luaL_error(L, "candidate %d does not exist: there are %d", (int)row, (int)row_count(self));
  return (size_t)row - 1;
}

/* ---------------------------------------------------------------------------------------------------------------------- construction */

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

/* Keeps the block on top of the stack for as long as the search lives, and pops it. */
static void keep_block(lua_State *L, int index) {
  lua_getiuservalue(L, index, 2);
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 2);
}

/* The argument choices, or the one that the other arguments make. The search is at index 2; the result is left on the stack. */
static pp_search_choice *check_choices(lua_State *L, pp_lua_search *self, const pp_problem *problem, int *count) {
  pp_search_choice *choice;
  pp_training *training;
  *count = 0;
  if (pp_args_has(L, 1, "choices")) {
    pp_args_table(L, 1, search_call, "choices");
    *count = (int)lua_rawlen(L, -1);
    if (*count < 1 || *count > PP_MAX_CHOICES) luaL_error(L, "%s: 'choices' has %d entries", search_call, *count);
    training = lua_newuserdatauv(L, (size_t)*count * sizeof *training, 0);
    keep_block(L, 2);
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

/*
** engine.search{ model, training, device, network, gpus, global_batch, smallest_batch = global_batch, scale_up_gpus, usable_bytes,
**   overhead_bytes = 0, communicator_bytes = 0, hop_waiting = 0, step_overhead_seconds = 0, split_tie = 0, split_gain = 0, split_overfull = 0, schedules = { names },
**   layers = { schedule = rule }, max_tensor = 64, max_context = 1, max_virtual = 8, rounds = false (groups of microbatches as PyTorch makes
**   them), experts_as_tensor = false (expert TP, where it is not fixed, is TP), kernel_latency = { name = seconds }, fixed = { tensor,
**   context, expert, expert_tensor, data, pipeline, virtual, microbatches, schedule, layers_per_stage }, profile,
**   run_days_per_second (days of the run for a second of its step), price_per_gpu_hour, choices = { { training, gpus = gpus, alone = false }, … } } → candidates
** With `choices` the candidates are those of each recipe and number of GPUs in turn, of one that is `alone` those without a pipeline, and
** `training` is read for nothing else. A day of the run is one of all `gpus`, whatever a choice uses.
** Batches are in sequences. device.hides_alltoall does not matter, each candidate's alltoall_kernel does, with its latency;
** device.alltoall_latency is that of candidates without one, and of kernels that kernel_latency lacks. Stages get their layers by
** the rule in `layers` ("any", "even", "remainder_first", "even_ends": core/price.h) where that gives a split, others are balanced by time.
*/
static int search_open(lua_State *L) {
  static const char *const known[] = { "model", "training", "device", "network", "gpus", "global_batch", "smallest_batch", "scale_up_gpus",
                                       "usable_bytes", "overhead_bytes", "communicator_bytes", "hop_waiting", "step_overhead_seconds", "schedules", "layers", "fixed",
                                       "max_tensor", "max_context", "max_virtual", "kernel_latency", "rounds", "experts_as_tensor", "profile",
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
  luaL_setmetatable(L, search_type);
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
    .communicator_bytes = pp_args_number_or(L, 1, search_call, "communicator_bytes", 0, HUGE_VAL, 0),
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
  if (pp_args_has(L, 1, "layers")) check_layer_rules(L, problem.layer_rule);
  check_latencies(L, self);
  symbols = symbols_of(L);
  choice = check_choices(L, self, &problem, &choices);
  if (pp_search_open(choice, choices, self->latency, self->latencies, &symbols, &self->search, &error) != PP_OK)
    return pp_args_raise(L, search_call, &error);
  lua_settop(L, 2);
  return 1;
}

static int search_gc(lua_State *L) {
  pp_search_free(&check_search(L)->search);
  return 0;
}

static int search_length(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)row_count(check_search(L)));
  return 1;
}

/* ---------------------------------------------------------------------------------------------------------------------------- columns */

static int column_of_name(const char *name) {
  for (int i = 0; i < PP_COLUMNS; i++)
    if (strcmp(pp_search_column_names[i], name) == 0) return i;
  return -1;
}

static pp_fact *fact_of_name(pp_lua_search *self, const char *name) {
  for (size_t i = 0; i < self->facts; i++)
    if (strcmp(self->fact[i].name, name) == 0) return &self->fact[i];
  return NULL;
}

/* A column, a fact, or absent: names were checked when the policy was loaded. */
static bool resolve(void *context, const char *field, pp_column *out) {
  static const double absent = NAN;
  pp_lua_search *self = context;
  const pp_fact *fact;
  int column = column_of_name(field);
  if (column >= 0) *out = (pp_column){ self->search.column[column], false };
  else if ((fact = fact_of_name(self, field)) != NULL) *out = (pp_column){ fact->values ? fact->values : &fact->value, !fact->values };
  else *out = (pp_column){ &absent, true };
  return true;
}

/* [rows]: of each the value of its choice in the list at index 3. */
static const double *spread(lua_State *L, const pp_lua_search *self) {
  const size_t rows = row_count(self);
  double value[PP_MAX_CHOICES], *values;
  if ((int)lua_rawlen(L, 3) != self->search.choices)
    luaL_error(L, "candidates:set: %d values for %d choices", (int)lua_rawlen(L, 3), self->search.choices);
  for (int i = 0; i < self->search.choices; i++) {
    lua_rawgeti(L, 3, i + 1);
    value[i] = pp_value(L, -1);
    lua_pop(L, 1);
  }
  values = lua_newuserdatauv(L, (rows + 1) * sizeof *values, 0);
  keep_block(L, 1);
  for (size_t row = 0; row < rows; row++) values[row] = value[self->search.candidates.candidate[row].choice];
  return values;
}

/* The kernel of all rows, or by a list of { name, mask } of those of each mask; later ones win. */
static int set_kernels(lua_State *L, pp_lua_search *self, bool list, double value) {
  const size_t rows = row_count(self);
  double *kernel = self->search.column[PP_COLUMN_KERNEL];
  pp_error error;
  for (size_t row = 0; !list && row < rows; row++) kernel[row] = value;
  for (lua_Integer i = 1; list && i <= (lua_Integer)lua_rawlen(L, 3); i++) {
    lua_rawgeti(L, 3, i);
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_rawgeti(L, -1, 1);
    value = pp_value(L, -1);
    lua_rawgeti(L, -2, 2);
    const pp_mask *mask = pp_check_mask(L, -1, rows);
    for (size_t row = 0; row < rows; row++)
      if (pp_mask_has(mask->word, row)) kernel[row] = value;
    lua_pop(L, 3);
  }
  if (pp_search_kernels_changed(&self->search, &error) != PP_OK) return pp_args_raise(L, "candidates:set", &error);
  return 0;
}

/* candidates:set(field, value): a request field, the same for all, or a list of its values by choice;
** candidates:set("alltoall_kernel", name | false | nil), or a list of { name | false, mask } */
static int search_set(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const char *name = luaL_checkstring(L, 2);
  const bool list = lua_istable(L, 3);
  double value = list ? NAN : pp_value(L, 3);
  pp_fact *fact;
  if (column_of_name(name) == PP_COLUMN_KERNEL) return set_kernels(L, self, list, value);
  if (column_of_name(name) >= 0) return luaL_error(L, "candidates:set: '%s' is computed", name);
  if (strlen(name) >= sizeof fact->name) return luaL_error(L, "candidates:set: '%s' is too long a name", name);
  fact = fact_of_name(self, name);
  if (!fact) {
    if (self->facts == PP_MAX_FACTS) return luaL_error(L, "candidates:set: more than %d fields", PP_MAX_FACTS);
    fact = &self->fact[self->facts++];
    snprintf(fact->name, sizeof fact->name, "%s", name);
  }
  fact->value = value;
  fact->values = list ? spread(L, self) : NULL;
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 3);
  lua_setfield(L, -2, name);
  return 0;
}

/* A cell as Lua sees it: nil where absent, integers where integral degrees are. */
static void push_cell(lua_State *L, const pp_lua_search *self, int column, size_t row) {
  double value = self->search.column[column][row];
  if (isnan(value)) lua_pushnil(L);
  else if (column == PP_COLUMN_SCHEDULE || column == PP_COLUMN_FAMILY || (column == PP_COLUMN_KERNEL && value >= 2)) pp_push_symbol(L, value);
  else if (column == PP_COLUMN_KERNEL) lua_pushboolean(L, value >= 1);
  else if (column <= PP_COLUMN_MICROBATCHES || column == PP_COLUMN_STAGES) lua_pushinteger(L, (lua_Integer)value);
  else lua_pushnumber(L, value);
}

/* A fact's value of a row; the table of values is on top. */
static void push_fact(lua_State *L, const pp_lua_search *self, const char *name, size_t row) {
  if (lua_getfield(L, -1, name) != LUA_TTABLE) return;
  lua_rawgeti(L, -1, self->search.candidates.candidate[row].choice + 1);
  lua_remove(L, -2);
}

/* candidates:choice(row) → the number of its choice */
static int search_choice(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  lua_pushinteger(L, self->search.candidates.candidate[check_row(L, self)].choice + 1);
  return 1;
}

/* candidates:get(field, row) */
static int search_get(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const char *name = luaL_checkstring(L, 2);
  int column = column_of_name(name);
  lua_Integer row = luaL_checkinteger(L, 3);
  if (row < 1 || (lua_Unsigned)row > row_count(self)) return luaL_error(L, "candidates:get: there is no candidate %d", (int)row);
  if (column >= 0) push_cell(L, self, column, (size_t)row - 1);
  else {
    lua_getiuservalue(L, 1, 1);
    push_fact(L, self, name, (size_t)row - 1);
  }
  return 1;
}

/* candidates:row(i) → { field = value } with facts and columns; what is absent or not computed is nil */
static int search_row(lua_State *L) {
  pp_lua_search *self = check_search(L);
  size_t row = check_row(L, self);
  lua_createtable(L, 0, (int)(PP_COLUMNS + self->facts));
  lua_getiuservalue(L, 1, 1);
  for (size_t i = 0; i < self->facts; i++) {
    push_fact(L, self, self->fact[i].name, row);
    lua_setfield(L, -3, self->fact[i].name);
  }
  lua_pop(L, 1);
  for (int column = 0; column < PP_COLUMNS; column++) {
    push_cell(L, self, column, row);
    lua_setfield(L, -2, pp_search_column_names[column]);
  }
  return 1;
}

/* candidates:fields() → names of columns and facts, in the order of their definition */
static int search_fields(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  lua_createtable(L, (int)(PP_COLUMNS + self->facts), 0);
  for (int column = 0; column < PP_COLUMNS; column++) {
    lua_pushstring(L, pp_search_column_names[column]);
    lua_rawseti(L, -2, column + 1);
  }
  for (size_t i = 0; i < self->facts; i++) {
    lua_pushstring(L, self->fact[i].name);
    lua_rawseti(L, -2, (lua_Integer)(PP_COLUMNS + i + 1));
  }
  return 1;
}

/* ------------------------------------------------------------------------------------------------------------------------------ masks */

static int search_all(lua_State *L) {
  pp_push_mask(L, row_count(check_search(L)), true);
  return 1;
}

static int search_none(lua_State *L) {
  pp_push_mask(L, row_count(check_search(L)), false);
  return 1;
}

/* candidates:match(conditions) → mask of the rows for which all hold */
static int search_match(lua_State *L) {
  pp_lua_search *self = check_search(L);
  size_t count;
  const pp_condition *conditions = pp_check_conditions(L, 2, resolve, self, &count);
  pp_mask *mask = pp_push_mask(L, row_count(self), false);
  if (mask->words) pp_conditions_match(conditions, count, mask->rows, mask->word);
  return 1;
}

/* candidates:only(row | list of rows) → mask of these */
static int search_only(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  bool list = lua_istable(L, 2);
  lua_Integer count = list ? (lua_Integer)lua_rawlen(L, 2) : 1;
  pp_mask *mask;
  luaL_checkany(L, 2);
  mask = pp_push_mask(L, row_count(self), false);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_Integer row;
    if (list) lua_rawgeti(L, 2, i);
    else lua_pushvalue(L, 2);
    row = luaL_checkinteger(L, -1);
    if (row < 1 || (lua_Unsigned)row > row_count(self)) return luaL_error(L, "candidates:only: there is no candidate %d", (int)row);
    pp_mask_add(mask->word, (size_t)row - 1);
    lua_pop(L, 1);
  }
  return 1;
}

/* ------------------------------------------------------------------------------------------------------------------ bytes and seconds */

/* candidates:memory(mask): fills peak_bytes where a row can be built */
static int search_memory(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const pp_mask *mask = pp_check_mask(L, 2, row_count(self));
  pp_error error;
  if (pp_search_memory(&self->search, mask->word, &error) != PP_OK) return pp_args_raise(L, "candidates:memory", &error);
  return 0;
}

/* candidates:fullest(row) → the rank that peak_bytes is about; nil where it is not known */
static int search_fullest(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  size_t row = check_row(L, self);
  if (isnan(self->search.column[PP_COLUMN_PEAK_BYTES][row])) return 0;
  lua_pushinteger(L, self->search.fullest[row]);
  return 1;
}

/* The entry of engine_rules for that rule, from the list at `index`; pushes a new one, with an empty mask, where there is none. */
static pp_mask *rule_mask(lua_State *L, int index, const pp_error *error, size_t rows) {
  lua_Integer length = (lua_Integer)lua_rawlen(L, index);
  pp_mask *mask;
  for (lua_Integer i = 1; i <= length; i++) {
    lua_rawgeti(L, index, i);
    lua_getfield(L, -1, "id");
    bool same = strcmp(lua_tostring(L, -1), error->id) == 0;
    lua_pop(L, 1);
    if (same) {
      lua_getfield(L, -1, "mask");
      mask = pp_check_mask(L, -1, rows);
      lua_pop(L, 2);
      return mask;
    }
    lua_pop(L, 1);
  }
  lua_createtable(L, 0, 5);
  lua_pushstring(L, error->id);
  lua_setfield(L, -2, "id");
  mask = pp_push_mask(L, rows, false);
  lua_setfield(L, -2, "mask");
  lua_rawseti(L, index, length + 1);
  return mask;
}

/* candidates:engine_rules(mask) → list of { id, mask }: what cannot be built, by rule, in the order of the first row that it holds for */
static int search_engine_rules(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  const pp_mask *mask = pp_check_mask(L, 2, row_count(self));
  lua_newtable(L);
  for (size_t row = 0; row < mask->rows; row++) {
    pp_error error;
    if (!pp_mask_has(mask->word, row)) continue;
    if (pp_evaluate_check(pp_search_priced(&self->search, row).problem, &self->search.candidates.candidate[row], &error) == PP_OK) continue;
    pp_mask_add(rule_mask(L, 3, &error, mask->rows)->word, row);
  }
  return 1;
}

/* candidates:check(row) → true | nil, { id, field, nearest, message } */
static int search_check(lua_State *L) {
  const pp_lua_search *self = check_search(L);
  const pp_priced of = pp_search_priced(&self->search, check_row(L, self));
  pp_error error;
  if (pp_evaluate_check(of.problem, of.candidate, &error) != PP_OK) return pp_push_illegal(L, &error);
  lua_pushboolean(L, true);
  return 1;
}

/* candidates:bound(row) → a lower bound of step_seconds */
static int search_bound(lua_State *L) {
  pp_lua_search *self = check_search(L);
  lua_pushnumber(L, pp_search_bound(&self->search, check_row(L, self)));
  return 1;
}

/* candidates:simulate(row): fills step_seconds and bubble_fraction → step_seconds | nil, illegal */
static int search_simulate(lua_State *L) {
  pp_lua_search *self = check_search(L);
  size_t row = check_row(L, self);
  pp_error error;
  pp_status status = pp_search_simulate(&self->search, row, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, "candidates:simulate", &error);
  lua_pushnumber(L, self->search.column[PP_COLUMN_STEP_SECONDS][row]);
  return 1;
}

/* candidates:best(mask [, tolerance = 0 [, limit [, fits = false]]]) → row, seconds, mask of the rows at most that fraction slower | nil: none
** (under limit). fits: none that takes more than its usable bytes */
static int search_best(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const pp_mask *mask = pp_check_mask(L, 2, row_count(self));
  double tolerance = luaL_optnumber(L, 3, 0), limit = luaL_optnumber(L, 4, HUGE_VAL);
  pp_mask *within = pp_push_mask(L, mask->rows, false);
  pp_error error;
  bool found;
  size_t best = 0;
  if (pp_search_best(&self->search, mask->word, tolerance, limit, lua_toboolean(L, 5), &found, &best, within->word, &error) != PP_OK)
    return pp_args_raise(L, "candidates:best", &error);
  if (!found) return 0;
  lua_pushinteger(L, (lua_Integer)best + 1);
  lua_pushnumber(L, self->search.column[PP_COLUMN_STEP_SECONDS][best]);
  lua_rotate(L, -3, -1);
  return 3;
}

/* candidates:evaluate(row [, schedules]) → everything that a plan prints about it, and those schedules in its place as `baselines` | nil,
** illegal: see evaluation.h */
static int search_evaluate(lua_State *L) {
  pp_lua_search *self = check_search(L);
  lua_settop(L, 3);
  return pp_push_evaluation(L, &self->search, check_row(L, self), 3);
}

static const luaL_Reg search_functions[] = {
  { "all",          search_all },
  { "best",         search_best },
  { "bound",        search_bound },
  { "check",        search_check },
  { "choice",       search_choice },
  { "engine_rules", search_engine_rules },
  { "evaluate",     search_evaluate },
  { "fields",       search_fields },
  { "fullest",      search_fullest },
  { "get",          search_get },
  { "match",        search_match },
  { "memory",       search_memory },
  { "none",         search_none },
  { "only",         search_only },
  { "row",          search_row },
  { "set",          search_set },
  { "simulate",     search_simulate },
  { NULL, NULL }
};

int pp_open_search(lua_State *L) {
  luaL_newmetatable(L, search_type);
  lua_pushcfunction(L, search_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, search_length);
  lua_setfield(L, -2, "__len");
  luaL_newlib(L, search_functions);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, search_open);
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
  return 1;
}

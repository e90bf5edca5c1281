/* SPDX-License-Identifier: Apache-2.0 */
/*
** search.c: candidates, what engine.search{…} gives: a table of columns, and masks over its rows. May longjmp.
*/
#include "lua/search.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lua/arguments.h"
#include "lua/conditions.h"
#include "lua/evaluation.h"
#include "lua/masks.h"
#include "lua/search_object.h"

/* The search at index 1. */
static pp_lua_search *check_search(lua_State *L) {
  return luaL_checkudata(L, 1, PP_SEARCH_TYPE);
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

static int search_gc(lua_State *L) {
  pp_lua_search *self = check_search(L);
  pp_held *held = lua_touserdata(L, lua_upvalueindex(1));
  pp_search_free(&self->search);
  held->bytes -= self->held;
  self->held = 0;
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
  pp_lua_search_keep(L, 1);
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
** candidates:set("alltoall_kernel", name | false | nil), or a list of { name | false, mask };
** candidates:set("alone_seconds", the best step without a pipeline | nil): pipeline_avoidable_* follow from it */
static int search_set(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const char *name = luaL_checkstring(L, 2);
  const bool list = lua_istable(L, 3);
  double value = list ? NAN : pp_value(L, 3);
  pp_fact *fact;
  if (column_of_name(name) == PP_COLUMN_KERNEL) return set_kernels(L, self, list, value);
  if (strcmp(name, "alone_seconds") == 0) {
    pp_search_set_alone(&self->search, lua_isnoneornil(L, 3) ? NAN : luaL_checknumber(L, 3));
    return 0;
  }
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

/* candidates:match_late(conditions, mask) → mask of the rows of it for which all hold, or will once they are simulated (search.h) */
static int search_match_late(lua_State *L) {
  pp_lua_search *self = check_search(L);
  size_t count;
  const pp_condition *conditions = pp_check_conditions(L, 2, resolve, self, &count);
  const pp_mask *among = pp_check_mask(L, 3, row_count(self));
  pp_mask *mask = pp_push_mask(L, row_count(self), false);
  if (mask->words) memcpy(mask->word, among->word, mask->words * sizeof *mask->word);
  pp_search_match_late(&self->search, conditions, count, mask->word);
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

/* candidates:best(mask [, tolerance = 0 [, limit [, bytes]]]) → row, seconds, mask of the rows at most that fraction slower | nil: none (under
** limit). bytes: that its fullest rank takes at most, or true: usable_bytes */
static int search_best(lua_State *L) {
  pp_lua_search *self = check_search(L);
  const pp_mask *mask = pp_check_mask(L, 2, row_count(self));
  double tolerance = luaL_optnumber(L, 3, 0), limit = luaL_optnumber(L, 4, HUGE_VAL);
  double bytes = lua_isboolean(L, 5) ? (lua_toboolean(L, 5) ? self->usable_bytes : HUGE_VAL) : luaL_optnumber(L, 5, HUGE_VAL);
  pp_mask *within = pp_push_mask(L, mask->rows, false);
  pp_error error;
  bool found;
  size_t best = 0;
  if (pp_search_best(&self->search, mask->word, tolerance, limit, bytes, &found, &best, within->word, &error) != PP_OK)
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
  { "match_late",   search_match_late },
  { "memory",       search_memory },
  { "none",         search_none },
  { "only",         search_only },
  { "row",          search_row },
  { "set",          search_set },
  { "simulate",     search_simulate },
  { NULL, NULL }
};

int pp_open_search(lua_State *L) {
  memset(lua_newuserdatauv(L, sizeof(pp_held), 0), 0, sizeof(pp_held));
  luaL_newmetatable(L, PP_SEARCH_TYPE);
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, search_gc, 1);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, search_length);
  lua_setfield(L, -2, "__len");
  luaL_newlib(L, search_functions);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, pp_lua_search_make, 1);
  lua_setfield(L, -2, "__call");
  lua_setmetatable(L, -2);
  return 1;
}

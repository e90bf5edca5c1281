/* SPDX-License-Identifier: Apache-2.0 */
/*
** conditions.c: engine.conditions. See conditions.h. May longjmp.
*/
#include "lua/conditions.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SYMBOL = 2 };

/* Registry key of the table of symbols: string → number and number → string. */
static const char symbols_key = 0;

static void push_symbols(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &symbols_key) == LUA_TTABLE) return;
  lua_pop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &symbols_key);
}

/* Symbols count from 2, so their table is filled from [2] and the number of symbols is kept at [1]. */
static double intern(lua_State *L, int index) {
  lua_Integer symbol;
  index = lua_absindex(L, index);
  push_symbols(L);
  lua_pushvalue(L, index);
  if (lua_rawget(L, -2) == LUA_TNUMBER) {
    symbol = lua_tointeger(L, -1);
    lua_pop(L, 2);
    return (double)symbol;
  }
  lua_pop(L, 1);
  lua_rawgeti(L, -1, 1);
  symbol = lua_tointeger(L, -1) + FIRST_SYMBOL;
  lua_pop(L, 1);
  lua_pushinteger(L, symbol - FIRST_SYMBOL + 1);
  lua_rawseti(L, -2, 1);
  lua_pushvalue(L, index);
  lua_rawseti(L, -2, symbol);
  lua_pushvalue(L, index);
  lua_pushinteger(L, symbol);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  return (double)symbol;
}

double pp_value(lua_State *L, int index) {
  switch (lua_type(L, index)) {
    case LUA_TNIL: case LUA_TNONE: return NAN;
    case LUA_TNUMBER: return lua_tonumber(L, index);
    case LUA_TBOOLEAN: return lua_toboolean(L, index);
    case LUA_TSTRING: return intern(L, index);
    default: return luaL_error(L, "a value of a condition is a number, string or boolean, not a %s", luaL_typename(L, index));
  }
}

void pp_push_symbol(lua_State *L, double symbol) {
  if (!(symbol >= FIRST_SYMBOL && symbol < 1e9)) {
    lua_pushnil(L);
    return;
  }
  push_symbols(L);
  lua_rawgeti(L, -1, (lua_Integer)symbol);
  lua_remove(L, -2);
}

static const struct {
  const char *name;
  pp_operator operator;
  int sides;  /* how many right sides; -1: a set */
} operators[] = {
  { "at_least",        PP_AT_LEAST,        1 },
  { "at_most",         PP_AT_MOST,         1 },
  { "between",         PP_BETWEEN,         2 },
  { "equal",           PP_EQUAL,           1 },
  { "even",            PP_EVEN,            0 },
  { "multiple_of",     PP_MULTIPLE_OF,     1 },
  { "none_of",         PP_NONE_OF,        -1 },
  { "not_multiple_of", PP_NOT_MULTIPLE_OF, 1 },
  { "odd",             PP_ODD,             0 },
  { "one_of",          PP_ONE_OF,         -1 },
  { "over",            PP_OVER,            1 },
  { "under",           PP_UNDER,           1 },
};

static int operator_of(lua_State *L, const char *name) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strcmp(operators[i].name, name) == 0) return (int)i;
  return luaL_error(L, "a condition has no operator '%s'", name);
}

static void check_field(lua_State *L, const char *name, pp_column_of *column_of, void *context, pp_column *out) {
  if (!column_of(context, name, out)) luaL_error(L, "a condition reads '%s', which is not a field here", name);
}

/* The name at t[key] of the table on top. The string stays alive as long as that table does. */
static const char *string_at(lua_State *L, const char *key) {
  const char *text;
  if (lua_getfield(L, -1, key) != LUA_TSTRING) luaL_error(L, "a condition needs '%s'", key);
  text = lua_tostring(L, -1);
  lua_pop(L, 1);
  return text;
}

/* A right side: t[key] of the condition on top. A constant is kept in *slot. */
static void check_side(lua_State *L, const char *key, pp_column_of *column_of, void *context, double *slot, pp_column *out) {
  if (lua_getfield(L, -1, key) == LUA_TTABLE) {
    check_field(L, string_at(L, "field"), column_of, context, out);
  } else {
    *slot = pp_value(L, -1);
    *out = (pp_column){ slot, true };
  }
  lua_pop(L, 1);
}

/* How many doubles the condition on top needs beside its pp_condition. */
static size_t slots_of(lua_State *L, int operator) {
  size_t size;
  if (operators[operator].sides >= 0) return (size_t)operators[operator].sides;
  if (lua_getfield(L, -1, "values") != LUA_TTABLE) luaL_error(L, "'%s' needs a list of values", operators[operator].name);
  size = (size_t)lua_rawlen(L, -1);
  lua_pop(L, 1);
  return size;
}

const pp_condition *pp_check_conditions(lua_State *L, int index, pp_column_of *column_of, void *context, size_t *count) {
  pp_condition *conditions;
  double *slot;
  size_t slots = 0;
  luaL_checktype(L, index, LUA_TTABLE);
  luaL_checkstack(L, 8, "conditions");
  index = lua_absindex(L, index);
  *count = (size_t)lua_rawlen(L, index);
  for (size_t i = 0; i < *count; i++) {
    if (lua_rawgeti(L, index, (lua_Integer)i + 1) != LUA_TTABLE) luaL_error(L, "a condition is a table");
    slots += slots_of(L, operator_of(L, string_at(L, "op")));
    lua_pop(L, 1);
  }
  conditions = lua_newuserdatauv(L, *count * sizeof *conditions + slots * sizeof *slot + 1, 0);
  slot = (double *)(conditions + *count);
  for (size_t i = 0; i < *count; i++) {
    pp_condition *condition = &conditions[i];
    lua_rawgeti(L, index, (lua_Integer)i + 1);
    int operator = operator_of(L, string_at(L, "op")), sides = operators[operator].sides;
    *condition = (pp_condition){ .operator = operators[operator].operator };
    check_field(L, string_at(L, "field"), column_of, context, &condition->field);
    if (sides < 0) {
      condition->set = slot;
      condition->set_size = slots_of(L, operator);
      lua_getfield(L, -1, "values");
      for (size_t j = 0; j < condition->set_size; j++) {
        lua_rawgeti(L, -1, (lua_Integer)j + 1);
        *slot++ = pp_value(L, -1);
        lua_pop(L, 1);
      }
      lua_pop(L, 1);
    } else {
      if (sides >= 1) check_side(L, sides == 2 ? "low" : "value", column_of, context, slot, &condition->low);
      if (sides == 2) check_side(L, "high", column_of, context, slot + 1, &condition->high);
      slot += sides;
    }
    lua_pop(L, 1);
  }
  return conditions;
}

/* Columns given as a Lua table, for engine.conditions.match: sorted by name so that a field is found by bisection. */
typedef struct {
  const char *name;
  pp_column column;
} named_column;

typedef struct {
  named_column *columns;
  size_t count;
} column_set;

static int compare_columns(const void *a, const void *b) {
  return strcmp(((const named_column *)a)->name, ((const named_column *)b)->name);
}

/* A field that the record leaves out is absent, not unknown: names were checked when the policy was loaded. */
static bool column_in_set(void *context, const char *field, pp_column *out) {
  static const double absent = NAN;
  const column_set *set = context;
  named_column wanted = { field, { NULL, true } }, *found = NULL;
  if (set->count) found = bsearch(&wanted, set->columns, set->count, sizeof wanted, compare_columns);
  *out = found ? found->column : (pp_column){ &absent, true };
  return true;
}

/* Reads the table at `index` into *set (pushes the userdata that owns it); returns the number of rows, 0 when no column is a list. */
static size_t check_columns(lua_State *L, int index, column_set *set) {
  size_t fields = 0, values = 0, rows = 0;
  bool listed = false;
  double *slot;
  luaL_checktype(L, index, LUA_TTABLE);
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) luaL_error(L, "engine.conditions.match: a column has a name, not a %s", luaL_typename(L, -2));
    fields++;
    if (lua_type(L, -1) == LUA_TTABLE) {
      size_t length = (size_t)lua_rawlen(L, -1);
      if (listed && length != rows)
        luaL_error(L, "engine.conditions.match: column '%s' has %d rows, another has %d", lua_tostring(L, -2), (int)length, (int)rows);
      listed = true;
      rows = length;
      values += length;
    } else {
      values++;
    }
  }
  set->count = fields;
  set->columns = lua_newuserdatauv(L, fields * sizeof *set->columns + values * sizeof *slot + 1, 0);
  slot = (double *)(set->columns + fields);
  fields = 0;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    named_column *entry = &set->columns[fields++];
    *entry = (named_column){ lua_tostring(L, -2), { slot, lua_type(L, -1) != LUA_TTABLE } };
    if (entry->column.constant) {
      *slot++ = pp_value(L, -1);
      continue;
    }
    for (size_t i = 0; i < rows; i++) {
      lua_rawgeti(L, -1, (lua_Integer)i + 1);
      *slot++ = pp_value(L, -1);
      lua_pop(L, 1);
    }
  }
  qsort(set->columns, set->count, sizeof *set->columns, compare_columns);
  return listed ? rows : 0;
}

/*
** engine.conditions.match(columns, conditions): columns maps a field to its value, or to a list with a value per row (NaN: absent there).
** All values: true or false. A list among them: a list of booleans, one a row.
*/
static int conditions_match(lua_State *L) {
  column_set set;
  size_t rows = check_columns(L, 1, &set), count;
  const pp_condition *conditions = pp_check_conditions(L, 2, column_in_set, &set, &count);
  if (rows == 0) {
    bool holds = true;
    for (size_t i = 0; i < count && holds; i++) holds = pp_condition_holds(&conditions[i], 0);
    lua_pushboolean(L, holds);
    return 1;
  }
  pp_mask_word *mask = lua_newuserdatauv(L, pp_mask_words(rows) * sizeof *mask, 0);
  pp_conditions_match(conditions, count, rows, mask);
  lua_createtable(L, (int)rows, 0);
  for (size_t i = 0; i < rows; i++) {
    lua_pushboolean(L, pp_mask_has(mask, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static const luaL_Reg conditions_functions[] = {
  { "match", conditions_match },
  { NULL, NULL }
};

int pp_open_conditions(lua_State *L) {
  luaL_newlib(L, conditions_functions);
  return 1;
}

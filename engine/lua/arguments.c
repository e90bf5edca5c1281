/* SPDX-License-Identifier: Apache-2.0 */
/*
** arguments.c: checking named arguments. May longjmp. See arguments.h.
*/
#include "lua/arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/meter.h"
#include "host/views.h"
#include "lua/results.h"

enum { NAME_LIMIT = 48 };  /* longer keys are never near a known one */

/* Units of core/meter.h that looking up and checking an argument takes, and comparing its name with a known one. */
enum { ARGUMENT = 12, NAME = 1 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Levenshtein distance; both names are shorter than NAME_LIMIT. */
static size_t name_distance(const char *a, const char *b) {
  size_t row[NAME_LIMIT + 1];
  const size_t n = strlen(a), m = strlen(b);
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      const size_t substitution = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = least(substitution, least(row[j], row[j - 1]) + 1);
    }
  }
  return row[m];
}

/* The known name nearest to `name`, or NULL: at most a third of its letters + 1 differ (the rule of failure.nearest in stdlib). */
static const char *nearest_name(const char *name, const char *const *known) {
  const char *best = NULL;
  const size_t length = strlen(name);
  size_t limit = length / 3 + 1;
  if (length >= NAME_LIMIT) return NULL;
  for (; *known; known++) {
    if (strlen(*known) >= NAME_LIMIT) continue;
    const size_t distance = name_distance(name, *known);
    if (distance < limit || (distance == limit && !best)) {
      best = *known;
      limit = distance;
    }
  }
  return best;
}

static bool is_known(const char *name, const char *const *known) {
  const char *const *at = known;
  while (*at && (**at != *name || strcmp(name, *at) != 0)) at++;   /* a call for each name took a twentieth of a plan */
  pp_spend(ARGUMENT + NAME * (uint64_t)(at - known));
  return *at != NULL;
}

/* What the value at the top of the stack is, for "got …": the value of scalars, the type of the rest. Pushes a string. */
static const char *describe(lua_State *L) {
  switch (lua_type(L, -1)) {
    case LUA_TNIL: return lua_pushliteral(L, "nothing");
    case LUA_TBOOLEAN: return lua_pushstring(L, lua_toboolean(L, -1) ? "true" : "false");
    case LUA_TSTRING: return lua_pushfstring(L, "the string '%s'", lua_tostring(L, -1));
    case LUA_TNUMBER: {
      char text[32];
      if (lua_isinteger(L, -1)) return lua_pushfstring(L, "%I", lua_tointeger(L, -1));
      /* The sign that printf shows of a NaN differs between machines. */
      if (isnan(lua_tonumber(L, -1))) return lua_pushliteral(L, "nan");
      snprintf(text, sizeof text, "%.14g", lua_tonumber(L, -1));
      return lua_pushstring(L, text);
    }
    default: return lua_pushfstring(L, "a %s", luaL_typename(L, -1));
  }
}

static int complain(lua_State *L, const char *call, const char *name, const char *expected) {
  const char *got = describe(L);
  return luaL_error(L, "%s: '%s' must be %s, got %s", call, name, expected, got);
}

void pp_args_begin(lua_State *L, int index, const char *call, const char *const *known) {
  const char *unknown = NULL;
  index = lua_absindex(L, index);
  if (lua_type(L, index) != LUA_TTABLE) {
    lua_pushvalue(L, index);
    luaL_error(L, "%s: one table of named arguments expected, got %s", call, describe(L));
  }
  /* Of several unknown keys the first in the alphabet is named: the order of lua_next must not show. */
  pp_view_inside(L, index);
  const int table = lua_gettop(L);
  lua_pushnil(L);
  while (lua_next(L, table)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "%s: argument names are strings, got the key %s", call, describe(L));
    const char *name = lua_tostring(L, -1);
    if (!is_known(name, known) && (!unknown || strcmp(name, unknown) < 0)) unknown = name;
  }
  lua_pop(L, 1);
  if (unknown) {
    const char *near = nearest_name(unknown, known);
    if (near) luaL_error(L, "%s: no argument '%s', did you mean '%s'?", call, unknown, near);
    luaL_error(L, "%s: no argument '%s'", call, unknown);
  }
}

/* Pushes the argument; returns its type. */
static int push_argument(lua_State *L, int index, const char *name) {
  pp_spend(ARGUMENT);
  return lua_getfield(L, index, name);
}

bool pp_args_has(lua_State *L, int index, const char *name) {
  const bool has = push_argument(L, index, name) != LUA_TNIL;
  lua_pop(L, 1);
  return has;
}

/* " ≥ low", " ≤ high", " from low to high" or "": pushes a string. */
static const char *describe_range(lua_State *L, double low, double high) {
  char text[96];
  if (isfinite(low) && isfinite(high)) snprintf(text, sizeof text, " from %.15g to %.15g", low, high);
  else if (isfinite(low)) snprintf(text, sizeof text, " ≥ %.15g", low);
  else if (isfinite(high)) snprintf(text, sizeof text, " ≤ %.15g", high);
  else text[0] = '\0';
  return lua_pushstring(L, text);
}

double pp_args_number(lua_State *L, int index, const char *call, const char *name, double low, double high) {
  double value;
  if (push_argument(L, index, name) != LUA_TNUMBER || !isfinite(lua_tonumber(L, -1)) ||
      lua_tonumber(L, -1) < low || lua_tonumber(L, -1) > high) {
    const char *expected = lua_pushfstring(L, "a number%s", describe_range(L, low, high));
    lua_pushvalue(L, -3);
    complain(L, call, name, expected);
  }
  value = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return value;
}

double pp_args_number_or(lua_State *L, int index, const char *call, const char *name, double low, double high, double otherwise) {
  return pp_args_has(L, index, name) ? pp_args_number(L, index, call, name, low, high) : otherwise;
}

int64_t pp_args_integer(lua_State *L, int index, const char *call, const char *name, int64_t low, int64_t high) {
  lua_Integer value = 0;
  int integral = 0;
  if (push_argument(L, index, name) == LUA_TNUMBER) value = lua_tointegerx(L, -1, &integral);
  if (!integral || value < low || value > high) {
    const char *range = describe_range(L, low == INT64_MIN ? -HUGE_VAL : (double)low, high == INT64_MAX ? HUGE_VAL : (double)high);
    const char *expected = lua_pushfstring(L, "an integer%s", range);
    lua_pushvalue(L, -3);
    complain(L, call, name, expected);
  }
  lua_pop(L, 1);
  return value;
}

int64_t pp_args_integer_or(lua_State *L, int index, const char *call, const char *name, int64_t low, int64_t high, int64_t otherwise) {
  return pp_args_has(L, index, name) ? pp_args_integer(L, index, call, name, low, high) : otherwise;
}

bool pp_args_boolean_or(lua_State *L, int index, const char *call, const char *name, bool otherwise) {
  bool value = otherwise;
  const int type = push_argument(L, index, name);
  if (type == LUA_TBOOLEAN) value = lua_toboolean(L, -1);
  else if (type != LUA_TNIL) complain(L, call, name, "true or false");
  lua_pop(L, 1);
  return value;
}

const char *pp_args_string(lua_State *L, int index, const char *call, const char *name) {
  const char *value;
  if (push_argument(L, index, name) != LUA_TSTRING) complain(L, call, name, "a string");
  value = lua_tostring(L, -1);
  lua_pop(L, 1);
  return value;
}

const char *pp_args_string_or(lua_State *L, int index, const char *call, const char *name, const char *otherwise) {
  return pp_args_has(L, index, name) ? pp_args_string(L, index, call, name) : otherwise;
}

int pp_args_option(lua_State *L, int index, const char *call, const char *name, const char *const *options, int otherwise) {
  luaL_Buffer expected;
  const int type = push_argument(L, index, name);
  if (type == LUA_TNIL && otherwise >= 0) {
    lua_pop(L, 1);
    return otherwise;
  }
  if (type == LUA_TSTRING) {
    const char *value = lua_tostring(L, -1);
    for (int i = 0; options[i]; i++) {
      if (strcmp(options[i], value) == 0) {
        lua_pop(L, 1);
        return i;
      }
    }
  }
  luaL_buffinit(L, &expected);
  for (int i = 0; options[i]; i++) {
    if (i > 0) luaL_addstring(&expected, options[i + 1] ? ", " : " or ");
    luaL_addstring(&expected, options[i]);
  }
  luaL_pushresult(&expected);
  lua_pushvalue(L, -2);
  return complain(L, call, name, lua_tostring(L, -2));
}

void pp_args_table(lua_State *L, int index, const char *call, const char *name) {
  if (push_argument(L, index, name) != LUA_TTABLE) complain(L, call, name, "a table");
}

int pp_args_raise(lua_State *L, const char *call, const pp_error *error) {
  return luaL_error(L, "%s: %s", call, error->message);
}

int pp_push_illegal(lua_State *L, const pp_error *error) {
  lua_pushnil(L);
  lua_createtable(L, 0, 4);
  pp_set_string(L, "id", error->id);
  pp_set_string(L, "field", error->field);
  if (!isnan(error->nearest)) {
    if (error->nearest <= 0x1p53 && error->nearest >= -0x1p53 && error->nearest <= floor(error->nearest))
      pp_set_integer(L, "nearest", (lua_Integer)error->nearest);
    else
      pp_set_number(L, "nearest", error->nearest);
  }
  pp_set_string(L, "message", error->message);
  return 2;
}

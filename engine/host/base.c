/* SPDX-License-Identifier: Apache-2.0 */
/*
** base.c: the names that a policy sees, built from allow.c, and the functions that replace Lua's own. May longjmp.
*/
#include "host/base.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "host/allow.h"
#include "host/sandbox_state.h"
#include "host/statements.h"
#include "host/views.h"

enum {
  NUMBER_LIMIT = 64,  /* characters that tonumber reads */
  NUMBER_WORK = 50    /* units of writing a number as text, or reading it */
};

/* --- names that do not exist --- */

int pp_unknown(lua_State *L, const char *what, const char *name) {
  pp_sandbox *sandbox = pp_sandbox_of(L);
  strncpy(sandbox->unknown, name, sizeof sandbox->unknown - 1);
  return luaL_error(L, "no %s '%s'", what, name);
}

static int index_unknown(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return luaL_error(L, "policies have no names but strings");
  return pp_unknown(L, "name", lua_tostring(L, 2));
}

/* Upvalues: the blocked name and what to use instead. Called as a function, or as __index, __newindex, __call of a stub. */
static int blocked(lua_State *L) {
  return luaL_error(L, "%s is not available to policies: %s", lua_tostring(L, lua_upvalueindex(1)), lua_tostring(L, lua_upvalueindex(2)));
}

static void push_stub(lua_State *L, const pp_blocked_name *name) {
  static const char *const events[] = { "__index", "__newindex", "__call" };
  lua_newtable(L);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
    lua_pushstring(L, name->name);
    lua_pushstring(L, name->instead);
    lua_pushcclosure(L, blocked, 2);
    lua_setfield(L, -2, events[i]);
  }
  lua_setmetatable(L, -2);
}

/* --- replaced functions --- */

/* Without addresses: what a policy shows must not differ between runs. */
static int base_tostring(lua_State *L) {
  luaL_checkany(L, 1);
  pp_charge(L, NUMBER_WORK);
  switch (lua_type(L, 1)) {
    case LUA_TNIL: case LUA_TBOOLEAN: case LUA_TNUMBER: case LUA_TSTRING: luaL_tolstring(L, 1, NULL); break;
    default: lua_pushstring(L, luaL_typename(L, 1));
  }
  return 1;
}

/* print, for who is debugging a policy: one line on standard error, nothing in it that a terminal would obey. */
static int base_print(lua_State *L) {
  char line[1024];
  int given = lua_gettop(L);
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  for (int i = 1; i <= given; i++) {
    lua_pushcfunction(L, base_tostring);
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    luaL_addvalue(&text);
    if (i < given) luaL_addchar(&text, ' ');
  }
  luaL_pushresult(&text);
  pp_charge(L, sizeof line);
  pp_text_visible(lua_tostring(L, -1), lua_rawlen(L, -1), line, sizeof line);
  fprintf(stderr, "%s\n", line);
  return 0;
}

void pp_add_print(lua_State *L) {
  lua_pushcfunction(L, base_print);
  lua_setfield(L, -2, "print");
}

static int base_tonumber(lua_State *L) {
  size_t length;
  const char *text;
  luaL_checkany(L, 1);
  pp_charge(L, NUMBER_WORK);
  if (!lua_isnoneornil(L, 2)) return luaL_error(L, "tonumber in policies takes no base");
  if (lua_type(L, 1) == LUA_TNUMBER) {
    lua_settop(L, 1);
    return 1;
  }
  if (lua_type(L, 1) != LUA_TSTRING) return lua_pushnil(L), 1;
  text = lua_tolstring(L, 1, &length);
  if (length > NUMBER_LIMIT) return luaL_error(L, "tonumber in policies reads at most %d characters, got %d", NUMBER_LIMIT, (int)length);
  if (lua_stringtonumber(L, text) != length + 1) lua_pushnil(L);
  return 1;
}

/* A key of a table, for sorting: numbers first, then strings, then booleans. Strings live in the table. */
typedef struct {
  int type;
  bool integer;
  lua_Integer whole;  /* of an integer; the number itself may not fit a double */
  double number;      /* of a float, or a boolean */
  const char *text;   /* of a string; it may hold zeros */
  size_t length;
  lua_Integer place;  /* in the list of all keys */
} key;

static int rank_of(int type) {
  return type == LUA_TNUMBER ? 0 : type == LUA_TSTRING ? 1 : 2;
}

/* Exact, as Lua compares them: near 2^63 a double stands for many integers. No key is NaN. */
static int compare_with_float(lua_Integer whole, double number) {
  if (number >= 0x1p63) return -1;
  if (number < -0x1p63) return 1;
  const double below = floor(number);
  const lua_Integer other = (lua_Integer)below;
  if (whole != other) return whole < other ? -1 : 1;
  return number > below ? -1 : 0;
}

static int compare_keys(const void *left, const void *right) {
  const key *a = left, *b = right;
  if (a->type != b->type) return rank_of(a->type) - rank_of(b->type);
  if (a->type == LUA_TSTRING) {
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order ? order : (a->length > b->length) - (a->length < b->length);
  }
  if (a->integer && b->integer) return (a->whole > b->whole) - (a->whole < b->whole);
  if (a->integer) return compare_with_float(a->whole, b->number);
  if (b->integer) return -compare_with_float(b->whole, a->number);
  return (a->number > b->number) - (a->number < b->number);
}

static void read_key(lua_State *L, int index, key *out) {
  *out = (key){ .type = lua_type(L, index), .text = "" };
  switch (out->type) {
    case LUA_TNUMBER:
      out->integer = lua_isinteger(L, index);
      if (out->integer) out->whole = lua_tointeger(L, index);
      else out->number = lua_tonumber(L, index);
      break;
    case LUA_TSTRING: out->text = lua_tolstring(L, index, &out->length); break;
    case LUA_TBOOLEAN: out->number = lua_toboolean(L, index); break;
    default: luaL_error(L, "pairs in policies needs keys with an order, not a %s", luaL_typename(L, index));
  }
}

/* Units that sorting takes: each key is compared with some others, over its whole length at worst. */
static uint64_t sorting_work(const key *keys, lua_Integer count) {
  uint64_t levels = 1, sum = 0;
  for (lua_Integer n = count; n > 1; n /= 2) levels++;
  for (lua_Integer i = 0; i < count; i++) sum += 8 + keys[i].length / 16;
  return levels * sum;
}

/* Upvalues: table, sorted list of its keys, position. */
static int next_sorted(lua_State *L) {
  lua_Integer position = lua_tointeger(L, lua_upvalueindex(3));
  bool found = false;
  while (!found && lua_geti(L, lua_upvalueindex(2), ++position) != LUA_TNIL) {
    pp_spend(4);
    lua_pushvalue(L, -1);
    found = lua_gettable(L, lua_upvalueindex(1)) != LUA_TNIL;
    if (!found) lua_pop(L, 2);   /* removed on the way */
  }
  lua_pushinteger(L, found ? position : position - 1);
  lua_replace(L, lua_upvalueindex(3));
  return found ? 2 : 1;
}

static int base_pairs(lua_State *L) {
  lua_Integer count = 0;
  key *keys;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  pp_view_inside(L, 1);
  lua_replace(L, 1);
  if (lua_getmetatable(L, 1)) return luaL_error(L, "pairs in policies lists plain tables only");
  pp_charge_walk(L);
  lua_newtable(L);   /* 2: keys as they come */
  for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    lua_rawseti(L, 2, ++count);
  }
  keys = lua_newuserdatauv(L, (size_t)count * sizeof *keys + 1, 0);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, 2, i);
    read_key(L, -1, &keys[i - 1]);
    keys[i - 1].place = i;
    lua_pop(L, 1);
  }
  pp_charge(L, sorting_work(keys, count));
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  lua_pushvalue(L, 1);
  lua_createtable(L, (int)count, 0);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, 2, keys[i - 1].place);
    lua_rawseti(L, -2, i);
  }
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next_sorted, 3);
  return 1;
}

/* Numbers only: Lua's own also compare strings, byte by byte. The largest or the smallest argument. */
static int extreme(lua_State *L, bool largest) {
  const int count = lua_gettop(L);
  int best = 1;
  pp_charge(L, (uint64_t)count);
  luaL_checkany(L, 1);
  for (int i = 1; i <= count; i++) {
    if (lua_type(L, i) != LUA_TNUMBER) return luaL_error(L, "%s takes numbers, got a %s", largest ? "math.max" : "math.min", luaL_typename(L, i));
    if (largest ? lua_compare(L, best, i, LUA_OPLT) : lua_compare(L, i, best, LUA_OPLT)) best = i;
  }
  lua_pushvalue(L, best);
  return 1;
}

static int math_max(lua_State *L) { return extreme(L, true); }
static int math_min(lua_State *L) { return extreme(L, false); }

static const luaL_Reg replaced[] = {
  { "math.max", math_max },
  { "math.min", math_min },
  { "pairs", base_pairs },
  { "tonumber", base_tonumber },
  { "tostring", base_tostring },
  { "require", NULL },  /* one per file: chunk.c */
};

static void push_replaced(lua_State *L, const char *name) {
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
    if (strcmp(replaced[i].name, name) == 0 && replaced[i].func) {
      lua_pushcfunction(L, replaced[i].func);
      return;
    }
  lua_pushnil(L);
}

/* --- all of them --- */

/* t[name] = value on top, where "a.b" is field b of the table a (made when missing). Pops the value. */
static void set_name(lua_State *L, int table, const char *name) {
  const char *dot = strchr(name, '.');
  if (!dot) {
    lua_setfield(L, table, name);
    return;
  }
  lua_pushlstring(L, name, (size_t)(dot - name));
  lua_pushvalue(L, -1);
  if (lua_rawget(L, table) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, table);
  }
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, dot + 1);
  lua_pop(L, 3);
}

void pp_add_names(lua_State *L, lua_CFunction open_engine) {
  int names = lua_gettop(L), base, math, engine;
  lua_pushcfunction(L, luaopen_base);
  lua_call(L, 0, 1);
  base = lua_gettop(L);
  lua_pushcfunction(L, luaopen_math);
  lua_call(L, 0, 1);
  math = lua_gettop(L);
  lua_pushcfunction(L, open_engine);
  lua_call(L, 0, 1);
  engine = lua_gettop(L);
  for (size_t i = 0; i < pp_allowed_count; i++) {
    const char *name = pp_allowed_names[i].name, *dot = strchr(name, '.');
    switch (pp_allowed_names[i].origin) {
      case PP_FROM_BASE: lua_getfield(L, base, name); break;
      case PP_FROM_MATH: lua_getfield(L, math, dot + 1); break;
      case PP_FROM_ENGINE: lua_getfield(L, engine, dot + 1); break;
      case PP_REPLACED: push_replaced(L, name); break;
      case PP_VERB: pp_push_verb(L, name); break;
      case PP_CONSTRUCTOR: pp_push_constructor(L, name); break;
    }
    set_name(L, names, name);
  }
  for (size_t i = 0; i < pp_blocked_count; i++) {
    push_stub(L, &pp_blocked_names[i]);
    lua_setfield(L, names, pp_blocked_names[i].name);
  }
  /* luaopen_base filled the state's global table, which nothing refers to any more. */
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_settop(L, names);
  lua_getfield(L, names, "math");
  pp_freeze(L, "math");
  lua_setfield(L, names, "math");
  if (lua_getfield(L, names, "engine") == LUA_TTABLE) {
    pp_freeze(L, "engine");
    lua_setfield(L, names, "engine");
  }
  lua_settop(L, names);
  lua_newtable(L);
  lua_pushcfunction(L, index_unknown);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, names);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** json.c: reading JSON: checked by core/json_check.h, then made into Lua values. May longjmp.
*/
#include "lua/json.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "core/json_check.h"
#include "lua/results.h"

/* Stack indices of engine.json.decode's arguments. */
enum { TEXT = 1, NULL_VALUE, ARRAY_METATABLE };

/* What follows reads a text that was checked: it is JSON, it nests at most PP_JSON_MAX_DEPTH deep, and a NUL stands behind it, nowhere in it.
** Each function pushes the value that begins at p, and returns where it ends. */
static const char *push_value(lua_State *L, const char *p);

static const char *skip_space(const char *p) { return p + strspn(p, " \t\n\r"); }

static long hex4(const char *p) {
  char digits[5] = { p[0], p[1], p[2], p[3], '\0' };
  return strtol(digits, NULL, 16);
}

/* Adds the character of an escape; p is behind its backslash. */
static const char *add_escape(luaL_Buffer *out, const char *p) {
  static const char names[] = "bfnrt", characters[] = "\b\f\n\r\t";
  const char *name = strchr(names, *p);
  long code;
  if (*p != 'u') {
    luaL_addchar(out, name ? characters[name - names] : *p);
    return p + 1;
  }
  code = hex4(p + 1);
  p += 5;
  if (code >= 0xD800 && code <= 0xDBFF) {  /* a pair of surrogates */
    code = 0x10000 + ((code - 0xD800) << 10) + (hex4(p + 2) - 0xDC00);
    p += 6;
  }
  lua_pushfstring(out->L, "%U", code);
  luaL_addvalue(out);
  return p;
}

/* p is behind the opening quote. */
static const char *push_string(lua_State *L, const char *p) {
  size_t plain = strcspn(p, "\"\\");
  luaL_Buffer out;
  if (p[plain] == '"') {
    lua_pushlstring(L, p, plain);
    return p + plain + 1;
  }
  luaL_buffinit(L, &out);
  for (; p[plain] != '"'; plain = strcspn(p, "\"\\")) {
    luaL_addlstring(&out, p, plain);
    p = add_escape(&out, p + plain + 1);
  }
  luaL_addlstring(&out, p, plain);
  luaL_pushresult(&out);
  return p + plain + 1;
}

/* What is integral is an integer, also 2048.0 and 1e3, as far as a double counts. By Lua's own reader: no locale changes what it reads. */
static const char *push_number(lua_State *L, const char *p) {
  size_t length = strspn(p, "+-0123456789.eE");
  lua_Number number;
  lua_Integer integer;
  lua_pushlstring(L, p, length);
  number = lua_tonumber(L, -1);
  lua_pop(L, 1);
  if (number >= -0x1p53 && number <= 0x1p53 && lua_numbertointeger(number, &integer) && (lua_Number)integer == number)
    lua_pushinteger(L, integer);
  else lua_pushnumber(L, number);
  return p + length;
}

/* p is behind '['. */
static const char *push_array(lua_State *L, const char *p) {
  lua_newtable(L);
  lua_pushvalue(L, ARRAY_METATABLE);
  lua_setmetatable(L, -2);
  p = skip_space(p);
  if (*p == ']') return p + 1;
  for (lua_Integer i = 1; ; i++) {
    p = skip_space(push_value(L, p));
    lua_rawseti(L, -2, i);
    if (*p++ == ']') return p;
  }
}

/* p is behind '{'. */
static const char *push_object(lua_State *L, const char *p) {
  lua_newtable(L);
  p = skip_space(p);
  if (*p == '}') return p + 1;
  for (;;) {
    p = skip_space(push_string(L, skip_space(p) + 1));
    p = skip_space(push_value(L, p + 1));
    lua_rawset(L, -3);
    if (*p++ == '}') return p;
  }
}

static const char *push_value(lua_State *L, const char *p) {
  p = skip_space(p);
  switch (*p) {
    case '"': return push_string(L, p + 1);
    case '[': return push_array(L, p + 1);
    case '{': return push_object(L, p + 1);
    case 't': lua_pushboolean(L, 1); return p + 4;
    case 'f': lua_pushboolean(L, 0); return p + 5;
    case 'n': lua_pushvalue(L, NULL_VALUE); return p + 4;
    default:  return push_number(L, p);
  }
}

/*
** engine.json.decode(text, null, array) → true, the value: objects are tables, arrays too and have the metatable `array`, `null` stands for
**                                         null, and integers up to 2^53 are integers
**                                       → nil, { line, column, offset, message }
*/
static int json_decode(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, TEXT, &size);
  pp_json_problem problem;
  pp_status status = pp_json_check(text, size, PP_JSON_MAX_DEPTH, &problem);
  if (status == PP_NO_MEMORY) return luaL_error(L, "not enough memory");
  luaL_checktype(L, ARRAY_METATABLE, LUA_TTABLE);
  if (status == PP_OK) {
    luaL_checkstack(L, 4 * PP_JSON_MAX_DEPTH, "JSON");
    lua_pushboolean(L, 1);
    push_value(L, text);
    return 2;
  }
  lua_pushnil(L);
  lua_createtable(L, 0, 4);
  pp_set_integer(L, "line", (lua_Integer)problem.line);
  pp_set_integer(L, "column", (lua_Integer)problem.column);
  pp_set_integer(L, "offset", (lua_Integer)problem.offset + 1);
  pp_set_string(L, "message", problem.message);
  return 2;
}

static const luaL_Reg json_functions[] = {
  { "decode", json_decode },
  { NULL, NULL }
};

int pp_open_json(lua_State *L) {
  luaL_newlib(L, json_functions);
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** results.c: see results.h.
*/
#include "lua/results.h"

#include "core/meter.h"

/* Units that setting a field takes, beside the memory that the allocator charges; a text may have to be made. */
enum { FIELD = 8, TEXT = 16 };

void pp_set_integer(lua_State *L, const char *name, lua_Integer value) {
  pp_spend(FIELD);
  lua_pushinteger(L, value);
  lua_setfield(L, -2, name);
}

void pp_set_number(lua_State *L, const char *name, double value) {
  pp_spend(FIELD);
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

void pp_set_string(lua_State *L, const char *name, const char *value) {
  pp_spend(TEXT);
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

void pp_set_boolean(lua_State *L, const char *name, bool value) {
  pp_spend(FIELD);
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

void pp_set_numbers(lua_State *L, const char *name, const double *values, int count) {
  pp_spend(FIELD + 2 * (uint64_t)count);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    lua_pushnumber(L, values[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, name);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** masks.c: sets of rows. See masks.h. May longjmp.
*/
#include "lua/masks.h"

#include <lauxlib.h>
#include <string.h>

static const char mask_type[] = "pipeplan.mask";

static pp_mask *check(lua_State *L, int index) {
  return luaL_checkudata(L, index, mask_type);
}

pp_mask *pp_check_mask(lua_State *L, int index, size_t rows) {
  pp_mask *mask = check(L, index);
  if (mask->rows != rows) luaL_error(L, "a mask of %d rows does not belong to a table of %d", (int)mask->rows, (int)rows);
  return mask;
}

static size_t count(const pp_mask *mask) {
  size_t sum = 0;
  for (size_t i = 0; i < mask->words; i++)
    for (pp_mask_word word = mask->word[i]; word; word &= word - 1) sum++;
  return sum;
}

static int mask_and(lua_State *L) {
  const pp_mask *a = check(L, 1), *b = pp_check_mask(L, 2, a->rows);
  pp_mask *out = pp_push_mask(L, a->rows, false);
  for (size_t i = 0; i < a->words; i++) out->word[i] = a->word[i] & b->word[i];
  return 1;
}

static int mask_or(lua_State *L) {
  const pp_mask *a = check(L, 1), *b = pp_check_mask(L, 2, a->rows);
  pp_mask *out = pp_push_mask(L, a->rows, false);
  for (size_t i = 0; i < a->words; i++) out->word[i] = a->word[i] | b->word[i];
  return 1;
}

static int mask_minus(lua_State *L) {
  const pp_mask *a = check(L, 1), *b = pp_check_mask(L, 2, a->rows);
  pp_mask *out = pp_push_mask(L, a->rows, false);
  for (size_t i = 0; i < a->words; i++) out->word[i] = a->word[i] & ~b->word[i];
  return 1;
}

static int mask_equal(lua_State *L) {
  const pp_mask *a = check(L, 1), *b = check(L, 2);
  lua_pushboolean(L, a->rows == b->rows && memcmp(a->word, b->word, a->words * sizeof *a->word) == 0);
  return 1;
}

static int mask_count(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)count(check(L, 1)));
  return 1;
}

/* mask:has(row) */
static int mask_has(lua_State *L) {
  const pp_mask *mask = check(L, 1);
  lua_Integer row = luaL_checkinteger(L, 2);
  lua_pushboolean(L, row >= 1 && (lua_Unsigned)row <= mask->rows && pp_mask_has(mask->word, (size_t)row - 1));
  return 1;
}

/* mask:first() → its smallest row, or nil */
static int mask_first(lua_State *L) {
  const pp_mask *mask = check(L, 1);
  for (size_t row = 0; row < mask->rows; row++)
    if (pp_mask_has(mask->word, row)) {
      lua_pushinteger(L, (lua_Integer)row + 1);
      return 1;
    }
  return 0;
}

/* mask:rows() → list of its rows, ascending */
static int mask_rows(lua_State *L) {
  const pp_mask *mask = check(L, 1);
  lua_Integer n = 0;
  lua_createtable(L, (int)count(mask), 0);
  for (size_t row = 0; row < mask->rows; row++)
    if (pp_mask_has(mask->word, row)) {
      lua_pushinteger(L, (lua_Integer)row + 1);
      lua_rawseti(L, -2, ++n);
    }
  return 1;
}

static const luaL_Reg mask_functions[] = {
  { "first", mask_first },
  { "has",   mask_has },
  { "rows",  mask_rows },
  { NULL, NULL }
};

static const luaL_Reg mask_operators[] = {
  { "__band", mask_and },
  { "__bor",  mask_or },
  { "__eq",   mask_equal },
  { "__len",  mask_count },
  { "__sub",  mask_minus },
  { NULL, NULL }
};

pp_mask *pp_push_mask(lua_State *L, size_t rows, bool all) {
  size_t words = pp_mask_words(rows);
  pp_mask *mask = lua_newuserdatauv(L, sizeof *mask + words * sizeof *mask->word, 0);
  mask->rows = rows;
  mask->words = words;
  memset(mask->word, 0, words * sizeof *mask->word);
  if (all)
    for (size_t row = 0; row < rows; row++) pp_mask_add(mask->word, row);
  if (luaL_newmetatable(L, mask_type)) {
    luaL_setfuncs(L, mask_operators, 0);
    luaL_newlib(L, mask_functions);
    lua_setfield(L, -2, "__index");
  }
  lua_setmetatable(L, -2);
  return mask;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** masks.h: sets of rows as Lua values: a & b, a | b, a - b, #a (how many), a == b, a:first(), a:has(row), a:rows(). Rows count from 1 in Lua.
** Everything here may longjmp.
*/
#ifndef PP_LUA_MASKS_H
#define PP_LUA_MASKS_H

#include <lua.h>

#include "core/condition.h"

typedef struct {
  size_t rows, words;
  pp_mask_word word[];
} pp_mask;

/* Pushes a new mask, empty or of all rows. */
pp_mask *pp_push_mask(lua_State *L, size_t rows, bool all);

/* The mask at that index, of that many rows. */
pp_mask *pp_check_mask(lua_State *L, int index, size_t rows);

#endif

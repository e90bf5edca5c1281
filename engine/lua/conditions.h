/* SPDX-License-Identifier: Apache-2.0 */
/*
** conditions.h: reading a Lua list of conditions into pp_condition. Everything here may longjmp.
**
** A condition is { field = name, op = operator, … } with operator one of
**   equal under at_most over at_least multiple_of not_multiple_of   and  value = right side
**   between                                                          and  low = , high = right sides
**   one_of none_of                                                   and  values = list of number, string, boolean
**   odd even
** A right side is a number, string or boolean, or { field = name } for the value of another field.
*/
#ifndef PP_LUA_CONDITIONS_H
#define PP_LUA_CONDITIONS_H

#include <lua.h>

#include "core/condition.h"

/*
** A value as a condition sees it: a number as it is, false 0, true 1, a string as its symbol (numbered from 2 as they are first seen in
** this Lua state), nil NAN. Any other type is an error.
*/
double pp_value(lua_State *L, int index);

/* Pushes the string whose symbol that is, or nil. */
void pp_push_symbol(lua_State *L, double symbol);

/* Where a field's values are: fills *column and returns true, or returns false when there is no such field. Must not longjmp. */
typedef bool pp_column_of(void *context, const char *field, pp_column *column);

/*
** The list of conditions at `index`, as an array of *count. Pushes one userdata that owns the array: it lives as long as that stays on
** the stack (or is referenced); the columns are the caller's.
*/
const pp_condition *pp_check_conditions(lua_State *L, int index, pp_column_of *column_of, void *context, size_t *count);

int pp_open_conditions(lua_State *L);

#endif

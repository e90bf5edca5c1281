/* SPDX-License-Identifier: Apache-2.0 */
/*
** results.h: filling the table on top of the stack with named results. May longjmp.
*/
#ifndef PP_LUA_RESULTS_H
#define PP_LUA_RESULTS_H

#include <lauxlib.h>
#include <stdbool.h>

void pp_set_integer(lua_State *L, const char *name, lua_Integer value);
void pp_set_number(lua_State *L, const char *name, double value);
void pp_set_string(lua_State *L, const char *name, const char *value);
void pp_set_boolean(lua_State *L, const char *name, bool value);

/* A list of `count` numbers. */
void pp_set_numbers(lua_State *L, const char *name, const double *values, int count);

#endif

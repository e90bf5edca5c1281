/* SPDX-License-Identifier: Apache-2.0 */
/*
** arguments.h: named arguments of an engine call: one table, every field checked.
** All take the stack index of the arguments table, the call's name and the field's name for messages, and raise a Lua error such as
** "engine.bubble: 'ranks' must be an integer ≥ 1, got 0". All may longjmp; none leaves anything on the stack. nil means absent.
** Limits are inclusive; ±HUGE_VAL (numbers) and INT64_MIN / INT64_MAX (integers) mean none.
*/
#ifndef PP_LUA_ARGUMENTS_H
#define PP_LUA_ARGUMENTS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Is it a table, and has it no keys but those of `known` (ends with NULL)? The message for an unknown key suggests the nearest known one. */
void pp_args_begin(lua_State *L, int index, const char *call, const char *const *known);

bool pp_args_has(lua_State *L, int index, const char *name);

/* Finite numbers. Strings are not numbers here. */
double pp_args_number(lua_State *L, int index, const char *call, const char *name, double low, double high);
double pp_args_number_or(lua_State *L, int index, const char *call, const char *name, double low, double high, double otherwise);

/* Integers; a float with an integral value is one (2048.0). */
int64_t pp_args_integer(lua_State *L, int index, const char *call, const char *name, int64_t low, int64_t high);
int64_t pp_args_integer_or(lua_State *L, int index, const char *call, const char *name, int64_t low, int64_t high, int64_t otherwise);

bool pp_args_boolean_or(lua_State *L, int index, const char *call, const char *name, bool otherwise);

/* The string lives as long as the arguments table holds it. */
const char *pp_args_string(lua_State *L, int index, const char *call, const char *name);
const char *pp_args_string_or(lua_State *L, int index, const char *call, const char *name, const char *otherwise);

/* The position in `options` (ends with NULL) of the string given; `otherwise` when absent, -1: it is required. */
int pp_args_option(lua_State *L, int index, const char *call, const char *name, const char *const *options, int otherwise);

/* Pushes the table in that field, which is required. The one function here that leaves a value on the stack. */
void pp_args_table(lua_State *L, int index, const char *call, const char *name);

/* "engine.bubble: " and the message of a failed core function, as a Lua error. For PP_INVALID and PP_NO_MEMORY. */
int pp_args_raise(lua_State *L, const char *call, const pp_error *error);

/* Pushes nil and { id, field, nearest, message }: how a constructor answers PP_ILLEGAL. Returns 2, the number of results. */
int pp_push_illegal(lua_State *L, const pp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluation.h: what a plan prints about one candidate, as a table. May longjmp.
*/
#ifndef PP_LUA_EVALUATION_H
#define PP_LUA_EVALUATION_H

#include <lua.h>

#include "core/search.h"

/* Pushes the table of a row, or nil and the broken rule; returns how many values. The fields are listed in stdlib/plan/choose.lua.
** `baselines`: where a list of schedules lies that are evaluated in its place too, or nil or nothing. */
int pp_push_evaluation(lua_State *L, pp_search *search, size_t row, int baselines);

#endif

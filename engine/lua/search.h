/* SPDX-License-Identifier: Apache-2.0 */
/*
** search.h: engine.search: candidates as a table of columns. May longjmp.
*/
#ifndef PP_LUA_SEARCH_H
#define PP_LUA_SEARCH_H

#include <lua.h>

int pp_open_search(lua_State *L);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** views.h: tables that can be read and not written. A view is an empty table whose metatable shows another one: reading, #, ipairs and the
** sandbox's pairs see what is behind it. For Lua's own functions that look at a table raw there is pp_view_inside.
*/
#ifndef PP_VIEWS_H
#define PP_VIEWS_H

#include <lua.h>

/* Replaces the table on top by a view of it, and so the tables in it. Writing raises "NAME is read-only in policies". May longjmp. */
void pp_freeze(lua_State *L, const char *name);

/* Makes the table on top a view of what it holds: whoever has it has the view. Writing raises `message`. May longjmp. */
void pp_seal_table(lua_State *L, const char *message);

/* Pushes the table behind the view at that index, or the value itself where it is none. Never raises. */
void pp_view_inside(lua_State *L, int index);

#endif

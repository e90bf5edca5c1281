/* SPDX-License-Identifier: Apache-2.0 */
/*
** base.h: the names that a policy sees. May longjmp.
*/
#ifndef PP_BASE_H
#define PP_BASE_H

#include <lua.h>

/* Fills the table on top with every allowed and blocked name. `engine` pushes the table that names like "engine.cost" are fields of. */
void pp_add_names(lua_State *L, lua_CFunction engine);

/* Puts a print that writes to standard error into the table of names on top. */
void pp_add_print(lua_State *L);

/* Error for a name that does not exist: "no name 'x'"; remembered in the sandbox so that the host can suggest one. */
int pp_unknown(lua_State *L, const char *what, const char *name);

#endif

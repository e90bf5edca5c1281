/* SPDX-License-Identifier: Apache-2.0 */
/*
** statements.h: the verbs of a policy file and the conditions in them. May longjmp, but for what says that it never raises.
*/
#ifndef PP_STATEMENTS_H
#define PP_STATEMENTS_H

#include <lua.h>

/* Pushes the function for a verb; the value or function for a condition. */
void pp_push_verb(lua_State *L, const char *verb);
void pp_push_constructor(lua_State *L, const char *name);

/* An empty list of statements and of functions, in the registry. */
void pp_reset_statements(lua_State *L);
void pp_push_statements(lua_State *L);                    /* never raises */
void pp_push_function(lua_State *L, lua_Integer handle);  /* nil when there is none */
lua_Integer pp_count_functions(lua_State *L);             /* handles are 1 to that */

#endif

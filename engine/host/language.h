/*
** language.h: what the files of the sandbox share: the parts of the policy language, each with its file.
** Everything here runs inside a sandbox's state and may longjmp there.
*/
#ifndef PP_LANGUAGE_H
#define PP_LANGUAGE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/sandbox.h"

/* The sandbox of a state. */
pp_sandbox *pp_sandbox_of(lua_State *L);

/* base.c: fills the table on top with every allowed and blocked name. */
void pp_add_names(lua_State *L);

/* base.c: error for a name that does not exist: "no name 'x'"; remembered in the sandbox so that the host can suggest one. */
int pp_unknown(lua_State *L, const char *what, const char *name);

/* statements.c: the function for a verb, the value or function for a condition: pushes it. */
void pp_push_verb(lua_State *L, const char *verb);
void pp_push_constructor(lua_State *L, const char *name);

/* statements.c: an empty list of statements and of functions, in the registry. */
void pp_reset_statements(lua_State *L);
void pp_push_statements(lua_State *L);          /* never raises */
void pp_push_function(lua_State *L, lua_Integer handle);  /* nil when there is none */

/* seal.c: before a function is called for the first time: makes what it reaches and outlives the call unchangeable, as far as tables go. */
bool pp_is_sealed(lua_State *L, lua_Integer handle);   /* never raises */
void pp_seal(lua_State *L, lua_Integer handle);
/* seal.c: after each call: puts variables back that it changed; false when there was one, whose name is then in `name`. Never raises. */
bool pp_put_back(lua_State *L, lua_Integer handle, char *name, size_t size);

/* chunk.c: runs a policy file in its environment, unless it has run already. Raises the parser's error and its own. Leaves values behind. */
void pp_run_chunk(lua_State *L, const char *path, const char *text, size_t size, bool embedded);

/* chunk.c: pushes the list of { path, digest } of the files that `require` has read, or nil where it has read none. Never raises. */
void pp_push_required(lua_State *L);

/* Registry key of the table of names that all files share. */
extern const char pp_names_key;

#endif

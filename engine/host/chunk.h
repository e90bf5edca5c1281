/* SPDX-License-Identifier: Apache-2.0 */
/*
** chunk.h: policy files as they are run.
*/
#ifndef PP_CHUNK_H
#define PP_CHUNK_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Runs a policy file in its environment, unless it has run already. Raises the parser's error and its own. Leaves values behind. */
void pp_run_chunk(lua_State *L, const char *path, const char *text, size_t size, bool embedded);

/* A file of that text, given or required, is run as if the other were its text. May raise for want of memory. */
void pp_replace_chunk(lua_State *L, const char *text, size_t size, const char *other, size_t other_size);

/* Pushes the list of { path, digest } of the files that `require` has read, or nil where it has read none. Never raises. */
void pp_push_required(lua_State *L);

#endif

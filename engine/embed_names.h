/* SPDX-License-Identifier: Apache-2.0 */
/*
** embed_names.h: leaves names of local variables and upvalues out of Lua's bytecode. They are half of what undumping takes; only messages of bugs
** show them, and those still have file and line, which lua_dump's own stripping would leave out too.
*/
#ifndef PP_EMBED_NAMES_H
#define PP_EMBED_NAMES_H

#include <stddef.h>

/* code: what lua_dump wrote, rewritten in place. Returns its size, or 0 where it is not as Lua 5.4 writes it. */
size_t pp_leave_out_names(char *code, size_t size);

#endif

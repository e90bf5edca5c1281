/* SPDX-License-Identifier: Apache-2.0 */
/*
** directory.h: the files of a directory, which neither C11 nor Lua can list.
*/
#ifndef PP_DIRECTORY_H
#define PP_DIRECTORY_H

#include <lua.h>

/* Pushes a list (in no order) of the names in that directory, or nil when it is none; nil and why when it cannot be read to its end. Returns
** how many values that are. May longjmp. */
int pp_push_directory(lua_State *L, const char *path);

#endif

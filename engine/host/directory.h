/*
** directory.h: the files of a directory, which neither C11 nor Lua can list.
*/
#ifndef PP_DIRECTORY_H
#define PP_DIRECTORY_H

#include <lua.h>

/* Pushes a list (in no order) of the names in that directory, or nil when it cannot be listed. May longjmp. */
void pp_push_directory(lua_State *L, const char *path);

#endif

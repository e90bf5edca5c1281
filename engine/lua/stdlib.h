/* SPDX-License-Identifier: Apache-2.0 */
/*
** stdlib.h: makes the engine and stdlib loadable in a trusted Lua state (the program's, or the interpreter that loaded the module).
*/
#ifndef PP_STDLIB_H
#define PP_STDLIB_H

#include <lua.h>

#define PP_STDLIB_ON_DISK "pipeplan.stdlib_on_disk"   /* in the registry: engine.build, where it is not the embedded one's */

/*
** After this call `require "engine"` and `require "pipeplan.…"` work in L: "pipeplan.input.spec" is stdlib/input/spec.lua, "pipeplan" is
** stdlib/init.lua. With a stdlib_directory they are read from there instead of from the binary. May raise a Lua error.
*/
void pp_open_stdlib(lua_State *L, const char *stdlib_directory);

#endif

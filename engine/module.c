/* SPDX-License-Identifier: Apache-2.0 */
/*
** module.c: `require "pipeplan"` in a stock lua5.4: the same engine and the same stdlib, for tests and scripts.
** The interpreter brings Lua; this module links none. May longjmp.
*/
#include <lauxlib.h>
#include <locale.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#include "host/own_stack.h"
#include "lua/stdlib.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int luaopen_pipeplan(lua_State *L);

/* PIPEPLAN_STDLIB names a directory to read stdlib from, as --stdlib does for the program. */
EXPORT int luaopen_pipeplan(lua_State *L) {
  luaL_checkversion(L);
  /* It cannot move: what calls it stands on this stack. */
  if (pp_stack_left() < PP_STACK_LEAST)
    return luaL_error(L, "pipeplan needs a stack of %d KiB, this thread has %d KiB left", PP_STACK_LEAST / 1024, (int)(pp_stack_left() / 1024));
  if (strcmp(localeconv()->decimal_point, ".") != 0)
    return luaL_error(L, "pipeplan writes and reads 1.5, this interpreter's locale 1%s5: os.setlocale('C', 'numeric')", localeconv()->decimal_point);
  pp_open_stdlib(L, getenv("PIPEPLAN_STDLIB"));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "pipeplan.init");
  lua_call(L, 1, 1);
  return 1;
}

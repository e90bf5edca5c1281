/* SPDX-License-Identifier: Apache-2.0 */
/*
** main.c: the program. argv → trusted Lua (stdlib/cli/main.lua) → exit status.
** All judgement about status is in Lua; what Lua cannot report (no memory for a state, an error in the error path) is said here.
*/
#include <lauxlib.h>
#include <lua.h>
#include <stdio.h>
#include <string.h>

#include "host/file.h"
#include "host/last_resort.h"
#include "host/own_stack.h"
#include "host/pool.h"
#include "lua/trusted.h"
#include "host/streams.h"
#include "host/terminal.h"

enum { STATUS_USAGE = 2, STATUS_NO_MEMORY = 4, STATUS_BUG = 70 };

/* `--stdlib DIR` is read here because it decides where the option parser itself is loaded from. What stands behind `--` is no option. */
static const char *stdlib_option(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--stdlib") == 0 && i + 1 < argc) return argv[i + 1];
    if (strncmp(argv[i], "--stdlib=", 9) == 0) return argv[i] + 9;
  }
  return NULL;
}

/* NULL, or why a directory is none of stdlib's: asked here, for nothing in it could say so. */
static const char *not_stdlib(lua_State *L, const char *directory) {
  return pp_unreadable(lua_pushfstring(L, "%s/cli/main.lua", directory), false);
}

/* Runs protected: (argc, argv) → exit status as the only result. */
static int run(lua_State *L) {
  int argc = (int)lua_tointeger(L, 1);
  char **argv = lua_touserdata(L, 2);
  const char *stdlib = stdlib_option(argc, argv), *problem = stdlib ? not_stdlib(L, stdlib) : NULL;
  if (problem) {
    fprintf(stderr, "pipeplan: --stdlib: cli/main.lua of that directory cannot be read: %s\n", problem);
    lua_pushinteger(L, STATUS_USAGE);
    return 1;
  }
  lua_gc(L, LUA_GCINC, 1000, 0, 0);   /* what is loaded stays; from then on as the command says (stdlib/cli/main.lua) */
  pp_open_trusted(L, stdlib);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "pipeplan.cli.main");
  lua_call(L, 1, 1);
  lua_createtable(L, argc, 0);
  for (int i = 1; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_call(L, 1, 1);
  return 1;
}

static int traceback(lua_State *L) {
  luaL_traceback(L, L, lua_pushfstring(L, "internal error, please report it\n%s", luaL_tolstring(L, 1, NULL)), 1);
  return 1;
}

static int out_of_memory(void) {
  pp_complain("out of memory");
  return STATUS_NO_MEMORY;
}

typedef struct {
  int argc;
  char **argv;
  int status;
} program;

static void run_program(void *data) {
  program *self = data;
  int outcome;
  static lua_State *L;  /* static: the heap it is not freed with stays reachable for leak checkers */
  static pp_pool pool;
  L = lua_newstate(pp_pool_allocate, &pool);
  if (!L) {
    self->status = out_of_memory();
    return;
  }
  lua_pushcfunction(L, traceback);
  lua_pushcfunction(L, run);
  lua_pushinteger(L, self->argc);
  lua_pushlightuserdata(L, self->argv);
  outcome = lua_pcall(L, 2, 1, 1);
  if (outcome == LUA_ERRMEM) self->status = out_of_memory();
  else if (outcome == LUA_OK) self->status = (int)lua_tointeger(L, -1);
  else pp_complain(lua_tostring(L, -1));
  /* The state is not closed: the process ends here, and freeing a heap block by block is a twentieth of what a plan takes. */
}

int main(int argc, char **argv) {
  program self = { argc, argv, STATUS_BUG };
  pp_last_resort_enable();
  pp_prepare_streams();
  return pp_with_stack(run_program, &self) ? self.status : out_of_memory();
}

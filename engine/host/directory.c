/* SPDX-License-Identifier: Apache-2.0 */
/*
** directory.c: see directory.h.
*/
#define _POSIX_C_SOURCE 200809L
#include "host/directory.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <string.h>

/* A DIR in a userdata, so that it is closed even when Lua runs out of memory between two names. */
static int close_directory(lua_State *L) {
  DIR **directory = lua_touserdata(L, 1);
  if (*directory) closedir(*directory);
  *directory = NULL;
  return 0;
}

int pp_push_directory(lua_State *L, const char *path) {
  DIR **directory = lua_newuserdatauv(L, sizeof *directory, 0);
  struct dirent *entry;
  lua_Integer count = 0;
  *directory = NULL;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, close_directory);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  *directory = opendir(path);
  if (!*directory) {
    lua_pop(L, 1);
    lua_pushnil(L);
    return 1;
  }
  lua_newtable(L);
  while (errno = 0, (entry = readdir(*directory)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, -2, ++count);
  }
  if (errno != 0) {  /* half a list would be half a policy */
    lua_pushnil(L);
    lua_pushstring(L, strerror(errno));
    return 2;
  }
  closedir(*directory);
  *directory = NULL;
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** stdlib.c: a package searcher over the embedded stdlib. May longjmp. See stdlib.h.
*/
#include "lua/stdlib.h"

#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "host/embedded.h"
#include "lua/engine.h"

#define PREFIX "pipeplan"

/* "pipeplan.input.spec" → "stdlib/input/spec.lua", "pipeplan" → "stdlib/init.lua"; false when the name is not ours or too long. */
static bool file_of_module(const char *module, char *path, size_t size) {
  const char *rest;
  int written;
  if (strncmp(module, PREFIX, strlen(PREFIX)) != 0) return false;
  rest = module + strlen(PREFIX);
  if (*rest != '\0' && *rest != '.') return false;
  written = snprintf(path, size, "stdlib/%s.lua", *rest ? rest + 1 : "init");
  if (written < 0 || (size_t)written >= size) return false;
  for (char *p = path + strlen("stdlib/"); p < path + written - 4; p++)
    if (*p == '.') *p = '/';
  return true;
}

/* Pushes an embedded file as a function, or raises. */
static void load_embedded(lua_State *L, const pp_embedded *file) {
  const char *code = pp_embedded_code(file);
  if (luaL_loadbufferx(L, code ? code : file->text, code ? file->code_size : file->text_size, lua_pushfstring(L, "@%s", file->name),
                       code ? "b" : "t") != LUA_OK) lua_error(L);
}

/* lua-argparse, as the machine that built this had it. */
static int open_argparse(lua_State *L) {
  load_embedded(L, pp_embedded_find("argparse.lua"));
  lua_call(L, 0, 1);
  return 1;
}

/* package.searchers entry. Upvalue 1: directory that replaces the embedded stdlib, or nil. */
static int search_stdlib(lua_State *L) {
  const char *module = luaL_checkstring(L, 1);
  const char *directory = lua_tostring(L, lua_upvalueindex(1));
  char path[256];
  if (!file_of_module(module, path, sizeof path)) return 0;
  if (directory) {
    const char *file = lua_pushfstring(L, "%s/%s", directory, path + strlen("stdlib/"));
    if (luaL_loadfilex(L, file, "t") != LUA_OK) {
      if (lua_type(L, -1) == LUA_TSTRING && strstr(lua_tostring(L, -1), "cannot open")) return 1;
      return lua_error(L);
    }
  } else {
    const pp_embedded *file = pp_embedded_find(path);
    if (!file) {
      lua_pushfstring(L, "no embedded file '%s'", path);
      return 1;
    }
    load_embedded(L, file);
  }
  lua_pushstring(L, path);
  return 2;
}

/* The build's digest where a directory stands for the embedded stdlib: of the build, and of those of its files that are there. */
static void push_build_on_disk(lua_State *L, const char *directory) {
  luaL_Buffer text;
  size_t size;
  luaL_buffinit(L, &text);
  luaL_addstring(&text, pp_embedded_build);
  for (size_t i = 0; i < pp_embedded_count; i++) {
    const char *name = pp_embedded_files[i].name;
    char path[1024];
    if (strncmp(name, "stdlib/", strlen("stdlib/")) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", directory, name + strlen("stdlib/"));
    FILE *file = fopen(path, "rb");
    luaL_addlstring(&text, name, strlen(name) + 1);
    for (size_t got; file && (got = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, file)) > 0; ) luaL_addsize(&text, got);
    if (file) fclose(file);
  }
  luaL_pushresult(&text);
  const char *bytes = lua_tolstring(L, -1, &size);
  char hex[17];
  snprintf(hex, sizeof hex, "%016llx", (unsigned long long)pp_digest(bytes, size));
  lua_pop(L, 1);
  lua_pushstring(L, hex);
}

void pp_open_stdlib(lua_State *L, const char *stdlib_directory) {
  /* As preloads: test runners empty package.loaded between files, and `require "engine"` has to work again after that. */
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, pp_open_engine);
  lua_setfield(L, -2, "engine");
  lua_pushcfunction(L, open_argparse);
  lua_setfield(L, -2, PREFIX ".argparse");
  lua_pop(L, 1);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  /* Before the file searchers, behind package.preload: nothing on LUA_PATH can stand in for a module of ours. */
  for (lua_Integer i = luaL_len(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  if (stdlib_directory) {
    push_build_on_disk(L, stdlib_directory);
    lua_setfield(L, LUA_REGISTRYINDEX, PP_STDLIB_ON_DISK);
    lua_pushstring(L, stdlib_directory);
  } else {
    lua_pushnil(L);
  }
  lua_pushcclosure(L, search_stdlib, 1);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}

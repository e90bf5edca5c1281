/*
** process.c: engine.process: files that are written whole, and names of files. For stdlib only: no policy has it.
** May longjmp.
**
** engine.process.output(path [, kept]) → file | nil, why        kept: in place, after that many bytes (host/output_file.h)
** file:write(text), file:flush(), file:finish() → true | nil, why; then it is discarded
** file:discard()            as when it is collected; nothing after finish
** engine.process.same_file(path, path) → are they names of one file?
*/
#define _POSIX_C_SOURCE 200809L
#include "lua/process.h"

#include <lauxlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/output_file.h"

#define OUTPUT "pipeplan.output"

static int push_why(lua_State *L, const char *why) {
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* --- files --- */

static int push_done(lua_State *L, pp_status status, const pp_error *error) {
  if (status != PP_OK) return push_why(L, error->message);
  lua_pushboolean(L, 1);
  return 1;
}

static int process_output(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  lua_Integer kept = luaL_optinteger(L, 2, -1);
  pp_output_file *file = lua_newuserdatauv(L, sizeof *file, 0);
  pp_error error;
  memset(file, 0, sizeof *file);
  luaL_setmetatable(L, OUTPUT);
  if ((kept < 0 ? pp_output_open(file, path, &error) : pp_output_continue(file, path, kept, &error)) == PP_OK) return 1;
  return push_why(L, error.message);
}

static pp_output_file *check_output(lua_State *L) {
  pp_output_file *file = luaL_checkudata(L, 1, OUTPUT);
  if (!file->stream) luaL_error(L, "engine.process.output: this file is closed");
  return file;
}

static int output_write(lua_State *L) {
  pp_output_file *file = check_output(L);
  size_t size;
  const char *text = luaL_checklstring(L, 2, &size);
  pp_error error;
  return push_done(L, pp_output_write(file, text, size, &error), &error);
}

static int output_flush(lua_State *L) {
  pp_error error;
  return push_done(L, pp_output_flush(check_output(L), &error), &error);
}

static int output_finish(lua_State *L) {
  pp_error error;
  return push_done(L, pp_output_finish(check_output(L), &error), &error);
}

static int output_discard(lua_State *L) {
  pp_output_discard(luaL_checkudata(L, 1, OUTPUT));
  return 0;
}

static const luaL_Reg output_methods[] = {
  { "discard", output_discard },
  { "finish",  output_finish },
  { "flush",   output_flush },
  { "write",   output_write },
  { NULL, NULL }
};

/* --- names of files --- */

static int process_same_file(lua_State *L) {
  struct stat one, other;
  lua_pushboolean(L, stat(luaL_checkstring(L, 1), &one) == 0 && stat(luaL_checkstring(L, 2), &other) == 0 && one.st_dev == other.st_dev
                     && one.st_ino == other.st_ino);
  return 1;
}

static const luaL_Reg process_functions[] = {
  { "output",    process_output },
  { "same_file", process_same_file },
  { NULL, NULL }
};

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction finish) {
  if (luaL_newmetatable(L, name)) {
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, finish);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, finish);
    lua_setfield(L, -2, "__close");
  }
  lua_pop(L, 1);
}

int pp_open_process(lua_State *L) {
  new_type(L, OUTPUT, output_methods, output_discard);
  luaL_newlib(L, process_functions);
  return 1;
}

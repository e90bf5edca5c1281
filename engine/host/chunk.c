/* SPDX-License-Identifier: Apache-2.0 */
/*
** chunk.c: running a policy file, once, in its environment, which has `require` for the files beside it. May longjmp.
*/
#include "host/chunk.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "host/embedded.h"
#include "host/file.h"
#include "host/parse_cost.h"
#include "host/sandbox_state.h"

/* Registry key: path of a file → what it returned (true for nothing), or false while it runs. */
static const char results_key = 0;

/* Registry key: list of the files that `require` has read, or nil. */
static const char required_key = 0;

/* Registry key: { text → other text } of files that are run as another, or nil. */
static const char replaced_key = 0;

static int refuse_global(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "x";
  return luaL_error(L, "'%s' would be a global: write `local %s`", name, name);
}

/* A name of a file beside: letters, digits, underscores. No dots, no slashes: it cannot leave the directory. */
static bool is_plain_name(const char *name, size_t length) {
  return length > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

/* Pushes the text of a file beside and returns its size, or raises. `directory` ends with "/" or is "". */
static const char *read_file(lua_State *L, const char *directory, const char *path, bool embedded, size_t *size) {
  char reason[PP_FILE_REASON], *buffer;
  ptrdiff_t got;
  if (embedded) {
    const pp_embedded *found = pp_embedded_find(path);
    if (!found) luaL_error(L, "cannot require '%s': there is no such file", path);
    *size = found->text_size;
    lua_pushnil(L);
    return found->text;
  }
  buffer = lua_newuserdatauv(L, PP_CHUNK_LIMIT + 1, 0);
  got = pp_read_in_folder(directory, path + strlen(directory), buffer, PP_CHUNK_LIMIT + 1, reason);
  if (got < 0) luaL_error(L, "cannot require '%s': %s", path, reason);
  if (got > PP_CHUNK_LIMIT) luaL_error(L, "cannot require '%s': larger than %d bytes", path, PP_CHUNK_LIMIT);
  *size = (size_t)got;
  return buffer;
}

/* Appends { path, digest } to the list of what was read. */
static void remember_required(lua_State *L, const char *path, const char *text, size_t size) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &required_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &required_key);
  }
  lua_createtable(L, 2, 0);
  lua_pushstring(L, path);
  lua_rawseti(L, -2, 1);
  lua_pushinteger(L, (lua_Integer)pp_digest(text, size));
  lua_rawseti(L, -2, 2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

void pp_push_required(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &required_key);
}

/* Pushes what the file returned if it has run, nil if not; raises if it is running. */
static void push_result(lua_State *L, const char *path) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &results_key) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &results_key);
  }
  if (lua_getfield(L, -1, path) == LUA_TBOOLEAN && !lua_toboolean(L, -1)) luaL_error(L, "'%s' requires itself", path);
  lua_remove(L, -2);
}

/* results[path] = the value on top, which it pops. */
static void set_result(lua_State *L, const char *path) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &results_key);
  lua_insert(L, -2);
  lua_setfield(L, -2, path);
  lua_pop(L, 1);
}

/* require "name". Upvalues: directory of the file that calls (ends with "/" or is ""), whether that is embedded. */
static int require_beside(lua_State *L) {
  bool embedded = lua_toboolean(L, lua_upvalueindex(2));
  size_t size;
  const char *name = luaL_checklstring(L, 1, &size), *directory = lua_tostring(L, lua_upvalueindex(1)), *path, *text;
  if (!is_plain_name(name, size)) return luaL_error(L, "require '%s': only the plain name of a policy file beside this one, without '.lua'", name);
  path = lua_pushfstring(L, "%s%s.lua", directory, name);
  if (!pp_sandbox_of(L)->loading) return luaL_error(L, "cannot require '%s' in a rule's function: write it at the top of the file", path);
  push_result(L, path);
  if (!lua_isnil(L, -1)) return 1;
  text = read_file(L, directory, path, embedded, &size);
  remember_required(L, path, text, size);
  pp_run_chunk(L, path, text, size, embedded);
  push_result(L, path);
  return 1;
}

/* A file's environment: an empty table, so that every assignment to a global is caught, over { require }, over the shared names. */
static void push_environment(lua_State *L, const char *path, bool embedded) {
  const char *slash = strrchr(path, '/');
  lua_newtable(L);
  lua_newtable(L);
  lua_newtable(L);
  lua_pushlstring(L, path, slash ? (size_t)(slash - path) + 1 : 0);
  lua_pushboolean(L, embedded);
  lua_pushcclosure(L, require_beside, 2);
  lua_setfield(L, -2, "require");
  lua_newtable(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pp_names_key);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, refuse_global);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -2);
}

/* The embedded file of which that is the text, where its code can be run in the text's place, or NULL: no other bytecode is ever loaded. */
static const pp_embedded *compiled(const char *path, const char *text, size_t size, bool embedded) {
  const pp_embedded *file = embedded ? pp_embedded_find(path) : NULL;
  return file && pp_embedded_code(file) && file->text_size == size && memcmp(file->text, text, size) == 0 ? file : NULL;
}

/* Pushes the file's function, or raises the parser's error. What is compiled is charged as its text: the budget counts alike everywhere. */
static void parse(lua_State *L, const char *path, const char *text, size_t size, bool embedded) {
  const pp_embedded *file = compiled(path, text, size, embedded);
  pp_budget *budget = &pp_sandbox_of(L)->budget;
  const char *around = budget->parsing;
  budget->parsing = path;
  pp_budget_admit(L, text, size);
  pp_charge(L, pp_parse_cost(text, size));
  if (luaL_loadbufferx(L, file ? file->code : text, file ? file->code_size : size, lua_pushfstring(L, "@%s", path), file ? "b" : "t") != LUA_OK)
    lua_error(L);
  budget->parsing = around;
}

void pp_replace_chunk(lua_State *L, const char *text, size_t size, const char *other, size_t other_size) {
  lua_newtable(L);
  lua_pushlstring(L, text, size);
  lua_pushlstring(L, other, other_size);
  lua_rawset(L, -3);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &replaced_key);
}

/* The text that is run in place of one; what it pushes keeps it alive. */
static const char *replacement(lua_State *L, const char *text, size_t *size) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &replaced_key) != LUA_TTABLE) return text;
  lua_pushlstring(L, text, *size);
  return lua_rawget(L, -2) == LUA_TSTRING ? lua_tolstring(L, -1, size) : text;
}

void pp_run_chunk(lua_State *L, const char *path, const char *text, size_t size, bool embedded) {
  push_result(L, path);
  if (!lua_isnil(L, -1)) return;
  text = replacement(L, text, &size);
  lua_pushboolean(L, 0);
  set_result(L, path);
  parse(L, path, text, size, embedded);
  push_environment(L, path, embedded);
  lua_setupvalue(L, -2, 1);
  lua_call(L, 0, 1);
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
  }
  set_result(L, path);
}

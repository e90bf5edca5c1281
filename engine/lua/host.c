/* SPDX-License-Identifier: Apache-2.0 */
/*
** host.c: engine.host. May longjmp, but never while a sandbox's state is running.
**
** engine.host.open{ fields = {names}, work?, bytes?, debug? (policies have a print, to standard error) } → host
** host:run(path, text, embedded) → list of statements | nil, problem
** host:replace(text, other) → true | nil, problem: from now on a file of that text, given or required, is run as if the other were its text
** host:call(handle, record, name of the rule?, late?) → true or false, list of the names that the function read | nil, problem
** host:value(the same) → what the function returns, whatever it is (of what cannot be copied: why), and the names
**   late: set of the fields that are not known yet; a call that reads one ends, and the problem's `late` is its name, its `reads` what it read before
** host:seal() → true | nil, problem: the files run so far are a layer, which those that follow cannot change
** host:refill()             a new evaluation starts, which sees nothing of the one before: all of the budget is there again
** host:usage() → { work, work_limit, bytes, bytes_peak, bytes_limit }
** host:names() → every name that a policy can reach; host:close()
** A problem is { kind = "broken" | "budget" | "memory" (the system's), message, unknown = name that does not exist or nil }.
** host:required() → list of { path, digest (an integer) } of the files that `require` has read, or nil
** engine.host.directory(path) → list of the names in that directory, or nil [, reason]; engine.host.digest(text) → 16 hexadecimal digits
** engine.host.policy_text(folder, name) → text of a policy file of a folder (host/file.h), one byte too long at most | nil, reason
** engine.host.readable(path [, regular]) → true | nil, reason: it may be read and is no directory, or a regular file. Opens nothing
** engine.host.system_path() → package.path and package.cpath of the system's Lua: the absolute ones of its default, none from the environment
** engine.host.terminal() → true when standard output is a terminal
** engine.host.tag           key of what stands for something: t[tag] = "under", …, or "function"
** engine.host.bare          light userdata → "odd", "even", "any"
** engine.host.allowed       name → why; engine.host.blocked  name → what to use instead
*/
#include "lua/host.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "core/digest.h"
#include "host/allow.h"
#include "host/chunk.h"
#include "host/copy.h"
#include "host/directory.h"
#include "host/file.h"
#include "host/sandbox.h"
#include "host/statements.h"
#include "host/terminal.h"
#include "lua/arguments.h"
#include "lua/primitives.h"
#include "lua/results.h"

#define TYPE "pipeplan.host"

enum { DEFAULT_WORK = 100 * 1000 * 1000, DEFAULT_BYTES = 64 * 1024 * 1024 };

static pp_sandbox *check_host(lua_State *L) {
  pp_sandbox *sandbox = luaL_checkudata(L, 1, TYPE);
  if (!sandbox->L) luaL_error(L, "engine.host: this host is closed");
  return sandbox;
}

static int push_problem(lua_State *L, const pp_sandbox *sandbox, pp_outcome outcome) {
  lua_pushnil(L);
  lua_createtable(L, 0, 3);
  pp_set_string(L, "kind", outcome == PP_OVER_BUDGET ? "budget" : outcome == PP_OUT_OF_MEMORY ? "memory" : "broken");
  pp_set_string(L, "message", sandbox->message);
  if (sandbox->unknown[0]) pp_set_string(L, "unknown", sandbox->unknown);
  if (sandbox->late[0]) pp_set_string(L, "late", sandbox->late);
  return 2;
}

static int host_open(lua_State *L) {
  static const char *const known[] = { "fields", "work", "bytes", "debug", NULL };
  static const char call[] = "engine.host.open";
  uint64_t work;
  size_t bytes;
  pp_sandbox *sandbox;
  pp_outcome outcome;
  bool debug;
  pp_args_begin(L, 1, call, known);
  work = (uint64_t)pp_args_integer_or(L, 1, call, "work", 1, INT64_MAX, DEFAULT_WORK);
  bytes = (size_t)pp_args_integer_or(L, 1, call, "bytes", 1, INT64_MAX, DEFAULT_BYTES);
  lua_settop(L, 1);
  debug = lua_getfield(L, 1, "debug") == LUA_TBOOLEAN && lua_toboolean(L, -1);
  lua_settop(L, 1);
  pp_args_table(L, 1, call, "fields");
  sandbox = lua_newuserdatauv(L, sizeof *sandbox, 0);
  sandbox->L = NULL;
  luaL_setmetatable(L, TYPE);
  outcome = pp_sandbox_open(sandbox, work, bytes, pp_open_primitives, L, 2);
  if (outcome == PP_RAN && debug) outcome = pp_sandbox_allow_print(sandbox);
  return outcome == PP_RAN ? 1 : push_problem(L, sandbox, outcome);
}

static int host_run(lua_State *L) {
  pp_sandbox *sandbox = check_host(L);
  size_t size;
  const char *path = luaL_checkstring(L, 2), *text = luaL_checklstring(L, 3, &size), *problem;
  pp_outcome outcome = pp_sandbox_run(sandbox, path, text, size, lua_toboolean(L, 4));
  if (outcome != PP_RAN) return push_problem(L, sandbox, outcome);
  pp_sandbox_statements(sandbox);
  lua_newtable(L);
  for (lua_Integer i = 1; lua_rawgeti(sandbox->L, -1, i) != LUA_TNIL; i++) {
    problem = pp_copy(sandbox->L, -1, L, NULL);
    if (problem) {
      snprintf(sandbox->message, sizeof sandbox->message, "a statement has %s", problem);
      return push_problem(L, sandbox, PP_BROKEN);
    }
    lua_rawseti(L, -2, i);
    lua_pop(sandbox->L, 1);
  }
  return 1;
}

static int host_replace(lua_State *L) {
  pp_sandbox *sandbox = check_host(L);
  size_t size, other_size;
  const char *text = luaL_checklstring(L, 2, &size), *other = luaL_checklstring(L, 3, &other_size);
  pp_outcome outcome = pp_sandbox_replace(sandbox, text, size, other, other_size);
  if (outcome != PP_RAN) return push_problem(L, sandbox, outcome);
  lua_pushboolean(L, 1);
  return 1;
}

/* Pushes the names that the function of the last call read. */
static void push_reads(lua_State *L, pp_sandbox *sandbox) {
  const char *problem;
  pp_sandbox_reads(sandbox);
  problem = pp_copy(sandbox->L, -1, L, NULL);
  if (problem) luaL_error(L, "engine.host: %s", problem);
}

/* host:call and host:value, which may be anything. */
static int call(lua_State *L, bool any) {
  pp_sandbox *sandbox = check_host(L);
  lua_Integer handle = luaL_checkinteger(L, 2);
  bool result = false;
  const char *problem;
  pp_outcome outcome;
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 5);
  if (!lua_isnil(L, 5)) luaL_checktype(L, 5, LUA_TTABLE);
  outcome = pp_sandbox_call(sandbox, handle, luaL_optstring(L, 4, "a rule's function"), L, 3, lua_isnil(L, 5) ? 0 : 5, any ? NULL : &result);
  if (outcome != PP_RAN) {
    push_problem(L, sandbox, outcome);
    if (outcome == PP_BROKEN && sandbox->late[0]) {
      push_reads(L, sandbox);
      lua_setfield(L, -2, "reads");
    }
    return 2;
  }
  if (any) {
    pp_sandbox_value(sandbox);
    problem = pp_copy(sandbox->L, -1, L, NULL);
    if (problem) lua_pushstring(L, problem);
  } else {
    lua_pushboolean(L, result);
  }
  push_reads(L, sandbox);
  return 2;
}

static int host_call(lua_State *L) { return call(L, false); }
static int host_value(lua_State *L) { return call(L, true); }

static int host_refill(lua_State *L) {
  pp_sandbox_refill(check_host(L));
  return 0;
}

static int host_seal(lua_State *L) {
  pp_sandbox *sandbox = check_host(L);
  pp_outcome outcome = pp_sandbox_seal(sandbox);
  if (outcome != PP_RAN) return push_problem(L, sandbox, outcome);
  lua_pushboolean(L, true);
  return 1;
}

static int host_usage(lua_State *L) {
  const pp_meter *budget = &check_host(L)->budget.meter;
  lua_createtable(L, 0, 5);
  pp_set_integer(L, "work", (lua_Integer)budget->spent);
  pp_set_integer(L, "work_limit", (lua_Integer)budget->limit);
  pp_set_integer(L, "bytes", (lua_Integer)budget->used);
  pp_set_integer(L, "bytes_peak", (lua_Integer)budget->peak);
  pp_set_integer(L, "bytes_limit", (lua_Integer)budget->cap);
  return 1;
}

static int host_names(lua_State *L) {
  pp_sandbox *sandbox = check_host(L);
  pp_outcome outcome = pp_sandbox_names(sandbox);
  const char *problem;
  if (outcome != PP_RAN) return push_problem(L, sandbox, outcome);
  problem = pp_copy(sandbox->L, -1, L, NULL);
  if (problem) return luaL_error(L, "engine.host: %s", problem);
  return 1;
}

static int host_required(lua_State *L) {
  pp_sandbox *sandbox = check_host(L);
  const char *problem;
  lua_settop(sandbox->L, 0);
  pp_push_required(sandbox->L);
  problem = pp_copy(sandbox->L, -1, L, NULL);
  if (problem) return luaL_error(L, "engine.host: %s", problem);
  return 1;
}

static int host_close(lua_State *L) {
  pp_sandbox_close(luaL_checkudata(L, 1, TYPE));
  return 0;
}

static const luaL_Reg host_methods[] = {
  { "call",   host_call },
  { "close",  host_close },
  { "names",  host_names },
  { "refill", host_refill },
  { "replace", host_replace },
  { "required", host_required },
  { "run",    host_run },
  { "seal",   host_seal },
  { "usage",  host_usage },
  { "value",  host_value },
  { NULL, NULL }
};

static int host_directory(lua_State *L) {
  return pp_push_directory(L, luaL_checkstring(L, 1));
}

static int host_digest(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  char digits[17];
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)pp_digest(text, size));
  lua_pushstring(L, digits);
  return 1;
}

static int host_policy_text(lua_State *L) {
  const char *folder = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  char reason[PP_FILE_REASON], *buffer = lua_newuserdatauv(L, PP_CHUNK_LIMIT + 1, 0);
  ptrdiff_t size = pp_read_in_folder(folder, name, buffer, PP_CHUNK_LIMIT + 1, reason);
  if (size >= 0) return lua_pushlstring(L, buffer, (size_t)size), 1;
  lua_pushnil(L);
  lua_pushstring(L, reason);
  return 2;
}

static int host_readable(lua_State *L) {
  const char *problem = pp_unreadable(luaL_checkstring(L, 1), lua_toboolean(L, 2));
  if (!problem) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, problem);
  return 2;
}

/* The templates of a search path that begin at the root, without "./?.lua" and the like. */
static void push_absolute(lua_State *L, const char *path) {
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  for (size_t length; *path; path += length) {
    length = strcspn(path, ";");
    length += path[length] == ';';
    if (*path == '/') luaL_addlstring(&out, path, length);
  }
  luaL_pushresult(&out);
}

static int host_system_path(lua_State *L) {
  push_absolute(L, LUA_PATH_DEFAULT);
  push_absolute(L, LUA_CPATH_DEFAULT);
  return 2;
}

static int host_terminal(lua_State *L) {
  lua_pushboolean(L, pp_output_is_terminal());
  lua_pushboolean(L, pp_messages_are_seen());
  return 2;
}

static const luaL_Reg host_functions[] = {
  { "digest", host_digest },
  { "directory", host_directory },
  { "open", host_open },
  { "policy_text", host_policy_text },
  { "readable", host_readable },
  { "system_path", host_system_path },
  { "terminal", host_terminal },
  { NULL, NULL }
};

int pp_open_host(lua_State *L) {
  static const char *const bare[] = { "any", "even", "odd" };
  if (luaL_newmetatable(L, TYPE)) {
    luaL_newlib(L, host_methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, host_close);
    lua_setfield(L, -2, "__gc");
  }
  lua_pop(L, 1);
  luaL_newlib(L, host_functions);
  lua_pushlightuserdata(L, PP_TAG);
  lua_setfield(L, -2, "tag");
  lua_newtable(L);
  for (size_t i = 0; i < sizeof bare / sizeof *bare; i++) {
    pp_push_constructor(L, bare[i]);
    lua_pushstring(L, bare[i]);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "bare");
  lua_newtable(L);
  for (size_t i = 0; i < pp_allowed_count; i++) pp_set_string(L, pp_allowed_names[i].name, pp_allowed_names[i].why);
  lua_setfield(L, -2, "allowed");
  lua_newtable(L);
  for (size_t i = 0; i < pp_blocked_count; i++) pp_set_string(L, pp_blocked_names[i].name, pp_blocked_names[i].instead);
  lua_setfield(L, -2, "blocked");
  return 1;
}

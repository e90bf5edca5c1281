/* SPDX-License-Identifier: Apache-2.0 */
/*
** sandbox.c: see sandbox.h. Every entry into the state goes through `enter`: protected, and judged by the budget's flags rather than by what
** the script did.
*/
#include "host/sandbox.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "host/base.h"
#include "host/chunk.h"
#include "host/copy.h"
#include "host/last_resort.h"
#include "host/seal.h"
#include "host/statements.h"

/* Registry key: the set of names that a record may have. */
static const char fields_key = 0;
static const char value_key = 0;  /* what the function of the last call returned, where that may be anything */

/* Registry key: the names that the function of the last call read: a list, and each name as a key. */
static const char reads_key = 0;

/* --- outcomes --- */

/* An error value as one line of text: strings with control characters made visible, anything else by its type. No metamethod is called. */
static void write_message(pp_sandbox *sandbox) {
  lua_State *L = sandbox->L;
  size_t length;
  const char *text;
  if (lua_type(L, -1) != LUA_TSTRING) {
    snprintf(sandbox->message, sizeof sandbox->message, "the error value is a %s, not a message", lua_typename(L, lua_type(L, -1)));
    return;
  }
  text = lua_tolstring(L, -1, &length);
  pp_text_visible(text, length, sandbox->message, sizeof sandbox->message);
}

/* What ran out, if anything did. */
static pp_outcome judge(pp_sandbox *sandbox) {
  const pp_budget *budget = &sandbox->budget;
  const pp_meter *meter = &budget->meter;
  const char *where = budget->where, *colon = *where ? ": " : "";
  char *message = sandbox->message;
  const size_t size = sizeof sandbox->message;
  if (meter->no_memory) {
    snprintf(message, size, "%s%sout of memory: the system has none left; the policy used %zu of %zu bytes", where, colon, meter->used, meter->cap);
    return PP_OUT_OF_MEMORY;
  }
  if (meter->exhausted)
    snprintf(message, size, "%s%sover budget: more than %llu units of work", where, colon, (unsigned long long)meter->limit);
  else if (meter->full && budget->one_piece)
    snprintf(message, size, "%s%sover budget: more than %zu bytes of memory in one piece", where, colon, pp_budget_largest_block(budget));
  else if (meter->full)
    snprintf(message, size, "%s%sover budget: more than %zu bytes of memory", where, colon, meter->cap);
  else
    return PP_RAN;
  return PP_OVER_BUDGET;
}

/*
** Calls `body` with `context` (a light userdata) in the state, protected. On PP_RAN its one result is on top of sandbox->L. `what` names it,
** where it has to be ended from outside.
*/
static pp_outcome enter(pp_sandbox *sandbox, const char *what, lua_CFunction body, void *context) {
  lua_State *L = sandbox->L;
  pp_meter *meter = &sandbox->budget.meter, *before;
  pp_outcome outcome = judge(sandbox);
  int status;
  if (outcome != PP_RAN) return outcome;
  sandbox->message[0] = sandbox->unknown[0] = sandbox->late[0] = '\0';
  sandbox->budget.parsing = NULL;
  sandbox->budget.host = sandbox->budget.used = true;
  before = pp_meter_use(meter);
  pp_last_resort_enter(what);
  lua_settop(L, 0);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, context);
  status = lua_pcall(L, 1, 1, 0);
  pp_last_resort_leave();
  pp_spend(0);   /* what Lua allocated was charged without a look at the limit */
  pp_meter_use(before);
  sandbox->loading = false;
  outcome = judge(sandbox);
  if (outcome != PP_RAN || status == LUA_OK) return outcome;
  write_message(sandbox);
  return PP_BROKEN;
}

/* --- opening --- */

typedef struct {
  pp_sandbox *sandbox;
  lua_CFunction engine;
  lua_State *from;
  int fields;
} opening;

static int open_body(lua_State *L) {
  opening *job = lua_touserdata(L, 1);
  const char *problem;
  pp_sandbox_bind(L, job->sandbox);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &pp_names_key);
  pp_add_names(L, job->engine);
  lua_settop(L, 1);
  problem = pp_copy(job->from, job->fields, L, NULL);
  if (problem) return luaL_error(L, "%s", problem);
  lua_newtable(L);
  for (lua_Integer i = 1; lua_rawgeti(L, 2, i) == LUA_TSTRING; i++) {
    lua_pushboolean(L, 1);
    lua_rawset(L, 3);
  }
  lua_settop(L, 3);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &fields_key);
  pp_budget_attach(L, &job->sandbox->budget);
  return 1;
}

pp_outcome pp_sandbox_open(pp_sandbox *sandbox, uint64_t work, size_t bytes, lua_CFunction engine, lua_State *from, int fields) {
  opening job = { sandbox, engine, from, fields };
  pp_outcome outcome;
  memset(sandbox, 0, sizeof *sandbox);
  pp_budget_open(&sandbox->budget, work, bytes);
  sandbox->L = lua_newstate(pp_budget_allocate, &sandbox->budget);
  if (!sandbox->L) return judge(sandbox);
  outcome = enter(sandbox, "a policy's state", open_body, &job);
  pp_sandbox_refill(sandbox);  /* what the host builds is not the policy's work */
  return outcome;
}

static int print_body(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pp_names_key);
  pp_add_print(L);
  return 1;
}

pp_outcome pp_sandbox_allow_print(pp_sandbox *sandbox) {
  pp_outcome outcome = enter(sandbox, "a policy's state", print_body, NULL);
  pp_sandbox_refill(sandbox);
  return outcome;
}

void pp_sandbox_refill(pp_sandbox *sandbox) {
  pp_budget_refill(&sandbox->budget);
  pp_last_resort_refill(sandbox->budget.meter.limit, sandbox->budget.meter.cap);
}

void pp_sandbox_close(pp_sandbox *sandbox) {
  if (sandbox->L) lua_close(sandbox->L);  /* no policy can have left a finalizer */
  sandbox->L = NULL;
}

/* --- what outlives a rule's call --- */

/* Work for a function, but not in it, is its: where it runs out, and nothing of the policy runs, its place is told. */
static void at_function(lua_State *L, lua_Integer handle) {
  pp_budget *budget = &pp_sandbox_of(L)->budget;
  lua_Debug function;
  pp_push_function(L, handle);
  if (!lua_isfunction(L, -1)) luaL_error(L, "no function has the handle %I", (LUAI_UACINT)handle);
  lua_getinfo(L, ">S", &function);
  snprintf(budget->where, sizeof budget->where, "%s:%d", function.source + (*function.source == '@'), function.linedefined);
}

static void seal_function(lua_State *L, lua_Integer handle) {
  at_function(L, handle);
  pp_seal(L, handle);
}

static int seal_layer_body(lua_State *L) {
  for (lua_Integer handle = pp_count_functions(L); handle > 0 && !pp_is_sealed(L, handle); handle--) seal_function(L, handle);
  return 0;
}

pp_outcome pp_sandbox_seal(pp_sandbox *sandbox) {
  return enter(sandbox, "a layer's functions", seal_layer_body, NULL);
}

/* Raises where a file that was run has changed what a function of a layer below it reads, which then has its value back. */
static void check_layers_below(lua_State *L, const char *path) {
  char variable[64];
  for (lua_Integer handle = 1; pp_is_sealed(L, handle); handle++) {
    at_function(L, handle);
    pp_charge_variables(L, handle);
    if (!pp_put_back(L, handle, variable, sizeof variable))
      luaL_error(L, "%s: a file may not change '%s', which a rule's function of a layer below it reads", path, variable);
  }
}

/* --- running a file --- */

typedef struct {
  const char *path, *text;
  size_t size;
  bool embedded;
} running;

static int run_body(lua_State *L) {
  running *job = lua_touserdata(L, 1);
  pp_reset_statements(L);
  pp_sandbox_of(L)->budget.host = false;
  pp_run_chunk(L, job->path, job->text, job->size, job->embedded);
  check_layers_below(L, job->path);
  return 0;
}

pp_outcome pp_sandbox_run(pp_sandbox *sandbox, const char *path, const char *text, size_t size, bool embedded) {
  running job = { path, text, size, embedded };
  if (size > PP_CHUNK_LIMIT) {
    snprintf(sandbox->message, sizeof sandbox->message, "%s: a policy file has at most %d bytes", path, PP_CHUNK_LIMIT);
    return PP_BROKEN;
  }
  sandbox->loading = sandbox->budget.loading = true;
  return enter(sandbox, path, run_body, &job);
}

typedef struct {
  const char *text, *other;
  size_t size, other_size;
} replacing;

static int replace_body(lua_State *L) {
  const replacing *job = lua_touserdata(L, 1);
  pp_replace_chunk(L, job->text, job->size, job->other, job->other_size);
  return 1;
}

pp_outcome pp_sandbox_replace(pp_sandbox *sandbox, const char *text, size_t size, const char *other, size_t other_size) {
  replacing job = { text, other, size, other_size };
  return enter(sandbox, "a policy's state", replace_body, &job);
}

void pp_sandbox_statements(pp_sandbox *sandbox) {
  lua_settop(sandbox->L, 0);
  pp_push_statements(sandbox->L);
}

/* --- calling a rule's function --- */

typedef struct {
  lua_Integer handle;
  lua_State *from;
  int index, late;
  bool any;     /* it may return anything, not only true or false */
  bool result;
} calling;

static int refuse_writing(lua_State *L) {
  return luaL_error(L, "the record of a rule is read-only");
}

/* Upvalues of what reads a record. */
enum { VALUES = 1, NAMES, READS, LATE };

/* The name at 2 is read: noted, once. */
static void note_read(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(READS)) == LUA_TNIL) {
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, lua_upvalueindex(READS));
    lua_pushvalue(L, 2);
    lua_rawseti(L, lua_upvalueindex(READS), (lua_Integer)lua_rawlen(L, lua_upvalueindex(READS)) + 1);
  }
  lua_pop(L, 1);
}

/* A spec labels its run as it likes, so these names are in no list (stdlib/vocabulary.lua). */
static bool is_label(const char *name) {
  return strncmp(name, "label_", 6) == 0 && name[6] != '\0';
}

/* A known name without a value is nil: absent. One that is not known yet ends the call. */
static int read_record(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return pp_unknown(L, "field", lua_typename(L, lua_type(L, 2)));
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(LATE)) != LUA_TNIL) {
    pp_sandbox *sandbox = pp_sandbox_of(L);
    strncpy(sandbox->late, lua_tostring(L, 2), sizeof sandbox->late - 1);
    return luaL_error(L, "'%s' is not known yet", sandbox->late);
  }
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(VALUES)) != LUA_TNIL) return note_read(L), 1;
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(NAMES)) != LUA_TNIL || is_label(lua_tostring(L, 2))) return note_read(L), lua_pushnil(L), 1;
  return pp_unknown(L, "field", lua_tostring(L, 2));
}

static void push_copy(lua_State *L, lua_State *from, int index) {
  const char *problem = index ? pp_copy(from, index, L, NULL) : NULL;
  if (problem) luaL_error(L, "%s", problem);
  if (!index) lua_newtable(L);
}

static void push_record(lua_State *L, calling *job) {
  lua_newtable(L);
  lua_newtable(L);
  push_copy(L, job->from, job->index);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &reads_key);
  push_copy(L, job->from, job->late);
  lua_pushcclosure(L, read_record, LATE);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, refuse_writing);
  lua_setfield(L, -2, "__newindex");
  lua_setmetatable(L, -2);
}

static int call_body(lua_State *L) {
  calling *job = lua_touserdata(L, 1);
  int results;
  at_function(L, job->handle);
  pp_charge_variables(L, job->handle);
  pp_push_function(L, job->handle);
  push_record(L, job);
  pp_sandbox_of(L)->budget.host = false;
  lua_call(L, 1, LUA_MULTRET);
  results = lua_gettop(L) - 1;
  if (job->any) {
    lua_settop(L, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &value_key);
    return 0;
  }
  if (results != 1) return luaL_error(L, "`when` must return true or false, it returned %d values", results);
  if (lua_type(L, -1) != LUA_TBOOLEAN) return luaL_error(L, "`when` must return true or false, it returned a %s", luaL_typename(L, -1));
  job->result = lua_toboolean(L, -1);
  return 1;
}

static int seal_body(lua_State *L) {
  const calling *job = lua_touserdata(L, 1);
  seal_function(L, job->handle);
  return 0;
}

/* What is done once is no part of the evaluation in which it happens to be done. */
static pp_outcome seal(pp_sandbox *sandbox, calling *job) {
  pp_meter *meter = &sandbox->budget.meter;
  const uint64_t spent = meter->spent;
  pp_outcome outcome = judge(sandbox);
  if (outcome != PP_RAN || pp_is_sealed(sandbox->L, job->handle)) return outcome;
  meter->spent = 0;
  outcome = enter(sandbox, "a rule's function", seal_body, job);
  meter->spent = spent;
  return outcome;
}

pp_outcome pp_sandbox_call(pp_sandbox *sandbox, lua_Integer handle, const char *what, lua_State *from, int index, int late, bool *result) {
  calling job = { handle, from, index, late, result == NULL, false };
  char variable[64];
  pp_outcome outcome = seal(sandbox, &job);
  if (outcome != PP_RAN) return outcome;
  outcome = enter(sandbox, what, call_body, &job);
  if (result) *result = job.result;
  if (pp_put_back(sandbox->L, handle, variable, sizeof variable) || outcome != PP_RAN) return outcome;
  snprintf(sandbox->message, sizeof sandbox->message, "a rule's function may not change '%s', which outlives the call", variable);
  return PP_BROKEN;
}

void pp_sandbox_value(pp_sandbox *sandbox) {
  lua_settop(sandbox->L, 0);
  lua_rawgetp(sandbox->L, LUA_REGISTRYINDEX, &value_key);
}

void pp_sandbox_reads(pp_sandbox *sandbox) {
  lua_settop(sandbox->L, 0);
  lua_rawgetp(sandbox->L, LUA_REGISTRYINDEX, &reads_key);
}

/* --- what there is --- */

/* Appends to the list at 2 every name in the table on top, and in the tables that it shows (views included), to a depth of two. */
static void walk(lua_State *L, const char *prefix, int depth) {
  int table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table); lua_settop(L, -2)) {
    const char *name = lua_pushfstring(L, "%s%s", prefix, lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "(unnamed)");
    bool inside = false;
    lua_insert(L, -2);  /* key, name, value */
    if (lua_type(L, -1) == LUA_TTABLE && depth < 2) {
      if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) lua_pushvalue(L, -1);
      if (lua_type(L, -1) == LUA_TTABLE) {
        const char *inner = lua_pushfstring(L, "%s.", name);
        lua_insert(L, -2);
        walk(L, inner, depth + 1);
        inside = true;
      }
    }
    if (!inside) {
      lua_pushstring(L, name);
      lua_rawseti(L, 2, (lua_Integer)lua_rawlen(L, 2) + 1);
    }
    lua_settop(L, table + 2);  /* key, name */
  }
}

static int names_body(lua_State *L) {
  lua_settop(L, 1);
  lua_newtable(L);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pp_names_key);
  walk(L, "", 1);
  lua_settop(L, 2);
  lua_pushliteral(L, "");
  if (lua_getmetatable(L, -1)) {
    lua_pushliteral(L, "(metatable of strings)");
    lua_rawseti(L, 2, (lua_Integer)lua_rawlen(L, 2) + 1);
  }
  lua_settop(L, 2);
  return 1;
}

pp_outcome pp_sandbox_names(pp_sandbox *sandbox) {
  return enter(sandbox, "the list of names", names_body, NULL);
}

/*
** json.c: binding of core/json_check.h. May longjmp.
*/
#include "lua/json.h"

#include <lauxlib.h>

#include "core/json_check.h"
#include "lua/results.h"

/* Offsets of empty arrays. A callback may not call Lua while the scanner holds memory, so they are collected in a first pass that counts
** and a second that fills. */
typedef struct {
  size_t count, room;
  size_t *offsets;
} empties;

static void note_empty(void *context, size_t offset) {
  empties *found = context;
  if (found->count < found->room) found->offsets[found->count] = offset;
  found->count++;
}

/*
** engine.json.check(text [, max_depth]) → true, list of the positions (from 1) of the '[' of empty arrays
**                                       → nil, { line, column, offset, message }
*/
static int json_check(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  int max_depth = (int)luaL_optinteger(L, 2, PP_JSON_MAX_DEPTH);
  empties found = { 0 };
  pp_json_problem problem;
  pp_status status;
  luaL_argcheck(L, max_depth > 0 && max_depth <= PP_JSON_MAX_DEPTH, 2, "depth out of range");
  status = pp_json_check(text, size, max_depth, note_empty, &found, &problem);
  if (status == PP_OK && found.count > 0) {
    found.room = found.count;
    found.count = 0;
    found.offsets = lua_newuserdatauv(L, found.room * sizeof *found.offsets, 0);
    status = pp_json_check(text, size, max_depth, note_empty, &found, &problem);
  }
  if (status == PP_NO_MEMORY) return luaL_error(L, "not enough memory");
  if (status == PP_OK) {
    lua_pushboolean(L, 1);
    lua_createtable(L, (int)found.count, 0);
    for (size_t i = 0; i < found.count; i++) {
      lua_pushinteger(L, (lua_Integer)found.offsets[i] + 1);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 2;
  }
  lua_pushnil(L);
  lua_createtable(L, 0, 4);
  pp_set_integer(L, "line", (lua_Integer)problem.line);
  pp_set_integer(L, "column", (lua_Integer)problem.column);
  pp_set_integer(L, "offset", (lua_Integer)problem.offset + 1);
  pp_set_string(L, "message", problem.message);
  return 2;
}

static const luaL_Reg json_functions[] = {
  { "check", json_check },
  { NULL, NULL }
};

int pp_open_json(lua_State *L) {
  luaL_newlib(L, json_functions);
  return 1;
}

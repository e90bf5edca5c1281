/* SPDX-License-Identifier: Apache-2.0 */
/*
** library.c: libpipeplan: pipeplan.h over a Lua state of its own and stdlib/embed.lua.
*/
#include "pipeplan.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "host/own_stack.h"
#include "lua/trusted.h"

#define EXPORT __attribute__((visibility("default")))

/* The state's stack: 1 the function that plans; 2 the answer, nil where there was no memory for it. */
enum { PLAN = 1, ANSWER = 2 };

struct pipeplan {
  lua_State *L;
};

static const char no_memory[] = "{\"error\":{\"message\":\"out of memory\",\"status\":4}}";

/* Runs protected: options as a light userdata → the function that plans, answer, status. */
static int open_planner(lua_State *L) {
  const char *options = lua_touserdata(L, 1);
  pp_open_trusted(L, NULL);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "pipeplan.embed");
  lua_call(L, 1, 1);
  lua_pushstring(L, options);  /* nil for NULL */
  lua_call(L, 1, 3);
  return 3;
}

/* Of a call that Lua itself ended: embed.lua catches all else. Leaves function and answer in their places. */
static int failed(lua_State *L, int outcome) {
  lua_settop(L, PLAN);
  if (outcome == LUA_ERRMEM) lua_pushnil(L);  /* a text would take memory: see pipeplan_answer */
  else lua_pushliteral(L, "{\"error\":{\"message\":\"internal error\",\"status\":70}}");
  return outcome == LUA_ERRMEM ? PIPEPLAN_OVER_BUDGET : PIPEPLAN_BUG;
}

/* A call of this library, where its stack is large enough. */
typedef struct {
  lua_State *L;
  const char *text;   /* options, or a spec */
  int status;
} call;

static void open_state(void *data) {
  call *self = data;
  lua_State *L = self->L = luaL_newstate();
  if (!L) return;
  lua_pushcfunction(L, open_planner);
  lua_pushlightuserdata(L, (void *)self->text);
  const int outcome = lua_pcall(L, 1, 3, 0);
  if (outcome == LUA_OK) {
    self->status = (int)lua_tointeger(L, -1);
    lua_settop(L, ANSWER);
  } else {
    lua_settop(L, 0);
    lua_pushnil(L);
    self->status = failed(L, outcome);
  }
}

EXPORT int pipeplan_open(const char *options, pipeplan **planner) {
  pipeplan *self = malloc(sizeof *self);
  call opening = { NULL, options, PIPEPLAN_OVER_BUDGET };
  *planner = NULL;
  if (!self) return PIPEPLAN_OVER_BUDGET;
  if (!pp_with_stack(open_state, &opening) || !opening.L) {
    free(self);
    return PIPEPLAN_OVER_BUDGET;
  }
  self->L = opening.L;
  *planner = self;
  return opening.status;
}

/* Runs protected: (function, spec as a light userdata) → answer, status. */
static int plan(lua_State *L) {
  lua_pushstring(L, lua_touserdata(L, 2));
  lua_replace(L, 2);
  lua_call(L, 1, 2);
  return 2;
}

static void plan_in_state(void *data) {
  call *self = data;
  lua_State *L = self->L;
  lua_pushcfunction(L, plan);
  lua_pushvalue(L, PLAN);
  lua_pushlightuserdata(L, (void *)self->text);
  const int outcome = lua_pcall(L, 2, 2, 0);
  if (outcome == LUA_OK) {
    self->status = (int)lua_tointeger(L, -1);
    lua_settop(L, ANSWER);
  } else {
    self->status = failed(L, outcome);
  }
}

EXPORT int pipeplan_plan(pipeplan *planner, const char *spec) {
  call planning = { planner->L, spec, PIPEPLAN_OVER_BUDGET };
  lua_settop(planner->L, PLAN);
  if (!pp_with_stack(plan_in_state, &planning)) lua_pushnil(planner->L);   /* no memory: see pipeplan_answer */
  return planning.status;
}

EXPORT const char *pipeplan_answer(const pipeplan *planner) {
  const char *answer = lua_tostring(planner->L, ANSWER);
  return answer ? answer : no_memory;
}

EXPORT void pipeplan_close(pipeplan *planner) {
  if (!planner) return;
  lua_close(planner->L);
  free(planner);
}

EXPORT const char *pipeplan_version(void) { return PP_VERSION; }

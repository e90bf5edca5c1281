/* SPDX-License-Identifier: Apache-2.0 */
/*
** library.c: libpipeplan: pipeplan.h over a Lua state of its own and stdlib/embed.lua.
*/
#define _XOPEN_SOURCE 700   /* uselocale */
#include "pipeplan.h"

#include <lauxlib.h>
#include <locale.h>
#include <lua.h>
#include <stdlib.h>

#include "host/own_stack.h"
#include "lua/trusted.h"

#define EXPORT __attribute__((visibility("default")))

/* The state's stack: 1 the function that plans; 2 the answer. */
enum { PLAN = 1, ANSWER = 2 };

struct pipeplan {
  lua_State *L;
  const char *ended;   /* the answer of a call that Lua itself ended; NULL: it is on the stack */
};

static const char no_memory[] = "{\"error\":{\"message\":\"out of memory\",\"status\":4}}";
static const char internal_error[] = "{\"error\":{\"message\":\"internal error\",\"status\":70}}";

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

/* Of a call that Lua itself ended: embed.lua catches all else. Nothing is pushed here: that could take memory, and nothing would catch it. */
static int ended(pipeplan *self, int outcome) {
  lua_settop(self->L, PLAN);
  self->ended = outcome == LUA_ERRMEM ? no_memory : internal_error;
  return outcome == LUA_ERRMEM ? PIPEPLAN_OVER_BUDGET : PIPEPLAN_BUG;
}

/* A call of this library, where its stack is large enough, and in C's locale: the caller's may write 1,5 for 1.5, and sort otherwise. */
typedef struct {
  void (*function)(void *);
  lua_State *L;
  const char *text;      /* options, or a spec */
  int outcome, status;   /* Lua's; the call's, where that is LUA_OK */
} call;

/* Runs what was pushed, protected: its answer is left in its place. */
static void run(call *self, int arguments, int results) {
  self->outcome = lua_pcall(self->L, arguments, results, 0);
  if (self->outcome != LUA_OK) return;
  self->status = (int)lua_tointeger(self->L, -1);
  lua_settop(self->L, ANSWER);
}

static void in_plain_locale(void *data) {
  call *self = data;
  const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (plain == (locale_t)0) return;   /* no memory for it */
  const locale_t before = uselocale(plain);
  self->function(self);
  uselocale(before);
  freelocale(plain);
}

static void open_state(void *data) {
  call *self = data;
  self->L = luaL_newstate();
  if (!self->L) return;
  lua_pushcfunction(self->L, open_planner);
  lua_pushlightuserdata(self->L, (void *)self->text);
  run(self, 1, 3);
}

EXPORT int pipeplan_open(const char *options, pipeplan **planner) {
  pipeplan *self = malloc(sizeof *self);
  call opening = { open_state, NULL, options, LUA_ERRMEM, 0 };
  if (!planner) {
    free(self);
    return PIPEPLAN_USAGE;
  }
  *planner = NULL;
  if (!self) return PIPEPLAN_OVER_BUDGET;
  if (!pp_with_stack(in_plain_locale, &opening) || !opening.L) {
    free(self);
    return PIPEPLAN_OVER_BUDGET;
  }
  *self = (pipeplan){ opening.L, NULL };
  *planner = self;
  return opening.outcome == LUA_OK ? opening.status : ended(self, opening.outcome);
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
  lua_pushcfunction(self->L, plan);
  lua_pushvalue(self->L, PLAN);
  lua_pushlightuserdata(self->L, (void *)self->text);
  run(self, 2, 2);
}

EXPORT int pipeplan_plan(pipeplan *planner, const char *spec) {
  if (!planner) return PIPEPLAN_OVER_BUDGET;
  call planning = { plan_in_state, planner->L, spec ? spec : "", LUA_ERRMEM, 0 };   /* no text is an empty one */
  if (!lua_isfunction(planner->L, PLAN)) return planner->ended == no_memory ? PIPEPLAN_OVER_BUDGET : PIPEPLAN_BUG;  /* it was never opened */
  planner->ended = NULL;
  lua_settop(planner->L, PLAN);
  pp_with_stack(in_plain_locale, &planning);
  return planning.outcome == LUA_OK ? planning.status : ended(planner, planning.outcome);
}

EXPORT const char *pipeplan_answer(const pipeplan *planner) {
  if (!planner) return no_memory;
  return planner->ended ? planner->ended : lua_tostring(planner->L, ANSWER);
}

EXPORT void pipeplan_close(pipeplan *planner) {
  if (!planner) return;
  lua_close(planner->L);
  free(planner);
}

EXPORT const char *pipeplan_version(void) { return PP_VERSION; }

/*
** budget.c: counting what a policy uses. See budget.h.
*/
#define _POSIX_C_SOURCE 200809L
#include "host/budget.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOOK_INTERVAL = 100, BYTES_PER_UNIT = 16, BLOCKS_PER_CAP = 16, TICKS_PER_CLOCK = 10 };

#define UNITS_PER_SECOND 1e7  /* a tenth of what a slow machine does */

/* Registry key of the budget of a state. */
static const char budget_key = 0;

static uint64_t add(uint64_t spent, uint64_t units) {
  return units > UINT64_MAX - spent ? UINT64_MAX : spent + units;
}

/* Lua states: when pointer is NULL, old_size is a type tag; size 0 means free; shrinking cannot fail. */
void *pp_budget_allocate(void *context, void *pointer, size_t old_size, size_t size) {
  pp_budget *budget = context;
  void *result;
  if (!pointer) old_size = 0;
  if (size == 0) {
    free(pointer);
    budget->used -= old_size;
    return NULL;
  }
  if (size > old_size && (size > budget->cap / BLOCKS_PER_CAP || budget->used - old_size > budget->cap - size)) {
    budget->refused = size;
    budget->out_of_memory = true;
    budget->spent = add(budget->spent, budget->used / 2);  /* Lua now collects the whole heap */
    return NULL;
  }
  result = realloc(pointer, size);
  if (!result) {
    budget->out_of_memory = true;
    return NULL;
  }
  if (size > old_size) {
    budget->spent = add(budget->spent, (size - old_size) / BYTES_PER_UNIT + 1);
    if (budget->refused) {
      if (budget->refused == size) budget->out_of_memory = false;
      budget->refused = 0;
    }
  }
  budget->used = budget->used - old_size + size;
  if (budget->used > budget->peak) budget->peak = budget->used;
  return result;
}

static void check(lua_State *L, pp_budget *budget, lua_Debug *where) {
  if (budget->spent <= budget->limit && !budget->exhausted) return;
  if (!budget->exhausted && where && lua_getinfo(L, "Sl", where) && where->currentline > 0)
    snprintf(budget->where, sizeof budget->where, "%s:%d", where->short_src, where->currentline);
  budget->exhausted = true;
  luaL_error(L, "over budget");
}

static pp_budget *budget_of(lua_State *L) {
  pp_budget *budget;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &budget_key);
  budget = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return budget;
}

static double processor_seconds(void) {
  struct timespec now;
  return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : 0;
}

void pp_budget_refill(pp_budget *budget) {
  budget->spent = 0;
  budget->deadline = processor_seconds() + 1 + (double)budget->limit / UNITS_PER_SECOND;
}

static void count_instructions(lua_State *L, lua_Debug *record) {
  pp_budget *budget = budget_of(L);
  budget->spent = add(budget->spent, HOOK_INTERVAL);
  if (++budget->ticks % TICKS_PER_CLOCK == 0 && processor_seconds() > budget->deadline) budget->spent = UINT64_MAX;
  check(L, budget, record);
}

void pp_budget_attach(lua_State *L, pp_budget *budget) {
  lua_pushlightuserdata(L, budget);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &budget_key);
  lua_sethook(L, count_instructions, LUA_MASKCOUNT, HOOK_INTERVAL);
}

void pp_charge(lua_State *L, uint64_t units) {
  pp_budget *budget = budget_of(L);
  lua_Debug caller;
  if (!budget) return;
  budget->spent = add(budget->spent, units);
  check(L, budget, lua_getstack(L, 1, &caller) ? &caller : NULL);
}

static bool has_room(const pp_budget *budget, size_t bytes) {
  return bytes <= budget->cap && budget->used <= budget->cap - bytes;
}

void pp_hold(lua_State *L, size_t bytes) {
  pp_budget *budget = budget_of(L);
  if (!budget) return;
  if (!has_room(budget, bytes)) {
    budget->spent = add(budget->spent, budget->used / 2);
    lua_gc(L, LUA_GCCOLLECT);
  }
  if (!has_room(budget, bytes)) {
    budget->out_of_memory = true;
    luaL_error(L, "over budget");
  }
  budget->used += bytes;
  if (budget->used > budget->peak) budget->peak = budget->used;
}

void pp_release(lua_State *L, size_t bytes) {
  pp_budget *budget = budget_of(L);
  if (budget) budget->used -= bytes;
}

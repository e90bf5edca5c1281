/* SPDX-License-Identifier: Apache-2.0 */
/*
** budget.c: counting what a policy uses. See budget.h.
**
** The price of an instruction. Most do what a processor does in some nanoseconds, but a few walk over something whose size the policy
** decides: a comparison over two strings, a call or `...` over the values that it hands on, an access to a table over keys that collide.
** Nothing can be hooked there, and what the instruction works on is not known. So each is priced as if it walked over the longest string that
** the policy has made and the stack, a unit for each PRICED bytes of them, and over the largest hash part of a table, of which some keys may
** collide, HASH_PRICED. Strings of rules are some hundred bytes and their tables a dozen entries, which costs next to nothing; whoever makes larger ones pays. strcoll, which compares strings, stops
** at each zero byte and starts again: where there may be such bytes, each costs ZERO_UNITS.
*/
#include "host/budget.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  HOOK_INTERVAL = 100, BYTES_PER_UNIT = 16, BLOCKS_PER_CAP = 16,
  PRICED = 128, HASH_PRICED = 1024, ZERO_UNITS = 4,
  FREE_STACK = 2048   /* bytes; that of a rule that calls the engine is smaller */
};

static uint64_t add(uint64_t spent, uint64_t units) {
  return units > UINT64_MAX - spent ? UINT64_MAX : spent + units;
}

/* The budget of a state, or NULL. */
static pp_budget *budget_of(lua_State *L) {
  void *context;
  return lua_getallocf(L, &context) == pp_budget_allocate ? context : NULL;
}

/* -- where --------------------------------------------------------------------------------------------------------------------------- */

/*
** The file that is being parsed, or the line of the policy that runs. Also called while Lua asks for memory: neither function allocates or
** raises, and the list of calls is whole but while the stack moves. Where nothing runs, the place that was noted last stays.
*/
static void note_place(pp_budget *budget) {
  lua_Debug call;
  if (budget->parsing) {
    snprintf(budget->where, sizeof budget->where, "%s", budget->parsing);
    return;
  }
  for (int level = 0; budget->L && lua_getstack(budget->L, level, &call); level++) {
    if (!lua_getinfo(budget->L, "Sl", &call) || call.currentline <= 0) continue;
    snprintf(budget->where, sizeof budget->where, "%s:%d", call.source + (*call.source == '@'), call.currentline);
    return;
  }
}

static void over(pp_meter *meter) { note_place((pp_budget *)meter); }

static void reclaim(pp_meter *meter) {
  pp_budget *budget = (pp_budget *)meter;
  if (!budget->L) return;
  pp_spend(meter->used / 2);
  lua_gc(budget->L, LUA_GCCOLLECT);
}

/* -- memory -------------------------------------------------------------------------------------------------------------------------- */

size_t pp_budget_largest_block(const pp_budget *budget) { return budget->meter.cap / BLOCKS_PER_CAP; }

static size_t greater(size_t a, size_t b) { return a > b ? a : b; }

typedef enum { OBJECT, STRING, HASH_PART, GROWN, STACK, NAMES } block_kind;

/* While the stack moves, calls point nowhere (Lua 5.4.5 and later: ldo.c, luaD_reallocstack): what was noted last is near enough. */
static void refuse(pp_budget *budget, block_kind kind, size_t size) {
  budget->refused = size;
  budget->meter.spent = add(budget->meter.spent, budget->meter.used / 2);   /* Lua now collects the whole heap */
  if (kind != STACK) note_place(budget);
}

/*
** What a block is, as far as prices ask. Lua says it of objects only. A vector that was not grown from a smaller one is a hash part, or
** rarely something as large; the first of them all is the stack, and one of the next, of 128 pointers, the table of short strings (lstate.c,
** f_luaopen; lstring.c, luaS_init).
*/
static block_kind kind_of(const pp_budget *budget, const void *pointer, size_t type, size_t size) {
  if (!pointer && type != 0) return type == LUA_TSTRING ? STRING : OBJECT;
  if (pointer == budget->stack) return STACK;   /* both NULL: it is made now */
  if (pointer ? pointer == budget->names : !budget->names && size == 128 * sizeof(void *)) return NAMES;
  return pointer ? GROWN : HASH_PART;
}

/* Down to a power of two: the stack doubles from a size that differs a little between evaluations. */
static size_t rounded(size_t bytes) {
  size_t power = 1;
  while (power <= bytes / 2) power *= 2;
  return power;
}

static void set_stack(pp_budget *budget, void *block, size_t size) {
  budget->stack = block;
  budget->stack_bytes = rounded(size);
  budget->stack_peak = greater(budget->stack_peak, budget->stack_bytes);
}

/* Lua 5.4.3 and later do not grow the stack in place: when it is freed, the vector made last is the new one. */
static void stack_moved(pp_budget *budget) {
  pp_fresh *fresh = &budget->fresh;
  if (!fresh->block) return;
  set_stack(budget, fresh->block, fresh->size);
  budget->largest = fresh->largest;
  fresh->block = NULL;
}

/*
** Work of a block that became larger, or of a part of a table that is counted through and keeps its size. Vectors are counted apart: how often
** Lua sizes a table anew, from which keys were removed, follows from where they lay, and that from a seed which is another one in each
** state. They have a limit as large as that of all other work, which only who makes Lua do nothing else comes near.
*/
static void charge_block(pp_budget *budget, block_kind kind, size_t bytes) {
  uint64_t *spent = kind == OBJECT || kind == STRING ? &budget->meter.spent : &budget->vectors;
  *spent = add(*spent, bytes / BYTES_PER_UNIT + 1);
}

static void follow(pp_budget *budget, block_kind kind, void *block, size_t size) {
  pp_largest *largest = &budget->largest;
  if (kind == STACK) set_stack(budget, block, size);
  if (kind == NAMES) budget->names = block;
  if (kind == HASH_PART) budget->fresh = (pp_fresh){ block, size, *largest };
  if (budget->host) return;
  if (kind == STRING) largest->string = greater(largest->string, size);
  if (kind == HASH_PART) largest->hash_part = greater(largest->hash_part, size);
  if (kind == HASH_PART || kind == GROWN) largest->table = greater(largest->table, size);
}

static void release(pp_budget *budget, void *pointer, size_t size) {
  if (pointer && pointer == budget->fresh.block) budget->fresh.block = NULL;
  if (pointer && pointer == budget->stack) stack_moved(budget);
  free(pointer);
  budget->meter.used -= size;
}

/* Lua states: when pointer is NULL, old_size is a type; size 0 means free; shrinking cannot fail. */
void *pp_budget_allocate(void *context, void *pointer, size_t old_size, size_t size) {
  pp_budget *budget = context;
  pp_meter *meter = &budget->meter;
  const size_t before = pointer ? old_size : 0;
  const block_kind kind = kind_of(budget, pointer, old_size, size);
  void *result;
  if (size == 0) {
    release(budget, pointer, before);
    return NULL;
  }
  if (size > before && (size > pp_budget_largest_block(budget) || meter->used - before > meter->cap - size)) {
    meter->full = true;
    budget->one_piece = size > pp_budget_largest_block(budget);
    refuse(budget, kind, size);
    return NULL;
  }
  result = realloc(pointer, size);
  if (!result) {
    meter->no_memory = true;
    refuse(budget, kind, size);
    return NULL;
  }
  follow(budget, kind, result, size);
  if (size >= before) charge_block(budget, kind, size == before ? size : size - before);
  if (size > before) {
    if (budget->refused == size) meter->full = meter->no_memory = false;   /* the second time it was granted */
    budget->refused = 0;
  }
  meter->used = meter->used - before + size;
  if (meter->used > meter->peak) meter->peak = meter->used;
  return result;
}

void pp_settle(lua_State *L) {
  pp_budget *budget = budget_of(L);
  if (budget && budget->meter.used > budget->meter.cap / 2) reclaim(&budget->meter);
}

/* -- work ---------------------------------------------------------------------------------------------------------------------------- */

static uint64_t price(const pp_budget *budget) {
  const size_t stack = budget->stack_peak > FREE_STACK ? budget->stack_peak - FREE_STACK : 0;
  const pp_largest *largest = &budget->largest;
  const uint64_t units = 1 + (largest->string + stack) / PRICED + largest->hash_part / HASH_PRICED;
  return budget->zeros ? units + ZERO_UNITS * (uint64_t)largest->string : units;
}

static void count_instructions(lua_State *L, lua_Debug *unused) {
  pp_budget *budget = budget_of(L);
  (void)unused;
  if (budget->vectors > budget->meter.limit) pp_spend(UINT64_MAX);
  if (!pp_spend(HOOK_INTERVAL * price(budget))) luaL_error(L, "over budget");
  if (budget->stack_bytes > FREE_STACK || !budget->where[0]) note_place(budget);   /* the stack may be refused what it asks for next */
  budget->stack_peak = budget->stack_bytes;
}

void pp_charge(lua_State *L, uint64_t units) {
  if (!pp_spend(units)) luaL_error(L, "over budget");
}

void pp_charge_walk(lua_State *L) {
  const pp_budget *budget = budget_of(L);
  if (budget) pp_charge(L, 1 + budget->largest.table / BYTES_PER_UNIT);
}

/* -- opening ------------------------------------------------------------------------------------------------------------------------- */

void pp_budget_open(pp_budget *budget, uint64_t work, size_t bytes) {
  *budget = (pp_budget){ .host = true, .meter = { .limit = work, .cap = bytes, .reclaim = reclaim, .over = over } };
}

void pp_budget_attach(lua_State *L, pp_budget *budget) {
  budget->L = L;
  lua_sethook(L, count_instructions, LUA_MASKCOUNT, HOOK_INTERVAL);
}

static int stretch(lua_State *L) {
  lua_checkstack(L, 1000);
  return 0;
}

/*
** As every evaluation finds it. Collections make the stack smaller, from any size that is much too large to the same; and the list of calls,
** half by half. Instructions are counted from 0.
*/
static void settle_down(lua_State *L, const pp_meter *meter) {
  size_t before;
  lua_settop(L, 0);
  lua_pushcfunction(L, stretch);
  lua_pcall(L, 0, 0, 0);
  lua_settop(L, 0);
  do {
    before = meter->used;
    lua_gc(L, LUA_GCCOLLECT);
  } while (meter->used < before);
  lua_sethook(L, count_instructions, LUA_MASKCOUNT, HOOK_INTERVAL);
}

void pp_budget_refill(pp_budget *budget) {
  pp_meter *meter = &budget->meter;
  if (budget->used && budget->L) settle_down(budget->L, meter);
  if (budget->loading) budget->when_loaded = budget->largest;
  budget->largest = budget->when_loaded;
  budget->stack_peak = budget->stack_bytes;
  budget->where[0] = '\0';
  budget->used = budget->loading = false;
  meter->exhausted = meter->full = meter->no_memory = false;
  meter->spent = budget->vectors = 0;
}

/* Does an escape sequence, from behind its backslash, stand for a zero byte? */
static bool is_zero(const char *text, const char *end) {
  int digits = 0;
  if (*text == 'x') return end - text >= 3 && text[1] == '0' && text[2] == '0';
  if (*text == 'u') return end - text >= 3 && text[2] == '0';   /* of \u{0041} too: nobody writes that */
  while (digits < 3 && text + digits < end && text[digits] == '0') digits++;
  return digits > 0 && (digits == 3 || text + digits == end || text[digits] < '0' || text[digits] > '9');
}

/* Also looks into comments, where a backslash before a zero costs a policy a part of its budget. */
void pp_budget_admit(lua_State *L, const char *text, size_t size) {
  pp_budget *budget = budget_of(L);
  const char *end = text + size;
  if (!budget) return;
  for (const char *at = text; at < end; at++) {
    if (*at == '\0') budget->zeros = true;
    if (*at == '\\' && ++at < end && is_zero(at, end)) budget->zeros = true;
  }
}

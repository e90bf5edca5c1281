/* SPDX-License-Identifier: Apache-2.0 */
/*
** budget.h: what a policy may use: one counter of work and a cap of memory, both sticky (core/meter.h).
** Work is counted in VM instructions; allocated bytes and what the engine does are charged in the same unit, and no clock is read, so that the
** limit falls at the same place on every machine. Where natively done work hides in one instruction its price follows what
** the state holds: see budget.c.
*/
#ifndef PP_BUDGET_H
#define PP_BUDGET_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/meter.h"

/* Bytes of the largest that a policy has made so far of what one instruction may walk over. */
typedef struct {
  size_t string, hash_part, table;
} pp_largest;

/* The vector that Lua made last. */
typedef struct {
  void *block;
  size_t size;
  pp_largest largest;     /* before it */
} pp_fresh;

typedef struct {
  pp_meter meter;
  lua_State *L;           /* the state, once it exists */
  size_t refused;         /* size of the last allocation that Lua was refused, while it may still collect and ask again; 0: none */
  void *stack, *names;    /* Lua's stack, and its table of short strings */
  size_t stack_bytes, stack_peak;   /* now, and the most since instructions were last counted */
  pp_largest largest, when_loaded;
  pp_fresh fresh;
  uint64_t vectors;       /* units of work that making parts of tables took */
  bool host;              /* what is made now is the host's */
  bool used;              /* something ran since the last refill */
  bool loading;           /* and among it was a file */
  bool zeros;             /* strings may hold zero bytes */
  bool one_piece;         /* what was refused last was too large for a single block */
  const char *parsing;    /* the file whose text is being parsed, or NULL */
  char where[512];        /* "file:line" at which something ran out, or "" */
} pp_budget;

void pp_budget_open(pp_budget *budget, uint64_t work, size_t bytes);

/*
** A lua_Alloc over a pp_budget. Growing costs a unit per 16 bytes (those of tables are counted apart: budget.c). A single block has at most a 16th of the cap. A request that is refused
** counts as such unless the very next one is the same and succeeds: that is how Lua asks again after an emergency collection (whose cost is charged too).
** lauxlib's buffers do not, so it counts even if nobody reported it.
*/
void *pp_budget_allocate(void *budget, void *pointer, size_t old_size, size_t size);

size_t pp_budget_largest_block(const pp_budget *budget);

/* From here on L, a state made with pp_budget_allocate, counts its instructions. May longjmp. */
void pp_budget_attach(lua_State *L, pp_budget *budget);

/*
** A new evaluation starts, and nothing of the one before shows: garbage is collected, work is counted from 0, and what ran out is there again.
** What is in the state now, after files were run, is what each evaluation finds.
*/
void pp_budget_refill(pp_budget *budget);

/* Text that comes into the state, a policy's or a string's: notes whether there may be strings with zero bytes from now on. */
void pp_budget_admit(lua_State *L, const char *text, size_t size);

/*
** Charges `units` for native work about to be done, and raises a Lua error when the budget is spent. A no-op where no meter is in use (the
** program's own state, or the interpreter's). May longjmp.
*/
void pp_charge(lua_State *L, uint64_t units);

/* Charges a walk over all keys of a table of the policy's, whose size Lua does not tell: that of its largest. */
void pp_charge_walk(lua_State *L);

/*
** What the engine holds for a state outside its allocator counts under the same cap, but Lua's collector does not know how large it is. Called
** after such a thing was made; collects when the cap comes near.
*/
void pp_settle(lua_State *L);

#endif

/*
** budget.h: what a policy may use: one counter of work and a cap of memory, both sticky.
** Work is counted in VM instructions; allocated bytes and engine calls are charged in the same unit, so that the limit falls at the same
** place on every machine. Processor time is only the last resort, for the few instructions that may each do much native work (comparing
** long strings, passing thousands of arguments): ten times what the work would normally take.
*/
#ifndef PP_BUDGET_H
#define PP_BUDGET_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t limit;       /* units of work */
  uint64_t spent;
  size_t cap;           /* live bytes; a single block of Lua's may have a 16th of it */
  size_t used;
  size_t peak;
  size_t refused;       /* size of the last allocation refused, while Lua may still retry it after a collection */
  bool exhausted;       /* work: once set, stays set, whatever the script does */
  bool out_of_memory;
  unsigned ticks;       /* hook calls, to look at the clock now and then */
  double deadline;      /* processor seconds of this thread */
  char where[160];      /* "file:line" at which work ran out, or "" */
} pp_budget;

/*
** A lua_Alloc over a pp_budget. Growing costs a unit per 16 bytes. A request over the cap is refused and leaves out_of_memory set unless
** the very next request is the same and succeeds: that is how Lua retries after an emergency collection (whose cost is charged too).
** lauxlib's buffers do not retry, so the flag tells a refusal that nobody reported.
*/
void *pp_budget_allocate(void *budget, void *pointer, size_t old_size, size_t size);

/* From here on L, a state made with pp_budget_allocate, counts its instructions. May longjmp. */
void pp_budget_attach(lua_State *L, pp_budget *budget);

/* Work is counted from 0 again. What was exceeded stays exceeded. */
void pp_budget_refill(pp_budget *budget);

/*
** Charges `units` for native work about to be done, one unit being about the time of one VM instruction, and raises a Lua error when the
** budget is spent. A no-op in a state without a budget (the program's own, or the interpreter's). May longjmp.
*/
void pp_charge(lua_State *L, uint64_t units);

/*
** Memory that the engine holds for a state outside its allocator counts under the same cap. pp_hold raises a Lua error when it does not fit,
** even after a collection; what was held is given back with pp_release, from a finalizer. No-ops without a budget. pp_hold may longjmp.
*/
void pp_hold(lua_State *L, size_t bytes);
void pp_release(lua_State *L, size_t bytes);

#endif

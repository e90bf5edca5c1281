/* SPDX-License-Identifier: Apache-2.0 */
/*
** meter.h: what may be used by a computation on somebody else's behalf, such as an engine call of a policy: work, and memory.
** All of engine/core allocates with pp_allocate, and its loops report what they did with pp_spend, so that no function can use memory or time
** that its caller did not grant. The meter is the thread's, the one thing in engine/core that is no argument: threaded through every
** signature it would be one more thing to forget. No meter in use (the program's own work): nothing is counted or refused.
*/
#ifndef PP_METER_H
#define PP_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pp_meter pp_meter;

struct pp_meter {
  uint64_t limit;      /* units of work; one is about the time of one VM instruction of Lua, some 5 ns */
  uint64_t spent;
  size_t cap;          /* bytes alive at a time */
  size_t used;
  size_t peak;
  bool exhausted;      /* work: once set, stays set */
  bool full;           /* a request did not fit under the cap; sticky */
  bool no_memory;      /* the system had no memory; sticky */
  void (*reclaim)(pp_meter *meter);   /* called once before a request is refused, to free what nobody needs any more; may be NULL */
  void (*over)(pp_meter *meter);      /* called when work runs out or a request is refused; may be NULL */
};

/* From here on this thread's work and memory are counted by that meter (NULL: by none). Returns the one before. */
pp_meter *pp_meter_use(pp_meter *meter);

/* Counts work that was done or is about to be. False: the limit is passed; whoever has much left to do gives up, with pp_stopped. */
bool pp_spend(uint64_t units);

/*
** malloc, calloc, realloc and free of blocks that count, a unit of work for 16 bytes: NULL when the meter refuses or the system has nothing
** left, never because 0 bytes are asked for. A block is given back to the meter that counted it, whichever is in use then; that meter has to
** live as long. Blocks have the alignment of malloc's.
*/
void *pp_allocate(size_t size);
void *pp_allocate_zeros(size_t size);
void *pp_resize(void *block, size_t size);
void pp_free(void *block);

/* Is there room for that many bytes more? Reclaims; sets `full` otherwise. For memory that somebody else allocates and counts in `used`. */
bool pp_meter_has_room(pp_meter *meter, size_t bytes);

#endif

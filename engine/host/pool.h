/* SPDX-License-Identifier: Apache-2.0 */
/*
** pool.h: memory for the Lua state of a process that does one thing and ends. Most of what Lua asks for is small and of few sizes, and it says
** how large a block was when it gives it back: a list of free blocks for each size is a tenth of malloc's work. Nothing goes back to the
** system before the process ends. pp_pool is for one state, so that no lock is needed.
*/
#ifndef PP_POOL_H
#define PP_POOL_H

#include <stddef.h>

enum { PP_POOL_STEP = 16, PP_POOL_LARGEST = 256 };   /* bytes: between sizes, and of the largest that is pooled */

typedef struct {
  void *free[PP_POOL_LARGEST / PP_POOL_STEP];  /* by size: blocks that were given back, each beginning with the address of the next */
  char *next;                                  /* what is left of the last piece of memory that malloc gave */
  size_t left;
} pp_pool;

/* A lua_Alloc; `pool` is a pp_pool, zeroed before the first call. */
void *pp_pool_allocate(void *pool, void *block, size_t old_size, size_t size);

#endif

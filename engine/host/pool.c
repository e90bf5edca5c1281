/* SPDX-License-Identifier: Apache-2.0 */
/*
** pool.c: see pool.h. Built with a sanitizer, each block is malloc's, so that it is watched by itself.
*/
#include "host/pool.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_WATCHED 1
#endif
#endif
#ifndef IS_WATCHED
#define IS_WATCHED 0
#endif

enum { PIECE = 64 * 1024 };

static size_t list_of(size_t size) {
  return (size - 1) / PP_POOL_STEP;
}

static void *take(pp_pool *pool, size_t size) {
  void **list = &pool->free[list_of(size)], *block = *list;
  const size_t whole = (list_of(size) + 1) * PP_POOL_STEP;
  if (block) {
    memcpy(list, block, sizeof *list);
    return block;
  }
  if (pool->left < whole) {   /* what is left of the last piece is lost: less than a block */
    char *piece = malloc(PIECE);
    if (!piece) return NULL;
    pool->next = piece;
    pool->left = PIECE;
  }
  block = pool->next;
  pool->next += whole;
  pool->left -= whole;
  return block;
}

static void give_back(pp_pool *pool, void *block, size_t size) {
  void **list = &pool->free[list_of(size)];
  memcpy(block, list, sizeof *list);
  *list = block;
}

void *pp_pool_allocate(void *data, void *block, size_t old_size, size_t size) {
  pp_pool *pool = data;
  if (!block) old_size = 0;   /* then it says what kind of object is made */
  const int was_pooled = !IS_WATCHED && old_size > 0 && old_size <= PP_POOL_LARGEST, is_pooled = !IS_WATCHED && size <= PP_POOL_LARGEST;
  void *moved;
  if (size == 0) {
    if (was_pooled) give_back(pool, block, old_size);
    else free(block);
    return NULL;
  }
  if (!was_pooled && !is_pooled) return realloc(block, size);
  if (was_pooled && is_pooled && list_of(old_size) == list_of(size)) return block;
  moved = is_pooled ? take(pool, size) : malloc(size);
  if (!moved) return size <= old_size ? block : NULL;   /* Lua counts on a block that shrinks: it may be larger than it has to be */
  if (old_size > 0) memcpy(moved, block, old_size < size ? old_size : size);
  if (was_pooled) give_back(pool, block, old_size);
  else free(block);
  return moved;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** split_cache.h: splits that are found once for all candidates of a search that ask for the same. Schedules with the same placement, P and V
** whose blocks weigh the same balance their layers alike.
*/
#ifndef PP_SPLIT_CACHE_H
#define PP_SPLIT_CACHE_H

#include <stddef.h>

#include "core/split.h"

/* Splits that a candidate is compared by, at most. */
enum { PP_MOST_SPLITS = 5 };

/* What splits of one model depend on. Compared byte by byte: without padding. */
typedef struct {
  pp_block_weights weights;
  int ranks, chunks, placement, unused;
} pp_split_key;

typedef struct {
  pp_split_key key;
  int count, *layers;   /* [count × ranks × chunks]; NULL: a free entry */
} pp_split_entry;

/* Starts as { 0 }. Grows with the number of different keys. */
typedef struct {
  pp_split_entry *entry;
  size_t used, capacity;  /* a power of two, at most half used */
} pp_split_cache;

void pp_split_cache_free(pp_split_cache *cache);

/* Copies what is kept for that key and returns how many splits; 0: nothing is. Expected O(count × stages). */
int pp_split_cache_find(const pp_split_cache *cache, const pp_split_key *key, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]);

/* Keeps a copy, count ≥ 1, of what a key without an entry has. Without memory it is not kept, and found anew another time. */
void pp_split_cache_keep(pp_split_cache *cache, const pp_split_key *key, int count, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]);

#endif

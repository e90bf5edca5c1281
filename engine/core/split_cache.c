/* SPDX-License-Identifier: Apache-2.0 */
/*
** split_cache.c: a hash table with linear probing. See split_cache.h.
*/
#include "core/split_cache.h"

#include <string.h>

#include "core/digest.h"
#include "core/meter.h"

_Static_assert(sizeof(pp_split_key) == PP_BLOCKS * sizeof(double) + 4 * sizeof(int), "keys are compared byte by byte");

enum { FIRST_CAPACITY = 64 };

/* The key's entry, or the free one where it would be. There is one: no more than half are used. */
static pp_split_entry *entry_of(const pp_split_cache *cache, const pp_split_key *key) {
  size_t i = (size_t)pp_digest((const char *)key, sizeof *key) & (cache->capacity - 1);
  while (cache->entry[i].layers && memcmp(&cache->entry[i].key, key, sizeof *key) != 0) i = (i + 1) & (cache->capacity - 1);
  return &cache->entry[i];
}

static bool grow(pp_split_cache *cache) {
  pp_split_cache larger = { .used = cache->used, .capacity = cache->capacity ? 2 * cache->capacity : FIRST_CAPACITY };
  larger.entry = pp_allocate_zeros(larger.capacity * sizeof *larger.entry);
  if (!larger.entry) return false;
  for (size_t i = 0; i < cache->capacity; i++)
    if (cache->entry[i].layers) *entry_of(&larger, &cache->entry[i].key) = cache->entry[i];
  pp_free(cache->entry);
  *cache = larger;
  return true;
}

void pp_split_cache_free(pp_split_cache *cache) {
  for (size_t i = 0; i < cache->capacity; i++) pp_free(cache->entry[i].layers);
  pp_free(cache->entry);
  *cache = (pp_split_cache){ .entry = NULL };
}

int pp_split_cache_find(const pp_split_cache *cache, const pp_split_key *key, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]) {
  const size_t stages = (size_t)key->ranks * (size_t)key->chunks;
  const pp_split_entry *entry = cache->capacity > 0 ? entry_of(cache, key) : NULL;
  if (!entry || !entry->layers) return 0;
  for (int i = 0; i < entry->count; i++) memcpy(layers[i], entry->layers + (size_t)i * stages, stages * sizeof(int));
  return entry->count;
}

void pp_split_cache_keep(pp_split_cache *cache, const pp_split_key *key, int count, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]) {
  const size_t stages = (size_t)key->ranks * (size_t)key->chunks;
  pp_split_entry entry = { .key = *key, .count = count };
  if (2 * (cache->used + 1) > cache->capacity && !grow(cache)) return;
  entry.layers = pp_allocate((size_t)count * stages * sizeof(int));
  if (!entry.layers) return;
  for (int i = 0; i < count; i++) memcpy(entry.layers + (size_t)i * stages, layers[i], stages * sizeof(int));
  *entry_of(cache, key) = entry;
  cache->used++;
}

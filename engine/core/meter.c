/* SPDX-License-Identifier: Apache-2.0 */
/*
** meter.c: counting and refusing. See meter.h.
*/
#include "core/meter.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_UNIT = 16 };   /* fresh memory costs its first use, too */

/* In front of each block. Keeps malloc's alignment. */
typedef union {
  struct {
    size_t size;      /* of the block behind it */
    pp_meter *meter;  /* that counts it, or NULL */
  } of;
  max_align_t alignment;
} header;

static _Thread_local pp_meter *current;

pp_meter *pp_meter_use(pp_meter *meter) {
  pp_meter *before = current;
  current = meter;
  return before;
}

bool pp_spend(uint64_t units) {
  pp_meter *meter = current;
  if (!meter) return true;
  meter->spent = units > UINT64_MAX - meter->spent ? UINT64_MAX : meter->spent + units;
  if (meter->spent <= meter->limit && !meter->exhausted) return true;
  if (!meter->exhausted && meter->over) meter->over(meter);
  meter->exhausted = true;
  return false;
}

static bool fits(const pp_meter *meter, size_t bytes) {
  return bytes <= meter->cap && meter->used <= meter->cap - bytes;
}

bool pp_meter_has_room(pp_meter *meter, size_t bytes) {
  if (fits(meter, bytes)) return true;
  if (meter->reclaim) meter->reclaim(meter);
  if (fits(meter, bytes)) return true;
  meter->full = true;
  if (meter->over) meter->over(meter);
  return false;
}

static void count(pp_meter *meter, size_t bytes) {
  if (!meter) return;
  meter->used += bytes;
  if (meter->used > meter->peak) meter->peak = meter->used;
}

static void *allocate(size_t size, bool zeros) {
  pp_meter *meter = current;
  if (size > SIZE_MAX - sizeof(header)) return NULL;
  size_t whole = size + sizeof(header);
  pp_spend(1 + whole / BYTES_PER_UNIT);
  if (meter && !pp_meter_has_room(meter, whole)) return NULL;
  header *start = zeros ? calloc(1, whole) : malloc(whole);
  if (!start) {
    if (meter) meter->no_memory = true;
    if (meter && meter->over) meter->over(meter);
    return NULL;
  }
  count(meter, whole);
  start->of.size = size;
  start->of.meter = meter;
  return start + 1;
}

void *pp_allocate(size_t size) { return allocate(size, false); }
void *pp_allocate_zeros(size_t size) { return allocate(size, true); }

void pp_free(void *block) {
  if (!block) return;
  header *start = (header *)block - 1;
  if (start->of.meter) start->of.meter->used -= start->of.size + sizeof(header);
  free(start);
}

/* Rare and never of large blocks: the old block counts beside the new one until it is copied. */
void *pp_resize(void *block, size_t size) {
  void *larger = pp_allocate(size);
  if (!larger || !block) return larger;
  size_t kept = ((header *)block - 1)->of.size;
  memcpy(larger, block, kept < size ? kept : size);
  pp_free(block);
  return larger;
}

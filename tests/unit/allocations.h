/* SPDX-License-Identifier: Apache-2.0 */
/*
** allocations.h: allocations that fail on demand, and a count of what was not given back. The linker sends everything that the test's
** own objects and libpipeplan allocate here (--wrap, tests/CMakeLists.txt); shared libraries keep theirs. Include after cmocka.h.
*/
#ifndef PP_TEST_ALLOCATIONS_H
#define PP_TEST_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void __real_free(void *pointer);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void __wrap_free(void *pointer);

static struct {
  size_t asked;    /* allocations since fail_allocation */
  size_t first;    /* the first that fails; 0: none */
  bool for_good;   /* and all behind it */
  size_t live;     /* blocks */
  void (*before)(void);   /* called before each allocation, when set */
} allocations;

/* The n-th allocation from now on fails, n = 1, 2, …; 0: none. */
static inline void fail_allocation(size_t n) {
  allocations.asked = 0;
  allocations.first = n;
  allocations.for_good = false;
}

static inline bool allocation_fails(void) {
  allocations.asked++;
  if (allocations.before) allocations.before();
  return allocations.first > 0 && (allocations.for_good ? allocations.asked >= allocations.first : allocations.asked == allocations.first);
}

static inline void *count_block(void *pointer) {
  allocations.live += pointer != NULL;
  return pointer;
}

void *__wrap_malloc(size_t size) { return allocation_fails() ? NULL : count_block(__real_malloc(size)); }
void *__wrap_calloc(size_t count, size_t size) { return allocation_fails() ? NULL : count_block(__real_calloc(count, size)); }

void *__wrap_realloc(void *pointer, size_t size) {
  if (allocation_fails()) return NULL;
  return pointer ? __real_realloc(pointer, size) : count_block(__real_malloc(size));
}

void __wrap_free(void *pointer) {
  allocations.live -= pointer != NULL;
  __real_free(pointer);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** event_heap.c: see event_heap.h. A binary heap that knows where each of its members is.
*/
#include "core/event_heap.h"

#include <math.h>
#include <stdbool.h>

static bool before(const pp_event_heap *heap, uint32_t a, uint32_t b) {
  return heap->time[a] < heap->time[b] || (heap->time[a] <= heap->time[b] && a < b);
}

static void put(pp_event_heap *heap, uint32_t position, uint32_t place) {
  heap->order[position] = place;
  heap->position[place] = position;
}

void pp_event_heap_reset(pp_event_heap *heap) {
  for (uint32_t place = 0; place < heap->places; place++) {
    heap->time[place] = HUGE_VAL;
    put(heap, place, place);
  }
}

static void move_up(pp_event_heap *heap, uint32_t position, uint32_t place) {
  for (; position > 0; position = (position - 1) / 2) {
    uint32_t parent = heap->order[(position - 1) / 2];
    if (!before(heap, place, parent)) break;
    put(heap, position, parent);
  }
  put(heap, position, place);
}

static void move_down(pp_event_heap *heap, uint32_t position, uint32_t place) {
  for (;;) {
    uint32_t child = 2 * position + 1;
    if (child >= heap->places) break;
    if (child + 1 < heap->places && before(heap, heap->order[child + 1], heap->order[child])) child++;
    if (!before(heap, heap->order[child], place)) break;
    put(heap, position, heap->order[child]);
    position = child;
  }
  put(heap, position, place);
}

void pp_event_heap_set(pp_event_heap *heap, uint32_t place, double time) {
  bool sooner = time < heap->time[place];
  heap->time[place] = time;
  if (sooner) move_up(heap, heap->position[place], place);
  else move_down(heap, heap->position[place], place);
}

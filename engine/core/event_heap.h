/* SPDX-License-Identifier: Apache-2.0 */
/*
** event_heap.h: what happens next: a heap with a place for each thing that can happen, whose times may move both ways. Internal to
** engine/core. Equal times come in the order of their places, so that a run does not depend on the heap's history.
*/
#ifndef PP_EVENT_HEAP_H
#define PP_EVENT_HEAP_H

#include <stdint.h>

typedef struct {
  uint32_t places;
  double *time;         /* [places] HUGE_VAL: nothing ahead */
  uint32_t *order;      /* [places] the heap, of places */
  uint32_t *position;   /* [places] where a place is in order */
} pp_event_heap;

/* Nothing ahead at any place; the arrays are the caller's. O(places). */
void pp_event_heap_reset(pp_event_heap *heap);
/* O(log places). */
void pp_event_heap_set(pp_event_heap *heap, uint32_t place, double time);
/* The place whose time is least; there is at least one place. */
static inline uint32_t pp_event_heap_first(const pp_event_heap *heap) { return heap->order[0]; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** bubble.h: closed forms of the makespan bubble, each with the conditions under which it is exact.
*/
#ifndef PP_BUBBLE_H
#define PP_BUBBLE_H

#include "core/schedule.h"

typedef struct {
  double forward, input, weight, full;  /* seconds of one chunk, equal on all stages; full 0: input + weight */
  double overlapped;                    /* F&B seconds of a pair; 0: forward + full */
} pp_chunk_times;

typedef struct {
  double seconds;           /* idle seconds of the rank that idles most: makespan − its work; NAN: no law is known */
  bool exact;               /* do the conditions hold for this request and these times? */
  const char *conditions;   /* in words, with the source */
  double low, high;         /* interval that holds when not exact (equal to seconds when exact; NAN when unknown) */
} pp_closed_form;

/* PP_INVALID for negative or non-finite times; PP_ILLEGAL as pp_schedule_check, but for any M. O(1). */
pp_status pp_bubble(const pp_schedule_request *request, const pp_chunk_times *times, pp_closed_form *out, pp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** error.h: how pure C reports a failure: a status, and a message in the caller's pp_error.
** Nothing in engine/core allocates for an error, prints or exits.
*/
#ifndef PP_ERROR_H
#define PP_ERROR_H

#include <stddef.h>

typedef enum {
  PP_OK = 0,
  PP_INVALID,   /* an argument is outside its documented range */
  PP_ILLEGAL,   /* consistent, but no schedule of this kind exists for it (odd depth, too few microbatches, ...) */
  PP_NO_MEMORY, /* the system's memory, not the device's; or none left under the meter's cap */
  PP_STOPPED    /* the meter's work is spent (meter.h) */
} pp_status;

typedef struct {
  char id[48];        /* stable name of the rule that failed, "" for PP_INVALID: "engine.odd_depth" */
  char field[48];     /* what has to change: "ranks" */
  double nearest;     /* nearest legal value of that field; NAN when there is none */
  char message[256];  /* one sentence, no trailing newline */
} pp_error;

/* Fills *error (which may be NULL) and returns status, so that a caller can write `return pp_fail(...)`. */
pp_status pp_fail(pp_error *error, pp_status status, const char *format, ...)
#if defined(__GNUC__)
  __attribute__((format(printf, 3, 4)))
#endif
  ;

/* The status of a computation whose meter is spent (meter.h). */
pp_status pp_stopped(pp_error *error);

/* The same for a field that is outside its range: PP_INVALID with the field and its nearest legal value (NAN: there is none). */
pp_status pp_invalid(pp_error *error, const char *field, double nearest, const char *format, ...)
#if defined(__GNUC__)
  __attribute__((format(printf, 4, 5)))
#endif
  ;

/* The same for a broken legality rule: PP_ILLEGAL with the rule's id, the field and its nearest legal value. */
pp_status pp_illegal(pp_error *error, const char *id, const char *field, double nearest, const char *format, ...)
#if defined(__GNUC__)
  __attribute__((format(printf, 5, 6)))
#endif
  ;

#endif

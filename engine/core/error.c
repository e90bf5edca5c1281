/* SPDX-License-Identifier: Apache-2.0 */
/*
** error.c: filling a pp_error. See error.h.
*/
#include "core/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"

static void fill(pp_error *error, const char *id, const char *field, double nearest, const char *format, va_list arguments) {
  if (!error) return;
  snprintf(error->id, sizeof error->id, "%s", id);
  snprintf(error->field, sizeof error->field, "%s", field);
  error->nearest = nearest;
  vsnprintf(error->message, sizeof error->message, format, arguments);
  pp_text_mend(error->message);
}

pp_status pp_fail(pp_error *error, pp_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, "", "", NAN, format, arguments);
  va_end(arguments);
  return status;
}

pp_status pp_stopped(pp_error *error) { return pp_fail(error, PP_STOPPED, "over budget"); }

pp_status pp_invalid(pp_error *error, const char *field, double nearest, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, "", field, nearest, format, arguments);
  va_end(arguments);
  return PP_INVALID;
}

pp_status pp_illegal(pp_error *error, const char *id, const char *field, double nearest, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fill(error, id, field, nearest, format, arguments);
  va_end(arguments);
  return PP_ILLEGAL;
}

/*
** error.c: filling a pp_error. See error.h.
*/
#include "core/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"

pp_status pp_fail(pp_error *error, pp_status status, const char *format, ...) {
  if (error) {
    va_list arguments;
    error->id[0] = '\0';
    error->field[0] = '\0';
    error->nearest = NAN;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    pp_text_mend(error->message);
  }
  return status;
}

pp_status pp_stopped(pp_error *error) { return pp_fail(error, PP_STOPPED, "over budget"); }

pp_status pp_illegal(pp_error *error, const char *id, const char *field, double nearest, const char *format, ...) {
  if (error) {
    va_list arguments;
    snprintf(error->id, sizeof error->id, "%s", id);
    snprintf(error->field, sizeof error->field, "%s", field);
    error->nearest = nearest;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    pp_text_mend(error->message);
  }
  return PP_ILLEGAL;
}

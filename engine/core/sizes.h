/* SPDX-License-Identifier: Apache-2.0 */
/*
** sizes.h: sizes by name, and the ranges that they must be in.
*/
#ifndef PP_SIZES_H
#define PP_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* A field by name, its value, and what it may be. Limits on top are far beyond any model; they keep every product of sizes within int64. */
typedef struct {
  const char *name;
  int64_t value, low, high;
} pp_size_check;

/* PP_INVALID names the first field that is out of its range, and the nearest value in it. */
pp_status pp_check_sizes(const pp_size_check *sizes, size_t count, pp_error *error);

#endif

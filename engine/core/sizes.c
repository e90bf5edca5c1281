/* SPDX-License-Identifier: Apache-2.0 */
/*
** sizes.c: sizes out of their range. See sizes.h.
*/
#include "core/sizes.h"

pp_status pp_check_sizes(const pp_size_check *sizes, size_t count, pp_error *error) {
  for (size_t i = 0; i < count; i++) {
    const pp_size_check *size = &sizes[i];
    if (size->value >= size->low && size->value <= size->high) continue;
    return pp_invalid(error, size->name, (double)(size->value < size->low ? size->low : size->high),
                      "'%s' must be from %lld to %lld, got %lld", size->name, (long long)size->low, (long long)size->high,
                      (long long)size->value);
  }
  return PP_OK;
}

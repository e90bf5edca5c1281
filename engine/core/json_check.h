/* SPDX-License-Identifier: Apache-2.0 */
/*
** json_check.h: is this text JSON, exactly as RFC 8259 has it? Checked before lua/json.c makes values of a text.
**
** Refused beside what is no JSON: equal keys in one object, integers beyond ±2^53 (a double would change them silently), numbers of 1e308
** and more, a byte order mark, lone surrogates, nesting deeper than max_depth, more than PP_JSON_MAX_BYTES.
*/
#ifndef PP_JSON_CHECK_H
#define PP_JSON_CHECK_H

#include <stddef.h>

#include "core/error.h"

enum { PP_JSON_MAX_BYTES = 16 << 20, PP_JSON_MAX_DEPTH = 128 };

/* Where the text stops being JSON, and why. line and column count from 1, columns in characters. */
typedef struct {
  size_t offset, line, column;
  char message[160];
} pp_json_problem;

/*
** PP_OK, or PP_INVALID and *problem filled, or PP_NO_MEMORY (the keys of open objects are remembered: 8 bytes each). max_depth is at most
** PP_JSON_MAX_DEPTH. O(n log n) on any input.
*/
pp_status pp_json_check(const char *text, size_t size, int max_depth, pp_json_problem *problem);

#endif

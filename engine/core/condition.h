/* SPDX-License-Identifier: Apache-2.0 */
/*
** condition.h: a table of columns, and conditions (field, operator, value) evaluated over it.
** This is how declarative rules run over thousands of candidates without entering Lua. Every value is a double: quantities as they are,
** false and true as 0 and 1, strings as symbols that the caller numbers from 2. NAN means absent.
*/
#ifndef PP_CONDITION_H
#define PP_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A column: one value per row, or one for all rows (constant). */
typedef struct {
  const double *value;
  bool constant;
} pp_column;

typedef enum {
  PP_EQUAL, PP_ONE_OF, PP_NONE_OF, PP_UNDER, PP_AT_MOST, PP_OVER, PP_AT_LEAST, PP_BETWEEN, PP_MULTIPLE_OF, PP_NOT_MULTIPLE_OF,
  PP_ODD, PP_EVEN
} pp_operator;

typedef struct {
  pp_column field;
  pp_operator operator;
  pp_column low, high;   /* the right side; high only for PP_BETWEEN. Constants are columns of one value */
  const double *set;     /* PP_ONE_OF, PP_NONE_OF */
  size_t set_size;
} pp_condition;

/* Does it hold for that row? An absent (NAN) field satisfies only PP_NONE_OF; an absent right side satisfies nothing. */
bool pp_condition_holds(const pp_condition *condition, size_t row);

/* One bit per row, in words of 64. Bits past `rows` are 0. */
typedef uint64_t pp_mask_word;
size_t pp_mask_words(size_t rows);

static inline bool pp_mask_has(const pp_mask_word *mask, size_t row) { return mask[row / 64] >> row % 64 & 1; }
static inline void pp_mask_add(pp_mask_word *mask, size_t row) { mask[row / 64] |= (pp_mask_word)1 << row % 64; }

/* mask = all rows for which every condition holds (no conditions: all rows). O(rows × conditions), a list by its values. */
void pp_conditions_match(const pp_condition *conditions, size_t count, size_t rows, pp_mask_word *mask);

#endif

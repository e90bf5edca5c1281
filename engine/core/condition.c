/* SPDX-License-Identifier: Apache-2.0 */
/*
** condition.c: conditions over columns. See condition.h.
*/
#include "core/condition.h"

#include <math.h>
#include <string.h>

enum { WORD_BITS = 64 };

static double at(pp_column column, size_t row) {
  return column.value[column.constant ? 0 : row];
}

static bool in_set(const pp_condition *condition, double value) {
  for (size_t i = 0; i < condition->set_size; i++)
    if (condition->set[i] == value) return true;
  return false;
}

/* fmod keeps the sign of its first argument, so that -3 is odd too; a fraction is neither odd nor even. */
static bool is_multiple(double value, double of) {
  return of != 0 && fmod(value, of) == 0;
}

bool pp_condition_holds(const pp_condition *condition, size_t row) {
  double value = at(condition->field, row), low, high;
  if (isnan(value)) return condition->operator == PP_NONE_OF;
  switch (condition->operator) {
    case PP_ONE_OF: return in_set(condition, value);
    case PP_NONE_OF: return !in_set(condition, value);
    case PP_ODD: return fabs(fmod(value, 2)) == 1;
    case PP_EVEN: return is_multiple(value, 2);
    default: break;
  }
  low = at(condition->low, row);
  if (isnan(low)) return false;
  switch (condition->operator) {
    case PP_EQUAL: return value == low;
    case PP_UNDER: return value < low;
    case PP_AT_MOST: return value <= low;
    case PP_OVER: return value > low;
    case PP_AT_LEAST: return value >= low;
    case PP_MULTIPLE_OF: return is_multiple(value, low);
    case PP_NOT_MULTIPLE_OF: return !is_multiple(value, low);
    case PP_BETWEEN:
      high = at(condition->high, row);
      return value >= low && value <= high;
    default: return false;
  }
}

size_t pp_mask_words(size_t rows) {
  return (rows + WORD_BITS - 1) / WORD_BITS;
}

/* The same answer for every row? Then one evaluation decides them all. */
static bool is_constant(const pp_condition *condition) {
  switch (condition->operator) {
    case PP_ONE_OF: case PP_NONE_OF: case PP_ODD: case PP_EVEN: return condition->field.constant;
    case PP_BETWEEN: return condition->field.constant && condition->low.constant && condition->high.constant;
    default: return condition->field.constant && condition->low.constant;
  }
}

/* Which of up to a word of values a comparison with one number, or with a set, holds for: as pp_condition_holds, without asking each time what is
** compared. NAN compares with nothing, and is in no set. False where it is another operator. */
static bool match_word(const pp_condition *condition, const double *value, size_t count, pp_mask_word *out) {
  const double low = condition->low.constant && condition->low.value ? condition->low.value[0] : NAN;
  pp_mask_word word = 0;
  switch (condition->operator) {
    case PP_EQUAL: for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] == low) << i; break;
    case PP_UNDER: for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] < low) << i; break;
    case PP_AT_MOST: for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] <= low) << i; break;
    case PP_OVER: for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] > low) << i; break;
    case PP_AT_LEAST: for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] >= low) << i; break;
    case PP_ONE_OF: case PP_NONE_OF:
      for (size_t s = 0; s < condition->set_size; s++)
        for (size_t i = 0; i < count; i++) word |= (pp_mask_word)(value[i] == condition->set[s]) << i;
      if (condition->operator == PP_NONE_OF) word = ~word;
      break;
    default: return false;
  }
  *out = word;
  return true;
}

static bool is_simple(const pp_condition *condition) {
  const bool set = condition->operator == PP_ONE_OF || condition->operator == PP_NONE_OF;
  return !condition->field.constant && (set || condition->low.constant);
}

void pp_conditions_match(const pp_condition *conditions, size_t count, size_t rows, pp_mask_word *mask) {
  size_t words = pp_mask_words(rows);
  if (rows == 0) return;
  memset(mask, 0xff, words * sizeof *mask);
  if (rows % WORD_BITS) mask[words - 1] = ((pp_mask_word)1 << rows % WORD_BITS) - 1;
  for (size_t c = 0; c < count; c++) {
    const bool simple = is_simple(&conditions[c]);
    if (is_constant(&conditions[c])) {
      if (pp_condition_holds(&conditions[c], 0)) continue;
      memset(mask, 0, words * sizeof *mask);
      return;
    }
    for (size_t w = 0; w < words; w++) {
      const size_t first = w * WORD_BITS, here = rows - first < WORD_BITS ? rows - first : WORD_BITS;
      pp_mask_word word = mask[w], holds;
      if (word == 0) continue;
      if (simple && match_word(&conditions[c], conditions[c].field.value + first, here, &holds)) {
        mask[w] &= holds;
        continue;
      }
      for (size_t bit = 0; word >> bit; bit++) {
        if (word >> bit & 1 && !pp_condition_holds(&conditions[c], first + bit)) mask[w] &= ~((pp_mask_word)1 << bit);
        if (bit == WORD_BITS - 1) break;
      }
    }
  }
}

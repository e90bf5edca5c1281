/* SPDX-License-Identifier: Apache-2.0 */
/*
** json_check.c: a strict scanner of JSON text. See json_check.h. Recursive descent; depth is limited before it recurses.
** The only state that outlives a value are the offsets of the keys of the objects that are open: when an object closes, its keys are sorted
** and equal neighbours looked for. No hashing, so no input makes it quadratic.
*/
#include "core/json_check.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/meter.h"
#include "core/text.h"

typedef struct {
  const unsigned char *text;
  size_t size, at;
  int depth, max_depth;
  const unsigned char **keys; /* opening quotes of the keys of open objects, innermost last */
  size_t key_count, key_room;
  pp_json_problem *problem;
} scanner;

static void locate(const scanner *s, size_t offset, pp_json_problem *problem) {
  problem->offset = offset;
  problem->line = 1;
  problem->column = 1;
  for (size_t i = 0; i < offset; i++) {
    if (s->text[i] == '\n') {
      problem->line++;
      problem->column = 1;
    } else if ((s->text[i] & 0xC0) != 0x80) { /* continuation bytes are no characters of their own */
      problem->column++;
    }
  }
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static pp_status fail(scanner *s, size_t offset, const char *format, ...) {
  va_list arguments;
  locate(s, offset, s->problem);
  va_start(arguments, format);
  vsnprintf(s->problem->message, sizeof s->problem->message, format, arguments);
  va_end(arguments);
  return PP_INVALID;
}

/* The byte at the cursor, or -1 at the end. */
static int peek(const scanner *s) { return s->at < s->size ? s->text[s->at] : -1; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static void skip_space(scanner *s) {
  while (s->at < s->size && (s->text[s->at] == ' ' || s->text[s->at] == '\t' || s->text[s->at] == '\n' || s->text[s->at] == '\r')) s->at++;
}

/* "expected a value, got 'x'" in words that fit what stands there. */
static pp_status unexpected(scanner *s, const char *expected) {
  int c = peek(s);
  if (c < 0) return fail(s, s->at, "expected %s, but the text ends", expected);
  if (c < 0x20 || c >= 0x7F) return fail(s, s->at, "expected %s, got byte 0x%02X", expected, (unsigned)c);
  return fail(s, s->at, "expected %s, got '%c'", expected, c);
}

static int hex_digit(int c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* The four hex digits at p as a number, -1 when they are not four. */
static int hex4(const unsigned char *p, size_t left) {
  int value = 0;
  if (left < 4) return -1;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(p[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* The cursor is on the backslash. */
static pp_status scan_escape(scanner *s) {
  size_t start = s->at++;
  int c = peek(s);
  int unit, second;
  if (c != 'u') {
    if (c <= 0 || !strchr("\"\\/bfnrt", c)) return fail(s, start, "unknown escape in a string");
    s->at++;
    return PP_OK;
  }
  s->at++;
  unit = hex4(s->text + s->at, s->size - s->at);
  if (unit < 0) return fail(s, start, "\\u needs four hexadecimal digits");
  s->at += 4;
  if (unit < 0xD800 || unit > 0xDFFF) return PP_OK;
  second = s->size - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u' ? hex4(s->text + s->at + 2, 4) : -1;
  if (unit > 0xDBFF || second < 0xDC00 || second > 0xDFFF) return fail(s, start, "lone surrogate \\u%04x", (unsigned)unit);
  s->at += 6;
  return PP_OK;
}

/* The cursor is on the opening quote. */
static pp_status scan_string(scanner *s) {
  size_t start = s->at++;
  for (;;) {
    int c = peek(s);
    if (c < 0) return fail(s, start, "a string is not closed");
    if (c == '"') {
      s->at++;
      return PP_OK;
    }
    if (c == '\\') {
      pp_status status = scan_escape(s);
      if (status != PP_OK) return status;
    } else if (c == '\n') {
      return fail(s, start, "a string is not closed on its line");
    } else if (c < 0x20) {
      return fail(s, s->at, "control character 0x%02X in a string", (unsigned)c);
    } else {
      size_t length = pp_utf8_length((const char *)s->text + s->at, s->size - s->at);
      if (length == 0) return fail(s, s->at, "byte 0x%02X is not valid UTF-8", (unsigned)c);
      s->at += length;
    }
  }
}

/* Is the run of digits over 2^53? */
static bool over_2_53(const unsigned char *digits, size_t length) {
  static const char limit[] = "9007199254740992";
  if (length != sizeof limit - 1) return length > sizeof limit - 1;
  return memcmp(digits, limit, length) > 0;
}

/* Power of ten of the first digit that is not 0 in `integer` digits followed by `fraction` digits; LONG_MIN when all are 0. */
static long magnitude(const unsigned char *integer, size_t integer_length, const unsigned char *fraction, size_t fraction_length) {
  if (integer[0] != '0') return (long)integer_length - 1;
  for (size_t i = 0; i < fraction_length; i++)
    if (fraction[i] != '0') return -(long)i - 1;
  return LONG_MIN;
}

/* Is a number whose first digit that is not 0 stands at 10^308 over the largest double, 1.7976931348623157e308? */
static bool over_largest(const unsigned char *integer, size_t integer_length, const unsigned char *fraction, size_t fraction_length) {
  static const char limit[] = "17976931348623157";
  size_t seen = 0;
  for (size_t i = 0; i < integer_length + fraction_length && seen < sizeof limit - 1; i++) {
    const unsigned char digit = i < integer_length ? integer[i] : fraction[i - integer_length];
    if (seen == 0 && digit == '0') continue;
    if (digit != (unsigned char)limit[seen]) return digit > (unsigned char)limit[seen];
    seen++;
  }
  return false;
}

static size_t scan_digits(scanner *s) {
  size_t start = s->at;
  while (is_digit(peek(s))) s->at++;
  return s->at - start;
}

static pp_status scan_number(scanner *s) {
  size_t start = s->at, integer, integer_length, fraction = 0, fraction_length = 0;
  long exponent = 0, power;
  bool negative = false, integral = true;
  if (peek(s) == '-') s->at++;
  integer = s->at;
  integer_length = scan_digits(s);
  if (integer_length == 0) {
    if (peek(s) == 'I') return fail(s, start, "-Infinity is no JSON number");
    return unexpected(s, "a digit");
  }
  if (integer_length > 1 && s->text[integer] == '0') return fail(s, start, "a number may not start with 0");
  if (peek(s) == 'x' || peek(s) == 'X') return fail(s, start, "hexadecimal numbers are no JSON");
  if (peek(s) == '.') {
    integral = false;
    fraction = ++s->at;
    fraction_length = scan_digits(s);
    if (fraction_length == 0) return unexpected(s, "a digit after the decimal point");
  }
  if (peek(s) == 'e' || peek(s) == 'E') {
    integral = false;
    s->at++;
    if (peek(s) == '+' || peek(s) == '-') negative = s->text[s->at++] == '-';
    if (!is_digit(peek(s))) return unexpected(s, "a digit in the exponent");
    for (; is_digit(peek(s)); s->at++)
      if (exponent < 1000000) exponent = exponent * 10 + (s->text[s->at] - '0');
  }
  if (integral && over_2_53(s->text + integer, integer_length))
    return fail(s, start, "integer beyond 2^53: a double cannot hold it (write it as a string)");
  power = magnitude(s->text + integer, integer_length, s->text + fraction, fraction_length);
  if (power == LONG_MIN) return PP_OK;
  power += negative ? -exponent : exponent;
  if (power > 308 || (power == 308 && over_largest(s->text + integer, integer_length, s->text + fraction, fraction_length)))
    return fail(s, start, "number too large");
  return PP_OK;
}

static pp_status scan_word(scanner *s) {
  static const char *const words[] = { "true", "false", "null" };
  static const char *const foreign[] = { "NaN", "nan", "Infinity", "inf", "True", "False", "None", "undefined" };
  size_t left = s->size - s->at;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t length = strlen(words[i]);
    if (left >= length && memcmp(s->text + s->at, words[i], length) == 0) {
      s->at += length;
      return PP_OK;
    }
  }
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    size_t length = strlen(foreign[i]);
    if (left >= length && memcmp(s->text + s->at, foreign[i], length) == 0) return fail(s, s->at, "%s is no JSON value", foreign[i]);
  }
  return unexpected(s, "a value");
}

/* ------------------------------------------------------------------------------------------------------------------------ equal keys */

/* The next character of a well-formed JSON string, escapes resolved; *p moves behind it. -1 at the closing quote. */
static long next_character(const unsigned char **p) {
  const unsigned char *c = *p;
  long value;
  size_t length;
  if (*c == '"') return -1;
  if (*c != '\\') {
    length = pp_utf8_length((const char *)c, 4); /* the string is closed and well-formed, so four bytes are never read past its quote */
    *p = c + length;
    return (long)pp_utf8_code((const char *)c, length);
  }
  if (c[1] != 'u') {
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *name = strchr(names, c[1]);
    *p = c + 2;
    return name ? values[name - names] : c[1];
  }
  value = hex4(c + 2, 4);
  *p = c + 6;
  if (value >= 0xD800 && value <= 0xDBFF) {
    value = 0x10000 + ((value - 0xD800) << 10) + (hex4(c + 8, 4) - 0xDC00);
    *p = c + 12;
  }
  return value;
}

static int compare_text(const unsigned char *a, const unsigned char *b) {
  a++;
  b++;
  for (;;) {
    long x = next_character(&a), y = next_character(&b);
    if (x != y) return x < y ? -1 : 1;
    if (x < 0) return 0;
  }
}

/* Equal keys come in the order of the text. */
static int compare_keys(const void *a, const void *b) {
  const unsigned char *x = *(const unsigned char *const *)a, *y = *(const unsigned char *const *)b;
  int order = compare_text(x, y);
  return order != 0 ? order : x < y ? -1 : x > y;
}

static pp_status remember_key(scanner *s) {
  if (s->key_count == s->key_room) {
    size_t room = s->key_room ? s->key_room * 2 : 64;
    const unsigned char **grown = pp_resize(s->keys, room * sizeof *grown);
    if (!grown) return PP_NO_MEMORY;
    s->keys = grown;
    s->key_room = room;
  }
  s->keys[s->key_count++] = s->text + s->at;
  return PP_OK;
}

/* Forgets the keys from `first` on, those of the object that closes, unless two of them are equal. */
static pp_status close_keys(scanner *s, size_t first) {
  const unsigned char *repeated = NULL, *original = NULL;
  if (s->key_count - first > 1) qsort(s->keys + first, s->key_count - first, sizeof *s->keys, compare_keys);
  for (size_t i = first + 1; i < s->key_count; i++) {
    if (compare_text(s->keys[i - 1], s->keys[i]) == 0 && (!repeated || s->keys[i] < repeated)) {
      original = s->keys[i - 1];
      repeated = s->keys[i];
    }
  }
  s->key_count = first;
  if (repeated) {
    pp_json_problem before;
    const unsigned char *end = repeated + 1;
    while (end - repeated < 60 && next_character(&end) >= 0) continue;
    locate(s, (size_t)(original - s->text), &before);
    return fail(s, (size_t)(repeated - s->text), "key %.*s%s stands twice in one object (first in line %zu, column %zu)",
                (int)(end - repeated), (const char *)repeated, *end == '"' ? "\"" : "…", before.line, before.column);
  }
  return PP_OK;
}

/* ---------------------------------------------------------------------------------------------------------------------------- values */

static pp_status scan_value(scanner *s);

/* The cursor is behind '{'. */
static pp_status scan_object(scanner *s) {
  size_t first = s->key_count;
  pp_status status;
  skip_space(s);
  if (peek(s) == '}') {
    s->at++;
    return PP_OK;
  }
  for (;;) {
    if (peek(s) != '"') return unexpected(s, "a key in double quotes");
    if ((status = remember_key(s)) != PP_OK) return status;
    if ((status = scan_string(s)) != PP_OK) return status;
    skip_space(s);
    if (peek(s) != ':') return unexpected(s, "':' after a key");
    s->at++;
    if ((status = scan_value(s)) != PP_OK) return status;
    skip_space(s);
    if (peek(s) == '}') {
      s->at++;
      return close_keys(s, first);
    }
    if (peek(s) != ',') return unexpected(s, "',' or '}'");
    s->at++;
    skip_space(s);
    if (peek(s) == '}') return fail(s, s->at, "a comma before '}'");
  }
}

/* The cursor is behind '['. */
static pp_status scan_array(scanner *s) {
  pp_status status;
  skip_space(s);
  if (peek(s) == ']') {
    s->at++;
    return PP_OK;
  }
  for (;;) {
    if ((status = scan_value(s)) != PP_OK) return status;
    skip_space(s);
    if (peek(s) == ']') {
      s->at++;
      return PP_OK;
    }
    if (peek(s) != ',') return unexpected(s, "',' or ']'");
    s->at++;
    skip_space(s);
    if (peek(s) == ']') return fail(s, s->at, "a comma before ']'");
  }
}

static pp_status scan_value(scanner *s) {
  pp_status status;
  int c;
  skip_space(s);
  c = peek(s);
  if (c == '"') return scan_string(s);
  if (c == '-' || is_digit(c)) return scan_number(s);
  if (c == '+') return fail(s, s->at, "a number may not start with +");
  if (c != '{' && c != '[') return scan_word(s);
  if (s->depth == s->max_depth) return fail(s, s->at, "nested deeper than %d levels", s->max_depth);
  s->depth++;
  s->at++;
  status = c == '{' ? scan_object(s) : scan_array(s);
  s->depth--;
  return status;
}

pp_status pp_json_check(const char *text, size_t size, int max_depth, pp_json_problem *problem) {
  scanner s = { .text = (const unsigned char *)text, .size = size, .problem = problem };
  pp_status status;
  s.max_depth = max_depth < PP_JSON_MAX_DEPTH ? max_depth : PP_JSON_MAX_DEPTH;
  if (size > PP_JSON_MAX_BYTES) return fail(&s, 0, "larger than %d MiB", PP_JSON_MAX_BYTES >> 20);
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) return fail(&s, 0, "starts with a byte order mark; save it as plain UTF-8");
  if (size >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0))
    return fail(&s, 0, "is UTF-16; save it as plain UTF-8");
  status = scan_value(&s);
  if (status == PP_OK) {
    skip_space(&s);
    if (s.at < s.size) status = fail(&s, s.at, "text after the end of the JSON value");
  }
  pp_free(s.keys);
  return status;
}

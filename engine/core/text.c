/* SPDX-License-Identifier: Apache-2.0 */
/*
** text.c: see text.h.
*/
#include "core/text.h"

#include <string.h>

typedef struct {
  uint32_t first, last;
} range;

/* Code points from U+0080 on that are shown escaped; see text.h. */
static const range hidden[] = {
  { 0x80, 0x9F }, { 0xAD, 0xAD }, { 0x34F, 0x34F }, { 0x61C, 0x61C }, { 0x115F, 0x1160 }, { 0x17B4, 0x17B5 }, { 0x180B, 0x180F },
  { 0x200B, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0x3164, 0x3164 }, { 0xFDD0, 0xFDEF }, { 0xFEFF, 0xFEFF },
  { 0xFFA0, 0xFFA0 }, { 0xFFF0, 0xFFFB }, { 0x1BCA0, 0x1BCA3 }, { 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF },
};

/* Combining marks of the blocks made for them, of Hebrew, Arabic and Thai, Hangul's vowels and finals, and variation selectors. */
static const range combining[] = {
  { 0x300, 0x36F }, { 0x483, 0x489 }, { 0x591, 0x5BD }, { 0x610, 0x61A }, { 0x64B, 0x65F }, { 0xE31, 0xE31 }, { 0xE34, 0xE3A },
  { 0xE47, 0xE4E }, { 0x1160, 0x11FF }, { 0x1AB0, 0x1ACE }, { 0x1DC0, 0x1DFF }, { 0x20D0, 0x20F0 }, { 0x302A, 0x302D }, { 0x3099, 0x309A },
  { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F },
};

/* W and F of EastAsianWidth.txt; what lies unassigned between two of them is counted with them. */
static const range wide[] = {
  { 0x1100, 0x115F }, { 0x231A, 0x231B }, { 0x2329, 0x232A }, { 0x23E9, 0x23EC }, { 0x23F0, 0x23F0 }, { 0x23F3, 0x23F3 },
  { 0x25FD, 0x25FE }, { 0x2614, 0x2615 }, { 0x2648, 0x2653 }, { 0x267F, 0x267F }, { 0x2693, 0x2693 }, { 0x26A1, 0x26A1 },
  { 0x26AA, 0x26AB }, { 0x26BD, 0x26BE }, { 0x26C4, 0x26C5 }, { 0x26CE, 0x26CE }, { 0x26D4, 0x26D4 }, { 0x26EA, 0x26EA },
  { 0x26F2, 0x26F3 }, { 0x26F5, 0x26F5 }, { 0x26FA, 0x26FA }, { 0x26FD, 0x26FD }, { 0x2705, 0x2705 }, { 0x270A, 0x270B },
  { 0x2728, 0x2728 }, { 0x274C, 0x274C }, { 0x274E, 0x274E }, { 0x2753, 0x2755 }, { 0x2757, 0x2757 }, { 0x2795, 0x2797 },
  { 0x27B0, 0x27B0 }, { 0x27BF, 0x27BF }, { 0x2B1B, 0x2B1C }, { 0x2B50, 0x2B50 }, { 0x2B55, 0x2B55 }, { 0x2E80, 0x303E },
  { 0x3041, 0x3247 }, { 0x3250, 0x4DBF }, { 0x4E00, 0xA4C6 }, { 0xA960, 0xA97C }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF },
  { 0xFE10, 0xFE19 }, { 0xFE30, 0xFE6B }, { 0xFF01, 0xFF60 }, { 0xFFE0, 0xFFE6 }, { 0x16FE0, 0x1B2FB }, { 0x1F004, 0x1F004 },
  { 0x1F0CF, 0x1F0CF }, { 0x1F18E, 0x1F18E }, { 0x1F191, 0x1F19A }, { 0x1F200, 0x1F265 }, { 0x1F300, 0x1F320 }, { 0x1F32D, 0x1F335 },
  { 0x1F337, 0x1F37C }, { 0x1F37E, 0x1F393 }, { 0x1F3A0, 0x1F3CA }, { 0x1F3CF, 0x1F3D3 }, { 0x1F3E0, 0x1F3F0 }, { 0x1F3F4, 0x1F3F4 },
  { 0x1F3F8, 0x1F43E }, { 0x1F440, 0x1F440 }, { 0x1F442, 0x1F4FC }, { 0x1F4FF, 0x1F53D }, { 0x1F54B, 0x1F54E }, { 0x1F550, 0x1F567 },
  { 0x1F57A, 0x1F57A }, { 0x1F595, 0x1F596 }, { 0x1F5A4, 0x1F5A4 }, { 0x1F5FB, 0x1F64F }, { 0x1F680, 0x1F6C5 }, { 0x1F6CC, 0x1F6CC },
  { 0x1F6D0, 0x1F6D2 }, { 0x1F6D5, 0x1F6DF }, { 0x1F6EB, 0x1F6EC }, { 0x1F6F4, 0x1F6FC }, { 0x1F7E0, 0x1F7F0 }, { 0x1F90C, 0x1F93A },
  { 0x1F93C, 0x1F945 }, { 0x1F947, 0x1F9FF }, { 0x1FA70, 0x1FAF6 }, { 0x20000, 0x2FFFD }, { 0x30000, 0x3FFFD },
};

#define IN(code, table) in_ranges(code, table, sizeof table / sizeof *table)

static int in_ranges(uint32_t code, const range *table, size_t count) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (code > table[middle].last) low = middle + 1;
    else high = middle;
  }
  return low < count && code >= table[low].first;
}

size_t pp_utf8_length(const char *text, size_t left) {
  const unsigned char *p = (const unsigned char *)text;
  unsigned low = 0x80, high = 0xBF;
  size_t length;
  if (p[0] < 0x80) return 1;
  if (p[0] >= 0xC2 && p[0] <= 0xDF) length = 2;
  else if (p[0] >= 0xE0 && p[0] <= 0xEF) length = 3;
  else if (p[0] >= 0xF0 && p[0] <= 0xF4) length = 4;
  else return 0;
  if (left < length) return 0;
  if (p[0] == 0xE0) low = 0xA0;
  if (p[0] == 0xED) high = 0x9F;
  if (p[0] == 0xF0) low = 0x90;
  if (p[0] == 0xF4) high = 0x8F;
  if (p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((p[i] & 0xC0) != 0x80) return 0;
  return length;
}

uint32_t pp_utf8_code(const char *text, size_t length) {
  static const unsigned char lead[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
  const unsigned char *p = (const unsigned char *)text;
  uint32_t code = p[0] & lead[length];
  for (size_t i = 1; i < length; i++) code = code << 6 | (p[i] & 0x3F);
  return code;
}

static int is_plain(uint32_t code) {
  if (code < 0x80) return code >= 0x20 && code != 0x7F;
  return (code & 0xFFFE) != 0xFFFE && !IN(code, hidden);
}

size_t pp_text_plain(const char *text, size_t length) {
  size_t at = 0;
  while (at < length) {
    size_t taken = pp_utf8_length(text + at, length - at);
    if (taken == 0 || !is_plain(pp_utf8_code(text + at, taken))) break;
    at += taken;
  }
  return at;
}

size_t pp_text_escape(const char *text, size_t length, char out[PP_ESCAPE_SIZE]) {
  static const char short_codes[] = "\n\t\r", short_names[] = "ntr", digits[] = "0123456789abcdef";
  const size_t taken = pp_utf8_length(text, length);
  const uint32_t code = taken ? pp_utf8_code(text, taken) : (unsigned char)text[0];
  const char *name = code ? strchr(short_codes, (int)code) : NULL;
  char *end = out;
  *end++ = '\\';
  if (code < 0x80 && name) {
    *end++ = short_names[name - short_codes];
  } else if (taken < 2) {
    *end++ = 'x';
    *end++ = digits[code >> 4];
    *end++ = digits[code & 15];
  } else {
    int shift = 20;
    while (code >> shift == 0) shift -= 4;
    *end++ = 'u';
    *end++ = '{';
    for (; shift >= 0; shift -= 4) *end++ = digits[code >> shift & 15];
    *end++ = '}';
  }
  *end = '\0';
  return taken ? taken : 1;
}

size_t pp_text_visible(const char *text, size_t length, char *out, size_t size) {
  static const char more[] = "…";
  size_t at = 0, used = 0, last = 0;  /* last: where "…" still fits */
  while (at < length) {
    char escape[PP_ESCAPE_SIZE];
    const char *piece = text + at;
    size_t taken = pp_utf8_length(piece, length - at), written = taken;
    if (taken == 0 || !is_plain(pp_utf8_code(piece, taken))) {
      taken = pp_text_escape(piece, length - at, escape);
      piece = escape;
      written = strlen(escape);
    }
    if (used + written >= size) break;
    memcpy(out + used, piece, written);
    used += written;
    if (used + sizeof more <= size) last = used;
    at += taken;
  }
  if (at < length && last + sizeof more <= size) {
    memcpy(out + last, more, sizeof more - 1);
    used = last + sizeof more - 1;
  }
  out[used] = '\0';
  return used;
}

static size_t columns_of(uint32_t code) {
  if (code < 0x300) return 1;
  if (IN(code, combining)) return 0;
  return IN(code, wide) ? 2 : 1;
}

/* Of at most `columns` columns: the bytes, and in *used the columns that they take. */
static size_t measure(const char *text, size_t length, size_t columns, size_t *used) {
  size_t at = 0;
  *used = 0;
  while (at < length) {
    size_t taken = pp_utf8_length(text + at, length - at);
    size_t width = taken ? columns_of(pp_utf8_code(text + at, taken)) : 1;
    if (width > columns - *used) break;
    *used += width;
    at += taken ? taken : 1;
  }
  return at;
}

size_t pp_text_width(const char *text, size_t length) {
  size_t used;
  measure(text, length, SIZE_MAX, &used);
  return used;
}

size_t pp_text_fit(const char *text, size_t length, size_t columns) {
  size_t used;
  return measure(text, length, columns, &used);
}

void pp_text_mend(char *text) {
  size_t length = strlen(text), back = 0;
  while (back < 3 && back < length && ((unsigned char)text[length - 1 - back] & 0xC0) == 0x80) back++;
  if (back == length) return;
  /* the character that the end lies in, from its first byte on */
  const char *first = text + length - 1 - back;
  if ((unsigned char)*first >= 0x80 && pp_utf8_length(first, back + 1) != back + 1) text[length - 1 - back] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0 */
/* text_test.c: text that came from elsewhere, as a terminal may have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/text.h"

static const char *shown(const char *text, size_t length) {
  static char out[4096];
  pp_text_visible(text, length, out, sizeof out);
  return out;
}

#define SHOWN(literal) shown("" literal, sizeof literal - 1)

static void what_is_seen_stays_as_it_is(void **state) {
  static const char *const texts[] = { "", "plan \\x1b \"q\" ~", "µ ≥ → … 漢字 é e\u0301 🚀 a\u00A0b ✔\uFE0F" };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_string_equal(shown(texts[i], strlen(texts[i])), texts[i]);
    assert_int_equal(pp_text_plain(texts[i], strlen(texts[i])), strlen(texts[i]));
  }
}

/* UAX #44: General_Category Cc, Zl, Zp; Default_Ignorable_Code_Point without VS1–16; Noncharacter_Code_Point. The first and last of each. */
static void what_a_terminal_obeys_or_nobody_sees_is_escaped(void **state) {
  (void)state;
  assert_string_equal(SHOWN("a\0b"), "a\\x00b");
  assert_string_equal(SHOWN("\x1b[31m\n\t\r\x1f\x7f"), "\\x1b[31m\\n\\t\\r\\x1f\\x7f");
  assert_string_equal(SHOWN("\xC2\x80\xC2\x9B\xC2\x9F"), "\\u{80}\\u{9b}\\u{9f}");
  assert_string_equal(SHOWN("\u200B\u200F\u2028\u2029\u202A\u202E\u2066\u2069\u061C\uFEFF\u00AD"),
                      "\\u{200b}\\u{200f}\\u{2028}\\u{2029}\\u{202a}\\u{202e}\\u{2066}\\u{2069}\\u{61c}\\u{feff}\\u{ad}");
  assert_string_equal(SHOWN("\U000E0000\U000E0FFF\xEF\xBF\xBF\xF4\x8F\xBF\xBF"), "\\u{e0000}\\u{e0fff}\\u{ffff}\\u{10ffff}");
}

/* RFC 3629, section 4, and the overlong forms and surrogates that section 3 forbids. */
static void bytes_that_are_no_utf_8_are_escaped_one_by_one(void **state) {
  (void)state;
  assert_string_equal(SHOWN("\x80\xFF\xC0\xAF"), "\\x80\\xff\\xc0\\xaf");
  assert_string_equal(SHOWN("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  assert_string_equal(SHOWN("\xE2\x82"), "\\xe2\\x82");
  assert_string_equal(SHOWN("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

static void escaping_twice_changes_nothing(void **state) {
  char text[64], once[1024], twice[1024];
  uint32_t seed = 7;
  (void)state;
  for (int round = 0; round < 20000; round++) {
    size_t length = (seed >> 8) % sizeof text;
    for (size_t i = 0; i < length; i++) text[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
    size_t written = pp_text_visible(text, length, once, sizeof once);
    assert_int_equal(written, strlen(once));
    assert_int_equal(pp_text_plain(once, written), written);
    pp_text_visible(once, written, twice, sizeof twice);
    assert_string_equal(once, twice);
  }
}

static void a_text_too_long_is_cut_between_characters(void **state) {
  static const char text[] = "ab\u00E9\u6F22\x1b z\U0001F680";
  char out[64];
  (void)state;
  for (size_t size = 1; size < sizeof out; size++) {
    memset(out, '#', sizeof out);
    size_t written = pp_text_visible(text, sizeof text - 1, out, size);
    assert_true(written < size);
    assert_int_equal(strlen(out), written);
    assert_int_equal(pp_text_plain(out, written), written);  /* whole characters only */
    if (size >= 4 && size <= 17) assert_string_equal(out + written - 3, "…");  /* 17 bytes in all, and a NUL */
  }
  pp_text_visible(text, sizeof text - 1, out, 8);
  assert_string_equal(out, "ab\u00E9…");
}

/* Widths: EastAsianWidth.txt of Unicode 14, as Python 3.11's unicodedata has it. */
static void columns_are_those_of_a_terminal(void **state) {
  (void)state;
  assert_int_equal(pp_text_width("plan", 4), 4);
  assert_int_equal(pp_text_width("\u6F22\u5B57", 6), 4);
  assert_int_equal(pp_text_width("e\u0301", 3), 1);
  assert_int_equal(pp_text_width("\U0001F680", 4), 2);
  assert_int_equal(pp_text_width("…─µ", 7), 3);
  assert_int_equal(pp_text_width("\xFF\xFE", 2), 2);
}

static void as_much_as_fits_is_whole_characters_with_their_marks(void **state) {
  (void)state;
  assert_int_equal(pp_text_fit("plan", 4, 2), 2);
  assert_int_equal(pp_text_fit("plan", 4, 9), 4);
  assert_int_equal(pp_text_fit("\u6F22\u5B57", 6, 1), 0);
  assert_int_equal(pp_text_fit("\u6F22\u5B57", 6, 3), 3);
  assert_int_equal(pp_text_fit("e\u0301x", 4, 1), 3);
  assert_int_equal(pp_text_fit("x", 1, 0), 0);
}

static void what_a_buffer_cut_in_two_is_taken_off(void **state) {
  static const struct { const char *text, *mended; } cases[] = {
    { "", "" }, { "abc", "abc" }, { "a\u00E9", "a\u00E9" }, { "a\xC3", "a" }, { "a\xE2\x82", "a" }, { "a\xE2", "a" },
    { "\xF0\x9F\x9A", "" }, { "\xF0\x9F\x9A\x80", "\xF0\x9F\x9A\x80" }, { "≥\xE2\x89", "≥" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[16];
    strcpy(text, cases[i].text);
    pp_text_mend(text);
    assert_string_equal(text, cases[i].mended);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_seen_stays_as_it_is),
    cmocka_unit_test(what_a_terminal_obeys_or_nobody_sees_is_escaped),
    cmocka_unit_test(bytes_that_are_no_utf_8_are_escaped_one_by_one),
    cmocka_unit_test(escaping_twice_changes_nothing),
    cmocka_unit_test(a_text_too_long_is_cut_between_characters),
    cmocka_unit_test(columns_are_those_of_a_terminal),
    cmocka_unit_test(as_much_as_fits_is_whole_characters_with_their_marks),
    cmocka_unit_test(what_a_buffer_cut_in_two_is_taken_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

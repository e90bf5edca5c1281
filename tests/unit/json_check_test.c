/* SPDX-License-Identifier: Apache-2.0 */
/* json_check.c: what is JSON by RFC 8259 and what is not, and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/json_check.h"

#define FIFTY_NINE "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg"

static pp_json_problem problem;

/* The text in a block of its own size, so that a sanitizer sees any read behind its end. */
static pp_status check_bytes(const char *text, size_t size) {
  char *copy = malloc(size ? size : 1);
  pp_status status;
  assert_non_null(copy);
  memcpy(copy, text, size);
  status = pp_json_check(copy, size, PP_JSON_MAX_DEPTH, &problem);
  free(copy);
  return status;
}

static pp_status check(const char *text) { return check_bytes(text, strlen(text)); }

static void refused(const char *text, size_t line, size_t column, const char *part) {
  if (check(text) == PP_OK) fail_msg("accepted: %s", text);
  if (!strstr(problem.message, part)) fail_msg("%s: message is '%s', expected '%s'", text, problem.message, part);
  assert_int_equal(problem.line, line);
  assert_int_equal(problem.column, column);
}

static void values_of_rfc_8259_are_accepted(void **state) {
  static const char *const good[] = {
    "0", "-0", "1", "-1.5", "1e5", "1E+5", "1e-5", "0.1", "10", "true", "false", "null", "\"\"", "{}", "[]", " [ ] ", "\t{\r\n}\n",
    "[1,2,3]", "{\"a\":1,\"b\":[{},[]]}", "\"\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9\"", "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
    "\"\\ud83d\\ude00\"", "9007199254740992", "-9007199254740992", "1e308", "1.7976931348623157e308", "0.00000000000000000000001",
    "0e999", "123456789012345678901234567890.5",
    "{\"a\":1,\"A\":2}", "\"\x7F\"",
  };
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (check(good[i]) != PP_OK) fail_msg("refused: %s: %s", good[i], problem.message);
}

/* Each of these lua-cjson 2.1.0 decodes without a word. */
static void what_other_decoders_let_through_is_refused(void **state) {
  (void)state;
  refused("[NaN]", 1, 2, "NaN");
  refused("[Infinity]", 1, 2, "Infinity");
  refused("[-Infinity]", 1, 2, "Infinity");
  refused("[+1]", 1, 2, "+");
  refused("[01]", 1, 2, "start with 0");
  refused("[-01]", 1, 2, "start with 0");
  refused("[0x10]", 1, 2, "hexadecimal");
  refused("[1e999]", 1, 2, "too large");
  refused("[-1e999]", 1, 2, "too large");
  refused("[1.8e308]", 1, 2, "too large");
  refused("[1e99999999999999999999]", 1, 2, "too large");
  refused("{\"gpus\": 8,\n \"gpus\": 16}", 2, 2, "\"gpus\" stands twice in one object (first in line 1, column 2)");
  /* of a long name its beginning, 60 bytes with its quote */
  refused("{\"" FIFTY_NINE "z\": 1, \"" FIFTY_NINE "z\": 2}", 1, 69, "key \"" FIFTY_NINE "… stands twice");
}

static void equal_keys_are_found_however_they_are_written(void **state) {
  (void)state;
  refused("{\"a\":1,\"\\u0061\":2}", 1, 8, "twice");
  refused("{\"\\u00e9\":1,\"\xC3\xA9\":2}", 1, 13, "twice");
  refused("{\"\\ud83d\\ude00\":1,\"\xF0\x9F\x98\x80\":2}", 1, 19, "twice");
  refused("{\"\\/\":1,\"/\":2}", 1, 9, "twice");
  refused("[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]", 1, 20, "\"b\"");
}

/* Characters of two, three and four bytes that differ in one bit of their first byte: U+0080, U+0480; U+0800, U+8800; U+10000, U+50000. */
static void keys_that_differ_in_one_bit_are_two(void **state) {
  (void)state;
  assert_int_equal(check("{\"\xC2\x80\":1,\"\xD2\x80\":2}"), PP_OK);
  assert_int_equal(check("{\"\xE0\xA0\x80\":1,\"\xE8\xA0\x80\":2}"), PP_OK);
  assert_int_equal(check("{\"\xF0\x90\x80\x80\":1,\"\xF1\x90\x80\x80\":2}"), PP_OK);
  refused("{\"\\u8800\":1,\"\xE8\xA0\x80\":2}", 1, 13, "twice");
}

static void equal_keys_of_different_objects_are_no_matter(void **state) {
  (void)state;
  assert_int_equal(check("{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":1}]}"), PP_OK);
}

/* Comparing each key with each other would take minutes here. */
static void a_hundred_thousand_keys_cost_no_quadratic_time(void **state) {
  size_t room = 100000 * 16, used = 0;
  char *text = malloc(room);
  (void)state;
  assert_non_null(text);
  text[used++] = '{';
  for (int i = 0; i < 100000; i++) used += (size_t)snprintf(text + used, room - used, "%s\"%07d\":1", i ? "," : "", i);
  text[used++] = '}';
  assert_int_equal(pp_json_check(text, used, PP_JSON_MAX_DEPTH, &problem), PP_OK);
  memcpy(text + used - 11, "0000000", 7); /* the last key is now the first one */
  assert_int_equal(pp_json_check(text, used, PP_JSON_MAX_DEPTH, &problem), PP_INVALID);
  assert_non_null(strstr(problem.message, "\"0000000\""));
  free(text);
}

static void a_position_counts_lines_and_characters_from_one(void **state) {
  (void)state;
  refused("{\n  \"a\": 1,\n  \"b\" 2\n}", 3, 7, "':'");
  refused("{\"\xC3\xA9\": x}", 1, 7, "expected a value, got 'x'");
}

static void broken_structure_is_named(void **state) {
  (void)state;
  refused("", 1, 1, "the text ends");
  refused("   ", 1, 4, "the text ends");
  refused("{", 1, 2, "the text ends");
  refused("[1", 1, 3, "the text ends");
  refused("{\"a\":1,}", 1, 8, "comma before '}'");
  refused("[1,]", 1, 4, "comma before ']'");
  refused("[1 2]", 1, 4, "',' or ']'");
  refused("{'a':1}", 1, 2, "double quotes");
  refused("{a:1}", 1, 2, "double quotes");
  refused("[1] x", 1, 5, "after the end");
  refused("{}{}", 1, 3, "after the end");
  refused("// no\n{}", 1, 1, "expected a value, got '/'");
  refused("[tru]", 1, 2, "expected a value");
  refused("[True]", 1, 2, "True is no JSON value");
  refused("[1.]", 1, 4, "digit after the decimal point");
  refused("[.5]", 1, 2, "expected a value");
  refused("[1e]", 1, 4, "exponent");
  refused("[-]", 1, 3, "digit");
}

static void integers_that_a_double_cannot_hold_are_refused(void **state) {
  (void)state;
  refused("9007199254740993", 1, 1, "2^53");
  refused("-9007199254740993", 1, 1, "2^53");
  refused("[1, 100000000000000000000]", 1, 5, "2^53");
}

static void strings_are_well_formed_utf_8(void **state) {
  (void)state;
  refused("\"\x80\"", 1, 2, "0x80 is not valid UTF-8");
  refused("\"\xC0\xAF\"", 1, 2, "UTF-8");         /* overlong '/' */
  refused("\"\xE0\x80\xAF\"", 1, 2, "UTF-8");     /* overlong */
  refused("\"\xED\xA0\x80\"", 1, 2, "UTF-8");     /* a surrogate encoded */
  refused("\"\xF4\x90\x80\x80\"", 1, 2, "UTF-8"); /* over U+10FFFF */
  refused("\"\xE2\x82\"", 1, 2, "UTF-8");         /* cut off */
  refused("\"a\tb\"", 1, 3, "control character 0x09");
  refused("\"a\nb\"", 1, 1, "not closed on its line");
  refused("\"abc", 1, 1, "not closed");
  refused("\"\\x\"", 1, 2, "escape");
  refused("\"\\u12g4\"", 1, 2, "hexadecimal");
  refused("\"\\ud800\"", 1, 2, "lone surrogate \\ud800");
  refused("\"\\udc00\"", 1, 2, "lone surrogate \\udc00");
  refused("\"\\ud800\\u0041\"", 1, 2, "lone surrogate");
  refused("\xEF\xBB\xBF{}", 1, 1, "byte order mark");
  refused("\xFF\xFE{", 1, 1, "UTF-16");
}

static void a_nul_byte_is_no_end_of_the_text(void **state) {
  (void)state;
  assert_int_equal(check_bytes("[1]\0", 4), PP_INVALID);
  assert_int_equal(problem.column, 4);
  assert_int_equal(check_bytes("\"\\\0\"", 4), PP_INVALID);
  assert_int_equal(check_bytes("\"a\0b\"", 5), PP_INVALID);
}

static void depth_is_limited(void **state) {
  char text[2 * PP_JSON_MAX_DEPTH + 4];
  (void)state;
  memset(text, '[', PP_JSON_MAX_DEPTH);
  memset(text + PP_JSON_MAX_DEPTH, ']', PP_JSON_MAX_DEPTH);
  assert_int_equal(pp_json_check(text, 2 * PP_JSON_MAX_DEPTH, PP_JSON_MAX_DEPTH, &problem), PP_OK);
  assert_int_equal(pp_json_check(text, 2 * PP_JSON_MAX_DEPTH, 3, &problem), PP_INVALID);
  assert_int_equal(problem.column, 4);
  memset(text, '[', sizeof text);
  assert_int_equal(pp_json_check(text, sizeof text, 1 << 30, &problem), PP_INVALID);
  assert_non_null(strstr(problem.message, "deeper than 128"));
}

static void size_is_limited(void **state) {
  (void)state;
  assert_int_equal(pp_json_check("", (size_t)PP_JSON_MAX_BYTES + 1, 1, &problem), PP_INVALID);
  assert_non_null(strstr(problem.message, "16 MiB"));
}

/* Every prefix of a good text is bad, and none reads behind its end. */
static void no_prefix_of_an_object_is_json(void **state) {
  static const char text[] = "{\"a\\u00e9\\ud83d\\ude00\xE2\x82\xAC\": [true, false, null, -1.5e+3, {}, []]}";
  (void)state;
  assert_int_equal(check(text), PP_OK);
  for (size_t i = 0; i < sizeof text - 1; i++) assert_int_equal(check_bytes(text, i), PP_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_of_rfc_8259_are_accepted),
    cmocka_unit_test(what_other_decoders_let_through_is_refused),
    cmocka_unit_test(equal_keys_are_found_however_they_are_written),
    cmocka_unit_test(keys_that_differ_in_one_bit_are_two),
    cmocka_unit_test(equal_keys_of_different_objects_are_no_matter),
    cmocka_unit_test(a_hundred_thousand_keys_cost_no_quadratic_time),
    cmocka_unit_test(a_position_counts_lines_and_characters_from_one),
    cmocka_unit_test(broken_structure_is_named),
    cmocka_unit_test(integers_that_a_double_cannot_hold_are_refused),
    cmocka_unit_test(strings_are_well_formed_utf_8),
    cmocka_unit_test(a_nul_byte_is_no_end_of_the_text),
    cmocka_unit_test(depth_is_limited),
    cmocka_unit_test(size_is_limited),
    cmocka_unit_test(no_prefix_of_an_object_is_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

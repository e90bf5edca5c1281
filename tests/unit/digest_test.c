/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c against the test vectors of the authors of FNV (http://www.isthe.com/chongo/src/fnv/test_fnv.c, FNV-1a 64). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/digest.h"

static void digests_equal_the_published_vectors(void **state) {
  (void)state;
  assert_true(pp_digest("", 0) == 0xcbf29ce484222325u);
  assert_true(pp_digest("a", 1) == 0xaf63dc4c8601ec8cu);
  assert_true(pp_digest("foobar", 6) == 0x85944171f73967e8u);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(digests_equal_the_published_vectors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

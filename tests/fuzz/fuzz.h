/* SPDX-License-Identifier: Apache-2.0 */
/*
** fuzz.h: what fuzz targets share: a check that ends the run, and bytes as numbers. Each target is one file *_fuzz.c, built by the CMake
** preset `fuzz` and run by hand:
**   cmake --preset fuzz && cmake --build --preset fuzz && build/fuzz/tests/fuzz/NAME_fuzz -max_total_time=180 CORPUS
*/
#ifndef PP_FUZZ_H
#define PP_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void require(int truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

/* Bytes taken from the front; zeros when there are no more. */
typedef struct {
  const uint8_t *at, *end;
} fuzz_bytes;

static inline unsigned take_byte(fuzz_bytes *bytes) { return bytes->at < bytes->end ? *bytes->at++ : 0; }

/* 0 … n − 1, n ≥ 1; of two bytes, one would do for a small n, so that what follows stays where it is when n changes. */
static inline unsigned take_below(fuzz_bytes *bytes, unsigned n) {
  unsigned high = take_byte(bytes);
  return (high << 8 | take_byte(bytes)) % n;
}

#endif

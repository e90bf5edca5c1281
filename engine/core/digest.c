/* SPDX-License-Identifier: Apache-2.0 */
/*
** digest.c: see digest.h.
*/
#include "core/digest.h"

uint64_t pp_digest(const char *bytes, size_t size) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) {
    digest ^= (unsigned char)bytes[i];
    digest *= 0x100000001b3u;
  }
  return digest;
}

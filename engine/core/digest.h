/* SPDX-License-Identifier: Apache-2.0 */
/*
** digest.h: a short stable name for a text: to see whether two policies are the same, not to protect against anyone.
*/
#ifndef PP_DIGEST_H
#define PP_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): the same on every machine. */
uint64_t pp_digest(const char *bytes, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** embed_names.c: see embed_names.h. The format is ldump.c's of Lua 5.4: a header, the number of the main function's upvalues, the function.
*/
#include "embed_names.h"

#include <lua.h>
#include <stdbool.h>
#include <string.h>

enum { HEADER = 4 + 1 + 1 + 6 + 3, INSTRUCTION = 4, UPVALUE = 3 };   /* bytes; of the header, what is before a number of each kind */
enum { NIL = 0x00, FALSE_ = 0x01, TRUE_ = 0x11, INTEGER = 0x03, NUMBER = 0x13, SHORT_STRING = 0x04, LONG_STRING = 0x14 };   /* lobject.h */

/* What is read lies behind what is written, or is the same. */
typedef struct {
  const char *from, *end;
  char *to;
  bool good;
} rewriting;

static void skip(rewriting *of, size_t size) {
  if ((size_t)(of->end - of->from) < size) of->good = false;
  else of->from += size;
}

static void copy(rewriting *of, size_t size) {
  const char *from = of->from;
  skip(of, size);
  if (!of->good) return;
  memmove(of->to, from, size);
  of->to += size;
}

/* A number: seven bits a byte, the last with its highest bit set. */
static size_t number(rewriting *of, bool wanted) {
  size_t value = 0;
  for (bool last = false; of->good && !last; ) {
    if (of->from == of->end) {
      of->good = false;
      return 0;
    }
    const unsigned char byte = (unsigned char)*of->from;
    value = value << 7 | (byte & 0x7f);
    last = (byte & 0x80) != 0;
    if (wanted) copy(of, 1);
    else skip(of, 1);
  }
  return of->good ? value : 0;
}

/* Its size and one more, or 0 for none. */
static void string(rewriting *of, bool wanted) {
  const size_t size = number(of, wanted);
  if (size == 0) return;
  if (wanted) copy(of, size - 1);
  else skip(of, size - 1);
}

static void constant(rewriting *of) {
  const int kind = of->from < of->end ? *of->from : -1;
  copy(of, 1);
  if (kind == INTEGER) copy(of, sizeof(lua_Integer));
  else if (kind == NUMBER) copy(of, sizeof(lua_Number));
  else if (kind == SHORT_STRING || kind == LONG_STRING) string(of, true);
  else if (kind != NIL && kind != FALSE_ && kind != TRUE_) of->good = false;
}

static void no_names(rewriting *of) {
  if (of->good) *of->to++ = (char)0x80;   /* the number 0 */
}

static void function(rewriting *of) {
  string(of, true);                        /* source */
  number(of, true);                        /* its first line, and its last */
  number(of, true);
  copy(of, 3);                             /* parameters, varargs, stack */
  copy(of, number(of, true) * INSTRUCTION);
  for (size_t n = number(of, true); of->good && n > 0; n--) constant(of);
  copy(of, number(of, true) * UPVALUE);
  for (size_t n = number(of, true); of->good && n > 0; n--) function(of);
  copy(of, number(of, true));              /* lines, as differences, and whole ones now and then */
  for (size_t n = number(of, true); of->good && n > 0; n--) {
    number(of, true);
    number(of, true);
  }
  for (size_t n = number(of, false); of->good && n > 0; n--) {   /* local variables: name, and from where to where it lives */
    string(of, false);
    number(of, false);
    number(of, false);
  }
  no_names(of);
  for (size_t n = number(of, false); of->good && n > 0; n--) string(of, false);
  no_names(of);
}

size_t pp_leave_out_names(char *code, size_t size) {
  rewriting of = { .from = code, .end = code + size, .to = code, .good = LUA_VERSION_NUM == 504 };
  copy(&of, HEADER + sizeof(lua_Integer) + sizeof(lua_Number));
  copy(&of, 1);                            /* upvalues of the main function */
  if (of.good) function(&of);
  return of.good && of.from == of.end ? (size_t)(of.to - code) : 0;
}

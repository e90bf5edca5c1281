/* SPDX-License-Identifier: Apache-2.0 */
/*
** parse_cost.c: a lexer that counts. See parse_cost.h.
*/
#include "host/parse_cost.h"

#include <stdbool.h>
#include <string.h>

enum {
  DEPTH = 256,       /* the parser gives up at 200 blocks inside each other */
  NAME_SHARE = 4     /* variables that are looked at in a unit */
};

/* A block, or a function's body, that is open. */
typedef struct {
  bool function, awaits_do;   /* a loop's head comes before its `do`, which opens nothing then */
  uint64_t visible;           /* variables that could be seen before it */
  uint64_t jumps;             /* of a function: so far */
} block;

/* Where names declare variables. */
typedef enum { NOWHERE, NAME, AFTER_NAME, ATTRIBUTE, BEFORE_PARAMETERS } declaring;

typedef struct {
  const char *at, *end;
  uint64_t cost;
  block block[DEPTH];
  int depth;          /* blocks open; may pass DEPTH */
  int function;       /* the innermost of them that is a function's */
  uint64_t visible;
  declaring declares;
} reader;

/* -- blocks -------------------------------------------------------------------------------------------------------------------------- */

static void close_jumps(reader *r, const block *of) {
  r->cost += of->jumps * of->jumps;
}

static void open_block(reader *r, bool function, bool awaits_do) {
  if (r->depth < DEPTH) {
    r->block[r->depth] = (block){ .function = function, .awaits_do = awaits_do, .visible = r->visible };
    if (function) r->function = r->depth;
  }
  r->depth++;
}

static void close_block(reader *r) {
  if (r->depth <= 1) return;   /* the file's own stays */
  if (--r->depth >= DEPTH) return;
  const block *closed = &r->block[r->depth];
  r->visible = closed->visible;
  if (!closed->function) return;
  close_jumps(r, closed);
  while (!r->block[--r->function].function) ;   /* the file's is one */
}

static void do_word(reader *r) {
  block *top = r->depth <= DEPTH ? &r->block[r->depth - 1] : NULL;
  if (top && top->awaits_do) top->awaits_do = false;
  else open_block(r, false, false);
}

/* -- words --------------------------------------------------------------------------------------------------------------------------- */

static bool is(const char *word, size_t length, const char *keyword) {
  return strlen(keyword) == length && memcmp(word, keyword, length) == 0;
}

static bool is_one_of(const char *word, size_t length, const char *const *keywords) {
  for (; *keywords; keywords++)
    if (is(word, length, *keywords)) return true;
  return false;
}

static void name(reader *r) {
  r->cost += 1 + (uint64_t)r->depth + r->visible / NAME_SHARE;
  if (r->declares == BEFORE_PARAMETERS) return;   /* the function's own name */
  if (r->declares != NAME) {
    if (r->declares != ATTRIBUTE) r->declares = NOWHERE;
    return;
  }
  r->visible++;
  r->declares = AFTER_NAME;
}

static void function_word(reader *r) {
  if (r->declares == NAME) r->visible++;   /* local function f */
  open_block(r, true, false);
  r->visible++;                            /* perhaps self */
  r->declares = BEFORE_PARAMETERS;
}

static void word(reader *r, const char *text, size_t length) {
  static const char *const jumps[] = { "and", "or", "elseif", "break", "goto", NULL };
  static const char *const others[] = { "in", "not", "nil", "true", "false", "return", "then", NULL };
  bool known = true;
  if (is(text, length, "function")) { function_word(r); return; }
  if (is(text, length, "local")) { r->declares = NAME; return; }
  if (is(text, length, "for")) {
    open_block(r, false, true);
    r->declares = NAME;
    return;
  }
  if (is_one_of(text, length, jumps)) r->block[r->function].jumps++;
  else if (is(text, length, "end") || is(text, length, "until")) close_block(r);
  else if (is(text, length, "do")) do_word(r);
  else if (is(text, length, "while")) open_block(r, false, true);
  else if (is(text, length, "if") || is(text, length, "repeat")) open_block(r, false, false);
  else known = is(text, length, "else") || is_one_of(text, length, others);
  if (known) r->declares = NOWHERE;
  else name(r);
}

/* -- the rest ------------------------------------------------------------------------------------------------------------------------ */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Behind the "]]", "]=]" … that ends a text opened at r->at by "[[", "[=[" …; false when none is opened there. */
static bool skip_long(reader *r) {
  const char *at = r->at + 1;
  while (at < r->end && *at == '=') at++;
  size_t level = (size_t)(at - r->at);   /* of equal signs, and one bracket */
  if (at == r->end || *at != '[') return false;
  for (r->at = ++at; (at = memchr(r->at, ']', (size_t)(r->end - r->at))) != NULL; r->at = at) {
    const char *closing = ++at;
    while (at < r->end && *at == '=') at++;
    if ((size_t)(at - closing) == level - 1 && at < r->end && *at == ']') {
      r->at = at + 1;
      return true;
    }
  }
  r->at = r->end;
  return true;
}

static void skip_short(reader *r, char quote) {
  for (r->at++; r->at < r->end && *r->at != quote && *r->at != '\n'; r->at++)
    if (*r->at == '\\' && r->at + 1 < r->end) r->at++;
  if (r->at < r->end) r->at++;
}

static void skip_comment(reader *r) {
  r->at += 2;
  if (r->at < r->end && *r->at == '[' && skip_long(r)) return;
  const char *line_end = memchr(r->at, '\n', (size_t)(r->end - r->at));
  r->at = line_end ? line_end : r->end;
}

static void sign(reader *r, char c) {
  if (c == ':' && r->at + 1 < r->end && r->at[1] == ':') {
    r->block[r->function].jumps++;   /* a label has two of them */
    r->at++;
  }
  if (c == '(' && r->declares == BEFORE_PARAMETERS) r->declares = NAME;
  else if (c == ',' && r->declares == AFTER_NAME) r->declares = NAME;
  else if (c == '<' && r->declares == AFTER_NAME) r->declares = ATTRIBUTE;
  else if (c == '>' && r->declares == ATTRIBUTE) r->declares = AFTER_NAME;
  else if (r->declares != BEFORE_PARAMETERS) r->declares = NOWHERE;
  r->at++;
}

static void token(reader *r) {
  const char c = *r->at;
  if (c == '-' && r->at + 1 < r->end && r->at[1] == '-') skip_comment(r);
  else if (c == '"' || c == '\'') skip_short(r, c);
  else if (c == '[' && skip_long(r)) return;
  else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') r->at++;
  else if (is_letter(c) || is_digit(c)) {
    const char *start = r->at;
    while (r->at < r->end && (is_letter(*r->at) || is_digit(*r->at))) r->at++;
    if (is_letter(c)) word(r, start, (size_t)(r->at - start));
  } else sign(r, c);
}

uint64_t pp_parse_cost(const char *text, size_t size) {
  reader r = { .at = text, .end = text + size, .cost = size };
  open_block(&r, true, false);
  while (r.at < r.end) token(&r);
  for (int i = r.depth < DEPTH ? r.depth : DEPTH; i > 0; i--)
    if (r.block[i - 1].function) close_jumps(&r, &r.block[i - 1]);
  return r.cost;
}

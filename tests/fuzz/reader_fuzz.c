/* SPDX-License-Identifier: Apache-2.0 */
/*
** reader_fuzz.c: any bytes as one of the files that pipeplan reads, and all that follows from it: the command that reads it runs as typed,
** in this process, and must end with a status that is no bug of ours. PIPEPLAN_READER names the file (tests/fuzz/readers.lua lists them).
** For libFuzzer. What Lua executes is seen by it too: a hook counts pairs of successive lines in libFuzzer's extra counters. Bytes that
** change anywhere make files that end in front of what follows their reader, 98 of 100. So half of the inputs are made of one that was
** read: a number becomes another, a word another, a line goes or comes twice.
*/
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lua/stdlib.h"

enum { LINES = 1 << 16, RUNS_PER_STATE = 500, MOST_READ = 256, MOST_GARBAGE = 1 << 19 };   /* the last in KiB */

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[LINES];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static void require(int truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

/* Of the end of a file's name, whatever its address is. It is asked for at every line, so what was found for a source is kept: sources are
** where they are as long as their state, and one that takes another's place miscounts a line at most. */
static uint32_t name_of(const char *source, const char *name) {
  static struct { const char *source; uint32_t hash; } known[1 << 10];
  uintptr_t place = (uintptr_t)source >> 4;
  size_t slot = (place ^ place >> 10) % (sizeof known / sizeof *known);
  if (known[slot].source == source) return known[slot].hash;
  uint32_t hash = 2166136261u;
  for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
  known[slot].source = source;
  return known[slot].hash = hash;
}

/* The pair of this line and the one before. */
static void count_line(lua_State *L, lua_Debug *record) {
  static uint32_t last;
  lua_getinfo(L, "S", record);
  uint32_t line = (name_of(record->source, record->short_src) ^ (uint32_t)record->currentline) * 16777619u;
  uint8_t *counter = &counters[(line ^ last >> 1) % LINES];
  if (*counter < UINT8_MAX) ++*counter;
  last = line;
}

/* A state with stdlib, and the function of the reader on its stack: (path of the input) → exit status. */
static lua_State *new_state(void) {
  const char *reader = getenv("PIPEPLAN_READER"), *source = getenv("PIPEPLAN_SOURCE");
  char path[4096];
  lua_State *L = luaL_newstate();
  require(L && reader && source, "set PIPEPLAN_READER and PIPEPLAN_SOURCE (tests/fuzz/run does)");
  luaL_openlibs(L);
  pp_open_stdlib(L, NULL);
  snprintf(path, sizeof path, "%s/tests/fuzz/readers.lua", source);
  if (luaL_loadfile(L, path) != LUA_OK || lua_pcall(L, 0, 1, 0) != LUA_OK) require(0, lua_tostring(L, -1));
  if (lua_getfield(L, -1, reader) != LUA_TFUNCTION) require(0, "no reader of that name");
  lua_sethook(L, count_line, LUA_MASKLINE, 0);
  return L;
}

static int input = -1;

/* The last inputs that were read: their command ended with an answer. */
static struct {
  uint8_t *bytes;
  size_t size;
} was_read[MOST_READ];
static size_t reads;

static void keep(const uint8_t *data, size_t size) {
  size_t slot = reads++ % MOST_READ;
  free(was_read[slot].bytes);
  was_read[slot].bytes = malloc(size + 1);
  require(was_read[slot].bytes != NULL, "memory");
  memcpy(was_read[slot].bytes, data, size);
  was_read[slot].size = size;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  input = memfd_create("input", 0);
  int nowhere = open("/dev/null", O_WRONLY);
  require(input >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0, "files");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static lua_State *L;
  static int runs;
  char path[64];
  if (!L) L = new_state();
  require(ftruncate(input, 0) == 0 && pwrite(input, data, size, 0) == (ssize_t)size, "the input is written");
  snprintf(path, sizeof path, "/proc/self/fd/%d", input);
  lua_pushvalue(L, -1);
  lua_pushstring(L, path);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) require(0, lua_tostring(L, -1));
  lua_Integer status = lua_tointeger(L, -1);
  lua_pop(L, 1);
  require(status != 70, "exit status 70");
  if (status <= 1 && size > 0) keep(data, size);
  if (++runs % RUNS_PER_STATE == 0) {
    lua_close(L);
    L = NULL;
  } else if (lua_gc(L, LUA_GCCOUNT) > MOST_GARBAGE) {   /* a command lets its heap grow, for its process ends with it */
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);   /* what has a finalizer goes now */
    require(lua_gc(L, LUA_GCCOUNT) < MOST_GARBAGE / 2, "what an input took is given back");
  }
  return 0;
}

/* -- changes that keep the form of a text ---------------------------------------------------------------------------------------------- */

typedef struct {
  size_t from, to;
} span;

static unsigned draw(unsigned *seed, size_t n) {
  *seed = *seed * 1103515245u + 12345u;
  return (unsigned)((*seed >> 8) % n);
}

static bool in_word(uint8_t c) { return isalnum(c) || (c && strchr("_.+-%", c)); }

/* The word at or after a place, the first one if there is none; empty where there is none at all. */
static span word_at(const uint8_t *data, size_t size, size_t at) {
  span word = { at, at };
  while (word.from < size && !in_word(data[word.from])) word.from++;
  if (word.from == size) return at == 0 ? (span){ 0, 0 } : word_at(data, size, 0);
  while (word.from > 0 && in_word(data[word.from - 1])) word.from--;
  for (word.to = word.from; word.to < size && in_word(data[word.to]); word.to++) continue;
  return word;
}

static span line_at(const uint8_t *data, size_t size, size_t at) {
  span line = { at, at };
  while (line.from > 0 && data[line.from - 1] != '\n') line.from--;
  while (line.to < size && data[line.to] != '\n') line.to++;
  if (line.to < size) line.to++;
  return line;
}

/* Puts a text in place of a span. Returns the size, unchanged where there is no room. */
static size_t put(uint8_t *data, size_t size, size_t most, span place, const void *text, size_t length) {
  size_t rest = size - place.to;
  if (place.from + length + rest > most) return size;
  memmove(data + place.from + length, data + place.to, rest);
  memcpy(data + place.from, text, length);
  return place.from + length + rest;
}

static span number_at(const uint8_t *data, size_t size, size_t at) {
  for (size_t i = at; i < size; i++)
    if (isdigit(data[i]) && (i == 0 || !isalpha(data[i - 1]))) return word_at(data, size, i);
  return word_at(data, size, at);
}

/* A number beside another, or one that has broken readers. */
static size_t new_number(unsigned *seed, const uint8_t *old, size_t length, char *out, size_t most) {
  static const char *const values[] = { "0", "1", "-1", "2", "3", "5", "7", "16", "61", "255", "4096", "65536", "1000000", "2147483648",
    "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e308", "1e400", "-1e308", "1e-320", "0.5",
    "1.5", "-0.0", "1e-9", "1e15", "1e18", "null", "true", "[]", "{}", "\"\"", "nan", "inf", "1%", "80GiB", "1T" };
  char text[32] = "";
  memcpy(text, old, length < sizeof text ? length : sizeof text - 1);
  double value = strtod(text, NULL);
  switch (draw(seed, 7)) {
    case 0: return (size_t)snprintf(out, most, "%.17g", value * 2);
    case 1: return (size_t)snprintf(out, most, "%.17g", value / 2);
    case 2: return (size_t)snprintf(out, most, "%.17g", value + 1);
    case 3: return (size_t)snprintf(out, most, "%.17g", value - 1);
    case 4: return (size_t)snprintf(out, most, "%.17g", value * 1000);
    default: return (size_t)snprintf(out, most, "%s", values[draw(seed, sizeof values / sizeof *values)]);
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  if (size == 0 || draw(&seed, 3) == 0) return LLVMFuzzerMutate(data, size, most);
  if (reads > 0 && draw(&seed, 4) > 0) {
    size_t slot = draw(&seed, reads < MOST_READ ? reads : MOST_READ);
    if (was_read[slot].size <= most) memcpy(data, was_read[slot].bytes, size = was_read[slot].size);
  }
  uint8_t text[256];
  size_t place = draw(&seed, size), other = draw(&seed, size);
  unsigned way = draw(&seed, 8);
  if (way < 4) {
    span number = number_at(data, size, place);
    size_t length = new_number(&seed, data + number.from, number.to - number.from, (char *)text, sizeof text);
    return put(data, size, most, number, text, length);
  }
  span old = way < 6 ? line_at(data, size, place) : word_at(data, size, place);
  if (way == 4) return old.to - old.from < size ? put(data, size, most, old, "", 0) : size;
  span copied = way == 6 ? word_at(data, size, other) : old;
  size_t length = copied.to - copied.from;
  if (length > sizeof text / 2) return size;
  memcpy(text, data + copied.from, length);
  if (way == 5) return put(data, size, most, (span){ old.to, old.to }, text, length);
  if (way == 7) length = LLVMFuzzerMutate(text, length, sizeof text);
  return put(data, size, most, old, text, length);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** reader_fuzz.c: any bytes as one of the files that pipeplan reads, and all that follows from it: the command that reads it runs as typed, in
** this process, and must end with a status that is no bug of ours. PIPEPLAN_READER names the file (tests/fuzz/readers.lua lists them).
** For libFuzzer. What Lua executes is seen by it too: a hook counts pairs of successive lines in libFuzzer's extra counters.
*/
#define _GNU_SOURCE
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lua/stdlib.h"

enum { LINES = 1 << 16, RUNS_PER_STATE = 500 };

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[LINES];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
  if (++runs % RUNS_PER_STATE == 0) {
    lua_close(L);
    L = NULL;
  }
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** embed.c: a program of the build, not of the product: writes embedded.c, which holds the Lua that ships.
** usage: embed OUTPUT SOURCE_DIR FILE…; FILEs are paths under SOURCE_DIR, or NAME=PATH, in ascending order.
**        embed --build OUTPUT SOURCE_DIR FILE…: only their digest, which tells one build's answers from another's.
**
** Trusted Lua is held compiled as well as in text: undumping it costs an eighth of compiling it (1.7 against 12.6 ms for all of stdlib),
** which is half of what a plan takes, and less without names of variables (embed_names.h). Bytecode is only loaded by the Lua release that wrote
** it; lua_ident says which. Policies keep their names: people read what goes wrong in one.
*/
#include "embed_names.h"

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *file) {
  fprintf(stderr, "embed: %s %s\n", what, file);
  exit(EXIT_FAILURE);
}

#define FNV_OFFSET 0xcbf29ce484222325u   /* as core/digest.h: FNV-1a, 64 bits */
#define FNV_PRIME 0x100000001b3u

static uint64_t library = FNV_OFFSET, catalogue = FNV_OFFSET;   /* of all files, and of the catalogue's */

static void digest(uint64_t *sum, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) *sum = (*sum ^ (unsigned char)bytes[i]) * FNV_PRIME;
}

/* As text of C, eighty a line: a compiler reads that twenty times as fast as a list of numbers. */
static void write_bytes(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    const unsigned char byte = (unsigned char)bytes[i];
    if (byte < ' ' || byte > '~' || strchr("\"\\?", byte)) printf("\\%03o", byte);   /* ?: two of them may begin a trigraph */
    else putchar(byte);
    if (i % 80 == 79) fputs("\"\n\"", stdout);
  }
}

/* lua_Writer: data is a luaL_Buffer. */
static int add_bytes(lua_State *L, const void *bytes, size_t size, void *data) {
  (void)L;
  luaL_addlstring(data, bytes, size);
  return 0;
}

/* Of the function on top: with line numbers, for a bug's traceback needs them. */
static void write_code(lua_State *L, bool named) {
  luaL_Buffer dump;
  lua_State *other = luaL_newstate();   /* so that the buffer has a stack of its own */
  size_t size;
  if (!other) die("no memory", "");
  luaL_buffinit(other, &dump);
  lua_dump(L, add_bytes, &dump, 0);
  luaL_pushresult(&dump);
  const char *whole = lua_tolstring(other, -1, &size);
  char *code = malloc(size);
  if (!code) die("no memory", "");
  memcpy(code, whole, size);
  const size_t left = named ? 0 : pp_leave_out_names(code, size);
  write_bytes(left > 0 ? code : whole, left > 0 ? left : size);
  free(code);
  lua_close(other);
}

/* Pushes the file's text. */
static void push_text(lua_State *L, const char *path) {
  luaL_Buffer text;
  FILE *file = fopen(path, "rb");
  if (!file) die("cannot read", path);
  luaL_buffinit(L, &text);
  for (size_t got; (got = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, file)) > 0; ) luaL_addsize(&text, got);
  fclose(file);
  luaL_pushresult(&text);
}

/* One file's text and bytecode. Cuts "=PATH" off the argument: what is left is its name. */
static void write_file(lua_State *L, const char *directory, char *name, int number) {
  char *path = strchr(name, '=');
  size_t size;
  if (path) *path++ = '\0';
  push_text(L, path ? path : lua_pushfstring(L, "%s/%s", directory, name));
  const char *text = lua_tolstring(L, -1, &size);
  digest(&library, name, strlen(name) + 1);
  digest(&library, text, size);
  if (strncmp(name, "stdlib/catalog/", 15) == 0) digest(&catalogue, text, size);
  printf("static const char text_%d[] =\n\"", number);
  write_bytes(text, size);
  printf("\";\nstatic const char code_%d[] =\n\"", number);
  if (luaL_loadbufferx(L, text, size, lua_pushfstring(L, "@%s", name), "t") != LUA_OK) die("cannot compile", lua_tostring(L, -1));
  write_code(L, strncmp(name, "policies/", 9) == 0);
  printf("\";\n");
  lua_settop(L, 0);
}

/* Of names and texts, Lua and C, in the order given. */
static void write_build(lua_State *L, int count, char **arguments) {
  uint64_t build = FNV_OFFSET;
  if (!freopen(arguments[0], "wb", stdout)) die("cannot write", arguments[0]);
  for (int i = 2; i < count; i++) {
    size_t size;
    push_text(L, lua_pushfstring(L, "%s/%s", arguments[1], arguments[i]));
    const char *text = lua_tolstring(L, -1, &size);
    digest(&build, arguments[i], strlen(arguments[i]) + 1);
    digest(&build, text, size);
    lua_settop(L, 0);
  }
  printf("#include \"host/embedded.h\"\nconst char pp_embedded_build[] = \"%016llx\";\n", (unsigned long long)build);
}

static void write_embedded(lua_State *L, int argc, char **argv) {
  if (!freopen(argv[1], "wb", stdout)) die("cannot write", argv[1]);
  puts("#include \"host/embedded.h\"");
  for (int i = 3; i < argc; i++) write_file(L, argv[2], argv[i], i);
  puts("const pp_embedded pp_embedded_files[] = {");
  for (int i = 3; i < argc; i++)
    printf("  { \"%s\", text_%d, sizeof text_%d - 1, code_%d, sizeof code_%d - 1 },\n", argv[i], i, i, i, i);
  printf("};\nconst size_t pp_embedded_count = %d;\nconst char pp_embedded_lua[] = \"%s\";\n", argc - 3, lua_ident);
  printf("const char pp_embedded_library[] = \"%016llx\", pp_embedded_catalogue[] = \"%016llx\";\n", (unsigned long long)library,
         (unsigned long long)catalogue);
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (!L || argc < 3) die("usage:", "embed OUTPUT SOURCE_DIR FILE…");
  if (argc > 4 && strcmp(argv[1], "--build") == 0) write_build(L, argc - 2, argv + 2);
  else write_embedded(L, argc, argv);
  lua_close(L);
  if (fflush(stdout) != 0 || ferror(stdout)) die("cannot write what was asked for:", argv[1]);
  return EXIT_SUCCESS;
}

/*
** workers.c: work in child processes. A child leaves its text in an unnamed temporary file that it shares with its parent, so that nobody has
** to read while others write.
*/
#define _POSIX_C_SOURCE 200809L

#include "host/workers.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const char crew_type[] = "pipeplan.workers";

enum { CHILD_FAILED = 70 };

/* A userdata, so that a Lua error closes the files and waits for the children. */
typedef struct {
  int count;
  pid_t process[PP_MAX_WORKERS];  /* 0: not running */
  FILE *text[PP_MAX_WORKERS];
} crew;

/* Waits for a child to end. Did it end well? */
static bool end_of(pid_t *process) {
  int status = 0;
  pid_t ended;
  do ended = waitpid(*process, &status, 0);
  while (ended < 0 && errno == EINTR);
  *process = 0;
  return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int crew_gc(lua_State *L) {
  crew *self = luaL_checkudata(L, 1, crew_type);
  for (int i = 0; i < self->count; i++) {
    if (self->process[i] > 0) end_of(&self->process[i]);
    if (self->text[i]) fclose(self->text[i]);
    self->text[i] = NULL;
  }
  return 0;
}

static crew *push_crew(lua_State *L, int count) {
  crew *self = lua_newuserdatauv(L, sizeof *self, 0);
  memset(self, 0, sizeof *self);
  self->count = count;
  if (luaL_newmetatable(L, crew_type)) {
    lua_pushcfunction(L, crew_gc);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return self;
}

/* In the child: calls the function at index 2, writes what it returns, and ends. No stream and no state of the parent is closed here. */
static _Noreturn void work(lua_State *L, int number, FILE *out) {
  size_t size = 0;
  const char *text = NULL;
  lua_pushvalue(L, 2);
  lua_pushinteger(L, number);
  bool good = lua_pcall(L, 1, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING;
  text = lua_tolstring(L, -1, &size);
  if (!good) fprintf(stderr, "pipeplan: %s\n", text ? text : "a worker returned no text");
  else good = fwrite(text, 1, size, out) == size && fflush(out) == 0;
  _exit(good ? 0 : CHILD_FAILED);
}

static void push_text(lua_State *L, FILE *file) {
  luaL_Buffer buffer;
  size_t size;
  luaL_buffinit(L, &buffer);
  rewind(file);
  do {
    size = fread(luaL_prepbuffer(&buffer), 1, LUAL_BUFFERSIZE, file);
    luaL_addsize(&buffer, size);
  } while (size > 0);
  luaL_pushresult(&buffer);
}

int pp_workers(lua_State *L) {
  lua_Integer count = luaL_checkinteger(L, 1);
  luaL_argcheck(L, count >= 1 && count <= PP_MAX_WORKERS, 1, "from 1 to 256 workers are possible");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  crew *self = push_crew(L, (int)count);
  bool good = true;
  fflush(NULL);  /* or the children would print it again */
  for (int i = 0; i < self->count; i++) {
    self->text[i] = tmpfile();
    if (!self->text[i]) return luaL_error(L, "no temporary file for a worker: %s", strerror(errno));
    self->process[i] = fork();
    if (self->process[i] == 0) work(L, i + 1, self->text[i]);
    if (self->process[i] < 0) return luaL_error(L, "no process for a worker: %s", strerror(errno));
  }
  for (int i = 0; i < self->count; i++)
    if (!end_of(&self->process[i])) good = false;
  if (!good) return luaL_error(L, "a worker process failed");
  lua_createtable(L, self->count, 0);
  for (int i = 0; i < self->count; i++) {
    push_text(L, self->text[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

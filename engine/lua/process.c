/* SPDX-License-Identifier: Apache-2.0 */
/*
** process.c: engine.process: files that are written whole, worker processes, and the standard streams. For stdlib only: no policy has it.
** May longjmp.
**
** engine.process.output(path [, kept]) → file | nil, why        kept: in place, after that many bytes (host/output_file.h)
** file:write(text), file:flush(), file:finish() → true | nil, why; then it is discarded
** file:discard()            as when it is collected; nothing after finish
** engine.process.crew(count, function(text) → text [, true]) → crew   of 1 to 256 workers, none of them started; true: that was the last
**                           text of this worker, which ends
** crew:start(worker) → true | nil, why                          its worker is a copy of this process as it is now
** crew:ask(worker, text) → is it there to answer?
** crew:wait(input, output) → the worker whose answer (or end) can be taken, or "input": standard input can be read, or "gone": nobody reads
**                           standard output any more (that ends this process, as writing there would, unless SIGPIPE is ignored)
** crew:answer(worker) → text, last: it has ended after that, said | nil, "status" or "signal", number, words, said: it ended without one;
**                           said: what the worker has printed since the last answer, the end of it where it is long, or nil
** crew:close()              ends all workers; so does the end of a <close> variable
** engine.process.read() → what standard input has ("": nothing yet, though it seemed so) | nil: it ended | nil, why
** engine.process.input_size() → bytes that standard input still has, or nil: nobody can know
** engine.process.same_file(path, path) → are they names of one file?
** engine.process.append(path, text, sync) → true | nil, why      a line at the end of a file (host/append_file.h)
** engine.process.user() → the name of this process's user, or its number where it has none
** engine.process.aside() → kept | nil, why                     until back, what is written to standard output goes to standard error, whoever
**                           writes it, children too
** engine.process.back(kept)
** engine.process.make_directory(path) → true | nil, why; one that is there already is as good
*/
#define _POSIX_C_SOURCE 200809L
#include "lua/process.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/append_file.h"
#include "host/output_file.h"
#include "host/workers.h"

#define OUTPUT "pipeplan.output"
#define CREW "pipeplan.crew"

enum { WORKER_FAILED = 70, READ_SIZE = 64 * 1024, SAID_SIZE = 1000 };

static int push_why(lua_State *L, const char *why) {
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* --- files --- */

static int push_done(lua_State *L, pp_status status, const pp_error *error) {
  if (status != PP_OK) return push_why(L, error->message);
  lua_pushboolean(L, 1);
  return 1;
}

static int process_output(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  lua_Integer kept = luaL_optinteger(L, 2, -1);
  pp_output_file *file = lua_newuserdatauv(L, sizeof *file, 0);
  pp_error error;
  memset(file, 0, sizeof *file);
  luaL_setmetatable(L, OUTPUT);
  if ((kept < 0 ? pp_output_open(file, path, &error) : pp_output_continue(file, path, kept, &error)) == PP_OK) return 1;
  return push_why(L, error.message);
}

static pp_output_file *check_output(lua_State *L) {
  pp_output_file *file = luaL_checkudata(L, 1, OUTPUT);
  if (!file->stream) luaL_error(L, "engine.process.output: this file is closed");
  return file;
}

static int output_write(lua_State *L) {
  pp_output_file *file = check_output(L);
  size_t size;
  const char *text = luaL_checklstring(L, 2, &size);
  pp_error error;
  return push_done(L, pp_output_write(file, text, size, &error), &error);
}

static int output_flush(lua_State *L) {
  pp_error error;
  return push_done(L, pp_output_flush(check_output(L), &error), &error);
}

static int output_finish(lua_State *L) {
  pp_error error;
  return push_done(L, pp_output_finish(check_output(L), &error), &error);
}

static int output_discard(lua_State *L) {
  pp_output_discard(luaL_checkudata(L, 1, OUTPUT));
  return 0;
}

static const luaL_Reg output_methods[] = {
  { "discard", output_discard },
  { "finish",  output_finish },
  { "flush",   output_flush },
  { "write",   output_write },
  { NULL, NULL }
};

static int process_append(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  size_t size;
  const char *text = luaL_checklstring(L, 2, &size);
  pp_error error;
  return push_done(L, pp_append(path, text, size, lua_toboolean(L, 3), &error), &error);
}

static int process_user(lua_State *L) {
  const struct passwd *user = getpwuid(getuid());
  if (user) lua_pushstring(L, user->pw_name);
  else lua_pushfstring(L, "%I", (lua_Integer)getuid());
  return 1;
}

/* --- workers: user value 1 of a crew is the function --- */

static pp_crew *check_worker(lua_State *L, int *worker) {
  pp_crew *crew = luaL_checkudata(L, 1, CREW);
  lua_Integer number = luaL_checkinteger(L, 2);
  luaL_argcheck(L, number >= 1 && number <= crew->count, 2, "no such worker");
  *worker = (int)number - 1;
  return crew;
}

static int process_crew(lua_State *L) {
  lua_Integer count = luaL_checkinteger(L, 1);
  pp_crew *crew;
  luaL_argcheck(L, count >= 1 && count <= PP_MAX_WORKERS, 1, "from 1 to 256 workers are possible");
  luaL_checktype(L, 2, LUA_TFUNCTION);
  crew = lua_newuserdatauv(L, sizeof *crew, 1);
  memset(crew, 0, sizeof *crew);
  crew->count = (int)count;
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, CREW);
  return 1;
}

/* A message is this and its text. */
typedef struct {
  uint64_t size;
  uint64_t last;  /* 1: the sender ends after it */
} head;

static bool send_text(lua_State *L, int index, bool last, int channel) {
  size_t size;
  const char *text = lua_tolstring(L, index, &size);
  head sent = { .size = size, .last = last };
  return pp_channel_send(channel, &sent, sizeof sent) && pp_channel_send(channel, text, size);
}

/* Pushes the text, or nothing when the other end is gone. */
static bool receive_text(lua_State *L, bool *last, int channel) {
  head received;
  luaL_Buffer buffer;
  if (!pp_channel_receive(channel, &received, sizeof received)) return false;
  if (!pp_channel_receive(channel, luaL_buffinitsize(L, &buffer, (size_t)received.size), (size_t)received.size)) return false;
  luaL_pushresultsize(&buffer, (size_t)received.size);
  *last = received.last == 1;
  return true;
}

/* Runs protected in a worker: (channel, function). Returns when there is nobody to work for any more. */
static int answer_all(lua_State *L) {
  int channel = (int)lua_tointeger(L, 1);
  bool last = false;
  while (!last) {
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (!receive_text(L, &last, channel)) break;
    lua_call(L, 1, 2);
    if (lua_type(L, 3) != LUA_TSTRING) return luaL_error(L, "a worker returned no text");
    last = lua_toboolean(L, 4);
    if (!send_text(L, 3, last, channel)) break;
  }
  return 0;
}

static int as_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

/* Nothing of the parent's is closed or flushed on the way out. */
static _Noreturn void work(lua_State *L, int channel) {
  lua_settop(L, 1);
  lua_pushcfunction(L, as_text);
  lua_pushcfunction(L, answer_all);
  lua_pushinteger(L, channel);
  lua_getiuservalue(L, 1, 1);
  if (lua_pcall(L, 2, 0, 2) == LUA_OK) _exit(0);
  fprintf(stderr, "pipeplan: %s\n", lua_tostring(L, -1));
  _exit(WORKER_FAILED);
}

static int crew_start(lua_State *L) {
  int worker, channel = -1, started;
  pp_crew *crew = check_worker(L, &worker);
  luaL_argcheck(L, crew->process[worker] == 0, 2, "it runs");
  fflush(NULL);  /* or the worker would print it again */
  started = pp_crew_start(crew, worker, &channel);
  if (started == 0) work(L, channel);
  if (started < 0) return push_why(L, strerror(errno));
  lua_pushboolean(L, 1);
  return 1;
}

static int crew_ask(lua_State *L) {
  int worker;
  pp_crew *crew = check_worker(L, &worker);
  luaL_checkstring(L, 3);
  lua_pushboolean(L, crew->process[worker] > 0 && send_text(L, 3, false, crew->channel[worker]));
  return 1;
}

static int crew_wait(lua_State *L) {
  pp_crew *crew = luaL_checkudata(L, 1, CREW);
  int event = pp_crew_wait(crew, lua_toboolean(L, 2) ? STDIN_FILENO : -1, lua_toboolean(L, 3) ? STDOUT_FILENO : -1);
  switch (event) {
    case PP_INPUT: lua_pushliteral(L, "input"); break;
    case PP_OUTPUT_GONE: raise(SIGPIPE); lua_pushliteral(L, "gone"); break;
    case PP_CANNOT_WAIT: return luaL_error(L, "engine.process.crew: cannot wait: %s", strerror(errno));
    default: lua_pushinteger(L, event + 1);
  }
  return 1;
}

static void push_said(lua_State *L, const pp_crew *crew, int worker) {
  char said[SAID_SIZE];
  size_t size = pp_crew_words(crew, worker, said, sizeof said);
  if (size > 0) lua_pushlstring(L, said, size);
  else lua_pushnil(L);
}

static int crew_answer(lua_State *L) {
  int worker, status;
  bool last;
  pp_crew *crew = check_worker(L, &worker);
  luaL_argcheck(L, crew->process[worker] > 0, 2, "it does not run");
  if (receive_text(L, &last, crew->channel[worker])) {
    if (last) pp_crew_end(crew, worker);
    lua_pushboolean(L, last);
    push_said(L, crew, worker);
    if (last) pp_crew_hush(crew, worker);
    return 3;
  }
  status = pp_crew_end(crew, worker);
  lua_pushnil(L);
  lua_pushstring(L, WIFSIGNALED(status) ? "signal" : "status");
  lua_pushinteger(L, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  lua_pushstring(L, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
  push_said(L, crew, worker);
  pp_crew_hush(crew, worker);
  return 5;
}

static int crew_close(lua_State *L) {
  pp_crew *crew = luaL_checkudata(L, 1, CREW);
  for (int i = 0; i < crew->count; i++)
    if (crew->process[i] > 0) pp_crew_kill(crew, i);
  return 0;
}

static const luaL_Reg crew_methods[] = {
  { "answer", crew_answer },
  { "ask",    crew_ask },
  { "close",  crew_close },
  { "start",  crew_start },
  { "wait",   crew_wait },
  { NULL, NULL }
};

/* --- standard input, and names of files --- */

static int process_read(lua_State *L) {
  luaL_Buffer buffer;
  char *room = luaL_buffinitsize(L, &buffer, READ_SIZE);
  ssize_t size;
  do size = read(STDIN_FILENO, room, READ_SIZE);
  while (size < 0 && errno == EINTR);
  if (size < 0 && errno != EAGAIN) return push_why(L, strerror(errno));
  luaL_pushresultsize(&buffer, size > 0 ? (size_t)size : 0);
  if (size == 0) lua_pushnil(L);
  return 1;
}

static int process_input_size(lua_State *L) {
  struct stat file;
  off_t here = lseek(STDIN_FILENO, 0, SEEK_CUR);
  if (here < 0 || fstat(STDIN_FILENO, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size <= here) return 0;
  lua_pushinteger(L, (lua_Integer)(file.st_size - here));
  return 1;
}

static int process_aside(lua_State *L) {
  fflush(stdout);
  /* A standard error that is closed takes nothing (host/streams.h), and what is not written would stay in the buffer. */
  bool writable = (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY;
  int to = writable ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : open("/dev/null", O_WRONLY | O_CLOEXEC);
  int kept = to < 0 ? -1 : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  bool done = kept >= 0 && dup2(to, STDOUT_FILENO) >= 0;
  const char *why = done ? NULL : strerror(errno);
  if (to >= 0) close(to);
  if (done) return lua_pushinteger(L, kept), 1;
  if (kept >= 0) close(kept);
  return push_why(L, why);
}

static int process_back(lua_State *L) {
  int kept = (int)luaL_checkinteger(L, 1);
  fflush(stdout);
  clearerr(stdout); /* of standard error: what comes now is another file's */
  dup2(kept, STDOUT_FILENO);
  close(kept);
  return 0;
}

static int process_make_directory(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  struct stat there;
  if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &there) == 0 && S_ISDIR(there.st_mode))) return lua_pushboolean(L, 1), 1;
  lua_pushnil(L);
  lua_pushstring(L, strerror(errno));
  return 2;
}

static int process_same_file(lua_State *L) {
  struct stat one, other;
  lua_pushboolean(L, stat(luaL_checkstring(L, 1), &one) == 0 && stat(luaL_checkstring(L, 2), &other) == 0 && one.st_dev == other.st_dev
                     && one.st_ino == other.st_ino);
  return 1;
}

static const luaL_Reg process_functions[] = {
  { "append",     process_append },
  { "aside",      process_aside },
  { "back",       process_back },
  { "crew",       process_crew },
  { "input_size", process_input_size },
  { "output",     process_output },
  { "make_directory", process_make_directory },
  { "read",       process_read },
  { "same_file",  process_same_file },
  { "user",       process_user },
  { NULL, NULL }
};

static void new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction finish) {
  if (luaL_newmetatable(L, name)) {
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, finish);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, finish);
    lua_setfield(L, -2, "__close");
  }
  lua_pop(L, 1);
}

int pp_open_process(lua_State *L) {
  new_type(L, OUTPUT, output_methods, output_discard);
  new_type(L, CREW, crew_methods, crew_close);
  luaL_newlib(L, process_functions);
  return 1;
}

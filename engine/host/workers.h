/* SPDX-License-Identifier: Apache-2.0 */
/*
** workers.h: processes that work for this one. Each is a copy of it, made when it is started, and has a channel to it for messages. A worker
** ends when its channel does, and on Linux when its parent does. What it prints on either stream is for its parent, who may never look: of
** what nobody has read only so much is kept as a pipe holds, and printing never waits.
*/
#ifndef PP_WORKERS_H
#define PP_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PP_MAX_WORKERS = 256 };

typedef struct {
  int count;
  pid_t process[PP_MAX_WORKERS]; /* 0: not running */
  int channel[PP_MAX_WORKERS];
  int words[PP_MAX_WORKERS];     /* what the worker prints can be read here */
} pp_crew;

/* 1 in the parent, 0 in the new worker, whose channel is *channel; -1 and errno when there is no process for it. Flush streams before. */
int pp_crew_start(pp_crew *crew, int worker, int *channel);

/* Waits for a worker whose channel has ended, or ends it. Returns its status, as waitpid gives it. Its words can still be read: hush it then. */
int pp_crew_end(pp_crew *crew, int worker);
void pp_crew_hush(pp_crew *crew, int worker);
void pp_crew_kill(pp_crew *crew, int worker);

/* What the worker has printed since the last time, its end if that is longer than `size`. Returns the length. */
size_t pp_crew_words(const pp_crew *crew, int worker, char *out, size_t size);

/*
** Waits until a worker's channel can be read (or has ended), or `input` can, or the reader of `output` is gone; -1: not waited for.
** Returns the worker, or one of these.
*/
enum { PP_INPUT = -1, PP_OUTPUT_GONE = -2, PP_CANNOT_WAIT = -3 /* errno says why */ };
int pp_crew_wait(const pp_crew *crew, int input, int output);

/* All of it, or false: the other end is gone. */
bool pp_channel_send(int channel, const void *data, size_t size);
bool pp_channel_receive(int channel, void *data, size_t size);

#endif

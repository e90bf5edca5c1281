/* SPDX-License-Identifier: Apache-2.0 */
/*
** workers.c: see workers.h. No Lua here; what a worker does is the business of whoever starts it.
*/
#define _XOPEN_SOURCE 700
#include "host/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "host/leftovers.h"

_Static_assert((int)PP_MAX_WORKERS <= (int)PP_MAX_CHILDREN, "every worker is one of the children that a signal ends");

/*
** In the child. The other channels are closed, or their workers would never see them end. Nothing but the parent reads its input or writes its
** results: what a worker prints is a message. An interrupt is for the parent, which ends its workers.
*/
static void become_worker(const pp_crew *crew, pid_t parent, int words) {
  int nothing = open("/dev/null", O_RDONLY);
  pp_leftovers_forget();
  for (int i = 0; i < crew->count; i++)
    if (crew->process[i] > 0) {
      close(crew->channel[i]);
      close(crew->words[i]);
    }
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  dup2(words, STDERR_FILENO);
  dup2(words, STDOUT_FILENO);
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(0);  /* it ended before we asked to be told */
}

/* A channel and a pipe that neither end waits for; −1 and errno. */
static int open_ends(int ends[2], int words[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  if (pipe(words) != 0) {
    int number = errno;
    close(ends[0]);
    close(ends[1]);
    errno = number;
    return -1;
  }
  for (int i = 0; i < 2; i++) {
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    fcntl(words[i], F_SETFD, FD_CLOEXEC);
    fcntl(words[i], F_SETFL, O_NONBLOCK);
  }
  return 0;
}

int pp_crew_start(pp_crew *crew, int worker, int *channel) {
  int ends[2], words[2];
  sigset_t before;
  pid_t parent = getpid(), process;
  if (open_ends(ends, words) != 0) return -1;
  pp_leftovers_hold(&before);
  process = fork();
  if (process > 0) pp_leftovers_child(process);
  if (process == 0) become_worker(crew, parent, words[1]);
  pp_leftovers_release(&before);
  if (process == 0) {
    close(ends[0]);
    close(words[0]);
    close(words[1]);
    *channel = ends[1];
    return 0;
  }
  close(ends[1]);
  close(words[1]);
  if (process < 0) {
    int number = errno;
    close(ends[0]);
    close(words[0]);
    errno = number;
    return -1;
  }
  crew->process[worker] = process;
  crew->channel[worker] = ends[0];
  crew->words[worker] = words[0];
  return 1;
}

/* It is waited for before it is taken from the list, but only then gone: until then its number is no other process's, and a signal may end it. */
int pp_crew_end(pp_crew *crew, int worker) {
  int status = 0;
  sigset_t before;
  siginfo_t ended;
  close(crew->channel[worker]);
  while (waitid(P_PID, (id_t)crew->process[worker], &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  pp_leftovers_hold(&before);
  waitpid(crew->process[worker], &status, 0);
  pp_leftovers_ended(crew->process[worker]);
  pp_leftovers_release(&before);
  crew->process[worker] = 0;
  return status;
}

void pp_crew_hush(pp_crew *crew, int worker) {
  close(crew->words[worker]);
}

size_t pp_crew_words(const pp_crew *crew, int worker, char *out, size_t size) {
  char block[4096];
  size_t length = 0;
  for (;;) {
    ssize_t got = read(crew->words[worker], block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return length;
    const size_t new = (size_t)got < size ? (size_t)got : size;          /* of this block */
    const size_t old = length + new <= size ? length : size - new;       /* of what was read before */
    memmove(out, out + length - old, old);
    memcpy(out + old, block + (size_t)got - new, new);
    length = old + new;
  }
}

void pp_crew_kill(pp_crew *crew, int worker) {
  kill(crew->process[worker], SIGKILL);
  pp_crew_end(crew, worker);
  pp_crew_hush(crew, worker);
}

/* Only what is waited for is in the list: poll takes no list that is longer than the files this process may open. */
int pp_crew_wait(const pp_crew *crew, int input, int output) {
  struct pollfd list[PP_MAX_WORKERS + 2];
  int what[PP_MAX_WORKERS + 2];
  nfds_t count = 0;
  if (output >= 0) {  /* an error is told unasked */
    list[count] = (struct pollfd){ .fd = output };
    what[count++] = PP_OUTPUT_GONE;
  }
  for (int i = 0; i < crew->count; i++)
    if (crew->process[i] > 0) {
      list[count] = (struct pollfd){ .fd = crew->channel[i], .events = POLLIN };
      what[count++] = i;
    }
  if (input >= 0) {
    list[count] = (struct pollfd){ .fd = input, .events = POLLIN };
    what[count++] = PP_INPUT;
  }
  for (;;) {
    if (poll(list, count, -1) < 0 && errno != EINTR) return PP_CANNOT_WAIT;
    for (nfds_t i = 0; i < count; i++)
      if (what[i] == PP_OUTPUT_GONE ? list[i].revents & (POLLERR | POLLHUP) : list[i].revents) return what[i];
  }
}

bool pp_channel_send(int channel, const void *data, size_t size) {
  const char *next = data;
  while (size > 0) {
    ssize_t sent = send(channel, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    size -= (size_t)sent;
  }
  return true;
}

bool pp_channel_receive(int channel, void *data, size_t size) {
  char *next = data;
  while (size > 0) {
    ssize_t received = recv(channel, next, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    next += received;
    size -= (size_t)received;
  }
  return true;
}

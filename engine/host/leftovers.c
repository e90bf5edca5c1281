/* SPDX-License-Identifier: Apache-2.0 */
/*
** leftovers.c: see leftovers.h. A handler knows nothing but what is static, and calls only what is safe in one: unlink, kill, waitpid, raise.
*/
#define _XOPEN_SOURCE 700
#include "host/leftovers.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All that end a process by default and can be handled. */
static const int fatal[] = {
  SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGPIPE, SIGPROF, SIGQUIT,
  SIGSEGV, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
enum { FATAL = sizeof fatal / sizeof *fatal };

static char temporary[PATH_MAX];        /* "": none */
static pid_t children[PP_MAX_CHILDREN]; /* 0: none */
static bool handled;

/* The action is the default one again (SA_RESETHAND): the signal that is raised ends the process as if nobody had handled it. */
static void leave_nothing(int signal) {
  if (temporary[0] != '\0') unlink(temporary);
  for (int i = 0; i < PP_MAX_CHILDREN; i++)
    if (children[i] > 0) kill(children[i], SIGKILL);
  for (int i = 0; i < PP_MAX_CHILDREN; i++)
    if (children[i] > 0) waitpid(children[i], NULL, 0);
  raise(signal);
}

/* Signals that are ignored or handled by somebody else stay so. */
static void handle_signals(void) {
  struct sigaction action, present;
  if (handled) return;
  handled = true;
  memset(&action, 0, sizeof action);
  action.sa_handler = leave_nothing;
  action.sa_flags = (int)SA_RESETHAND;
  sigfillset(&action.sa_mask);
  for (int i = 0; i < FATAL; i++)
    if (sigaction(fatal[i], NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_DFL)
      sigaction(fatal[i], &action, NULL);
}

void pp_leftovers_hold(sigset_t *before) {
  sigset_t held;
  sigemptyset(&held);
  for (int i = 0; i < FATAL; i++) sigaddset(&held, fatal[i]);
  sigprocmask(SIG_BLOCK, &held, before);
}

void pp_leftovers_release(const sigset_t *before) {
  sigprocmask(SIG_SETMASK, before, NULL);
}

void pp_leftovers_file(const char *path) {
  size_t length = path ? strlen(path) : 0;
  handle_signals();
  if (length >= sizeof temporary) length = 0;
  if (length > 0) memcpy(temporary, path, length);
  temporary[length] = '\0';
}

static void replace_child(pid_t from, pid_t to) {
  for (int i = 0; i < PP_MAX_CHILDREN; i++)
    if (children[i] == from) {
      children[i] = to;
      return;
    }
}

void pp_leftovers_child(pid_t process) {
  handle_signals();
  replace_child(0, process);
}

void pp_leftovers_ended(pid_t process) {
  replace_child(process, 0);
}

void pp_leftovers_forget(void) {
  temporary[0] = '\0';
  memset(children, 0, sizeof children);
}

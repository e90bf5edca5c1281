/* SPDX-License-Identifier: Apache-2.0 */
/*
** last_resort.c: a timer of processor time that looks, each second, whether a policy runs. See last_resort.h.
** Time is sampled so that entering and leaving, which a plan does thousands of times, costs no look at a clock.
*/
#define _GNU_SOURCE   /* SA_RESTART and setitimer under a strict standard */
#include "host/last_resort.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/text.h"

enum { STATUS_OVER_BUDGET = 4, UNITS_PER_SECOND = 2000000 };

#define SLACK ((rlim_t)1 << 30)

/* Of the process: timers and limits are its own. */
static bool enabled;
static const char *volatile running;     /* what does, or NULL */
static volatile sig_atomic_t seconds, allowed;
static struct rlimit usual, narrow;      /* of the address space, outside and inside a policy */

static void put(const char *text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return;   /* nothing is left to be done about it */
}

/* Runs inside whatever the policy does: only calls what POSIX lets a signal handler call, and core/text.h. */
static void second_passed(int signal) {
  (void)signal;
  if (!running || ++seconds <= allowed) return;
  char shown[512];
  pp_text_visible(running, strlen(running), shown, sizeof shown);
  put("pipeplan: ");
  put(shown);
  put(": over budget: out of processor time, long after its units of work should have run out\n");
  _exit(STATUS_OVER_BUDGET);
}

void pp_last_resort_enable(void) {
  struct sigaction action = { .sa_handler = second_passed, .sa_flags = SA_RESTART };
  sigemptyset(&action.sa_mask);
  enabled = sigaction(SIGPROF, &action, NULL) == 0 && getrlimit(RLIMIT_AS, &usual) == 0;
  narrow = usual;
}

/* Bytes of address space, or 0. */
static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%lu", &pages) != 1) pages = 0;
  fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static rlim_t limit_of(size_t bytes) {
  const rlim_t now = address_space(), limit = now + bytes + SLACK;
  return now == 0 || limit < now || limit > usual.rlim_cur ? usual.rlim_cur : limit;
}

void pp_last_resort_refill(uint64_t work, size_t bytes) {
  static const struct itimerval each_second = { { 1, 0 }, { 1, 0 } };
  if (!enabled) return;
  seconds = 0;
  allowed = 1 + (sig_atomic_t)(work / UNITS_PER_SECOND < 1000000 ? work / UNITS_PER_SECOND : 1000000);
  narrow.rlim_cur = limit_of(bytes);
  setitimer(ITIMER_PROF, &each_second, NULL);   /* again: a worker has the handler of its parent, but not the timer */
}

void pp_last_resort_enter(const char *what) {
  if (!enabled) return;
  running = what;
  if (narrow.rlim_cur != usual.rlim_cur) setrlimit(RLIMIT_AS, &narrow);
}

void pp_last_resort_leave(void) {
  if (!enabled) return;
  running = NULL;
  if (narrow.rlim_cur != usual.rlim_cur) setrlimit(RLIMIT_AS, &usual);
}

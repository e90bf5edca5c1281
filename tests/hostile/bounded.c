/* SPDX-License-Identifier: Apache-2.0 */
/*
** bounded.c: runs a command under limits of the operating system and writes what it took:
**   bounded CPU_SECONDS MEGABYTES REPORT COMMAND [ARGUMENT…]
** MEGABYTES 0: no limit of address space (sanitizers need much). REPORT gets one line: exit status (128 + signal where one ended it),
** processor milliseconds, largest resident set in KiB.
*/
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(int what, rlim_t most) {
  const struct rlimit both = { most, most };
  if (setrlimit(what, &both) != 0) {
    perror("bounded: setrlimit");
    _exit(126);
  }
}

static long milliseconds(struct timeval time) {
  return time.tv_sec * 1000L + time.tv_usec / 1000;
}

int main(int argc, char **argv) {
  int status;
  struct rusage usage;
  if (argc < 5) {
    fputs("usage: bounded CPU_SECONDS MEGABYTES REPORT COMMAND...\n", stderr);
    return 126;
  }
  const rlim_t seconds = strtoul(argv[1], NULL, 10), bytes = strtoul(argv[2], NULL, 10) * 1024 * 1024;
  const pid_t child = fork();
  if (child == 0) {
    limit(RLIMIT_CPU, seconds);
    limit(RLIMIT_CORE, 0);
    if (bytes > 0) limit(RLIMIT_AS, bytes);
    execvp(argv[4], argv + 4);
    perror("bounded: exec");
    _exit(126);
  }
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    perror("bounded");
    return 126;
  }
  FILE *report = fopen(argv[3], "w");
  if (!report) {
    perror("bounded: report");
    return 126;
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  fprintf(report, "%d %ld %ld\n", code, milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime), usage.ru_maxrss);
  fclose(report);
  return 0;
}

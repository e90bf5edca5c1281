/* SPDX-License-Identifier: Apache-2.0 */
/*
** streams.c: see streams.h.
*/
#define _XOPEN_SOURCE 700
#include "host/streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

void pp_prepare_streams(void) {
  /* In this order: open gives the lowest free number. Each in the direction that it is not used in. */
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) break;
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_IGN);
}

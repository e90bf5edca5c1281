/* SPDX-License-Identifier: Apache-2.0 */
/*
** append_file.c: see append_file.h.
*/
#define _XOPEN_SOURCE 700
#include "host/append_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/output_file.h"

/*
** → its descriptor, or -1 and errno. A FIFO does not wait for its reader: it is none of ours. Read is only its last byte, where that may be.
*/
static int open_end(const char *path, bool *made) {
  int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  int descriptor = open(path, flags | O_RDWR);
  if (descriptor < 0 && (errno == EACCES || errno == EPERM)) descriptor = open(path, flags | O_WRONLY);
  *made = descriptor < 0 && errno == ENOENT;
  return *made ? open(path, flags | O_WRONLY | O_CREAT, 0666) : descriptor;
}

/*
** Does the file end in the middle of a line, and stay so? One that another process writes is seen as it grows. Not where it cannot be read.
*/
static bool is_torn(int descriptor) {
  const struct timespec pause = { 0, 20 * 1000 * 1000 };
  off_t before = -1;
  for (int looks = 0; looks < 4; looks++) {
    struct stat file;
    char last;
    if (fstat(descriptor, &file) != 0 || file.st_size == 0) return false;
    if (before >= 0 && file.st_size != before) return false;   /* whoever writes ends their line */
    if (pread(descriptor, &last, 1, file.st_size - 1) != 1 || last == '\n') return false;
    before = file.st_size;
    nanosleep(&pause, NULL);
  }
  return true;
}

static const char *write_line(int descriptor, const char *text, size_t size) {
  ssize_t written;
  if (is_torn(descriptor)) (void)!write(descriptor, "\n", 1);
  do written = write(descriptor, text, size);
  while (written < 0 && errno == EINTR);
  if (written < 0) return strerror(errno);
  if ((size_t)written == size) return NULL;
  (void)!write(descriptor, "\n", 1);  /* so that the next line begins one */
  return "only a part of the line fits: no space is left there";
}

static const char *append(int descriptor, const char *text, size_t size, bool sync) {
  struct stat file;
  const char *problem = NULL;
  if (fstat(descriptor, &file) != 0) return strerror(errno);
  if (!S_ISREG(file.st_mode)) return "it is no regular file";
  if (size > 0) problem = write_line(descriptor, text, size);
  if (!problem && sync && fsync(descriptor) != 0) problem = strerror(errno);
  return problem;
}

pp_status pp_append(const char *path, const char *text, size_t size, bool sync, pp_error *error) {
  bool made;
  int descriptor = open_end(path, &made);
  const char *problem;
  if (descriptor < 0) return pp_fail(error, PP_INVALID, "%s", errno == ENXIO ? "it is no regular file" : strerror(errno));
  problem = append(descriptor, text, size, sync);
  if (close(descriptor) != 0 && !problem) problem = strerror(errno);
  if (!problem && made && !pp_sync_folder(path)) problem = "its folder may not have reached the disk";
  return problem ? pp_fail(error, PP_INVALID, "%s", problem) : PP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** file.c: see file.h. The name is resolved first; what it resolves to, which has no links in it, is then opened step by step from the folder
** with O_NOFOLLOW, so that a link put there in between is an error and not followed.
*/
#define _DEFAULT_SOURCE  /* realpath, and the file types that POSIX leaves to XSI */
#include "host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(char reason[PP_FILE_REASON], const char *text) {
  snprintf(reason, PP_FILE_REASON, "%s", text);
  return -1;
}

/* What is there instead of a regular file. */
static const char *kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory, not a regular file";
  if (S_ISFIFO(mode)) return "a FIFO, not a regular file";
  if (S_ISSOCK(mode)) return "a socket, not a regular file";
  if (S_ISLNK(mode)) return "exchanged for a link while it was read";
  return "a device, not a regular file";
}

/* The path that folder/name stands for, relative to the folder: in `path`, or NULL and the reason. `root` is the folder itself. */
static const char *resolve(const char *folder, const char *name, char root[PATH_MAX], char path[PATH_MAX], char reason[PP_FILE_REASON]) {
  char joined[PATH_MAX];
  struct stat status;
  size_t length;
  int written = snprintf(joined, sizeof joined, "%s%s%s", folder, *folder ? "/" : "", name);
  if (written < 0 || (size_t)written >= sizeof joined) errno = ENAMETOOLONG;
  else if (realpath(*folder ? folder : ".", root) && realpath(joined, path)) {
    length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(path, root, length) == 0 && path[length] == '/') return path + length + 1;
    refuse(reason, "a link that leads out of the folder");
    return NULL;
  } else if (errno == ENOENT && lstat(joined, &status) == 0 && S_ISLNK(status.st_mode)) {
    refuse(reason, "a link to nothing");
    return NULL;
  }
  refuse(reason, strerror(errno));
  return NULL;
}

/* Opens the last part of a path without links, which begins at the open directory `at` and closes it. */
static int open_part(int at, char *path, char reason[PP_FILE_REASON]) {
  struct stat status;
  int file = -1;
  for (char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
    int next;
    *slash = '\0';
    next = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(at);
    if (next < 0) return refuse(reason, strerror(errno));
    at = next;
  }
  /* Asked before as well: opening a device can already do something. */
  if (fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) != 0) refuse(reason, strerror(errno));
  else if (!S_ISREG(status.st_mode)) refuse(reason, kind(status.st_mode));
  else if ((file = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) refuse(reason, strerror(errno));
  close(at);
  if (file < 0) return -1;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
  close(file);
  return refuse(reason, kind(status.st_mode));
}

ptrdiff_t pp_read_in_folder(const char *folder, const char *name, char *buffer, size_t room, char reason[PP_FILE_REASON]) {
  char root[PATH_MAX], path[PATH_MAX];
  const char *part = resolve(folder, name, root, path, reason);
  size_t size = 0;
  ssize_t got = 0;
  int directory, file;
  if (!part) return -1;
  directory = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return refuse(reason, strerror(errno));
  file = open_part(directory, path + (part - path), reason);
  if (file < 0) return -1;
  while (size < room && ((got = read(file, buffer + size, room - size)) > 0 || (got < 0 && errno == EINTR)))
    if (got > 0) size += (size_t)got;
  if (got < 0) refuse(reason, strerror(errno));
  close(file);
  return got < 0 ? -1 : (ptrdiff_t)size;
}

const char *pp_unreadable(const char *path, bool regular) {
  struct stat status;
  if (stat(path, &status) != 0 || access(path, R_OK) != 0) return strerror(errno);
  if (S_ISDIR(status.st_mode)) return strerror(EISDIR);
  return regular && !S_ISREG(status.st_mode) ? kind(status.st_mode) : NULL;
}

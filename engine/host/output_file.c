/* SPDX-License-Identifier: Apache-2.0 */
/*
** output_file.c: see output_file.h.
*/
#define _DEFAULT_SOURCE  /* flock: unlike POSIX locks it is not lost when another stream on the file is closed */
#define _XOPEN_SOURCE 700
#include "host/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/leftovers.h"

enum { MAX_LINKS = 40, MAX_TRIES = 100 };

static pp_status failed(pp_error *error, int number, const char *where) {
  return pp_fail(error, PP_INVALID, "%s%s", strerror(number), where);
}

/* --- where a path leads --- */

/* The N of /dev/fd/N, which is open already and may be something that cannot be opened again, such as a socket; -1 for other paths. */
static int descriptor_of(const char *path) {
  int descriptor;
  char more;
  if (sscanf(path, "/dev/fd/%d%c", &descriptor, &more) != 1 && sscanf(path, "/proc/self/fd/%d%c", &descriptor, &more) != 1) return -1;
  return descriptor;
}

/* Replaces a path by what the symbolic links at its end lead to. False and errno when that is no path. */
static bool follow_links(char path[PATH_MAX]) {
  for (int links = 0; links <= MAX_LINKS && descriptor_of(path) < 0; links++) {
    char target[PATH_MAX];
    char *name = strrchr(path, '/');
    ssize_t length = readlink(path, target, sizeof target);
    if (length < 0 && (errno == EINVAL || errno == ENOENT)) return true;  /* no link; nothing there */
    if (length < 0) return false;
    name = target[0] != '/' && name ? name + 1 : path;
    if ((size_t)(name - path) + (size_t)length >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return false;
    }
    memcpy(name, target, (size_t)length);
    name[length] = '\0';
  }
  if (descriptor_of(path) >= 0) return true;
  errno = ELOOP;
  return false;
}

static int folder_length(const char *path) {
  const char *name = strrchr(path, '/');
  return name ? (int)(name - path) + 1 : 0;
}

/* --- the temporary file --- */

/* The name has nothing of the target's, which may be as long as names can be. */
static bool name_temporary(pp_output_file *file, unsigned try) {
  struct timespec now = { 0, 0 };
  int size = (int)sizeof file->temporary;
  clock_gettime(CLOCK_REALTIME, &now);
  if (snprintf(file->temporary, sizeof file->temporary, "%.*s.pipeplan-%lx-%lx", folder_length(file->path), file->path, (unsigned long)getpid(),
               (unsigned long)now.tv_nsec + try) < size) return true;
  errno = ENAMETOOLONG;
  return false;
}

/* → its descriptor, or -1 and errno. */
static int create_temporary(pp_output_file *file, mode_t mode) {
  sigset_t before;
  int descriptor = -1;
  pp_leftovers_hold(&before);
  for (unsigned try = 0; try < MAX_TRIES; try++) {
    if (!name_temporary(file, try)) break;
    descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EEXIST) break;
  }
  if (descriptor >= 0) pp_leftovers_file(file->temporary);
  else file->temporary[0] = '\0';
  pp_leftovers_release(&before);
  return descriptor;
}

/*
** The old file's owner, group and mode, as far as this user may give them. Where the group cannot be given, another group may do no more than
** everybody. Not the set-user-ID bits: writing into a file takes those away too.
*/
static void take_after(int descriptor, const struct stat *old) {
  mode_t mode = old->st_mode & 0777u;
  if (fchown(descriptor, old->st_uid, old->st_gid) != 0 && fchown(descriptor, (uid_t)-1, old->st_gid) != 0)
    mode = (mode & ~(mode_t)0070) | (mode & 0007u) << 3;
  fchmod(descriptor, mode);
}

/* After this a signal finds no temporary file to remove. */
static void forget_temporary(pp_output_file *file) {
  sigset_t before;
  pp_leftovers_hold(&before);
  pp_leftovers_file(NULL);
  pp_leftovers_release(&before);
  file->temporary[0] = '\0';
}

bool pp_sync_folder(const char *path) {
  char folder[PATH_MAX] = ".";
  int length = folder_length(path), descriptor;
  bool good;
  if (length > 0) {
    memcpy(folder, path, (size_t)length);
    folder[length] = '\0';
  }
  descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return true;
  good = fsync(descriptor) == 0 || errno != EIO;
  close(descriptor);
  return good;
}

/* --- opening --- */

static pp_status begin(pp_output_file *file, const char *path, pp_error *error) {
  memset(file, 0, sizeof *file);
  file->kept = -1;
  if (strlen(path) >= sizeof file->path) return failed(error, ENAMETOOLONG, "");
  strcpy(file->path, path);
  return follow_links(file->path) ? PP_OK : failed(error, errno, "");
}

static pp_status open_stream(pp_output_file *file, int descriptor, pp_error *error) {
  int number;
  if (descriptor >= 0) file->stream = fdopen(descriptor, "w");
  if (file->stream) return PP_OK;
  number = errno;
  if (descriptor >= 0) close(descriptor);
  pp_output_discard(file);
  return failed(error, number, "");
}

static pp_status open_replacement(pp_output_file *file, const struct stat *old, pp_error *error) {
  int descriptor;
  if (old && faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS) != 0) return failed(error, errno, "");
  descriptor = create_temporary(file, old ? 0600 : 0666);
  if (descriptor < 0) return failed(error, errno, old ? ", in its folder, where the new file is made before it replaces the old one" : "");
  if (old) take_after(descriptor, old);
  file->regular = true;
  return open_stream(file, descriptor, error);
}

pp_status pp_output_open(pp_output_file *file, const char *path, pp_error *error) {
  struct stat old;
  pp_status status = begin(file, path, error);
  if (status != PP_OK) return status;
  if (descriptor_of(file->path) >= 0) return open_stream(file, fcntl(descriptor_of(file->path), F_DUPFD_CLOEXEC, 3), error);
  if (stat(file->path, &old) != 0) return errno == ENOENT ? open_replacement(file, NULL, error) : failed(error, errno, "");
  if (S_ISDIR(old.st_mode)) return failed(error, EISDIR, "");
  if (S_ISREG(old.st_mode)) return open_replacement(file, &old, error);
  return open_stream(file, open(file->path, O_WRONLY | O_NOCTTY | O_CLOEXEC), error);
}

pp_status pp_output_continue(pp_output_file *file, const char *path, int64_t kept, pp_error *error) {
  int descriptor;
  pp_status status = begin(file, path, error);
  if (status != PP_OK) return status;
  descriptor = open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  status = open_stream(file, descriptor, error);
  if (status != PP_OK) return status;
  file->regular = true;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) status = errno == EWOULDBLOCK
    ? pp_fail(error, PP_INVALID, "another process is writing it") : failed(error, errno, "");
  if (status != PP_OK) pp_output_discard(file);
  file->kept = kept;
  return status;
}

/* --- writing --- */

static pp_status give_up(pp_output_file *file, pp_error *error) {
  int number = errno;
  pp_output_discard(file);
  return failed(error, number, "");
}

static bool cut(pp_output_file *file) {
  off_t kept = (off_t)file->kept;
  file->kept = -1;
  return kept < 0 || (ftruncate(fileno(file->stream), kept) == 0 && lseek(fileno(file->stream), kept, SEEK_SET) >= 0);
}

pp_status pp_output_write(pp_output_file *file, const char *text, size_t size, pp_error *error) {
  return cut(file) && fwrite(text, 1, size, file->stream) == size ? PP_OK : give_up(file, error);
}

pp_status pp_output_flush(pp_output_file *file, pp_error *error) {
  return file->temporary[0] != '\0' || fflush(file->stream) == 0 ? PP_OK : give_up(file, error);
}

pp_status pp_output_finish(pp_output_file *file, pp_error *error) {
  FILE *stream = file->stream;
  if (!cut(file) || fflush(stream) != 0 || (file->regular && fsync(fileno(stream)) != 0)) return give_up(file, error);
  file->stream = NULL;
  if (fclose(stream) != 0) return give_up(file, error);
  if (file->temporary[0] == '\0') return PP_OK;
  if (rename(file->temporary, file->path) != 0) return give_up(file, error);
  forget_temporary(file);
  return pp_sync_folder(file->path) ? PP_OK : failed(error, EIO, ": the folder may not have reached the disk");
}

void pp_output_discard(pp_output_file *file) {
  if (file->stream) fclose(file->stream);
  file->stream = NULL;
  if (file->temporary[0] == '\0') return;
  unlink(file->temporary);
  forget_temporary(file);
}

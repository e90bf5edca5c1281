/* SPDX-License-Identifier: Apache-2.0 */
/*
** output_file.h: a file that a command writes. A regular file is there whole or not at all: what is written goes to a temporary file of a
** name that nobody else uses, in the same folder, which takes the file's place at the end. On any failure, and when a signal ends the process,
** the temporary file is removed and the old file is as it was. (SIGKILL and a power cut leave a .pipeplan-* behind.)
**
** Symbolic links are followed; one that leads nowhere has its target made. The old file's mode stays, and its owner and group where this user
** may give files away; ACLs, other attributes and further hard links are not carried over. FIFOs, devices and /dev/fd/N (so /dev/stdout) are
** written where they are, as their readers wait for it. A file that this user may not write is not replaced either.
*/
#ifndef PP_OUTPUT_FILE_H
#define PP_OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"

typedef struct {
  FILE *stream;              /* NULL: closed */
  bool regular;              /* reaches the disk before it counts as written */
  int64_t kept;              /* bytes of the old file that stay; -1: no others are there any more */
  char path[PATH_MAX];       /* links followed */
  char temporary[PATH_MAX];  /* "": written in place */
} pp_output_file;

/*
** All but the last say PP_INVALID and why ("No space left on device"); then the file is discarded. One file at a time is open with a temporary.
*/
pp_status pp_output_open(pp_output_file *file, const char *path, pp_error *error);

/*
** For what is of use before it is whole: writes a regular file in place, after its first `kept` bytes; makes it if there is none. What stands
** behind them goes with the first write, or at the end, and not where the file is discarded before. Locked against another such writer.
*/
pp_status pp_output_continue(pp_output_file *file, const char *path, int64_t kept, pp_error *error);

pp_status pp_output_write(pp_output_file *file, const char *text, size_t size, pp_error *error);

/* What is written in place is seen by others now; a temporary file is not hurried. */
pp_status pp_output_flush(pp_output_file *file, pp_error *error);

pp_status pp_output_finish(pp_output_file *file, pp_error *error);

/* Nothing, when it is finished or discarded already. */
void pp_output_discard(pp_output_file *file);

/*
** That a file's name reaches the disk. A folder that cannot be opened or has nothing to sync is no reason to call a written file a failure; a
** disk that failed is: false.
*/
bool pp_sync_folder(const char *path);

#endif

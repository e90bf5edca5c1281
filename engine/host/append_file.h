/* SPDX-License-Identifier: Apache-2.0 */
/*
** append_file.h: a line at the end of a file that other processes append to as well, such as a record of decisions.
**
** It is one write with O_APPEND: on a local file system a regular file's lines stay whole, whoever writes at once, however long they are
** (Linux holds the file's lock for the whole write; PIPE_BUF is a limit of pipes). No lock of ours: whoever may read the file could hold it,
** and make all others wait. NFS has no append of its own: there a file a machine.
*/
#ifndef PP_APPEND_FILE_H
#define PP_APPEND_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/*
** Makes the file where there is none. sync: it has reached the disk, its name too. No text: only sees that it can be written. PP_INVALID and
** why otherwise; where a part was written, it ends its line. A last line without its end, of whoever wrote there before, is ended first.
*/
pp_status pp_append(const char *path, const char *text, size_t size, bool sync, pp_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** file.h: reading a file of a folder in which others may put what they like. No Lua: nothing here longjmps.
*/
#ifndef PP_FILE_H
#define PP_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum { PP_FILE_REASON = 96 };  /* bytes of a reason, its NUL included */

/*
** Reads the regular file `name` of a folder ("" is the current one) into buffer: at most `room` bytes of it. Returns how many, or -1 and the
** reason, in words that fit behind "cannot be read: ". What was opened is judged, not what its name stood for before: a FIFO, a device or a
** link that leads out of the folder is refused and never waited for, whoever exchanges files meanwhile.
*/
ptrdiff_t pp_read_in_folder(const char *folder, const char *name, char *buffer, size_t room, char reason[PP_FILE_REASON]);

/* NULL when a file may be read and is no directory, with `regular` also nothing else that is no file, else why not. Opens nothing: a FIFO gives
** what it has once only. */
const char *pp_unreadable(const char *path, bool regular);

#endif

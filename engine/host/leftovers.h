/* SPDX-License-Identifier: Apache-2.0 */
/*
** leftovers.h: what must not be left behind when a signal ends this process: its temporary file and its child processes.
*/
#ifndef PP_LEFTOVERS_H
#define PP_LEFTOVERS_H

#include <signal.h>
#include <sys/types.h>

enum { PP_MAX_CHILDREN = 256 };

/* No signal ends the process between these two: what is made there is registered before it can be left behind. */
void pp_leftovers_hold(sigset_t *before);
void pp_leftovers_release(const sigset_t *before);

/* The one temporary file; NULL: none any more. With the signals held. The path is shorter than PATH_MAX. */
void pp_leftovers_file(const char *path);

/* One of at most PP_MAX_CHILDREN child processes, and one that has ended and been waited for. With the signals held. */
void pp_leftovers_child(pid_t process);
void pp_leftovers_ended(pid_t process);

/* In a child: nothing is left behind here, it is all the parent's. */
void pp_leftovers_forget(void);

#endif

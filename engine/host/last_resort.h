/* SPDX-License-Identifier: Apache-2.0 */
/*
** last_resort.h: the operating system's limits around policies, for what the budget forgot to count. The budget ends a policy at the same place
** on every machine; these limits are an order of magnitude beyond it and end the process.
** For the program only: nobody who loads the module wants its process ended, its signals taken or its memory limited.
*/
#ifndef PP_LAST_RESORT_H
#define PP_LAST_RESORT_H

#include <stddef.h>
#include <stdint.h>

/* From now on the functions below do something. Takes SIGPROF. */
void pp_last_resort_enable(void);

/*
** A new evaluation starts, with that budget: in all of it, policies may have 1 second of processor time, and 1 for each 2 million units of work.
** Address space may grow by `bytes` and a GiB while they run.
*/
void pp_last_resort_refill(uint64_t work, size_t bytes);

/*
** A policy starts to run, or ends. `what` names it in the message with which the process ends when its time is up (exit status 4); it has to
** live until then. Memory beyond the limit is refused by malloc.
*/
void pp_last_resort_enter(const char *what);
void pp_last_resort_leave(void);

#endif

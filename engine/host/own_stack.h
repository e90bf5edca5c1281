/* SPDX-License-Identifier: Apache-2.0 */
/*
** own_stack.h: a stack that is large enough, where the caller's is not: threads of musl have 128 KiB, `ulimit -s` may leave a process less.
*/
#ifndef PP_OWN_STACK_H
#define PP_OWN_STACK_H

#include <stdbool.h>
#include <stddef.h>

/*
** What a plan and a policy take together is less than PP_STACK_LEAST, twice that is comfort: Lua runs at most 200 C functions inside each other,
** of which the largest, gsub with its buffers, took 480 KiB at that depth; the arrays of a candidate of 1,024 stages take 260 KiB.
*/
enum { PP_STACK_LEAST = 1 << 20, PP_STACK_NEEDED = 2 << 20, PP_STACK_OWN = 8 << 20 };

/* Bytes that are left of the stack of the calling thread; SIZE_MAX where the system does not say. */
size_t pp_stack_left(void);

/*
** function(argument): here, or where less than PP_STACK_NEEDED are left in a thread of its own, which ends before this returns and which
** signals go to in the meantime. False when there is no memory for one: nothing has run.
*/
bool pp_with_stack(void (*function)(void *), void *argument);

#endif

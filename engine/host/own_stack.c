/* SPDX-License-Identifier: Apache-2.0 */
/*
** own_stack.c: see own_stack.h.
*/
#define _GNU_SOURCE   /* pthread_getattr_np */
#include "host/own_stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

size_t pp_stack_left(void) {
  const char here = 0;
  void *lowest;
  size_t size;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return SIZE_MAX;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  const uintptr_t now = (uintptr_t)&here, last = (uintptr_t)lowest;
  if (!known) return SIZE_MAX;
  return now > last ? now - last : 0;
}

typedef struct {
  void (*function)(void *);
  void *argument;
  sigset_t signals;   /* that the caller had blocked */
} call;

static void *run(void *data) {
  const call *called = data;
  pthread_sigmask(SIG_SETMASK, &called->signals, NULL);
  called->function(called->argument);
  return NULL;
}

/* The caller blocks all signals meanwhile: who holds them back (leftovers.h) does so for its own thread only. */
static bool run_in_thread(call *called) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all;
  bool started;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &called->signals);
  started = pthread_attr_setstacksize(&attributes, PP_STACK_OWN) == 0 && pthread_create(&thread, &attributes, run, called) == 0;
  if (started) pthread_join(thread, NULL);
  pthread_sigmask(SIG_SETMASK, &called->signals, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

bool pp_with_stack(void (*function)(void *), void *argument) {
  call called = { .function = function, .argument = argument };
  if (pp_stack_left() < PP_STACK_NEEDED) return run_in_thread(&called);
  function(argument);
  return true;
}

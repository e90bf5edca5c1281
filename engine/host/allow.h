/* SPDX-License-Identifier: Apache-2.0 */
/*
** allow.h: every name that a policy can see, and what the familiar names that it cannot see are answered with.
** A test walks the live state and compares it with this table, so that no upgrade of Lua or of the engine sneaks a name in.
*/
#ifndef PP_ALLOW_H
#define PP_ALLOW_H

#include <stddef.h>

typedef enum {
  PP_FROM_BASE,       /* Lua's own function of that name */
  PP_FROM_MATH,
  PP_REPLACED,        /* ours, in base.c */
  PP_VERB,            /* a statement, in statements.c */
  PP_CONSTRUCTOR,     /* makes a condition, in statements.c */
  PP_FROM_ENGINE      /* a module of the engine, charged by pp_charge */
} pp_origin;

typedef struct {
  const char *name;
  pp_origin origin;
  const char *why;    /* why a policy may have it */
} pp_allowed_name;

typedef struct {
  const char *name;
  const char *instead;  /* ends the sentence "NAME is not available to policies: …" */
} pp_blocked_name;

extern const pp_allowed_name pp_allowed_names[];
extern const size_t pp_allowed_count;
extern const pp_blocked_name pp_blocked_names[];
extern const size_t pp_blocked_count;

#endif

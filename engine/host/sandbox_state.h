/* SPDX-License-Identifier: Apache-2.0 */
/*
** sandbox_state.h: what the files of the sandbox share: one sandbox, and how code that runs in its state finds it.
*/
#ifndef PP_SANDBOX_STATE_H
#define PP_SANDBOX_STATE_H

#include <lua.h>
#include <stdbool.h>

#include "host/budget.h"

enum { PP_CHUNK_LIMIT = 256 * 1024, PP_MOST_STATEMENTS = 2000 };  /* bytes and statements of one policy file */

typedef struct {
  lua_State *L;
  pp_budget budget;
  bool loading;         /* statements may be made */
  char message[1024];   /* of the last outcome that is not PP_RAN: one line, no control characters */
  char unknown[64];     /* the name that does not exist, where that is the reason; the caller suggests a near one */
  char late[64];        /* the field that a rule's function asked for before it is known, where that ended the call */
} pp_sandbox;

/* From here on the sandbox of a state. */
void pp_sandbox_bind(lua_State *L, pp_sandbox *sandbox);
pp_sandbox *pp_sandbox_of(lua_State *L);

/* Registry key of the table of names that all files share. */
extern const char pp_names_key;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** sandbox.h: a fresh Lua state for one set of policies: its names are those of allow.c, its work and memory are budgeted, whatever happens
** in it ends as one of four outcomes. Nothing here raises an error in the caller's state, except where a function says so.
*/
#ifndef PP_SANDBOX_H
#define PP_SANDBOX_H

#include <lua.h>
#include <stdbool.h>

#include "host/sandbox_state.h"

typedef enum {
  PP_RAN,
  PP_BROKEN,      /* an error: in the text, in a statement, in a rule's function */
  PP_OVER_BUDGET, /* and until the next refill every call ends so */
  PP_OUT_OF_MEMORY  /* the system's, not the budget's; as above */
} pp_outcome;

/* Makes the state. `engine` opens what policies call `engine`; `fields` is the stack index in `from` of the list of names that a record may
** have. */
pp_outcome pp_sandbox_open(pp_sandbox *sandbox, uint64_t work, size_t bytes, lua_CFunction engine, lua_State *from, int fields);

/* From now on policies have a print, to standard error. */
pp_outcome pp_sandbox_allow_print(pp_sandbox *sandbox);

/*
** Runs a policy file (text only, never bytecode). `path` names it in messages and says where `require` looks: beside it, among the embedded
** files when `embedded`; a file that `require` has run already is not run again and states nothing.
** What it stated is then the list that pp_sandbox_statements pushes on sandbox->L:
** { verb, file, line, argument }, arguments copied at the time of the call; a function is { [PP_TAG] = "function", handle },
** a condition { [PP_TAG] = operator, right sides … }.
*/
pp_outcome pp_sandbox_run(pp_sandbox *sandbox, const char *path, const char *text, size_t size, bool embedded);
void pp_sandbox_statements(pp_sandbox *sandbox);

/* From now on a file of that text, given or required, is run as if the other were its text: small mistakes of which tests are to tell. */
pp_outcome pp_sandbox_replace(pp_sandbox *sandbox, const char *text, size_t size, const char *other, size_t other_size);

/*
** The files that were run are a layer: what its rules' functions reach is unchangeable for the files after them, which are broken when they try.
** Without it, it becomes so when a function is called for the first time.
*/
pp_outcome pp_sandbox_seal(pp_sandbox *sandbox);

/*
** Calls the function of that handle with a read-only copy of the record at `index` of `from`. It must return true or false. `what` names the
** rule in what is said when it has to be ended from outside. `late`, an index of `from` or 0, is the set of fields that are not known yet:
** a call that reads one ends there, broken, with its name in sandbox->late. After PP_RAN pp_sandbox_reads pushes on sandbox->L a list of
** the names that the function read, in the order in which it first read them. Without a `result` it may return anything: pp_sandbox_value
** pushes that on sandbox->L.
*/
pp_outcome pp_sandbox_call(pp_sandbox *sandbox, lua_Integer handle, const char *what, lua_State *from, int index, int late, bool *result);
void pp_sandbox_reads(pp_sandbox *sandbox);
void pp_sandbox_value(pp_sandbox *sandbox);

/* A new evaluation starts, which sees nothing of the one before: budget.h. */
void pp_sandbox_refill(pp_sandbox *sandbox);

/* Pushes on sandbox->L a list of every name that a policy can reach, or returns another outcome. */
pp_outcome pp_sandbox_names(pp_sandbox *sandbox);

void pp_sandbox_close(pp_sandbox *sandbox);

#endif

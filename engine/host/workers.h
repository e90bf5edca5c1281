/*
** workers.h: the same work in several processes.
*/
#ifndef PP_WORKERS_H
#define PP_WORKERS_H

#include <lua.h>

enum { PP_MAX_WORKERS = 256 };

/*
** (count, function(number from 1 to count) → text) → list of the texts. Each call of the function runs in a child process with a copy of
** this state, and what it changes is gone with the child. Raises an error when a child could not be started, raised one itself (its message
** is on stderr) or died. For trusted states only: no policy has this function.
*/
int pp_workers(lua_State *L);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** copy.h: copying plain values from one Lua state to another, or within one.
** Plain: nil, booleans, numbers, strings, light userdata (tags), and tables of those. Metatables are neither used nor copied.
*/
#ifndef PP_COPY_H
#define PP_COPY_H

#include <lua.h>
#include <stddef.h>

/* Their limits: copy.c names them in its messages. */
enum { PP_COPY_DEPTH = 8, PP_COPY_VALUES = 20000 };

/*
** Key under which a table that stands for something says for what: t[PP_TAG] = "under" is the condition, "function" a handle of a function.
** A light userdata, which no policy can make.
*/
extern const char pp_tag;
#define PP_TAG ((void *)&pp_tag)

/* Turns the function at `index` of L into something to store in its place (pushes it), or returns a message. */
typedef const char *pp_copy_function(lua_State *L, int index);

/*
** Pushes on `to` a copy of the value at `index` of `from` and returns NULL, or returns why it cannot be copied, with nothing pushed.
** Raises no error in `from`; may longjmp in `to` (which must be the running one, or the same). `function` may be NULL: then functions
** cannot be copied.
*/
const char *pp_copy(lua_State *from, int index, lua_State *to, pp_copy_function *function);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** seal.h: a function of a policy leaves what outlives its call as it was, and so do the files of the layers above its own.
*/
#ifndef PP_SEAL_H
#define PP_SEAL_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Before a function is called for the first time: makes what it reaches and outlives the call unchangeable, as far as tables go. May longjmp. */
void pp_seal(lua_State *L, lua_Integer handle);
bool pp_is_sealed(lua_State *L, lua_Integer handle);   /* never raises */

/* Charges what pp_put_back will do. May longjmp. */
void pp_charge_variables(lua_State *L, lua_Integer handle);

/* After each call: puts variables back that it changed; false when there was one, whose name is then in `name`. Never raises. */
bool pp_put_back(lua_State *L, lua_Integer handle, char *name, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.h: engine.model: parameters, FLOPs and stages of a model shape (shape.h).
*/
#ifndef PP_LUA_MODEL_H
#define PP_LUA_MODEL_H

#include <lua.h>

int pp_open_model(lua_State *L);

#endif

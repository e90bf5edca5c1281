/* SPDX-License-Identifier: Apache-2.0 */
/*
** shape.h: a model shape as a Lua table.
** Keys are the fields of pp_model, in words: attention = "gqa" | "mla", qk_norm = "none" | "head" | "full". Which layers are dense in a
** mixture of experts: first_dense = n (layers 1 … n), moe_every = k (only every k-th layer is MoE), dense_layers = { layer numbers from 1 };
** a layer that any of them calls dense is dense. With experts = 0 or absent all are.
** Required: layers, hidden, vocab, heads, and what the kind of layer needs (ffn; experts_per_token, expert_ffn; the MLA sizes).
** Absent: kv_heads = heads, head_dim = hidden / heads, norms_per_layer = 2, gated = true, moe_every = 1; all else 0, false, "gqa", "none".
*/
#ifndef PP_LUA_SHAPE_H
#define PP_LUA_SHAPE_H

#include <lua.h>

#include "core/model.h"

/* Reads and checks the table at that index, or raises "model shape: …". */
void pp_check_shape(lua_State *L, int index, pp_model *out);

/* Pushes the sorted list of the keys that a shape may have. */
void pp_push_shape_fields(lua_State *L);

#endif

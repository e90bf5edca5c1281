/* SPDX-License-Identifier: Apache-2.0 */
/*
** shape.c: reading a model shape from a Lua table. May longjmp. See shape.h.
*/
#include "lua/shape.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/meter.h"
#include "lua/arguments.h"

static const char call[] = "model shape";

typedef enum { SIZE, FLAG } field_kind;

/* Fields that are read alike. For a size: `otherwise` −1 says that it is required. */
static const struct {
  const char *name;
  field_kind kind;
  size_t offset;
  int64_t otherwise;
} fields[] = {
  { "layers",                 SIZE, offsetof(pp_model, layers), -1 },
  { "hidden",                 SIZE, offsetof(pp_model, hidden), -1 },
  { "vocab",                  SIZE, offsetof(pp_model, vocab), -1 },
  { "heads",                  SIZE, offsetof(pp_model, heads), -1 },
  { "q_lora_rank",            SIZE, offsetof(pp_model, q_lora_rank), 0 },
  { "kv_lora_rank",           SIZE, offsetof(pp_model, kv_lora_rank), 0 },
  { "qk_nope_dim",            SIZE, offsetof(pp_model, qk_nope_dim), 0 },
  { "qk_rope_dim",            SIZE, offsetof(pp_model, qk_rope_dim), 0 },
  { "v_dim",                  SIZE, offsetof(pp_model, v_dim), 0 },
  { "attention_sinks",        SIZE, offsetof(pp_model, attention_sinks), 0 },
  { "ffn",                    SIZE, offsetof(pp_model, ffn), 0 },
  { "experts",                SIZE, offsetof(pp_model, experts), 0 },
  { "experts_per_token",      SIZE, offsetof(pp_model, experts_per_token), 0 },
  { "expert_ffn",             SIZE, offsetof(pp_model, expert_ffn), 0 },
  { "shared_ffn",             SIZE, offsetof(pp_model, shared_ffn), 0 },
  { "norms_per_layer",        SIZE, offsetof(pp_model, norms_per_layer), 2 },
  { "learned_positions",      SIZE, offsetof(pp_model, learned_positions), 0 },
  { "mtp_layers",             SIZE, offsetof(pp_model, mtp_layers), 0 },
  { "qkv_bias",               FLAG, offsetof(pp_model, qkv_bias), 0 },
  { "output_bias",            FLAG, offsetof(pp_model, output_bias), 0 },
  { "gated",                  FLAG, offsetof(pp_model, gated), 1 },
  { "mlp_bias",               FLAG, offsetof(pp_model, mlp_bias), 0 },
  { "shared_gate",            FLAG, offsetof(pp_model, shared_gate), 0 },
  { "router_correction_bias", FLAG, offsetof(pp_model, router_correction_bias), 0 },
  { "router_bias",            FLAG, offsetof(pp_model, router_bias), 0 },
  { "expert_bias",            FLAG, offsetof(pp_model, expert_bias), 0 },
  { "norm_bias",              FLAG, offsetof(pp_model, norm_bias), 0 },
  { "embedding_norm",         FLAG, offsetof(pp_model, embedding_norm), 0 },
  { "tied_embeddings",        FLAG, offsetof(pp_model, tied_embeddings), 0 },
  { "head_bias",              FLAG, offsetof(pp_model, head_bias), 0 },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const char *const others[] = { "attention", "kv_heads", "head_dim", "qk_norm", "first_dense", "moe_every", "dense_layers" };
enum { OTHERS = sizeof others / sizeof *others };

static const char *const attentions[] = { "gqa", "mla", NULL };
static const char *const qk_norms[] = { "none", "head", "full", NULL };

/* All keys, ended by NULL. */
static void list_keys(const char *known[FIELDS + OTHERS + 1]) {
  for (int i = 0; i < FIELDS; i++) known[i] = fields[i].name;
  for (int i = 0; i < OTHERS; i++) known[FIELDS + i] = others[i];
  known[FIELDS + OTHERS] = NULL;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void pp_push_shape_fields(lua_State *L) {
  const char *known[FIELDS + OTHERS + 1];
  list_keys(known);
  qsort(known, FIELDS + OTHERS, sizeof *known, compare_names);
  lua_createtable(L, FIELDS + OTHERS, 0);
  for (int i = 0; i < FIELDS + OTHERS; i++) {
    lua_pushstring(L, known[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void read_fields(lua_State *L, int index, pp_model *out) {
  char *base = (char *)out;
  for (int i = 0; i < FIELDS; i++) {
    const int64_t otherwise = fields[i].otherwise;
    if (fields[i].kind == FLAG) {
      *(bool *)(base + fields[i].offset) = pp_args_boolean_or(L, index, call, fields[i].name, otherwise != 0);
    } else if (otherwise < 0) {
      *(int64_t *)(base + fields[i].offset) = pp_args_integer(L, index, call, fields[i].name, 1, INT64_MAX);
    } else {
      *(int64_t *)(base + fields[i].offset) = pp_args_integer_or(L, index, call, fields[i].name, 0, INT64_MAX, otherwise);
    }
  }
}

static void read_dense_layers(lua_State *L, int index, pp_model *out) {
  if (!pp_args_has(L, index, "dense_layers")) return;
  pp_args_table(L, index, call, "dense_layers");
  const lua_Integer count = luaL_len(L, -1);
  if (count > out->layers) luaL_error(L, "%s: 'dense_layers' has more entries than there are layers", call);
  for (lua_Integer i = 1; i <= count; i++) {
    int integral;
    lua_geti(L, -1, i);
    const lua_Integer layer = lua_tointegerx(L, -1, &integral);
    if (!integral || layer < 1 || layer > out->layers)
      luaL_error(L, "%s: 'dense_layers' must hold layer numbers from 1 to %I, entry %I is %s", call, (lua_Integer)out->layers, i,
                 luaL_tolstring(L, -1, NULL));
    out->moe[layer - 1] = false;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void read_moe_layers(lua_State *L, int index, pp_model *out) {
  const int64_t first_dense = pp_args_integer_or(L, index, call, "first_dense", 0, out->layers, 0);
  const int64_t moe_every = pp_args_integer_or(L, index, call, "moe_every", 1, out->layers, 1);
  memset(out->moe, 0, sizeof out->moe);
  if (out->experts == 0) return;
  for (int64_t i = first_dense + 1; i <= out->layers; i++) out->moe[i - 1] = i % moe_every == 0;
  read_dense_layers(L, index, out);
}

void pp_check_shape(lua_State *L, int index, pp_model *out) {
  pp_error error;
  const char *known[FIELDS + OTHERS + 1];
  pp_spend(PP_MAX_LAYERS);
  list_keys(known);
  index = lua_absindex(L, index);
  pp_args_begin(L, index, call, known);
  memset(out, 0, sizeof *out);
  read_fields(L, index, out);
  if (out->layers > PP_MAX_LAYERS) luaL_error(L, "%s: 'layers' must be at most %d, got %I", call, PP_MAX_LAYERS, (lua_Integer)out->layers);
  out->attention = (pp_attention)pp_args_option(L, index, call, "attention", attentions, PP_ATTENTION_GQA);
  out->qk_norm = (pp_qk_norm)pp_args_option(L, index, call, "qk_norm", qk_norms, PP_QK_NORM_NONE);
  out->kv_heads = pp_args_integer_or(L, index, call, "kv_heads", 1, out->heads, out->heads);
  out->head_dim = pp_args_integer_or(L, index, call, "head_dim", 0, INT64_MAX, 0);
  if (out->attention == PP_ATTENTION_GQA && out->head_dim == 0) {
    if (out->hidden % out->heads != 0)
      luaL_error(L, "%s: 'head_dim' is needed, since 'heads' (%I) does not divide 'hidden' (%I)", call, (lua_Integer)out->heads,
                 (lua_Integer)out->hidden);
    out->head_dim = out->hidden / out->heads;
  }
  read_moe_layers(L, index, out);
  if (pp_model_check(out, &error) != PP_OK) pp_args_raise(L, call, &error);
}

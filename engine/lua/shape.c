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

typedef struct {
  const char *name;
  field_kind kind;
  size_t offset;
  int64_t otherwise;   /* of a size: −1 says that it is required */
} field;

/* Fields that are read alike: of the model, and of a layer. */
static const field fields[] = {
  { "layers",                 SIZE, offsetof(pp_model, layers), -1 },
  { "hidden",                 SIZE, offsetof(pp_model, hidden), -1 },
  { "vocab",                  SIZE, offsetof(pp_model, vocab), -1 },
  { "learned_positions",      SIZE, offsetof(pp_model, learned_positions), 0 },
  { "mtp_layers",             SIZE, offsetof(pp_model, mtp_layers), 0 },
  { "tower",                  SIZE, offsetof(pp_model, tower), 0 },
  { "streams",                SIZE, offsetof(pp_model, streams), 1 },
  { "tower_frozen",           FLAG, offsetof(pp_model, tower_frozen), 0 },
  { "embedding_norm",         FLAG, offsetof(pp_model, embedding_norm), 0 },
  { "tied_embeddings",        FLAG, offsetof(pp_model, tied_embeddings), 0 },
  { "head_bias",              FLAG, offsetof(pp_model, head_bias), 0 },
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const field layer_fields[] = {
  { "heads",                  SIZE, offsetof(pp_layer, heads), -1 },
  { "q_lora_rank",            SIZE, offsetof(pp_layer, q_lora_rank), 0 },
  { "kv_lora_rank",           SIZE, offsetof(pp_layer, kv_lora_rank), 0 },
  { "qk_nope_dim",            SIZE, offsetof(pp_layer, qk_nope_dim), 0 },
  { "qk_rope_dim",            SIZE, offsetof(pp_layer, qk_rope_dim), 0 },
  { "v_dim",                  SIZE, offsetof(pp_layer, v_dim), 0 },
  { "attention_sinks",        SIZE, offsetof(pp_layer, attention_sinks), 0 },
  { "ffn",                    SIZE, offsetof(pp_layer, ffn), 0 },
  { "experts",                SIZE, offsetof(pp_layer, experts), 0 },
  { "experts_per_token",      SIZE, offsetof(pp_layer, experts_per_token), 0 },
  { "expert_ffn",             SIZE, offsetof(pp_layer, expert_ffn), 0 },
  { "shared_ffn",             SIZE, offsetof(pp_layer, shared_ffn), 0 },
  { "norms_per_layer",        SIZE, offsetof(pp_layer, norms_per_layer), 2 },
  { "qkv_bias",               FLAG, offsetof(pp_layer, qkv_bias), 0 },
  { "output_bias",            FLAG, offsetof(pp_layer, output_bias), 0 },
  { "gated",                  FLAG, offsetof(pp_layer, gated), 1 },
  { "mlp_bias",               FLAG, offsetof(pp_layer, mlp_bias), 0 },
  { "shared_gate",            FLAG, offsetof(pp_layer, shared_gate), 0 },
  { "router_correction_bias", FLAG, offsetof(pp_layer, router_correction_bias), 0 },
  { "router_bias",            FLAG, offsetof(pp_layer, router_bias), 0 },
  { "expert_bias",            FLAG, offsetof(pp_layer, expert_bias), 0 },
  { "norm_bias",              FLAG, offsetof(pp_layer, norm_bias), 0 },
  { "index_heads",            SIZE, offsetof(pp_layer, index_heads), 0 },
  { "index_dim",              SIZE, offsetof(pp_layer, index_dim), 0 },
  { "index_topk",             SIZE, offsetof(pp_layer, index_topk), 0 },
  { "window",                 SIZE, offsetof(pp_layer, window), 0 },
  { "chunk",                  SIZE, offsetof(pp_layer, chunk), 0 },
  { "compression",            SIZE, offsetof(pp_layer, compression), 0 },
  { "output_groups",          SIZE, offsetof(pp_layer, output_groups), 0 },
  { "output_rank",            SIZE, offsetof(pp_layer, output_rank), 0 },
  { "output_gate",            SIZE, offsetof(pp_layer, output_gate), 0 },
  { "key_heads",              SIZE, offsetof(pp_layer, key_heads), 0 },
  { "key_dim",                SIZE, offsetof(pp_layer, key_dim), 0 },
  { "value_heads",            SIZE, offsetof(pp_layer, value_heads), 0 },
  { "value_dim",              SIZE, offsetof(pp_layer, value_dim), 0 },
  { "conv_kernel",            SIZE, offsetof(pp_layer, conv_kernel), 0 },
  { "step_rank",              SIZE, offsetof(pp_layer, step_rank), 0 },
  { "expert_hidden",          SIZE, offsetof(pp_layer, expert_hidden), 0 },
  { "zero_experts",           SIZE, offsetof(pp_layer, zero_experts), 0 },
  { "scales",                 SIZE, offsetof(pp_layer, scales), 0 },
  { "shared_kv",              FLAG, offsetof(pp_layer, shared_kv), 0 },
  { "conv_bias",              FLAG, offsetof(pp_layer, conv_bias), 0 },
  { "mixer_norm",             FLAG, offsetof(pp_layer, mixer_norm), 0 },
};
enum { LAYER_FIELDS = sizeof layer_fields / sizeof *layer_fields };

/* The rest of a layer's, and of a model's. */
static const char *const layer_others[] = { "attention", "kv_heads", "head_dim", "qk_norm" };
static const char *const others[] = { "first_dense", "moe_every", "dense_layers", "kinds" };
enum { LAYER_OTHERS = sizeof layer_others / sizeof *layer_others, OTHERS = sizeof others / sizeof *others,
       LAYER_KEYS = LAYER_FIELDS + LAYER_OTHERS, KEYS = FIELDS + OTHERS + LAYER_KEYS };

static const char *const attentions[] = { "gqa", "mla", "none", "gated_delta", "kimi_delta", "mamba2", "lightning", "conv", "mamba1", "compressed", NULL };
static const char *const qk_norms[] = { "none", "head", "full", NULL };

/* The keys of a layer, from there on. */
static void list_layer_keys(const char **known) {
  for (int i = 0; i < LAYER_FIELDS; i++) known[i] = layer_fields[i].name;
  for (int i = 0; i < LAYER_OTHERS; i++) known[LAYER_FIELDS + i] = layer_others[i];
}

/* All keys, ended by NULL. */
static void list_keys(const char *known[KEYS + 1]) {
  for (int i = 0; i < FIELDS; i++) known[i] = fields[i].name;
  for (int i = 0; i < OTHERS; i++) known[FIELDS + i] = others[i];
  list_layer_keys(known + FIELDS + OTHERS);
  known[KEYS] = NULL;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void pp_push_shape_fields(lua_State *L) {
  const char *known[KEYS + 1];
  list_keys(known);
  qsort(known, KEYS, sizeof *known, compare_names);
  lua_createtable(L, KEYS, 0);
  for (int i = 0; i < KEYS; i++) {
    lua_pushstring(L, known[i]);
    lua_rawseti(L, -2, i + 1);
  }
}

static void read_fields(lua_State *L, int index, const field *list, int count, void *out) {
  char *base = out;
  for (int i = 0; i < count; i++) {
    const int64_t otherwise = list[i].otherwise;
    if (list[i].kind == FLAG) {
      *(bool *)(base + list[i].offset) = pp_args_boolean_or(L, index, call, list[i].name, otherwise != 0);
    } else if (otherwise < 0) {
      *(int64_t *)(base + list[i].offset) = pp_args_integer(L, index, call, list[i].name, 1, INT64_MAX);
    } else {
      *(int64_t *)(base + list[i].offset) = pp_args_integer_or(L, index, call, list[i].name, 0, INT64_MAX, otherwise);
    }
  }
}

/* What a further kind does not say is as in other layers. */
static void change_fields(lua_State *L, int index, pp_layer *out) {
  char *base = (char *)out;
  for (int i = 0; i < LAYER_FIELDS; i++) {
    const field *one = &layer_fields[i];
    if (one->kind == FLAG) *(bool *)(base + one->offset) = pp_args_boolean_or(L, index, call, one->name, *(bool *)(base + one->offset));
    else *(int64_t *)(base + one->offset) = pp_args_integer_or(L, index, call, one->name, 0, INT64_MAX, *(int64_t *)(base + one->offset));
  }
  out->attention = (pp_attention)pp_args_option(L, index, call, "attention", attentions, (int)out->attention);
  out->qk_norm = (pp_qk_norm)pp_args_option(L, index, call, "qk_norm", qk_norms, (int)out->qk_norm);
  out->kv_heads = pp_args_integer_or(L, index, call, "kv_heads", 1, out->heads, out->kv_heads < out->heads ? out->kv_heads : out->heads);
  out->head_dim = pp_args_integer_or(L, index, call, "head_dim", 0, INT64_MAX, out->head_dim);
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

/* The numbers of the layers of kind `kind`, a table on top of the stack. */
static void read_kind_layers(lua_State *L, int kind, pp_model *out) {
  pp_args_table(L, lua_gettop(L), call, "layers");
  const lua_Integer count = luaL_len(L, -1);
  if (count < 1 || count > out->layers) luaL_error(L, "%s: 'kinds[%d].layers' must list from 1 to all layers", call, kind);
  for (lua_Integer i = 1; i <= count; i++) {
    int integral;
    lua_geti(L, -1, i);
    const lua_Integer layer = lua_tointegerx(L, -1, &integral);
    if (!integral || layer < 1 || layer > out->layers || out->kind[layer - 1] > 0)
      luaL_error(L, "%s: 'kinds[%d].layers' must hold layer numbers from 1 to %I, none in two kinds; entry %I is %s", call, kind,
                 (lua_Integer)out->layers, i, luaL_tolstring(L, -1, NULL));
    out->kind[layer - 1] = (uint8_t)kind;
    if (i == 1) out->further[kind - 1].moe = out->moe[layer - 1];
    else if (out->further[kind - 1].moe != out->moe[layer - 1])
      luaL_error(L, "%s: 'kinds[%d].layers' has both dense and MoE layers", call, kind);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* kinds = { { layers = { 1, 2, … }, beside = another's number, what differs there from other layers }, … }; one that stands beside another
** may have no layers of its own. */
static void read_kinds(lua_State *L, int index, pp_model *out) {
  const char *known[LAYER_KEYS + 3];
  bool beside[PP_MOST_FURTHER + 1] = { false }, empty[PP_MOST_FURTHER + 1] = { false };
  if (!pp_args_has(L, index, "kinds")) return;
  pp_args_table(L, index, call, "kinds");
  const int list = lua_gettop(L);
  const lua_Integer count = luaL_len(L, list);
  if (count > PP_MOST_FURTHER) luaL_error(L, "%s: 'kinds' may have at most %d entries, got %I", call, PP_MOST_FURTHER, count);
  list_layer_keys(known);
  known[LAYER_KEYS] = "layers";
  known[LAYER_KEYS + 1] = "beside";
  known[LAYER_KEYS + 2] = NULL;
  for (int i = 1; i <= (int)count; i++) {
    if (lua_geti(L, list, i) != LUA_TTABLE) luaL_error(L, "%s: 'kinds' must be a list of tables", call);
    pp_args_begin(L, lua_gettop(L), call, known);
    out->further[i - 1].layer = out->layer;
    change_fields(L, lua_gettop(L), &out->further[i - 1].layer);
    out->further[i - 1].beside = (uint8_t)pp_args_integer_or(L, lua_gettop(L), call, "beside", 1, count, 0);
    beside[out->further[i - 1].beside] = true;
    empty[i] = !pp_args_has(L, lua_gettop(L), "layers");
    if (!empty[i]) read_kind_layers(L, i, out);
    lua_pop(L, 1);
  }
  for (int i = 1; i <= (int)count; i++)
    if (empty[i] && !beside[i]) luaL_error(L, "%s: 'kinds[%d].layers' is missing", call, i);
  out->kinds = (int)count;
  lua_pop(L, 1);
}

void pp_check_shape(lua_State *L, int index, pp_model *out) {
  pp_error error;
  const char *known[KEYS + 1];
  pp_spend(PP_MAX_LAYERS);
  list_keys(known);
  index = lua_absindex(L, index);
  pp_args_begin(L, index, call, known);
  memset(out, 0, sizeof *out);
  read_fields(L, index, fields, FIELDS, out);
  read_fields(L, index, layer_fields, LAYER_FIELDS, &out->layer);
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
  read_kinds(L, index, out);
  if (pp_model_check(out, &error) != PP_OK) pp_args_raise(L, call, &error);
}

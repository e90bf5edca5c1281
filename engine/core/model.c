/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.c: parameters and FLOPs of a model shape, block by block.
** The formulas restate what the layers of each family hold; they were checked against published totals and, for FLOPs, against
** Megatron-LM's own function (tests/unit/model_test.c).
*/
#include "core/model.h"

#include <math.h>
#include <string.h>

/* --- checking ------------------------------------------------------------------------------------------------------------------ */

typedef struct {
  const char *name;
  int64_t value, low, high;
} size_check;

/* The limits on top are far beyond any model; they keep every product below within int64. */
static pp_status check_sizes(const size_check *sizes, size_t count, pp_error *error) {
  for (size_t i = 0; i < count; i++) {
    const size_check *size = &sizes[i];
    if (size->value >= size->low && size->value <= size->high) continue;
    return pp_invalid(error, size->name, (double)(size->value < size->low ? size->low : size->high),
                      "'%s' must be from %lld to %lld, got %lld", size->name, (long long)size->low, (long long)size->high,
                      (long long)size->value);
  }
  return PP_OK;
}

static int64_t count_moe_layers(const pp_model *model) {
  int64_t n = 0;
  for (int64_t i = 0; i < model->layers; i++) n += model->moe[i];
  return n;
}

/* The largest divisor of `of` that is at most `value`. */
static int64_t divisor_below(int64_t of, int64_t value) {
  while (of % value != 0) value--;
  return value;
}

static pp_status check_attention(const pp_model *model, pp_error *error) {
  if (model->attention == PP_ATTENTION_MLA) {
    const size_check sizes[] = {
      { "q_lora_rank", model->q_lora_rank, 0, 1 << 20 },   { "kv_lora_rank", model->kv_lora_rank, 1, 1 << 20 },
      { "qk_nope_dim", model->qk_nope_dim, 1, 1 << 14 },   { "qk_rope_dim", model->qk_rope_dim, 0, 1 << 14 },
      { "v_dim", model->v_dim, 1, 1 << 14 },
    };
    return check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  }
  const size_check sizes[] = { { "kv_heads", model->kv_heads, 1, model->heads }, { "head_dim", model->head_dim, 1, 1 << 14 } };
  const pp_status status = check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status != PP_OK) return status;
  if (model->heads % model->kv_heads != 0) {
    return pp_invalid(error, "kv_heads", (double)divisor_below(model->heads, model->kv_heads),
                      "'kv_heads' must divide 'heads', got %lld and %lld", (long long)model->kv_heads, (long long)model->heads);
  }
  return PP_OK;
}

static pp_status check_experts(const pp_model *model, int64_t moe_layers, pp_error *error) {
  if (moe_layers == 0) {
    if (model->experts == 0) return PP_OK;
    return pp_invalid(error, "experts", 0, "'experts' is %lld but no layer is a mixture of experts", (long long)model->experts);
  }
  const size_check sizes[] = {
    { "experts", model->experts, 1, 1 << 16 },
    { "experts_per_token", model->experts_per_token, 1, model->experts },
    { "expert_ffn", model->expert_ffn, 1, 1 << 22 },
    { "shared_ffn", model->shared_ffn, 0, 1 << 22 },
  };
  return check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
}

pp_status pp_model_check(const pp_model *model, pp_error *error) {
  const size_check sizes[] = {
    { "layers", model->layers, 1, PP_MAX_LAYERS },
    { "hidden", model->hidden, 1, 1 << 20 },
    { "vocab", model->vocab, 1, 1 << 24 },
    { "heads", model->heads, 1, 1 << 14 },
    { "attention_sinks", model->attention_sinks, 0, 1 << 14 },
    { "norms_per_layer", model->norms_per_layer, 0, 8 },
    { "learned_positions", model->learned_positions, 0, 1 << 24 },
    { "mtp_layers", model->mtp_layers, 0, 64 },
  };
  pp_status status = check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status == PP_OK) status = check_attention(model, error);
  if (status != PP_OK) return status;
  const int64_t moe_layers = count_moe_layers(model);
  if ((status = check_experts(model, moe_layers, error)) != PP_OK) return status;
  const size_check ffn = { "ffn", model->ffn, moe_layers < model->layers ? 1 : 0, 1 << 22 };
  if ((status = check_sizes(&ffn, 1, error)) != PP_OK) return status;
  const double experts = 3.0 * (double)model->experts * (double)model->hidden * (double)model->expert_ffn * (double)moe_layers;
  if (experts > 1e17) {
    return pp_invalid(error, "experts", NAN, "'experts' × 'expert_ffn' × 'hidden' over %lld layers would be more than 10^17 parameters",
                      (long long)moe_layers);
  }
  return PP_OK;
}

/* --- parameters ---------------------------------------------------------------------------------------------------------------- */

static int64_t norm_size(const pp_model *model) {
  return model->norms_per_layer == 0 ? 0 : model->hidden * (model->norm_bias ? 2 : 1);
}

/* Matrices of a feed-forward of that width: up (twice when gated) and down. */
static int64_t ffn_weights(const pp_model *model, int64_t width) {
  return (model->gated ? 3 : 2) * model->hidden * width;
}

static int64_t query_size(const pp_model *model) {
  return model->heads * (model->attention == PP_ATTENTION_MLA ? model->qk_nope_dim + model->qk_rope_dim : model->head_dim);
}

/* MLA's projections down to the latents: not split by TP (Megatron-LM holds them on every TP rank). */
static int64_t mla_down_weights(const pp_model *model) {
  return model->hidden * (model->q_lora_rank + model->kv_lora_rank + model->qk_rope_dim);
}

static int64_t mla_latent_norms(const pp_model *model) {
  return model->q_lora_rank + model->kv_lora_rank;
}

/* Attention matrices that TP splits, without biases. */
static int64_t attention_split_weights(const pp_model *model) {
  if (model->attention == PP_ATTENTION_MLA) {
    const int64_t query_input = model->q_lora_rank > 0 ? model->q_lora_rank : model->hidden;
    return query_input * query_size(model) + model->kv_lora_rank * model->heads * (model->qk_nope_dim + model->v_dim) +
           model->heads * model->v_dim * model->hidden;
  }
  return model->hidden * model->head_dim * (model->heads + 2 * model->kv_heads) + model->heads * model->head_dim * model->hidden;
}

static void add_attention(const pp_model *model, pp_block_parameters *block) {
  block->tensor += attention_split_weights(model) + model->attention_sinks;
  if (model->attention == PP_ATTENTION_MLA) {
    block->replicated += mla_down_weights(model) + mla_latent_norms(model);
  } else {
    if (model->qkv_bias) block->tensor += model->head_dim * (model->heads + 2 * model->kv_heads);
    if (model->qk_norm == PP_QK_NORM_HEAD) block->replicated += 2 * model->head_dim;
    if (model->qk_norm == PP_QK_NORM_FULL) block->replicated += model->head_dim * (model->heads + model->kv_heads);
  }
  /* The bias behind a row-parallel product is added once, after the reduction: every TP rank holds it. */
  if (model->output_bias) block->replicated += model->hidden;
  block->replicated += model->norms_per_layer * norm_size(model);
}

static void add_dense_ffn(const pp_model *model, pp_block_parameters *block) {
  block->tensor += ffn_weights(model, model->ffn);
  if (model->mlp_bias) {
    block->tensor += (model->gated ? 2 : 1) * model->ffn;
    block->replicated += model->hidden;
  }
}

/* One routed expert. */
static int64_t expert_size(const pp_model *model) {
  int64_t size = ffn_weights(model, model->expert_ffn);
  if (model->expert_bias) size += (model->gated ? 2 : 1) * model->expert_ffn + model->hidden;
  return size;
}

static void add_moe_ffn(const pp_model *model, pp_block_parameters *block) {
  block->tensor += ffn_weights(model, model->shared_ffn);
  block->replicated += model->hidden * model->experts;
  if (model->router_bias) block->replicated += model->experts;
  if (model->router_correction_bias) block->replicated += model->experts;
  if (model->shared_gate) block->replicated += model->hidden;
  block->expert += model->experts * expert_size(model);
}

void pp_model_block_parameters(const pp_model *model, pp_block_parameters blocks[PP_BLOCKS]) {
  memset(blocks, 0, PP_BLOCKS * sizeof *blocks);
  blocks[PP_BLOCK_EMBEDDING].tensor = model->vocab * model->hidden;
  blocks[PP_BLOCK_EMBEDDING].replicated = model->learned_positions * model->hidden + (model->embedding_norm ? norm_size(model) : 0);
  add_attention(model, &blocks[PP_BLOCK_DENSE]);
  add_dense_ffn(model, &blocks[PP_BLOCK_DENSE]);
  if (model->experts > 0) {
    add_attention(model, &blocks[PP_BLOCK_MOE]);
    add_moe_ffn(model, &blocks[PP_BLOCK_MOE]);
  }
  blocks[PP_BLOCK_HEAD].tensor = model->vocab * model->hidden + (model->head_bias ? model->vocab : 0);
  blocks[PP_BLOCK_HEAD].replicated = norm_size(model);
  if (model->mtp_layers > 0) {
    /* DeepSeek-V3 report §2.2: M_k projects the concatenated norms of the hidden state and of the next token's embedding, 2h → h; the
    ** module's own final norm stands before the shared head. */
    pp_block_parameters *mtp = &blocks[PP_BLOCK_MTP];
    *mtp = blocks[model->moe[model->layers - 1] ? PP_BLOCK_MOE : PP_BLOCK_DENSE];
    mtp->tensor += 2 * model->hidden * model->hidden;
    mtp->replicated += 3 * norm_size(model);
  }
}

static int64_t block_total(const pp_block_parameters *block) {
  return block->tensor + block->replicated + block->expert;
}

/* Adapters of rank 1 of the weights of one feed-forward: gate, up, down. */
static int64_t ffn_adapters(const pp_model *model, int64_t width) {
  return width == 0 ? 0 : (model->gated ? 3 : 2) * (width + model->hidden);
}

/* … of a layer's attention: weights that a checkpoint holds apart are apart. */
static int64_t attention_adapters(const pp_model *model) {
  const int64_t hidden = model->hidden, query = query_size(model), key = model->kv_heads * model->head_dim;
  if (model->attention != PP_ATTENTION_MLA) return 2 * (query + hidden) + 2 * (key + hidden);
  const int64_t latent = model->q_lora_rank, compressed = model->kv_lora_rank, value = model->heads * model->v_dim;
  const int64_t queries = latent > 0 ? (latent + hidden) + (query + latent) : query + hidden;
  return queries + (compressed + model->qk_rope_dim + hidden) + (model->heads * model->qk_nope_dim + value + compressed) + (hidden + value);
}

static int64_t adapters_of(const pp_model *model, int64_t moe_layers) {
  const int64_t experts = model->experts * ffn_adapters(model, model->expert_ffn) + ffn_adapters(model, model->shared_ffn);
  return model->layers * attention_adapters(model) + moe_layers * experts + (model->layers - moe_layers) * ffn_adapters(model, model->ffn);
}

pp_parameter_totals pp_model_parameters(const pp_model *model) {
  pp_block_parameters blocks[PP_BLOCKS];
  pp_parameter_totals totals;
  const int64_t moe_layers = count_moe_layers(model);
  pp_model_block_parameters(model, blocks);
  const int64_t embedding = block_total(&blocks[PP_BLOCK_EMBEDDING]);
  const int64_t table = model->vocab * model->hidden;
  const int64_t body = (model->layers - moe_layers) * block_total(&blocks[PP_BLOCK_DENSE]) +
                       moe_layers * block_total(&blocks[PP_BLOCK_MOE]) + block_total(&blocks[PP_BLOCK_HEAD]);
  const int64_t idle_experts = moe_layers * (model->experts - model->experts_per_token) * expert_size(model);
  totals.total = body + embedding - (model->tied_embeddings ? table : 0);
  totals.active = totals.total - idle_experts;
  totals.active_without_embedding = body - idle_experts;
  totals.mtp = model->mtp_layers * block_total(&blocks[PP_BLOCK_MTP]);
  totals.adapters = adapters_of(model, moe_layers);
  return totals;
}

/* --- FLOPs --------------------------------------------------------------------------------------------------------------------- */

void pp_model_block_flops(const pp_model *model, int64_t sequence_length, pp_block_flops blocks[PP_BLOCKS]) {
  const double s = (double)sequence_length;
  const bool mla = model->attention == PP_ATTENTION_MLA;
  const double logits = 2.0 * (double)(model->vocab * model->hidden);
  double projections = 2.0 * (double)attention_split_weights(model);
  /* Q·Kᵀ over the query size and P·V over the value size, each half of s × s under the causal mask: 2 · s/2 · size per token. */
  const double core = s * (double)query_size(model) + s * (double)(model->heads * (mla ? model->v_dim : model->head_dim));
  memset(blocks, 0, PP_BLOCKS * sizeof *blocks);
  /* Megatron's function counts a multiply-add for each weight of the latents' norms, and of an MTP module's norms below. */
  if (mla) projections += 2.0 * (double)(mla_down_weights(model) + mla_latent_norms(model));
  blocks[PP_BLOCK_DENSE].linear = projections + 2.0 * (double)ffn_weights(model, model->ffn);
  blocks[PP_BLOCK_DENSE].attention = core;
  if (model->experts > 0) {
    blocks[PP_BLOCK_MOE].linear = projections + 2.0 * (double)ffn_weights(model, model->shared_ffn);
    blocks[PP_BLOCK_MOE].expert = 2.0 * (double)(model->experts_per_token * ffn_weights(model, model->expert_ffn));
    blocks[PP_BLOCK_MOE].attention = core;
    blocks[PP_BLOCK_MOE].router = 2.0 * (double)(model->hidden * model->experts);
  }
  blocks[PP_BLOCK_HEAD].linear = logits;
  if (model->mtp_layers > 0) {
    blocks[PP_BLOCK_MTP] = blocks[model->moe[model->layers - 1] ? PP_BLOCK_MOE : PP_BLOCK_DENSE];
    blocks[PP_BLOCK_MTP].linear += 2.0 * (double)(2 * model->hidden * model->hidden + 3 * model->hidden) + logits;
  }
}

static int add_feed_forward(const pp_model *model, int64_t width, int count, pp_product *out) {
  if (width == 0) return count;
  out[count] = (pp_product){ (model->gated ? 2 : 1) * width, model->hidden, PP_SPLIT_COLUMNS };
  out[count + 1] = (pp_product){ model->hidden, width, PP_SPLIT_ROWS };
  return count + 2;
}

static int attention_products(const pp_model *model, pp_product *out) {
  const int64_t hidden = model->hidden, query = query_size(model);
  int count = 0;
  if (model->attention != PP_ATTENTION_MLA) {
    out[0] = (pp_product){ query + 2 * model->kv_heads * model->head_dim, hidden, PP_SPLIT_COLUMNS };
    out[1] = (pp_product){ hidden, query, PP_SPLIT_ROWS };
    return 2;
  }
  if (model->q_lora_rank > 0) out[count++] = (pp_product){ model->q_lora_rank, hidden, PP_SPLIT_NOTHING };
  out[count++] = (pp_product){ query, model->q_lora_rank > 0 ? model->q_lora_rank : hidden, PP_SPLIT_COLUMNS };
  out[count++] = (pp_product){ model->kv_lora_rank + model->qk_rope_dim, hidden, PP_SPLIT_NOTHING };
  out[count++] = (pp_product){ model->heads * (model->qk_nope_dim + model->v_dim), model->kv_lora_rank, PP_SPLIT_COLUMNS };
  out[count++] = (pp_product){ hidden, model->heads * model->v_dim, PP_SPLIT_ROWS };
  return count;
}

int pp_model_block_products(const pp_model *model, pp_block block, pp_product out[PP_MOST_PRODUCTS]) {
  const bool mtp = block == PP_BLOCK_MTP && model->mtp_layers > 0;
  const bool moe = block == PP_BLOCK_MOE || (mtp && model->moe[model->layers - 1]);
  if (!mtp && block != PP_BLOCK_DENSE && block != PP_BLOCK_MOE) return 0;
  int count = add_feed_forward(model, moe ? model->shared_ffn : model->ffn, attention_products(model, out), out);
  if (mtp) out[count++] = (pp_product){ model->hidden, 2 * model->hidden, PP_SPLIT_COLUMNS };
  return count;
}

double pp_model_flops_per_token(const pp_model *model, int64_t sequence_length) {
  pp_block_flops blocks[PP_BLOCKS];
  const double moe_layers = (double)count_moe_layers(model);
  const double count[PP_BLOCKS] = {
    [PP_BLOCK_EMBEDDING] = 1, [PP_BLOCK_DENSE] = (double)model->layers - moe_layers, [PP_BLOCK_MOE] = moe_layers,
    [PP_BLOCK_HEAD] = 1, [PP_BLOCK_MTP] = (double)model->mtp_layers,
  };
  double forward = 0;
  pp_model_block_flops(model, sequence_length, blocks);
  for (int i = 0; i < PP_BLOCKS; i++) forward += count[i] * (blocks[i].linear + blocks[i].expert + blocks[i].attention);
  return 3 * forward;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.c: parameters and FLOPs of a model shape, block by block.
** The formulas restate what the layers of each family hold; they were checked against published totals and, for FLOPs, against
** Megatron-LM's own function (tests/unit/model_test.c).
*/
#include "core/model.h"

#include <math.h>
#include <string.h>

#include "core/mixers.h"

/* --- kinds of layers --------------------------------------------------------------------------------------------------------------- */

pp_block pp_model_block_of(const pp_model *model, int64_t layer) {
  if (model->kind[layer] > 0) return (pp_block)(PP_BLOCK_FURTHER + model->kind[layer] - 1);
  return model->moe[layer] ? PP_BLOCK_MOE : PP_BLOCK_DENSE;
}

pp_block pp_model_last_block(const pp_model *model) {
  return model->layers > 0 ? pp_model_block_of(model, model->layers - 1) : PP_BLOCK_DENSE;
}

bool pp_model_block_is_moe(const pp_model *model, pp_block block) {
  return block >= PP_BLOCK_FURTHER ? model->further[block - PP_BLOCK_FURTHER].moe : block == PP_BLOCK_MOE;
}

/* Both kinds that have no sizes of their own are priced where the model has experts, whether or not a layer is of them. */
bool pp_model_has_layers_of(const pp_model *model, pp_block block) {
  if (block == PP_BLOCK_DENSE) return true;
  if (block == PP_BLOCK_MOE) return model->experts > 0;
  return block >= PP_BLOCK_FURTHER && (int)block - PP_BLOCK_FURTHER < model->kinds;
}

pp_block pp_model_beside(const pp_model *model, pp_block block) {
  const int beside = block >= PP_BLOCK_FURTHER && block < PP_BLOCKS ? model->further[block - PP_BLOCK_FURTHER].beside : 0;
  return beside > 0 ? (pp_block)(PP_BLOCK_FURTHER + beside - 1) : PP_BLOCKS;
}

const pp_model *pp_model_as(const pp_model *model, pp_block block, pp_model *room) {
  if (block < PP_BLOCK_FURTHER) return model;
  *room = *model;
  room->layer = model->further[block - PP_BLOCK_FURTHER].layer;
  return room;
}

/* --- parameters ---------------------------------------------------------------------------------------------------------------- */

static int64_t norm_size(const pp_model *model) {
  return model->norms_per_layer == 0 ? 0 : model->hidden * (model->norm_bias ? 2 : 1);
}

/* Matrices of a feed-forward of that width: up (twice when gated) and down. */
static int64_t ffn_weights(const pp_model *model, int64_t width) {
  return (model->gated ? 3 : 2) * model->hidden * width;
}

/* Width of the attention output, which the output projection reads. */
static int64_t value_size(const pp_model *model) {
  return model->heads * (model->v_dim > 0 ? model->v_dim : model->head_dim);
}

/* Keys and values of all heads. */
static int64_t key_value_size(const pp_model *model) {
  const int64_t values = model->shared_kv ? 0 : model->v_dim > 0 ? model->v_dim : model->head_dim;
  return model->kv_heads * (model->head_dim + values);
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

/*
** The indexer of sparse attention: its queries from the latent, one key for all its heads, a weight for each head; on every TP rank (DeepSeek-V3.2,
** https://arxiv.org/abs/2512.02556, section 2.1; transformers models/deepseek_v32, DeepseekV32Indexer). Beside GQA queries come from the stream and
** heads choose each for itself, without weights (MiniMax-M3: transformers models/minimax_m3_vl, MiniMaxM3VLIndexer).
*/
static int64_t indexer_from(const pp_model *model) {
  return model->attention == PP_ATTENTION_MLA && model->q_lora_rank > 0 ? model->q_lora_rank : model->hidden;
}

/* What is projected from the stream: a key, and a weight a head. */
static int64_t indexer_columns(const pp_model *model) {
  return model->index_heads == 0 ? 0 : model->index_dim + (model->attention == PP_ATTENTION_MLA ? model->index_heads : 0);
}

static int64_t indexer_weights(const pp_model *model) {
  return model->index_heads * model->index_dim * indexer_from(model) + model->hidden * indexer_columns(model);
}

static int64_t indexer_norm(const pp_model *model) {
  return model->index_heads > 0 ? 2 * model->index_dim : 0;   /* of its key: weight and bias; or of query and key */
}

/* Attention matrices that TP splits, without biases. */
static int64_t attention_split_weights(const pp_model *model) {
  if (model->attention == PP_ATTENTION_MLA) {
    const int64_t query_input = model->q_lora_rank > 0 ? model->q_lora_rank : model->hidden;
    return query_input * query_size(model) + model->kv_lora_rank * model->heads * (model->qk_nope_dim + model->v_dim) +
           model->heads * model->v_dim * model->hidden;
  }
  return model->hidden * (query_size(model) + key_value_size(model) + model->output_gate) + value_size(model) * model->hidden;
}

static void add_mixer(const pp_model *model, pp_block_parameters *block) {
  pp_mixer mixer;
  pp_mixer_of(model, &mixer);
  for (int i = 0; i < mixer.products; i++) {
    const int64_t weights = mixer.product[i].n * mixer.product[i].k;
    if (mixer.product[i].split == PP_SPLIT_NOTHING) block->replicated += weights;
    else block->tensor += weights;
  }
  block->tensor += mixer.split;
  block->replicated += mixer.replicated;
}

static void add_attention(const pp_model *model, pp_block_parameters *block) {
  block->replicated += model->norms_per_layer * norm_size(model) + model->scales;
  if (model->attention == PP_ATTENTION_NONE) return;
  /* The bias behind a row-parallel product is added once, after the reduction: every TP rank holds it. */
  if (model->output_bias) block->replicated += model->hidden;
  if (pp_mixer_is(model->attention)) {
    add_mixer(model, block);
    return;
  }
  block->tensor += attention_split_weights(model) + model->attention_sinks;
  block->replicated += indexer_weights(model) + indexer_norm(model);
  if (model->attention == PP_ATTENTION_MLA) {
    block->replicated += mla_down_weights(model) + mla_latent_norms(model);
  } else {
    if (model->qkv_bias) block->tensor += query_size(model) + key_value_size(model) + model->output_gate;
    if (model->qk_norm == PP_QK_NORM_HEAD) block->replicated += 2 * model->head_dim;
    if (model->qk_norm == PP_QK_NORM_FULL) block->replicated += model->head_dim * (model->heads + model->kv_heads);
  }
}

static void add_dense_ffn(const pp_model *model, pp_block_parameters *block) {
  if (model->ffn == 0) return;
  block->tensor += ffn_weights(model, model->ffn);
  if (model->mlp_bias) {
    block->tensor += (model->gated ? 2 : 1) * model->ffn;
    block->replicated += model->hidden;
  }
}

int64_t pp_model_expert_hidden(const pp_model *model) {
  return model->expert_hidden > 0 ? model->expert_hidden : model->hidden;
}

/* Of experts_per_token choices among all: those that fall on one that computes. */
double pp_model_experts_per_token(const pp_model *model) {
  const double all = (double)(model->experts + model->zero_experts);
  return model->zero_experts > 0 ? (double)(model->experts_per_token * model->experts) / all : (double)model->experts_per_token;
}

/* The matrices of a routed expert. */
static int64_t expert_weights(const pp_model *model) {
  return (model->gated ? 3 : 2) * pp_model_expert_hidden(model) * model->expert_ffn;
}

/* One routed expert. */
static int64_t expert_size(const pp_model *model) {
  int64_t size = expert_weights(model);
  if (model->expert_bias) size += (model->gated ? 2 : 1) * model->expert_ffn + pp_model_expert_hidden(model);
  return size;
}

/* From the residual stream to what routed experts read, and back: on every TP rank (Megatron-LM moe_layer.py, fc1_latent_proj). */
static int64_t latent_weights(const pp_model *model) {
  return 2 * model->hidden * model->expert_hidden;
}

static void add_moe_ffn(const pp_model *model, pp_block_parameters *block) {
  block->tensor += ffn_weights(model, model->shared_ffn);
  const int64_t routed = model->experts + model->zero_experts;
  block->replicated += model->hidden * routed + latent_weights(model);
  if (model->router_bias) block->replicated += routed;
  if (model->router_correction_bias) block->replicated += routed;
  if (model->shared_gate) block->replicated += model->hidden;
  block->expert += model->experts * expert_size(model);
}

int64_t pp_model_stream_width(const pp_model *model) {
  return model->hidden * (model->streams > 1 ? model->streams : 1);
}

/*
** Manifold-constrained hyper-connections (https://arxiv.org/abs/2512.24880; transformers models/deepseek_v4, DeepseekV4HyperConnection): from all
** streams come a weight of each to read, one to write, and a matrix that mixes them; each of these has a bias, and the three a scale.
*/
int64_t pp_model_stream_columns(const pp_model *model) {
  return model->streams > 1 ? (2 + model->streams) * model->streams : 0;
}

/* Of attention and of the feed-forward, one each. */
static int64_t stream_weights(const pp_model *model) {
  const int64_t columns = pp_model_stream_columns(model);
  return columns > 0 ? 2 * (columns * (pp_model_stream_width(model) + 1) + 3) : 0;
}

static void layer_parameters(const pp_model *model, bool moe, pp_block_parameters *block) {
  block->replicated += stream_weights(model);
  add_attention(model, block);
  if (moe) add_moe_ffn(model, block);
  else add_dense_ffn(model, block);
}

void pp_model_kind_parameters(const pp_model *model, pp_block_parameters blocks[PP_BLOCKS]) {
  memset(blocks, 0, PP_BLOCKS * sizeof *blocks);
  blocks[PP_BLOCK_EMBEDDING].tensor = model->vocab * model->hidden;
  blocks[PP_BLOCK_EMBEDDING].replicated = model->learned_positions * model->hidden + (model->embedding_norm ? norm_size(model) : 0);
  layer_parameters(model, false, &blocks[PP_BLOCK_DENSE]);
  if (model->experts > 0) layer_parameters(model, true, &blocks[PP_BLOCK_MOE]);
  for (int i = 0; i < model->kinds; i++) {
    pp_model room;
    layer_parameters(pp_model_as(model, (pp_block)(PP_BLOCK_FURTHER + i), &room), model->further[i].moe, &blocks[PP_BLOCK_FURTHER + i]);
  }
  blocks[PP_BLOCK_HEAD].tensor = model->vocab * model->hidden + (model->head_bias ? model->vocab : 0);
  blocks[PP_BLOCK_HEAD].replicated = norm_size(model) + (model->streams > 1 ? model->streams * (pp_model_stream_width(model) + 1) + 1 : 0);
  if (model->mtp_layers > 0) {
    /* DeepSeek-V3 report §2.2: M_k projects the concatenated norms of the hidden state and of the next token's embedding, 2h → h; the
    ** module's own final norm stands before the shared head. */
    pp_block_parameters *mtp = &blocks[PP_BLOCK_MTP];
    *mtp = blocks[pp_model_last_block(model)];
    mtp->tensor += 2 * model->hidden * model->hidden;
    mtp->replicated += 3 * norm_size(model);
  }
}

void pp_model_block_parameters(const pp_model *model, pp_block_parameters blocks[PP_BLOCKS]) {
  pp_model_kind_parameters(model, blocks);
  for (int i = PP_BLOCK_FURTHER; i < PP_BLOCK_FURTHER + model->kinds; i++) {
    const pp_block beside = pp_model_beside(model, (pp_block)i);
    if (beside == PP_BLOCKS) continue;
    blocks[i].tensor += blocks[beside].tensor;
    blocks[i].replicated += blocks[beside].replicated;
  }
}

static int64_t block_total(const pp_block_parameters *block) {
  return block->tensor + block->replicated + block->expert;
}

/* Adapters of rank 1 of the weights of one feed-forward: gate, up, down. */
static int64_t ffn_adapters(const pp_model *model, int64_t width) {
  return width == 0 ? 0 : (model->gated ? 3 : 2) * (width + model->hidden);
}

/* … of a layer's attention: weights that a checkpoint holds apart are apart; a mixer's products are whole. */
static int64_t attention_adapters(const pp_model *model) {
  const int64_t hidden = model->hidden, query = query_size(model), key = model->kv_heads * model->head_dim;
  if (model->attention == PP_ATTENTION_NONE) return 0;
  if (pp_mixer_is(model->attention)) {
    pp_mixer mixer;
    int64_t sum = 0;
    pp_mixer_of(model, &mixer);
    for (int i = 0; i < mixer.products; i++) sum += mixer.product[i].n + mixer.product[i].k;
    return sum;
  }
  if (model->attention != PP_ATTENTION_MLA) {
    const int64_t gate = model->output_gate > 0 ? model->output_gate + hidden : 0, values = key_value_size(model) - key;
    return (query + hidden) + (value_size(model) + hidden) + (key + hidden) + (values > 0 ? values + hidden : 0) + gate;
  }
  const int64_t latent = model->q_lora_rank, compressed = model->kv_lora_rank, value = model->heads * model->v_dim;
  const int64_t queries = latent > 0 ? (latent + hidden) + (query + latent) : query + hidden;
  return queries + (compressed + model->qk_rope_dim + hidden) + (model->heads * model->qk_nope_dim + value + compressed) + (hidden + value);
}

/* Parameters of a layer's experts that compute nothing for a token. */
static int64_t idle_experts_of(const pp_model *model) {
  if (model->zero_experts == 0) return (model->experts - model->experts_per_token) * expert_size(model);
  return (int64_t)llround(((double)model->experts - pp_model_experts_per_token(model)) * (double)expert_size(model));
}

static int64_t layer_adapters(const pp_model *model, bool moe) {
  if (!moe) return attention_adapters(model) + ffn_adapters(model, model->ffn);
  const int64_t width = pp_model_expert_hidden(model), latent = model->expert_hidden > 0 ? 2 * (model->hidden + width) : 0;
  const int64_t expert = (model->gated ? 3 : 2) * (model->expert_ffn + width);
  return attention_adapters(model) + model->experts * expert + latent + ffn_adapters(model, model->shared_ffn);
}

static int64_t count_layers(const pp_model *model, pp_block block) {
  int64_t n = 0;
  for (int64_t i = 0; i < model->layers; i++) n += pp_model_block_of(model, i) == block;
  return n;
}

pp_parameter_totals pp_model_parameters(const pp_model *model) {
  pp_block_parameters blocks[PP_BLOCKS];
  pp_parameter_totals totals = { 0 };
  pp_model_block_parameters(model, blocks);
  const int64_t embedding = block_total(&blocks[PP_BLOCK_EMBEDDING]);
  const int64_t table = model->vocab * model->hidden;
  int64_t body = block_total(&blocks[PP_BLOCK_HEAD]), idle_experts = 0;
  for (int block = 0; block < PP_BLOCKS; block++) {
    const int64_t layers = pp_model_has_layers_of(model, (pp_block)block) ? count_layers(model, (pp_block)block) : 0;
    if (layers == 0) continue;
    const bool moe = pp_model_block_is_moe(model, (pp_block)block);
    pp_model room;
    const pp_model *kind = pp_model_as(model, (pp_block)block, &room);
    body += layers * block_total(&blocks[block]);
    if (moe) idle_experts += layers * idle_experts_of(kind);
    totals.adapters += layers * layer_adapters(kind, moe);
    const pp_block beside = pp_model_beside(model, (pp_block)block);
    if (beside < PP_BLOCKS) totals.adapters += layers * layer_adapters(pp_model_as(model, beside, &room), false);
  }
  totals.total = body + embedding - (model->tied_embeddings ? table : 0);
  totals.active = totals.total - idle_experts;
  totals.active_without_embedding = body - idle_experts;
  totals.tower = model->tower;
  totals.mtp = model->mtp_layers * block_total(&blocks[PP_BLOCK_MTP]);
  return totals;
}

/* --- FLOPs --------------------------------------------------------------------------------------------------------------------- */

/*
** Forward FLOPs per token of what mixes tokens: products with weights, and the core. Q·Kᵀ over the query size and P·V over the value size, each
** half of s × s under the causal mask: 2 · s/2 · size per token. Where a query attends to index_topk tokens that an indexer finds, the core's
** sequence is no longer than that, and the indexer's scores, one product, take half of s × s. So it is with a window of the last tokens; a
** chunk is a sequence of its own.
*/
static void mixing_flops(const pp_model *model, double s, double *linear, double *core) {
  *linear = *core = 0;
  if (model->attention == PP_ATTENTION_NONE) return;
  if (pp_mixer_is(model->attention)) {
    pp_mixer mixer;
    pp_mixer_of(model, &mixer);
    for (int i = 0; i < mixer.products; i++) *linear += 2.0 * (double)mixer.product[i].n * (double)mixer.product[i].k;
    *core = mixer.recurrence + pp_mixer_core(model, s);
    return;
  }
  const double all = model->chunk > 0 ? fmin(s, (double)model->chunk) : s;
  const double length = pp_mixer_reach(pp_mixer_reach(all, (double)model->window), (double)model->index_topk);
  *linear = 2.0 * (double)(attention_split_weights(model) + indexer_weights(model));
  *core = length * (double)(query_size(model) + value_size(model)) + s * (double)(model->index_heads * model->index_dim);
  /* Megatron's function counts a multiply-add for each weight of the latents' norms, and of an MTP module's norms below. */
  if (model->attention == PP_ATTENTION_MLA)
    *linear += 2.0 * (double)(mla_down_weights(model) + mla_latent_norms(model));
}

static void layer_flops(const pp_model *model, double s, bool moe, pp_block_flops *block) {
  mixing_flops(model, s, &block->linear, &block->attention);
  block->linear += 2.0 * (double)ffn_weights(model, moe ? model->shared_ffn : model->ffn);
  block->linear += 2 * 2.0 * (double)(pp_model_stream_columns(model) * pp_model_stream_width(model));
  if (!moe) return;
  block->linear += 2.0 * (double)latent_weights(model);
  block->expert = 2.0 * pp_model_experts_per_token(model) * (double)expert_weights(model);
  block->router = 2.0 * (double)(model->hidden * (model->experts + model->zero_experts));
}

void pp_model_kind_flops(const pp_model *model, double length, pp_block_flops blocks[PP_BLOCKS]) {
  const double s = length, logits = 2.0 * (double)(model->vocab * model->hidden);
  memset(blocks, 0, PP_BLOCKS * sizeof *blocks);
  layer_flops(model, s, false, &blocks[PP_BLOCK_DENSE]);
  if (model->experts > 0) layer_flops(model, s, true, &blocks[PP_BLOCK_MOE]);
  for (int i = 0; i < model->kinds; i++) {
    pp_model room;
    layer_flops(pp_model_as(model, (pp_block)(PP_BLOCK_FURTHER + i), &room), s, model->further[i].moe, &blocks[PP_BLOCK_FURTHER + i]);
  }
  blocks[PP_BLOCK_HEAD].linear = logits + (model->streams > 1 ? 2.0 * (double)(model->streams * pp_model_stream_width(model)) : 0);
  if (model->mtp_layers > 0) {
    blocks[PP_BLOCK_MTP] = blocks[pp_model_last_block(model)];
    blocks[PP_BLOCK_MTP].linear += 2.0 * (double)(2 * model->hidden * model->hidden + 3 * model->hidden) + logits;
  }
}

void pp_model_block_flops(const pp_model *model, double length, pp_block_flops blocks[PP_BLOCKS]) {
  pp_model_kind_flops(model, length, blocks);
  for (int i = PP_BLOCK_FURTHER; i < PP_BLOCK_FURTHER + model->kinds; i++) {
    const pp_block beside = pp_model_beside(model, (pp_block)i);
    if (beside == PP_BLOCKS) continue;
    blocks[i].linear += blocks[beside].linear;
    blocks[i].attention += blocks[beside].attention;
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
  if (model->attention == PP_ATTENTION_NONE) return 0;
  if (pp_mixer_is(model->attention)) {
    pp_mixer mixer;
    pp_mixer_of(model, &mixer);
    memcpy(out, mixer.product, (size_t)mixer.products * sizeof *out);
    return mixer.products;
  }
  if (model->index_heads > 0) {
    out[count++] = (pp_product){ model->index_heads * model->index_dim, indexer_from(model), PP_SPLIT_NOTHING };
    out[count++] = (pp_product){ indexer_columns(model), hidden, PP_SPLIT_NOTHING };
  }
  if (model->attention != PP_ATTENTION_MLA) {
    out[count++] = (pp_product){ query + key_value_size(model) + model->output_gate, hidden, PP_SPLIT_COLUMNS };
    out[count++] = (pp_product){ hidden, value_size(model), PP_SPLIT_ROWS };
    return count;
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
  const pp_block layer = mtp ? pp_model_last_block(model) : block;
  if (layer != PP_BLOCK_DENSE && layer != PP_BLOCK_MOE && layer < PP_BLOCK_FURTHER) return 0;
  pp_model room;
  const pp_model *kind = pp_model_as(model, layer, &room);
  int count = attention_products(kind, out);
  const bool moe = pp_model_block_is_moe(model, layer);
  count = add_feed_forward(kind, moe ? kind->shared_ffn : kind->ffn, count, out);
  if (moe && kind->expert_hidden > 0) {
    out[count++] = (pp_product){ kind->expert_hidden, kind->hidden, PP_SPLIT_NOTHING };
    out[count++] = (pp_product){ kind->hidden, kind->expert_hidden, PP_SPLIT_NOTHING };
  }
  for (int i = 0; i < 2 && model->streams > 1; i++)
    out[count++] = (pp_product){ pp_model_stream_columns(model), pp_model_stream_width(model), PP_SPLIT_NOTHING };
  if (mtp) out[count++] = (pp_product){ model->hidden, 2 * model->hidden, PP_SPLIT_COLUMNS };
  return count;
}

double pp_model_flops_per_token(const pp_model *model, double length) {
  pp_block_flops blocks[PP_BLOCKS];
  double forward = 0;
  pp_model_block_flops(model, length, blocks);
  for (int i = 0; i < PP_BLOCKS; i++) {
    const bool layer = i == PP_BLOCK_DENSE || i == PP_BLOCK_MOE || i >= PP_BLOCK_FURTHER;
    const double count = layer ? (double)count_layers(model, (pp_block)i) : i == PP_BLOCK_MTP ? (double)model->mtp_layers : 1;
    forward += count * (blocks[i].linear + blocks[i].expert + blocks[i].attention);
  }
  return 3 * forward;
}

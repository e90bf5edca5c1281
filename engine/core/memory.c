/* SPDX-License-Identifier: Apache-2.0 */
/*
** memory.c: what a block keeps on a GPU. Elements per token are counted tensor by tensor, as backward reads them; every expression is in
** bytes per token until pp_memory_blocks multiplies by the tokens of a microbatch.
**
** Sources: Korthikanti et al. 2205.05198 §4 and Table 2 (which tensors a GPT layer keeps, and how TP and sequence parallelism split
** them); Megatron-LM optimizer/distrib_optimizer (bytes of state); DeepSeek-V3 report §3.3 (fp8 caches, module-wise recompute). With
** RMSNorm, SwiGLU, GQA and fused attention the same inventory gives 8h + 4ad + 4kd + 4a + 6f.
*/
#include "core/memory.h"

#include <math.h>
#include <string.h>

#include "core/loss.h"
#include "core/meter.h"
#include "core/mixers.h"
#include "core/shards.h"

/* What one layer keeps, in bytes per token on one GPU. */
typedef struct {
  double stored;            /* from F to I */
  double recomputed;        /* dropped after F, back from the start of I */
  double inputs;            /* of linear layers: W reads them, recomputed or not */
  double output_gradients;  /* of linear layers: W reads them too */
  double gradient;          /* the largest gradient temporary of the backward pass */
} ledger;

/* Divisors of what TP splits, and of what only sequence parallelism splits. */
typedef struct {
  double tensor, sequence;
} split;

/* Bytes of an element of what is kept in the precision of the weights: 16 bits, above fp8 too, and 32 in fp32. */
static double wide(const pp_training *training) {
  return training->precision == PP_FP32 ? 4 : 2;
}

static void keep(ledger *book, double bytes, bool dropped) {
  if (dropped) book->recomputed += bytes;
  else book->stored += bytes;
}

/* The input of a linear layer: kept like any tensor, and W reads it. */
static void keep_input(ledger *book, double bytes, bool dropped) {
  keep(book, bytes, dropped);
  book->inputs += bytes;
}

static void temporary(ledger *book, double bytes) {
  book->gradient = fmax(book->gradient, bytes);
}

static double value_dim(const pp_model *model) {
  return (double)(model->v_dim > 0 ? model->v_dim : model->head_dim);
}

/* K and V on one TP rank: fewer heads than ranks are replicated. */
static double kv_width(const pp_model *model, double tensor) {
  return ((double)model->head_dim + value_dim(model)) * fmax((double)model->kv_heads / tensor, 1);
}

/* K alone. */
static double key_width(const pp_model *model, double tensor) {
  return (double)model->head_dim * fmax((double)model->kv_heads / tensor, 1);
}

/*
** A softmax that is stored: an element a score; with dropout its mask and output too. In backward the gradient of its output stands beside it,
** which Megatron's kernel turns into that of the scores in place (NVIDIA/apex csrc/megatron, bwd_cuda); with dropout two. Fused attention keeps one
** fp32 a row instead.
*/
static void add_scores(ledger *book, const pp_model *model, const pp_training *training, split by) {
  const double heads = (double)model->heads / by.tensor, score = wide(training) * (training->dropout ? 2 : 1) + (training->dropout ? 1 : 0);
  if (training->fused_attention) {
    keep(book, 4 * heads, false);
    return;
  }
  keep(book, score * heads * (double)training->sequence_length, training->recompute.core_attention);
  temporary(book, wide(training) * (training->dropout ? 2 : 1) * heads * (double)training->sequence_length);
}

/* Per element. Where fused attention keeps an output of its own beside the projection's input, recompute of the core drops it. */
static double attention_output_bytes(const pp_training *training) {
  const bool dropped = training->fused_attention && training->recompute.core_attention;
  return dropped ? fmin(training->activation_bytes, training->attention_output_bytes) : training->attention_output_bytes;
}

static void add_gqa(ledger *book, const pp_model *model, const pp_training *training, split by) {
  const double query = (double)(model->heads * model->head_dim) / by.tensor, key = key_width(model, by.tensor);
  const double both = kv_width(model, by.tensor), gate = (double)model->output_gate / by.tensor;
  const double value = (double)model->heads * value_dim(model) / by.tensor;
  if (training->unfused_rope) keep(book, 4 * (query + key), false);
  keep(book, wide(training) * (query + both + gate), false);
  if (model->qk_norm != PP_QK_NORM_NONE) keep(book, wide(training) * (query + key), training->recompute.norm);
  add_scores(book, model, training, by);
  keep_input(book, attention_output_bytes(training) * value, false);
  if (gate > 0) keep(book, wide(training) * value, false);   /* beside the gated output that the projection reads */
  book->output_gradients += training->activation_bytes * (query + both + gate);
  temporary(book, wide(training) * (query + both + gate));
}

/* A mixer with a state: what is projected, what its kernels keep (mixers.c), and what the output projection reads. */
static void add_mixer(ledger *book, const pp_model *model, const pp_training *training, split by) {
  pp_mixer mixer;
  pp_mixer_of(model, &mixer);
  const double written = (double)mixer.written / by.tensor;
  double projected = 0;
  for (int i = 0; i < mixer.products - 1; i++)
    projected += (double)mixer.product[i].n / (mixer.product[i].split == PP_SPLIT_COLUMNS ? by.tensor : 1);
  keep(book, wide(training) * (projected + (double)mixer.kept / by.tensor + (double)mixer.kept_whole) + 4 * (double)mixer.kept_fp32 / by.tensor, false);
  keep_input(book, training->activation_bytes * written, false);
  book->output_gradients += training->activation_bytes * projected;
  temporary(book, wide(training) * projected);
}

/* Scores of an indexer are not kept: its choice is, a number of four bytes for each token that a query attends to. */
static void add_indexer(ledger *book, const pp_model *model, const pp_training *training, split by) {
  if (model->index_heads == 0) return;
  const double chosen = fmin((double)model->index_topk, (double)training->sequence_length);
  if (model->attention == PP_ATTENTION_COMPRESSED) {   /* of entries; what it projects is in what the mixer keeps */
    keep(book, 4 * fmin((double)model->index_topk, (double)training->sequence_length / (double)model->compression) / by.sequence, false);
    return;
  }
  const int64_t weights = model->attention == PP_ATTENTION_MLA ? model->index_heads : 0;
  const double projected = (double)(model->index_heads * model->index_dim + model->index_dim + weights);
  keep(book, (wide(training) * projected + 4 * chosen) / by.sequence, false);
  book->output_gradients += training->activation_bytes * projected / by.sequence;
}

/* Latents and their norms are the same on all TP ranks; what the up-projections expand is split by heads. */
static void add_mla(ledger *book, const pp_model *model, const pp_training *training, split by) {
  const double width = (double)(model->qk_nope_dim + model->qk_rope_dim), heads = (double)model->heads / by.tensor;
  const double query = heads * width, key = heads * width, value = heads * (double)model->v_dim;
  const double q_latent = (double)model->q_lora_rank / by.sequence, kv_latent = (double)model->kv_lora_rank / by.sequence;
  const double rope = (double)model->qk_rope_dim / by.sequence, kept = training->activation_bytes;
  keep(book, wide(training) * (q_latent + kv_latent + rope), false);
  keep_input(book, kept * (q_latent + kv_latent), training->recompute.norm);
  keep(book, wide(training) * (query + key + value), training->recompute.mla_up_projection);
  add_scores(book, model, training, by);
  keep_input(book, attention_output_bytes(training) * value, false);
  const double expanded_keys = heads * (double)model->qk_nope_dim + value;
  book->output_gradients += kept * (q_latent + kv_latent + rope + query + expanded_keys);
  temporary(book, wide(training) * (query + key + value));
}

/* What a norm keeps for its backward beside its input: unfused, that in fp32, and its output before the weight. */
static void add_unfused_norm(ledger *book, const pp_training *training, double hidden) {
  if (training->unfused_norm) keep(book, (4 + wide(training)) * hidden, training->recompute.norm);
}

/*
** Around attention and around the feed-forward: the streams that they read, what they give, and fp32 weights of both (a kernel that keeps what it
** reads, as https://arxiv.org/abs/2512.24880, section 4.3, fuses them; the class of transformers keeps more).
*/
static void add_streams(ledger *book, const pp_model *model, const pp_training *training, split by) {
  if (model->streams < 2) return;
  keep(book, (wide(training) * (double)(pp_model_stream_width(model) + model->hidden) + 4 * (double)pp_model_stream_columns(model)) / by.sequence, false);
}

/* Norm, attention, output projection. `beside` another that has the norm: what that gives is scaled, so that each keeps what it reads. */
static void add_attention(ledger *book, const pp_model *model, const pp_training *training, split by, bool beside) {
  const double hidden = (double)model->hidden / by.sequence;
  if (model->attention == PP_ATTENTION_NONE) return;
  if (!beside) {
    add_streams(book, model, training, by);
    add_unfused_norm(book, training, hidden);
    keep(book, wide(training) * hidden, false);
  }
  keep_input(book, training->activation_bytes * hidden, training->recompute.norm);
  if (model->attention == PP_ATTENTION_MLA) {
    add_mla(book, model, training, by);
    add_indexer(book, model, training, by);
  } else if (pp_mixer_is(model->attention)) {
    add_mixer(book, model, training, by);
    if (model->attention == PP_ATTENTION_COMPRESSED) add_indexer(book, model, training, by);
  } else {
    add_gqa(book, model, training, by);
    add_indexer(book, model, training, by);
  }
  book->output_gradients += training->activation_bytes * hidden;
  if (training->dropout) keep(book, hidden, false);
}

/* The two or three products of a feed-forward of that width (already split), for `share` tokens per token of the microbatch. */
static void add_feed_forward(ledger *book, const pp_model *model, const pp_training *training, double width, double share,
                             double input_bytes, bool all_dropped) {
  const double before = (model->gated ? 2 : 1) * width * share;
  keep(book, input_bytes * before, all_dropped);
  if (training->unfused_activation && model->gated) keep(book, wide(training) * width * share, all_dropped || training->recompute.activation);
  keep_input(book, training->activation_bytes * width * share, all_dropped || training->recompute.activation);
  book->output_gradients += training->activation_bytes * before;
}

static void add_dense_mlp(ledger *book, const pp_model *model, const pp_training *training, split by) {
  const double width = (double)model->ffn / by.tensor;
  add_feed_forward(book, model, training, width, 1, wide(training), false);
  book->output_gradients += training->activation_bytes * (double)model->hidden / by.sequence;
  temporary(book, wide(training) * (model->gated ? 2 : 1) * width);
}

/*
** Router, shared and routed experts. A rank holds K copies of each of its tokens, whatever EP is: EP trades tokens, it does not reduce
** them. Expert TP gathers the tokens of its ranks and splits the width. The weighted sum needs no expert output kept: frameworks
** weigh inside the activation.
*/
static void add_experts(ledger *book, const pp_model *model, const pp_layout *layout, const pp_training *training, split by) {
  const bool dropped = training->recompute.moe;
  const double copies = pp_model_experts_per_token(model) * training->expert_imbalance / by.sequence;
  const double gathered = copies * layout->expert_tensor, hidden = (double)pp_model_expert_hidden(model), kept = training->activation_bytes;
  const double width = (double)model->expert_ffn / layout->expert_tensor, factor = model->gated ? 2 : 1;
  keep(book, 4 * (double)(model->experts + model->zero_experts) / by.sequence, dropped);
  keep_input(book, kept * hidden * gathered, dropped);
  add_feed_forward(book, model, training, width, gathered, training->activation_input_bytes, dropped);
  book->output_gradients += kept * hidden * gathered;
  temporary(book, wide(training) * factor * width * gathered);
  temporary(book, wide(training) * hidden * gathered);
  if (model->expert_hidden > 0) {   /* what is sent to experts, and their sum */
    keep(book, wide(training) * hidden / by.sequence, dropped);
    keep_input(book, kept * hidden / by.sequence, dropped);
    book->output_gradients += kept * (hidden + (double)model->hidden) / by.sequence;
  }
  if (model->shared_ffn > 0) {
    add_feed_forward(book, model, training, (double)model->shared_ffn / by.tensor, 1, training->activation_input_bytes, dropped);
    book->output_gradients += kept * (double)model->hidden / by.sequence;
  }
}

/* Norm, MLP or experts, and the norms that some families put behind attention and MLP. */
static void add_mlp(ledger *book, const pp_model *model, const pp_layout *layout, const pp_training *training, split by, bool moe) {
  const double hidden = (double)model->hidden / by.sequence;
  const int64_t norms = model->norms_per_layer > 0 ? model->norms_per_layer : 2;   /* 0: two without weights */
  if (!moe && model->ffn == 0) return;
  add_streams(book, model, training, by);
  if (norms >= 2 || model->attention == PP_ATTENTION_NONE) {
    add_unfused_norm(book, training, hidden);
    keep(book, wide(training) * hidden, false);
    keep_input(book, training->activation_bytes * hidden, training->recompute.norm);
    if (norms > 2) keep(book, wide(training) * hidden * (double)(norms - 2), false);
  }
  if (moe) add_experts(book, model, layout, training, by);
  else add_dense_mlp(book, model, training, by);
  if (training->dropout) keep(book, hidden, false);
}

/* Full recompute keeps `input` bytes and brings everything else back. */
static void recompute_all(ledger *book, double input) {
  book->recomputed += book->stored - input;
  book->stored = input;
}

/* Of a decoder layer of some kind, with what it holds of a kind beside its own. */
static ledger layer_ledger(const pp_model *model, const pp_layout *layout, const pp_training *training, split by, pp_block block) {
  ledger book = { 0 };
  for (pp_block part = block; part < PP_BLOCKS; part = pp_model_beside(model, part)) {
    pp_model room;
    const pp_model *kind = pp_model_as(model, part, &room);
    add_attention(&book, kind, training, by, part != block && kind->norms_per_layer == 0);
    add_mlp(&book, kind, layout, training, by, pp_model_block_is_moe(model, part));
  }
  if (training->recompute.full) recompute_all(&book, wide(training) * (double)pp_model_stream_width(model) / by.sequence);
  return book;
}

/*
** Final norm, output weights and loss, all kept above fp8 (Korthikanti §4.3). Where TP's parts of a vocabulary are gathered, eight bytes a
** logit are there beside, as many as the parts and what they are joined to in fp32: calibrated on the groups of tests/oracles/order.lua that calibrate.
*/
static void add_head(ledger *book, const pp_model *model, const pp_training *training, split by) {
  const double hidden = (double)model->hidden / by.sequence, logits = (double)model->vocab / by.tensor;
  const pp_loss_bytes loss = pp_loss_of(training->loss, wide(training));
  const double there = loss.whole ? (double)model->vocab : logits, gathered = loss.whole && by.tensor > 1 ? 4 + 4 : 0;
  if (model->streams > 1) keep(book, wide(training) * (double)pp_model_stream_width(model) / by.sequence, false);
  keep(book, wide(training) * hidden, false);
  keep_input(book, wide(training) * hidden, training->recompute.norm);
  keep(book, (loss.kept + gathered) * there, false);
  book->output_gradients += wide(training) * logits;
  temporary(book, loss.beside * there);
}

/* Token numbers of eight bytes, and the dropout mask. */
static ledger embedding_ledger(const pp_model *model, const pp_training *training, split by) {
  const double hidden = (double)model->hidden / by.sequence;
  ledger book = { 0 };
  keep_input(&book, 8, false);
  if (training->dropout) keep(&book, hidden, false);
  book.output_gradients += wide(training) * hidden;
  return book;
}

/* One MTP module: two norms, the projection of both to one (2h × h), a layer, its own logits (DeepSeek-V3 report §2.2). */
static ledger mtp_ledger(const pp_model *model, const pp_layout *layout, const pp_training *training, split by) {
  const double hidden = (double)model->hidden / by.sequence, kept = training->activation_bytes;
  ledger book = layer_ledger(model, layout, training, by, pp_model_last_block(model));
  keep(&book, 2 * wide(training) * hidden, false);
  keep_input(&book, kept * 2 * hidden, training->recompute.norm || training->recompute.full);
  book.output_gradients += kept * hidden;
  add_head(&book, model, training, by);
  return book;
}

/* Ranks over which a state is sharded, or 1. */
static double group(bool sharded, double ranks) {
  return sharded ? ranks : 1;
}

/* Weights, gradients and optimizer of so many parameters on a GPU. */
static pp_state_bytes state_of(double parameters, bool experts, const pp_layout *layout, const pp_training *training, int copies) {
  const double ranks = pp_shards_ranks(layout, training, experts);
  const double trained = parameters * (1 - training->frozen), updated = trained / group(training->shard_optimizer, ranks * copies);
  const double state = training->master_bytes + training->moment_bytes, away = training->optimizer_offload;
  const bool master = training->shard_master && pp_shards_parameters(layout, training);   /* the optimizer's are all there is */
  const double whole = master ? parameters * training->frozen * training->master_bytes : parameters * training->parameter_bytes;
  return (pp_state_bytes){
    .parameters = whole / group(pp_shards_parameters(layout, training), ranks),
    .gradients = trained * pp_shards_gradient_bytes(layout, training) / group(pp_shards_gradients(layout, training), ranks),
    .optimizer = updated * state * (1 - away),
    .host = updated * (state + training->gradient_bytes) * away,
    .update = training->unfused_optimizer ? updated * training->moment_bytes / 2 * (1 - away) : 0,
  };
}

/* Of a tower of images. */
static pp_state_bytes tower_state(const pp_model *model, const pp_layout *layout, const pp_training *training, int copies) {
  pp_training own = *training;
  if (model->tower_frozen) own.frozen = 1;
  return state_of((double)model->tower, false, layout, &own, copies);
}

/*
** Sharded parameters of a layer in flight, in backward, where they are most: the layer's own, the next one's as they come, its gradients, and
** those of the layer before on their way out.
*/
static double in_flight(const pp_gpu_parameters *held, int block, const pp_layout *layout, const pp_training *training) {
  const double unit = held->dense + held->expert, gathered = pp_shards_gathered_bytes(training);
  if (!pp_shards_parameters(layout, training) || block == PP_BLOCK_EMBEDDING) return 0;
  return (2 * gathered + 2 + pp_shards_gradient_bytes(layout, training)) * unit;
}

static void add_state(pp_state_bytes *sum, double count, const pp_state_bytes *state) {
  sum->parameters += count * state->parameters;
  sum->gradients += count * state->gradients;
  sum->optimizer += count * state->optimizer;
  sum->update += count * state->update;
  sum->host += count * state->host;
}

static pp_status bad_number(pp_error *error, const char *field, const char *bound, double limit, double value) {
  return pp_invalid(error, field, NAN, "'%s' must be %s %g, got %g", field, bound, limit, value);
}

static pp_status check_recipe(const pp_layout *layout, const pp_training *training, int copies, pp_error *error) {
  const struct { const char *field; double value, low; } numbers[] = {
    { "tensor", layout->tensor, 1 },               { "context", layout->context, 1 },
    { "expert", layout->expert, 1 },               { "expert_tensor", layout->expert_tensor, 1 },
    { "data", layout->data, 1 },                   { "copies", copies, 1 },
    { "sequence_length", (double)training->sequence_length, 1 },
    { "micro_batch", (double)training->micro_batch, 1 },
    { "parameter_bytes", training->parameter_bytes, 0 },
    { "gradient_bytes", training->gradient_bytes, 0 },
    { "master_bytes", training->master_bytes, 0 },
    { "moment_bytes", training->moment_bytes, 0 },
    { "optimizer_offload", training->optimizer_offload, 0 },
    { "activation_bytes", training->activation_bytes, 0 },
    { "attention_output_bytes", training->attention_output_bytes, 0 },
    { "activation_input_bytes", training->activation_input_bytes, 0 },
    { "weight_gradient_bytes", training->weight_gradient_bytes, 0 },
    { "expert_imbalance", training->expert_imbalance, 1 },
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!(numbers[i].value >= numbers[i].low && isfinite(numbers[i].value)))
      return bad_number(error, numbers[i].field, "at least", numbers[i].low, numbers[i].value);
  if (training->optimizer_offload > 1) return bad_number(error, "optimizer_offload", "at most", 1, training->optimizer_offload);
  return PP_OK;
}

static pp_block_bytes block_bytes(const ledger *book, double tokens) {
  return (pp_block_bytes){
    .stored = tokens * book->stored,
    .pending = tokens * (book->inputs + book->output_gradients),
    .transient = tokens * (book->recomputed + book->gradient),
  };
}

void pp_memory_parameters(const pp_model *model, const pp_layout *layout, pp_gpu_parameters out[PP_BLOCKS]) {
  const double table = (double)(model->vocab * model->hidden) / layout->tensor;
  pp_block_parameters parameters[PP_BLOCKS];
  pp_model_block_parameters(model, parameters);
  for (int i = 0; i < PP_BLOCKS; i++)
    out[i] = (pp_gpu_parameters){
      .dense = (double)parameters[i].tensor / layout->tensor + (double)parameters[i].replicated,
      .expert = (double)parameters[i].expert / ((double)layout->expert * layout->expert_tensor),
    };
  if (!model->tower_frozen) out[PP_BLOCK_EMBEDDING].dense += (double)model->tower;
  out[PP_BLOCK_MTP].embedding_copy = table;
  if (!model->tied_embeddings) return;
  out[PP_BLOCK_HEAD].dense -= table;
  out[PP_BLOCK_HEAD].embedding_copy = table;
}

/*
** Weights whose gradients lie in temporaries, on one GPU. A layer's attention, MLP and shared experts have each shape once, its routed
** experts one for all. An embedding's rows are added in place; tied output weights have a product of their own. Mixers with a state and attention
** have no shape in common. `parameters` are of kinds alone.
*/
static void kind_shapes(const pp_model *whole, const pp_layout *layout, const pp_block_parameters parameters[PP_BLOCKS], int block,
                            double out[PP_SHAPES]) {
  const pp_block kind = block == PP_BLOCK_MTP ? pp_model_last_block(whole) : (pp_block)block;
  const bool layer = pp_model_has_layers_of(whole, kind), moe = pp_model_block_is_moe(whole, kind);
  pp_model room;
  const pp_model *model = pp_model_as(whole, kind, &room);
  const double tensor = layout->tensor, hidden = (double)model->hidden, matrices = model->gated ? 3 : 2;
  memset(out, 0, PP_SHAPES * sizeof *out);
  if (block == PP_BLOCK_HEAD || block == PP_BLOCK_MTP) out[PP_SHAPES_HEAD] = (double)model->vocab * hidden / tensor;
  if (block == PP_BLOCK_MTP) out[PP_SHAPES_MTP] = 2 * hidden * hidden / tensor;
  if (!layer) return;
  const double width = (double)(moe ? model->shared_ffn : model->ffn);
  out[pp_mixer_is(model->attention) ? PP_SHAPES_MIXER : PP_SHAPES_ATTENTION] =
    ((double)parameters[kind].tensor - matrices * hidden * width) / tensor;
  const double expert = (double)model->expert_ffn / layout->expert_tensor, shared = (double)model->shared_ffn / tensor;
  if (moe) out[PP_SHAPES_EXPERTS] = matrices * ((double)pp_model_expert_hidden(model) * expert + hidden * shared);
  else out[PP_SHAPES_MLP] = matrices * hidden * (double)model->ffn / tensor;
}

static void gradient_shapes(const pp_model *model, const pp_layout *layout, const pp_block_parameters parameters[PP_BLOCKS], int block,
                            double out[PP_SHAPES]) {
  const pp_block beside = pp_model_beside(model, (pp_block)block);
  double more[PP_SHAPES];
  kind_shapes(model, layout, parameters, block, out);
  if (beside == PP_BLOCKS) return;
  kind_shapes(model, layout, parameters, (int)beside, more);
  for (int k = 0; k < PP_SHAPES; k++) out[k] = fmax(out[k], more[k]);
}

/*
** A temporary that is dropped once it is added stands beside no other of backward: when a weight's gradient is made, what its layer's output needed
** is gone. The largest is of what an MLP or an expert reads its input with, of an attention's weights together, or of the head.
*/
static void let_pass(const pp_model *model, pp_block_bytes *block) {
  const double before = model->gated ? 2.0 / 3 : 1.0 / 2;
  for (int k = 0; k < PP_SHAPES; k++) {
    const double share = k == PP_SHAPES_MLP || k == PP_SHAPES_EXPERTS ? before : 1;
    block->transient = fmax(block->transient, share * block->weight_gradients[k]);
    block->weight_gradients[k] = 0;
  }
}

pp_status pp_memory_blocks(const pp_model *model, const pp_layout *layout, const pp_training *training, int copies,
                           pp_block_bytes out[PP_BLOCKS], pp_error *error) {
  const pp_status status = check_recipe(layout, training, copies, error);
  if (status != PP_OK) return status;

  const double tensor = layout->tensor;
  const split by = { tensor, training->sequence_parallel ? tensor : 1 };
  const double tokens = (double)(training->sequence_length * training->micro_batch) / layout->context;
  ledger books[PP_BLOCKS] = {
    [PP_BLOCK_EMBEDDING] = embedding_ledger(model, training, by),
    [PP_BLOCK_DENSE] = layer_ledger(model, layout, training, by, PP_BLOCK_DENSE),
    [PP_BLOCK_MOE] = layer_ledger(model, layout, training, by, PP_BLOCK_MOE),
    [PP_BLOCK_HEAD] = { 0 },
    [PP_BLOCK_MTP] = mtp_ledger(model, layout, training, by),
  };
  for (int i = PP_BLOCK_FURTHER; i < PP_BLOCK_FURTHER + model->kinds; i++) books[i] = layer_ledger(model, layout, training, by, (pp_block)i);
  add_head(&books[PP_BLOCK_HEAD], model, training, by);

  pp_block_parameters parameters[PP_BLOCKS];
  pp_gpu_parameters held[PP_BLOCKS];
  pp_model_kind_parameters(model, parameters);
  pp_memory_parameters(model, layout, held);
  memset(out, 0, PP_BLOCKS * sizeof *out);
  for (int i = 0; i < PP_BLOCK_FURTHER + model->kinds; i++) {
    const pp_state_bytes dense = state_of(held[i].dense, false, layout, training, copies);
    const pp_state_bytes expert = state_of(held[i].expert, true, layout, training, copies);
    out[i] = block_bytes(&books[i], tokens);
    out[i].transient += in_flight(&held[i], i, layout, training);
    add_state(&out[i].state, 1, &dense);
    add_state(&out[i].state, 1, &expert);
    gradient_shapes(model, layout, parameters, i, out[i].weight_gradients);
    for (int k = 0; k < PP_SHAPES; k++) out[i].weight_gradients[k] *= (1 - training->frozen) * training->weight_gradient_bytes;
    if (training->weight_gradients_pass) let_pass(model, &out[i]);
    out[i].embedding_copy = state_of(held[i].embedding_copy, false, layout, training, copies);
  }
  const pp_state_bytes tower = tower_state(model, layout, training, copies);   /* one that trains is in what the embedding holds */
  if (model->tower_frozen) add_state(&out[PP_BLOCK_EMBEDDING].state, 1, &tower);
  out[PP_BLOCK_EMBEDDING].tower = tower.parameters + tower.gradients + tower.optimizer;
  return PP_OK;
}

/* ---------------------------------------------------------------------------------------------------------------------------- ranks */

/* Adds what a rank needs for a stage beside those that it has. */
static void add_stage(pp_stage_memory *sum, const pp_stage_memory *stage) {
  add_state(&sum->state, 1, &stage->state);
  sum->tower += stage->tower;
  if (stage->embedding_copy.parameters > sum->embedding_copy.parameters) sum->embedding_copy = stage->embedding_copy;
  sum->has_embedding = sum->has_embedding || stage->has_embedding;
  sum->transient = fmax(sum->transient, stage->transient);
  for (int k = 0; k < PP_SHAPES; k++) sum->weight_gradients[k] = fmax(sum->weight_gradients[k], stage->weight_gradients[k]);
}

static void stage_memory(const pp_stage *stage, const pp_block_bytes blocks[PP_BLOCKS], pp_stage_memory *out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < PP_BLOCKS; i++) {
    const double count = stage->count[i];
    if (stage->count[i] == 0) continue;
    pp_stage_memory block = { .embedding_copy = blocks[i].embedding_copy, .has_embedding = i == PP_BLOCK_EMBEDDING,
                              .tower = blocks[i].tower, .transient = blocks[i].transient };
    add_state(&block.state, count, &blocks[i].state);
    memcpy(block.weight_gradients, blocks[i].weight_gradients, sizeof block.weight_gradients);
    add_stage(out, &block);
    out->stored += count * blocks[i].stored;
    out->pending += count * blocks[i].pending;
  }
}

void pp_memory_stages(const pp_stage *stages, int count, const pp_block_bytes blocks[PP_BLOCKS], pp_stage_memory *out) {
  for (int s = 0; s < count; s++) {
    /* Most stages hold what their neighbour holds. */
    if (s > 0 && memcmp(&stages[s], &stages[s - 1], sizeof stages[s]) == 0) out[s] = out[s - 1];
    else stage_memory(&stages[s], blocks, &out[s]);
  }
}

/* The one sum of a rank's terms. */
static void add_up(const pp_stage_memory *held, double activations, double overhead, pp_rank_bytes *out) {
  pp_state_bytes state = held->state;
  if (!held->has_embedding) add_state(&state, 1, &held->embedding_copy);
  *out = (pp_rank_bytes){ .parameters = state.parameters, .gradients = state.gradients, .optimizer = state.optimizer, .host = state.host,
                          .activations = activations, .transient = held->transient, .overhead = overhead, .tower = held->tower };
  for (int k = 0; k < PP_SHAPES; k++) out->transient += held->weight_gradients[k];
  /* When an update needs its own, no activations are there. */
  const double most = fmax(activations + out->transient, state.update);
  out->transient = fmax(out->transient, state.update - activations);
  out->total = out->parameters + out->gradients + out->optimizer + most + out->overhead;
}

/* What a rank's stages need together. */
static pp_stage_memory held_by(const pp_schedule *schedule, int rank, const pp_stage_memory *stages) {
  pp_stage_memory held = { .has_embedding = false };
  pp_spend(16 * (uint64_t)pp_schedule_stages_on(schedule, rank));
  for (int slot = 0; slot < pp_schedule_stages_on(schedule, rank); slot++)
    add_stage(&held, &stages[pp_schedule_stages_of(schedule, rank)[slot] % schedule->stages_per_chain]);
  return held;
}

void pp_memory_rank(const pp_schedule *schedule, int rank, const pp_stage_memory *stages, double overhead, double *scratch,
                    pp_rank_bytes *out) {
  const pp_stage_memory held = held_by(schedule, rank, stages);
  double *stored = scratch, *pending = scratch + schedule->stages;
  for (int slot = 0; slot < pp_schedule_stages_on(schedule, rank); slot++) {
    const int number = pp_schedule_stages_of(schedule, rank)[slot];
    stored[number] = stages[number % schedule->stages_per_chain].stored;
    pending[number] = stages[number % schedule->stages_per_chain].pending;
  }
  add_up(&held, pp_schedule_peak(schedule, rank, stored, pending), overhead, out);
}

/* Bytes of all that a rank holds at once, at most, where no slot's stored or pending ones are larger than these: the smaller of the two for
** each of `both`, and what the other is larger by for as many as there are of it. */
static double most_activations(const pp_most_held *held, double stored, double pending) {
  if (stored >= pending) return held->stored * (stored - pending) + held->both * pending;
  return held->pending * (pending - stored) + held->both * stored;
}

void pp_memory_rank_bound(const pp_schedule *schedule, int rank, const pp_stage_memory *stages, const uint32_t *stored,
                          const uint32_t *pending, const pp_most_held *most, double overhead, pp_rank_bytes *out) {
  const pp_stage_memory held = held_by(schedule, rank, stages);
  double activations = 0, largest_stored = 0, largest_pending = 0;
  for (int slot = 0; slot < pp_schedule_stages_on(schedule, rank); slot++) {
    const pp_stage_memory *stage = &stages[pp_schedule_stages_of(schedule, rank)[slot] % schedule->stages_per_chain];
    activations += stored[slot] * stage->stored + pending[slot] * stage->pending;
    if (stage->stored > largest_stored) largest_stored = stage->stored;
    if (stage->pending > largest_pending) largest_pending = stage->pending;
  }
  activations = fmin(activations, most_activations(most, largest_stored, largest_pending));
  add_up(&held, activations * (1 + 1e-9), overhead, out);   /* a walk adds in another order, which rounds differently */
}

void pp_memory_holding(const pp_stage_memory *stage, double activations, double overhead, pp_rank_bytes *out) {
  add_up(stage, activations, overhead, out);
}

double pp_memory_further_copies(const pp_rank_bytes *rank, int copies) {
  return (rank->parameters + rank->gradients) * (copies - 1) / copies;
}

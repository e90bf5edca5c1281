/* SPDX-License-Identifier: Apache-2.0 */
/*
** work.c: what a block computes and moves. See work.h.
*/
#include "core/work.h"

#include <math.h>

#include "core/loss.h"
#include "core/mixers.h"

double pp_work_gate_factor(const pp_model *model) {
  return model->gated ? 2 : 1;
}

/* Bytes an activation function moves for `width` outputs: bf16 in (gate and up) and out; between its kernels once more. */
static double activation_traffic(const pp_scene *at, double width) {
  return 2 * (pp_work_gate_factor(at->model) + 1 + (at->training->unfused_activation ? 2 : 0)) * width;
}

/*
** A norm (read, write) and a residual addition (read two, write one) of bf16 around each of attention and feed-forward. A norm out of PyTorch's
** own operations moves 36 bytes an element more: a cast to fp32, a square, a mean, two products, a cast back.
*/
static double residual_traffic(const pp_scene *at) {
  const double unfused = at->training->unfused_norm ? 36 : 0, streams = (double)at->model->streams;
  /* Several streams, in fused kernels (https://arxiv.org/abs/2512.24880, section 4.3): all read and one written before, all and one read and all
  ** written behind. */
  const double added = streams > 1 ? 2 * (3 * streams + 2) : 6;
  return (4 + added + unfused) * (double)at->model->hidden / at->sequence;
}

/* Rotating queries and keys: read and write; out of five kernels that read and write fp32. */
static double rotary_traffic(const pp_scene *at, double elements) {
  return (at->training->unfused_rope ? 2 * 2 + 16 : 2 * 2) * elements;
}

static double query_width(const pp_model *model) {
  return (double)model->heads * (double)(model->attention == PP_ATTENTION_MLA ? model->qk_nope_dim + model->qk_rope_dim : model->head_dim);
}

static double value_dim(const pp_model *model) {
  return (double)(model->v_dim > 0 ? model->v_dim : model->head_dim);
}

static double value_width(const pp_model *model) {
  return (double)model->heads * value_dim(model);
}

/* Elements of K and V per token on one TP rank: with MLA as many heads as queries. */
static double key_value_width(const pp_scene *at) {
  const pp_model *model = at->model;
  if (model->attention == PP_ATTENTION_MLA) return (query_width(model) + value_width(model)) / at->tensor;
  return ((double)model->head_dim + value_dim(model)) * fmax((double)model->kv_heads / at->tensor, 1);
}

/* Casting the input of a linear layer to fp8 in both layouts: read 2, write 1 twice. */
static double cast_traffic(const pp_scene *at, double elements) {
  return at->training->precision == PP_FP8 ? 4 * elements : 0;
}

/*
** All-gather and reduce-scatter around a TP region under sequence parallelism; an all-reduce without it. Korthikanti §4.2.2; the further
** all-gather of backward, for the input that W reads, runs beside I there, of which tensor_regather is not hidden.
*/
double pp_work_tensor_region(const pp_scene *at) {
  if (at->layout->tensor < 2) return 0;
  const double bytes = 2 * at->tokens * (double)at->model->hidden, latency = at->device->tensor_latency;
  const double exposed = (1 - at->training->tensor_overlap) * pp_comm_slower(at->network, PP_TRAFFIC_TENSOR);
  if (at->training->sequence_parallel) return exposed * 2 * (pp_comm_allgather(at->network, at->layout->tensor, 1, bytes) + latency);
  return exposed * (pp_comm_allreduce(at->network, at->layout->tensor, 1, bytes) + latency);
}

/* Bytes of an unfused softmax per token: scores written, read and written by the softmax, read; by dropout once more, with a mask. */
double pp_work_score_traffic(const pp_scene *at) {
  if (at->training->fused_attention) return 0;
  const double scores = (double)at->model->heads / at->tensor * (double)at->training->sequence_length;
  return (at->training->dropout ? 8 + 5 : 8) * scores;
}

/*
** Elements of a token that a short convolution moves: a product of two thirds of what is projected (read 2, write 1), the convolution (1, 1), and a
** product with the last third (2, 1), each of hidden elements: transformers models/lfm2, Lfm2ShortConv.
*/
enum { CONVOLUTION_ALONE = 8 };

/*
** A mixer with a state: a convolution reads and writes its channels, the recurrence reads those and writes its output, which a gated norm reads
** with its gate and writes; the states of chunks of 64 tokens are written and read (flash-linear-attention, ops/gated_delta_rule/chunk.py).
*/
static void add_mixer(const pp_scene *at, const pp_block_flops *flops, pp_work *out) {
  enum { CHUNK = 64 };
  pp_mixer mixer;
  pp_mixer_of(at->model, &mixer);
  const double convolved = at->model->conv_kernel > 0 ? 2 * (double)mixer.read : 0;
  const double recurrent = convolved + (double)mixer.read + 4 * (double)mixer.written + 2 * (double)mixer.state / CHUNK;
  const double elements = at->model->attention == PP_ATTENTION_CONV ? CONVOLUTION_ALONE * (double)mixer.written : recurrent;
  const double casts = cast_traffic(at, (double)at->model->hidden / at->sequence + (double)mixer.written / at->tensor);
  out->recurrence += at->tokens * flops->attention / at->tensor;
  out->traffic += at->tokens * (2 * elements / at->tensor + casts);
  out->tensor_seconds += pp_work_tensor_region(at);
}

/* Tokens in which core attention stays: a document, a chunk or a window; all, where it is not fused. */
static double attention_length(const pp_scene *at) {
  const int64_t window = at->model->window, chunk = at->model->chunk;
  if (!at->training->fused_attention) return (double)at->training->sequence_length;
  double length = pp_training_attended(at->training);
  if (window > 0) length = fmin(length, (double)window);
  return chunk > 0 ? fmin(length, (double)chunk) : length;
}

/*
** What is not fused computes all of s × s, and masks it: two products (Megatron-LM core/transformer/dot_product_attention.py, baddbmm and bmm;
** Korthikanti 2205.05198 appendix A counts the same).
*/
static double core_flops(const pp_scene *at, const pp_block_flops *flops) {
  if (at->training->fused_attention) return flops->attention;
  return 2 * (double)at->training->sequence_length * (query_width(at->model) + value_width(at->model));
}

static void add_attention(const pp_scene *at, const pp_block_flops *flops, pp_work *out) {
  const pp_model *model = at->model;
  const double hidden = (double)model->hidden / at->sequence;
  if (model->attention == PP_ATTENTION_NONE) return;
  if (pp_mixer_is(model->attention)) {
    add_mixer(at, flops, out);
    return;
  }
  out->attention += at->tokens * core_flops(at, flops) / at->tensor;
  out->length = attention_length(at);
  const double rotary = rotary_traffic(at, query_width(model) / at->tensor + key_value_width(at) / 2);
  const double casts = cast_traffic(at, hidden + value_width(model) / at->tensor);
  const double gate = 3 * 2 * (model->output_gate > 0 ? value_width(model) : 0) / at->tensor;   /* read both, write */
  out->traffic += at->tokens * (pp_work_score_traffic(at) + rotary + casts + gate);
  out->context_bytes += 2 * at->tokens * key_value_width(at);
  out->tensor_seconds += pp_work_tensor_region(at);
}

static void add_dense_mlp(const pp_scene *at, pp_work *out) {
  const pp_model *model = at->model;
  const double width = (double)model->ffn / at->tensor;
  if (model->ffn == 0) return;
  out->traffic += at->tokens * (activation_traffic(at, width) + cast_traffic(at, (double)model->hidden / at->sequence + width));
  out->tensor_seconds += pp_work_tensor_region(at);
}

/* Tokens are split over TP before they are dispatched, whatever sequence parallelism does. */
static void add_experts(const pp_scene *at, const pp_block_flops *flops, pp_work *out) {
  const pp_model *model = at->model;
  const double copies = pp_model_experts_per_token(model) * at->training->expert_imbalance / at->tensor;
  const double hidden = (double)pp_model_expert_hidden(model), width = (double)model->expert_ffn;
  out->expert += at->tokens * flops->expert * at->training->expert_imbalance / at->tensor;
  out->kept += at->tokens * flops->router / at->sequence;
  out->traffic += at->tokens * copies * (activation_traffic(at, width) + cast_traffic(at, hidden + width));
  out->traffic += at->tokens * copies * hidden * 2 * 4;   /* permute and unpermute: read and write bf16 */
  if (model->shared_ffn > 0) {
    const double shared = (double)model->shared_ffn / at->tensor;
    out->traffic += at->tokens * (activation_traffic(at, shared) + cast_traffic(at, shared));
    out->tensor_seconds += pp_work_tensor_region(at);
  }
  out->routings++;
}

static double head_flops(const pp_model *model) {
  return 2.0 * (double)model->vocab * (double)model->hidden;
}

/*
** Final norm, output weights in bf16, and the loss (loss.c). One over the whole vocabulary is gathered in bf16 by F, and its parts joined (read,
** write); I does no such thing, but what is counted of TP here counts in both, so it is shared out between them.
*/
pp_work pp_work_of_head(const pp_scene *at) {
  const pp_model *model = at->model;
  const pp_loss_bytes loss = pp_loss_of(at->training->loss, at->training->precision == PP_FP32 ? 4 : 2);
  const bool joined = loss.whole && at->layout->tensor > 1;
  const double vocabulary = (double)model->vocab, logits = loss.whole ? vocabulary : vocabulary / at->tensor;
  const double norm = 4 * (double)model->hidden / at->sequence;
  pp_work out = { .kept = at->tokens * head_flops(model) / at->tensor, .kept_weights = vocabulary * (double)model->hidden / at->tensor };
  out.traffic = at->tokens * (norm + loss.forward * logits + (joined ? 4 * vocabulary : 0));
  out.traffic_back = at->tokens * (2 * norm + loss.backward * logits);
  out.tensor_seconds = pp_work_tensor_region(at) / 2;
  if (joined)
    out.tensor_seconds += pp_comm_slower(at->network, PP_TRAFFIC_TENSOR) *
                          pp_comm_allgather(at->network, at->layout->tensor, 1, 2 * at->tokens * vocabulary) / 2;
  return out;
}

/* What TP repeats, it repeats for the tokens that sequence parallelism leaves. */
static void add_products(const pp_scene *at, const pp_model *model, pp_block block, pp_work *out) {
  pp_product product[PP_MOST_PRODUCTS];
  out->products = pp_model_block_products(model, block, product);
  for (int i = 0; i < out->products; i++)
    out->product[i] = (pp_product_shape){
      .m = product[i].split == PP_SPLIT_NOTHING ? at->tokens / at->sequence : at->tokens,
      .n = (double)product[i].n / (product[i].split == PP_SPLIT_COLUMNS ? at->tensor : 1),
      .k = (double)product[i].k / (product[i].split == PP_SPLIT_ROWS ? at->tensor : 1),
    };
}

/* What mixes tokens and the feed-forward: each has a norm before and a residual addition behind. */
static double parts_of(const pp_model *model, bool moe) {
  return (model->attention != PP_ATTENTION_NONE) + (moe || model->ffn > 0);
}

pp_work pp_work_of_layer(const pp_scene *at, const pp_block_flops *flops, const pp_block_parameters *parameters, bool moe) {
  pp_work out = { .layer = true, .traffic = at->tokens * parts_of(at->model, moe) * residual_traffic(at) };
  add_attention(at, flops, &out);
  if (moe) add_experts(at, flops, &out);
  else add_dense_mlp(at, &out);
  add_products(at, at->model, moe ? PP_BLOCK_MOE : PP_BLOCK_DENSE, &out);
  out.expert_weights += (double)parameters->expert / ((double)at->layout->expert * at->layout->expert_tensor);
  out.traffic_back = 2 * out.traffic;
  return out;
}

/* An MTP module without its head: a layer and the projection. */
pp_work pp_work_of_mtp(const pp_scene *at, const pp_model *whole, const pp_block_flops *flops, const pp_block_parameters *parameters, bool moe) {
  pp_work out = pp_work_of_layer(at, flops, parameters, moe);
  add_products(at, whole, PP_BLOCK_MTP, &out);
  return out;
}

pp_again pp_work_again(const pp_scene *at, const pp_block_flops *flops, bool moe) {
  const pp_model *model = at->model;
  const pp_recompute *recompute = &at->training->recompute;
  pp_again out = { .all = recompute->full, .experts = recompute->moe && moe };
  if (out.experts) {   /* router and shared experts belong to the expert MLP */
    pp_work mlp = { 0 };
    add_experts(at, flops, &mlp);
    out.linear += at->tokens * 2 * (pp_work_gate_factor(model) + 1) * (double)(model->hidden * model->shared_ffn) / at->tensor;
    out.kept += mlp.kept;
    out.traffic += mlp.traffic;
    out.tensor_seconds += mlp.tensor_seconds;
  }
  if (recompute->norm) out.traffic += at->tokens * 4 * parts_of(model, moe) * (double)model->hidden / at->sequence;
  if (recompute->activation && !out.experts) {
    const double routed = pp_model_experts_per_token(model) * at->training->expert_imbalance * (double)model->expert_ffn;
    out.traffic += at->tokens * activation_traffic(at, (moe ? routed + (double)model->shared_ffn : (double)model->ffn) / at->tensor);
  }
  if (recompute->mla_up_projection && model->attention == PP_ATTENTION_MLA) {
    const double query = (double)(model->q_lora_rank > 0 ? model->q_lora_rank : model->hidden) * query_width(model);
    const double key_value = (double)model->kv_lora_rank * (double)(model->heads * (model->qk_nope_dim + model->v_dim));
    out.linear += at->tokens * 2 * (query + key_value) / at->tensor;
  }
  return out;
}

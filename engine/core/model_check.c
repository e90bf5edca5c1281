/* SPDX-License-Identifier: Apache-2.0 */
/*
** model_check.c: is a shape one of a model? See model.h.
*/
#include <math.h>

#include "core/mixers.h"
#include "core/model.h"
#include "core/sizes.h"

/* The largest divisor of `of` that is at most `value`. */
static int64_t divisor_below(int64_t of, int64_t value) {
  while (of % value != 0) value--;
  return value;
}

/* What attention and experts are multiplied of. A size that this kind of layer does not ask for may be 0, but no larger than where it does. */
static pp_status check_parts(const pp_layer *layer, bool moe, pp_error *error) {
  const bool gqa = layer->attention == PP_ATTENTION_GQA, mla = layer->attention == PP_ATTENTION_MLA, indexed = layer->index_heads > 0;
  const pp_size_check sizes[] = {
    { "kv_heads", layer->kv_heads, gqa, gqa ? layer->heads : 1 << 14 },
    { "head_dim", layer->head_dim, gqa, 1 << 14 },         { "v_dim", layer->v_dim, mla, 1 << 14 },
    { "q_lora_rank", layer->q_lora_rank, 0, 1 << 20 },     { "kv_lora_rank", layer->kv_lora_rank, mla, 1 << 20 },
    { "qk_nope_dim", layer->qk_nope_dim, mla, 1 << 14 },   { "qk_rope_dim", layer->qk_rope_dim, 0, 1 << 14 },
    { "index_heads", layer->index_heads, 0, 1 << 14 },     { "index_dim", layer->index_dim, indexed && (gqa || mla), 1 << 14 },
    { "experts", layer->experts, moe, 1 << 16 },           { "experts_per_token", layer->experts_per_token, moe, moe ? layer->experts : 1 << 16 },
    { "expert_ffn", layer->expert_ffn, moe, 1 << 22 },     { "shared_ffn", layer->shared_ffn, 0, 1 << 22 },
    { "expert_hidden", layer->expert_hidden, 0, 1 << 20 }, { "zero_experts", layer->zero_experts, 0, 1 << 16 },
    { "key_heads", layer->key_heads, 0, 1 << 14 },         { "key_dim", layer->key_dim, 0, 1 << 14 },
    { "value_heads", layer->value_heads, 0, 1 << 14 },     { "value_dim", layer->value_dim, 0, 1 << 14 },
    { "step_rank", layer->step_rank, 0, 1 << 14 },         { "conv_kernel", layer->conv_kernel, 0, 1 << 10 },
  };
  const pp_status status = pp_check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status == PP_OK && gqa && layer->heads % layer->kv_heads != 0)
    return pp_invalid(error, "kv_heads", (double)divisor_below(layer->heads, layer->kv_heads),
                      "'kv_heads' must divide 'heads', got %lld and %lld", (long long)layer->kv_heads, (long long)layer->heads);
  return status;
}

/* What a layer of some kind holds. moe, dense: is there such a layer of it? */
static pp_status check_layer(const pp_layer *layer, bool moe, bool dense, pp_error *error) {
  const pp_size_check sizes[] = {
    { "heads", layer->heads, 1, 1 << 14 },
    { "attention_sinks", layer->attention_sinks, 0, 1 << 14 },
    { "output_gate", layer->output_gate, 0, 1 << 20 },
    { "compression", layer->compression, 0, 1 << 20 },
    { "output_groups", layer->output_groups, 0, 1 << 14 },
    { "output_rank", layer->output_rank, 0, 1 << 20 },
    { "norms_per_layer", layer->norms_per_layer, 0, 8 },
    { "scales", layer->scales, 0, 1 << 24 },
    { "window", layer->window, 0, 1 << 30 },
    { "chunk", layer->chunk, 0, 1 << 30 },
    { "ffn", layer->ffn, dense ? 1 : 0, 1 << 22 },
  };
  pp_status status = pp_check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status == PP_OK && pp_mixer_is(layer->attention)) status = pp_mixer_check(layer, error);
  return status == PP_OK ? check_parts(layer, moe, error) : status;
}

static pp_status check_further(const pp_model *model, pp_error *error) {
  pp_status status = PP_OK;
  for (int i = 0; i < model->kinds && status == PP_OK; i++) status = check_layer(&model->further[i].layer, model->further[i].moe, false, error);
  return status;
}

/* A kind beside another is dense, has nothing beside it, and no module of MTP is of such a pair. */
static pp_status check_pairs(const pp_model *model, pp_error *error) {
  for (int i = 0; i < model->kinds; i++) {
    const int beside = model->further[i].beside;
    if (beside == 0) continue;
    if (beside > model->kinds || beside == i + 1 || model->further[beside - 1].moe || model->further[beside - 1].beside > 0)
      return pp_invalid(error, "beside", NAN, "'beside' must be the number of another kind, without experts and nothing beside it, got %d", beside);
  }
  if (model->mtp_layers > 0 && (model->streams > 1 || pp_model_beside(model, pp_model_last_block(model)) < PP_BLOCKS))
    return pp_invalid(error, "mtp_layers", 0, "'mtp_layers' must be 0 beside 'streams', and where the last layer has another kind beside its own, "
                      "got %lld", (long long)model->mtp_layers);
  return PP_OK;
}

static double expert_parameters(const pp_model *model) {
  double sum = 0;
  for (int64_t i = 0; i < model->layers; i++) {
    const pp_layer *layer = model->kind[i] > 0 ? &model->further[model->kind[i] - 1].layer : &model->layer;
    if (model->moe[i]) sum += 3.0 * (double)layer->experts * (double)model->hidden * (double)layer->expert_ffn;
  }
  return sum;
}

pp_status pp_model_check(const pp_model *model, pp_error *error) {
  const pp_size_check sizes[] = {
    { "layers", model->layers, 1, PP_MAX_LAYERS },
    { "hidden", model->hidden, 1, 1 << 20 },
    { "vocab", model->vocab, 1, 1 << 24 },
    { "learned_positions", model->learned_positions, 0, 1 << 24 },
    { "mtp_layers", model->mtp_layers, 0, 64 },
    { "tower", model->tower, 0, (int64_t)1 << 40 },
    { "streams", model->streams, 0, 64 },
  };
  pp_status status = pp_check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status != PP_OK) return status;
  bool moe = false, dense = false, experts = false;   /* is there a layer of these blocks, and one with experts of any kind? */
  for (int64_t i = 0; i < model->layers; i++) {
    moe = moe || pp_model_block_of(model, i) == PP_BLOCK_MOE;
    dense = dense || pp_model_block_of(model, i) == PP_BLOCK_DENSE;
    experts = experts || model->moe[i];
  }
  if (!experts && model->experts > 0)
    return pp_invalid(error, "experts", 0, "'experts' is %lld but no layer is a mixture of experts", (long long)model->experts);
  status = check_layer(&model->layer, moe, dense, error);
  if (status == PP_OK) status = check_further(model, error);
  if (status == PP_OK) status = check_pairs(model, error);
  if (status == PP_OK && expert_parameters(model) > 1e17)
    return pp_invalid(error, "experts", NAN, "'experts' × 'expert_ffn' × 'hidden' over all layers would be more than 10^17 parameters");
  return status;
}

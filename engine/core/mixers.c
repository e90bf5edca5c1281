/* SPDX-License-Identifier: Apache-2.0 */
/*
** mixers.c: mixers with a state. See mixers.h.
**
** Mamba-1's kernel is mamba_inner of mamba_ssm, or selective_scan where norms stand between (Jamba). FLOPs of its recurrence are derived,
** operation by operation.
**
** FLOPs of gated delta and Mamba-2 restate Megatron-LM's num_floating_point_operations (megatron/training/training.py, gdn_layer_flops and
** mamba_layer_flops), as those of attention do; it counts a key as wide as a value, which they are in the models that it trains. Kimi delta is
** the same rule with a gate for each channel; lightning attention adds k·vᵀ to its state and multiplies it by q: 2 products.
**
** What backward keeps is what the kernels of flash-linear-attention and mamba_ssm save (tests/oracles/mixer_bytes.py names them): what is read
** behind the convolution, which a delta rule normalises, for each head columns of its chunk; Mamba-2's kernel convolves again. States of chunks
** are computed again.
*/
#include "core/mixers.h"

#include <math.h>
#include <string.h>

#include "core/sizes.h"

enum {
  CHUNK = 64,      /* tokens whose products of keys are kept, a row of so many for each token and head */
  SCANNED = 2048   /* tokens of which Mamba-1's kernel keeps the last state, and the product of its decays */
};

bool pp_mixer_is(pp_attention attention) {
  return attention > PP_ATTENTION_NONE;
}

static void add_product(pp_mixer *out, int64_t n, int64_t k, pp_product_split split) {
  out->product[out->products++] = (pp_product){ n, k, split };
}

static void add_convolution(const pp_model *model, int64_t channels, pp_mixer *out) {
  out->split += channels * (model->conv_kernel + (model->conv_bias ? 1 : 0));
}

/* Gates of low rank: down to a head's width, not split, and up to all channels. */
static void add_low_rank_gate(const pp_model *model, int64_t channels, pp_mixer *out) {
  add_product(out, model->key_dim, model->hidden, PP_SPLIT_NOTHING);
  add_product(out, channels, model->key_dim, PP_SPLIT_COLUMNS);
}

/*
** Of each projection what is read stays, beside that its norm and its rotation; the core's output stays before and behind the rotation that undoes
** its values' one. Entries are few: two elements a token for `compression` tokens. The scorer's products are an indexer's.
*/
static void compressed(const pp_model *model, pp_mixer *out) {
  const int64_t hidden = model->hidden, rank = model->q_lora_rank, dim = model->head_dim, query = model->heads * dim;
  const int64_t series = model->compression == 0 ? 0 : model->index_heads > 0 ? 2 : 1, index = series == 2 ? model->index_dim : 0;
  add_product(out, rank, hidden, PP_SPLIT_NOTHING);
  add_product(out, query, rank, PP_SPLIT_COLUMNS);
  add_product(out, dim + 2 * series * dim, hidden, PP_SPLIT_NOTHING);   /* keys; what is compressed, and its weights */
  if (index > 0) {
    add_product(out, model->index_heads * index, rank, PP_SPLIT_NOTHING);
    add_product(out, 4 * index + model->index_heads, hidden, PP_SPLIT_NOTHING);
  }
  add_product(out, model->output_rank, query, PP_SPLIT_ROWS);            /* of each group's heads */
  out->split = model->heads;                                             /* sinks */
  out->replicated = rank + dim + (series > 0 ? dim + model->compression * series * dim : 0) + (index > 0 ? index + model->compression * 2 * index : 0);
  out->read = 4 * query;                                                 /* queries and output, read and written by norm and rotation */
  out->written = model->output_groups * model->output_rank;
  out->state = 0;
  out->kept = 3 * query;
  out->kept_whole = rank + dim + (series > 0 ? 2 * dim / model->compression : 0) - model->output_rank;   /* a group's columns are `written` */
  out->kept_fp32 = 2 * model->heads + 2;                                 /* inverse norms, and a sum of each head's row */
}

/* Mean of min(i, most) over i of s: most − most² / 2s, of which s / 2 is what a mask leaves without a limit (0). */
double pp_mixer_reach(double s, double most) {
  return most > 0 && most < s ? 2 * most - most * most / s : s;
}

double pp_mixer_core(const pp_model *model, double s) {
  if (model->attention != PP_ATTENTION_COMPRESSED) return 0;
  const double each = 2 * (double)(model->heads * model->head_dim), tokens = (double)model->compression, window = pp_mixer_reach(s, (double)model->window);
  if (model->compression == 0) return window * each;
  const double entries = pp_mixer_reach(s, tokens * (double)(model->index_heads > 0 ? model->index_topk : 0)) / tokens;
  return (window + entries) * each + s / tokens * (double)(model->index_heads * model->index_dim);
}

void pp_mixer_of(const pp_model *model, pp_mixer *out) {
  const int64_t hidden = model->hidden, heads = model->value_heads;
  const int64_t keys = model->key_heads * model->key_dim, values = heads * model->value_dim, channels = 2 * keys + values;
  const double states = (double)(heads * model->key_dim * model->value_dim);
  memset(out, 0, sizeof *out);
  out->read = channels;
  out->written = values;
  out->state = heads * model->key_dim * model->value_dim;
  switch (model->attention) {
    case PP_ATTENTION_GATED_DELTA:   /* queries, keys, values, the output's gate, and for each head a decay and a step */
      add_product(out, channels + values + 2 * heads, hidden, PP_SPLIT_COLUMNS);
      add_convolution(model, channels, out);
      out->split += 2 * heads;
      out->replicated = model->value_dim;
      out->recurrence = 2 * ((double)(model->conv_kernel * channels) + 4 * states);
      out->kept = channels + values + CHUNK * heads - heads;   /* the decay in fp32, in place of what it comes from */
      out->kept_fp32 = 2 * model->key_heads + 2 * heads;       /* inverse norms of queries, keys and the output */
      break;
    case PP_ATTENTION_KIMI_DELTA:
      add_product(out, channels + heads, hidden, PP_SPLIT_COLUMNS);
      add_low_rank_gate(model, keys, out);
      add_low_rank_gate(model, values, out);
      add_convolution(model, channels, out);
      out->split += keys + heads;
      out->replicated = model->value_dim;
      out->recurrence = 2 * ((double)(model->conv_kernel * channels) + 4 * states);
      out->kept = channels + values + 2 * CHUNK * heads;
      out->kept_fp32 = 2 * model->key_heads + heads;
      break;
    case PP_ATTENTION_MAMBA2:        /* B, C, x, the output's gate, and a step for each head */
      add_product(out, channels + values + heads, hidden, PP_SPLIT_COLUMNS);
      add_convolution(model, channels, out);
      out->split += 3 * heads + (model->mixer_norm ? values : 0);
      if (model->qkv_bias) out->split += channels + values + heads;
      out->recurrence = 7 * states;
      out->kept = values;
      out->kept_fp32 = model->mixer_norm ? model->key_heads : 0;
      break;
    case PP_ATTENTION_LIGHTNING:
      add_product(out, channels + values, hidden, PP_SPLIT_COLUMNS);
      out->split = values;
      out->recurrence = 4 * states;
      out->kept = channels + 2 * values;   /* queries, keys and values behind their SiLU, the output before and behind its norm */
      break;
    case PP_ATTENTION_MAMBA1:        /* what is convolved and the gate; from that steps of low rank, B and C; steps of all channels */
      add_product(out, 2 * values, hidden, PP_SPLIT_COLUMNS);
      add_product(out, model->step_rank + 2 * keys, values, PP_SPLIT_ROWS);
      add_product(out, values, model->step_rank, PP_SPLIT_COLUMNS);
      add_convolution(model, values, out);
      out->split += values * (2 + model->key_dim);           /* the steps' bias, D and A */
      out->replicated = model->mixer_norm ? model->step_rank + 2 * keys : 0;
      if (model->qkv_bias) out->split += 2 * values;
      out->read = values;
      out->recurrence = 7 * states;                          /* steps × A, its exponential, × B, two for the state, two with C */
      /* Behind the convolution, before the gate, and what the norms gave; the fused kernel computes steps and what the output projection reads
      ** again, and has B and C twice. */
      out->kept = model->mixer_norm ? 2 * values + model->step_rank + 2 * keys : 2 * keys - values;
      out->kept_fp32 = 2 * out->state / SCANNED + (model->mixer_norm ? 3 : 0);
      break;
    case PP_ATTENTION_COMPRESSED:
      compressed(model, out);
      break;
    default:                         /* PP_ATTENTION_CONV: two gates and what is convolved */
      add_product(out, 3 * hidden, hidden, PP_SPLIT_COLUMNS);
      add_convolution(model, hidden, out);
      if (model->conv_bias) out->split += 3 * hidden;
      out->read = 3 * hidden;
      out->written = hidden;
      out->recurrence = 2 * (double)(model->conv_kernel * hidden);
      out->state = model->conv_kernel * hidden;
      out->kept = 2 * hidden;              /* before and behind the convolution */
      break;
  }
  add_product(out, hidden, out->written, PP_SPLIT_ROWS);
}

static pp_status check_compressed(const pp_layer *layer, pp_error *error) {
  const bool indexed = layer->index_heads > 0;
  const pp_size_check sizes[] = {
    { "q_lora_rank", layer->q_lora_rank, 1, 1 << 20 },         { "head_dim", layer->head_dim, 1, 1 << 14 },
    { "output_groups", layer->output_groups, 1, layer->heads }, { "output_rank", layer->output_rank, 1, 1 << 20 },
    { "index_heads", layer->index_heads, 0, 1 << 14 },         { "index_dim", layer->index_dim, indexed ? 1 : 0, 1 << 14 },
    { "index_topk", layer->index_topk, indexed ? 1 : 0, 1 << 30 },
  };
  const pp_status status = pp_check_sizes(sizes, sizeof sizes / sizeof *sizes, error);
  if (status == PP_OK && layer->heads % layer->output_groups != 0)
    return pp_invalid(error, "output_groups", NAN, "'output_groups' must divide 'heads', got %lld and %lld", (long long)layer->output_groups,
                      (long long)layer->heads);
  return status;
}

pp_status pp_mixer_check(const pp_layer *layer, pp_error *error) {
  if (layer->attention == PP_ATTENTION_COMPRESSED) return check_compressed(layer, error);
  const pp_size_check sizes[] = {
    { "key_heads", layer->key_heads, 1, 1 << 14 },     { "key_dim", layer->key_dim, 1, 1 << 14 },
    { "value_heads", layer->value_heads, 1, 1 << 14 }, { "value_dim", layer->value_dim, 1, 1 << 14 },
    { "conv_kernel", layer->conv_kernel, 0, 1 << 10 },
    { "step_rank", layer->step_rank, layer->attention == PP_ATTENTION_MAMBA1 ? 1 : 0, 1 << 14 },
  };
  const size_t first = layer->attention == PP_ATTENTION_CONV ? 4 : 0;
  const pp_status status = pp_check_sizes(sizes + first, sizeof sizes / sizeof *sizes - first, error);
  if (status != PP_OK) return status;
  if (layer->attention != PP_ATTENTION_CONV && layer->value_heads % layer->key_heads != 0)
    return pp_invalid(error, "key_heads", NAN, "'key_heads' must divide 'value_heads', got %lld and %lld", (long long)layer->key_heads,
                      (long long)layer->value_heads);
  return PP_OK;
}

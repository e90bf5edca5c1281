/* SPDX-License-Identifier: Apache-2.0 */
/*
** mixers.h: what mixes tokens in place of attention: its weights, products and work. A head's state is key_dim × value_dim, whatever the
** sequence; a short convolution runs over what is read before. Compressed attention is one of them, for its parts are its own.
**   gated delta   Yang et al., https://arxiv.org/abs/2412.06464; Qwen3-Next: transformers models/qwen3_next, Qwen3NextGatedDeltaNet
**   kimi delta    Kimi Linear, https://arxiv.org/abs/2510.26692: a gate per channel, gates of low rank; transformers models/kimi_linear
**   mamba2        Dao and Gu, https://arxiv.org/abs/2405.21060: keys and queries are B and C of key_heads groups, key_dim the state's size,
**                 value_heads × value_dim the inner width; transformers models/bamba, nemotron_h
**   lightning     MiniMax-01, https://arxiv.org/abs/2501.08313; transformers models/minimax, MiniMaxLightningAttention
**   mamba1        Gu and Dao, https://arxiv.org/abs/2312.00752: value_heads channels (value_dim 1) with a step each, of rank step_rank; B and C
**                 of key_dim are for all (key_heads 1); transformers models/mamba, jamba, falcon_mamba
**   compressed    DeepSeek-V4: transformers models/deepseek_v4: queries of low rank, one head of keys that are the values too, over a window of
**                 tokens and beside it entries that each stand for `compression` tokens; with an indexer an entry is of two windows, and a query
**                 attends to index_topk of them. The output leaves in groups of heads, each of low rank
**   conv          LFM2, https://arxiv.org/abs/2511.23404: a gated convolution alone; transformers models/lfm2, Lfm2ShortConv
*/
#ifndef PP_MIXERS_H
#define PP_MIXERS_H

#include "core/model.h"

typedef struct {
  pp_product product[PP_MOST_PRODUCTS];
  int products;
  int64_t split, replicated;   /* weights in no product: over TP, and on each of its ranks */
  double recurrence;           /* forward FLOPs per token of convolution and recurrence */
  int64_t read, written;       /* elements per token: what they read, and what the output projection reads */
  int64_t state;               /* elements of a sequence's state */
  int64_t kept_whole;          /* the same on each TP rank */
  int64_t kept, kept_fp32;     /* per token for backward, beside the projections and what the output projection reads (less than 0: of these some
                                  are computed again): elements as wide as weights are kept, and fp32 numbers */
} pp_mixer;

/* Has the layer a mixer that this file knows? Not attention, and not none. */
bool pp_mixer_is(pp_attention attention);
/* Of `model` as its layers are: pp_model_as. */
void pp_mixer_of(const pp_model *model, pp_mixer *out);
/* Twice the tokens that a query of s attends to on average where they are `most` at most (0: no limit). */
double pp_mixer_reach(double s, double most);
/* Forward FLOPs per token of what depends on the sequence's length, s. */
double pp_mixer_core(const pp_model *model, double s);
/* PP_INVALID names the field. */
pp_status pp_mixer_check(const pp_layer *layer, pp_error *error);

#endif

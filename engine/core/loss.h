/* SPDX-License-Identifier: Apache-2.0 */
/*
** loss.h: what a cross entropy over a vocabulary moves and keeps, by how it is computed. Time and memory both read it here.
*/
#ifndef PP_LOSS_H
#define PP_LOSS_H

#include <stdbool.h>

typedef enum {
  PP_LOSS_VOCAB_PARALLEL,   /* a softmax in fp32 out of single operations, over TP's own part of the vocabulary */
  PP_LOSS_VOCAB_PARALLEL_COMPILED,   /* the same, compiled in four pieces */
  PP_LOSS_IN_PLACE,         /* kernels that leave the gradient where the logits were, in their precision */
  PP_LOSS_TORCH,            /* PyTorch's cross entropy of fp32 logits, over the whole vocabulary on each TP rank */
  PP_LOSS_TORCH_COMPILED,   /* the same, compiled: over TP's own part, and without any copy in fp32 */
  PP_LOSSES
} pp_loss;

/* Bytes of one logit on one GPU, of a vocabulary that is whole there or one of TP's parts. */
typedef struct {
  bool whole;               /* TP's parts are gathered */
  double forward, backward; /* read and written */
  double kept;              /* from F to I */
  double beside;            /* the most that stands beside that in F or I, but for the logits' gradient as W reads it */
} pp_loss_bytes;

/* As the logits come from their product in `logit` bytes: 2, or 4 in fp32. */
pp_loss_bytes pp_loss_of(pp_loss loss, double logit);

/* In the order above, and NULL. */
extern const char *const pp_loss_names[PP_LOSSES + 1];

#endif

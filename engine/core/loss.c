/* SPDX-License-Identifier: Apache-2.0 */
/*
** loss.c: a cross entropy, operation by operation. See loss.h.
*/
#include "core/loss.h"

#include <stddef.h>

/*
** Elements that each operation reads and writes, each tensor once; what is as small as the tokens is left out. `cast`: logits are copied to fp32 and
** their gradient back; without, elements are of the logits' own precision.
*/
typedef struct {
  bool cast, whole;
  double forward, backward;       /* beside the casts */
  double own, copies;             /* kept from F to I: in the logits' precision, in fp32 */
  double beside_own, beside_copies;
} form;

static const form forms[PP_LOSSES] = {
  /* Megatron-LM core/tensor_parallel/cross_entropy.py: a maximum (1), it is subtracted in place (2), exponentials in place (2), their sum (1), by
  ** which they are divided in place (2). They are what is kept; in I they are multiplied in place (2). nanotron's and GPT-NeoX's are the same. */
  [PP_LOSS_VOCAB_PARALLEL] = { .cast = true, .forward = 8, .backward = 2, .copies = 1, .beside_own = 1 },
  /* … core/fusions/fused_cross_entropy.py, as PyTorch 2.13 compiles it: the maximum (1), exponentials with their sum (2), the quotient (2); in I a
  ** copy for the targets (2), and the product of that, written over what was kept (1) and cast in the same kernel. */
  [PP_LOSS_VOCAB_PARALLEL_COMPILED] = { .cast = true, .forward = 5, .backward = 3, .copies = 1, .beside_own = 1, .beside_copies = 1 },
  /* Transformer Engine, common/triton/cross_entropy.py: one kernel reads maximum and sum (1), one writes the gradient over the logits (2), which I
  ** multiplies in place (2). */
  [PP_LOSS_IN_PLACE] = { .forward = 3, .backward = 2, .own = 1 },
  /* torch.nn.functional.cross_entropy: log_softmax (2); in I a gradient of zeros but for the targets (1), and log_softmax's, of that and of its own
  ** output (3). Logits are kept by whom they were returned to. */
  [PP_LOSS_TORCH] = { .cast = true, .whole = true, .forward = 2, .backward = 4, .own = 1, .copies = 1, .beside_copies = 2 },
  /* Compiled, it keeps its input and what is as small as the tokens: two passes over the logits (2), and one that writes the gradient (2). */
  [PP_LOSS_TORCH_COMPILED] = { .forward = 2, .backward = 2, .own = 1, .beside_own = 1 },
};

const char *const pp_loss_names[PP_LOSSES + 1] = { "vocab_parallel", "vocab_parallel_compiled", "in_place", "torch", "torch_compiled", NULL };

pp_loss_bytes pp_loss_of(pp_loss loss, double logit) {
  const form *of = &forms[loss];
  const bool cast = of->cast && logit < 4, alone = of->cast && !cast;   /* what is in fp32 already is no copy */
  const double element = of->cast ? 4 : logit, casts = cast ? logit + 4 : 0;
  return (pp_loss_bytes){
    .whole = of->whole,
    .forward = casts + element * of->forward,
    .backward = casts + element * of->backward,
    .kept = logit * of->own + 4 * of->copies,
    .beside = (alone ? 0 : logit * of->beside_own) + 4 * of->beside_copies,
  };
}

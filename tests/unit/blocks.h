/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h: the bytes of a model's blocks, for the tests of memory. */
#ifndef PP_TEST_BLOCKS_H
#define PP_TEST_BLOCKS_H

#include "core/memory.h"
#include "shapes.h"

static const pp_layout single = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };

static inline void blocks_of(const pp_model *model, const pp_layout *layout, const pp_training *training, int copies, pp_block_bytes out[PP_BLOCKS]) {
  pp_error error;
  if (pp_memory_blocks(model, layout, training, copies, out, &error) != PP_OK) fail_msg("%s", error.message);
}

/* The recipe of Korthikanti et al.: fp16, unfused attention, dropout everywhere. */
static inline pp_training gpt_recipe(int64_t micro_batch) {
  pp_training training = bf16_recipe(2048);
  training.precision = PP_FP16;
  training.micro_batch = micro_batch;
  training.fused_attention = false;
  training.dropout = true;
  training.sequence_parallel = false;
  training.shard_optimizer = false;
  return training;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h: model shapes for the tests of memory and cost, from their published configurations. */
#ifndef PP_TEST_SHAPES_H
#define PP_TEST_SHAPES_H

#include <math.h>

#include "core/model.h"
#include "core/training.h"

#define GIB 1073741824.0

static inline void expect(double expected, double actual, double share) {
  if (!(fabs(actual - expected) <= share * fabs(expected))) fail_msg("expected %.9g within %g, got %.9g", expected, share, actual);
}

static inline pp_model llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn, int64_t vocab) {
  return (pp_model){ .layers = layers, .hidden = hidden, .heads = heads, .kv_heads = kv_heads, .head_dim = 128, .ffn = ffn,
                     .vocab = vocab, .gated = true, .norms_per_layer = 2 };
}

/* GPT-3 style: GELU, LayerNorm, ffn = 4h, as in Korthikanti et al. Table 3. */
static inline pp_model gpt(int64_t layers, int64_t hidden, int64_t heads) {
  return (pp_model){ .layers = layers, .hidden = hidden, .heads = heads, .kv_heads = heads, .head_dim = hidden / heads, .ffn = 4 * hidden,
                     .vocab = 51200, .norms_per_layer = 2, .norm_bias = true };
}

/* deepseek-ai/DeepSeek-V3 config.json, with so many layers of which the first are dense. */
static inline pp_model deepseek_v3(int64_t layers, int64_t dense, int64_t mtp) {
  pp_model model = {
    .layers = layers, .hidden = 7168, .vocab = 129280, .attention = PP_ATTENTION_MLA, .heads = 128, .kv_heads = 128,
    .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 128, .qk_rope_dim = 64, .v_dim = 128,
    .ffn = 18432, .gated = true, .experts = 256, .experts_per_token = 8, .expert_ffn = 2048, .shared_ffn = 2048,
    .router_correction_bias = true, .norms_per_layer = 2, .mtp_layers = mtp,
  };
  for (int64_t i = dense; i < layers; i++) model.moe[i] = true;
  return model;
}

/* bf16 weights, fp32 gradients, Adam in fp32, all sharded over data parallel; flash attention. */
static inline pp_training bf16_recipe(int64_t sequence_length) {
  return (pp_training){
    .precision = PP_BF16, .sequence_length = sequence_length, .micro_batch = 1,
    .parameter_bytes = 2, .gradient_bytes = 4, .master_bytes = 4, .moment_bytes = 8, .shard_optimizer = true,
    .sequence_parallel = true, .fused_attention = true,
    .activation_bytes = 2, .attention_output_bytes = 2, .activation_input_bytes = 2, .dispatch_bytes = 2, .combine_bytes = 2,
    .expert_imbalance = 1,
  };
}

#endif

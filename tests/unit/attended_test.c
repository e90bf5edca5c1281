/* SPDX-License-Identifier: Apache-2.0 */
/* model.c, work.c: what attention computes where it does not reach over the whole sequence (windows, chunks, packed documents), and where it
** computes what the mask throws away. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/cost.h"
#include "shapes.h"

/* Memory and links so fast that only products and attention take time; 1 PFLOP/s. */
static const pp_device ideal = {
  .flops = 1e15, .flops_bf16 = 1e15, .memory_bandwidth = 1e30, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
  .attention_efficiency = 1, .memory_efficiency = 1, .hides_alltoall = true,
};
static const pp_network instant = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
static const pp_layout single = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };

/* Tokens that the queries of a sequence attend to, one after the other: their mean. */
static double counted(int sequence, int window, int chunk) {
  double sum = 0;
  for (int i = 0; i < sequence; i++) {
    int seen = chunk > 0 ? i % chunk + 1 : i + 1;
    if (window > 0 && seen > window) seen = window;
    sum += seen;
  }
  return sum / sequence;
}

static double attended(pp_model model, int sequence, int window, int chunk) {
  pp_block_flops flops[PP_BLOCKS];
  model.window = window;
  model.chunk = chunk;
  pp_model_block_flops(&model, sequence, flops);
  return flops[PP_BLOCK_DENSE].attention / (4.0 * 32 * 128);   /* two products of 2 FLOPs for each of 32 heads of 128 */
}

/* gpt-oss has windows of 128, Gemma 3 of 512 and 1,024, Gemma 2 of 4,096; Llama 4 has chunks of 8,192. Half a token: of the diagonal, which is
** not counted in whole sequences either. */
static void a_window_leaves_each_query_its_last_tokens(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  static const int cases[][3] = { { 4096, 128, 0 }, { 4096, 512, 0 }, { 8192, 4096, 0 }, { 4096, 4096, 0 }, { 4096, 8192, 0 }, { 4096, 0, 0 },
                                  { 32768, 0, 8192 }, { 4096, 0, 8192 }, { 8192, 1024, 2048 } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const double hand = counted(cases[i][0], cases[i][1], cases[i][2]), ours = attended(model, cases[i][0], cases[i][1], cases[i][2]);
    if (fabs(hand - ours) > 0.5 + 1e-9) fail_msg("%d %d %d: %g, not %g", cases[i][0], cases[i][1], cases[i][2], ours, hand);
  }
}

/* Megatron-LM's num_floating_point_operations (megatron/training/training.py, commit d98e8a6), executed for Llama 3 8B and documents of 1,024,
** 3,072, 512 and 3,584 tokens: seqlen_squared_sum_in_batch 23,592,960, total_real_tokens_in_batch 8,192. */
static void flops_of_packed_documents_are_those_of_megatron(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  pp_training training = { .sequence_length = 8192, .document_length = 23592960.0 / 8192 };
  (void)state;
  assert_true(pp_training_attended(&training) == 2880);
  assert_true(pp_model_flops_per_token(&model, pp_training_attended(&training)) == 47292874752.0);
  training.document_length = 10000;   /* no document is longer than the sequence */
  assert_true(pp_training_attended(&training) == 8192);
}

static pp_block_seconds layer_of(const pp_model *model, const pp_training *training, pp_block block) {
  pp_block_seconds blocks[PP_BLOCKS];
  pp_error error;
  if (pp_cost_blocks(model, &single, training, &ideal, &instant, blocks, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return blocks[block];
}

/* Of 4,096 tokens a window of 128 leaves 126 on average, a document of 512 leaves 256: of 2,048. */
static void time_follows_windows_and_documents_by_kind_of_layer(void **state) {
  pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(4096);
  pp_training packed = training;
  (void)state;
  model.kinds = 1;
  model.further[0].layer = model.layer;
  model.further[0].layer.window = 128;
  for (int i = 0; i < 32; i += 2) model.kind[i] = 1;
  packed.document_length = 512;
  const double token = 4.0 * 32 * 128 * 4096 / 1e15;   /* seconds of a token that each query attends to */
  const pp_block_seconds all = layer_of(&model, &training, PP_BLOCK_DENSE), window = layer_of(&model, &training, PP_BLOCK_FURTHER);
  const pp_block_seconds documents = layer_of(&model, &packed, PP_BLOCK_DENSE);
  expect(token * (2048 - (128 - 128 * 128 / 8192.0)), all.forward - window.forward, 1e-9);
  expect(2.5 * token * (2048 - (128 - 128 * 128 / 8192.0)), all.input - window.input, 1e-9);
  expect(token * (2048 - 256), all.forward - documents.forward, 1e-9);
  expect(all.weight, documents.weight, 1e-12);
}

/* Korthikanti et al. 2205.05198, appendix A: attention over values and its scores, 4·b·s²·h forward, without the causal half, and twice that
** backward. A window or a document is masked, not left out. */
static void attention_that_is_not_fused_computes_the_whole_square(void **state) {
  pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  const pp_training fused = bf16_recipe(4096);
  pp_training apart = fused;
  (void)state;
  apart.fused_attention = false;
  const double s = 4096, h = 4096, half = 2 * s * s * h / 1e15;
  const pp_block_seconds before = layer_of(&model, &fused, PP_BLOCK_DENSE), after = layer_of(&model, &apart, PP_BLOCK_DENSE);
  expect(half, after.forward - before.forward, 1e-9);
  expect(2 * 2 * half - 2.5 * half, after.input - before.input, 1e-9);
  apart.document_length = 512;
  model.window = 128;
  expect(after.forward, layer_of(&model, &apart, PP_BLOCK_DENSE).forward, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_window_leaves_each_query_its_last_tokens),
    cmocka_unit_test(flops_of_packed_documents_are_those_of_megatron),
    cmocka_unit_test(time_follows_windows_and_documents_by_kind_of_layer),
    cmocka_unit_test(attention_that_is_not_fused_computes_the_whole_square),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

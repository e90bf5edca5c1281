/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: bytes per rank, against papers, other estimators' published values and measurements. Layers: memory_layers_test.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "blocks.h"

static pp_schedule_request schedule_of(pp_schedule_kind kind, int ranks, int microbatches, int chunks) {
  return (pp_schedule_request){ .kind = kind, .ranks = ranks, .microbatches = microbatches, .chunks = chunks };
}

/* A rank of a pipeline with an even split of the layers. */
static pp_rank_bytes rank_of(const pp_model *model, const pp_layout *layout, const pp_training *training, pp_schedule_request request, int rank) {
  pp_block_bytes blocks[PP_BLOCKS];
  pp_schedule schedule;
  pp_stage stages[512];
  pp_stage_memory needs[512];
  double scratch[1024];
  pp_rank_bytes out;
  pp_error error;
  if (pp_schedule_build(&request, &schedule, &error) != PP_OK) fail_msg("%s", error.message);
  blocks_of(model, layout, training, pp_schedule_traits_of(request.kind)->copies, blocks);
  if (pp_layout_stages(model, schedule.stages_per_chain, NULL, stages, &error) != PP_OK) fail_msg("%s", error.message);
  pp_memory_stages(stages, schedule.stages_per_chain, blocks, needs);
  pp_memory_rank(&schedule, rank, needs, 0, scratch, &out);
  pp_schedule_free(&schedule);
  return out;
}

static pp_rank_bytes alone(const pp_model *model, const pp_layout *layout, const pp_training *training) {
  pp_block_bytes blocks[PP_BLOCKS];
  pp_stage stage;
  pp_stage_memory needs;
  pp_rank_bytes out;
  blocks_of(model, layout, training, 1, blocks);
  assert_int_equal(pp_layout_stages(model, 1, NULL, &stage, NULL), PP_OK);
  pp_memory_stages(&stage, 1, blocks, &needs);
  pp_memory_holding(&needs, needs.stored, 0, &out);
  return out;
}

/* --- states -------------------------------------------------------------------------------------------------------------------- */

/* Megatron-LM docs, distributed optimizer: bytes per parameter 18 unsharded, 6 + 12/d sharded; bf16 gradients 20 → 4 + 16/d. */
static void states_follow_the_distributed_optimizer_table(void **state) {
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  (void)state;
  layout.data = 4;
  layout.context = 2;   /* d = DP × CP */
  const double parameters = (double)pp_model_parameters(&model).total;
  pp_rank_bytes rank = alone(&model, &layout, &training);
  expect(parameters * (6 + 12.0 / 8), rank.parameters + rank.gradients + rank.optimizer, 1e-12);
  training.shard_optimizer = false;
  rank = alone(&model, &layout, &training);
  expect(parameters * 18, rank.parameters + rank.gradients + rank.optimizer, 1e-12);
  training.shard_optimizer = training.shard_gradients = training.shard_parameters = true;
  rank = alone(&model, &layout, &training);
  expect(parameters * 18 / 8, rank.parameters + rank.gradients + rank.optimizer, 1e-12);
}

/* Megatron-LM core/optimizer/cpu_offloading/hybrid_optimizer.py: master weights and moments of the offloaded share lie on the host, 12 bytes,
** with a copy of their gradients, 4; weights and gradients stay on the GPU. */
static void an_offloaded_optimizer_lies_on_the_host(void **state) {
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  (void)state;
  layout.data = 4;
  training.optimizer_offload = 0.75;
  const double parameters = (double)pp_model_parameters(&model).total;
  const pp_rank_bytes rank = alone(&model, &layout, &training);
  expect(parameters * 6, rank.parameters + rank.gradients, 1e-12);
  expect(parameters / 4 * 12 * 0.25, rank.optimizer, 1e-12);
  expect(parameters / 4 * 16 * 0.75, rank.host, 1e-12);
  expect(rank.parameters + rank.gradients + rank.optimizer + rank.activations + rank.transient, rank.total, 1e-12);
}

/* Korthikanti Table 3 by 18 bytes per parameter: "parameters + optimizer" 45.5625 GiB for 22B on TP 8, counting 12·L·h² (calculon). */
static void a_22b_model_has_the_published_states(void **state) {
  const pp_model model = gpt(48, 6144, 64);
  const pp_training training = gpt_recipe(4);
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  (void)state;
  layout.tensor = 8;
  blocks_of(&model, &layout, &training, 1, blocks);
  const pp_state_bytes *block = &blocks[PP_BLOCK_DENSE].state;
  expect(45.5625, 48 * (block->parameters + block->gradients + block->optimizer) / GIB, 0.003);   /* 12h² leaves norms out */
}

/* Megatron-LM's own estimator (report_theoretical_memory.py @d98e8a6), run for shapes that it handles right: weights and optimizer of the most
** loaded shard, GiB. It splits experts by EP and their optimizer by the expert-data group. */
static void states_agree_with_megatrons_estimator(void **state) {
  pp_model mixtral = llama(32, 4096, 32, 8, 14336, 32000);
  pp_training training = bf16_recipe(8192);
  (void)state;
  mixtral.experts = 8;
  mixtral.experts_per_token = 2;
  mixtral.expert_ffn = 14336;
  mixtral.ffn = 0;
  for (int i = 0; i < 32; i++) mixtral.moe[i] = true;
  const struct { pp_model model; int tensor, pipeline, data, expert; double gib; } rows[] = {
    { llama(32, 4096, 32, 8, 14336, 128256), 1, 2, 4, 1, 33.654 },
    { llama(80, 8192, 64, 8, 28672, 128256), 8, 4, 4, 1, 19.033 },
    { mixtral, 1, 4, 16, 8, 18.685 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pp_layout layout = { .tensor = rows[i].tensor, .context = 1, .expert = rows[i].expert, .expert_tensor = 1, .data = rows[i].data,
                               .pipeline = rows[i].pipeline, .chunks = 1 };
    const pp_schedule_request request = schedule_of(PP_1F1B, rows[i].pipeline, 64, 1);
    const pp_rank_bytes rank = rank_of(&rows[i].model, &layout, &training, request, 0);
    expect(rows[i].gib, (rank.parameters + rank.gradients + rank.optimizer) / GIB, 0.002);
  }
}

/* Experts are sharded over EP × expert TP, their optimizer over the expert-data group, not over TP (NVIDIA/Megatron-LM #4050). */
static void experts_have_their_own_shard_groups(void **state) {
  pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  pp_block_parameters parameters[PP_BLOCKS];
  (void)state;
  layout.tensor = 4;
  layout.data = 32;
  layout.expert = 16;
  layout.expert_tensor = 2;   /* 128 GPUs a stage: expert-data 128 / 32 = 4 */
  pp_model_block_parameters(&model, parameters);
  blocks_of(&model, &layout, &training, 1, blocks);
  const double dense = (double)parameters[PP_BLOCK_MOE].tensor / 4 + (double)parameters[PP_BLOCK_MOE].replicated;
  const double expert = (double)parameters[PP_BLOCK_MOE].expert / 32;
  expect(2 * (dense + expert), blocks[PP_BLOCK_MOE].state.parameters, 1e-12);
  expect(12 * (dense / 32 + expert / 4), blocks[PP_BLOCK_MOE].state.optimizer, 1e-12);
}

/* A mirror copy doubles weights and gradients on the devices; the optimizer state is sharded over the pair and stays what it was. */
static void the_mirror_pair_shares_the_optimizer_state(void **state) {
  const pp_model model = deepseek_v3(32, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = { .tensor = 1, .context = 1, .expert = 8, .expert_tensor = 1, .data = 16, .pipeline = 4, .chunks = 1 };
  (void)state;
  double twice[3] = { 0 }, once[3] = { 0 };
  for (int rank = 0; rank < 4; rank++) {
    const pp_rank_bytes two = rank_of(&model, &layout, &training, schedule_of(PP_DUALPIPE, 4, 16, 1), rank);
    const pp_rank_bytes one = rank_of(&model, &layout, &training, schedule_of(PP_1F1B, 4, 16, 1), rank);
    twice[0] += two.parameters, twice[1] += two.gradients, twice[2] += two.optimizer;
    once[0] += one.parameters, once[1] += one.gradients, once[2] += one.optimizer;
  }
  expect(2 * once[0], twice[0], 1e-12);
  expect(2 * once[1], twice[1], 1e-12);
  expect(once[2], twice[2], 1e-12);
}

/* Half of the weights and gradients of two copies; the optimizer of one would be as large, spread over fewer. */
static void a_second_copy_costs_its_weights_and_gradients(void **state) {
  const pp_rank_bytes rank = { .parameters = 10, .gradients = 20, .optimizer = 5, .activations = 15, .transient = 6, .overhead = 4, .total = 60 };
  (void)state;
  expect(15, pp_memory_further_copies(&rank, 2), 1e-12);
  assert_true(pp_memory_further_copies(&rank, 1) <= 0);
}

/* --- ranks of a pipeline ------------------------------------------------------------------------------------------------------- */

/* SimuMax on A100, Llama-3-8B TP1 PP2 DP4, 4,096 tokens: states 33.6588 GiB; logits make the last stage's cache 2.0215 GiB larger;
** peaks 50.8854 and 45.1637 GiB. */
static void a_llama_pipeline_agrees_with_simumax(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  const pp_training training = bf16_recipe(4096);
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 4, .pipeline = 2, .chunks = 1 };
  const pp_schedule_request request = schedule_of(PP_1F1B, 2, 8, 1);
  (void)state;
  const pp_rank_bytes first = rank_of(&model, &layout, &training, request, 0), last = rank_of(&model, &layout, &training, request, 1);
  expect(33.6588, (first.parameters + first.gradients + first.optimizer) / GIB, 1e-4);
  expect(2.0215, (last.activations - first.activations / 2) / GIB, 0.001);
  expect(50.8854, first.total / GIB, 0.001);
  expect(45.1637, last.total / GIB, 0.001);
}

/* SimuMax, the same model on TP 8: states 16.8443, cache 2.3799, peak 19.3472 GiB. */
static void a_tensor_parallel_llama_agrees_with_simumax(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  (void)state;
  layout.tensor = 8;
  const pp_rank_bytes rank = alone(&model, &layout, &training);
  expect(16.8443, (rank.parameters + rank.gradients + rank.optimizer) / GIB, 1e-3);
  expect(2.3799, rank.activations / GIB, 0.001);
  expect(19.3472, rank.total / GIB, 0.001);
}

/* Measured on 8 B200 (MooreThreads/SimuMax docs/b200/b200_release_v1.2_summary.md, "real alloc GiB", fused cross entropy, 4,096 tokens):
** within 2 %. Flat in M. DeepSeek-V3 cut to four layers, one of them dense. */
static void measured_peaks_are_met_within_two_per_cent(void **state) {
  static const struct { int model; int64_t layers; int tensor, depth, data, expert; double gib; } rows[] = {
    { 70, 12, 1, 2, 4, 1, 66.55 }, { 70, 12, 2, 1, 4, 1, 60.68 }, { 70, 12, 4, 1, 2, 1, 39.07 }, { 70, 12, 8, 1, 1, 1, 28.29 },
    { 405, 4, 1, 2, 4, 1, 87.08 }, { 405, 4, 2, 1, 4, 1, 81.59 }, { 405, 4, 4, 1, 2, 1, 52.89 }, { 405, 4, 8, 1, 1, 1, 38.57 },
    { 671, 4, 1, 1, 8, 8, 104.30 }, { 671, 4, 1, 2, 4, 4, 114.00 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const int64_t padded = 128 * rows[i].tensor, vocab = (128256 + padded - 1) / padded * padded;   /* Megatron pads to 128 × TP */
    const pp_model model = rows[i].model == 70    ? llama(rows[i].layers, 8192, 64, 8, 28672, vocab)
                           : rows[i].model == 405 ? llama(rows[i].layers, 16384, 128, 8, 53248, vocab)
                                                  : deepseek_v3(rows[i].layers, 1, 0);
    pp_training training = bf16_recipe(4096);
    const pp_layout layout = { .tensor = rows[i].tensor, .context = 1, .expert = rows[i].expert, .expert_tensor = 1,
                               .data = rows[i].data, .pipeline = rows[i].depth, .chunks = 1 };
    training.loss = PP_LOSS_IN_PLACE;
    training.weight_gradient_bytes = 2;
    double peak = 0;
    if (rows[i].depth == 1) peak = alone(&model, &layout, &training).total;
    for (int rank = 0; rows[i].depth > 1 && rank < rows[i].depth; rank++) {
      const pp_rank_bytes bytes = rank_of(&model, &layout, &training, schedule_of(PP_1F1B, rows[i].depth, 8, 1), rank);
      if (bytes.total > peak) peak = bytes.total;
    }
    expect(rows[i].gib, peak / GIB, 0.02);
  }
}

/* deepspeedai/DeepSpeed#4602: the first stage of 1F1B holds min(M, P) microbatches, so M = 2 takes twice the activations of M = 1. */
static void memory_grows_with_m_until_p(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(4096);
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 4, .chunks = 1 };
  (void)state;
  const double one = rank_of(&model, &layout, &training, schedule_of(PP_GPIPE, 4, 1, 1), 0).activations;
  const double two = rank_of(&model, &layout, &training, schedule_of(PP_GPIPE, 4, 2, 1), 0).activations;
  const double four = rank_of(&model, &layout, &training, schedule_of(PP_1F1B, 4, 4, 1), 0).activations;
  const double many = rank_of(&model, &layout, &training, schedule_of(PP_1F1B, 4, 64, 1), 0).activations;
  expect(2 * one, two, 1e-12);
  expect(4 * one, four, 1e-12);
  expect(four, many, 1e-12);
}

/* sail-sg/zero-bubble#36: a V placement puts embedding and head on rank 0, so that ZB-V peaks above ZB-H1 there. */
static void a_v_placement_puts_both_ends_on_rank_0(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(4096);
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 8, .chunks = 2 };
  (void)state;
  const pp_rank_bytes v = rank_of(&model, &layout, &training, schedule_of(PP_ZB_V, 8, 32, 2), 0);
  const pp_rank_bytes middle = rank_of(&model, &layout, &training, schedule_of(PP_ZB_V, 8, 32, 2), 3);
  const double table = 2.0 * 128256 * 4096;
  expect(2 * table, v.parameters - middle.parameters, 0.001);
}

/* allenai/OLMo-core#686, NVIDIA/Megatron-LM#299: tied output weights exist on the first and on the last stage, and once where one rank holds
** both ends. */
static void tied_output_weights_are_copied_only_where_the_ends_are_apart(void **state) {
  pp_model model = llama(32, 2048, 16, 8, 6144, 151936);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 4, .chunks = 1 };
  (void)state;
  model.tied_embeddings = true;
  double sum = 0;
  for (int rank = 0; rank < 4; rank++) sum += rank_of(&model, &layout, &training, schedule_of(PP_1F1B, 4, 8, 1), rank).parameters;
  expect(2 * ((double)pp_model_parameters(&model).total + 151936.0 * 2048), sum, 1e-12);
  layout.chunks = 2;
  sum = 0;
  for (int rank = 0; rank < 4; rank++) sum += rank_of(&model, &layout, &training, schedule_of(PP_ZB_V, 4, 8, 2), rank).parameters;
  expect(2 * (double)pp_model_parameters(&model).total, sum, 1e-12);
  expect(2 * (double)pp_model_parameters(&model).total, alone(&model, &single, &training).parameters, 1e-12);
}

/* Derived: W of the output weights is a product of logits' gradients and hidden states, V × h, whoever else uses these weights. */
static void tied_output_weights_have_a_gradient_of_their_own(void **state) {
  pp_model model = llama(32, 2048, 16, 8, 6144, 151936);
  pp_training training = bf16_recipe(4096);
  pp_block_bytes apart[PP_BLOCKS], added_in_place[PP_BLOCKS], tied[PP_BLOCKS];
  (void)state;
  blocks_of(&model, &single, &training, 1, added_in_place);
  training.weight_gradient_bytes = 2;
  blocks_of(&model, &single, &training, 1, apart);
  model.tied_embeddings = true;
  blocks_of(&model, &single, &training, 1, tied);
  expect(2.0 * 151936 * 2048, apart[PP_BLOCK_HEAD].weight_gradients[PP_SHAPES_HEAD], 1e-12);
  expect(2.0 * 151936 * 2048, tied[PP_BLOCK_HEAD].weight_gradients[PP_SHAPES_HEAD], 1e-12);
  assert_true(added_in_place[PP_BLOCK_HEAD].weight_gradients[PP_SHAPES_HEAD] <= 0);
}

/*
** Measured on H200 with megatron-core 0.19.2 and none of Transformer Engine (tests/data/gpu/megatron_runs_4xH200.json, transient_bytes of B): two
** layers of hidden 4,096 and a feed-forward of 14,336 take 268,435,456 bytes beside what they keep, with the head 1,050,690,048. The gradient of the
** normed hidden states, 33,554,432 bytes, is not counted.
*/
static void a_weight_gradient_that_is_dropped_stands_alone(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  (void)state;
  training.weight_gradient_bytes = 2;
  training.weight_gradients_pass = true;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(268435456 - 33554432, blocks[PP_BLOCK_DENSE].transient, 1e-9);
  expect(1050690048, blocks[PP_BLOCK_HEAD].transient, 1e-4);
  for (int k = 0; k < PP_SHAPES; k++) assert_true(blocks[PP_BLOCK_HEAD].weight_gradients[k] + blocks[PP_BLOCK_DENSE].weight_gradients[k] <= 0);
}

/*
** Measured on H200 (tests/data/gpu/megatron_runs_1xH200.json, dense): 50,389,525,504 bytes before a step, 61,571,539,968 at most in its update, for
** 2,795,573,248 parameters of 18 bytes: PyTorch's update keeps a root of the second moments, four bytes a parameter, when no activations are there.
*/
static void an_update_out_of_operations_has_a_temporary(void **state) {
  const pp_model model = llama(8, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(4096);
  (void)state;
  training.recompute.full = true;
  const pp_rank_bytes fused = alone(&model, &single, &training);
  training.unfused_optimizer = true;
  const pp_rank_bytes apart = alone(&model, &single, &training);
  const double states = fused.parameters + fused.gradients + fused.optimizer;
  expect(50389525504.0, states, 0.002);
  expect(61571539968.0, states + apart.activations + apart.transient, 0.002);
  assert_true(fused.activations + fused.transient < apart.activations + apart.transient);
}

/*
** DeepSeek-V3 report §2.2: M_k projects two hidden states to one, d × 2d, which no other weight's shape is: Transformer Engine keeps a gradient
** of its own for it (module/base.py, get_dummy_wgrad), 2 · 7168² · 2 = 205,520,896 bytes, less by TP. The module's layer and head have shapes that
** the stage has anyway.
*/
static void the_projection_of_mtp_has_a_gradient_of_its_own(void **state) {
  const pp_model with = deepseek_v3(8, 0, 1), without = deepseek_v3(8, 0, 0);
  pp_training training = bf16_recipe(4096);
  (void)state;
  training.weight_gradient_bytes = 2;
  for (int tensor = 1; tensor <= 4; tensor *= 4) {
    const pp_layout layout = { .tensor = tensor, .context = 1, .expert = 8, .expert_tensor = 1, .data = 8, .pipeline = 2, .chunks = 1 };
    double transient[2][2];
    for (int rank = 0; rank < 2; rank++) {
      transient[0][rank] = rank_of(&without, &layout, &training, schedule_of(PP_1F1B, 2, 8, 1), rank).transient;
      transient[1][rank] = rank_of(&with, &layout, &training, schedule_of(PP_1F1B, 2, 8, 1), rank).transient;
    }
    expect(transient[0][0], transient[1][0], 1e-12);
    expect(205520896.0 / tensor, transient[1][1] - transient[0][1], 1e-9);
  }
}

/*
** Eq. 21 there: M_k takes [RMSNorm(h); RMSNorm(Emb)]. What both norms read, 2 · 2d bytes a token in bf16, and what the projection reads, as many, are
** kept beside a layer's and a head's activations; the gradient of the projection's output, 2d, waits for W as theirs do.
*/
static void a_module_of_mtp_keeps_what_its_norms_and_its_projection_read(void **state) {
  const pp_model model = deepseek_v3(8, 0, 1);
  const pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  const pp_block_bytes *mtp = &blocks[PP_BLOCK_MTP], *layer = &blocks[PP_BLOCK_MOE], *head = &blocks[PP_BLOCK_HEAD];
  expect(4096.0 * (2 * 2 + 2 * 2) * 7168, mtp->stored - layer->stored - head->stored, 1e-9);
  expect(4096.0 * (2 * 2 + 2) * 7168, mtp->pending - layer->pending - head->pending, 1e-9);
}

/*
** A rank's K·s·b·te/t dispatched tokens (NVIDIA/Megatron-LM PR 6782) have gradients that come and go with the backward of the experts: in bf16 2h bytes
** each before the first product and 2 · 2 · width before the activation, whichever is more. DeepSeek-V3's experts on two ranks each: width
** 2048 / 2, so 2h; K = 8. Mixtral's: 2 · 2 · 14336, K = 2, whatever splits them, since te ranks gather te times the tokens.
*/
static void gathered_tokens_of_experts_need_gradients(void **state) {
  const pp_model deepseek = deepseek_v3(4, 0, 0);
  pp_model mixtral = llama(32, 4096, 32, 8, 14336, 32000);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  (void)state;
  layout.data = 16;
  for (layout.expert_tensor = 2; layout.expert_tensor <= 8; layout.expert_tensor *= 2) {
    blocks_of(&deepseek, &layout, &training, 1, blocks);
    expect(4096.0 * 8 * layout.expert_tensor * 2 * 7168, blocks[PP_BLOCK_MOE].transient, 1e-12);
  }
  mixtral.experts = 8;
  mixtral.experts_per_token = 2;
  mixtral.expert_ffn = 14336;
  for (int i = 0; i < 32; i++) mixtral.moe[i] = true;
  for (layout.expert_tensor = 1; layout.expert_tensor <= 4; layout.expert_tensor *= 2) {
    blocks_of(&mixtral, &layout, &training, 1, blocks);
    expect(4096.0 * 2 * 2 * 2 * 14336, blocks[PP_BLOCK_MOE].transient, 1e-12);
  }
}

/* What the experts' first product reads is kept for each gathered token, and until W the gradient of what their second gives too: 2h bytes each. */
static void gathered_tokens_of_experts_are_kept(void **state) {
  const pp_model deepseek = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes alone[PP_BLOCKS], blocks[PP_BLOCKS];
  (void)state;
  layout.data = 16;
  blocks_of(&deepseek, &layout, &training, 1, alone);
  for (layout.expert_tensor = 2; layout.expert_tensor <= 8; layout.expert_tensor *= 2) {
    const double more = 4096.0 * 8 * (layout.expert_tensor - 1);
    blocks_of(&deepseek, &layout, &training, 1, blocks);
    expect(more * 2 * 7168, blocks[PP_BLOCK_MOE].stored - alone[PP_BLOCK_MOE].stored, 1e-9);
    expect(more * 2 * 2 * 7168, blocks[PP_BLOCK_MOE].pending - alone[PP_BLOCK_MOE].pending, 1e-9);
  }
}

/* Llama-class 70B on 128 H100 of 80 GB with TP 8 PP 2 (NVIDIA/Megatron-LM#1031): states 79 GB unsharded, 33 GB at DP 8, 28 GB at DP 48. */
static void a_70b_model_fits_only_with_a_sharded_optimizer(void **state) {
  const pp_model model = llama(80, 8192, 64, 8, 28672, 128256);
  pp_training training = bf16_recipe(4096);
  pp_layout layout = { .tensor = 8, .context = 1, .expert = 1, .expert_tensor = 1, .data = 8, .pipeline = 2, .chunks = 1 };
  const pp_schedule_request request = schedule_of(PP_1F1B, 2, 8, 1);
  (void)state;
  pp_rank_bytes rank = rank_of(&model, &layout, &training, request, 0);
  expect(33e9, rank.parameters + rank.gradients + rank.optimizer, 0.02);
  layout.data = 48;
  rank = rank_of(&model, &layout, &training, request, 0);
  expect(28e9, rank.parameters + rank.gradients + rank.optimizer, 0.02);
  training.shard_optimizer = false;
  rank = rank_of(&model, &layout, &training, request, 0);
  expect(79e9, rank.parameters + rank.gradients + rank.optimizer, 0.01);
}

/* Qwen3-235B in full on 32 GPUs (THUDM/slime#280): 235 × 18 / 32 = 132 GB a GPU of states: impossible with Adam on the GPU. */
static void full_training_of_qwen3_235b_does_not_fit_32_gpus(void **state) {
  pp_model model = { .layers = 94, .hidden = 4096, .vocab = 151936, .heads = 64, .kv_heads = 4, .head_dim = 128, .qk_norm = PP_QK_NORM_HEAD,
                     .gated = true, .experts = 128, .experts_per_token = 8, .expert_ffn = 1536, .norms_per_layer = 2 };
  const pp_training training = bf16_recipe(4096);
  const pp_layout layout = { .tensor = 4, .context = 1, .expert = 8, .expert_tensor = 1, .data = 2, .pipeline = 4, .chunks = 1 };
  (void)state;
  for (int i = 0; i < 94; i++) model.moe[i] = true;
  double mean = 0;
  for (int rank = 0; rank < 4; rank++) {
    const pp_rank_bytes bytes = rank_of(&model, &layout, &training, schedule_of(PP_1F1B, 4, 8, 1), rank);
    mean += (bytes.parameters + bytes.gradients + bytes.optimizer) / 4;
  }
  expect(132e9, mean, 0.05);
}

/* AMD-AGI/Primus MI300X deepseek_v3 defaults PP 1, EP 8: experts 654 B / 8 are 163 GB of bf16 weights and 490 GB with fp32 gradients. */
static void deepseek_v3_on_ep_8_without_a_pipeline_is_hopeless(void **state) {
  const pp_model model = deepseek_v3(61, 3, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  pp_block_parameters parameters[PP_BLOCKS];
  (void)state;
  layout.data = layout.expert = 8;
  pp_model_block_parameters(&model, parameters);
  blocks_of(&model, &layout, &training, 1, blocks);
  const double expert = 58 * (double)parameters[PP_BLOCK_MOE].expert / 8;
  expect(163e9, 2 * expert, 0.01);
  assert_true(58 * (blocks[PP_BLOCK_MOE].state.parameters + blocks[PP_BLOCK_MOE].state.gradients) > 490e9);
}

static void bad_recipes_name_their_field(void **state) {
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  pp_error error;
  (void)state;
  training.expert_imbalance = 0.5;
  assert_int_equal(pp_memory_blocks(&model, &single, &training, 1, blocks, &error), PP_INVALID);
  assert_string_equal(error.field, "expert_imbalance");
  training.expert_imbalance = 1;
  training.moment_bytes = (double)NAN;
  assert_int_equal(pp_memory_blocks(&model, &single, &training, 1, blocks, &error), PP_INVALID);
  assert_string_equal(error.field, "moment_bytes");
  training.moment_bytes = 8;
  training.optimizer_offload = 1.5;
  assert_int_equal(pp_memory_blocks(&model, &single, &training, 1, blocks, &error), PP_INVALID);
  assert_string_equal(error.field, "optimizer_offload");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(states_follow_the_distributed_optimizer_table),
    cmocka_unit_test(an_offloaded_optimizer_lies_on_the_host),
    cmocka_unit_test(a_22b_model_has_the_published_states),
    cmocka_unit_test(states_agree_with_megatrons_estimator),
    cmocka_unit_test(experts_have_their_own_shard_groups),
    cmocka_unit_test(the_mirror_pair_shares_the_optimizer_state),
    cmocka_unit_test(a_second_copy_costs_its_weights_and_gradients),
    cmocka_unit_test(a_llama_pipeline_agrees_with_simumax),
    cmocka_unit_test(a_tensor_parallel_llama_agrees_with_simumax),
    cmocka_unit_test(measured_peaks_are_met_within_two_per_cent),
    cmocka_unit_test(memory_grows_with_m_until_p),
    cmocka_unit_test(a_v_placement_puts_both_ends_on_rank_0),
    cmocka_unit_test(tied_output_weights_are_copied_only_where_the_ends_are_apart),
    cmocka_unit_test(tied_output_weights_have_a_gradient_of_their_own),
    cmocka_unit_test(the_projection_of_mtp_has_a_gradient_of_its_own),
    cmocka_unit_test(a_weight_gradient_that_is_dropped_stands_alone),
    cmocka_unit_test(an_update_out_of_operations_has_a_temporary),
    cmocka_unit_test(a_module_of_mtp_keeps_what_its_norms_and_its_projection_read),
    cmocka_unit_test(gathered_tokens_of_experts_need_gradients),
    cmocka_unit_test(gathered_tokens_of_experts_are_kept),
    cmocka_unit_test(a_70b_model_fits_only_with_a_sharded_optimizer),
    cmocka_unit_test(full_training_of_qwen3_235b_does_not_fit_32_gpus),
    cmocka_unit_test(deepseek_v3_on_ep_8_without_a_pipeline_is_hopeless),
    cmocka_unit_test(bad_recipes_name_their_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

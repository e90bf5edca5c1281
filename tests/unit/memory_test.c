/* memory.c: bytes per rank, against papers, other estimators' published values and measurements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/memory.h"
#include "shapes.h"

static const pp_layout single = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };

static void blocks_of(const pp_model *model, const pp_layout *layout, const pp_training *training, int copies, pp_block_bytes out[PP_BLOCKS]) {
  pp_error error;
  if (pp_memory_blocks(model, layout, training, copies, out, &error) != PP_OK) fail_msg("%s", error.message);
}

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

/* --- activations of a layer ---------------------------------------------------------------------------------------------------- */

/* The recipe of Korthikanti et al.: fp16, unfused attention, dropout everywhere. */
static pp_training gpt_recipe(int64_t micro_batch) {
  pp_training training = bf16_recipe(2048);
  training.precision = PP_FP16;
  training.micro_batch = micro_batch;
  training.fused_attention = false;
  training.dropout = true;
  training.sequence_parallel = false;
  training.shard_optimizer = false;
  return training;
}

static double layer_bytes(const pp_model *model, int tensor, const pp_training *training) {
  pp_layout layout = single;
  pp_block_bytes blocks[PP_BLOCKS];
  layout.tensor = tensor;
  blocks_of(model, &layout, training, 1, blocks);
  return blocks[PP_BLOCK_DENSE].stored;
}

/* Korthikanti et al. 2205.05198 Table 2, every row, for their 22B model. */
static void a_gpt_layer_keeps_what_table_2_says(void **state) {
  const pp_model model = gpt(48, 6144, 64);
  const double sbh = 2048.0 * 4 * 6144, scores = 5 * 64 * 2048.0 / 6144;
  pp_training training = gpt_recipe(4);
  (void)state;
  expect(sbh * (34 + scores), layer_bytes(&model, 1, &training), 1e-12);
  expect(sbh * (10 + 24.0 / 8 + scores / 8), layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.core_attention = true;
  expect(sbh * (10 + 24.0 / 8), layer_bytes(&model, 8, &training), 1e-12);
  training.sequence_parallel = true;
  expect(sbh * 34 / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.core_attention = false;
  expect(sbh * (34 + scores) / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.recompute.full = true;
  expect(sbh * 2 / 8, layer_bytes(&model, 8, &training), 1e-12);
  training.sequence_parallel = false;
  expect(sbh * 2, layer_bytes(&model, 8, &training), 1e-12);
}

/* OLMo's norms have no weights (arXiv 2402.00838 §2.1), but backward reads their inputs and outputs as any norm's. */
static void norms_without_weights_keep_what_norms_keep(void **state) {
  pp_model model = llama(16, 2048, 16, 16, 8192, 50304);
  const pp_training training = bf16_recipe(2048);
  const double with = layer_bytes(&model, 1, &training);
  (void)state;
  model.norms_per_layer = 0;
  expect(with, layer_bytes(&model, 1, &training), 1e-12);
}

/* Korthikanti Table 3 and Fig. 1: GiB of the first stage's layers, as the schedule holds them, without recompute and with sequence
** parallelism and selective recompute (calculon-ai/calculon validation/seqsel holds the same values). */
static void the_four_gpt_sizes_hold_the_published_activations(void **state) {
  static const struct { int64_t layers, hidden, heads, batch; int depth, chunks; double none, selective; } rows[] = {
    { 48, 6144, 64, 4, 1, 1, 59.25, 9.5625 },
    { 96, 12288, 96, 1, 8, 3, 66.84375, 12.3515625 },
    { 105, 20480, 128, 1, 35, 3, 114.0234375, 23.076171875 },
    { 128, 25600, 160, 1, 64, 1, 131.25, 26.5625 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pp_model model = gpt(rows[i].layers, rows[i].hidden, rows[i].heads);
    pp_training training = gpt_recipe(rows[i].batch);
    const double layers = (double)rows[i].layers;
    double held = layers;   /* layers' worth of microbatches on rank 0 */
    if (rows[i].depth > 1) {
      const int stages = rows[i].depth * rows[i].chunks;
      double stored[512], pending[512];
      pp_schedule schedule;
      const pp_schedule_request request = { .kind = rows[i].chunks > 1 ? PP_INTERLEAVED_1F1B : PP_1F1B, .ranks = rows[i].depth,
                                            .microbatches = 2 * rows[i].depth, .chunks = rows[i].chunks };
      for (int s = 0; s < stages; s++) stored[s] = layers / stages, pending[s] = 0;
      assert_int_equal(pp_schedule_build(&request, &schedule, NULL), PP_OK);
      held = pp_schedule_peak(&schedule, 0, stored, pending);
      pp_schedule_free(&schedule);
    }
    expect(rows[i].none, held * layer_bytes(&model, 8, &training) / GIB, 1e-9);
    training.sequence_parallel = training.recompute.core_attention = true;
    expect(rows[i].selective, held * layer_bytes(&model, 8, &training) / GIB, 1e-9);
  }
}

/* The same paper's relative figures, in per cent of no technique: 22B 7.64 with full recompute, 175B 56.53 selective. */
static void recompute_saves_the_published_shares(void **state) {
  const pp_model small = gpt(48, 6144, 64), large = gpt(96, 12288, 96);
  pp_training training = gpt_recipe(4);
  (void)state;
  const double none_small = layer_bytes(&small, 8, &training), none_large = layer_bytes(&large, 8, &training);
  training.recompute.core_attention = true;
  expect(0.5653, layer_bytes(&large, 8, &training) / none_large, 0.005);
  training.recompute.full = true;
  expect(0.0764, layer_bytes(&small, 8, &training) / none_small, 0.01);
}

/* SimuMax, within 1 % of real peaks: Llama-3-8B keeps 8h + 4ad + 4kd + 4a + 6f = 139,392 bytes per token and layer; 16 layers of 4,096
** tokens are 8.5039 GiB there. */
static void a_llama_layer_keeps_139392_bytes_per_token(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  const pp_training training = bf16_recipe(4096);
  (void)state;
  expect(139392, layer_bytes(&model, 1, &training) / 4096, 1e-12);
  expect(8.5039, 16 * layer_bytes(&model, 1, &training) / GIB, 0.001);
  expect(139392.0 / 8, layer_bytes(&model, 8, &training) / 4096, 1e-12);
}

/* In fp32 all of it but the softmax statistics, which are fp32 anyway, takes twice as much. */
static void a_layer_in_fp32_keeps_twice_as_much(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  pp_training training = bf16_recipe(4096);
  (void)state;
  const double statistics = 4.0 * 32 * 4096, half = layer_bytes(&model, 1, &training) - statistics;
  training.precision = PP_FP32;
  training.activation_bytes = training.attention_output_bytes = training.activation_input_bytes = 4;
  expect(2 * half + statistics, layer_bytes(&model, 1, &training), 1e-12);
}

/* Transformer Engine in fp8: attention keeps its bf16 output beside the projection's fp8 input; recompute of the core drops it. In bf16 both are
** one tensor, and nothing is saved: Megatron-Bridge's recompute skill measured 36.618 and 36.614 GB for Moonlight-16B. */
static void core_recompute_saves_an_output_that_fused_attention_keeps_for_itself(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128384);
  pp_training training = bf16_recipe(4096);
  (void)state;
  const double stored = layer_bytes(&model, 1, &training);
  training.recompute.core_attention = true;
  expect(stored, layer_bytes(&model, 1, &training), 1e-12);
  training.activation_bytes = 1;
  training.attention_output_bytes = 3;
  const double recomputed = layer_bytes(&model, 1, &training);
  training.recompute.core_attention = false;
  expect(2.0 * 4096 * 4096, layer_bytes(&model, 1, &training) - recomputed, 1e-9);
}

/* Zero-bubble code family (hpcaitech/ColossalAI PR 6150): of 34h bytes of a GPT layer without dropout masks 32h wait for W: inputs 2h, 2h, 2h,
** 8h, output gradients 6h, 2h, 8h, 2h. */
static void w_waits_for_inputs_and_output_gradients(void **state) {
  const pp_model model = gpt(1, 4096, 32);
  pp_block_bytes blocks[PP_BLOCKS];
  pp_training training = bf16_recipe(1024);
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(32.0 * 4096 * 1024, blocks[PP_BLOCK_DENSE].pending, 1e-12);
  training.recompute.full = true;   /* recomputed inputs wait for W like stored ones */
  blocks_of(&model, &single, &training, 1, blocks);
  expect(32.0 * 4096 * 1024, blocks[PP_BLOCK_DENSE].pending, 1e-12);
}

/* By hand from the DeepSeek-V3 shape: what W of a dense layer with latent attention multiplies, in bf16. Inputs: hidden of both halves, the
** normed latents, the attention's output, the MLP's product; gradients of outputs: latents with k_rope, queries, expanded keys and values, the
** output projection, gate and up, down. Without the rotary part keys have 128 of a head, values 128. */
static void w_of_latent_attention_waits_for_the_gradients_of_all_its_products(void **state) {
  const pp_model model = deepseek_v3(1, 1, 0);
  const pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, inputs = h + (1536 + 512) + 128 * 128 + h + 18432;
  const double gradients = (1536 + 512 + 64) + 128 * 192 + 128 * (128 + 128) + h + 2 * 18432 + h;
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(2 * (inputs + gradients), blocks[PP_BLOCK_DENSE].pending / 4096, 1e-12);
}

/* NVIDIA/Megatron-LM PR 6782, as corrected: a rank holds K·s·b·te/t dispatched tokens and EP does not reduce them. */
static void expert_parallelism_does_not_reduce_dispatched_tokens(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_block_bytes narrow[PP_BLOCKS], wide[PP_BLOCKS];
  (void)state;
  layout.data = 64;
  blocks_of(&model, &layout, &training, 1, narrow);
  layout.expert = 64;
  blocks_of(&model, &layout, &training, 1, wide);
  expect(narrow[PP_BLOCK_MOE].stored, wide[PP_BLOCK_MOE].stored, 1e-12);
  assert_true(wide[PP_BLOCK_MOE].state.parameters < narrow[PP_BLOCK_MOE].state.parameters / 10);
}

/* By hand from the DeepSeek-V3 shape, bytes per token in bf16: norms in and out 8h; latents and k_rope 2(1536 + 512 + 64), their norms'
** outputs 2(1536 + 512); Q and K 2·128·192 each, V 2·128·128, output 2·128·128, LSE 4·128; router 4·256; experts 8(2h + 6·2048);
** shared 6·2048. */
static void an_mla_moe_layer_is_counted_tensor_by_tensor(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, expected = 8 * h + 2 * (1536 + 512 + 64) + 2 * (1536 + 512) + 2 * 2 * 128 * 192 + 2 * 2 * 128 * 128 + 4 * 128 +
                                    4 * 256 + 8 * (2 * h + 6 * 2048) + 6 * 2048;
  (void)state;
  blocks_of(&model, &single, &training, 1, blocks);
  expect(expected, blocks[PP_BLOCK_MOE].stored / 4096, 1e-12);
}

/* DeepSeek-V3 report §3.3: outputs of norms, MLA up-projections and SwiGLU recomputed; fp8 caches, attention output in 12 bits. */
static void module_wise_recompute_drops_what_the_report_lists(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_block_bytes blocks[PP_BLOCKS];
  const double h = 7168, expected = 4 * h + 2 * (1536 + 512 + 64) + 1.5 * 128 * 128 + 4 * 128 + 4 * 256 + 8 * (h + 2 * 2048) + 2 * 2048;
  (void)state;
  training.precision = PP_FP8;
  training.activation_bytes = training.activation_input_bytes = 1;
  training.attention_output_bytes = 1.5;
  training.recompute = (pp_recompute){ .norm = true, .mla_up_projection = true, .activation = true };
  blocks_of(&model, &single, &training, 1, blocks);
  expect(expected, blocks[PP_BLOCK_MOE].stored / 4096, 1e-12);
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
    training.fused_loss = true;
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
    cmocka_unit_test(a_gpt_layer_keeps_what_table_2_says),
    cmocka_unit_test(norms_without_weights_keep_what_norms_keep),
    cmocka_unit_test(the_four_gpt_sizes_hold_the_published_activations),
    cmocka_unit_test(recompute_saves_the_published_shares),
    cmocka_unit_test(a_llama_layer_keeps_139392_bytes_per_token),
    cmocka_unit_test(a_layer_in_fp32_keeps_twice_as_much),
    cmocka_unit_test(core_recompute_saves_an_output_that_fused_attention_keeps_for_itself),
    cmocka_unit_test(w_waits_for_inputs_and_output_gradients),
    cmocka_unit_test(w_of_latent_attention_waits_for_the_gradients_of_all_its_products),
    cmocka_unit_test(expert_parallelism_does_not_reduce_dispatched_tokens),
    cmocka_unit_test(an_mla_moe_layer_is_counted_tensor_by_tensor),
    cmocka_unit_test(module_wise_recompute_drops_what_the_report_lists),
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
    cmocka_unit_test(gathered_tokens_of_experts_need_gradients),
    cmocka_unit_test(a_70b_model_fits_only_with_a_sharded_optimizer),
    cmocka_unit_test(full_training_of_qwen3_235b_does_not_fit_32_gpus),
    cmocka_unit_test(deepseek_v3_on_ep_8_without_a_pipeline_is_hopeless),
    cmocka_unit_test(bad_recipes_name_their_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

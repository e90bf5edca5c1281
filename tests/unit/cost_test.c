/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c: seconds of blocks, stages, pairs and hops, against hand derivations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/cost.h"
#include "devices.h"
#include "shapes.h"

static void blocks_of(const pp_model *model, pp_layout layout, const pp_training *training, const pp_device *device,
                      const pp_network *network, pp_block_seconds out[PP_BLOCKS]) {
  pp_error error;
  if (pp_cost_blocks(model, &layout, training, device, network, out, NULL, &error) != PP_OK) fail_msg("%s", error.message);
}

/* Forward and half of backward each are the model's FLOPs (Narayanan et al. appendix), but for attention's backward: 2.5 of its forward. */
static void an_ideal_device_takes_the_models_flops(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(8192);
  pp_block_seconds blocks[PP_BLOCKS];
  pp_block_flops flops[PP_BLOCKS];
  (void)state;
  blocks_of(&model, layout_of(1, 1, 1, 1, 1), &training, &ideal, &instant, blocks);
  pp_model_block_flops(&model, 8192, flops);
  const double total = pp_model_flops_per_token(&model, 8192) * 8192, attention = 32 * 8192 * flops[PP_BLOCK_DENSE].attention;
  const double forward = 32 * blocks[PP_BLOCK_DENSE].forward + blocks[PP_BLOCK_HEAD].forward;
  const double backward = 32 * (blocks[PP_BLOCK_DENSE].input + blocks[PP_BLOCK_DENSE].weight) + blocks[PP_BLOCK_HEAD].input + blocks[PP_BLOCK_HEAD].weight;
  expect(total / 3 / 1e15, forward, 1e-9);
  expect((2 * total / 3 + attention / 2) / 1e15, backward, 1e-9);
}

/*
** Mamba-2, 32 heads of 64 channels with 128 states each: 7 FLOPs for each of their states (steps × A, its exponential, × B, two for the state, two
** with C), in the backward twice that. Half of 2 PFLOP/s.
*/
static void a_recurrence_takes_its_flops_at_attentions_speed(void **state) {
  pp_model model = { .layers = 2, .hidden = 1024, .vocab = 32000, .norms_per_layer = 1, .attention = PP_ATTENTION_MAMBA2, .key_heads = 1,
                     .key_dim = 128, .value_heads = 32, .value_dim = 64, .conv_kernel = 4 };
  const pp_training training = bf16_recipe(8192);
  pp_device device = ideal;
  pp_block_seconds blocks[PP_BLOCKS];
  pp_pass_terms terms[PP_BLOCKS][PP_PASSES];
  pp_error error;
  const pp_layout layout = layout_of(1, 1, 1, 1, 1);
  (void)state;
  device.flops_bf16 = 2e15;
  device.attention_efficiency = 0.5;
  if (pp_cost_blocks(&model, &layout, &training, &device, &instant, blocks, terms, &error) != PP_OK) fail_msg("%s", error.message);
  expect(8192 * 7.0 * 32 * 64 * 128 / 1e15, terms[PP_BLOCK_DENSE][0].attention, 1e-9);
  expect(2 * 8192 * 7.0 * 32 * 64 * 128 / 1e15, terms[PP_BLOCK_DENSE][1].attention, 1e-9);
}

static void tensor_and_context_parallelism_divide_the_work(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(8192);
  pp_block_seconds one[PP_BLOCKS], many[PP_BLOCKS];
  (void)state;
  blocks_of(&model, layout_of(1, 1, 1, 1, 1), &training, &ideal, &instant, one);
  blocks_of(&model, layout_of(4, 2, 1, 1, 1), &training, &ideal, &instant, many);
  expect(one[PP_BLOCK_DENSE].forward / 8, many[PP_BLOCK_DENSE].forward, 1e-9);
  expect(one[PP_BLOCK_DENSE].weight / 8, many[PP_BLOCK_DENSE].weight, 1e-9);
  expect(one[PP_BLOCK_HEAD].input / 8, many[PP_BLOCK_HEAD].input, 1e-9);
}

/* Korthikanti et al. §4.2.2: a layer gathers twice and scatters twice each way, 2·s·b·h bytes in all: (t−1)/t of them a time. */
static void tensor_parallel_traffic_is_exposed_both_ways(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(8192);
  pp_block_seconds quick[PP_BLOCKS], slow[PP_BLOCKS];
  const double once = 7 * 2e-6 + 7.0 / 8 * 2 * 8192 * 4096 / (400e9 * 0.8);
  (void)state;
  blocks_of(&model, layout_of(8, 1, 1, 1, 1), &training, &ideal, &instant, quick);
  blocks_of(&model, layout_of(8, 1, 1, 1, 1), &training, &ideal, &real, slow);
  expect(4 * once, slow[PP_BLOCK_DENSE].forward - quick[PP_BLOCK_DENSE].forward, 1e-9);
  expect(4 * once, slow[PP_BLOCK_DENSE].input - quick[PP_BLOCK_DENSE].input, 1e-9);
}

/* The paper's point in §4.2.2: without sequence parallelism each region ends in an all-reduce, which is a scatter and a gather: as much traffic. */
static void tensor_parallel_traffic_is_the_same_without_sequence_parallelism(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(8192);
  pp_block_seconds with[PP_BLOCKS], without[PP_BLOCKS];
  (void)state;
  blocks_of(&model, layout_of(8, 1, 1, 1, 1), &training, &ideal, &real, with);
  training.sequence_parallel = false;
  blocks_of(&model, layout_of(8, 1, 1, 1, 1), &training, &ideal, &real, without);
  expect(with[PP_BLOCK_DENSE].tensor, without[PP_BLOCK_DENSE].tensor, 1e-12);
}

/* The same apart: 4 collectives each way of a layer, 4 more when its forward is computed again; the embedding scatters (F) and gathers (W),
** the head gathers (F) and scatters (I). All of n = 2·s·b·h/c bytes, c context ranks beside t tensor ranks. */
static void tensor_parallel_traffic_is_told_apart(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(8192);
  pp_block_seconds blocks[PP_BLOCKS];
  const double once = 3 * 2e-6 + 3.0 / 4 * (2 * 8192.0 * 4096 / 2) / (400e9 * 0.8);
  (void)state;
  blocks_of(&model, layout_of(4, 2, 1, 1, 1), &training, &ideal, &real, blocks);
  expect(8 * once, blocks[PP_BLOCK_DENSE].tensor, 1e-9);
  expect(2 * once, blocks[PP_BLOCK_EMBEDDING].tensor, 1e-9);
  expect(2 * once, blocks[PP_BLOCK_HEAD].tensor, 1e-9);
  training.recompute.full = true;
  blocks_of(&model, layout_of(4, 2, 1, 1, 1), &training, &ideal, &real, blocks);
  expect(12 * once, blocks[PP_BLOCK_DENSE].tensor, 1e-9);
  blocks_of(&model, layout_of(1, 2, 1, 1, 1), &training, &ideal, &real, blocks);
  expect(0, blocks[PP_BLOCK_DENSE].tensor, 1e-12);
}

/* The ring of keys and values hides behind the attention it feeds; only what is longer shows. */
static void context_parallel_traffic_hides_behind_attention(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(131072);
  pp_block_seconds quick[PP_BLOCKS], fast[PP_BLOCKS], slow[PP_BLOCKS];
  const pp_network crawl = { .tiers = 1, .tier = { { 1 << 20, 1e9, 1, 0, 0 } } };
  (void)state;
  blocks_of(&model, layout_of(1, 8, 1, 1, 1), &training, &ideal, &instant, quick);
  blocks_of(&model, layout_of(1, 8, 1, 1, 1), &training, &ideal, &real, fast);
  blocks_of(&model, layout_of(1, 8, 1, 1, 1), &training, &ideal, &crawl, slow);
  expect(quick[PP_BLOCK_DENSE].forward, fast[PP_BLOCK_DENSE].forward, 1e-9);
  assert_true(slow[PP_BLOCK_DENSE].forward > 2 * quick[PP_BLOCK_DENSE].forward);
  /* keys and values of 8 heads × 128 in bf16, 7 blocks of 131072 / 8 tokens come by: once forward, twice backward (with their gradients) */
  const double block = 2.0 * 2 * 8 * 128 * 131072 / 8;
  expect(3 * 7 * block / 1e9, slow[PP_BLOCK_DENSE].context, 1e-9);
  expect(slow[PP_BLOCK_DENSE].forward + slow[PP_BLOCK_DENSE].input - quick[PP_BLOCK_DENSE].forward - quick[PP_BLOCK_DENSE].input,
         slow[PP_BLOCK_DENSE].context_exposed, 1e-9);
  expect(2 * 7 * 2e-6 + 3 * 7 * block / (400e9 * 0.8), fast[PP_BLOCK_DENSE].context, 1e-9);
  expect(0, fast[PP_BLOCK_DENSE].context_exposed, 1e-12);
  /* beside eight tensor ranks, which fill a node, neighbours are a node apart: one block of one head and 131072 / 2 tokens */
  blocks_of(&model, layout_of(8, 2, 1, 1, 1), &training, &ideal, &real, fast);
  expect(2 * 10e-6 + 3 * (2.0 * 2 * 128 * 131072 / 2) / (50e9 * 0.9), fast[PP_BLOCK_DENSE].context, 1e-9);
}

/*
** Ring Attention (Liu et al. 2310.01889 §3): blocks of c tokens take 4dc² FLOPs and pass on 4cd bytes of keys and values in bf16, so that
** the ring hides from c = F/B on; the causal half of the work needs c = 2F/B. n − 1 blocks come by while n − 1 are worked on. Here d = 32 × 128,
** n = 4, F = 1e15, B = 1e11: F/B = 1e4. Backward passes gradients too, 2 × the bytes, and works 2.5 × as much (FlashAttention-2 §3.2).
*/
static void the_ring_shows_where_its_blocks_are_too_small(void **state) {
  const pp_model model = llama(2, 4096, 32, 32, 14336, 128256);
  const pp_network ring = { .tiers = 1, .tier = { { 1 << 20, 1e11, 1, 0, 0 } } };
  const double d = 32 * 128, n = 4;
  pp_training training = bf16_recipe(0);
  pp_block_seconds with[PP_BLOCKS], without[PP_BLOCKS];
  (void)state;
  for (int c = 2500; c <= 40000; c *= 2) {
    const double passed = 4.0 * c * d / 1e11, worked = 2.0 * d * c * c / 1e15;
    const double ahead = (n - 1) * fmax(0, passed - worked), back = (n - 1) * fmax(0, 2 * passed - 2.5 * worked);
    training = bf16_recipe(4 * c);
    blocks_of(&model, layout_of(1, 4, 1, 1, 1), &training, &ideal, &instant, without);
    blocks_of(&model, layout_of(1, 4, 1, 1, 1), &training, &ideal, &ring, with);
    expect((n - 1) * 3 * passed, with[PP_BLOCK_DENSE].context, 1e-9);
    expect(ahead + back, with[PP_BLOCK_DENSE].context_exposed, 1e-9);
    expect(without[PP_BLOCK_DENSE].forward + ahead, with[PP_BLOCK_DENSE].forward, 1e-9);
    expect(without[PP_BLOCK_DENSE].input + back, with[PP_BLOCK_DENSE].input, 1e-9);
    expect(without[PP_BLOCK_DENSE].weight, with[PP_BLOCK_DENSE].weight, 1e-12);
    if (c >= 20000) expect(0, with[PP_BLOCK_DENSE].context_exposed, 1e-12);
    else assert_true(with[PP_BLOCK_DENSE].context_exposed > 0);
    /* recomputed attention goes round once more, and shows as much */
    training.recompute.core_attention = true;
    blocks_of(&model, layout_of(1, 4, 1, 1, 1), &training, &ideal, &ring, with);
    expect((n - 1) * 4 * passed, with[PP_BLOCK_DENSE].context, 1e-9);
    expect(2 * ahead + back, with[PP_BLOCK_DENSE].context_exposed, 1e-9);
    training.recompute = (pp_recompute){ .full = true };
    blocks_of(&model, layout_of(1, 4, 1, 1, 1), &training, &ideal, &ring, with);
    expect(2 * ahead + back, with[PP_BLOCK_DENSE].context_exposed, 1e-9);
  }
}

static void recompute_is_paid_at_the_start_of_i(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_block_seconds none[PP_BLOCKS], full[PP_BLOCKS], some[PP_BLOCKS];
  const pp_layout layout = layout_of(1, 1, 64, 64, 1);
  (void)state;
  blocks_of(&model, layout, &training, &ideal, &real, none);
  training.recompute.full = true;
  blocks_of(&model, layout, &training, &ideal, &real, full);
  training.recompute = (pp_recompute){ .mla_up_projection = true };
  blocks_of(&model, layout, &training, &ideal, &real, some);
  expect(none[PP_BLOCK_MOE].input + none[PP_BLOCK_MOE].forward, full[PP_BLOCK_MOE].input, 1e-9);
  expect(2 * none[PP_BLOCK_MOE].alltoall_backward, full[PP_BLOCK_MOE].alltoall_backward, 1e-9);
  expect(none[PP_BLOCK_MOE].forward, full[PP_BLOCK_MOE].forward, 1e-9);
  expect(none[PP_BLOCK_MOE].weight, full[PP_BLOCK_MOE].weight, 1e-9);
  /* 2 · 4096 tokens · (1536·128·192 + 512·128·256) products */
  expect(2.0 * 4096 * (1536.0 * 128 * 192 + 512.0 * 128 * 256) / 1e15, some[PP_BLOCK_MOE].input - none[PP_BLOCK_MOE].input, 1e-6);
}

/* Recompute of the core reads and writes an attention's scores again, where they are: b·a·s² of them in bf16, and none in embedding and head. */
static void recompute_of_attention_costs_nothing_where_there_is_none(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds none[PP_BLOCKS], some[PP_BLOCKS];
  (void)state;
  device.memory_bandwidth = 1e12;
  training.fused_attention = false;
  blocks_of(&model, layout_of(1, 1, 1, 1, 1), &training, &device, &instant, none);
  training.recompute.core_attention = true;
  blocks_of(&model, layout_of(1, 1, 1, 1, 1), &training, &device, &instant, some);
  assert_true(some[PP_BLOCK_DENSE].input - none[PP_BLOCK_DENSE].input > 2.0 * 32 * 4096 * 4096 / 1e12);
  for (int block = 0; block < PP_BLOCKS; block++)
    if (block == PP_BLOCK_EMBEDDING || block == PP_BLOCK_HEAD) expect(none[block].input, some[block].input, 1e-12);
}

/* As measured on A100 (vTrain 2312.12391, ground_truth_multi.csv): what a layer takes does not shrink in proportion to its microbatch. */
static void layers_take_a_while_whatever_their_microbatch(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds none[PP_BLOCKS], some[PP_BLOCKS];
  const pp_layout layout = layout_of(1, 1, 64, 64, 1);
  (void)state;
  blocks_of(&model, layout, &training, &device, &real, none);
  device.layer_latency = 1e-3;
  blocks_of(&model, layout, &training, &device, &real, some);
  expect(1e-3, some[PP_BLOCK_MOE].forward - none[PP_BLOCK_MOE].forward, 1e-9);
  expect(1e-3, some[PP_BLOCK_MOE].input - none[PP_BLOCK_MOE].input, 1e-9);
  expect(0.5e-3, some[PP_BLOCK_MOE].weight - none[PP_BLOCK_MOE].weight, 1e-9);
  expect(none[PP_BLOCK_HEAD].forward, some[PP_BLOCK_HEAD].forward, 1e-12);
  training.recompute.full = true;
  blocks_of(&model, layout, &training, &device, &real, some);
  training.recompute.full = false;
  expect(none[PP_BLOCK_MOE].forward + none[PP_BLOCK_MOE].input + 2e-3, some[PP_BLOCK_MOE].input, 1e-9);
}

/* Megatron-LM's dispatcher "alltoall" (transformer/moe/token_dispatcher.py) waits for the sizes of its messages, and permutes apart. */
static void a_plain_alltoall_takes_longer_each_way(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  const pp_layout spread = layout_of(1, 1, 64, 64, 1), alone = layout_of(1, 1, 1, 64, 1);
  pp_device device = ideal;
  pp_block_seconds none[PP_BLOCKS], some[PP_BLOCKS];
  (void)state;
  for (int i = 0; i < 3; i++) {
    const pp_layout layout = i == 2 ? alone : spread;
    device.hides_alltoall = i == 1;
    device.plain_routing_latency = 0;
    blocks_of(&model, layout, &training, &device, &real, none);
    device.plain_routing_latency = 1e-3;
    blocks_of(&model, layout, &training, &device, &real, some);
    const double longer = i == 0 ? 1e-3 : 0;
    expect(none[PP_BLOCK_MOE].forward + longer, some[PP_BLOCK_MOE].forward, 1e-9);
    expect(none[PP_BLOCK_MOE].input + longer, some[PP_BLOCK_MOE].input, 1e-9);
  }
}

/* The whole expert MLP, as Megatron-LM's recompute module "moe" (transformer/moe/moe_layer.py, forward): router, shared and routed experts,
** dispatch and combine. 2 · 4096 tokens · (256 + 3·2048 + 8·3·2048)·7168 products. */
static void recompute_of_the_experts_repeats_their_whole_mlp(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds none[PP_BLOCKS], experts[PP_BLOCKS];
  const pp_layout layout = layout_of(1, 1, 64, 64, 1);
  (void)state;
  device.routing_latency = 1e-3;
  blocks_of(&model, layout, &training, &device, &real, none);
  training.recompute.moe = training.recompute.activation = true;
  blocks_of(&model, layout, &training, &device, &real, experts);
  expect(1e-3 + 2.0 * 4096 * (256.0 + 3 * 2048 + 8 * 3 * 2048) * 7168 / 1e15, experts[PP_BLOCK_MOE].input - none[PP_BLOCK_MOE].input, 1e-6);
  expect(2 * none[PP_BLOCK_MOE].alltoall_backward, experts[PP_BLOCK_MOE].alltoall_backward, 1e-12);
  expect(none[PP_BLOCK_MOE].forward, experts[PP_BLOCK_MOE].forward, 1e-12);
  /* with TP the shared expert gathers and scatters once more: two collectives of 2·s·b·h bytes */
  blocks_of(&model, layout_of(8, 1, 1, 8, 1), &training, &device, &real, experts);
  training.recompute = (pp_recompute){ .moe = false };
  blocks_of(&model, layout_of(8, 1, 1, 8, 1), &training, &device, &real, none);
  expect(2 * (7 * 2e-6 + 7.0 / 8 * 2 * 4096 * 7168 / (400e9 * 0.8)), experts[PP_BLOCK_MOE].tensor - none[PP_BLOCK_MOE].tensor, 1e-9);
}

/* With expert tensor parallelism 2 the ranks of a pair gather their tokens, K = 8 copies of each, and scatter the sums: of 2·s·b·h·K bytes of
** each rank the other's half comes by, once before and once after. F, I and what is recomputed do it alike. */
static void recompute_of_the_experts_gathers_their_tokens_once_more(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_block_seconds none[PP_BLOCKS], experts[PP_BLOCKS];
  pp_layout layout = layout_of(1, 1, 4, 8, 1);
  const double once = 2 * (2e-6 + 0.5 * (2 * 2.0 * 4096 * 7168 * 8) / (400e9 * 0.8));
  (void)state;
  layout.expert_tensor = 2;
  blocks_of(&model, layout, &training, &ideal, &real, none);
  expect(2 * once, none[PP_BLOCK_MOE].tensor, 1e-9);
  training.recompute.moe = true;
  blocks_of(&model, layout, &training, &ideal, &real, experts);
  expect(3 * once, experts[PP_BLOCK_MOE].tensor, 1e-9);
}

/* DeepSeek-V2-Lite has no latent of queries (config.json, q_lora_rank null): they come from the hidden state, and are expanded again too. */
static void queries_without_a_latent_are_recomputed_from_the_hidden_state(void **state) {
  pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_block_seconds none[PP_BLOCKS], some[PP_BLOCKS];
  const pp_layout layout = layout_of(1, 1, 64, 64, 1);
  (void)state;
  model.q_lora_rank = 0;
  blocks_of(&model, layout, &training, &ideal, &real, none);
  training.recompute.mla_up_projection = true;
  blocks_of(&model, layout, &training, &ideal, &real, some);
  expect(2.0 * 4096 * (7168.0 * 128 * 192 + 512.0 * 128 * 256) / 1e15, some[PP_BLOCK_MOE].input - none[PP_BLOCK_MOE].input, 1e-6);
}

/* Few tokens: experts' products wait for their weights. 4 local experts of 3·7168·2048 bf16 weights from 1 TB/s. */
static void experts_are_not_faster_than_their_weights_arrive(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(1);
  pp_device device = ideal;
  pp_block_seconds blocks[PP_BLOCKS];
  (void)state;
  device.memory_bandwidth = 1e12;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &instant, blocks);
  assert_true(blocks[PP_BLOCK_MOE].forward > 4 * 3 * 7168.0 * 2048 * 2 / 1e12);
}

/* K / (K + half): with half = 2048 = the experts' width, down (a third of the products) runs at half speed, gate and up at 7168 / 9216. */
static void narrow_experts_reach_less_of_their_peak(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds wide[PP_BLOCKS], narrow[PP_BLOCKS];
  (void)state;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &instant, wide);
  device.grouped_gemm_half = 2048;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &instant, narrow);
  const double experts = 2.0 * 4096 * 8 * 3 * 7168 * 2048 / 1e15, slower = 2.0 / 3 * 2048 / 7168 + 1.0 / 3;
  expect(experts * slower, narrow[PP_BLOCK_MOE].forward - wide[PP_BLOCK_MOE].forward, 1e-6);
}

static void routing_costs_its_latency_each_way(void **state) {
  const pp_model model = deepseek_v3(4, 1, 0);
  const pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds without[PP_BLOCKS], with[PP_BLOCKS];
  (void)state;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &instant, without);
  device.routing_latency = 1e-3;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &instant, with);
  expect(1e-3, with[PP_BLOCK_MOE].forward - without[PP_BLOCK_MOE].forward, 1e-9);
  expect(1e-3, with[PP_BLOCK_MOE].input - without[PP_BLOCK_MOE].input, 1e-9);
  expect(without[PP_BLOCK_MOE].weight, with[PP_BLOCK_MOE].weight, 1e-12);
  expect(without[PP_BLOCK_DENSE].forward, with[PP_BLOCK_DENSE].forward, 1e-12);
}

static void the_plain_alltoall_is_slower_than_a_hierarchical_kernel(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds kernel[PP_BLOCKS], plain[PP_BLOCKS];
  (void)state;
  training.max_domains = 4;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &real, kernel);
  device.hides_alltoall = false;
  blocks_of(&model, layout_of(1, 1, 64, 64, 1), &training, &device, &real, plain);
  /* 8 copies against one for each of 4(1 − C(96,8)/C(128,8)) nodes over the same links, 7/8 of both to other nodes */
  expect(8 / 3.62901, plain[PP_BLOCK_MOE].alltoall_forward / kernel[PP_BLOCK_MOE].alltoall_forward, 0.01);
}

/* --- stages and pairs ---------------------------------------------------------------------------------------------------------- */

static const pp_block_seconds unit_blocks[PP_BLOCKS] = {
  [PP_BLOCK_EMBEDDING] = { .forward = 0.125, .weight = 0.25, .full = 0.25 },
  [PP_BLOCK_DENSE] = { .forward = 2, .input = 3, .weight = 1, .full = 4.5, .tensor = 0.5, .context = 0.75, .context_exposed = 0.25 },
  [PP_BLOCK_MOE] = { .forward = 2, .input = 3, .weight = 1, .full = 4, .alltoall_forward = 4, .alltoall_backward = 5, .tensor = 0.25 },
  [PP_BLOCK_HEAD] = { .forward = 0.5, .input = 0.5, .weight = 0.5, .full = 1 },
};

static void a_stage_is_the_sum_of_its_blocks_with_all_to_all_exposed(void **state) {
  const pp_stage stage = { .count = { 1, 2, 1, 0, 0 } };
  pp_stage_seconds seconds;
  (void)state;
  pp_cost_stage(&stage, unit_blocks, &seconds);
  expect(0.125 + 4 + 2 + 4, seconds.forward, 1e-12);
  expect(6 + 3 + 5, seconds.input, 1e-12);
  expect(0.25 + 2 + 1, seconds.weight, 1e-12);
  expect(0.25 + 2 * 4.5 + 4 + 5, seconds.full, 1e-12);   /* a measured B need not be I + W */
  expect(4, seconds.alltoall_forward, 1e-12);
  expect(5, seconds.alltoall_backward, 1e-12);
  expect(2 * 0.5 + 0.25, seconds.tensor, 1e-12);
  expect(2 * 0.75, seconds.context, 1e-12);
  expect(2 * 0.25, seconds.context_exposed, 1e-12);
}

/* F&B = clamp(max(compute, all-to-all) + overhead, max(F, B), F + B). F = 6 of which 4 all-to-all, B = 9 of which 5. */
static void a_pair_hides_the_shorter_of_compute_and_alltoall(void **state) {
  const pp_stage_seconds forward = { .forward = 6, .full = 9, .alltoall_forward = 4, .alltoall_backward = 5 };
  pp_device device = ideal;
  (void)state;
  expect(9, pp_cost_pair(&device, &forward, &forward), 1e-12);         /* all-to-all 9, compute 6, not under B = 9 */
  device.overlap_overhead = 0.5;
  expect(9 + 0.5 * 6, pp_cost_pair(&device, &forward, &forward), 1e-12);
  device.overlap_overhead = 2;
  expect(15, pp_cost_pair(&device, &forward, &forward), 1e-12);        /* never slower than one after the other */
  device.hides_alltoall = false;
  device.overlap_overhead = 0;
  expect(15, pp_cost_pair(&device, &forward, &forward), 1e-12);
}

/* F = 6, B = 9: 0.9 of 15 as measured; whatever a measurement says, both take no less than B alone. */
static void a_measured_pair_is_no_shorter_than_its_halves(void **state) {
  const pp_stage_seconds forward = { .forward = 6, .full = 9, .alltoall_forward = 4, .alltoall_backward = 5 };
  pp_device device = ideal;
  (void)state;
  device.pair_share = 0.9;
  expect(13.5, pp_cost_pair(&device, &forward, &forward), 1e-12);
  device.pair_share = 1.1;
  expect(16.5, pp_cost_pair(&device, &forward, &forward), 1e-12);
  device.pair_share = 0.1;
  expect(9, pp_cost_pair(&device, &forward, &forward), 1e-12);
}

/* One host launches both, whatever runs on the card meanwhile: 5 and 7 of F + B = 15, where 6 would do for the card. */
static void a_pair_takes_no_less_than_its_launches(void **state) {
  const pp_stage_seconds launched = { .forward = 6, .full = 9, .alltoall_forward = 4, .alltoall_backward = 5,
                                      .launch_forward = 5, .launch_backward = 7 };
  (void)state;
  expect(12, pp_cost_pair(&ideal, &launched, &launched), 1e-12);
}

/* A network that takes longer, or a slower host, makes no pair faster, but for the share that is hidden of what the host's waiting for rows
** of experts costs: here a tenth of the shorter of card and host, so at most 0.42 of an eleventh of the whole. */
static void no_slower_network_or_host_makes_a_pair_faster(void **state) {
  pp_device device = ideal;
  (void)state;
  for (int way = 0; way < 2; way++) {
    const double hidden = way * 0.42, slack = 1 - hidden / 11 - 1e-12;
    double before[21] = { 0 };   /* [sent]: with a faster host */
    device.hidden_share = hidden;
    for (int host = 0; host <= 40; host++) {
      double less = 0;
      for (int sent = 1; sent <= 20; sent++) {   /* the card computes 4 and 6, the host launches two fifths and three */
        const double a = sent, launch[2] = { 0.4 * host, 0.6 * host }, lost[2] = { 0.1 * fmin(4 + a, launch[0]), 0.1 * fmin(6 + a, launch[1]) };
        const double forward = fmax(4 + a, launch[0]) + lost[0], full = fmax(6 + a, launch[1]) + lost[1];
        const pp_stage_seconds at = { .forward = forward, .full = full, .alltoall_forward = a, .alltoall_backward = a,
                                      .launch_forward = launch[0], .launch_backward = launch[1],
                                      .lost_forward = lost[0], .lost_backward = lost[1] };
        const double pair = pp_cost_pair(&device, &at, &at);
        assert_true(pair >= less * slack && pair >= before[sent] * slack);
        assert_true(pair >= host * (1 - 1e-12) && pair <= (forward + full) * (1 + 1e-12));
        less = fmax(less, pair);
        before[sent] = fmax(before[sent], pair);
      }
    }
  }
}

static void a_pair_without_all_to_all_gains_nothing(void **state) {
  const pp_stage_seconds dense = { .forward = 2, .full = 4 };
  (void)state;
  expect(6, pp_cost_pair(&ideal, &dense, &dense), 1e-12);
}

/* --- hops ------------------------------------------------------------------------------------------------------------------------ */

/* 2 · tokens · hidden bytes, a TP rank's share with sequence parallelism (Narayanan et al. §4.1, scatter/gather). */
static void a_hop_carries_the_boundary_activations(void **state) {
  const pp_model model = llama(32, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(8192);
  const pp_layout layout = layout_of(8, 2, 1, 4, 4);
  (void)state;
  expect(10e-6 + 2.0 * 4096 * 4096 / 8 / 45e9, pp_cost_hop(&model, &layout, &training, &real), 1e-12);
  training.sequence_parallel = false;
  expect(10e-6 + 2.0 * 4096 * 4096 / 45e9, pp_cost_hop(&model, &layout, &training, &real), 1e-12);
  training.scatter_messages = true;   /* a TP rank's share, gathered in the host: 7 · 2 us + 7/8 of it at 320 GB/s */
  const double whole = 2.0 * 4096 * 4096;
  expect(10e-6 + whole / 8 / 45e9 + 7 * 2e-6 + 7.0 / 8 * whole / 320e9, pp_cost_hop(&model, &layout, &training, &real), 1e-12);
}

static void a_link_may_be_slow_but_not_still(void **state) {
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  const pp_layout layout = layout_of(1, 1, 1, 1, 1);
  const pp_training training = bf16_recipe(4096);
  pp_network network = real;
  pp_block_seconds blocks[PP_BLOCKS];
  pp_error error;
  (void)state;
  network.tier[1].bandwidth = 0.5;
  assert_int_equal(pp_cost_blocks(&model, &layout, &training, &ideal, &network, blocks, NULL, &error), PP_OK);
  network.tier[1].bandwidth = 0;
  assert_int_equal(pp_cost_blocks(&model, &layout, &training, &ideal, &network, blocks, NULL, &error), PP_INVALID);
  assert_string_equal(error.field, "bandwidth");
}

static void a_device_without_speed_is_named(void **state) {
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  const pp_layout layout = layout_of(1, 1, 1, 1, 1);
  const pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_block_seconds blocks[PP_BLOCKS];
  pp_error error;
  (void)state;
  device.gemm_efficiency = 0;
  assert_int_equal(pp_cost_blocks(&model, &layout, &training, &device, &real, blocks, NULL, &error), PP_INVALID);
  assert_string_equal(error.field, "gemm_efficiency");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_ideal_device_takes_the_models_flops),
    cmocka_unit_test(a_recurrence_takes_its_flops_at_attentions_speed),
    cmocka_unit_test(tensor_and_context_parallelism_divide_the_work),
    cmocka_unit_test(tensor_parallel_traffic_is_exposed_both_ways),
    cmocka_unit_test(tensor_parallel_traffic_is_the_same_without_sequence_parallelism),
    cmocka_unit_test(tensor_parallel_traffic_is_told_apart),
    cmocka_unit_test(context_parallel_traffic_hides_behind_attention),
    cmocka_unit_test(the_ring_shows_where_its_blocks_are_too_small),
    cmocka_unit_test(recompute_is_paid_at_the_start_of_i),
    cmocka_unit_test(recompute_of_attention_costs_nothing_where_there_is_none),
    cmocka_unit_test(layers_take_a_while_whatever_their_microbatch),
    cmocka_unit_test(a_plain_alltoall_takes_longer_each_way),
    cmocka_unit_test(recompute_of_the_experts_repeats_their_whole_mlp),
    cmocka_unit_test(recompute_of_the_experts_gathers_their_tokens_once_more),
    cmocka_unit_test(queries_without_a_latent_are_recomputed_from_the_hidden_state),
    cmocka_unit_test(experts_are_not_faster_than_their_weights_arrive),
    cmocka_unit_test(narrow_experts_reach_less_of_their_peak),
    cmocka_unit_test(routing_costs_its_latency_each_way),
    cmocka_unit_test(the_plain_alltoall_is_slower_than_a_hierarchical_kernel),
    cmocka_unit_test(a_stage_is_the_sum_of_its_blocks_with_all_to_all_exposed),
    cmocka_unit_test(a_pair_hides_the_shorter_of_compute_and_alltoall),
    cmocka_unit_test(a_measured_pair_is_no_shorter_than_its_halves),
    cmocka_unit_test(a_pair_takes_no_less_than_its_launches),
    cmocka_unit_test(no_slower_network_or_host_makes_a_pair_faster),
    cmocka_unit_test(a_pair_without_all_to_all_gains_nothing),
    cmocka_unit_test(a_hop_carries_the_boundary_activations),
    cmocka_unit_test(a_link_may_be_slow_but_not_still),
    cmocka_unit_test(a_device_without_speed_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

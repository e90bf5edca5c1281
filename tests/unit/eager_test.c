/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c, memory.c: what a framework takes whose kernels are launched one by one and not fused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "blocks.h"
#include "core/cost.h"

/* Memory and links so fast that only products and attention take time; 1 PFLOP/s, everything at its peak. */
static const pp_device ideal = {
  .flops = 1e15, .flops_bf16 = 1e15, .memory_bandwidth = 1e30, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
  .attention_efficiency = 1, .memory_efficiency = 1, .hides_alltoall = true,
};
static const pp_network instant = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
static const pp_host megatron = { .forward = 1.9e-3, .backward = 3e-3, .moe_forward = 4e-3, .moe_backward = 5.4e-3, .expert_forward = 0.41e-3,
                                  .expert_backward = 0.5e-3, .waiting = 0.2 };

typedef struct {
  pp_block_seconds block[PP_BLOCKS];
} costs;

static costs costs_of(const pp_model *model, const pp_training *training, const pp_device *device, int expert) {
  const pp_layout layout = { .tensor = 1, .context = 1, .expert = expert, .expert_tensor = 1, .data = expert, .pipeline = 1, .chunks = 1 };
  costs out;
  pp_error error;
  if (pp_cost_blocks(model, &layout, training, device, &instant, out.block, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return out;
}

static pp_device with_host(pp_host host) {
  pp_device device = ideal;
  device.host = host;
  return device;
}

/* --- launches ------------------------------------------------------------------------------------------------------------------ */

/* 16 tokens of a layer of 218 M weights are 7 us of work forward and 14 backward: the layer takes what its launches take, exactly; of those of
** backward a third are W's, which has half as many kernels as I. */
static void a_layer_of_little_work_takes_what_its_launches_take(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(16);
  const pp_device slow = with_host(megatron);
  (void)state;
  const costs quick = costs_of(&model, &training, &ideal, 1), late = costs_of(&model, &training, &slow, 1);
  const pp_block_seconds *before = &quick.block[PP_BLOCK_DENSE], *after = &late.block[PP_BLOCK_DENSE];
  assert_true(before->forward < 0.01 * 1.9e-3);
  expect(1.9e-3, after->forward, 1e-12);
  expect(3e-3, after->input + after->weight, 1e-12);
  expect(3e-3, after->full, 1e-12);
  expect(1e-3, after->weight, 1e-12);
  expect(1.9e-3 - before->forward, after->host_forward, 1e-12);
  expect(3e-3 - before->input - before->weight, after->host_backward, 1e-12);
  expect(quick.block[PP_BLOCK_HEAD].forward, late.block[PP_BLOCK_HEAD].forward, 1e-12);   /* a few large kernels */
  expect(quick.block[PP_BLOCK_EMBEDDING].forward, late.block[PP_BLOCK_EMBEDDING].forward, 1e-12);
}

/* 8,192 tokens are 3.6 ms of products forward alone. */
static void a_layer_of_much_work_does_not_wait_for_its_host(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(8192);
  const pp_device slow = with_host(megatron);
  (void)state;
  const costs quick = costs_of(&model, &training, &ideal, 1), late = costs_of(&model, &training, &slow, 1);
  expect(quick.block[PP_BLOCK_DENSE].forward, late.block[PP_BLOCK_DENSE].forward, 1e-12);
  expect(quick.block[PP_BLOCK_DENSE].input, late.block[PP_BLOCK_DENSE].input, 1e-12);
  expect(0, late.block[PP_BLOCK_DENSE].host_forward, 1e-12);
  expect(0, late.block[PP_BLOCK_DENSE].host_backward, 1e-12);
}

/* W that is longer than its part of the launches waits for none of them: I waits for the rest. */
static void weights_that_take_longer_than_their_launches_do_not_wait(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(16);
  pp_device slow = with_host(megatron), quick = ideal;
  (void)state;
  slow.memory_bandwidth = quick.memory_bandwidth = 1e12;   /* 8 bytes of each of 218 M gradients: 1.74 ms */
  const pp_block_seconds before = costs_of(&model, &training, &quick, 1).block[PP_BLOCK_DENSE];
  const pp_block_seconds after = costs_of(&model, &training, &slow, 1).block[PP_BLOCK_DENSE];
  assert_true(before.weight > 1e-3 && before.input + before.weight < 3e-3);
  expect(before.weight, after.weight, 1e-12);
  expect(3e-3, after.input + after.weight, 1e-12);
  expect(3e-3, after.full, 1e-12);
}

static void full_recompute_launches_forward_once_more(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_device slow = with_host(megatron);
  pp_training training = bf16_recipe(16);
  (void)state;
  training.recompute.full = true;
  const costs late = costs_of(&model, &training, &slow, 1);
  expect(1.9e-3, late.block[PP_BLOCK_DENSE].forward, 1e-12);
  expect(3e-3 + 1.9e-3, late.block[PP_BLOCK_DENSE].input + late.block[PP_BLOCK_DENSE].weight, 1e-12);
}

/* 256 experts over 64 GPUs: four a GPU, each with launches of its own. megatron-core 0.19.2 needed 14.6 ms forward for 32 and 4.9 for 8, some 0.41 ms
** an expert more (tests/data/gpu/kernels_graphed_and_host_1xH200.jsonl). The MTP module is such a layer and a head. */
static void experts_one_by_one_are_launched_one_by_one(void **state) {
  const pp_model model = deepseek_v3(4, 1, 1);
  const pp_device slow = with_host(megatron);
  pp_training training = bf16_recipe(16);
  (void)state;
  costs late = costs_of(&model, &training, &slow, 64);
  expect(4e-3, late.block[PP_BLOCK_MOE].forward + late.block[PP_BLOCK_MOE].alltoall_forward, 1e-12);
  expect(1.9e-3, late.block[PP_BLOCK_DENSE].forward, 1e-12);
  expect(4e-3 + late.block[PP_BLOCK_HEAD].forward, late.block[PP_BLOCK_MTP].forward + late.block[PP_BLOCK_MTP].alltoall_forward, 1e-9);
  training.unfused_experts = true;
  late = costs_of(&model, &training, &slow, 64);
  const pp_block_seconds *moe = &late.block[PP_BLOCK_MOE];
  expect(4e-3 + 4 * 0.41e-3, moe->forward + moe->alltoall_forward, 1e-12);
  expect(5.4e-3 + 4 * 0.5e-3, moe->input + moe->weight + moe->alltoall_backward, 1e-12);
  expect(1.9e-3, late.block[PP_BLOCK_DENSE].forward, 1e-12);
}

/* 4 ms of an MoE layer's launches less 1.9 of a dense one's are the experts'. */
static void experts_computed_again_are_launched_again(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_device slow = with_host(megatron);
  pp_training training = bf16_recipe(16);
  (void)state;
  training.recompute.moe = true;
  training.unfused_experts = true;
  const pp_block_seconds moe = costs_of(&model, &training, &slow, 64).block[PP_BLOCK_MOE];
  expect(4e-3 + 4 * 0.41e-3, moe.forward + moe.alltoall_forward, 1e-12);
  expect(5.4e-3 + 4 * 0.5e-3 + 4e-3 + 4 * 0.41e-3 - 1.9e-3, moe.input + moe.weight + moe.alltoall_backward, 1e-12);
}

/* NCCL's all-to-all has its sizes read back: of what the host had launched ahead a share of the shorter of both is lost, on top of the longer. */
static void a_host_that_reads_row_counts_loses_what_it_had_launched(void **state) {
  const pp_model model = deepseek_v3(4, 0, 0);
  const pp_training little = bf16_recipe(16), much = bf16_recipe(65536);
  pp_device slow = with_host(megatron), plain = ideal;
  (void)state;
  slow.hides_alltoall = plain.hides_alltoall = false;
  for (int i = 0; i < 2; i++) {
    const pp_training *training = i == 0 ? &little : &much;
    const pp_block_seconds before = costs_of(&model, training, &plain, 64).block[PP_BLOCK_MOE];
    const pp_block_seconds after = costs_of(&model, training, &slow, 64).block[PP_BLOCK_MOE];
    const double ahead = before.forward + before.alltoall_forward, back = before.input + before.weight + before.alltoall_backward;
    assert_true(i == 0 ? ahead < 4e-3 : ahead > 4e-3);
    expect(fmax(ahead, 4e-3) + 0.2 * fmin(ahead, 4e-3), after.forward + after.alltoall_forward, 1e-12);
    expect(fmax(back, 5.4e-3) + 0.2 * fmin(back, 5.4e-3), after.input + after.weight + after.alltoall_backward, 1e-12);
  }
  const pp_block_seconds alone = costs_of(&model, &little, &slow, 1).block[PP_BLOCK_MOE];   /* no all-to-all, no sizes */
  expect(4e-3, alone.forward, 1e-12);
}

/* --- kernels that are not fused ------------------------------------------------------------------------------------------------- */

/* Bytes of element-wise kernels per token of a layer, by what is not fused: they move at 1 TB/s here, backward twice as many. */
static double extra_bytes(const pp_model *model, const pp_training *training, const pp_training *unfused, bool moe) {
  pp_device device = ideal;
  device.memory_bandwidth = 1e12;
  const costs fused = costs_of(model, training, &device, 1), apart = costs_of(model, unfused, &device, 1);
  const pp_block_seconds *before = &fused.block[moe ? PP_BLOCK_MOE : PP_BLOCK_DENSE], *after = &apart.block[moe ? PP_BLOCK_MOE : PP_BLOCK_DENSE];
  const double bytes = (after->forward - before->forward) * 1e12 / 4096;
  expect(2 * bytes, (after->input - before->input) * 1e12 / 4096, 1e-6);
  expect(before->weight, after->weight, 1e-12);
  return bytes;
}

/* Two norms of 36 bytes an element more; the rotated queries and keys 16; the output of SiLU written and read, 4. */
static void kernels_that_are_not_fused_move_more(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256), experts = deepseek_v3(4, 0, 0);
  const pp_training training = bf16_recipe(4096);
  pp_training norm = training, rope = training, activation = training;
  (void)state;
  norm.unfused_norm = rope.unfused_rope = activation.unfused_activation = true;
  expect(2 * 36 * 4096.0, extra_bytes(&model, &training, &norm, false), 1e-6);
  expect(16 * (32 + 8) * 128.0, extra_bytes(&model, &training, &rope, false), 1e-6);
  expect(4 * 14336.0, extra_bytes(&model, &training, &activation, false), 1e-6);
  expect(4 * (8 + 1) * 2048.0, extra_bytes(&experts, &training, &activation, true), 1e-6);
}

/* Of a head of 128,256 logits: bytes of a token in I beyond twice those of its norm, in F beyond the norm. Memory moves 1 TB/s here, like TP's links. */
static void loss_bytes(pp_loss loss, pp_precision precision, int tensor, double *forward, double *backward, double *weight) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_network links = { .tiers = 1, .tier = { { 8, 1e12, 1, 0, 0 } } };
  pp_training training = bf16_recipe(4096);
  pp_layout layout = single;
  pp_device device = ideal;
  pp_block_seconds block[PP_BLOCKS];
  pp_pass_terms terms[PP_BLOCKS][PP_PASSES];
  pp_error error;
  training.loss = loss;
  training.precision = precision;
  layout.tensor = tensor;
  device.memory_bandwidth = 1e12;
  assert_int_equal(PP_OK, pp_cost_blocks(&model, &layout, &training, &device, &links, block, terms, &error));
  const pp_pass_terms *head = terms[PP_BLOCK_HEAD];
  *forward = (head[0].moved + head[0].tensor) * 1e12 / 4096 - 4 * 4096;
  *backward = (head[1].moved + head[1].tensor) * 1e12 / 4096 - 8 * 4096;
  *weight = block[PP_BLOCK_HEAD].weight;
}

/*
** Counted by operations as PyTorch runs them, each tensor once (tests/torch/loss_test.py): Megatron's a copy 2 + 4, a maximum 4, in-place subtraction,
** exponential and division 8 each, a sum 4; in I a product in place 8 and a copy 4 + 2. PyTorch's a copy 2 + 4, log_softmax 8; in I 4, 12, 4 + 2. In
** fp32 nothing is copied.
*/
static void a_loss_moves_what_its_operations_read_and_write(void **state) {
  static const struct { pp_loss loss; pp_precision precision; double forward, backward; } rows[] = {
    { PP_LOSS_VOCAB_PARALLEL, PP_BF16, 38, 14 }, { PP_LOSS_VOCAB_PARALLEL, PP_FP32, 32, 8 }, { PP_LOSS_VOCAB_PARALLEL_COMPILED, PP_BF16, 26, 18 },
    { PP_LOSS_IN_PLACE, PP_BF16, 6, 4 }, { PP_LOSS_TORCH, PP_BF16, 14, 22 }, { PP_LOSS_TORCH, PP_FP32, 8, 16 }, { PP_LOSS_TORCH_COMPILED, PP_BF16, 4, 4 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double forward, backward, weight;
    loss_bytes(rows[i].loss, rows[i].precision, 1, &forward, &backward, &weight);
    expect(rows[i].forward * 128256, forward, 1e-9);
    expect(rows[i].backward * 128256, backward, 1e-9);
  }
}

/* Of TP 8 ranks each has its part but for PyTorch's loss, whose parts are gathered in bf16, (8 − 1) / 8 of 2 bytes, and joined, 4 bytes. TP's other
** traffic is the same. */
static void a_loss_over_the_whole_vocabulary_gathers_it(void **state) {
  double part[2], whole[2], weight[2];
  (void)state;
  loss_bytes(PP_LOSS_VOCAB_PARALLEL, PP_BF16, 8, &part[0], &part[1], &weight[0]);
  loss_bytes(PP_LOSS_TORCH, PP_BF16, 8, &whole[0], &whole[1], &weight[1]);
  expect((14 + 22 + 4 + 2 * 7 / 8.0 - (38 + 14) / 8.0) * 128256, whole[0] + whole[1] - part[0] - part[1], 1e-9);
  expect(weight[0], weight[1], 1e-12);
}

/* Bytes per token that the blocks of a model keep more, on one of `tensor` GPUs. */
static double kept_more(const pp_model *model, const pp_training *training, const pp_training *unfused, int tensor, pp_block block) {
  pp_layout layout = single;
  pp_block_bytes fused[PP_BLOCKS], apart[PP_BLOCKS];
  layout.tensor = tensor;
  blocks_of(model, &layout, training, 1, fused);
  blocks_of(model, &layout, unfused, 1, apart);
  return (apart[block].stored - fused[block].stored) / 4096;
}

/* An fp32 copy and the output before the weight of two norms, 6 bytes an element; fp32 copies of queries and keys; SiLU's output in bf16. */
static void kernels_that_are_not_fused_keep_more(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_training training = bf16_recipe(4096);
  pp_training norm = training, rope = training, activation = training;
  (void)state;
  norm.unfused_norm = rope.unfused_rope = activation.unfused_activation = true;
  for (int tensor = 1; tensor <= 8; tensor *= 8) {
    expect(2 * 6 * 4096.0 / tensor, kept_more(&model, &training, &norm, tensor, PP_BLOCK_DENSE), 1e-9);
    expect(4 * (32 + 8) * 128.0 / tensor, kept_more(&model, &training, &rope, tensor, PP_BLOCK_DENSE), 1e-9);
    expect(2 * 14336.0 / tensor, kept_more(&model, &training, &activation, tensor, PP_BLOCK_DENSE), 1e-9);
  }
}

/* What is recomputed is not kept, fused or not. */
static void recompute_drops_what_is_not_fused(void **state) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  pp_training training = bf16_recipe(4096), unfused;
  (void)state;
  training.recompute = (pp_recompute){ .norm = true, .activation = true };
  unfused = training;
  unfused.unfused_norm = unfused.unfused_activation = true;
  expect(0, kept_more(&model, &training, &unfused, 1, PP_BLOCK_DENSE), 1e-12);
}

/*
** Kept from F to I, and the most beside it, bytes of a logit, as PyTorch's allocator had them on H200: Megatron's 4 and 2
** (tests/data/gpu/megatron_runs_4xH200.json: last stage less one without a head, act_bytes and transient_bytes), PyTorch's 6 and 8
** (examples/runs/2xH200-ends.json). On eight of TP's ranks PyTorch's has the whole vocabulary, and the
** eight bytes that its gathering was calibrated to.
*/
static void a_loss_keeps_what_was_measured(void **state) {
  static const struct { pp_loss loss; int tensor; double kept, beside; } rows[] = {
    { PP_LOSS_VOCAB_PARALLEL, 1, 4, 2 }, { PP_LOSS_TORCH, 1, 6, 8 }, { PP_LOSS_VOCAB_PARALLEL, 8, 4 / 8.0, 2 / 8.0 }, { PP_LOSS_TORCH, 8, 6 + 8, 8 },
  };
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pp_training training = bf16_recipe(4096);
    pp_layout layout = single;
    pp_block_bytes blocks[PP_BLOCKS];
    training.loss = rows[i].loss;
    layout.tensor = rows[i].tensor;
    blocks_of(&model, &layout, &training, 1, blocks);
    expect(rows[i].kept * 128256, blocks[PP_BLOCK_HEAD].stored / 4096 - 4 * 4096.0 / rows[i].tensor, 1e-9);   /* the final norm and the head read 2 each */
    expect(rows[i].beside * 128256, blocks[PP_BLOCK_HEAD].transient / 4096, 1e-9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_layer_of_little_work_takes_what_its_launches_take),
    cmocka_unit_test(a_layer_of_much_work_does_not_wait_for_its_host),
    cmocka_unit_test(weights_that_take_longer_than_their_launches_do_not_wait),
    cmocka_unit_test(full_recompute_launches_forward_once_more),
    cmocka_unit_test(experts_computed_again_are_launched_again),
    cmocka_unit_test(a_loss_moves_what_its_operations_read_and_write),
    cmocka_unit_test(a_loss_over_the_whole_vocabulary_gathers_it),
    cmocka_unit_test(experts_one_by_one_are_launched_one_by_one),
    cmocka_unit_test(a_host_that_reads_row_counts_loses_what_it_had_launched),
    cmocka_unit_test(kernels_that_are_not_fused_move_more),
    cmocka_unit_test(kernels_that_are_not_fused_keep_more),
    cmocka_unit_test(recompute_drops_what_is_not_fused),
    cmocka_unit_test(a_loss_keeps_what_was_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

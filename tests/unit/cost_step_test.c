/* SPDX-License-Identifier: Apache-2.0 */
/* cost_step.c: what a step takes beside the pipeline, against hand derivations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/cost.h"
#include "devices.h"
#include "shapes.h"

/* 1e9 dense parameters over 16 ranks 8 apart: 15 α + 15/16 · S/B with S = 4e9 then 2e9 bytes; the optimizer moves 4 + 2·12 + 2 bytes of a
** sixteenth. */
static void a_step_reduces_gradients_and_gathers_parameters(void **state) {
  const pp_layout layout = layout_of(8, 1, 1, 16, 1);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_step_seconds step;
  (void)state;
  device.memory_bandwidth = 1e12;
  pp_cost_step(&layout, &training, &device, &real, 1e9, 0, 1, &step);
  expect(15 * 10e-6 + 15.0 / 16 * 4e9 / 45e9, step.gradient_sync, 1e-12);
  expect(15 * 10e-6 + 15.0 / 16 * 2e9 / 45e9, step.parameter_sync, 1e-12);
  expect(1e9 / 16 * 30 / 1e12, step.optimizer, 1e-12);
  /* torch.optim.AdamW's lists, seen in PyTorch 2.13 by operations: 8, 12, 8, 12, 8, 8, 8, 16; a norm 4, a scaled copy 16, a cast 6. On H200 at 3.84 TB/s
  ** 2.796e9 parameters take 77 ms so; 82.8 were measured (tests/data/gpu/megatron_runs_1xH200.json, dense). */
  training.unfused_optimizer = true;
  pp_cost_step(&layout, &training, &device, &real, 1e9, 0, 1, &step);
  expect(1e9 / 16 * (80 + 26) / 1e12, step.optimizer, 1e-12);
  assert_true(step.mirror <= 0);
}

/* Gradients in bf16 that are all-reduced in fp32: 2 (15 α + 15/16 · 4e9 / B), and 2 (2 + 4) bytes of casts; parameters are gathered as before. */
static void gradients_may_be_reduced_whole_and_in_another_precision(void **state) {
  const pp_layout layout = layout_of(8, 1, 1, 16, 1);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_step_seconds step;
  (void)state;
  device.memory_bandwidth = 1e12;
  training.gradient_bytes = 2;
  training.reduced_bytes = 4;
  training.allreduce_gradients = true;
  pp_cost_step(&layout, &training, &device, &real, 1e9, 0, 1, &step);
  expect(2 * (15 * 10e-6 + 15.0 / 16 * 4e9 / 45e9) + 12e9 / 1e12, step.gradient_sync, 1e-12);
  expect(15 * 10e-6 + 15.0 / 16 * 2e9 / 45e9, step.parameter_sync, 1e-12);
}

/* Of the share that is offloaded gradients (4) go to the host, weights (2) come back, and the host moves the 30 bytes that the GPU would. */
static void an_offloaded_update_takes_the_hosts_link_and_memory(void **state) {
  const pp_layout layout = layout_of(8, 1, 1, 16, 2);
  pp_training training = bf16_recipe(4096);
  pp_device device = ideal;
  pp_step_seconds step;
  pp_block_seconds blocks[PP_BLOCKS];
  pp_error error;
  const pp_model model = llama(2, 1024, 8, 8, 4096, 32000);
  (void)state;
  device.memory_bandwidth = 1e12;
  training.optimizer_offload = 0.5;
  assert_int_equal(pp_cost_blocks(&model, &layout, &training, &device, &real, blocks, NULL, &error), PP_INVALID);
  assert_string_equal(error.field, "host_link");
  device.host_link = 50e9;
  device.host_memory_bandwidth = 30e9;
  pp_cost_step(&layout, &training, &device, &real, 1e9, 0, 1, &step);
  expect(0.5e9 / 16 * (30 / 1e12 + 6 / 50e9 + 30 / 30e9), step.optimizer, 1e-12);
}

/* DualPipe: what ZeRO-1 leaves of each copy, a sixteenth, is exchanged with the mirror: α + 1/2 · S/B for gradients and for parameters. */
static void two_copies_exchange_what_sharding_leaves(void **state) {
  const pp_layout layout = layout_of(8, 1, 1, 16, 2);
  const pp_training training = bf16_recipe(4096);
  pp_step_seconds once, twice;
  (void)state;
  pp_cost_step(&layout, &training, &ideal, &real, 1e9, 0, 1, &once);
  pp_cost_step(&layout, &training, &ideal, &real, 1e9, 0, 2, &twice);
  expect(2 * 10e-6 + 0.5 * 6e9 / 16 / 45e9, twice.mirror, 1e-12);
  expect(once.gradient_sync, twice.gradient_sync, 1e-12);
  expect(once.optimizer / 2, twice.optimizer, 1e-12);
}

/*
** Pipeline ranks lie TP × CP × DP GPUs apart (Megatron-LM core/parallel_state.py: order tp-cp-ep-dp-pp), and DualPipe's rank r shares its stages
** with P − 1 − r: the outermost pair is P − 1 times that apart. Hosts of 8 GPUs, pods of 64: what a stride of 1, 2, 16 and 32 GPUs makes it cross.
*/
static void mirror_copies_meet_over_the_links_between_their_ranks(void **state) {
  static const struct { int tensor, context, data, pipeline; double latency, bandwidth; } rows[] = {
    { 1, 1, 1, 4, 2e-6, 320e9 },      /* 0 and 3: one host */
    { 1, 1, 2, 4, 2e-6, 320e9 },      /* 0 and 6 */
    { 1, 1, 8, 2, 10e-6, 45e9 },      /* 0 and 8: the next host */
    { 1, 8, 1, 2, 10e-6, 45e9 },
    { 8, 1, 1, 2, 10e-6, 45e9 },
    { 1, 1, 16, 4, 10e-6, 45e9 },     /* 0 and 48: of one pod */
    { 2, 2, 8, 4, 20e-6, 10e9 },      /* 0 and 96: pods apart, though neighbours are not */
  };
  const pp_network network = { .tiers = 3, .tier = { { 8, 400e9, 0.8, 2e-6, 0 }, { 64, 50e9, 0.9, 10e-6, 0 }, { 1 << 20, 20e9, 0.5, 20e-6, 0 } } };
  const pp_training training = bf16_recipe(4096);
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pp_layout layout = layout_of(rows[i].tensor, rows[i].context, 1, rows[i].data, rows[i].pipeline);
    pp_step_seconds step;
    pp_cost_step(&layout, &training, &ideal, &network, 1e9, 0, 2, &step);
    expect(2 * rows[i].latency + 0.5 * 6e9 / (rows[i].data * rows[i].context) / rows[i].bandwidth, step.mirror, 1e-12);
  }
}

/* Nothing is sharded: two ranks all-reduce all their gradients, 2·(α + 1/2 · S/B), and each keeps its parameters. */
static void two_unsharded_copies_reduce_their_gradients(void **state) {
  const pp_layout layout = layout_of(8, 1, 1, 16, 2);
  pp_training training = bf16_recipe(4096);
  pp_step_seconds step;
  (void)state;
  training.shard_optimizer = false;
  pp_cost_step(&layout, &training, &ideal, &real, 1e9, 0, 2, &step);
  expect(2 * (10e-6 + 0.5 * 4e9 / 45e9), step.mirror, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_step_reduces_gradients_and_gathers_parameters),
    cmocka_unit_test(gradients_may_be_reduced_whole_and_in_another_precision),
    cmocka_unit_test(an_offloaded_update_takes_the_hosts_link_and_memory),
    cmocka_unit_test(two_copies_exchange_what_sharding_leaves),
    cmocka_unit_test(mirror_copies_meet_over_the_links_between_their_ranks),
    cmocka_unit_test(two_unsharded_copies_reduce_their_gradients),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c, stages.c, evaluate_time.c: what runs beside what, and what waits: TP's collectives, pairs on two streams, gradients that W adds to,
** hand-overs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "searches.h"

static const pp_device ideal = {
  .flops = 1e15, .flops_bf16 = 1e15, .memory_bandwidth = 1e30, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
  .attention_efficiency = 1, .memory_efficiency = 1, .hides_alltoall = true,
};
static const pp_network instant = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
static const pp_network real = { .tiers = 2, .tier = { { 8, 400e9, 0.8, 2e-6, 0 }, { 1 << 20, 50e9, 0.9, 10e-6, 0 } } };

static pp_block_seconds layer_of(const pp_training *training, const pp_device *device, const pp_network *network, int tensor) {
  const pp_model model = llama(2, 4096, 32, 8, 14336, 128256);
  const pp_layout layout = { .tensor = tensor, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 };
  pp_block_seconds blocks[PP_BLOCKS];
  pp_error error;
  if (pp_cost_blocks(&model, &layout, training, device, network, blocks, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return blocks[PP_BLOCK_DENSE];
}

/* --- TP ------------------------------------------------------------------------------------------------------------------------ */

/*
** Four collectives each way of a layer on TP 8, each 7 hops of 2 us and 7/8 of 2·s·b·h bytes over 320 GB/s, and 30 us of its own. Backward gathers the
** inputs of its two regions once more, of which half is not hidden: one collective. Transformer Engine's overlap hides 70 % of all.
*/
static void collectives_of_tensor_parallelism_take_their_launch_and_hide_beside_products(void **state) {
  pp_training training = bf16_recipe(8192);
  pp_device device = ideal;
  const double once = 7 * 2e-6 + 7.0 / 8 * 2 * 8192 * 4096 / (400e9 * 0.8) + 30e-6;
  (void)state;
  device.tensor_latency = 30e-6;
  device.tensor_regather = 0.5;
  const pp_block_seconds none = layer_of(&training, &ideal, &instant, 8), all = layer_of(&training, &device, &real, 8);
  expect(4 * once, all.forward - none.forward, 1e-9);
  expect((4 + 1) * once, all.input - none.input, 1e-9);
  expect(none.weight, all.weight, 1e-12);
  expect((8 + 1) * once, all.tensor, 1e-9);
  training.tensor_overlap = 0.7;
  const pp_block_seconds some = layer_of(&training, &device, &real, 8);
  expect(0.3 * 4 * once, some.forward - none.forward, 1e-9);
  expect(0.3 * 5 * once, some.input - none.input, 1e-9);
}

/* Without sequence parallelism a region ends in one all-reduce, 14 hops and 14/8 of the bytes, with one launch; nothing is gathered again. */
static void an_all_reduce_is_launched_once(void **state) {
  pp_training training = bf16_recipe(8192);
  pp_device device = ideal;
  const double once = 14 * 2e-6 + 14.0 / 8 * 2 * 8192 * 4096 / (400e9 * 0.8) + 30e-6;
  (void)state;
  device.tensor_latency = 30e-6;
  device.tensor_regather = 0.5;
  training.sequence_parallel = false;
  const pp_block_seconds none = layer_of(&training, &ideal, &instant, 8), all = layer_of(&training, &device, &real, 8);
  expect(2 * once, all.forward - none.forward, 1e-9);
  expect(2 * once, all.input - none.input, 1e-9);
}

/* 218 M weights of a layer: QKV 4096 · 6144, projection 4096², gate, up and down 3 · 4096 · 14336. Each gradient is read and written in fp32, beside W's
** products: 8 bytes at 1 TB/s; in bf16 half. */
static void gradients_are_added_after_their_products(void **state) {
  const double weights = 4096.0 * 6144 + 4096.0 * 4096 + 3 * 4096.0 * 14336;
  pp_training training = bf16_recipe(8192);
  pp_device device = ideal;
  (void)state;
  device.memory_bandwidth = 1e12;
  const double products = layer_of(&training, &ideal, &instant, 1).weight;
  expect(2 * 8192 * weights / 1e15, products, 1e-9);
  expect(8 * weights / 1e12, layer_of(&training, &device, &instant, 1).weight - products, 1e-9);
  training.gradient_bytes = 2;
  expect(4 * weights / 1e12, layer_of(&training, &device, &instant, 1).weight - products, 1e-9);
}

/* --- pairs --------------------------------------------------------------------------------------------------------------------- */

/* F = 6 of which 4 all-to-all, B = 9 of which 5: compute 6, all-to-all 9; 0.42 of the shorter is hidden. More all-to-all than compute or less. */
static void pairs_on_two_streams_hide_a_share_of_the_shorter(void **state) {
  const pp_stage_seconds much = { .forward = 6, .full = 9, .alltoall_forward = 4, .alltoall_backward = 5 };
  const pp_stage_seconds little = { .forward = 6, .full = 9, .alltoall_forward = 1, .alltoall_backward = 1 };
  pp_device device = ideal;
  (void)state;
  device.overlap_overhead = 0.5;
  device.hidden_share = 0.42;
  expect(15 - 0.42 * 6, pp_cost_pair(&device, &much, &much), 1e-12);
  expect(15 - 0.42 * 2, pp_cost_pair(&device, &little, &little), 1e-12);
  device.hides_alltoall = false;
  expect(15, pp_cost_pair(&device, &much, &much), 1e-12);
}

/* DualPipe and its V bring a kernel of their own, Megatron's overlap runs what there is on two streams. */
static void only_schedules_without_a_kernel_of_their_own_hide_a_share(void **state) {
  static const struct { pp_schedule_kind kind; double share; } rows[] = {
    { PP_DUALPIPE, 0 }, { PP_DUALPIPEV, 0 }, { PP_INTERLEAVED_1F1B_OVERLAP, 0.42 } };
  search_case c;
  (void)state;
  set_deepseek(&c);
  c.device.hidden_share = 0.42;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pp_candidate candidate = candidate_of((int)rows[i].kind, 8, 2, 64);
    const pp_layout_costs costs = costs_of(&c, &candidate.layout);
    const pp_priced of = { &c.problem, &candidate, &costs, true };
    pp_device device;
    pp_evaluate_pair_device(&of, &device);
    expect(rows[i].share, device.hidden_share, 1e-12);
    assert_true(device.hides_alltoall);
  }
}

/* --- hand-overs ---------------------------------------------------------------------------------------------------------------- */

static double makespan_of(search_case *c, pp_candidate *candidate, double waiting, pp_layout_costs *costs) {
  pp_timing timing;
  pp_error error;
  c->problem.hop_waiting = waiting;
  *costs = costs_of(c, &candidate->layout);
  const pp_priced of = { &c->problem, candidate, costs, true };
  if (pp_evaluate_time(&of, true, &timing, NULL, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return timing.makespan_seconds;
}

/*
** 1F1B, four ranks of two layers, 8 a node: messages of 4,096 · 4,096 · 2 bytes cross 45 GB/s after 10 us. One microbatch passes three hops ahead and three
** back, whoever waits: its makespan is all work and six hops. Then four are under way, each of which goes round once while four are finished: where
** messages run beside work, a microbatch costs a quarter of that round. Where receivers wait, a rank between the ends takes F + B and two transfers,
** which is more.
*/
static void a_receiver_waits_for_what_it_is_handed(void **state) {
  const double transfer = 2.0 * 4096 * 4096 / 45e9, hop = 10e-6 + transfer;
  search_case c;
  pp_layout_costs costs;
  (void)state;
  set_case(&c, llama(8, 4096, 32, 8, 14336, 64), 32, 64);
  pp_candidate one = candidate_of(PP_1F1B, 4, 1, 1), many = candidate_of(PP_1F1B, 4, 1, 32), more = candidate_of(PP_1F1B, 4, 1, 64);
  for (int waits = 0; waits < 2; waits++) {
    const double alone = makespan_of(&c, &one, waits, &costs);
    const pp_block_seconds *block = costs.seconds[1];
    const double stage = 2 * (block[PP_BLOCK_DENSE].forward + block[PP_BLOCK_DENSE].full);
    const double round = 4 * stage + block[PP_BLOCK_EMBEDDING].full + block[PP_BLOCK_EMBEDDING].forward + block[PP_BLOCK_HEAD].forward +
                         block[PP_BLOCK_HEAD].full + 6 * hop;
    expect(waits * transfer, costs.waiting, 1e-7);
    expect(hop, costs.hop + costs.waiting, 1e-9);
    expect(round, alone, 1e-9);
    const double each = (makespan_of(&c, &more, waits, &costs) - makespan_of(&c, &many, waits, &costs)) / 32;
    expect(waits ? stage + 2 * transfer : round / 4, each, waits ? 1e-3 : 1e-9);   /* a latency shows between two that are as busy */
    assert_true(stage + 2 * transfer > round / 4);
  }
}

/* Nothing crosses between a rank's own stages: in a V of two ranks the second holds both middle ones. */
static void a_rank_does_not_wait_for_itself(void **state) {
  search_case c;
  pp_stage stages[4];
  pp_stage_seconds with[4], without[4];
  (void)state;
  set_case(&c, llama(8, 4096, 32, 8, 14336, 64), 16, 64);
  c.problem.hop_waiting = 1;
  const pp_candidate candidate = candidate_of(PP_ZB_V, 2, 2, 8);
  const pp_layout_costs costs = costs_of(&c, &candidate.layout);
  pp_layout_costs quick = costs;
  quick.waiting = 0;
  const pp_priced of = { &c.problem, &candidate, &costs, true }, instantly = { &c.problem, &candidate, &quick, true };
  assert_int_equal(pp_layout_stages(&c.model, 4, NULL, stages, NULL), PP_OK);
  pp_stages_seconds(&of, stages, with);
  pp_stages_seconds(&instantly, stages, without);
  static const int waits_ahead[] = { 0, 1, 0, 1 }, waits_back[] = { 1, 0, 1, 0 };
  for (int s = 0; s < 4; s++) {
    expect(waits_ahead[s] * costs.waiting, with[s].forward - without[s].forward, 1e-6);
    expect(waits_back[s] * costs.waiting, with[s].input - without[s].input, 1e-6);
    expect(waits_back[s] * costs.waiting, with[s].full - without[s].full, 1e-6);
    expect(without[s].weight, with[s].weight, 1e-12);
  }
  assert_true(costs.waiting > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(collectives_of_tensor_parallelism_take_their_launch_and_hide_beside_products),
    cmocka_unit_test(an_all_reduce_is_launched_once),
    cmocka_unit_test(gradients_are_added_after_their_products),
    cmocka_unit_test(pairs_on_two_streams_hide_a_share_of_the_shorter),
    cmocka_unit_test(only_schedules_without_a_kernel_of_their_own_hide_a_share),
    cmocka_unit_test(a_receiver_waits_for_what_it_is_handed),
    cmocka_unit_test(a_rank_does_not_wait_for_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

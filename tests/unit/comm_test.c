/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c: alpha-beta times, against their formulas and against published kernel measurements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/comm.h"

/* 8 GPUs of 100 GB/s inside, 50 GB/s between; round numbers for formulas. */
static const pp_network plain = {
  .tiers = 2,
  .tier = { { 8, 100e9, 1, 1e-6, 0 }, { 1 << 20, 50e9, 1, 10e-6, 0 } },
};

static void expect(double expected, double actual, double share) {
  if (fabs(actual - expected) > share * fabs(expected)) fail_msg("expected %.6g, got %.6g", expected, actual);
}

static void a_group_crosses_the_first_tier_that_holds_it(void **state) {
  (void)state;
  assert_ptr_equal(pp_comm_tier(&plain, 8, 1), &plain.tier[0]);
  assert_ptr_equal(pp_comm_tier(&plain, 9, 1), &plain.tier[1]);
  assert_ptr_equal(pp_comm_tier(&plain, 4, 2), &plain.tier[0]);   /* GPUs 0, 2, 4, 6 */
  assert_ptr_equal(pp_comm_tier(&plain, 2, 8), &plain.tier[1]);
}

/* The ring formulas of Thakur et al. 2005 §4.1, 4.4: (n−1)α + (n−1)/n·S/B. */
static void a_ring_inside_a_domain_is_exact(void **state) {
  (void)state;
  expect(3 * 1e-6 + 0.75 * 1e9 / 100e9, pp_comm_allgather(&plain, 4, 1, 1e9), 1e-12);
  expect(2 * (3 * 1e-6 + 0.75 * 1e9 / 100e9), pp_comm_allreduce(&plain, 4, 1, 1e9), 1e-12);
  expect(10e-6 + 1e9 / 50e9, pp_comm_p2p(&plain, 64, 1e9), 1e-12);
}

/* Members that are alone in their domain: a plain ring over the network. */
static void a_ring_between_domains_is_exact(void **state) {
  (void)state;
  expect(15 * 10e-6 + 15.0 / 16 * 1e9 / 50e9, pp_comm_allgather(&plain, 16, 8, 1e9), 1e-12);
}

/* 16 GPUs, 8 a node, 100 GB/s inside and 50 GB/s of network each: eight links carry 400 GB/s, NVLink is the slower: 14α + α' + 15/16·S/B. A step of a ring
** that leaves the node may take longer than one inside: 14 × 3 us + 14 us. */
static void members_of_a_domain_share_what_crosses(void **state) {
  const pp_network slow = { .tiers = 2, .tier = { { 8, 100e9, 1, 1e-6, 0 }, { 1 << 20, 5e9, 1, 10e-6, 0 } } };
  const pp_network steps = { .tiers = 2, .tier = { { 8, 100e9, 1, 1e-6, 3e-6 }, { 1 << 20, 5e9, 1, 10e-6, 14e-6 } } };
  (void)state;
  expect(14e-6 + 10e-6 + 15.0 / 16 * 1e9 / 100e9, pp_comm_allgather(&plain, 16, 1, 1e9), 1e-12);
  expect(14e-6 + 10e-6 + 15.0 / 16 * 1e9 / (8 * 5e9), pp_comm_allgather(&slow, 16, 1, 1e9), 1e-12);
  expect(14 * 3e-6 + 14e-6, pp_comm_ring(&steps, 16, 1), 1e-12);
  expect(7e-6, pp_comm_ring(&steps, 8, 1), 1e-12);
}

/* Bus bandwidth of an all-reduce of S bytes by nccl-tests' definition (doc/PERFORMANCE.md): S/t · 2(n−1)/n. */
static double bus_bandwidth(const pp_network *network, int64_t ranks, double bytes) {
  return bytes / pp_comm_allreduce(network, ranks, 1, bytes) * 2 * (double)(ranks - 1) / (double)ranks;
}

/*
** NVIDIA's staff on what NCCL reaches: 192 GB/s on DGX A100 with eight 200 Gb/s ports (NVIDIA/nccl#812: ports at 24 GB/s, NVLink 3 at some
** 230); "46-48 GB/s per NIC" of 400 Gb/s (nccl-tests#290), so 376 of eight behind NVSwitch. Three hosts of eight A100 with four 200 Gb/s
** cards: "theoretical 100", measured 96 at the peak (nccl-tests#119): two GPUs share a card.
*/
static void rings_across_hosts_reach_what_their_links_reach_together(void **state) {
  const pp_network a100 = { .tiers = 2, .tier = { { 8, 300e9, 0.78, 2e-6, 0 }, { 1 << 20, 25e9, 0.96, 10e-6, 0 } } };
  const pp_network h100 = { .tiers = 2, .tier = { { 8, 450e9, 0.9, 2e-6, 0 }, { 1 << 20, 50e9, 0.94, 10e-6, 0 } } };
  const pp_network shared = { .tiers = 2, .tier = { { 8, 300e9, 0.78, 2e-6, 0 }, { 1 << 20, 12.5e9, 0.96, 10e-6, 0 } } };
  (void)state;
  expect(192e9, bus_bandwidth(&a100, 32, 8e9), 0.01);
  expect(376e9, bus_bandwidth(&h100, 32, 8e9), 0.01);
  expect(96e9, bus_bandwidth(&shared, 24, 8e9), 0.01);
}

static void one_rank_or_no_bytes_take_no_time(void **state) {
  (void)state;
  assert_true(pp_comm_allgather(&plain, 1, 1, 1e9) <= 0);
  assert_true(pp_comm_p2p(&plain, 1, 0) <= 0);
  assert_true(pp_comm_alltoall(&plain, &(pp_alltoall){ .group = 1, .stride = 1, .tokens = 1, .experts_per_token = 8, .bytes_per_token = 1 }) <= 0);
}

/* Eight dice on four faces show 4(1 − (3/4)^8) = 3.5995 different ones. */
static void copies_that_land_together_count_once(void **state) {
  (void)state;
  expect(3.59954834, pp_comm_distinct(4, 8), 1e-8);
  expect(1, pp_comm_distinct(1, 8), 1e-12);
}

/*
** Without replacement, counted by hand. Two of four experts on two places miss one of them in C(2,2) / C(4,2) = 1/6 of all draws: 2 · 5/6. Eight
** of 128 on four nodes miss one in C(96,8) / C(128,8) = 0.0927473: 4 · 0.9072527 = 3.62901, as DeepEP's own test counts (tests/test_internode.py);
** eight of 256 on two in C(128,8) / C(256,8) = 0.0034899. As many experts as places: all choices apart. More choices than a place leaves out: all.
*/
static void experts_that_are_chosen_are_different_ones(void **state) {
  (void)state;
  expect(5.0 / 3, pp_comm_distinct_of(2, 2, 4), 1e-12);
  expect(3.62901, pp_comm_distinct_of(4, 8, 128), 2e-6);
  expect(2 * (1 - 0.0034899), pp_comm_distinct_of(2, 8, 256), 1e-6);
  expect(8, pp_comm_distinct_of(64, 8, 64), 1e-12);
  expect(2, pp_comm_distinct_of(2, 3, 4), 1e-12);
  expect(1, pp_comm_distinct_of(1, 8, 64), 1e-12);
  expect(pp_comm_distinct(4, 8), pp_comm_distinct_of(4, 8, 1e9), 1e-7);
  expect(pp_comm_distinct(4, 8), pp_comm_distinct_of(4, 8, 0), 1e-12);
}

/* A flat all-to-all sends every copy: K·S·(n−1)/n over the network when each rank is its own domain. */
static void a_flat_alltoall_is_the_textbook_formula(void **state) {
  const pp_alltoall transfer = { .group = 16, .stride = 8, .tokens = 1000, .experts_per_token = 4, .bytes_per_token = 1e4, .flat = true };
  (void)state;
  expect(10e-6 + 4e7 * 15 / 16 / 50e9, pp_comm_alltoall(&plain, &transfer), 1e-12);
}

/* Eight GPUs a node; `experts` 0 and `rate` 0: so many, and as fast as the link. */
typedef struct {
  double scale_up, scale_out, experts, rate;
} deepseek_links;

static double deepseek_shape(const deepseek_links *links, int64_t group, int64_t max_domains, double bytes) {
  const pp_network network = { .tiers = 2, .tier = { { 8, links->scale_up, 1, 0, 0 }, { 1 << 20, links->scale_out, 1, 0, 0 } } };
  const pp_alltoall transfer = {
    .group = group, .stride = 1, .tokens = 4096, .experts_per_token = 8, .experts = (int64_t)links->experts, .rate = links->rate,
    .max_domains = max_domains, .bytes_per_token = 7168 * bytes,
  };
  return pp_comm_alltoall(&network, &transfer);
}

/*
** Published times of 4,096 tokens, hidden 7,168, top-8 of 256 experts, fp8 dispatch and bf16 combine, within 30 %. Ports of 50 GB/s carry 44.6 GB/s
** (DeepEP V1, EP64: 51 GB/s where the token's own node counts too, 7/8 of that on the wire), and kernels across nodes forward 150 GB/s inside
** them (145: deepseek-ai/DeepEP#493, on links of 450).
** UCCL-EP on B200 with 400 Gb/s EFA (deepseek-ai/DeepEP#529): EP16 1141 + 1965 us, EP32 2072 + 3724 us.
** DeepEP V1 on H800 with 400 Gb/s InfiniBand, tokens limited to four nodes (DeepEP docs/legacy.md): EP16 43, EP32 58, EP64 51 GB/s,
** bytes that the benchmark counts, those for the token's own node among them, divided by that; EP8 153 GB/s over NVLink.
*/
static void dispatch_and_combine_are_near_what_kernels_measure(void **state) {
  const double token = 4096.0 * 7168;
  const deepseek_links b200 = { 720e9, 44.6e9, 256, 150e9 }, h800 = { 155e9, 44.6e9, 256, 150e9 };
  (void)state;
  expect(1141e-6, deepseek_shape(&b200, 16, 0, 1), 0.3);
  expect(1965e-6, deepseek_shape(&b200, 16, 0, 2), 0.3);
  expect(2072e-6, deepseek_shape(&b200, 32, 0, 1), 0.3);
  expect(3724e-6, deepseek_shape(&b200, 32, 0, 2), 0.3);
  expect(2.0 * token / 43e9, deepseek_shape(&h800, 16, 4, 1), 0.3);
  expect(3.6 * token / 58e9, deepseek_shape(&h800, 32, 4, 1), 0.3);
  expect(3.6 * token / 51e9, deepseek_shape(&h800, 64, 4, 1), 0.3);
  expect(3.6 * 2 * token / 50e9, deepseek_shape(&h800, 64, 4, 2), 0.3);
  expect(5.25 * token / 153e9, deepseek_shape(&h800, 8, 4, 1), 0.3);
}

/*
** DeepEP V1 as above: of 43, 58 and 51 GB/s over 2, 4 and 8 nodes 1/2, 3/4 and 7/8 cross wires: 21.5, 43.5 and 44.6. The port's 44.6 holds the
** last two, within 5 %; at EP16 nodes decide inside themselves, at 150 GB/s: a token goes to 16(1 − C(240,8)/C(256,8)) = 6.5233 GPUs, 15/16 of
** them others. V2 (README.md @dd758ca): 90 GB/s over two nodes and 61 over four, 45 and 45.8 on the wire, for its kernels forward faster.
*/
static void only_copies_to_other_nodes_cross_wires(void **state) {
  const double token = 4096.0 * 7168;
  const deepseek_links v1 = { 155e9, 44.6e9, 256, 150e9 }, v2 = { 720e9, 45.4e9, 256, 0 };
  (void)state;
  expect(3.6 * token / 58e9, deepseek_shape(&v1, 32, 4, 1), 0.05);
  expect(3.6 * token / 51e9, deepseek_shape(&v1, 64, 4, 1), 0.05);
  expect(6.52328 * 15 / 16 * token / 150e9, deepseek_shape(&v1, 16, 4, 1), 1e-5);
  expect(2.0 * token / 90e9, deepseek_shape(&v2, 16, 0, 1), 0.05);
  expect(3.6 * token / 61e9, deepseek_shape(&v2, 32, 0, 1), 0.05);
}

/* DeepSeek-V3 report §3.2.2: with four nodes a token, up to 3.2 experts a node cost no more: 13 experts take as long as 8 there. */
static void node_limited_routing_caps_what_crosses(void **state) {
  pp_alltoall transfer = { .group = 64, .stride = 1, .tokens = 4096, .experts_per_token = 8, .max_domains = 4, .bytes_per_token = 7168 };
  (void)state;
  const pp_network fast_inside = { .tiers = 2, .tier = { { 8, 900e9, 1, 0, 0 }, { 1 << 20, 50e9, 1, 0, 0 } } };
  const double eight = pp_comm_alltoall(&fast_inside, &transfer);
  transfer.experts_per_token = 13;
  assert_true(pp_comm_alltoall(&fast_inside, &transfer) <= 4.0 / 3.59 * eight);
  transfer.max_domains = 0;
  assert_true(pp_comm_alltoall(&fast_inside, &transfer) > 1.5 * eight);
}

/*
** The same, counted: 8 choices on 4 nodes reach 4(1 − (3/4)^8) = 3.59955 of them, on 8 nodes 8(1 − (7/8)^8) = 5.25113; of the 32 GPUs on four
** nodes 32(1 − (31/32)^8) = 7.17760, of 64 64(1 − (63/64)^8) = 7.57591. One in eight of the nodes and one in 64 of the GPUs is the token's own. Over
** 50 GB/s of InfiniBand and 160 of NVLink (§3.2.2) nodes decide; over 50 and 60, or a kernel that forwards 60 of 160, the GPUs inside them do.
** A limit that is no limit changes nothing.
*/
static void a_token_reaches_the_gpus_of_its_nodes_only(void **state) {
  const double token = 4096.0 * 7168;
  const deepseek_links fast = { 160e9, 50e9, 0, 0 }, slow = { 60e9, 50e9, 0, 0 }, busy = { 160e9, 50e9, 0, 60e9 };
  (void)state;
  expect(3.59955 * 7 / 8 * token / 50e9, deepseek_shape(&fast, 64, 4, 1), 1e-5);
  expect(5.25113 * 7 / 8 * token / 50e9, deepseek_shape(&fast, 64, 0, 1), 1e-5);
  expect(7.17760 * 63 / 64 * token / 60e9, deepseek_shape(&slow, 64, 4, 1), 1e-5);
  expect(7.57591 * 63 / 64 * token / 60e9, deepseek_shape(&slow, 64, 0, 1), 1e-5);
  expect(7.57591 * 63 / 64 * token / 60e9, deepseek_shape(&busy, 64, 0, 1), 1e-5);
  expect(5.25113 * 7 / 8 * token / 50e9, deepseek_shape(&fast, 64, 8, 1), 1e-5);
  expect(5.25113 * 7 / 8 * token / 50e9, deepseek_shape(&fast, 64, 9, 1), 1e-5);
}

/*
** One domain a token: it is the token's own one time in eight. And of experts that are counted, those of the chosen domains: of 64 on 64 GPUs
** eight are chosen among the 32 of four nodes, which are on 4(1 − C(24,8)/C(32,8)) = 3.72030 of these, and on eight GPUs.
*/
static void with_a_limit_domains_are_chosen_first_and_then_their_experts(void **state) {
  const double token = 4096.0 * 7168;
  const deepseek_links all = { 900e9, 50e9, 0, 0 }, few = { 160e9, 50e9, 64, 0 }, slow = { 60e9, 50e9, 64, 0 };
  (void)state;
  expect(7.0 / 8 * token / 50e9, deepseek_shape(&all, 64, 1, 1), 1e-9);
  expect(3.72030 * 7 / 8 * token / 50e9, deepseek_shape(&few, 64, 4, 1), 1e-5);
  expect(8.0 * 63 / 64 * token / 60e9, deepseek_shape(&slow, 64, 4, 1), 1e-9);
}

/* Not even where there are fewer experts than places, or than choices. */
static void no_more_places_are_reached_than_choices_are_made(void **state) {
  (void)state;
  for (int places = 2; places <= 20; places++)
    for (int experts = 1; experts <= 40; experts++)
      for (int choices = 1; choices <= 12; choices++) {
        const double reached = pp_comm_distinct_of(places, choices, experts);
        if (!(reached > 0 && reached <= places && reached <= choices)) fail_msg("%d of %d experts on %d: %g", choices, experts, places, reached);
      }
}

/* A kernel's own rate is that of forwarding between nodes: inside one nothing is forwarded. 8(1 − (7/8)^8) · 7/8 copies over 160 GB/s. */
static void a_kernel_forwards_at_its_rate_across_nodes_only(void **state) {
  const deepseek_links busy = { 160e9, 50e9, 0, 60e9 };
  (void)state;
  expect(5.25113 * 7 / 8 * 4096 * 7168 / 160e9, deepseek_shape(&busy, 8, 0, 1), 1e-5);
}

/* ----------------------------------------------------------------------------------------------------------------- measured links */

static void expect_fit(pp_test test, int64_t ranks, int64_t members, const pp_network *network, pp_transfer transfer, double bandwidth,
                       double latency) {
  static const double bytes[] = { 1e3, 1e5, 1e6, 1e7, 1e8, 1e9, 8e9 };
  enum { COUNT = sizeof bytes / sizeof *bytes };
  double seconds[COUNT];
  const pp_measured_link inner = { 100e9, 1e-6 };
  for (int i = 0; i < COUNT; i++) {
    const pp_alltoall all = { .group = ranks, .stride = 1, .tokens = 1, .experts_per_token = 1, .bytes_per_token = bytes[i], .flat = true };
    seconds[i] = test == PP_TEST_SENDRECV     ? pp_comm_p2p(network, ranks > members ? members : 1, bytes[i])
                 : test == PP_TEST_ALLTOALL   ? pp_comm_alltoall(network, &all)
                 : test == PP_TEST_ALL_REDUCE ? pp_comm_allreduce(network, ranks, 1, bytes[i])
                                              : pp_comm_allgather(network, ranks, 1, bytes[i]);
  }
  const pp_test_run run = { test, ranks, members, COUNT, bytes, seconds };
  pp_link_fit fit;
  pp_error error;
  assert_int_equal(PP_OK, pp_comm_fit(&run, &inner, &fit, &error));
  assert_int_equal(transfer, fit.transfer);
  expect(bandwidth, fit.link.bandwidth, 1e-9);
  expect(latency, fit.link.latency, 1e-6);
  assert_true(fit.worst_error < 1e-9);
  assert_false(fit.bound_inside);
}

/* A table made of the formulas gives back the links that it was made of. */
static void a_fit_finds_the_link_behind_each_test(void **state) {
  const pp_network slow = { .tiers = 2, .tier = { { 8, 100e9, 1, 1e-6, 0 }, { 1 << 20, 5e9, 1, 10e-6, 0 } } };
  (void)state;
  expect_fit(PP_TEST_ALL_REDUCE, 8, 8, &slow, PP_RING, 100e9, 1e-6);
  expect_fit(PP_TEST_ALL_GATHER, 8, 8, &slow, PP_RING, 100e9, 1e-6);
  expect_fit(PP_TEST_REDUCE_SCATTER, 16, 8, &slow, PP_RING, 5e9, 10e-6);
  expect_fit(PP_TEST_ALL_REDUCE, 32, 8, &slow, PP_RING, 5e9, 10e-6);
  expect_fit(PP_TEST_SENDRECV, 16, 8, &slow, PP_MESSAGE, 5e9, 10e-6);
  expect_fit(PP_TEST_ALLTOALL, 8, 8, &slow, PP_ALLTOALL, 100e9, 1e-6);
  expect_fit(PP_TEST_ALLTOALL, 32, 8, &slow, PP_ALLTOALL, 5e9, 10e-6);
}

/*
** NVIDIA/nccl-tests#232: two H100, one a host, all-reduce: 2 MiB 113.2 us, 4 154.4, 8 231.4, 16 420.5, 32 MiB 812.3 us. By hand the slope
** from 2 to 32 MiB is 699.1 us / 31.46 MB = 22.2 us a MB, so 45.0 GB/s of bus bandwidth (2(n−1)/n is 1).
*/
static void a_fit_of_a_published_table_is_its_slope(void **state) {
  static const double bytes[] = { 2097152, 4194304, 8388608, 16777216, 33554432 };
  static const double seconds[] = { 113.2e-6, 154.4e-6, 231.4e-6, 420.5e-6, 812.3e-6 };
  const pp_test_run run = { PP_TEST_ALL_REDUCE, 2, 1, 5, bytes, seconds };
  const pp_measured_link unknown = { 0, 0 };
  pp_link_fit fit;
  pp_error error;
  (void)state;
  assert_int_equal(PP_OK, pp_comm_fit(&run, &unknown, &fit, &error));
  expect(45.0e9, fit.link.bandwidth, 0.06);
  assert_true(fit.worst_error < 0.06);
}

/* Of four errors the median is the mean of the second and third, of five the third: by the line that the fit itself says. */
static void a_fit_tells_the_median_and_the_worst_of_its_errors(void **state) {
  static const double bytes[] = { 1e6, 2e6, 4e6, 8e6, 16e6 }, seconds[] = { 31e-6, 48e-6, 92e-6, 163e-6, 341e-6 };
  const pp_measured_link unknown = { 0, 0 };
  (void)state;
  for (int count = 4; count <= 5; count++) {
    const pp_test_run run = { PP_TEST_SENDRECV, 2, 1, count, bytes, seconds };
    double errors[5];
    pp_link_fit fit;
    pp_error error;
    assert_int_equal(PP_OK, pp_comm_fit(&run, &unknown, &fit, &error));
    for (int i = 0; i < count; i++) {   /* each behind those that are smaller */
      double mine = fabs((fit.alpha + fit.beta * bytes[i]) / seconds[i] - 1);
      int at = i;
      for (; at > 0 && errors[at - 1] > mine; at--) errors[at] = errors[at - 1];
      errors[at] = mine;
    }
    expect(count == 4 ? (errors[1] + errors[2]) / 2 : errors[2], fit.median_error, 1e-9);
    expect(errors[count - 1], fit.worst_error, 1e-9);
    assert_true(errors[1] < errors[2] && errors[2] < errors[3]);
  }
}

/* 192 GB/s across hosts says nothing about ports when NVLink itself reaches no more. */
static void a_fit_says_when_the_links_inside_were_the_slower(void **state) {
  static const double bytes[] = { 1e8, 1e9 }, seconds[] = { 2 * 15.0 / 16 * 1e8 / 100e9, 2 * 15.0 / 16 * 1e9 / 100e9 };
  const pp_test_run run = { PP_TEST_ALL_REDUCE, 16, 8, 2, bytes, seconds };
  const pp_measured_link inner = { 100e9, 0 };
  pp_link_fit fit;
  pp_error error;
  (void)state;
  assert_int_equal(PP_OK, pp_comm_fit(&run, &inner, &fit, &error));
  assert_true(fit.bound_inside);
  expect(12.5e9, fit.link.bandwidth, 1e-9);
}

static void a_table_that_cannot_be_fitted_is_refused(void **state) {
  static const double bytes[] = { 1e6, 1e6, 1e8 }, falling[] = { 1, 1, 1e-3 }, zero[] = { 0, 0, 0 };
  const pp_measured_link unknown = { 0, 0 };
  const struct { pp_test_run run; const char *field; } bad[] = {
    { { PP_TEST_ALL_GATHER, 1, 1, 2, bytes, falling }, "ranks" },   { { PP_TEST_ALL_GATHER, 2, 3, 2, bytes, falling }, "members" },
    { { PP_TEST_ALL_GATHER, 2, 2, 2, bytes, falling }, "bytes" },   { { PP_TEST_ALL_GATHER, 2, 2, 0, bytes, falling }, "bytes" },
    { { PP_TEST_ALL_GATHER, 2, 2, 3, bytes, falling }, "seconds" }, { { PP_TEST_ALL_GATHER, 2, 2, 3, bytes, zero }, "seconds" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    pp_link_fit fit;
    pp_error error;
    assert_int_equal(PP_INVALID, pp_comm_fit(&bad[i].run, &unknown, &fit, &error));
    assert_string_equal(bad[i].field, error.field);
  }
}

/* Isolated messages between two H200 over NVLink: 1 MB 50.4 us, 33.5 MB 145.4, 256 MB 747.2 (tests/data/gpu, comm_us). */
static void a_table_of_messages_is_read_between_its_sizes(void **state) {
  pp_network network = { .tiers = 1, .tier = { { 8, 450e9, 0.8, 2e-6, 0 } } };
  (void)state;
  network.messages[0] = (pp_message_table){ 3, { 1 << 20, 33554432, 268435456 }, { 50.4e-6, 145.4e-6, 747.2e-6 } };
  expect(145.4e-6, pp_comm_p2p(&network, 1, 33554432), 1e-12);
  expect((50.4e-6 + 145.4e-6) / 2, pp_comm_p2p(&network, 1, (33554432 + (1 << 20)) / 2.0), 1e-12);
  expect(50.4e-6, pp_comm_p2p(&network, 1, 1000), 1e-12);
  expect(747.2e-6 + 33554432 / 7.0 * (747.2e-6 - 145.4e-6) / 33554432, pp_comm_p2p(&network, 1, 268435456 + 33554432), 1e-9);
}

/* 52.38 us for 1 KiB and 50.39 for 1 MiB, measured on H200 one after the other: neither takes longer than 50.39, and 32 MiB at the 450 GB/s of
** the link 31 MiB / 450 GB/s = 72.24 us more. 361.42 us for 8 MiB, and 178.53 for 32, on another day. */
static void a_message_takes_no_longer_than_a_larger_one_did(void **state) {
  pp_network network = { .tiers = 1, .tier = { { 8, 450e9, 0.8, 2e-6, 0 } } };
  (void)state;
  network.messages[0] = (pp_message_table){ 2, { 1024, 1 << 20 }, { 52.38e-6, 50.39e-6 } };
  expect(50.39e-6, pp_comm_p2p(&network, 1, 1024), 1e-12);
  expect(50.39e-6, pp_comm_p2p(&network, 1, 500000), 1e-12);
  expect(50.39e-6, pp_comm_p2p(&network, 1, 1 << 20), 1e-12);
  expect(50.39e-6 + 31.0 * (1 << 20) / 450e9, pp_comm_p2p(&network, 1, 32 << 20), 1e-9);
  network.messages[0] = (pp_message_table){ 4, { 1 << 20, 8 << 20, 32 << 20, 256 << 20 }, { 18.92e-6, 361.42e-6, 178.53e-6, 976.49e-6 } };
  expect(178.53e-6, pp_comm_p2p(&network, 1, 8 << 20), 1e-12);
  expect(178.53e-6, pp_comm_p2p(&network, 1, 32 << 20), 1e-12);
  expect((18.92e-6 + 178.53e-6) / 2, pp_comm_p2p(&network, 1, 4.5 * (1 << 20)), 1e-12);
  /* 5 us a MB between the last two, but the last is 3 us a MB with all that does not grow with the size */
  network.messages[0] = (pp_message_table){ 2, { 3e6, 4e6 }, { 7e-6, 12e-6 } };
  expect(12e-6 + 3e-6, pp_comm_p2p(&network, 1, 5e6), 1e-12);
}

/* One size of 10 us at 1 MB on a link of 2 us + 1 MB at 360 GB/s: 2.78 + 2 us by the catalogue, so everything takes 2.093 times as long. Where a
** link has no latency it is in proportion. */
static void beyond_a_single_size_a_message_takes_longer_as_its_link_says(void **state) {
  pp_network network = { .tiers = 1, .tier = { { 8, 450e9, 0.8, 2e-6, 0 } } };
  (void)state;
  network.messages[0] = (pp_message_table){ 1, { 1e6 }, { 10e-6 } };
  expect(10e-6, pp_comm_p2p(&network, 1, 1e6), 1e-12);
  expect(10e-6, pp_comm_p2p(&network, 1, 1e3), 1e-12);
  expect(10e-6 * (2 + 10 / 0.36) / (2 + 1 / 0.36), pp_comm_p2p(&network, 1, 1e7), 1e-12);
  network.tier[0].latency = 0;
  expect(100e-6, pp_comm_p2p(&network, 1, 1e7), 1e-12);
}

/* Derived: a link that carries a message carries a smaller one no later. Tables of any number of sizes and any noise. */
static void no_table_makes_a_larger_message_faster(void **state) {
  uint64_t seed = 1;
  (void)state;
  for (int round = 0; round < 2000; round++) {
    pp_network network = { .tiers = 1, .tier = { { 8, 450e9, 0.8, 2e-6, 0 } } };
    pp_message_table *table = &network.messages[0];
    double size = 1, before = 0;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    table->count = 1 + (int)(seed >> 33) % PP_MAX_MESSAGES;
    for (int i = 0; i < table->count; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      table->bytes[i] = size *= 1 + (double)((seed >> 33) % 1000) / 100 + 1e-6;
      table->seconds[i] = (seed >> 53) % 8 == 0 ? 0 : 1e-6 * (double)((seed >> 43) % 1000);
    }
    for (double bytes = 0.5; bytes < 1e3 * size; bytes *= 1.37) {
      const double seconds = pp_comm_p2p(&network, 1, bytes);
      if (!(seconds >= before * (1 - 1e-12) && isfinite(seconds))) fail_msg("round %d: %g bytes take %g s, fewer %g s", round, bytes, seconds, before);
      before = seconds;
    }
  }
}

static void what_is_measured_replaces_what_is_catalogued_for_its_kind_of_transfer(void **state) {
  pp_network network = plain;
  (void)state;
  network.measured[0][PP_RING] = (pp_measured_link){ 80e9, 3e-6 };
  network.measured[1][PP_MESSAGE] = (pp_measured_link){ 40e9, 20e-6 };
  expect(3 * 3e-6 + 0.75 * 1e9 / 80e9, pp_comm_allgather(&network, 4, 1, 1e9), 1e-12);
  expect(20e-6 + 1e9 / 40e9, pp_comm_p2p(&network, 64, 1e9), 1e-12);
  expect(1e-6 + 1e9 / 100e9, pp_comm_p2p(&network, 1, 1e9), 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_group_crosses_the_first_tier_that_holds_it),
    cmocka_unit_test(a_ring_inside_a_domain_is_exact),
    cmocka_unit_test(a_ring_between_domains_is_exact),
    cmocka_unit_test(members_of_a_domain_share_what_crosses),
    cmocka_unit_test(one_rank_or_no_bytes_take_no_time),
    cmocka_unit_test(copies_that_land_together_count_once),
    cmocka_unit_test(experts_that_are_chosen_are_different_ones),
    cmocka_unit_test(a_flat_alltoall_is_the_textbook_formula),
    cmocka_unit_test(dispatch_and_combine_are_near_what_kernels_measure),
    cmocka_unit_test(only_copies_to_other_nodes_cross_wires),
    cmocka_unit_test(with_a_limit_domains_are_chosen_first_and_then_their_experts),
    cmocka_unit_test(no_more_places_are_reached_than_choices_are_made),
    cmocka_unit_test(a_kernel_forwards_at_its_rate_across_nodes_only),
    cmocka_unit_test(node_limited_routing_caps_what_crosses),
    cmocka_unit_test(a_token_reaches_the_gpus_of_its_nodes_only),
    cmocka_unit_test(rings_across_hosts_reach_what_their_links_reach_together),
    cmocka_unit_test(a_fit_finds_the_link_behind_each_test),
    cmocka_unit_test(a_fit_of_a_published_table_is_its_slope),
    cmocka_unit_test(a_fit_tells_the_median_and_the_worst_of_its_errors),
    cmocka_unit_test(a_fit_says_when_the_links_inside_were_the_slower),
    cmocka_unit_test(a_table_that_cannot_be_fitted_is_refused),
    cmocka_unit_test(a_table_of_messages_is_read_between_its_sizes),
    cmocka_unit_test(a_message_takes_no_longer_than_a_larger_one_did),
    cmocka_unit_test(beyond_a_single_size_a_message_takes_longer_as_its_link_says),
    cmocka_unit_test(no_table_makes_a_larger_message_faster),
    cmocka_unit_test(what_is_measured_replaces_what_is_catalogued_for_its_kind_of_transfer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

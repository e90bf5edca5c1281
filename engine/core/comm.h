/* SPDX-License-Identifier: Apache-2.0 */
/*
** comm.h: time of transfers over a tiered network: alpha-beta per tier, one direction, per GPU.
*/
#ifndef PP_COMM_H
#define PP_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { PP_MAX_TIERS = 4, PP_MAX_MESSAGES = 16 };

typedef struct {
  int reach;          /* GPUs within this tier: 8 in an NVLink node; the last tier reaches all */
  double bandwidth;   /* bytes per second per GPU, one direction, nominal */
  double efficiency;  /* achieved share of bandwidth for large messages */
  double latency;     /* seconds */
  double ring_latency;  /* of a step of a ring that leaves the scale-up domain: as the latency where 0 */
} pp_tier;

/* What a tier is measured for, apart: one message, a step of a ring collective, an all-to-all in which every copy goes by itself. */
typedef enum { PP_MESSAGE, PP_RING, PP_ALLTOALL, PP_TRANSFERS } pp_transfer;

typedef struct {
  double bandwidth;   /* bytes per second per GPU, one direction, as reached; 0: not measured, the tier's own figures hold */
  double latency;     /* seconds */
} pp_measured_link;

/* Seconds ≥ 0 of messages by their bytes > 0, which ascend, as a profile has them. The seconds need not: measurements are noisy. */
typedef struct {
  int count;          /* 0: none */
  double bytes[PP_MAX_MESSAGES], seconds[PP_MAX_MESSAGES];
} pp_message_table;

/* What is sent, by what it is sent for: what a site's runs show to be slower or faster than computed, apart from all else. */
typedef enum { PP_TRAFFIC_TENSOR, PP_TRAFFIC_CONTEXT, PP_TRAFFIC_EXPERT, PP_TRAFFIC_DATA, PP_TRAFFIC_PIPELINE, PP_TRAFFICS } pp_traffic;

/* Tiers from the innermost (scale-up) outwards; reach grows. */
typedef struct {
  int tiers;
  pp_tier tier[PP_MAX_TIERS];
  pp_measured_link measured[PP_MAX_TIERS][PP_TRANSFERS];
  pp_message_table messages[PP_MAX_TIERS];
  double slower[PP_TRAFFICS];   /* times the seconds that are computed of it, whole, as cost.c and what it uses price a step; 0: 1 */
} pp_network;

/* The factor of `slower`. */
double pp_comm_slower(const pp_network *network, pp_traffic traffic);

/* The tier that a group of `size` GPUs, `stride` apart, has to cross: the first whose reach holds (size − 1) × stride + 1 of them. */
const pp_tier *pp_comm_tier(const pp_network *network, int64_t size, int64_t stride);

/*
** One message to the GPU `stride` away: α + S/B, or from the tier's table: linear between its sizes, where none counts longer than a larger one
** took; below them as the first; beyond them on as between the last two, but no faster than the tier's nominal bandwidth and no slower than the
** last in proportion; of a single size as much longer as α + S/B says. 0 bytes take no time.
*/
double pp_comm_p2p(const pp_network *network, int64_t stride, double bytes);

/*
** Seconds of an all-gather or a reduce-scatter of S bytes in all, over a group of n: (n−1)·α + (n−1)/n·S/B as a ring. With g > 1 members in
** each of N > 1 scale-up domains every byte still passes every GPU, but each of the g network links carries a g-th of what crosses, both at
** once: (n−N)·α + (N−1)·α' + (n−1)/n·S·max(1/B, 1/(g·B')). NCCL reaches it on rail-connected nodes: 192 GB/s of bus bandwidth on DGX A100
** with eight 200 Gb/s ports (NVIDIA/nccl#812), which is 8 × 24. Its ring goes through all n GPUs, N − 1 of its steps between nodes
** (NVIDIA/nccl src/graph/tuning.cc, latencies of NCCL_ALGO_RING). All-reduce is twice that. pp_comm_ring: the steps alone.
*/
double pp_comm_ring(const pp_network *network, int64_t size, int64_t stride);
double pp_comm_allgather(const pp_network *network, int64_t size, int64_t stride, double bytes);
double pp_comm_allreduce(const pp_network *network, int64_t size, int64_t stride, double bytes);

/* A token routed to several experts: how its copies spread. */
typedef struct {
  int64_t group, stride;     /* EP ranks and their distance */
  double tokens;             /* tokens that one rank sends */
  double experts_per_token;
  int64_t experts;           /* of the layer; 0: so many that no two choices meet in one */
  double rate;               /* bytes per second at which a kernel that crosses domains forwards inside them; 0: as the link */
  int64_t max_domains;       /* node-limited routing: at most so many scale-up domains per token; 0: no limit */
  double bytes_per_token;    /* of one copy */
  bool flat;                 /* plain all-to-all: every copy crosses by itself; else one copy per domain, forwarded inside */
} pp_alltoall;

/* Mean number of different places that `choices` even choices among `places` hit: n(1 − (1 − 1/n)^k). */
double pp_comm_distinct(double places, double choices);

/* The same where the choices are different ones of `experts`, spread evenly over the places: n(1 − C(E − E/n, k)/C(E, k)), at most k. */
double pp_comm_distinct_of(double places, double choices, double experts);

/*
** Dispatch (or combine) seconds. Inside the domain one copy for each other GPU that a token reaches crosses the scale-up link; between domains
** one copy for each *other* domain crosses the network (hierarchical kernels), forwarded inside at the kernel's own rate. The slower of the
** two, they overlap. 0 in a group of one. DeepEP's published bandwidths count a token's own domain too: 43, 58 and 51 GB/s over 2, 4 and 8
** nodes are 21.5 (limited inside, at 141 GB/s), 43.5 and 44.6 GB/s of a 50 GB/s port (docs/legacy.md; deepseek-ai/DeepEP issue 51: counters
** of the cards agree).
*/
double pp_comm_alltoall(const pp_network *network, const pp_alltoall *transfer);

/* What nccl-tests times. Sizes in bytes are those of its column `size`. */
typedef enum { PP_TEST_SENDRECV, PP_TEST_ALL_GATHER, PP_TEST_REDUCE_SCATTER, PP_TEST_ALL_REDUCE, PP_TEST_ALLTOALL, PP_TESTS } pp_test;

typedef struct {
  pp_test test;
  int64_t ranks, members;  /* all, and of one scale-up domain; equal: inside one */
  int count;
  const double *bytes, *seconds;  /* [count] > 0 */
} pp_test_run;

typedef struct {
  pp_measured_link link;   /* of the tier that the run measures: the innermost when it stays in one domain */
  pp_transfer transfer;
  double alpha, beta;      /* the line itself: seconds = α + β·bytes */
  double median_error, worst_error;  /* |line / measured − 1| over the points */
  bool bound_inside;       /* within the line's error the scale-up links, not the network, were the slower: `link` is a lower bound */
} pp_link_fit;

/*
** The line α + β·S nearest to the points by relative error, α and β ≥ 0, and the link that makes the formulas above give it: ring
** collectives, one message, or a flat all-to-all. `inner` is what rings reach in the innermost tier (bandwidth 0: unknown). PP_INVALID with
** fewer than two sizes, fewer than two ranks, or a line that does not rise. O(count log count).
*/
pp_status pp_comm_fit(const pp_test_run *run, const pp_measured_link *inner, pp_link_fit *out, pp_error *error);

#endif

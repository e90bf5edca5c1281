/*
** comm.h: time of transfers over a tiered network: alpha-beta per tier, one direction, per GPU.
*/
#ifndef PP_COMM_H
#define PP_COMM_H

#include <stdint.h>

enum { PP_MAX_TIERS = 4 };

typedef struct {
  int reach;          /* GPUs within this tier: 8 in an NVLink node; the last tier reaches all */
  double bandwidth;   /* bytes per second per GPU, one direction, nominal */
  double efficiency;  /* achieved share of bandwidth for large messages */
  double latency;     /* seconds */
} pp_tier;

/* Tiers from the innermost (scale-up) outwards; reach grows. */
typedef struct {
  int tiers;
  pp_tier tier[PP_MAX_TIERS];
} pp_network;

/* The tier that a group of `size` GPUs, `stride` apart, has to cross: the first whose reach holds (size − 1) × stride + 1 of them. */
const pp_tier *pp_comm_tier(const pp_network *network, int64_t size, int64_t stride);

double pp_comm_p2p(const pp_network *network, int64_t stride, double bytes);
/* Ring formulas: (n−1)·α + (n−1)/n·S/B for all-gather and reduce-scatter of S bytes in all; twice that for all-reduce. */
double pp_comm_allgather(const pp_network *network, int64_t size, int64_t stride, double bytes);
double pp_comm_allreduce(const pp_network *network, int64_t size, int64_t stride, double bytes);

/* A token routed to several experts: how its copies spread. */
typedef struct {
  int64_t group, stride;     /* EP ranks and their distance */
  double tokens;             /* tokens that one rank sends */
  int64_t experts_per_token;
  int64_t max_domains;       /* node-limited routing: at most so many scale-up domains per token; 0: no limit */
  double bytes_per_token;    /* of one copy */
} pp_alltoall;

/* Dispatch (or combine) seconds: inside the domain each copy crosses the scale-up link; between domains one copy per domain crosses the
** network (hierarchical kernels), forwarded inside. The slower of the two, they overlap. */
double pp_comm_alltoall(const pp_network *network, const pp_alltoall *transfer);

#endif

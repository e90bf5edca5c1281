/*
** comm.h: time of transfers over a tiered network: alpha-beta per tier, one direction, per GPU.
*/
#ifndef PP_COMM_H
#define PP_COMM_H

#include <stdbool.h>
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

/* One message to the GPU `stride` away: α + S/B. 0 bytes take no time. */
double pp_comm_p2p(const pp_network *network, int64_t stride, double bytes);

/*
** Seconds of an all-gather or a reduce-scatter of S bytes in all, over a group of n: (n−1)·α + (n−1)/n·S/B as a ring. A group with several
** members in a scale-up domain works in two levels, so that all their network links share what crosses: S over the g members inside,
** S/g across domains. All-reduce is twice that.
*/
double pp_comm_allgather(const pp_network *network, int64_t size, int64_t stride, double bytes);
double pp_comm_allreduce(const pp_network *network, int64_t size, int64_t stride, double bytes);

/* A token routed to several experts: how its copies spread. */
typedef struct {
  int64_t group, stride;     /* EP ranks and their distance */
  double tokens;             /* tokens that one rank sends */
  int64_t experts_per_token;
  int64_t max_domains;       /* node-limited routing: at most so many scale-up domains per token; 0: no limit */
  double bytes_per_token;    /* of one copy */
  bool flat;                 /* plain all-to-all: every copy crosses by itself; else one copy per domain, forwarded inside */
} pp_alltoall;

/* Mean number of different places that `choices` even choices among `places` hit: n(1 − (1 − 1/n)^k). */
double pp_comm_distinct(double places, double choices);

/*
** Dispatch (or combine) seconds: inside the domain copies cross the scale-up link; between domains one copy per domain crosses the
** network (hierarchical kernels), forwarded inside. The slower of the two, they overlap. 0 in a group of one.
*/
double pp_comm_alltoall(const pp_network *network, const pp_alltoall *transfer);

#endif

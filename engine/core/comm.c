/*
** comm.c: alpha-beta times.
*/
#include "core/comm.h"

#include <math.h>

const pp_tier *pp_comm_tier(const pp_network *network, int64_t size, int64_t stride) {
  const int64_t span = (size - 1) * stride + 1;
  for (int i = 0; i + 1 < network->tiers; i++)
    if (network->tier[i].reach >= span) return &network->tier[i];
  return &network->tier[network->tiers - 1];
}

static double seconds_of(const pp_tier *tier, double bytes) {
  return bytes / (tier->bandwidth * tier->efficiency);
}

double pp_comm_p2p(const pp_network *network, int64_t stride, double bytes) {
  if (bytes <= 0) return 0;
  const pp_tier *tier = pp_comm_tier(network, 2, stride);
  return tier->latency + seconds_of(tier, bytes);
}

static double ring(const pp_tier *tier, double ranks, double bytes) {
  return (ranks - 1) * tier->latency + (ranks - 1) / ranks * seconds_of(tier, bytes);
}

/* How many of a group's members share a scale-up domain. */
static int64_t members_within(const pp_network *network, int64_t size, int64_t stride) {
  const int64_t reach = network->tier[0].reach / stride;
  return reach < 1 ? 1 : reach < size ? reach : size;
}

/* Two levels as NCCL's rings on rail-connected nodes reach it: inside with all S bytes, across with each member's share. */
double pp_comm_allgather(const pp_network *network, int64_t size, int64_t stride, double bytes) {
  if (size < 2 || bytes <= 0) return 0;
  const double members = (double)members_within(network, size, stride), domains = ceil((double)size / members);
  double seconds = 0;
  if (members > 1) seconds += ring(&network->tier[0], members, bytes);
  if (domains > 1) seconds += ring(pp_comm_tier(network, size, stride), domains, bytes / members);
  return seconds;
}

/* A ring all-reduce is a reduce-scatter and an all-gather. */
double pp_comm_allreduce(const pp_network *network, int64_t size, int64_t stride, double bytes) {
  return 2 * pp_comm_allgather(network, size, stride, bytes);
}

double pp_comm_distinct(double places, double choices) {
  if (places <= 1) return places;
  return places * (1 - pow(1 - 1 / places, choices));
}

/*
** Every copy by itself: all K of them leave, less the share that stays on this GPU or in this domain (as an all-to-all of n ranks sends
** (n−1)/n of its bytes).
*/
static double flat_seconds(const pp_network *network, const pp_alltoall *transfer, double bytes, double local, double domains) {
  const pp_tier *inner = &network->tier[0];
  const pp_tier *outer = pp_comm_tier(network, transfer->group, transfer->stride);
  const double copies = (double)transfer->experts_per_token * bytes;
  const double inside = inner->latency + seconds_of(inner, copies / domains * (local - 1) / local);
  if (domains <= 1) return inside;
  return fmax(inside, outer->latency + seconds_of(outer, copies * (domains - 1) / domains));
}

/*
** One copy per domain that a token reaches, its own included: the logical bandwidth that kernels publish counts it, and over 2 to 8
** domains the measured time follows that count (43 to 60 GB/s of a 50 GB/s port: DeepEP docs/legacy.md, UCCL ep/README.md). Inside a
** domain one copy per GPU reached.
*/
double pp_comm_alltoall(const pp_network *network, const pp_alltoall *transfer) {
  if (transfer->group < 2 || transfer->tokens <= 0) return 0;
  const pp_tier *inner = &network->tier[0];
  const int64_t within = members_within(network, transfer->group, transfer->stride);
  const double local = (double)within, domains = (double)((transfer->group + within - 1) / within);
  const double bytes = transfer->tokens * transfer->bytes_per_token;
  if (transfer->flat) return flat_seconds(network, transfer, bytes, local, domains);

  const double choices = (double)transfer->experts_per_token;
  const bool limited = transfer->max_domains > 0 && (double)transfer->max_domains < domains;
  const double reachable = limited ? (double)transfer->max_domains : domains;
  const double inside = within < 2 ? 0 : inner->latency + seconds_of(inner, pp_comm_distinct(reachable * local, choices) * bytes);
  if (domains <= 1) return inside;
  const pp_tier *outer = pp_comm_tier(network, transfer->group, transfer->stride);
  return fmax(inside, outer->latency + seconds_of(outer, pp_comm_distinct(reachable, choices) * bytes));
}

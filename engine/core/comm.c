/* SPDX-License-Identifier: Apache-2.0 */
/*
** comm.c: alpha-beta times.
*/
#include "core/comm.h"

#include <math.h>
#include <stdlib.h>

#include "core/meter.h"

double pp_comm_slower(const pp_network *network, pp_traffic traffic) {
  return network->slower[traffic] > 0 ? network->slower[traffic] : 1;
}

const pp_tier *pp_comm_tier(const pp_network *network, int64_t size, int64_t stride) {
  const int64_t span = (size - 1) * stride + 1;
  for (int i = 0; i + 1 < network->tiers; i++)
    if (network->tier[i].reach >= span) return &network->tier[i];
  return &network->tier[network->tiers - 1];
}

/* What a kind of transfer reaches in a tier. */
static pp_measured_link reached(const pp_network *network, const pp_tier *tier, pp_transfer transfer) {
  const pp_measured_link *measured = &network->measured[tier - network->tier][transfer];
  if (measured->bandwidth > 0) return *measured;
  return (pp_measured_link){ tier->bandwidth * tier->efficiency, tier->latency };
}

static double seconds_of(const pp_tier *tier, double bytes) {
  return bytes / (tier->bandwidth * tier->efficiency);
}

/* A table's times as a link can have them. What disturbs a measurement makes it longer, so that none takes longer than a larger one did. */
static void rising_times(const pp_message_table *table, double out[PP_MAX_MESSAGES]) {
  for (int i = table->count - 1; i >= 0; i--)
    out[i] = i == table->count - 1 ? table->seconds[i] : fmin(table->seconds[i], out[i + 1]);
}

/* Beyond a table of one size: as much longer as its link takes by latency and bandwidth. */
static double beyond_one(const pp_message_table *table, pp_measured_link link, double bytes) {
  const double known = link.latency + table->bytes[0] / link.bandwidth;
  return table->seconds[0] * ((link.latency + bytes / link.bandwidth) / known);
}

static double from_table(const pp_message_table *table, const pp_tier *tier, pp_measured_link link, double bytes) {
  const int last = table->count - 1;
  double seconds[PP_MAX_MESSAGES];
  int i = 0;
  if (last == 0) return bytes <= table->bytes[0] ? table->seconds[0] : beyond_one(table, link, bytes);
  rising_times(table, seconds);
  if (bytes <= table->bytes[0]) return seconds[0];
  while (i < last - 1 && bytes > table->bytes[i + 1]) i++;
  double slope = (seconds[i + 1] - seconds[i]) / (table->bytes[i + 1] - table->bytes[i]);
  if (bytes <= table->bytes[i + 1]) return seconds[i] + slope * (bytes - table->bytes[i]);
  /* No faster than the link, and no slower than the largest was all in all: what does not grow with the size comes once. */
  slope = fmin(fmax(slope, 1 / tier->bandwidth), seconds[last] / table->bytes[last]);
  return seconds[last] + slope * (bytes - table->bytes[last]);
}

double pp_comm_p2p(const pp_network *network, int64_t stride, double bytes) {
  if (bytes <= 0) return 0;
  const pp_tier *tier = pp_comm_tier(network, 2, stride);
  const pp_message_table *table = &network->messages[tier - network->tier];
  const pp_measured_link link = reached(network, tier, PP_MESSAGE);
  if (table->count > 0) return from_table(table, tier, link, bytes);
  return link.latency + bytes / link.bandwidth;
}

/* How many of a group's members share a scale-up domain. */
static int64_t members_within(const pp_network *network, int64_t size, int64_t stride) {
  const int64_t reach = network->tier[0].reach / stride;
  return reach < 1 ? 1 : reach < size ? reach : size;
}

static bool is_measured(const pp_network *network, const pp_tier *tier) {
  return network->measured[tier - network->tier][PP_RING].bandwidth > 0;
}

/* A step of a ring that leaves the domain. */
static double step_of(const pp_network *network, const pp_tier *tier) {
  return tier->ring_latency > 0 && !is_measured(network, tier) ? tier->ring_latency : reached(network, tier, PP_RING).latency;
}

/* What was measured between domains has the steps inside in it, unless these were measured too (explain, below). */
double pp_comm_ring(const pp_network *network, int64_t size, int64_t stride) {
  if (size < 2) return 0;
  const pp_tier *inner = &network->tier[0], *outer = pp_comm_tier(network, size, stride);
  const double ranks = (double)size, members = (double)members_within(network, size, stride), domains = ceil(ranks / members);
  if (domains <= 1) return (ranks - 1) * reached(network, inner, PP_RING).latency;
  const bool inside = is_measured(network, inner) || !is_measured(network, outer);
  return (inside ? (ranks - domains) * step_of(network, inner) : 0) + (domains - 1) * step_of(network, outer);
}

double pp_comm_allgather(const pp_network *network, int64_t size, int64_t stride, double bytes) {
  if (size < 2 || bytes <= 0) return 0;
  const double ranks = (double)size, members = (double)members_within(network, size, stride), domains = ceil(ranks / members);
  double slowest = 0;
  if (members > 1) slowest = 1 / reached(network, &network->tier[0], PP_RING).bandwidth;
  if (domains > 1) slowest = fmax(slowest, 1 / (members * reached(network, pp_comm_tier(network, size, stride), PP_RING).bandwidth));
  return pp_comm_ring(network, size, stride) + (ranks - 1) / ranks * bytes * slowest;
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
  const pp_measured_link inner = reached(network, &network->tier[0], PP_ALLTOALL);
  const double copies = transfer->experts_per_token * bytes;
  const double inside = inner.latency + copies / domains * (local - 1) / local / inner.bandwidth;
  if (domains <= 1) return inside;
  const pp_measured_link outer = reached(network, pp_comm_tier(network, transfer->group, transfer->stride), PP_ALLTOALL);
  return fmax(inside, outer.latency + copies * (domains - 1) / domains / outer.bandwidth);
}

double pp_comm_distinct_of(double places, double choices, double experts) {
  double missed = 1, chosen = 0;
  if (places <= 1) return places;
  if (experts <= 0) return pp_comm_distinct(places, choices);
  for (; chosen < fmin(choices, experts) && missed > 1e-15; chosen++) missed *= fmax(0, experts - experts / places - chosen) / (experts - chosen);
  pp_spend(4 * (uint64_t)chosen);
  return fmin(choices, places * (1 - missed));
}

/* See comm.h. With a limit a token's domains are drawn first, and its experts from theirs. */
double pp_comm_alltoall(const pp_network *network, const pp_alltoall *transfer) {
  if (transfer->group < 2 || transfer->tokens <= 0) return 0;
  const pp_tier *inner = &network->tier[0];
  const int64_t within = members_within(network, transfer->group, transfer->stride);
  const double local = (double)within, domains = (double)((transfer->group + within - 1) / within);
  const double bytes = transfer->tokens * transfer->bytes_per_token;
  if (transfer->flat) return flat_seconds(network, transfer, bytes, local, domains);

  const double choices = transfer->experts_per_token, experts = (double)transfer->experts;
  const bool limited = transfer->max_domains > 0 && (double)transfer->max_domains < domains;
  const double reachable = limited ? (double)transfer->max_domains : domains;
  const double among = limited ? experts * reachable / domains : experts;
  const double gpus = pp_comm_distinct_of(reachable * local, choices, among) * (1 - 1 / (domains * local));
  double rate = inner->bandwidth * inner->efficiency;
  if (domains > 1 && transfer->rate > 0) rate = fmin(rate, transfer->rate);
  const double inside = inner->latency + gpus * bytes / rate;
  if (domains <= 1) return inside;
  const pp_tier *outer = pp_comm_tier(network, transfer->group, transfer->stride);
  const double away = pp_comm_distinct_of(reachable, choices, among) * (1 - 1 / domains);
  const double across = outer->latency + seconds_of(outer, away * bytes);
  return within < 2 ? across : fmax(inside, across);
}

/* ------------------------------------------------------------------------------------------------------------------- measured links */

static double line_error(const pp_test_run *run, const pp_link_fit *fit, int i) {
  return fabs((fit->alpha + fit->beta * run->bytes[i]) / run->seconds[i] - 1);
}

/* Least squares of (α + β·S)/t − 1. Where α would be negative, of β alone. */
static void fit_line(const pp_test_run *run, pp_link_fit *out) {
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (int i = 0; i < run->count; i++) {
    const double u = 1 / run->seconds[i], v = run->bytes[i] / run->seconds[i];
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u1 += u;
    v1 += v;
  }
  const double determinant = uu * vv - uv * uv;
  out->alpha = (u1 * vv - v1 * uv) / determinant;
  out->beta = (v1 * uu - u1 * uv) / determinant;
  if (!(out->alpha >= 0)) {
    out->alpha = 0;
    out->beta = v1 / vv;
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static pp_status fit_errors(const pp_test_run *run, pp_link_fit *out, pp_error *error) {
  double *list = pp_allocate((size_t)run->count * sizeof *list);
  pp_spend(64 * (uint64_t)run->count);
  if (!list) return pp_fail(error, PP_NO_MEMORY, "not enough memory for %d sizes", run->count);
  for (int i = 0; i < run->count; i++) list[i] = line_error(run, out, i);
  qsort(list, (size_t)run->count, sizeof *list, ascending);
  out->median_error = (list[run->count / 2] + list[(run->count - 1) / 2]) / 2;
  out->worst_error = list[run->count - 1];
  pp_free(list);
  return PP_OK;
}

/* The formulas of pp_comm_allgather, pp_comm_p2p and flat_seconds, solved for the link. */
static void explain(const pp_test_run *run, const pp_measured_link *inner, pp_link_fit *out) {
  const double ranks = (double)run->ranks, members = (double)run->members, domains = ceil(ranks / members);
  pp_measured_link *link = &out->link;
  out->bound_inside = false;
  if (run->test == PP_TEST_SENDRECV) {
    *link = (pp_measured_link){ 1 / out->beta, out->alpha };
    out->transfer = PP_MESSAGE;
    return;
  }
  if (run->test == PP_TEST_ALLTOALL) {
    const double leaving = domains > 1 ? ranks - members : ranks - 1;
    *link = (pp_measured_link){ leaving / ranks / out->beta, out->alpha };
    out->transfer = PP_ALLTOALL;
    return;
  }
  const double times = run->test == PP_TEST_ALL_REDUCE ? 2 : 1, bus = times * (ranks - 1) / ranks / out->beta;
  out->transfer = PP_RING;
  if (domains <= 1) {
    *link = (pp_measured_link){ bus, out->alpha / (times * (ranks - 1)) };
    return;
  }
  *link = (pp_measured_link){ bus / members, fmax(0, out->alpha / times - (ranks - domains) * inner->latency) / (domains - 1) };
  out->bound_inside = members > 1 && inner->bandwidth > 0 && bus >= inner->bandwidth * (1 - out->worst_error - 1e-9);
}

static pp_status bad_run(pp_error *error, const char *field, const char *problem) {
  return pp_invalid(error, field, NAN, "'%s' %s", field, problem);
}

pp_status pp_comm_fit(const pp_test_run *run, const pp_measured_link *inner, pp_link_fit *out, pp_error *error) {
  double least = INFINITY, most = 0;
  if (run->ranks < 2) return bad_run(error, "ranks", "must be at least 2: one rank sends nothing");
  if (run->members < 1 || run->members > run->ranks) return bad_run(error, "members", "must be from 1 to ranks");
  for (int i = 0; i < run->count; i++) {
    if (!(run->bytes[i] > 0) || !isfinite(run->bytes[i])) return bad_run(error, "bytes", "must be positive");
    if (!(run->seconds[i] > 0) || !isfinite(run->seconds[i])) return bad_run(error, "seconds", "must be positive");
    least = fmin(least, run->bytes[i]);
    most = fmax(most, run->bytes[i]);
  }
  if (!(least < most)) return bad_run(error, "bytes", "must be of two sizes at least");
  fit_line(run, out);
  if (!(out->beta > 0)) return bad_run(error, "seconds", "do not grow with the size");
  const pp_status status = fit_errors(run, out, error);
  if (status == PP_OK) explain(run, inner, out);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** simulate.h: event simulation of a schedule program: when does each action run, given what each takes.
** Ideal asynchronous runtime: a rank executes its actions in order, an action starts when the rank is free and what it needs has arrived;
** sending occupies nobody and takes p2p seconds a hop. Hand-overs between stages of the same rank are immediate.
**
** The host. A rank's actions are handed to its card by a host, in the same order, and where pp_times says what that takes, the host is one more
** resource of the rank: it begins to hand an action over when it is done with the one before, however far the card is. The card begins no
** earlier than the host does, and ends no earlier than it would, had it had nothing to do before: some actions keep their host long before it
** hands over anything at all, such as a backward that is cut in two by walking its graph. A host that *waits* for its card (the row counts of
** experts, `.item()`) returns from an action no earlier than the card is so far: it is then ahead by what the card had left to do when it
** returned, where nothing was queued before. Waiting for messages is the card's business and holds up no host.
*/
#ifndef PP_SIMULATE_H
#define PP_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/schedule.h"

/*
** Seconds that an action, a hop or what is beside them takes: 0, or from PP_LEAST_SECONDS to PP_MOST_SECONDS. Far wider than anything that
** runs, and no sum over a program or product with the factors of pp_hardware leaves the range of a double. Whoever takes seconds checks
** them once, with this.
*/
#define PP_LEAST_SECONDS 1e-30
#define PP_MOST_SECONDS 1e30
#define PP_SECONDS "0 or 1e-30 … 1e30 seconds"
static inline bool pp_is_seconds(double value) {
  return value >= 0 && value <= PP_MOST_SECONDS && !(value > 0 && value < PP_LEAST_SECONDS);
}

/* Seconds of one stage's actions. full is B; it need not equal input + weight. */
struct pp_stage_times {
  double forward, input, weight, full;
};

/*
** Seconds that a host takes to hand over one stage's actions, and whether it waits for the card in them. beyond: what an action takes, from when the
** host begins to when the card ends, where that had nothing to do, beyond the larger of what each of the two takes.
*/
typedef struct {
  pp_stage_times seconds, beyond;
  bool forward_waits, input_waits, weight_waits, full_waits;
} pp_host_times;

/*
** F&B seconds of a pair. NULL: forward + full. A number for each pair of stages may be far more numbers than there are pairs of actions, so
** what depends on the forward's stage, but for something beside it on the backward's, needs only those.
*/
typedef struct {
  const pp_stage_times *stage;  /* [stages] */
  const double *pair;           /* [stages × chunks_per_rank] of forward stage s with backward of its rank's slot k, at
                                   pair[s × chunks_per_rank + k], of the slots that its rank has; with pair_beside [stages] */
  const double *pair_beside;    /* NULL, or [stages] to add for the backward's stage */
  double p2p;                   /* seconds a hop between ranks */
  const pp_host_times *host;    /* NULL: hosts are always ahead; or [stages]. A pair takes its host what both halves do */
} pp_times;

static inline double pp_pair_seconds(const pp_schedule *schedule, const pp_times *times, int forward, int backward) {
  if (!times->pair) return times->stage[forward].forward + times->stage[backward].full;
  if (times->pair_beside) return times->pair[forward] + times->pair_beside[backward];
  return times->pair[forward * schedule->chunks_per_rank + schedule->slot_of[backward]];
}

/* Of one action: as pp_host_times, and how far ahead of its card a host that waits is when it returns. */
typedef struct {
  double seconds, beyond, lead;
  bool waits;
} pp_host_work;

/* kind: of the action; stage_b: of a pair's backward, which is handed over after its forward; card: seconds that the card takes for it. */
static inline pp_host_work pp_host_work_of(const pp_times *times, int kind, int stage, int stage_b, double card) {
  const pp_host_times *host = &times->host[stage], *other = kind == PP_FB ? &times->host[stage_b] : host;
  double seconds, beyond;
  bool waits;
  switch (kind) {
    case PP_F: seconds = host->seconds.forward, beyond = host->beyond.forward, waits = host->forward_waits; break;
    case PP_B: seconds = host->seconds.full, beyond = host->beyond.full, waits = host->full_waits; break;
    case PP_I: seconds = host->seconds.input, beyond = host->beyond.input, waits = host->input_waits; break;
    case PP_W: seconds = host->seconds.weight, beyond = host->beyond.weight, waits = host->weight_waits; break;
    default:
      seconds = host->seconds.forward + other->seconds.full;
      beyond = host->beyond.forward + other->beyond.full;
      waits = host->forward_waits || other->full_waits;
  }
  return (pp_host_work){ seconds, beyond, waits ? (seconds > card ? 0 : card - seconds) + beyond : 0, waits };
}

/* A rank with its host: when the card and the host are done with what they had, and seconds that the card waited for the host alone. */
typedef struct {
  double card, host, wait;
} pp_hosted_rank;

/* Runs an action that the card could begin at `ready`. → when it begins; it ends at rank->card. */
static inline double pp_hosted_run(pp_hosted_rank *rank, pp_host_work work, double ready, double seconds) {
  const double alone = rank->host + (work.seconds > seconds ? work.seconds : seconds) + work.beyond;
  if (rank->host > ready) {
    rank->wait += rank->host - ready;
    ready = rank->host;
  }
  rank->card = ready + seconds;
  if (alone > rank->card) {
    rank->wait += alone - rank->card;
    rank->card = alone;
  }
  rank->host += work.seconds;
  if (work.waits && rank->card - work.lead > rank->host) rank->host = rank->card - work.lead;
  return ready;
}

typedef struct {
  double start, end;
} pp_interval;

typedef struct {
  int ranks;
  double makespan;          /* last end on any rank; the first start is 0 */
  double max_span;          /* largest (own last end − own first start) */
  double max_idle, min_idle;
  double bubble_fraction;   /* mean idle share: 1 − Σ busy / (P × makespan) */
  double max_idle_fraction; /* max_idle / makespan */
  double span_bubble;       /* largest (span − busy): what the zero-bubble papers call bubble; a rank's late start does not count */
  double span_bubble_fraction; /* span_bubble / max_span */
  double *busy, *idle, *span;  /* [ranks]; idle = makespan − busy, span = own last end − own first start */
  double *host_wait;        /* [ranks] seconds that the card waited for its host alone: before actions, which is idle, and in them, which is busy */
  pp_interval *interval;    /* one per action, in the order of schedule->action; NULL unless asked for */
  pp_interval *between;     /* the same, of pairs that run in turn: from the end of the F to the start of the B; NULL too where none do */
} pp_simulation;

/*
** O(actions + stages + ranks) time, with a pair of two stages also O(stages × chunks_per_rank). PP_INVALID when
** times are out of range; of a program that is not verified, what pp_schedule_verify says of it. On PP_OK the caller frees *out.
*/
pp_status pp_simulate(const pp_schedule *schedule, const pp_times *times, bool with_intervals, pp_simulation *out, pp_error *error);
void pp_simulation_free(pp_simulation *simulation);

/* What every simulation does at its start and at its end: */
/* PP_INVALID when a time is out of range. O(stages), with a pair of two stages O(stages × chunks_per_rank). */
pp_status pp_times_check(const pp_schedule *schedule, const pp_times *times, pp_error *error);
/* Arrays for the results, all else 0; on PP_OK the caller frees *out. intervals: 0, 1, or 2: between, too. */
pp_status pp_simulation_allocate(const pp_schedule *schedule, int intervals, pp_simulation *out, pp_error *error);
/* Fills what follows from makespan, busy and span. */
void pp_simulation_summarise(pp_simulation *out);

/* Memory that many simulations share, so that only the largest of them allocates. Starts as { 0 }. */
typedef struct {
  void *memory;
  size_t size;
} pp_workspace;

/* The same in a workspace: *out is valid until the workspace's next use and is not freed with pp_simulation_free. */
pp_status pp_simulate_in(const pp_schedule *schedule, const pp_times *times, bool with_intervals, pp_workspace *workspace,
                         pp_simulation *out, pp_error *error);
void pp_workspace_free(pp_workspace *workspace);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** simulate.c: event simulation without an event queue. See simulate.h.
**
** A rank's clock only depends on its own order and on arrivals, so the ranks are run one after another, each as far as what has arrived
** allows. A rank that waits notes for which arrival; whoever brings it puts the rank on the stack again. Each action runs once and each
** wait is answered once, so the work is O(actions) whatever the order.
**
** arrival[] has a row with a double per microbatch for the forward input of each stage, one for its backward input, and one row for what
** nobody waits for (the backward of a chain's first stage). NAN, which compares false with everything, is "not yet". A last stage's
** backward input arrives when its own forward ends.
*/
#include "core/simulate.h"

#include <math.h>
#include <string.h>

#include "core/meter.h"
#include "core/prefetch.h"
#include "core/schedule_verify.h"

/* What running an action of a stage means: how long, where the result goes, who may be waiting for it, how long it travels. */
typedef struct {
  double forward, input, weight, full;
  double hop_forward, hop_backward;
  size_t forward_in, backward_in;     /* first of its rows in arrival[] */
  size_t forward_out, backward_out;
  int forward_rank, backward_rank;    /* who gets the results */
} stage_plan;

typedef struct {
  double clock;
  double busy;
  double start;         /* of its first action */
  pp_hosted_rank hosted;    /* where hosts count */
  size_t next;          /* action to run */
  size_t waiting;       /* entry of arrival[] it waits for, or NOBODY */
} rank_state;

typedef struct {
  const pp_schedule *schedule;
  const pp_times *times;
  stage_plan *stage;    /* [stages] */
  rank_state *rank;     /* [ranks] */
  double *arrival;
  int *stack;           /* ranks that can go on; a rank is on it at most once */
  int depth;
} run_state;

static const size_t NOBODY = (size_t)-1;

/*
** With dozens of ranks the run hops between more streams of memory than a processor follows by itself: asking early for what comes next
** halves the time of programs that outgrow the second-level cache.
*/
enum { ACTIONS_AHEAD = 8, ARRIVALS_AHEAD = 16 };

/* -- memory --------------------------------------------------------------------------------------------------------------------------- */

static size_t arrivals(const pp_schedule *schedule) {
  return (2 * (size_t)schedule->stages + 1) * (size_t)schedule->microbatches_per_chain + ARRIVALS_AHEAD;
}

static size_t scratch_bytes(const pp_schedule *schedule) {
  size_t ranks = (size_t)schedule->request.ranks;
  return arrivals(schedule) * sizeof(double) + (size_t)schedule->stages * sizeof(stage_plan) + ranks * (sizeof(rank_state) + sizeof(int));
}

static size_t result_bytes(const pp_schedule *schedule, int intervals) {
  size_t ranks = (size_t)schedule->request.ranks;
  return 4 * ranks * sizeof(double) + (intervals ? (size_t)intervals * schedule->first[ranks] * sizeof(pp_interval) : 0);
}

static void lay_out_result(const pp_schedule *schedule, int intervals, void *memory, pp_simulation *out) {
  int ranks = schedule->request.ranks;
  *out = (pp_simulation){ .ranks = ranks, .busy = memory };
  out->idle = out->busy + ranks;
  out->span = out->idle + ranks;
  out->host_wait = out->span + ranks;
  if (intervals > 0) out->interval = (pp_interval *)(void *)(out->host_wait + ranks);
  if (intervals > 1) out->between = out->interval + schedule->first[ranks];
}

/* -- preparation ---------------------------------------------------------------------------------------------------------------------- */

static pp_status check_pairs(const pp_schedule *schedule, const pp_times *times, int stage, pp_error *error) {
  const int count = times->pair_beside ? 1 : pp_schedule_stages_on(schedule, schedule->rank_of[stage]);
  const double *pair = times->pair_beside ? times->pair + stage : times->pair + stage * schedule->chunks_per_rank;
  const double beside = times->pair_beside ? times->pair_beside[stage] : 0;
  for (int k = 0; k < count; k++)
    if (!pp_is_seconds(pair[k]) || !pp_is_seconds(beside))
      return pp_fail(error, PP_INVALID, "F&B of stage %d must be " PP_SECONDS ", got %g", stage, pair[k] + beside);
  return PP_OK;
}

static pp_status check_seconds(const pp_stage_times *times, const char *whose, int stage, pp_error *error) {
  const double value[] = { times->forward, times->input, times->weight, times->full };
  static const char *const name[] = { "F", "I", "W", "B" };
  for (int i = 0; i < 4; i++)
    if (!pp_is_seconds(value[i]))
      return pp_fail(error, PP_INVALID, "%s%s of stage %d must be " PP_SECONDS ", got %g", whose, name[i], stage, value[i]);
  return PP_OK;
}

pp_status pp_times_check(const pp_schedule *schedule, const pp_times *times, pp_error *error) {
  if (!pp_is_seconds(times->p2p)) return pp_fail(error, PP_INVALID, "p2p must be " PP_SECONDS ", got %g", times->p2p);
  pp_spend((uint64_t)schedule->stages * (4 + (times->pair && !times->pair_beside ? (uint64_t)schedule->chunks_per_rank : 0)));
  for (int s = 0; s < schedule->stages; s++) {
    pp_status status = check_seconds(&times->stage[s], "", s, error);
    if (status == PP_OK && times->host) status = check_seconds(&times->host[s].seconds, "host time of ", s, error);
    if (status == PP_OK && times->host) status = check_seconds(&times->host[s].beyond, "host's beginning of ", s, error);
    if (status == PP_OK && times->pair) status = check_pairs(schedule, times, s, error);
    if (status != PP_OK) return status;
  }
  return PP_OK;
}

static double hop(const pp_schedule *schedule, const pp_times *times, int from, int to) {
  return schedule->rank_of[from] == schedule->rank_of[to] ? 0 : times->p2p;
}

static void plan_stages(run_state *run) {
  const pp_schedule *schedule = run->schedule;
  size_t row = (size_t)schedule->microbatches_per_chain, backward_rows = (size_t)schedule->stages * row;
  for (int s = 0; s < schedule->stages; s++) {
    const pp_stage_times *times = &run->times->stage[s];
    bool first = s % schedule->stages_per_chain == 0, last = (s + 1) % schedule->stages_per_chain == 0;
    stage_plan *plan = &run->stage[s];
    *plan = (stage_plan){ .forward = times->forward, .input = times->input, .weight = times->weight, .full = times->full };
    plan->forward_in = (size_t)s * row;
    plan->backward_in = backward_rows + plan->forward_in;
    plan->forward_out = last ? plan->backward_in : plan->forward_in + row;
    plan->backward_out = first ? 2 * backward_rows : plan->backward_in - row;
    plan->forward_rank = schedule->rank_of[last ? s : s + 1];
    plan->backward_rank = schedule->rank_of[first ? s : s - 1];
    plan->hop_forward = last ? 0 : hop(schedule, run->times, s, s + 1);
    plan->hop_backward = first ? 0 : hop(schedule, run->times, s, s - 1);
  }
}

static void prepare(run_state *run, const pp_schedule *schedule, const pp_times *times, void *scratch) {
  int ranks = schedule->request.ranks;
  *run = (run_state){ .schedule = schedule, .times = times, .arrival = scratch };
  run->stage = (stage_plan *)(void *)(run->arrival + arrivals(schedule));
  run->rank = (rank_state *)(void *)(run->stage + schedule->stages);
  run->stack = (int *)(void *)(run->rank + ranks);
  plan_stages(run);
  memset(run->arrival, 0xFF, arrivals(schedule) * sizeof *run->arrival);   /* all ones is a NAN */
  for (int chain = 0; chain < schedule->chains; chain++) {
    double *input = run->arrival + run->stage[chain * schedule->stages_per_chain].forward_in;
    memset(input, 0, (size_t)schedule->microbatches_per_chain * sizeof *input);
  }
  for (int rank = ranks - 1; rank >= 0; rank--) {
    run->rank[rank] = (rank_state){ .next = schedule->first[rank], .waiting = NOBODY, .start = NAN };
    run->stack[run->depth++] = rank;
  }
}

/* -- running -------------------------------------------------------------------------------------------------------------------------- */

static inline void deliver(run_state *run, size_t entry, double when, int rank) {
  run->arrival[entry] = when;
  PP_PREFETCH(&run->arrival[entry + ARRIVALS_AHEAD], 1);
  if (run->rank[rank].waiting == entry) {
    run->rank[rank].waiting = NOBODY;
    run->stack[run->depth++] = rank;
  }
}

/* Raises *ready to when that input arrived; false, noting it in *waiting, when it has not. */
static inline bool has_arrived(const run_state *run, size_t entry, double *ready, size_t *waiting) {
  double arrived = run->arrival[entry];
  if (!(arrived >= 0)) {
    *waiting = entry;
    return false;
  }
  if (arrived > *ready) *ready = arrived;
  return true;
}

static inline bool inputs_have_arrived(const run_state *run, const pp_action *action, double *ready, size_t *waiting) {
  const stage_plan *stage = &run->stage[action->stage];
  switch (action->kind) {
    case PP_W: return true;   /* needs only its I, which this rank ran before */
    case PP_F: return has_arrived(run, stage->forward_in + action->microbatch, ready, waiting);
    case PP_FB:
      return has_arrived(run, stage->forward_in + action->microbatch, ready, waiting) &&
             has_arrived(run, run->stage[action->stage_b].backward_in + action->microbatch_b, ready, waiting);
    default: return has_arrived(run, stage->backward_in + action->microbatch, ready, waiting);
  }
}

static inline double seconds_of(const run_state *run, const pp_action *action) {
  const stage_plan *stage = &run->stage[action->stage];
  switch (action->kind) {
    case PP_F: return stage->forward;
    case PP_B: return stage->full;
    case PP_I: return stage->input;
    case PP_W: return stage->weight;
    default: return pp_pair_seconds(run->schedule, run->times, action->stage, action->stage_b);
  }
}

/* Sends what an action that ended at `when` made. */
static inline void send(run_state *run, const pp_action *action, double when) {
  const stage_plan *stage = &run->stage[action->stage];
  if (action->kind == PP_W) return;
  if (action->kind == PP_F || action->kind == PP_FB)
    deliver(run, stage->forward_out + action->microbatch, when + stage->hop_forward, stage->forward_rank);
  if (action->kind == PP_F) return;
  uint32_t microbatch = action->microbatch;
  if (action->kind == PP_FB) {
    stage = &run->stage[action->stage_b];
    microbatch = action->microbatch_b;
  }
  deliver(run, stage->backward_out + microbatch, when + stage->hop_backward, stage->backward_rank);
}

/* Runs a rank until it waits or is done. Written once for all cases of `interval` and `hosted`, which are the same for the whole run. */
static inline void run_rank(run_state *run, int rank, pp_interval *interval, bool hosted) {
  rank_state *state = &run->rank[rank];
  const size_t first = run->schedule->first[rank], end = run->schedule->first[rank + 1];
  double clock = state->clock, busy = state->busy;
  size_t next = state->next;
  for (; next < end; next++) {
    const pp_action *action = &run->schedule->action[next];
    double ready = clock;
    if (next + ACTIONS_AHEAD < end) PP_PREFETCH(action + ACTIONS_AHEAD, 0);
    if (!inputs_have_arrived(run, action, &ready, &state->waiting)) break;
    double seconds = seconds_of(run, action);
    clock = ready + seconds;
    if (hosted) {
      const pp_host_work work = pp_host_work_of(run->times, action->kind, action->stage, action->stage_b, seconds);
      ready = pp_hosted_run(&state->hosted, work, ready, seconds);
      clock = state->hosted.card;
      seconds = clock - ready;
    }
    if (next == first) state->start = ready;
    busy += seconds;
    if (interval) interval[next] = (pp_interval){ ready, clock };
    send(run, action, clock);
  }
  state->clock = clock;
  state->busy = busy;
  state->next = next;
}

static void run_all(run_state *run, pp_interval *interval) {
  if (run->times->host) while (run->depth > 0) run_rank(run, run->stack[--run->depth], interval, true);
  else if (interval) while (run->depth > 0) run_rank(run, run->stack[--run->depth], interval, false);
  else while (run->depth > 0) run_rank(run, run->stack[--run->depth], NULL, false);
}

/* -- the outcome ---------------------------------------------------------------------------------------------------------------------- */

void pp_simulation_summarise(pp_simulation *out) {
  double busy = 0;
  out->min_idle = HUGE_VAL;
  for (int rank = 0; rank < out->ranks; rank++) {
    busy += out->busy[rank];
    out->idle[rank] = fmax(0, out->makespan - out->busy[rank]);   /* below by rounding, where times differ by many digits */
    out->max_span = fmax(out->max_span, out->span[rank]);
    out->max_idle = fmax(out->max_idle, out->idle[rank]);
    out->min_idle = fmin(out->min_idle, out->idle[rank]);
    out->span_bubble = fmax(out->span_bubble, out->span[rank] - out->busy[rank]);
  }
  if (out->makespan > 0) {
    out->bubble_fraction = fmax(0, 1 - busy / (out->ranks * out->makespan));
    out->max_idle_fraction = out->max_idle / out->makespan;
    out->span_bubble_fraction = out->span_bubble / out->max_span;
  }
}

static void summarise(const run_state *run, pp_simulation *out) {
  for (int rank = 0; rank < out->ranks; rank++) {
    const rank_state *state = &run->rank[rank];
    out->busy[rank] = state->busy;
    out->span[rank] = isnan(state->start) ? 0 : state->clock - state->start;
    out->host_wait[rank] = state->hosted.wait;
    out->makespan = fmax(out->makespan, state->clock);
  }
  pp_simulation_summarise(out);
}

/* Every rank runs to its end, for the program is verified. */
static void run_in(const pp_schedule *schedule, const pp_times *times, void *scratch, pp_simulation *out) {
  run_state run;
  prepare(&run, schedule, times, scratch);
  run_all(&run, out->interval);
  summarise(&run, out);
}

static pp_status check(const pp_schedule *schedule, const pp_times *times, pp_error *error) {
  pp_status status = pp_times_check(schedule, times, error);
  if (status == PP_OK && !schedule->verified) status = pp_schedule_verify(schedule, error);
  if (status != PP_OK) return status;
  const uint64_t actions = schedule->first[schedule->request.ranks], stages = (uint64_t)schedule->stages;
  return pp_spend(4 * actions + 16 * stages + arrivals(schedule) / 4) ? PP_OK : pp_stopped(error);
}

pp_status pp_simulate_in(const pp_schedule *schedule, const pp_times *times, bool with_intervals, pp_workspace *workspace,
                         pp_simulation *out, pp_error *error) {
  pp_status status = check(schedule, times, error);
  *out = (pp_simulation){ 0 };
  if (status != PP_OK) return status;
  size_t results = result_bytes(schedule, with_intervals), bytes = results + scratch_bytes(schedule);
  if (bytes > workspace->size) {
    void *memory = pp_allocate(bytes);
    if (!memory) return pp_fail(error, PP_NO_MEMORY, "not enough memory to simulate %zu actions", schedule->first[schedule->request.ranks]);
    pp_workspace_free(workspace);
    *workspace = (pp_workspace){ memory, bytes };
  }
  lay_out_result(schedule, with_intervals, workspace->memory, out);
  run_in(schedule, times, (char *)workspace->memory + results, out);
  return PP_OK;
}

void pp_workspace_free(pp_workspace *workspace) {
  pp_free(workspace->memory);
  *workspace = (pp_workspace){ 0 };
}

pp_status pp_simulation_allocate(const pp_schedule *schedule, int intervals, pp_simulation *out, pp_error *error) {
  void *results = pp_allocate(result_bytes(schedule, intervals));
  if (!results) return pp_fail(error, PP_NO_MEMORY, "not enough memory to simulate %zu actions", schedule->first[schedule->request.ranks]);
  lay_out_result(schedule, intervals, results, out);
  return PP_OK;
}

pp_status pp_simulate(const pp_schedule *schedule, const pp_times *times, bool with_intervals, pp_simulation *out, pp_error *error) {
  pp_status status = check(schedule, times, error);
  *out = (pp_simulation){ 0 };
  if (status == PP_OK) status = pp_simulation_allocate(schedule, with_intervals, out, error);
  if (status != PP_OK) return status;
  void *scratch = pp_allocate(scratch_bytes(schedule));
  if (scratch) {
    run_in(schedule, times, scratch, out);
    pp_free(scratch);
    return PP_OK;
  }
  pp_simulation_free(out);
  return pp_fail(error, PP_NO_MEMORY, "not enough memory to simulate %zu actions", schedule->first[schedule->request.ranks]);
}

void pp_simulation_free(pp_simulation *simulation) {
  pp_free(simulation->busy);   /* the start of the one allocation of the results */
  *simulation = (pp_simulation){ 0 };
}

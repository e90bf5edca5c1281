/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime.c: event simulation of a lowered schedule. See runtime.h for the rules.
**
** Time goes from event to event. Two kinds of things end: what a rank runs, and what a queue moves. Each rank and each queue has at most
** one end ahead of it, so that the events are a heap with a place for each: rank r's is place r, queue q's place ranks + q. An action's
** end moves whenever a batch of its rank starts or ends, because contention then begins or stops.
*/
#include "core/runtime.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/event_heap.h"
#include "core/meter.h"

/* Of the card: HELD, it could begin and its host does not yet; LATE, its work is done and the host has not handed over the end of it. */
typedef enum { RESTING, HELD, RUNNING, LATE } card_state;

typedef struct {
  pp_hardware hardware;     /* of this rank's card */
  size_t step;              /* next to issue */
  size_t action;            /* that runs, unless the card rests */
  card_state card;
  bool half;                /* the F of a pair, whose B comes later */
  double host;              /* when the host is done with what it handed over */
  double handed;            /* when it began with what runs */
  pp_host_work work;        /* of what runs */
  double held_since, host_wait;
  uint32_t waiting;         /* batch it waits for, or PP_NO_BATCH */
  uint32_t resident;        /* batches that started and did not end */
  double since;             /* when work_left and heat were counted last */
  double work_left;         /* seconds without contention and heat */
  double heat;              /* running average of busy */
  double started;           /* what runs */
  double first_start, last_end, busy;
} rank_state;

typedef enum { LATER, POSTED, STARTED, ENDED } batch_stage;

typedef struct {
  double link[2];           /* [receive] when its messages that are under way have moved */
  uint32_t next;            /* batch posted after it on its queue, or PP_NO_BATCH */
  uint32_t unmet;           /* ends whose other end has not started */
  batch_stage stage;
} batch_state;

typedef struct {
  uint32_t head, tail;      /* posted and not ended; PP_NO_BATCH: none */
} queue_state;

typedef struct {
  const pp_schedule *schedule;
  const pp_times *times;
  const pp_runtime *runtime;
  const pp_hardware *hardware;
  const pp_lowered *lowered;
  pp_interval *interval, *between;   /* NULL unless asked for */
  rank_state *rank;         /* [ranks] */
  batch_state *batch;       /* [batches] */
  queue_state *queue;       /* [queues] */
  pp_event_heap events;
  double now;
} run_state;

/* -- work under heat and contention --------------------------------------------------------------------------------------------------- */

double pp_heat_factor(const pp_hardware *hardware, double u) {
  return !(hardware->heat_slope > 0) ? 1 : 1 + hardware->heat_slope * fmax(0, u - hardware->heat_onset) / (1 - hardware->heat_onset);
}

/* The running average of busy, `seconds` later. */
static double average_after(const pp_hardware *hardware, double u, double seconds, bool busy) {
  double towards = busy ? 1 : 0;
  return hardware->heat_slope > 0 ? towards + (u - towards) * exp(-seconds / hardware->heat_tau) : u;
}

/* ln(1 + a (e^x − 1)), also where e^x is beyond a double. */
static double log_grown(double a, double x) {
  return x > 500 ? x + log(a) : log1p(a * expm1(x));
}

/*
** While a rank works, u(t) = 1 − (1 − u) e^(−t/tau). Below the onset work goes at full rate. Above, the factor is hot + fall e^(−t/tau)
** with hot = 1 + slope, and is now = hot + fall at t = 0; the work done in t is the integral of its reciprocal,
** tau / hot × ln(1 + hot / now × (e^(t/tau) − 1)). Both it and its inverse are closed forms, so that no time is cut into pieces.
*/
static double seconds_to_onset(const pp_hardware *hardware, double u) {
  return u >= hardware->heat_onset ? 0 : hardware->heat_tau * log((1 - u) / (1 - hardware->heat_onset));
}

/* Seconds that work takes from now on, without contention. */
static double seconds_for(const pp_hardware *hardware, double u, double work) {
  if (!(hardware->heat_slope > 0)) return work;
  double cold = seconds_to_onset(hardware, u), tau = hardware->heat_tau, hot = 1 + hardware->heat_slope;
  if (work <= cold) return work;
  return cold + tau * log_grown(pp_heat_factor(hardware, u) / hot, (work - cold) * hot / tau);
}

/* Work done in some seconds from now on, without contention. */
static double work_in(const pp_hardware *hardware, double u, double seconds) {
  if (!(hardware->heat_slope > 0)) return seconds;
  double cold = seconds_to_onset(hardware, u), tau = hardware->heat_tau, hot = 1 + hardware->heat_slope;
  if (seconds <= cold) return seconds;
  return cold + tau / hot * log_grown(hot / pp_heat_factor(hardware, u), (seconds - cold) / tau);
}

static double contention(const run_state *run, const rank_state *rank) {
  return rank->resident > 0 ? run->hardware->contention : 1;
}

/* Counts what the rank did since it was counted last. */
static void account(run_state *run, rank_state *rank) {
  double seconds = run->now - rank->since;
  const bool running = rank->card == RUNNING;
  if (running) rank->work_left = fmax(0, rank->work_left - work_in(&rank->hardware, rank->heat, seconds) / contention(run, rank));
  rank->heat = average_after(&rank->hardware, rank->heat, seconds, running);
  rank->since = run->now;
}

static void expect_end(run_state *run, uint32_t number) {
  rank_state *rank = &run->rank[number];
  double seconds = seconds_for(&rank->hardware, rank->heat, rank->work_left * contention(run, rank));
  pp_event_heap_set(&run->events, number, run->now + seconds);
}

/* One batch more, or less, on a rank. */
static void change_residents(run_state *run, uint32_t number, int change) {
  rank_state *rank = &run->rank[number];
  bool matters = rank->card == RUNNING && run->hardware->contention > 1 && rank->resident + (uint32_t)change <= 1;
  if (matters) account(run, rank);
  rank->resident += (uint32_t)change;
  if (matters) expect_end(run, number);
}

/* -- batches -------------------------------------------------------------------------------------------------------------------------- */

/* One more message of a batch is under way, behind those before it in its direction. */
static void move_message(run_state *run, uint32_t number, bool receive) {
  batch_state *batch = &run->batch[number];
  batch->link[receive] = fmax(batch->link[receive], run->now) + run->times->p2p;
  if (--batch->unmet > 0) return;
  uint32_t place = (uint32_t)run->lowered->ranks + run->lowered->batch[number].queue;
  pp_event_heap_set(&run->events, place, fmax(batch->link[0], batch->link[1]));
}

static void start_batch(run_state *run, uint32_t number) {
  const pp_batch *batch = &run->lowered->batch[number];
  change_residents(run, batch->rank, 1);
  run->batch[number].stage = STARTED;
  for (uint32_t i = batch->first; i < batch->first + batch->count; i++) {
    const pp_message_end *end = &run->lowered->end[i];
    if (run->batch[end->other].stage != STARTED) continue;
    move_message(run, end->other, !end->receive);
    move_message(run, number, end->receive);
  }
}

static void post(run_state *run, uint32_t number) {
  queue_state *queue = &run->queue[run->lowered->batch[number].queue];
  run->batch[number].stage = POSTED;
  if (queue->head == PP_NO_BATCH) {
    queue->head = queue->tail = number;
    start_batch(run, number);
  } else {
    run->batch[queue->tail].next = number;
    queue->tail = number;
  }
}

/* -- ranks ---------------------------------------------------------------------------------------------------------------------------- */

static double seconds_of(const run_state *run, const pp_step *step) {
  const pp_schedule *schedule = run->schedule;
  const pp_action *action = &schedule->action[step->index];
  const pp_stage_times *times = &run->times->stage[action->stage];
  bool no_input = run->runtime->first_skips_input && action->stage % schedule->stages_per_chain == 0;
  if (step->kind == PP_STEP_FORWARD) return times->forward;
  if (step->kind == PP_STEP_BACKWARD) return run->times->stage[action->stage_b].full;
  switch (action->kind) {
    case PP_F: return times->forward;
    case PP_B: return times->full;
    case PP_I: return no_input ? 0 : times->input;
    case PP_W: return no_input ? times->full : times->weight;
    default: return pp_pair_seconds(schedule, run->times, action->stage, action->stage_b);
  }
}

static pp_host_work host_work_of(const run_state *run, const pp_step *step) {
  const pp_action *action = &run->schedule->action[step->index];
  const bool no_input = run->runtime->first_skips_input && action->stage % run->schedule->stages_per_chain == 0;
  const double card = seconds_of(run, step);
  if (step->kind == PP_STEP_FORWARD) return pp_host_work_of(run->times, PP_F, action->stage, 0, card);
  if (step->kind == PP_STEP_BACKWARD) return pp_host_work_of(run->times, PP_B, action->stage_b, 0, card);
  if (no_input && action->kind == PP_I) return (pp_host_work){ 0, 0, 0, false };
  return pp_host_work_of(run->times, no_input && action->kind == PP_W ? PP_B : (int)action->kind, action->stage, action->stage_b, card);
}

/* The card begins what the rank is at. */
static void begin(run_state *run, uint32_t number) {
  rank_state *rank = &run->rank[number];
  const pp_step *step = &run->lowered->step[rank->step - 1];
  account(run, rank);
  rank->card = RUNNING;
  rank->started = run->now;
  if (isnan(rank->first_start)) rank->first_start = run->now;
  if (run->interval && step->kind != PP_STEP_BACKWARD) run->interval[step->index].start = run->now;
  if (run->between && step->kind == PP_STEP_BACKWARD) run->between[step->index].end = run->now;
  expect_end(run, number);
}

static void start_action(run_state *run, uint32_t number, const pp_step *step) {
  rank_state *rank = &run->rank[number];
  rank->action = step->index;
  rank->half = step->kind == PP_STEP_FORWARD;
  rank->work_left = seconds_of(run, step);
  const bool held = rank->host > run->now;
  if (held) {
    rank->card = HELD;
    rank->held_since = run->now;
    pp_event_heap_set(&run->events, number, rank->host);
  }
  if (run->times->host) {
    rank->work = host_work_of(run, step);
    rank->handed = rank->host;
    rank->host += rank->work.seconds;
  }
  if (!held) begin(run, number);
}

static void end_action(run_state *run, uint32_t number) {
  rank_state *rank = &run->rank[number];
  account(run, rank);
  rank->card = RESTING;
  if (rank->work.waits) rank->host = fmax(rank->host, run->now - rank->work.lead);
  rank->busy += run->now - rank->started;
  rank->last_end = run->now;
  if (run->interval) run->interval[rank->action].end = run->now;
  if (run->between && rank->half) run->between[rank->action].start = run->now;
  pp_event_heap_set(&run->events, number, HUGE_VAL);
}

/* What a rank waited for has come: its host, to begin or to end an action, or the end of the card's work. True when the action is over. */
static bool next_of_action(run_state *run, uint32_t number) {
  rank_state *rank = &run->rank[number];
  if (rank->card == HELD || rank->card == LATE) rank->host_wait += run->now - rank->held_since;
  if (rank->card == HELD) {
    begin(run, number);
    return false;
  }
  /* On a card with nothing to do before it would have been slowed down alike. */
  const double late = rank->handed + fmax(rank->work.seconds, run->now - rank->started) + rank->work.beyond;
  if (rank->card == RUNNING && late > run->now) {
    account(run, rank);
    rank->card = LATE;
    rank->held_since = run->now;
    pp_event_heap_set(&run->events, number, late);
    return false;
  }
  end_action(run, number);
  return true;
}

/* Issues steps until the rank runs something, waits, or is done. */
static void go_on(run_state *run, uint32_t number) {
  rank_state *rank = &run->rank[number];
  while (rank->step < run->lowered->last[number]) {
    const pp_step *step = &run->lowered->step[rank->step];
    if (step->kind == PP_STEP_WAIT && run->batch[step->index].stage != ENDED) {
      rank->waiting = step->index;
      return;
    }
    rank->step++;
    if (step->kind == PP_STEP_WAIT && run->lowered->syncs) rank->host = fmax(rank->host, run->now);
    if (step->kind == PP_STEP_POST) post(run, step->index);
    if (step->kind == PP_STEP_POST || step->kind == PP_STEP_WAIT) continue;
    start_action(run, number, step);
    return;
  }
}

static void end_batch(run_state *run, uint32_t queue_number) {
  queue_state *queue = &run->queue[queue_number];
  uint32_t number = queue->head, rank = run->lowered->batch[number].rank;
  pp_event_heap_set(&run->events, (uint32_t)run->lowered->ranks + queue_number, HUGE_VAL);
  change_residents(run, rank, -1);
  run->batch[number].stage = ENDED;
  queue->head = run->batch[number].next;
  if (queue->head != PP_NO_BATCH) start_batch(run, queue->head);
  if (run->rank[rank].waiting != number) return;
  run->rank[rank].waiting = PP_NO_BATCH;
  go_on(run, rank);
}

/* -- a step --------------------------------------------------------------------------------------------------------------------------- */

static pp_hardware hardware_of(const pp_hardware *all, int ranks, int rank) {
  pp_hardware hardware = *all;
  if (all->heat_slope > 0 && all->slopes == ranks) hardware.heat_slope = all->rank_slope[rank];
  return hardware;
}

static void reset(run_state *run) {
  const pp_lowered *lowered = run->lowered;
  pp_event_heap_reset(&run->events);
  run->now = 0;
  for (int r = 0; r < lowered->ranks; r++)
    run->rank[r] = (rank_state){ .step = lowered->first[r], .waiting = PP_NO_BATCH, .first_start = NAN, .heat = run->rank[r].heat,
                                  .hardware = hardware_of(run->hardware, lowered->ranks, r) };
  for (uint32_t b = 0; b < lowered->batches; b++)
    run->batch[b] = (batch_state){ .next = PP_NO_BATCH, .unmet = lowered->batch[b].count, .stage = LATER };
  for (uint32_t q = 0; q < lowered->queues; q++) run->queue[q] = (queue_state){ PP_NO_BATCH, PP_NO_BATCH };
}

/* False: stopped. */
static bool run_step(run_state *run) {
  uint32_t ranks = (uint32_t)run->lowered->ranks;
  const uint64_t places = ranks + run->lowered->queues;
  uint64_t cost = 24;   /* of an event, and four times the way through a heap of all places */
  for (uint64_t n = places; n > 1; n /= 2) cost += 4;
  pp_spend(8 * (places + run->lowered->batches));
  reset(run);
  for (uint32_t rank = 0; rank < ranks; rank++) go_on(run, rank);
  for (;;) {
    uint32_t place = pp_event_heap_first(&run->events);
    if (!(run->events.time[place] < HUGE_VAL)) return true;
    if (!pp_spend(cost)) return false;
    run->now = run->events.time[place];
    if (place < ranks) {
      if (next_of_action(run, place)) go_on(run, place);
    } else {
      end_batch(run, place - ranks);
    }
  }
}

/* Cools all ranks until the last of them is done, which is when the next step starts. */
static void finish_heat(run_state *run) {
  for (int rank = 0; rank < run->lowered->ranks; rank++) run->now = fmax(run->now, run->rank[rank].last_end);
  for (int rank = 0; rank < run->lowered->ranks; rank++) account(run, &run->rank[rank]);
}

/* -- the outcome ---------------------------------------------------------------------------------------------------------------------- */

/* The queue that holds up the head of a queue, and the end of it that is not met. */
static uint32_t held_up_by(const run_state *run, uint32_t queue, const pp_message_end **end) {
  const pp_batch *batch = &run->lowered->batch[run->queue[queue].head];
  *end = &run->lowered->end[batch->first];
  while (run->batch[(*end)->other].stage >= STARTED) (*end)++;
  const pp_batch *other = &run->lowered->batch[(*end)->other];
  if (run->batch[(*end)->other].stage == POSTED) return other->queue;
  return run->lowered->batch[run->rank[other->rank].waiting].queue;   /* not posted yet: its rank waits for another batch */
}

static pp_status deadlock(const run_state *run, uint32_t queue, pp_error *error) {
  char text[200] = "";
  size_t used = 0;
  const pp_message_end *end;
  pp_spend(16 * (uint64_t)run->lowered->queues);
  for (uint32_t i = 0; i < run->lowered->queues; i++) queue = held_up_by(run, queue, &end);   /* now inside the cycle */
  const uint32_t start = queue;
  do {
    uint32_t rank = run->lowered->batch[run->queue[queue].head].rank, next = held_up_by(run, queue, &end);
    char name[PP_ACTION_TEXT];
    pp_message_end_print(name, sizeof name, end);
    int written = snprintf(text + used, sizeof text - used, "%srank %u waits in %s for rank %u", used ? ", " : "", rank, name,
                           run->lowered->batch[end->other].rank);
    if (written < 0 || used + (size_t)written >= sizeof text) {
      text[used] = '\0';
      return pp_illegal(error, "engine.deadlock", "action", NAN, "deadlock: %s, …", text);
    }
    used += (size_t)written;
    queue = next;
  } while (queue != start);
  return pp_illegal(error, "engine.deadlock", "action", NAN, "deadlock: %s", text);
}

static pp_status summarise(const run_state *run, pp_simulation *out, pp_error *error) {
  for (uint32_t queue = 0; queue < run->lowered->queues; queue++)
    if (run->queue[queue].head != PP_NO_BATCH) return deadlock(run, queue, error);
  for (int r = 0; r < out->ranks; r++) {
    const rank_state *rank = &run->rank[r];
    out->busy[r] = rank->busy;
    out->host_wait[r] = rank->host_wait;
    out->span[r] = isnan(rank->first_start) ? 0 : rank->last_end - rank->first_start;
    out->makespan = fmax(out->makespan, rank->last_end);
  }
  pp_simulation_summarise(out);
  return PP_OK;
}

/* -- the whole ------------------------------------------------------------------------------------------------------------------------ */

static pp_status check_hardware(const pp_runtime *runtime, const pp_hardware *hardware, pp_error *error) {
  if (!(hardware->contention >= 1 && hardware->contention <= PP_MOST_SLOWING))
    return pp_fail(error, PP_INVALID, "contention must be a factor of 1 … %g, got %g", PP_MOST_SLOWING, hardware->contention);
  if (!(hardware->heat_slope >= 0 && hardware->heat_slope <= PP_MOST_SLOWING))
    return pp_fail(error, PP_INVALID, "the slope of heat must be 0 … %g, got %g", PP_MOST_SLOWING, hardware->heat_slope);
  for (int rank = 0; rank < hardware->slopes; rank++)
    if (!(hardware->rank_slope[rank] >= 0 && hardware->rank_slope[rank] <= PP_MOST_SLOWING))
      return pp_fail(error, PP_INVALID, "the slope of heat of rank %d must be 0 … %g, got %g", rank, PP_MOST_SLOWING, hardware->rank_slope[rank]);
  if (hardware->heat_slope > 0 && !(hardware->heat_onset >= 0 && hardware->heat_onset < 1))
    return pp_fail(error, PP_INVALID, "the onset of heat must be at least 0 and below 1, got %g", hardware->heat_onset);
  if (hardware->heat_slope > 0 && !(hardware->heat_tau > 0 && pp_is_seconds(hardware->heat_tau)))
    return pp_fail(error, PP_INVALID, "tau of heat must be above 0, and " PP_SECONDS ", got %g", hardware->heat_tau);
  if (runtime->kind == PP_RUNTIME_IDEAL && (hardware->contention > 1 || hardware->heat_slope > 0))
    return pp_fail(error, PP_INVALID, "the ideal runtime has neither contention nor heat");
  return PP_OK;
}

/* One block for all that a run needs. The heap's arrays are laid out from the widest to the narrowest. */
static void *prepare(run_state *run) {
  const pp_lowered *lowered = run->lowered;
  size_t ranks = (size_t)lowered->ranks, queues = lowered->queues, places = ranks + queues;
  char *memory = pp_allocate_zeros(ranks * sizeof(rank_state) + places * (sizeof(double) + 2 * sizeof(uint32_t)) +
                                   queues * sizeof(queue_state) + lowered->batches * sizeof(batch_state));
  if (!memory) return NULL;
  run->rank = (rank_state *)(void *)memory;
  run->batch = (batch_state *)(void *)(run->rank + ranks);
  run->events.time = (double *)(void *)(run->batch + lowered->batches);
  run->events.order = (uint32_t *)(void *)(run->events.time + places);
  run->events.position = run->events.order + places;
  run->queue = (queue_state *)(void *)(run->events.position + places);
  run->events.places = (uint32_t)places;
  return memory;
}

/* What pp_simulation_allocate is asked for. */
static int intervals_of(const pp_schedule *schedule, const pp_runtime *runtime, bool with_intervals) {
  return !with_intervals ? 0 : schedule->traits.overlaps && runtime->pairs != PP_PAIR_OVERLAPPED ? 2 : 1;
}

static pp_status simulate(run_state *run, bool with_intervals, pp_simulation *out, pp_error *error) {
  size_t actions = run->schedule->first[run->schedule->request.ranks];
  void *memory = prepare(run);
  const int intervals = intervals_of(run->schedule, run->runtime, with_intervals);
  pp_status status = memory ? pp_simulation_allocate(run->schedule, intervals, out, error)
                            : pp_fail(error, PP_NO_MEMORY, "not enough memory to simulate %zu actions", actions);
  if (status == PP_OK) {
    run->interval = out->interval;
    run->between = out->between;
    bool ended = run_step(run);
    if (ended && run->hardware->heat_slope > 0) {
      finish_heat(run);
      ended = run_step(run);
    }
    status = ended ? summarise(run, out, error) : pp_stopped(error);
    if (status != PP_OK) pp_simulation_free(out);
  }
  pp_free(memory);
  return status;
}

pp_status pp_runtime_simulate(const pp_schedule *schedule, const pp_times *times, const pp_runtime *runtime, const pp_hardware *hardware,
                              bool with_intervals, pp_simulation *out, pp_error *error) {
  *out = (pp_simulation){ 0 };
  pp_status status = check_hardware(runtime, hardware, error);
  if (status != PP_OK) return status;
  if (runtime->kind == PP_RUNTIME_IDEAL) return pp_simulate(schedule, times, with_intervals, out, error);
  status = pp_times_check(schedule, times, error);
  if (status != PP_OK) return status;
  pp_lowered lowered;
  status = pp_runtime_lower(schedule, runtime, &lowered, error);
  if (status != PP_OK) return status;
  run_state run = { .schedule = schedule, .times = times, .runtime = runtime, .hardware = hardware, .lowered = &lowered };
  status = simulate(&run, with_intervals, out, error);
  pp_lowered_free(&lowered);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** steady.c: simulation of a schedule's periods. See steady.h.
**
** A cut is where the ranks stand when everything that needs no more than the first G microbatches has run. It does not depend on times, and
** the cut of G + c microbatches, c a period, is the same place a period later. What comes after a cut depends on what came before only
** through the state there: the ranks' clocks, and when the inputs arrived that wait for their actions. A period maps this state x to the
** next one, f(x), by maxima and additions of constants alone, from which two things follow (Baccelli, Cohen, Olsder and Quadrat 1992,
** Synchronization and Linearity, chapter 3):
**
**   f is convex, as each of its components is a maximum of sums. Let a lot of γ periods, F = f ∘ … ∘ f, add g to a state. If the next lot adds g
**   again, and so does a lot that starts from x + ng, then do all n lots in between: h(t) = F(x + tg) − x − (t + 1)g is convex in each
**   component, and a convex function that is 0 at 0, 1 and n is 0 between them. These lots need not be run.
**   f moves no component by more than the largest move of one of x, so that an error of rounding does not grow.
**
** A state grows linearly while the same chains of actions keep the ranks waiting. That changes when a chain that is only a little slower
** has used up the slack there was at first, perhaps after a million periods: no growth is taken to last. n is found as a sum of powers of 2,
** the largest first; then periods are run one by one until the next linear growth is found.
*/
#include "core/steady.h"

#include <math.h>
#include <string.h>

#include "core/meter.h"

/* -- the shorter program -------------------------------------------------------------------------------------------------------------- */

/* Microbatches of one direction: in a period, and in the shorter program before it and after it. */
typedef struct {
  int period, before, after;
} cut_shape;

/*
** Warm-up, with W's that lag behind it, takes less than 2P forwards, or three groups. The last group of an interleaved schedule may be a
** smaller one.
*/
static cut_shape shape_of(const pp_schedule_request *request) {
  const int ranks = request->ranks, group = pp_schedule_group(request);
  if (group > 0) return (cut_shape){ group, 3 * group, group + request->microbatches % group };
  return (cut_shape){ 1, 3 * ranks + 2, ranks + 2 };
}

bool pp_steady_shorten(const pp_schedule_request *whole, pp_schedule_request *out) {
  if (!pp_schedule_traits_of(whole->kind)->has_periods) return false;
  const cut_shape shape = shape_of(whole);
  const int64_t microbatches = pp_schedule_traits_of(whole->kind)->chains * ((int64_t)shape.before + shape.period + shape.after);
  if (microbatches >= whole->microbatches) return false;
  const int group = pp_schedule_group(whole);
  *out = *whole;
  out->microbatches = (int)microbatches;
  out->group = group;
  return true;
}

/* -- from cut to cut ------------------------------------------------------------------------------------------------------------------ */

/* An action in terms of cells: its rank's clock, its inputs, and where its results arrive, the forward's first. */
typedef struct {
  uint32_t clock, in[2], out[2];
  double seconds, hop[2];
} step;

typedef enum { MISSING, WAITING, USED } input_state;

typedef struct {
  const pp_schedule *schedule;
  const pp_times *times;
  double *value;            /* [cells] seconds: NEVER, NOBODY, a clock for each rank, and when each stage's inputs arrived */
  unsigned char *input;     /* [cells] an input_state */
  size_t *next;             /* [ranks] action to run */
  double *busy, *start;     /* [ranks] */
  step *period;             /* its actions, in an order in which they can run */
  size_t steps;
} program_run;

/* What an action without an input waits for, and where results go that nobody waits for. */
enum { NEVER, NOBODY, CLOCKS };

static uint32_t inputs_of(const pp_schedule *schedule) { return CLOCKS + (uint32_t)schedule->request.ranks; }

static size_t cells_of(const pp_schedule *schedule) {
  return inputs_of(schedule) + 2 * (size_t)schedule->stages * (size_t)schedule->microbatches_per_chain;
}

static uint32_t cell_of(const pp_schedule *schedule, bool backward, int stage, uint32_t microbatch) {
  const uint32_t row = (uint32_t)(backward ? schedule->stages + stage : stage);
  return inputs_of(schedule) + row * (uint32_t)schedule->microbatches_per_chain + microbatch;
}

static double hop(const program_run *run, int from, int to) {
  return run->schedule->rank_of[from] == run->schedule->rank_of[to] ? 0 : run->times->p2p;
}

static double seconds_of(const program_run *run, const pp_action *action) {
  const pp_stage_times *stage = &run->times->stage[action->stage];
  switch (action->kind) {
    case PP_F: return stage->forward;
    case PP_B: return stage->full;
    case PP_I: return stage->input;
    case PP_W: return stage->weight;
    default: return pp_pair_seconds(run->schedule, run->times, action->stage, action->stage_b);
  }
}

static void add_forward(const program_run *run, int stage, uint32_t microbatch, step *out) {
  const int stages = run->schedule->stages_per_chain;
  const bool last = (stage + 1) % stages == 0;
  if (stage % stages != 0) out->in[0] = cell_of(run->schedule, false, stage, microbatch);
  out->out[0] = last ? cell_of(run->schedule, true, stage, microbatch) : cell_of(run->schedule, false, stage + 1, microbatch);
  out->hop[0] = last ? 0 : hop(run, stage, stage + 1);
}

static void add_backward(const program_run *run, int stage, uint32_t microbatch, step *out) {
  out->in[1] = cell_of(run->schedule, true, stage, microbatch);
  if (stage % run->schedule->stages_per_chain == 0) return;
  out->out[1] = cell_of(run->schedule, true, stage - 1, microbatch);
  out->hop[1] = hop(run, stage, stage - 1);
}

static step step_of(const program_run *run, int rank, const pp_action *action) {
  step out = { .clock = CLOCKS + (uint32_t)rank, .in = { NEVER, NEVER }, .out = { NOBODY, NOBODY }, .seconds = seconds_of(run, action) };
  if (action->kind == PP_F || action->kind == PP_FB) add_forward(run, action->stage, action->microbatch, &out);
  if (action->kind == PP_B || action->kind == PP_I) add_backward(run, action->stage, action->microbatch, &out);
  if (action->kind == PP_FB) add_backward(run, action->stage_b, action->microbatch_b, &out);
  return out;
}

/* → when it starts */
static inline double run_step(double *value, const step *what) {
  double ready = value[what->clock];
  if (value[what->in[0]] > ready) ready = value[what->in[0]];
  if (value[what->in[1]] > ready) ready = value[what->in[1]];
  const double end = ready + what->seconds;
  value[what->clock] = end;
  value[what->out[0]] = end + what->hop[0];
  value[what->out[1]] = end + what->hop[1];
  return ready;
}

/* Forwards of a chain's first stage wait for nothing but the gate. */
static bool can_run(const program_run *run, const pp_action *action, const step *what, int gate) {
  const bool enters = (action->kind == PP_F || action->kind == PP_FB) && what->in[0] == NEVER;
  return run->input[what->in[0]] == WAITING && run->input[what->in[1]] == WAITING && !(enters && action->microbatch >= (uint32_t)gate);
}

static void run_action(program_run *run, int rank, const step *what) {
  const double ready = run_step(run->value, what);
  if (run->next[rank]++ == run->schedule->first[rank]) run->start[rank] = ready;
  run->busy[rank] += what->seconds;
  for (int i = 0; i < 2; i++) {
    if (what->in[i] != NEVER) run->input[what->in[i]] = USED;
    if (what->out[i] != NOBODY) run->input[what->out[i]] = WAITING;
  }
}

static bool run_rank(program_run *run, int rank, int gate, bool record) {
  const size_t before = run->next[rank];
  while (run->next[rank] < run->schedule->first[rank + 1]) {
    const pp_action *action = &run->schedule->action[run->next[rank]];
    const step what = step_of(run, rank, action);
    if (!can_run(run, action, &what, gate)) break;
    run_action(run, rank, &what);
    if (record) run->period[run->steps++] = what;
  }
  pp_spend(8 * (run->next[rank] - before));
  return run->next[rank] > before;
}

/* To the cut of `gate` microbatches in each direction: over all ranks and back, as microbatches go, until none can go on. */
static void run_to(program_run *run, int gate, bool record) {
  const int ranks = run->schedule->request.ranks;
  for (bool moved = true; moved;) {
    moved = false;
    pp_spend(8 * (uint64_t)ranks);
    for (int k = 0; k < 2 * ranks; k++) moved |= run_rank(run, k < ranks ? k : 2 * ranks - 1 - k, gate, record);
  }
}

/* -- from state to state -------------------------------------------------------------------------------------------------------------- */

/* A state is relative to rank 0's clock, its first entry, so that its numbers stay small however long the step is. Clocks come first. */
typedef struct {
  program_run *run;
  uint32_t *at, *then;     /* [entries] cells at the first cut, and of what is in their place a period later */
  size_t entries, ranks;
  double *now, *trial;     /* [entries] */
  double *before, *growth; /* [entries] a lot ago, and of that lot, beside that of rank 0's clock */
  double base;             /* rank 0's clock at `now` */
  int64_t left, ran;       /* periods still to come, and those that were run */
  int longest;             /* periods of a lot: those in flight at most, which is how long a chain takes to come back to itself */
  int known;               /* states since the last leap; of them the clocks of the last ring_of(orbit) are kept */
  double *past, *grown;    /* [ring × ranks], [ring]: what rank 0's clock grew by in the period before */
} period_orbit;

static int ring_of(const period_orbit *orbit) { return 2 * orbit->longest + 1; }
static int place_of(const period_orbit *orbit, int ago) { return (orbit->known - 1 - ago) % ring_of(orbit); }
static const double *past(const period_orbit *orbit, int ago) { return orbit->past + (size_t)place_of(orbit, ago) * orbit->ranks; }

static void remember(period_orbit *orbit, double grown) {
  orbit->known++;
  memcpy(orbit->past + (size_t)place_of(orbit, 0) * orbit->ranks, orbit->now, orbit->ranks * sizeof *orbit->now);
  orbit->grown[place_of(orbit, 0)] = grown;
}

static void forget(period_orbit *orbit) {
  orbit->known = 0;
  remember(orbit, 0);
}

static double grown_between(const period_orbit *orbit, int ago, int before) {
  double sum = 0;
  for (; ago < before; ago++) sum += orbit->grown[place_of(orbit, ago)];
  return sum;
}

/* Runs a period: a state becomes the next → what rank 0's clock grew by. */
static double advance(period_orbit *orbit, double *state) {
  const program_run *run = orbit->run;
  for (size_t i = 0; i < orbit->entries; i++) run->value[orbit->at[i]] = state[i];
  for (size_t k = 0; k < run->steps; k++) run_step(run->value, &run->period[k]);
  const double clock = run->value[orbit->then[0]];
  for (size_t i = 0; i < orbit->entries; i++) state[i] = run->value[orbit->then[i]] - clock;
  orbit->ran++;
  pp_spend(2 * run->steps + orbit->entries);
  return clock;
}

/* Through periods one by one → what rank 0's clock grew by. */
static double go_through(period_orbit *orbit, int periods) {
  double sum = 0;
  for (int k = 0; k < periods; k++) {
    const double grown = advance(orbit, orbit->now);
    orbit->base += grown;
    orbit->left--;
    remember(orbit, grown);
    sum += grown;
  }
  return sum;
}

/* Relative to the largest number of a state: more than its numbers are rounded by. */
static const double rounding = 1e-13;

/* Did the last two lots add the same to the clocks? Of whole states too many are known to keep them: at 512 ranks gigabytes. */
static bool clocks_repeat(const period_orbit *orbit, int lot) {
  const double *now = past(orbit, 0), *before = past(orbit, lot), *first = past(orbit, 2 * lot);
  const double clock = grown_between(orbit, 0, lot);
  double most = 0;
  pp_spend(2 * orbit->ranks);
  for (size_t r = 0; r < orbit->ranks; r++) most = fmax(most, fabs(now[r]) + fabs(now[r] - before[r] + clock));
  if (!(fabs(clock - grown_between(orbit, lot, 2 * lot)) <= rounding * most)) return false;
  for (size_t r = 0; r < orbit->ranks; r++)
    if (!(fabs((now[r] - before[r]) - (before[r] - first[r])) <= rounding * most)) return false;
  return true;
}

/* Runs two lots: do they add the same? Fills growth[], *clock, the growth of rank 0's clock, and *tolerance, what counts as the same. */
static bool repeats(period_orbit *orbit, int lot, double *clock, double *tolerance) {
  const size_t entries = orbit->entries;
  double most = 0;
  bool same;
  pp_spend(4 * entries);
  memcpy(orbit->before, orbit->now, entries * sizeof *orbit->now);
  const double first = go_through(orbit, lot);
  for (size_t i = 0; i < entries; i++) orbit->growth[i] = orbit->now[i] - orbit->before[i];
  memcpy(orbit->before, orbit->now, entries * sizeof *orbit->now);
  *clock = go_through(orbit, lot);
  for (size_t i = 0; i < entries; i++)
    most = fmax(most, fabs(orbit->now[i]) + fabs(orbit->now[i] - orbit->before[i] + *clock));
  *tolerance = rounding * most;
  same = fabs(*clock - first) <= *tolerance;
  for (size_t i = 0; same && i < entries; i++) {
    const double grown = orbit->now[i] - orbit->before[i];
    same = fabs(grown - orbit->growth[i]) <= *tolerance;
    orbit->growth[i] = grown;
  }
  return same;
}

/* Leaves n lots out and runs the one after them, if that adds the same. */
static void leap(period_orbit *orbit, int lot, int64_t lots, double clock, double tolerance) {
  const double n = (double)lots;
  double sum = 0;
  for (size_t i = 0; i < orbit->entries; i++) orbit->trial[i] = orbit->now[i] + n * orbit->growth[i];
  for (int k = 0; k < lot; k++) sum += advance(orbit, orbit->trial);
  tolerance *= n + 1;
  if (!(fabs(sum - clock) <= tolerance)) return;
  for (size_t i = 0; i < orbit->entries; i++)
    if (!(fabs(orbit->trial[i] - (orbit->now[i] + (n + 1) * orbit->growth[i])) <= tolerance)) return;
  memcpy(orbit->now, orbit->trial, orbit->entries * sizeof *orbit->now);
  orbit->base += n * clock + sum;
  orbit->left -= (lots + 1) * lot;
}

/* As far as a growth lasts: to the end, or else as far as is found. False when it lasts no longer. */
static bool leap_far(period_orbit *orbit, int lot, double clock, double tolerance) {
  const int64_t left = orbit->left;
  int64_t lots = 1;
  leap(orbit, lot, left / lot - 1, clock, tolerance);
  if (orbit->left < left) return true;
  while (2 * lots < left / lot) lots *= 2;
  for (; lots > 0; lots /= 2)
    if ((lots + 1) * lot <= orbit->left) leap(orbit, lot, lots, clock, tolerance);
  return orbit->left < left;
}

static bool leap_by_any_lot(period_orbit *orbit) {
  double clock, tolerance;
  /* two lots to see that they add the same, two at least to gain by it */
  for (int lot = 1; lot <= orbit->longest && 2 * lot < orbit->known && 4 * (int64_t)lot <= orbit->left; lot++)
    if (clocks_repeat(orbit, lot) && repeats(orbit, lot, &clock, &tolerance) && leap_far(orbit, lot, clock, tolerance)) return true;
  return false;
}

/* Through all periods. */
static pp_status run_periods(period_orbit *orbit, int64_t most, pp_error *error) {
  const pp_schedule *schedule = orbit->run->schedule;
  int look = 3;   /* at so many known states; looking again and again would take longer than running */
  forget(orbit);
  while (orbit->left > 0) {
    if (orbit->ran >= most)
      return pp_illegal(error, "engine.no_steady_state", "microbatches", NAN, "%s on %d ranks: %lld periods come to no steady state",
                        schedule->traits.name, schedule->request.ranks, (long long)orbit->ran);
    if (!pp_spend(1)) return pp_stopped(error);
    go_through(orbit, 1);
    if (orbit->known < look) continue;
    look += look / 2;
    if (!leap_by_any_lot(orbit)) continue;
    forget(orbit);
    look = 3;
  }
  return PP_OK;
}

/* -- the whole ------------------------------------------------------------------------------------------------------------------------ */

static pp_status no_memory(const pp_schedule *schedule, pp_error *error) {
  return pp_fail(error, PP_NO_MEMORY, "not enough memory to simulate %zu actions", schedule->first[schedule->request.ranks]);
}

/* One block, which value[] begins. A period has at most an F, an I and a W of each of its microbatches on each stage. */
static pp_status open_run(const pp_schedule *schedule, const pp_times *times, int period, program_run *out, pp_error *error) {
  const size_t ranks = (size_t)schedule->request.ranks, cells = cells_of(schedule), most = 3 * (size_t)schedule->stages * (size_t)period;
  *out = (program_run){ .schedule = schedule, .times = times };
  out->value = pp_allocate_zeros((cells + 2 * ranks) * sizeof(double) + most * sizeof(step) + ranks * sizeof(size_t) + cells);
  if (!out->value) return no_memory(schedule, error);
  out->busy = out->value + cells;
  out->start = out->busy + ranks;
  out->period = (step *)(void *)(out->start + ranks);
  out->next = (size_t *)(void *)(out->period + most);
  out->input = (unsigned char *)(out->next + ranks);
  out->value[NEVER] = -INFINITY;
  out->input[NEVER] = WAITING;
  memcpy(out->next, schedule->first, ranks * sizeof *out->next);
  return PP_OK;
}

static bool is_entry(const program_run *run, size_t cell) {
  return cell < inputs_of(run->schedule) || run->input[cell] == WAITING;
}

/* At the first cut. One block, which past[] begins. */
static pp_status open_orbit(program_run *run, const cut_shape *shape, int64_t periods, period_orbit *out, pp_error *error) {
  const size_t cells = cells_of(run->schedule);
  size_t entries = 0, ring;
  *out = (period_orbit){ .run = run, .ranks = (size_t)run->schedule->request.ranks, .left = periods, .longest = shape->before };
  ring = (size_t)ring_of(out);
  for (size_t cell = CLOCKS; cell < cells; cell++) entries += is_entry(run, cell);
  out->past = pp_allocate((ring * (out->ranks + 1) + 4 * entries) * sizeof(double) + 2 * entries * sizeof(uint32_t));
  if (!out->past) return no_memory(run->schedule, error);
  out->grown = out->past + ring * out->ranks;
  out->now = out->grown + ring;
  out->trial = out->now + entries;
  out->before = out->trial + entries;
  out->growth = out->before + entries;
  out->at = (uint32_t *)(void *)(out->growth + entries);
  out->then = out->at + entries;
  out->base = run->value[CLOCKS];
  for (uint32_t cell = CLOCKS; cell < cells; cell++) {
    if (!is_entry(run, cell)) continue;
    out->at[out->entries] = cell;
    out->then[out->entries] = cell < inputs_of(run->schedule) ? cell : cell + (uint32_t)shape->period;
    out->now[out->entries++] = run->value[cell] - out->base;
  }
  return PP_OK;
}

/* From the first cut to the last, so many periods later. */
static pp_status cross(program_run *run, const cut_shape *shape, int64_t periods, int64_t most, period_orbit *orbit, pp_error *error) {
  const size_t ranks = (size_t)run->schedule->request.ranks;
  pp_status status = open_orbit(run, shape, periods, orbit, error);
  if (status != PP_OK) return status;
  double *before = orbit->trial;   /* large enough: each rank's clock is an entry */
  memcpy(before, run->busy, ranks * sizeof *before);
  memset(run->busy, 0, ranks * sizeof *run->busy);
  run_to(run, shape->before + shape->period, true);
  for (size_t r = 0; r < ranks; r++) run->busy[r] = before[r] + (double)periods * run->busy[r];
  status = run_periods(orbit, most, error);
  for (size_t i = 0; i < orbit->entries; i++) run->value[orbit->then[i]] = orbit->now[i];
  return status;
}

static void summarise(const program_run *run, double base, pp_simulation *out) {
  for (int r = 0; r < out->ranks; r++) {
    const double end = base + run->value[CLOCKS + r];
    out->busy[r] = run->busy[r];
    out->host_wait[r] = 0;
    out->span[r] = end - run->start[r];
    out->makespan = fmax(out->makespan, end);
  }
  pp_simulation_summarise(out);
}

pp_status pp_steady_simulate(const pp_schedule *shorter, int microbatches, const pp_times *times, int64_t most, pp_simulation *out,
                             int64_t *run, pp_error *error) {
  const cut_shape shape = shape_of(&shorter->request);
  const int64_t periods = 1 + (microbatches - shorter->request.microbatches) / (shorter->chains * shape.period);
  program_run program;
  period_orbit orbit = { .past = NULL };
  pp_status status = times->host ? pp_fail(error, PP_INVALID, "hosts are simulated with whole programs alone") : pp_times_check(shorter, times, error);
  *out = (pp_simulation){ 0 };
  if (status == PP_OK) status = open_run(shorter, times, shape.period, &program, error);
  if (status != PP_OK) return status;
  run_to(&program, shape.before, false);
  status = cross(&program, &shape, periods, most, &orbit, error);
  if (status == PP_OK) status = pp_simulation_allocate(shorter, 0, out, error);
  if (status == PP_OK) {
    run_to(&program, shorter->microbatches_per_chain, false);
    summarise(&program, orbit.base, out);
  }
  if (run) *run = orbit.ran;
  pp_free(orbit.past);
  pp_free(program.value);
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** program_fuzz.c: any schedule program, through all that uses one: reader → verification → simulation → every runtime × queues × receives ×
** pairs, cool and hot → peaks → lowering → CSV, which is read again. The first byte says where a program comes from:
**   '1', '2'  the rest is a CSV of one or of two directions
**   'b'       the rest is a request for a constructor, with times
**   'c'       the rest is a request of any size, which is only checked: what is said to be the nearest legal value must be legal
**   else      the rest chooses ranks, stages, placement and order: an execution is followed action by action, so that the program it leaves
**             must be accepted, unless the last bytes damage it
** Whatever is wrong with a program must have an id and a message; whatever runs must keep the order of its data.
**   build/fuzz/tests/fuzz/program_fuzz -max_total_time=180 CORPUS tests/fuzz/seeds/program
*/
#include "fuzz.h"

#include <math.h>

#include "core/runtime.h"
#include "core/schedule_csv.h"
#include "core/schedule_verify.h"
#include "core/simulate.h"
#include "core/times.h"

enum { MOST_RANKS = 9, MOST_STAGES = 24, MOST_MICROBATCHES = 7, MOST_PROGRAM = 1 << 14 };

/* -- numbers that follow from the input ------------------------------------------------------------------------------------------------ */

static uint64_t seed;

static unsigned draw(unsigned n) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33) % n;
}

static void seed_from(const uint8_t *data, size_t size) {
  seed = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) seed = (seed ^ data[i]) * 1099511628211u;
}

static double some_seconds(void) {
  static const double some[] = { 0, 1, 1, 1, 2, 0.5, 3.25, 1e-3, 1e6, PP_LEAST_SECONDS, 1e9 };
  return some[draw(sizeof some / sizeof *some)];
}

/* -- a program as text ----------------------------------------------------------------------------------------------------------------- */

/* As schedule:csv() writes it. */
static char *print(const pp_schedule *schedule, size_t *length) {
  char *text = malloc(schedule->first[schedule->request.ranks] * PP_ACTION_TEXT + 1), *at = text;
  require(text != NULL, "memory");
  for (int rank = 0; rank < schedule->request.ranks; rank++)
    for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
      at += pp_action_print(at, PP_ACTION_TEXT, &schedule->action[i]);
      *at++ = i + 1 < schedule->first[rank + 1] ? ',' : '\n';
    }
  *length = (size_t)(at - text);
  return text;
}

static void check_round_trip(const pp_schedule *schedule) {
  size_t length, length_again;
  pp_schedule again;
  char *text = print(schedule, &length);
  require(pp_schedule_read_csv(text, length, schedule->chains, &again, NULL, NULL) == PP_OK, "what was written is read");
  char *text_again = print(&again, &length_again);
  require(length == length_again && memcmp(text, text_again, length) == 0, "what was read again is the same");
  require(again.verified == schedule->verified && again.stages == schedule->stages, "and as good");
  require(again.microbatches_per_chain == schedule->microbatches_per_chain && again.chunks_per_rank == schedule->chunks_per_rank, "and large");
  if (schedule->verified)
    require(memcmp(again.rank_of, schedule->rank_of, (size_t)schedule->stages * sizeof(int)) == 0, "and its stages are where they were");
  free(text_again);
  free(text);
  pp_schedule_free(&again);
}

/* -- tables ---------------------------------------------------------------------------------------------------------------------------- */

static void check_tables(const pp_schedule *schedule) {
  int seen = 0;
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    const int *stages = pp_schedule_stages_of(schedule, rank), count = pp_schedule_stages_on(schedule, rank);
    require(count >= 0 && count <= schedule->chunks_per_rank, "a rank holds at most chunks_per_rank stages");
    require(!schedule->verified || count > 0, "and, in a program that runs, at least one");
    for (int slot = 0; slot < count; slot++, seen++) {
      require(schedule->rank_of[stages[slot]] == rank && schedule->slot_of[stages[slot]] == slot, "a stage is where it says");
      require(slot == 0 || stages[slot] > stages[slot - 1], "in ascending order");
    }
  }
  require(seen == schedule->stages, "each stage is somewhere");
}

/* -- what runs ------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
  pp_stage_times *stage;
  double *pair;
  pp_times times;
} drawn_times;

static drawn_times draw_times(const pp_schedule *schedule) {
  size_t stages = (size_t)schedule->stages, pairs = stages * (size_t)schedule->chunks_per_rank, ranks = (size_t)schedule->request.ranks;
  drawn_times out = { .stage = malloc(stages * sizeof *out.stage), .pair = malloc((pairs + stages) * sizeof *out.pair) };
  double *speed = malloc(ranks * sizeof *speed);
  pp_error error;
  require(out.stage && out.pair && speed, "memory");
  for (size_t s = 0; s < stages; s++) out.stage[s] = (pp_stage_times){ some_seconds(), some_seconds(), some_seconds(), some_seconds() };
  for (size_t k = 0; k < pairs; k++) out.pair[k] = some_seconds();
  for (size_t r = 0; r < ranks; r++) speed[r] = draw(2) ? 1 : 0.5;
  const pp_time_extras extras = { .first = { .forward = some_seconds() }, .last = { .full = some_seconds() }, .launch = some_seconds(),
                                  .rank_speed = draw(2) ? speed : NULL };
  double *pair = draw(3) ? out.pair : NULL, *beside = pair && draw(2) ? out.pair + pairs : NULL;
  require(pp_times_adjust(schedule, &extras, out.stage, pair, beside, &error) == PP_OK, "times are in range");
  out.times = (pp_times){ .stage = out.stage, .pair = pair, .pair_beside = beside, .p2p = some_seconds() };
  free(speed);
  return out;
}

static void free_times(drawn_times *times) {
  free(times->stage);
  free(times->pair);
}

typedef struct {
  double *forward, *backward;   /* [stages × microbatches] when each result was there */
} results;

/* A rank's actions follow each other, and what each needs was there before it began, a hop away or not. */
static void check_order(const pp_schedule *schedule, const pp_times *times, const pp_simulation *run, bool pairs_may_wait) {
  const size_t row = (size_t)schedule->microbatches_per_chain, all = (size_t)schedule->stages * row;
  results made = { calloc(all, sizeof(double)), calloc(all, sizeof(double)) };
  const double room = 1 - 1e-6;
  require(made.forward && made.backward, "memory");
  for (size_t i = 0; i < schedule->first[schedule->request.ranks]; i++) {
    const pp_action *action = &schedule->action[i];
    const bool pair = action->kind == PP_FB;
    if (action->kind == PP_F || pair) made.forward[action->stage * row + action->microbatch] = run->interval[i].end;
    if (pair) made.backward[action->stage_b * row + action->microbatch_b] = run->interval[i].end;
    if (action->kind == PP_B || action->kind == PP_I) made.backward[action->stage * row + action->microbatch] = run->interval[i].end;
  }
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    double clock = 0;
    for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
      const pp_action *action = &schedule->action[i];
      const pp_interval *interval = &run->interval[i];
      require(isfinite(interval->end) && interval->start >= clock * room && interval->end >= interval->start, "a rank does one thing at a time");
      clock = interval->end;
      bool forward = action->kind == PP_F || action->kind == PP_FB, backward = action->kind != PP_F && action->kind != PP_W;
      int f = action->stage, b = action->kind == PP_FB ? action->stage_b : action->stage;
      size_t mf = action->microbatch, mb = action->kind == PP_FB ? action->microbatch_b : action->microbatch;
      double start = action->kind == PP_FB && pairs_may_wait ? interval->end : interval->start;   /* its B may have waited inside */
      if (forward && !pairs_may_wait && f % schedule->stages_per_chain > 0)
        require(interval->start >= (made.forward[(size_t)(f - 1) * row + mf] + (schedule->rank_of[f - 1] == rank ? 0 : times->p2p)) * room,
                "a forward has its input");
      if (backward && (b + 1) % schedule->stages_per_chain > 0)
        require(start >= (made.backward[(size_t)(b + 1) * row + mb] + (schedule->rank_of[b + 1] == rank ? 0 : times->p2p)) * room,
                "a backward has its gradient");
      if (backward) require(start >= made.forward[(size_t)b * row + mb] * room || action->kind == PP_FB, "a backward follows its forward");
    }
  }
  free(made.forward);
  free(made.backward);
}

static void check_figures(const pp_simulation *run) {
  require(isfinite(run->makespan) && run->makespan >= 0, "a step takes some time");
  require(run->bubble_fraction >= 0 && run->bubble_fraction <= 1 && run->max_idle_fraction <= 1, "a share of it is idle");
  for (int rank = 0; rank < run->ranks; rank++)
    require(run->busy[rank] >= 0 && run->idle[rank] >= 0 && run->span[rank] <= run->makespan * (1 + 1e-6), "within it ranks work and wait");
}

static void check_ideal(const pp_schedule *schedule, const pp_times *times) {
  pp_simulation run;
  pp_error error;
  require(pp_simulate(schedule, times, true, &run, &error) == PP_OK, "what is verified runs");
  check_figures(&run);
  check_order(schedule, times, &run, false);
  pp_simulation_free(&run);
}

/* -- lowering -------------------------------------------------------------------------------------------------------------------------- */

/* Every action is issued once, in order; every batch is posted once, and waited for by its own rank after that; ends meet. */
static void check_lowered(const pp_schedule *schedule, const pp_lowered *lowered) {
  unsigned char *posted = calloc((size_t)lowered->batches + 1, 1);
  char text[PP_ACTION_TEXT];
  require(posted != NULL, "memory");
  for (int rank = 0; rank < lowered->ranks; rank++) {
    size_t next = schedule->first[rank];
    for (size_t i = lowered->first[rank]; i < lowered->last[rank]; i++) {
      const pp_step *step = &lowered->step[i];
      if (step->kind == PP_STEP_POST) require(!posted[step->index]++ && lowered->batch[step->index].rank == (uint32_t)rank, "posted once");
      else if (step->kind == PP_STEP_WAIT) require(posted[step->index] && lowered->batch[step->index].rank == (uint32_t)rank, "waited for");
      else {
        require(step->index == next, "actions keep their order");
        next += step->kind != PP_STEP_FORWARD;
      }
    }
    require(next == schedule->first[rank + 1], "all actions are issued");
  }
  for (uint32_t number = 0; number < lowered->batches; number++) {
    const pp_batch *batch = &lowered->batch[number];
    require(posted[number] && batch->count > 0 && batch->queue < lowered->queues, "each batch is posted");
    for (uint32_t i = batch->first; i < batch->first + batch->count; i++) {
      const pp_message_end *end = &lowered->end[i];
      require(end->other < lowered->batches && lowered->batch[end->other].rank != batch->rank, "its other end is on another rank");
      pp_message_end_print(text, sizeof text, end);
    }
  }
  free(posted);
}

static void check_runtime(const pp_schedule *schedule, const pp_times *times, const pp_runtime *runtime) {
  const pp_hardware hardware = { .contention = draw(2) ? 1 : 1.5, .heat_onset = 0.25 * draw(4), .heat_slope = draw(2) ? 0 : 0.3,
                                 .heat_tau = draw(2) ? 1 : 1e-6 };
  pp_error error = { .id = "" };
  pp_lowered lowered;
  pp_simulation run;
  pp_status status = pp_runtime_lower(schedule, runtime, &lowered, &error);
  if (status == PP_OK) {
    check_lowered(schedule, &lowered);
    pp_lowered_free(&lowered);
    status = pp_runtime_simulate(schedule, times, runtime, &hardware, true, &run, &error);
  } else require(pp_runtime_simulate(schedule, times, runtime, &hardware, true, &run, NULL) == status, "what is not lowered does not run");
  if (status != PP_OK) {
    require(status == PP_ILLEGAL && error.message[0] && !run.busy, "and says why");
    require(strcmp(error.id, "engine.runtime") == 0 || strcmp(error.id, "engine.deadlock") == 0, "by one of two rules");
    return;
  }
  check_figures(&run);
  check_order(schedule, times, &run, runtime->pairs != PP_PAIR_OVERLAPPED);
  pp_simulation_free(&run);
}

/* A small program under every runtime; of a larger one two, that follow from the input. */
static void check_runtimes(const pp_schedule *schedule, const pp_times *times) {
  enum { CHOICES = 2 * 2 * 3, OTHERS = PP_RUNTIMES - 2, ALL = CHOICES + OTHERS };
  static const pp_runtime_kind others[] = { PP_RUNTIME_TORCH_SINGLE, PP_RUNTIME_DEEPSEEK, PP_RUNTIME_PIPEPLAN, PP_RUNTIME_MEGATRON };
  _Static_assert(sizeof others / sizeof *others == OTHERS, "each runtime but the ideal one and torch-multi");
  const bool all = schedule->first[schedule->request.ranks] <= 24;
  for (unsigned n = 0; n < (all ? ALL : 2); n++) {
    const unsigned k = all ? n : draw(ALL);
    pp_runtime runtime = *pp_runtime_preset(k < CHOICES ? PP_RUNTIME_TORCH_MULTI : others[k - CHOICES]);
    runtime.queues = (pp_queueing)(k < CHOICES ? k % 2 : draw(2));
    if (k < CHOICES) {
      runtime.receives = (pp_receiving)(k / 2 % 2);
      runtime.pairs = (pp_pairing)(k / 4);
    }
    check_runtime(schedule, times, &runtime);
  }
}

/* -- peaks ----------------------------------------------------------------------------------------------------------------------------- */

/* PyTorch's buffers of a rank, counted over all stages. */
static double buffers_on(const pp_schedule *schedule, const pp_stage_bytes *bytes, int rank) {
  double sum = 0;
  for (int s = 0; s < schedule->stages; s++) {
    if (schedule->rank_of[s] != rank) continue;
    sum += s % schedule->stages_per_chain == 0 ? 0 : bytes[s].message;
    sum += (s + 1) % schedule->stages_per_chain == 0 ? bytes[s].kept : bytes[s].message;
  }
  return sum * schedule->microbatches_per_chain;
}

static void check_peaks(const pp_schedule *schedule) {
  const size_t stages = (size_t)schedule->stages, ranks = (size_t)schedule->request.ranks;
  pp_stage_bytes *bytes = malloc(stages * sizeof *bytes);
  double *peaks = malloc((ranks + 2 * stages) * sizeof *peaks), *stored = peaks + ranks, *pending = stored + stages;
  require(bytes && peaks, "memory");
  for (size_t s = 0; s < stages; s++) {
    stored[s] = 1 + draw(9);
    pending[s] = draw((unsigned)stored[s] + 1);
    bytes[s] = (pp_stage_bytes){ .stored = stored[s], .pending = pending[s], .deferred = draw(9), .after_weight = draw(3), .message = draw(9),
                                 .output = draw(9), .kept = draw(9), .transient = { draw(4), draw(4), draw(4), draw(4) } };
  }
  for (int k = 0; k < 2 * PP_RUNTIMES; k++) {
    pp_runtime runtime = *pp_runtime_preset((pp_runtime_kind)(k / 2));
    pp_error error = { .id = "" };
    runtime.first_skips_input = k % 2;
    pp_status status = pp_runtime_peaks(schedule, &runtime, bytes, peaks, &error);
    require(status == PP_OK || (status == PP_ILLEGAL && strcmp(error.id, "engine.runtime") == 0), "peaks are known or refused");
    for (int rank = 0; status == PP_OK && rank < schedule->request.ranks; rank++) {
      require(peaks[rank] >= 0 && peaks[rank] <= 1e12, "a peak is a number of bytes");
      if (runtime.memory != PP_MEMORY_TORCH) continue;
      double buffers = buffers_on(schedule, bytes, rank), held = pp_schedule_peak(schedule, rank, stored, pending);
      require(peaks[rank] >= buffers + (runtime.first_skips_input ? 0 : held), "no less than buffers and what is stored");
    }
  }
  free(bytes);
  free(peaks);
}

/* -- the whole ------------------------------------------------------------------------------------------------------------------------- */

static void check_waits(const pp_schedule *schedule) {
  pp_finding finding;
  pp_error error = { .id = "" };
  int buffers = 0;
  require(pp_schedule_receive_buffers(schedule, &buffers, &error) == PP_OK && buffers >= 1, "some number of buffers is enough");
  require(pp_schedule_verify_p2p(schedule, buffers, &finding, &error) == PP_OK, "that number is enough");
  require(buffers == 1 || pp_schedule_verify_p2p(schedule, buffers - 1, &finding, &error) == PP_ILLEGAL, "no fewer are");
  require(buffers == 1 || strcmp(error.id, "engine.blocking_deadlock") == 0, "for the reason that p2p blocks");
}

static void check_refused(const pp_schedule *schedule, const pp_times *times) {
  pp_error error = { .id = "" }, other = { .id = "" };
  pp_simulation run;
  require(pp_schedule_verify(schedule, &error) == PP_ILLEGAL && error.id[0] && error.message[0], "a finding says what it is");
  require(pp_simulate(schedule, times, true, &run, &other) == PP_ILLEGAL && strcmp(error.message, other.message) == 0, "to everyone");
  require(pp_runtime_simulate(schedule, times, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), &(pp_hardware){ .contention = 1 }, true, &run,
                              &other) == PP_ILLEGAL, "and runtimes");
}

static void check_program(const pp_schedule *schedule) {
  check_tables(schedule);
  check_round_trip(schedule);
  drawn_times times = draw_times(schedule);
  if (schedule->verified) {
    require(pp_schedule_verify(schedule, NULL) == PP_OK, "it is verified");
    check_waits(schedule);
    check_ideal(schedule, &times.times);
    check_runtimes(schedule, &times.times);
  } else check_refused(schedule, &times.times);
  check_peaks(schedule);
  free_times(&times);
}

/* -- where programs come from ---------------------------------------------------------------------------------------------------------- */

/* True when it can be read; then what it is was checked, too. */
static bool check_text(const char *text, size_t length, int directions, bool *verified) {
  pp_schedule schedule;
  pp_csv_place place;
  pp_error error = { .id = "" };
  pp_status status = pp_schedule_read_csv(text, length, directions, &schedule, &place, &error);
  if (status == PP_ILLEGAL) require(error.id[0] && error.message[0] && !schedule.action, "an error says what it is");
  if (status != PP_OK) return false;
  *verified = schedule.verified;
  if (schedule.first[schedule.request.ranks] <= MOST_PROGRAM && (size_t)schedule.stages * (size_t)schedule.chunks_per_rank <= 1 << 20)
    check_program(&schedule);
  pp_schedule_free(&schedule);
  return true;
}

static void check_request(fuzz_bytes *bytes) {
  pp_schedule_request request = { .kind = (pp_schedule_kind)take_below(bytes, PP_SCHEDULE_KINDS), .ranks = 1 + (int)take_below(bytes, 8),
                                  .microbatches = 1 + (int)take_below(bytes, 17), .chunks = 1 + (int)take_below(bytes, 4),
                                  .group = (int)take_below(bytes, 12) - 1, .limit = (int)take_below(bytes, 12),
                                  .released = take_below(bytes, 5) / 4.0, .brief = take_below(bytes, 2) };
  int chunks = pp_schedule_traits_of(request.kind)->chunks;
  pp_stage_times stage[64];
  pp_schedule schedule;
  pp_error error = { .id = "" };
  if (chunks) request.chunks = chunks;
  if (take_below(bytes, 3)) request.group = 0;
  if (request.kind != PP_ZB_AUTO) request.limit = 0;
  for (int s = 0; s < 64; s++) stage[s] = (pp_stage_times){ some_seconds(), some_seconds(), some_seconds(), some_seconds() };
  request.times = stage;
  request.p2p = some_seconds();
  pp_status status = pp_schedule_build(&request, &schedule, &error);
  require(status == PP_OK || error.message[0], "what is not built says why");
  if (status != PP_OK) return;
  require(schedule.verified && schedule.first[request.ranks] == pp_schedule_actions(&request), "what is built runs");
  check_program(&schedule);
  pp_schedule_free(&schedule);
}

/* Small, or any positive int. */
static int take_size(fuzz_bytes *bytes) {
  unsigned value = take_byte(bytes);
  if (value & 1) return 1 + (int)(value >> 1);
  for (int k = 0; k < 3; k++) value = value << 8 | take_byte(bytes);
  return 1 + (int)(value & 0x7FFFFFFE);
}

/* The field of that name; NULL for one that no number mends. */
static int *field_of(pp_schedule_request *request, const char *name) {
  return strcmp(name, "ranks") == 0 ? &request->ranks : strcmp(name, "microbatches") == 0 ? &request->microbatches
       : strcmp(name, "virtual") == 0 ? &request->chunks : strcmp(name, "group") == 0 ? &request->group : NULL;
}

static void check_legality(fuzz_bytes *bytes) {
  pp_schedule_request request = { .kind = (pp_schedule_kind)take_below(bytes, PP_SCHEDULE_KINDS), .ranks = take_size(bytes),
                                  .microbatches = take_size(bytes), .chunks = take_size(bytes), .group = take_size(bytes) - 1 };
  pp_error error = { .id = "" };
  if (take_byte(bytes) & 1) request.group = take_byte(bytes) & 1 ? PP_GROUP_ROUNDS : 0;
  for (int k = 0; k < 8 && pp_schedule_check(&request, &error) != PP_OK; k++) {
    int *field = field_of(&request, error.field);
    require(error.id[0] && error.message[0], "what is illegal says why");
    if (!field || !isfinite(error.nearest)) return;
    require(error.nearest >= 1 && error.nearest <= INT32_MAX && *field != (int)error.nearest, "the nearest legal value is another");
    *field = (int)error.nearest;
  }
  require(pp_schedule_check(&request, &error) == PP_OK, "to go from one nearest value to the next ends at something legal");
  require(pp_schedule_actions(&request) > 0 && pp_schedule_actions(&request) <= PP_MAX_ACTIONS, "and not too large");
}

/* An execution: what each (stage, microbatch) of each chain has had, and each rank's actions so far as text. */
typedef struct {
  int ranks, stages, per_chain, microbatches;
  int rank_of[MOST_STAGES];
  bool forward[MOST_STAGES][MOST_MICROBATCHES], backward[MOST_STAGES][MOST_MICROBATCHES], pending[MOST_STAGES][MOST_MICROBATCHES];
  char line[MOST_RANKS][4096];
} execution;

static bool may_forward(const execution *run, int s, int m) {
  return !run->forward[s][m] && (s % run->per_chain == 0 || run->forward[s - 1][m]);
}

static bool may_backward(const execution *run, int s, int m) {
  return run->forward[s][m] && !run->backward[s][m] && ((s + 1) % run->per_chain == 0 || run->backward[s + 1][m]);
}

static void append(execution *run, int rank, const char *cell) {
  char *line = run->line[rank];
  size_t used = strlen(line);
  snprintf(line + used, sizeof run->line[rank] - used, "%s%s", used ? "," : "", cell);
}

/* The first thing that can be done from (stage, microbatch) number `from` on; false when all is done. Pairs and splits as the bytes say. */
static bool advance(execution *run, fuzz_bytes *bytes) {
  const int all = run->stages * run->microbatches;
  const unsigned from = take_below(bytes, (unsigned)all), what = take_byte(bytes);
  char cell[PP_ACTION_TEXT];
  for (int k = 0; k < 3 * all; k++) {
    const int n = ((int)from + k / 3) % all, s = n / run->microbatches, m = n % run->microbatches, rank = run->rank_of[s];
    const unsigned kind = ((unsigned)k + what) % 3;
    if (kind == 0 && run->pending[s][m]) {
      run->pending[s][m] = false;
      snprintf(cell, sizeof cell, "%dW%d", s, m);
    } else if (kind == 1 && may_backward(run, s, m)) {
      run->backward[s][m] = true;
      run->pending[s][m] = what & 4;
      snprintf(cell, sizeof cell, "%d%c%d", s, what & 4 ? 'I' : 'B', m);
    } else if (kind == 2 && may_forward(run, s, m)) {
      int pair = -1;
      for (int p = 0; (what & 8) && pair < 0 && p < all; p++)
        if (run->rank_of[p / run->microbatches] == rank && may_backward(run, p / run->microbatches, p % run->microbatches)) pair = p;
      run->forward[s][m] = true;
      snprintf(cell, sizeof cell, "%dF%d", s, m);
      if (pair >= 0) {
        run->backward[pair / run->microbatches][pair % run->microbatches] = true;
        snprintf(cell, sizeof cell, what & 16 ? "(%dF%d;%dB%d)OVERLAP_F_B" : "(%3$dB%4$d;%1$dF%2$d)OVERLAP_F_B", s, m, pair / run->microbatches,
                 pair % run->microbatches);
      }
    } else continue;
    append(run, rank, cell);
    return true;
  }
  return false;
}

static void check_execution(fuzz_bytes *bytes) {
  static execution run;
  memset(&run, 0, sizeof run);
  const int directions = 1 + (int)take_below(bytes, 2);
  run.ranks = 1 + (int)take_below(bytes, MOST_RANKS);
  run.per_chain = 1 + (int)take_below(bytes, MOST_STAGES / 2);
  run.stages = run.per_chain * directions;
  run.microbatches = 1 + (int)take_below(bytes, MOST_MICROBATCHES);
  const unsigned placement = take_byte(bytes), damage = take_byte(bytes);
  for (int s = 0; s < run.stages; s++) {
    int within = s % run.per_chain;
    run.rank_of[s] = placement % 4 == 0 ? within % run.ranks : placement % 4 == 1 ? within * run.ranks / run.per_chain
                                                                                     : (int)take_below(bytes, (unsigned)run.ranks);
    if (placement % 4 == 1 && s >= run.per_chain) run.rank_of[s] = run.ranks - 1 - run.rank_of[s];
  }
  while (advance(&run, bytes)) {}
  static char text[MOST_RANKS * 4096 + MOST_RANKS];
  size_t length = 0;
  bool whole = true, verified;
  for (int rank = 0; rank < run.ranks; rank++) {
    whole = whole && run.line[rank][0] && strlen(run.line[rank]) + PP_ACTION_TEXT < sizeof run.line[rank];
    length += (size_t)snprintf(text + length, sizeof text - length, "%s\n", run.line[rank]);
  }
  for (unsigned k = damage % 8 < 5 ? 0 : damage % 8 - 4; k > 0; k--, whole = false) {
    size_t at = take_below(bytes, (unsigned)length);
    text[at] = "0123456789FBIW,\n();"[take_byte(bytes) % 19];
  }
  bool read = check_text(text, length, directions, &verified);
  if (whole) require(read && verified, "what was executed is a program");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bool verified;
  if (size == 0) return 0;
  seed_from(data, size);
  fuzz_bytes bytes = { data + 1, data + size };
  switch (data[0]) {
    case '1': case '2': check_text((const char *)data + 1, size - 1, data[0] - '0', &verified); break;
    case 'b': check_request(&bytes); break;
    case 'c': check_legality(&bytes); break;
    default: check_execution(&bytes); break;
  }
  return 0;
}

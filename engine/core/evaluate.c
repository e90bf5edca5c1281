/*
** evaluate.c: bytes, seconds and bounds of one candidate. See evaluate.h.
*/
#include "core/evaluate.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/meter.h"
#include "core/steady.h"

/* ----------------------------------------------------------------------------------------------------------------------------- time */

static double step_sum(const pp_step_seconds *step) {
  return step->gradient_sync + step->parameter_sync + step->optimizer + step->mirror;
}

void pp_evaluate_parameters(const pp_candidate *candidate, const pp_layout_costs *costs, const pp_stage *stages, double *dense,
                            double *expert) {
  int ranks = candidate->layout.pipeline;
  double copy[PP_MAX_LAYERS];
  for (int rank = 0; rank < ranks; rank++) dense[rank] = expert[rank] = copy[rank] = 0;
  for (int s = 0; s < pp_stages_count(candidate); s++) {
    int rank[2], holders = pp_stages_ranks(candidate, s, rank);
    for (int i = 0; i < holders; i++)
      for (int block = 0; block < PP_BLOCKS; block++) {
        if (stages[s].count[block] == 0) continue;
        dense[rank[i]] += stages[s].count[block] * costs->parameters[block].dense;
        expert[rank[i]] += stages[s].count[block] * costs->parameters[block].expert;
        copy[rank[i]] = fmax(copy[rank[i]], costs->parameters[block].embedding_copy);
      }
  }
  /* Stage 0 holds the embedding: its ranks need no further copy. */
  int rank[2], holders = pp_stages_ranks(candidate, 0, rank);
  for (int i = 0; i < holders; i++) copy[rank[i]] = 0;
  for (int r = 0; r < ranks; r++) dense[r] += copy[r];
}

/* What the step takes beside the pipeline on the rank where it takes longest. */
static void step_seconds(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, const pp_stage *stages,
                         pp_step_seconds *out) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  int ranks = candidate->layout.pipeline, copies = traits ? traits->copies : 1;
  double dense[PP_MAX_LAYERS], expert[PP_MAX_LAYERS];
  *out = (pp_step_seconds){ 0, 0, 0, 0 };
  pp_evaluate_parameters(candidate, costs, stages, dense, expert);
  for (int rank = 0; rank < ranks; rank++) {
    pp_step_seconds here;
    bool dominated = false;
    for (int other = 0; other < rank && !dominated; other++) dominated = dense[other] >= dense[rank] && expert[other] >= expert[rank];
    if (dominated) continue;
    pp_cost_step(&candidate->layout, problem->training, problem->device, problem->network, dense[rank], expert[rank], copies, &here);
    if (step_sum(&here) > step_sum(out)) *out = here;
  }
}

static void finish_timing(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, const pp_stage *stages,
                          pp_timing *timing) {
  step_seconds(problem, candidate, costs, stages, &timing->step);
  timing->step_seconds = timing->makespan_seconds + step_sum(&timing->step) + problem->step_overhead_seconds;
}

/* Do pairs take another time than F and B one after the other? */
static bool pairs_overlap(const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  return pp_schedule_hides_alltoall(traits, kernel) || (traits->overlaps && costs->pair_share > 0);
}

/* What a rank's card takes over what a mean one does. */
static double slowness(const pp_problem *problem, int ranks, int rank) {
  return problem->speeds == ranks ? 1 / problem->rank_speed[rank] : 1;
}

/* Stage and pair times of a program, in one allocation that `stage` owns. */
static pp_status times_of(const pp_problem *problem, const pp_layout_costs *costs, const pp_schedule *schedule,
                          const pp_stage_seconds *seconds, bool overlaps, pp_stage_times **stage, double **pair, pp_error *error) {
  size_t stages = (size_t)schedule->stages, slots = (size_t)schedule->chunks_per_rank;
  pp_device device = *problem->device;
  *stage = pp_allocate(stages * sizeof **stage + stages * slots * sizeof **pair);
  if (!*stage) return pp_fail(error, PP_NO_MEMORY, "not enough memory for the times of %zu stages", stages);
  *pair = overlaps ? (double *)(void *)(*stage + stages) : NULL;
  device.hides_alltoall = true;
  device.pair_share = costs->pair_share;
  for (size_t s = 0; s < stages; s++) {
    const pp_stage_seconds *forward = &seconds[s % (size_t)schedule->stages_per_chain];
    const double slow = slowness(problem, schedule->request.ranks, schedule->rank_of[s]);
    (*stage)[s] = (pp_stage_times){ slow * forward->forward, slow * forward->input, slow * forward->weight, slow * forward->full };
    for (size_t slot = 0; overlaps && slot < slots; slot++) {
      int other = pp_schedule_stages_of(schedule, schedule->rank_of[s])[slot] % schedule->stages_per_chain;
      (*pair)[s * slots + slot] = slow * pp_cost_pair(&device, forward, &seconds[other]);
    }
  }
  return PP_OK;
}

/* zb_auto is planned from these times. */
static void plan_from(const pp_candidate *candidate, const pp_stage_seconds *seconds, double hop, pp_stage_times *times,
                      pp_schedule_request *request) {
  if (candidate->kind != PP_ZB_AUTO) return;
  for (int s = 0; s < request->ranks; s++)
    times[s] = (pp_stage_times){ seconds[s].forward, seconds[s].input, seconds[s].weight, seconds[s].full };
  request->times = times;
  request->p2p = hop;
  request->brief = true;
}

/* Every action `factor` times as long. */
static void stretch(const pp_schedule *schedule, pp_stage_times *stage, double *pair, double factor) {
  for (int s = 0; s < schedule->stages; s++) {
    stage[s].forward *= factor;
    stage[s].input *= factor;
    stage[s].weight *= factor;
    stage[s].full *= factor;
    for (int slot = 0; pair && slot < schedule->chunks_per_rank; slot++) pair[s * schedule->chunks_per_rank + slot] *= factor;
  }
}

/* Does a pair take less than its forward and its backward? */
static bool pairs_save(const pp_schedule *schedule, const pp_stage_times *stage, const double *pair) {
  const int slots = schedule->chunks_per_rank;
  for (int s = 0; pair && s < schedule->stages; s++) {
    for (int slot = 0; slot < slots; slot++) {
      const int other = pp_schedule_stages_of(schedule, schedule->rank_of[s])[slot];
      if (pair[(size_t)s * (size_t)slots + (size_t)slot] < (1 - 1e-9) * (stage[s].forward + stage[other].full)) return true;
    }
  }
  return false;
}

pp_status pp_evaluate_check(const pp_problem *problem, const pp_candidate *candidate, pp_error *error) {
  const bool whole = candidate->kind == PP_NO_SCHEDULE || problem->runtime || candidate->microbatches > INT_MAX ||
                     !pp_schedule_traits_of((pp_schedule_kind)candidate->kind)->has_periods;
  pp_status status = pp_candidate_check_within(candidate, problem->model, whole ? PP_MOST_WHOLE : INT64_MAX, error);
  if (status == PP_ILLEGAL && error && strcmp(error->id, "engine.too_many_actions") == 0 && strcmp(error->field, "microbatches") == 0)
    return pp_illegal(error, "engine.too_many_actions", "microbatches", error->nearest,
                      "M is %lld; at most %.0f microbatches of %s on %d ranks can be simulated%s%s", (long long)candidate->microbatches,
                      error->nearest, pp_stages_traits(candidate)->name, candidate->layout.pipeline,
                      problem->runtime ? " as run by " : "", problem->runtime ? problem->runtime->name : "");
  return status;
}

/* The request of the program to simulate: the candidate's, or the one that stands for it. */
static pp_schedule_request request_of(const pp_problem *problem, const pp_candidate *candidate) {
  const pp_schedule_request whole = pp_candidate_request(candidate, candidate->microbatches);
  pp_schedule_request shorter;
  const bool stands = !problem->runtime && pp_schedule_most_actions(&whole) > PP_MOST_WHOLE && pp_steady_shorten(&whole, &shorter);
  return stands ? shorter : whole;
}

/* See pp_evaluate_time. */
static pp_status simulate(const pp_problem *problem, const pp_candidate *candidate, const pp_schedule *schedule, pp_stage_times *stage,
                          double *pair, double hop, pp_simulation *out, pp_error *error) {
  const pp_times times = { .stage = stage, .pair = pair, .p2p = hop };
  const pp_runtime *runtime = problem->runtime;
  pp_error refused;
  if (schedule->request.microbatches < candidate->microbatches)
    return pp_steady_simulate(schedule, (int)candidate->microbatches, &times, PP_MOST_PERIODS, out, NULL, error);
  if (!runtime) return pp_simulate(schedule, &times, false, out, error);
  pp_runtime multi = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  if (!pairs_save(schedule, stage, pair)) multi.pairs = PP_PAIR_SPLIT;
  if (runtime->kind == PP_RUNTIME_TORCH_MULTI) runtime = &multi;
  pp_status status = pp_runtime_simulate(schedule, &times, runtime, &problem->hardware, false, out, &refused);
  if (status == PP_ILLEGAL && runtime->kind == PP_RUNTIME_TORCH_SINGLE)
    status = pp_runtime_simulate(schedule, &times, &multi, &problem->hardware, false, out, &refused);
  if (status == PP_OK) return PP_OK;
  if (status != PP_ILLEGAL) {
    if (error) *error = refused;
    return status;
  }
  stretch(schedule, stage, pair, 1 + problem->hardware.heat_slope);
  return pp_simulate(schedule, &times, false, out, error);
}

pp_status pp_evaluate_time(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                           bool overlap, pp_timing *out, pp_schedule *keep_schedule, pp_simulation *keep_simulation, pp_error *error) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  pp_stage_times *stage_times = NULL, plan_times[PP_MAX_LAYERS];
  double *pair = NULL;
  pp_schedule schedule;
  pp_simulation simulation;
  pp_schedule_request request;
  pp_status status = pp_stages_fill(problem, candidate, costs, kernel, stages, error);
  if (status != PP_OK) return status;
  pp_stages_seconds(candidate, costs, kernel, stages, seconds);
  if (candidate->kind == PP_NO_SCHEDULE) {
    out->makespan_seconds = (double)candidate->microbatches * (seconds[0].forward + seconds[0].full);
    out->bubble_fraction = 0;
    finish_timing(problem, candidate, costs, stages, out);
    return PP_OK;
  }
  request = request_of(problem, candidate);
  plan_from(candidate, seconds, costs->hop, plan_times, &request);
  status = pp_schedule_build(&request, &schedule, error);
  if (status != PP_OK) return status;
  status = times_of(problem, costs, &schedule, seconds, overlap && pairs_overlap(candidate, costs, kernel), &stage_times, &pair, error);
  if (status == PP_OK) {
    status = simulate(problem, candidate, &schedule, stage_times, pair, costs->hop, &simulation, error);
    pp_free(stage_times);
  }
  if (status != PP_OK) {
    pp_schedule_free(&schedule);
    return status;
  }
  out->makespan_seconds = simulation.makespan;
  out->bubble_fraction = simulation.bubble_fraction;
  finish_timing(problem, candidate, costs, stages, out);
  if (keep_schedule) {
    *keep_schedule = schedule;
    *keep_simulation = simulation;
  } else {
    pp_simulation_free(&simulation);
    pp_schedule_free(&schedule);
  }
  return PP_OK;
}

void pp_comparison_free(pp_comparison *comparison) {
  if (comparison->built) pp_schedule_free(&comparison->longer);
  comparison->built = false;
}

static int64_t group_of(const pp_candidate *candidate) {
  const pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  return pp_schedule_group(&request);
}

/* The group after which a schedule with groups repeats; elsewhere both directions of every rank. */
static int64_t period_of(const pp_candidate *candidate) {
  const int64_t group = group_of(candidate);
  return group > 0 ? group : 2 * (int64_t)candidate->layout.pipeline;
}

/* Two periods more than the capped program, but not more than there are: then nothing has to be extrapolated. A
** microbatch of looped BFS goes round P ranks before it comes back, so that one says nothing of those after it; GPipe's step grows by the
** slowest F and the slowest B with each from the first one on. */
static int64_t longer_microbatches(const pp_candidate *candidate, const pp_schedule *program) {
  if (candidate->kind == PP_LOOPED_BFS) return candidate->microbatches;
  int64_t longer = program->request.microbatches + 2 * period_of(candidate);
  return longer < candidate->microbatches ? longer : candidate->microbatches;
}

/* What stands for a candidate's program where it is not planned yet. */
static pp_schedule_request stand_in(const pp_candidate *candidate, int64_t microbatches) {
  pp_schedule_request request = pp_candidate_shortened(candidate, microbatches);
  if (request.kind == PP_ZB_AUTO) {
    request.kind = PP_ZB_H2;
    request.limit = 0;
  }
  return request;
}

/* Kept from candidate to candidate, for many want the same. */
static pp_status build_longer(const pp_candidate *candidate, const pp_schedule *program, pp_comparison *out, pp_error *error) {
  const int64_t microbatches = longer_microbatches(candidate, program);
  const pp_schedule_request request = stand_in(candidate, microbatches);
  if (out->built && out->longer.request.microbatches == microbatches) return PP_OK;
  pp_comparison_free(out);
  pp_status status = pp_schedule_build(&request, &out->longer, error);
  out->built = status == PP_OK;
  return status;
}

pp_status pp_evaluate_split(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                            const pp_schedule *program, pp_comparison *comparison, pp_workspace *workspace, double *seconds,
                            pp_error *error) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds stage_seconds[PP_MAX_LAYERS];
  pp_stage_times *stage_times = NULL;
  double *pair = NULL;
  pp_simulation shorter, longer;
  pp_timing timing;
  int64_t more = candidate->microbatches - program->request.microbatches;
  pp_status status = pp_stages_fill(problem, candidate, costs, kernel, stages, error);
  if (status == PP_OK && more > 0) status = build_longer(candidate, program, comparison, error);
  if (status != PP_OK) return status;
  pp_stages_seconds(candidate, costs, kernel, stages, stage_seconds);
  status = times_of(problem, costs, program, stage_seconds, pairs_overlap(candidate, costs, kernel), &stage_times, &pair, error);
  if (status != PP_OK) return status;
  const pp_times times = { .stage = stage_times, .pair = pair, .p2p = costs->hop };
  const bool whole = more > 0 && comparison->longer.request.microbatches == candidate->microbatches;
  status = pp_simulate_in(whole ? &comparison->longer : program, &times, false, workspace, &shorter, error);
  timing.makespan_seconds = shorter.makespan;
  if (whole) more = 0;
  if (status == PP_OK && more > 0) status = pp_simulate_in(&comparison->longer, &times, false, workspace, &longer, error);
  pp_free(stage_times);
  if (status != PP_OK) return status;
  if (more > 0)
    timing.makespan_seconds += (longer.makespan - shorter.makespan) * (double)more /
                               (comparison->longer.request.microbatches - program->request.microbatches);
  finish_timing(problem, candidate, costs, stages, &timing);
  *seconds = timing.step_seconds;
  return PP_OK;
}

/* ---------------------------------------------------------------------------------------------------------------------- lower bound */

/* What is certain about one rank. All in seconds. */
typedef struct {
  double work;       /* everything it executes, no overlap */
  double before;     /* of that, what precedes the end of its last backward: all but split-off W */
  double head, tail; /* the pipeline filling down to its earliest stage, draining from its earliest stage */
  double saving;     /* most that overlapped pairs save: every forward is in one at most */
} certain_work;

/* The rank's slots: its stages of both chains, at most as many as fit `slot`. */
static void add_stage(certain_work *rank, const pp_stage_seconds *stage, double microbatches, bool split) {
  double backward = split ? fmin(stage->full, stage->input + stage->weight) : stage->full;
  double until_input = split ? fmin(stage->full, stage->input) : stage->full;
  rank->work += microbatches * (stage->forward + backward);
  rank->before += microbatches * (stage->forward + until_input);
}

static double pair_saving(const pp_device *device, const pp_stage_seconds *ahead, const pp_stage_seconds *back) {
  return fmax(0, ahead->forward + back->full - pp_cost_pair(device, ahead, back));
}

/* The most that a pair with the stage's forward saves. Its backward is of the stage that a V or two chains put beside it, or of any in a loop. */
static double stage_saving(const pp_device *device, const pp_candidate *candidate, const pp_stage_seconds *seconds, int stage) {
  const int stages = pp_stages_count(candidate), ranks = candidate->layout.pipeline;
  double most = 0;
  if (pp_stages_traits(candidate)->placement != PP_PLACE_LOOP) return pair_saving(device, &seconds[stage], &seconds[stages - 1 - stage]);
  for (int other = stage % ranks; other < stages; other += ranks)
    most = fmax(most, pair_saving(device, &seconds[stage], &seconds[other]));
  return most;
}

static double rank_bound(const certain_work *rank) {
  return rank->head + fmax(fmax(0, rank->work - rank->saving), fmax(0, rank->before - rank->saving) + rank->tail);
}

double pp_evaluate_bound(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  certain_work rank[PP_MAX_LAYERS];
  pp_device device = *problem->device;
  pp_timing timing = { 0 };
  double filled = 0, drained = 0;
  int ranks = candidate->layout.pipeline;
  if (pp_stages_fill(problem, candidate, costs, kernel, stages, NULL) != PP_OK) return INFINITY;
  pp_stages_seconds(candidate, costs, kernel, stages, seconds);
  if (!traits) {
    timing.makespan_seconds = (double)candidate->microbatches * (seconds[0].forward + seconds[0].full);
    finish_timing(problem, candidate, costs, stages, &timing);
    return timing.step_seconds;
  }
  device.hides_alltoall = true;
  device.pair_share = costs->pair_share;
  for (int r = 0; r < ranks; r++) rank[r] = (certain_work){ 0, 0, INFINITY, INFINITY, 0 };
  for (int s = 0; s < pp_stages_count(candidate); s++) {
    int holder[2], holders = pp_stages_ranks(candidate, s, holder);
    const double microbatches = (double)candidate->microbatches / traits->chains;
    if (s > 0) {
      int previous[2];
      pp_stages_ranks(candidate, s - 1, previous);
      double hop = previous[0] == holder[0] ? 0 : costs->hop;
      filled += seconds[s - 1].forward + hop;
      drained += (traits->split_backward ? fmin(seconds[s - 1].full, seconds[s - 1].input) : seconds[s - 1].full) + hop;
    }
    for (int i = 0; i < holders; i++) {
      certain_work *here = &rank[holder[i]];
      add_stage(here, &seconds[s], microbatches, traits->split_backward);
      here->head = fmin(here->head, filled);
      here->tail = fmin(here->tail, drained);
      if (pairs_overlap(candidate, costs, kernel)) here->saving += microbatches * stage_saving(&device, candidate, seconds, s);
    }
  }
  double fastest = INFINITY;
  for (int r = 0; r < ranks; r++) {
    timing.makespan_seconds = fmax(timing.makespan_seconds, rank_bound(&rank[r]));
    fastest = fmin(fastest, slowness(problem, ranks, r));
  }
  timing.makespan_seconds *= fmin(1, fastest);  /* hops do not shrink, but as a bound it holds */
  finish_timing(problem, candidate, costs, stages, &timing);
  return timing.step_seconds * (1 - 1e-9);  /* the sums above round differently from a simulation's */
}

/* --------------------------------------------------------------------------------------------------------------------------- memory */

int64_t pp_evaluate_capped_microbatches(const pp_candidate *candidate) {
  int64_t ranks = candidate->layout.pipeline, microbatches = candidate->microbatches, cap;
  switch (candidate->kind) {
    case PP_NO_SCHEDULE:
      return 1;
    case PP_GPIPE: case PP_LOOPED_BFS:  /* hold every microbatch: pp_evaluate_repeats */
      cap = 1;
      break;
    case PP_1F1B:   /* rank r holds min(P − r, M) */
      cap = ranks;
      break;
    case PP_INTERLEAVED_1F1B: case PP_INTERLEAVED_1F1B_OVERLAP: case PP_INTERLEAVED_ZERO_BUBBLE: {
      int64_t group = group_of(candidate);   /* steady state repeats with the group; the last, smaller group has to stay */
      cap = 3 * group + microbatches % group;
      break;
    }
    default:        /* warm-up of at most 2P forwards, cool-down alike, and some of what repeats between; even where M is */
      cap = 6 * ranks;
      if (cap % 2 != microbatches % 2) cap++;
      break;
  }
  return microbatches < cap ? microbatches : cap;
}

int64_t pp_evaluate_repeats(const pp_candidate *candidate) {
  return candidate->kind == PP_GPIPE || candidate->kind == PP_LOOPED_BFS ? candidate->microbatches : 1;
}

static inline void count_up(uint32_t *now, uint32_t *most) {
  if (++*now > *most) *most = *now;
}

/* The most that each slot of a rank ever holds, stored and pending. `now` has room for both counts of every slot. */
static void rank_profile(const pp_schedule *schedule, int rank, uint32_t *now, uint32_t *stored, uint32_t *pending) {
  const size_t slots = (size_t)schedule->chunks_per_rank;
  const pp_action *end = schedule->action + schedule->first[rank + 1];
  uint32_t *now_pending = now + slots;
  memset(now, 0, 2 * slots * sizeof *now);
  for (const pp_action *action = schedule->action + schedule->first[rank]; action < end; action++) {
    const int slot = schedule->slot_of[action->stage];
    switch (action->kind) {
      case PP_F: count_up(&now[slot], &stored[slot]); break;
      case PP_FB:
        count_up(&now[slot], &stored[slot]);
        now[schedule->slot_of[action->stage_b]]--;
        break;
      case PP_I:
        count_up(&now_pending[slot], &pending[slot]);
        now[slot]--;
        break;
      case PP_W: now_pending[slot]--; break;
      default: now[slot]--; break;
    }
  }
}

pp_status pp_memory_program_build(const pp_candidate *candidate, pp_memory_program *out, pp_error *error) {
  pp_schedule_request request;
  pp_status status;
  size_t entries, slots;
  request = stand_in(candidate, pp_evaluate_capped_microbatches(candidate));
  status = pp_schedule_build(&request, &out->schedule, error);
  if (status != PP_OK) return status;
  slots = (size_t)out->schedule.chunks_per_rank;
  entries = (size_t)request.ranks * slots;
  out->stored = pp_allocate_zeros((2 * entries + 2 * slots) * sizeof *out->stored);
  if (!out->stored) {
    pp_schedule_free(&out->schedule);
    return pp_fail(error, PP_NO_MEMORY, "not enough memory for the profile of %d ranks", request.ranks);
  }
  out->pending = out->stored + entries;
  for (int rank = 0; rank < request.ranks; rank++)
    rank_profile(&out->schedule, rank, out->stored + 2 * entries, out->stored + (size_t)rank * slots, out->pending + (size_t)rank * slots);
  return PP_OK;
}

void pp_memory_program_free(pp_memory_program *program) {
  pp_schedule_free(&program->schedule);
  pp_free(program->stored);
  program->stored = program->pending = NULL;
}

double pp_evaluate_overhead(const pp_problem *problem, const pp_candidate *candidate) {
  const pp_layout *layout = &candidate->layout;
  if (layout->pipeline == 1 || problem->buffered_messages <= 0) return problem->overhead_bytes;
  return problem->overhead_bytes + problem->buffered_messages * layout->chunks * (double)candidate->microbatches *
                                       pp_cost_hop_bytes(problem->model, layout, problem->training);
}

/* What each stage of a chain needs, at the microbatches of a memory program. */
static pp_status fill_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                             pp_stage_memory *out, pp_error *error) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  const double repeats = (double)pp_evaluate_repeats(candidate);
  pp_stage stages[PP_MAX_LAYERS];
  pp_status status = pp_stages_fill(problem, candidate, costs, kernel, stages, error);
  if (status != PP_OK) return status;
  pp_memory_stages(stages, pp_stages_count(candidate), costs->bytes[traits ? traits->copies - 1 : 0], out);
  for (int s = 0; s < pp_stages_count(candidate); s++) out[s].stored *= repeats;
  return PP_OK;
}

pp_status pp_evaluate_ranks(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                            const pp_schedule *program, pp_rank_bytes *out, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  double scratch[4 * PP_MAX_LAYERS];
  const double overhead = pp_evaluate_overhead(problem, candidate);
  pp_status status = fill_memory(problem, candidate, costs, kernel, stages, error);
  if (status != PP_OK) return status;
  if (!program) pp_memory_holding(stages, stages->stored, overhead, out);
  else for (int r = 0; r < candidate->layout.pipeline; r++) pp_memory_rank(program, r, stages, overhead, scratch, &out[r]);
  return PP_OK;
}

pp_status pp_evaluate_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                             const pp_memory_program *program, pp_rank_bytes *out, int *rank, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  double bound[PP_MAX_LAYERS], scratch[4 * PP_MAX_LAYERS];
  const double overhead = pp_evaluate_overhead(problem, candidate);
  int ranks = candidate->layout.pipeline, first = 0;
  *rank = 0;
  if (!program) return pp_evaluate_ranks(problem, candidate, costs, kernel, NULL, out, error);
  pp_status status = fill_memory(problem, candidate, costs, kernel, stages, error);
  if (status != PP_OK) return status;
  for (int r = 0; r < ranks; r++) {
    const size_t slots = (size_t)r * (size_t)program->schedule.chunks_per_rank;
    pp_rank_bytes most;
    pp_memory_rank_bound(&program->schedule, r, stages, program->stored + slots, program->pending + slots, overhead, &most);
    bound[r] = most.total;
    if (bound[r] > bound[first]) first = r;
  }
  /* The likeliest rank first: it rules most others out. */
  pp_memory_rank(&program->schedule, first, stages, overhead, scratch, out);
  *rank = first;
  for (int r = 0; r < ranks; r++) {
    pp_rank_bytes here;
    if (r == first || bound[r] < out->total) continue;
    pp_memory_rank(&program->schedule, r, stages, overhead, scratch, &here);
    if (here.total > out->total || (here.total >= out->total && r < *rank)) {
      *out = here;
      *rank = r;
    }
  }
  return PP_OK;
}

pp_status pp_evaluate_limited_memory(const pp_problem *problem, const pp_candidate *candidate, const pp_layout_costs *costs, bool kernel,
                                     double *bytes, int *rank, int *limit, pp_error *error) {
  pp_stage_memory stages[PP_MAX_LAYERS];
  const int ranks = candidate->layout.pipeline;
  const double overhead = pp_evaluate_overhead(problem, candidate);
  double most = 2.0 * ranks;
  pp_status status = fill_memory(problem, candidate, costs, kernel, stages, error);
  if (status != PP_OK) return status;
  for (int r = 0; r < ranks; r++) {
    const double chunk = fmax(stages[r].stored, stages[r].pending);
    pp_rank_bytes empty;
    pp_memory_holding(&stages[r], 0, overhead, &empty);
    if (chunk > 0) most = fmin(most, floor((problem->usable_bytes - empty.total) / chunk));
  }
  *limit = most > ranks ? (int)most : ranks;
  *bytes = -1;
  for (int r = 0; r < ranks; r++) {
    pp_rank_bytes full;
    pp_memory_holding(&stages[r], *limit * fmax(stages[r].stored, stages[r].pending), overhead, &full);
    if (full.total <= *bytes) continue;
    *bytes = full.total;
    *rank = r;
  }
  return PP_OK;
}

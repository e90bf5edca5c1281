/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluate_time.c: seconds of one candidate's step. See evaluate_time.h.
*/
#include "core/evaluate_time.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/meter.h"
#include "core/sharding.h"
#include "core/shards.h"
#include "core/steady.h"

static double step_sum(const pp_step_seconds *step) {
  return step->gradient_sync + step->parameter_sync + step->optimizer + step->mirror + step->replicas + step->sharding;
}

void pp_evaluate_parameters(const pp_priced *of, const pp_stage *stages, double *dense, double *expert) {
  int ranks = of->candidate->layout.pipeline;
  double copy[PP_MAX_LAYERS];
  for (int rank = 0; rank < ranks; rank++) dense[rank] = expert[rank] = copy[rank] = 0;
  for (int s = 0; s < pp_stages_count(of->candidate); s++) {
    int rank[2], holders = pp_stages_ranks(of->candidate, s, rank);
    for (int i = 0; i < holders; i++)
      for (int block = 0; block < PP_BLOCKS; block++) {
        if (stages[s].count[block] == 0) continue;
        dense[rank[i]] += stages[s].count[block] * of->costs->parameters[block].dense;
        expert[rank[i]] += stages[s].count[block] * of->costs->parameters[block].expert;
        copy[rank[i]] = fmax(copy[rank[i]], of->costs->parameters[block].embedding_copy);
      }
  }
  /* Stage 0 holds the embedding: its ranks need no further copy. */
  int rank[2], holders = pp_stages_ranks(of->candidate, 0, rank);
  for (int i = 0; i < holders; i++) copy[rank[i]] = 0;
  for (int r = 0; r < ranks; r++) dense[r] += copy[r];
}

/* How many of a rank's copies are of this stage. */
static int held_by(const pp_candidate *candidate, int stage, int rank) {
  int holder[2], count = 0;
  const int holders = pp_stages_ranks(candidate, stage, holder);
  for (int i = 0; i < holders; i++) count += holder[i] == rank;
  return count;
}

/* Of the rank's first forward and last backward, what hides traffic. The other ranks' last backward is as late, so that none waits for it. */
static void hide_traffic(const pp_priced *of, const pp_stage_seconds *seconds, int rank, pp_step_seconds *step) {
  const double share = of->problem->training->data_overlap;
  double forward = 0, full = 0;
  if (share <= 0) return;
  for (int s = 0; s < pp_stages_count(of->candidate); s++) {
    const int held = held_by(of->candidate, s, rank);
    forward += held * seconds[s].forward;
    full += held * seconds[s].full;
  }
  step->gradient_sync = fmax(0, step->gradient_sync - share * full);
  step->parameter_sync = fmax(0, step->parameter_sync - share * forward);
}

/* Where gradients or parameters are sharded, that is what they send, in place of once a step. */
static void shard(const pp_priced *of, const pp_stage *stages, int rank, pp_step_seconds *step) {
  const pp_layout *layout = &of->candidate->layout;
  const pp_training *training = of->problem->training;
  pp_stage held = { { 0 } };
  if (!pp_shards_parameters(layout, training) && !pp_shards_gradients(layout, training)) return;
  for (int s = 0; s < pp_stages_count(of->candidate); s++) {
    const int times = held_by(of->candidate, s, rank);
    for (int block = 0; block < PP_BLOCKS; block++) held.count[block] += times * stages[s].count[block];
  }
  if (pp_shards_parameters(layout, training)) step->parameter_sync = 0;
  if (pp_shards_gradients(layout, training)) step->gradient_sync = 0;
  step->sharding = pp_sharding_step(layout, training, of->problem->device, of->problem->network, &held, of->costs->parameters,
                                    of->costs->seconds[of->kernel], (double)of->candidate->microbatches);
}

/* What the step takes beside the pipeline on the rank where it takes longest. */
static void step_seconds(const pp_priced *of, const pp_stage *stages, pp_step_seconds *out) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  int ranks = of->candidate->layout.pipeline, copies = traits ? traits->copies : 1;
  double dense[PP_MAX_LAYERS], expert[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  /* Where nothing else tells ranks apart, one that holds no more than another takes no longer. */
  const bool alike = of->problem->training->data_overlap <= 0 && !of->problem->training->reshard;
  *out = (pp_step_seconds){ 0, 0, 0, 0, 0, 0 };
  if (of->problem->training->data_overlap > 0) pp_stages_seconds(of, stages, seconds);
  pp_evaluate_parameters(of, stages, dense, expert);
  for (int rank = 0; rank < ranks; rank++) {
    pp_step_seconds here;
    bool dominated = false;
    for (int other = 0; alike && other < rank && !dominated; other++)
      dominated = dense[other] >= dense[rank] && expert[other] >= expert[rank];
    if (dominated) continue;
    pp_cost_step(&of->candidate->layout, of->problem->training, of->problem->device, of->problem->network, dense[rank], expert[rank],
                 copies, &here);
    hide_traffic(of, seconds, rank, &here);
    shard(of, stages, rank, &here);
    if (step_sum(&here) > step_sum(out)) *out = here;
  }
}

void pp_evaluate_finish(const pp_priced *of, const pp_stage *stages, pp_timing *timing) {
  step_seconds(of, stages, &timing->step);
  timing->step_seconds = timing->makespan_seconds + step_sum(&timing->step) + of->problem->step_overhead_seconds;
}

bool pp_evaluate_pairs_overlap(const pp_priced *of) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  if (!traits) return pp_stages_overlap_alone(of);
  return pp_schedule_hides_alltoall(traits, of->kernel) || (traits->overlaps && of->costs->pair_share > 0);
}

void pp_evaluate_pair_device(const pp_priced *of, pp_device *device) {
  *device = *of->problem->device;
  device->hides_alltoall = true;
  device->pair_share = of->costs->pair_share;
  if (pp_stages_traits(of->candidate) && pp_stages_traits(of->candidate)->needs_kernel) device->hidden_share = 0;
}

/* All microbatches one after the other, each as its host hands it over, on a card that is slowed down: after a few their time grows evenly. */
static double behind_host(const pp_priced *of, const pp_stage *stages, const pp_stage_seconds *seconds, double slowed) {
  enum { FIRST = 8, NEXT = 16 };
  const pp_stage_times card = { slowed * seconds->forward, slowed * seconds->input, slowed * seconds->weight, slowed * seconds->full };
  const double microbatches = (double)of->candidate->microbatches;
  pp_profile_hosts hosts;
  pp_host_times host;
  pp_hosted_rank rank = { 0 };
  double first = 0;
  pp_profile_hosts_of(of->problem->profile, &hosts);
  pp_profile_host_of_stage(&hosts, stages, &host);
  const pp_times times = { .stage = &card, .host = &host };
  for (int m = 0; m < NEXT; m++) {
    if (m == FIRST) first = rank.card;
    if (m >= microbatches) return rank.card;
    pp_hosted_run(&rank, pp_host_work_of(&times, PP_F, 0, 0, card.forward), rank.card, card.forward);
    pp_hosted_run(&rank, pp_host_work_of(&times, PP_B, 0, 0, card.full), rank.card, card.full);
  }
  return first + (rank.card - first) / (NEXT - FIRST) * (microbatches - FIRST);
}

double pp_evaluate_alone(const pp_priced *of, const pp_stage *stages, const pp_stage_seconds *seconds, bool overlaps, double *waits) {
  const double alone = seconds->forward + seconds->full, microbatches = (double)of->candidate->microbatches;
  const pp_hardware *hardware = &of->problem->hardware;
  pp_device device;
  *waits = 0;
  if (pp_evaluate_hosted(of->problem) && !overlaps) {   /* the card is as busy as its host lets it be */
    const double busy = fmin(1, microbatches * alone / behind_host(of, stages, seconds, 1)), slowed = pp_heat_factor(hardware, busy);
    const double step = behind_host(of, stages, seconds, slowed);
    *waits = fmax(0, step - slowed * microbatches * alone);
    return step;
  }
  if (!overlaps) return pp_heat_factor(hardware, 1) * microbatches * alone;
  pp_evaluate_pair_device(of, &device);
  return pp_heat_factor(hardware, 1) * (alone + (microbatches - 1) * pp_cost_pair(&device, seconds, seconds));
}

double pp_evaluate_slowness(const pp_problem *problem, int ranks, int rank) {
  return problem->speeds == ranks ? 1 / problem->rank_speed[rank] : 1;
}

pp_status pp_evaluate_times(const pp_priced *of, const pp_schedule *schedule, const pp_stage *blocks, const pp_stage_seconds *seconds,
                            bool overlaps, pp_program_times *out, pp_error *error) {
  const size_t stages = (size_t)schedule->stages, slots = (size_t)schedule->chunks_per_rank;
  const size_t hosts = pp_evaluate_hosted(of->problem) ? stages : 0;
  pp_device device;
  pp_profile_hosts host;
  out->stage = pp_allocate(stages * sizeof *out->stage + hosts * sizeof *out->host + stages * slots * sizeof *out->pair);
  if (!out->stage) return pp_fail(error, PP_NO_MEMORY, "not enough memory for the times of %zu stages", stages);
  double *pair = (double *)(void *)(out->stage + stages);
  out->pair = overlaps ? pair : NULL;
  out->host = hosts > 0 ? (pp_host_times *)(void *)(pair + stages * slots) : NULL;
  if (out->host) pp_profile_hosts_of(of->problem->profile, &host);
  pp_evaluate_pair_device(of, &device);
  for (size_t s = 0; s < stages; s++) {
    const size_t of_chain = s % (size_t)schedule->stages_per_chain;
    const pp_stage_seconds *forward = &seconds[of_chain];
    const double slow = pp_evaluate_slowness(of->problem, schedule->request.ranks, schedule->rank_of[s]);
    out->stage[s] = (pp_stage_times){ slow * forward->forward, slow * forward->input, slow * forward->weight, slow * forward->full };
    if (out->host) pp_profile_host_of_stage(&host, &blocks[of_chain], &out->host[s]);
    for (size_t slot = 0; overlaps && slot < slots; slot++) {
      int other = pp_schedule_stages_of(schedule, schedule->rank_of[s])[slot] % schedule->stages_per_chain;
      pair[s * slots + slot] = slow * pp_cost_pair(&device, forward, &seconds[other]);
    }
  }
  return PP_OK;
}

/* zb_auto is planned from these times. */
static void plan_from(const pp_candidate *candidate, const pp_stage_seconds *seconds, double hop, pp_stage_times *times,
                      pp_schedule_request *request) {
  if (!pp_schedule_is_planned((pp_schedule_kind)candidate->kind)) return;
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

/* Is no step simulated by its periods? Under a runtime no period is like the one before, and periods know no hosts. */
static bool is_whole(const pp_problem *problem) { return problem->runtime || pp_evaluate_hosted(problem); }

pp_status pp_evaluate_check(const pp_problem *problem, const pp_candidate *candidate, pp_error *error) {
  const bool whole = candidate->kind == PP_NO_SCHEDULE || is_whole(problem) || candidate->microbatches > INT_MAX ||
                     !pp_schedule_traits_of((pp_schedule_kind)candidate->kind)->has_periods;
  pp_status status = pp_candidate_check_within(candidate, problem->model, whole ? PP_MOST_WHOLE : INT64_MAX, error);
  if (status == PP_ILLEGAL && error && strcmp(error->id, "engine.too_many_actions") == 0 && strcmp(error->field, "microbatches") == 0)
    return pp_illegal(error, "engine.too_many_actions", "microbatches", error->nearest,
                      "M is %lld; at most %.0f microbatches of %s on %d ranks can be simulated%s%s", (long long)candidate->microbatches,
                      error->nearest, pp_stages_traits(candidate)->name, candidate->layout.pipeline,
                      problem->runtime ? " as run by " : "", problem->runtime ? problem->runtime->name : "");
  if (status == PP_OK && problem->training->sequence_length % candidate->layout.context != 0) {
    int nearest = candidate->layout.context;
    while (problem->training->sequence_length % nearest != 0) nearest--;
    return pp_illegal(error, "engine.context_sequence", "context", nearest, "CP %d does not divide a sequence of %lld tokens",
                      candidate->layout.context, (long long)problem->training->sequence_length);
  }
  const int64_t replicas = problem->training->replicas, alike = (int64_t)candidate->layout.data * candidate->layout.context;
  if (status == PP_OK && replicas > 1 && alike % replicas != 0)
    return pp_illegal(error, "engine.replicas", "data", NAN, "%lld replicas do not divide DP %d × CP %d", (long long)replicas,
                      candidate->layout.data, candidate->layout.context);
  return status;
}

/* The request of the program to simulate: the candidate's, or the one that stands for it. */
static pp_schedule_request request_of(const pp_problem *problem, const pp_candidate *candidate) {
  const pp_schedule_request whole = pp_candidate_request(candidate, candidate->microbatches);
  pp_schedule_request shorter;
  const bool stands = !is_whole(problem) && pp_schedule_most_actions(&whole) > PP_MOST_WHOLE && pp_steady_shorten(&whole, &shorter);
  return stands ? shorter : whole;
}

/* See pp_evaluate_time. */
static pp_status simulate(const pp_problem *problem, const pp_candidate *candidate, const pp_schedule *schedule, pp_program_times *program,
                          double hop, pp_simulation *out, pp_error *error) {
  const pp_times times = pp_evaluate_pp_times(program, hop);
  const pp_runtime *runtime = problem->runtime;
  pp_error refused;
  if (schedule->request.microbatches < candidate->microbatches)
    return pp_steady_simulate(schedule, (int)candidate->microbatches, &times, PP_MOST_PERIODS, out, NULL, error);
  if (!runtime) return pp_simulate(schedule, &times, false, out, error);
  pp_runtime multi = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  if (!pairs_save(schedule, program->stage, program->pair)) multi.pairs = PP_PAIR_SPLIT;
  if (runtime->kind == PP_RUNTIME_TORCH_MULTI) runtime = &multi;
  pp_status status = pp_runtime_simulate(schedule, &times, runtime, &problem->hardware, false, out, &refused);
  if (status == PP_ILLEGAL && runtime->kind == PP_RUNTIME_TORCH_SINGLE)
    status = pp_runtime_simulate(schedule, &times, &multi, &problem->hardware, false, out, &refused);
  if (status == PP_OK) return PP_OK;
  if (status != PP_ILLEGAL) {
    if (error) *error = refused;
    return status;
  }
  stretch(schedule, program->stage, program->pair, 1 + problem->hardware.heat_slope);
  return pp_simulate(schedule, &times, false, out, error);
}

pp_status pp_evaluate_time(const pp_priced *of, bool overlap, pp_timing *out, pp_schedule *keep_schedule, pp_simulation *keep_simulation,
                           pp_error *error) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  pp_stage_times plan_times[PP_MAX_LAYERS];
  pp_program_times times;
  pp_schedule schedule;
  pp_simulation simulation;
  pp_schedule_request request;
  pp_status status = pp_stages_fill(of, stages, error);
  if (status != PP_OK) return status;
  pp_stages_seconds(of, stages, seconds);
  if (of->candidate->kind == PP_NO_SCHEDULE) {
    out->makespan_seconds = pp_evaluate_alone(of, stages, seconds, overlap && pp_evaluate_pairs_overlap(of), &out->host_wait_seconds);
    out->bubble_fraction = 0;
    pp_evaluate_finish(of, stages, out);
    return PP_OK;
  }
  request = request_of(of->problem, of->candidate);
  plan_from(of->candidate, seconds, of->costs->hop, plan_times, &request);
  status = pp_schedule_build(&request, &schedule, error);
  if (status != PP_OK) return status;
  status = pp_evaluate_times(of, &schedule, stages, seconds, overlap && pp_evaluate_pairs_overlap(of), &times, error);
  if (status == PP_OK) {
    status = simulate(of->problem, of->candidate, &schedule, &times, of->costs->hop, &simulation, error);
    pp_free(times.stage);
  }
  if (status != PP_OK) {
    pp_schedule_free(&schedule);
    return status;
  }
  out->makespan_seconds = simulation.makespan;
  out->bubble_fraction = simulation.bubble_fraction;
  out->host_wait_seconds = 0;
  for (int rank = 0; rank < simulation.ranks; rank++) out->host_wait_seconds = fmax(out->host_wait_seconds, simulation.host_wait[rank]);
  pp_evaluate_finish(of, stages, out);
  if (keep_schedule) {
    *keep_schedule = schedule;
    *keep_simulation = simulation;
  } else {
    pp_simulation_free(&simulation);
    pp_schedule_free(&schedule);
  }
  return PP_OK;
}

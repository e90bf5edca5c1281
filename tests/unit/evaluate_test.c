/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: bytes, seconds and bounds of a candidate. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "problems.h"

/* Peaks of every rank at the capped and at the whole number of microbatches, for weights of every size. */
static void compare_peaks(const pp_candidate *candidate, uint32_t *seed) {
  pp_schedule_request whole = pp_candidate_request(candidate, candidate->microbatches);
  pp_schedule_request capped = pp_candidate_shortened(candidate, pp_evaluate_capped_microbatches(candidate));
  pp_schedule long_program, short_program;
  double stored[256], pending[256];
  if (pp_schedule_check(&whole, NULL) != PP_OK) return;
  assert_int_equal(pp_schedule_build(&whole, &long_program, NULL), PP_OK);
  assert_int_equal(pp_schedule_build(&capped, &short_program, NULL), PP_OK);
  for (int s = 0; s < long_program.stages; s++) {
    stored[s] = next_random(seed) % 100;
    pending[s] = next_random(seed) % 100;
  }
  for (int rank = 0; rank < whole.ranks; rank++) {
    const double expected = pp_schedule_peak(&long_program, rank, stored, pending);
    const double got = (double)pp_evaluate_repeats(candidate) * pp_schedule_peak(&short_program, rank, stored, pending);
    if (fabs(expected - got) > 1e-9)
      fail_msg("%s P %d V %d M %d (capped %d): rank %d peaks at %g, not %g", name_of(candidate), whole.ranks, whole.chunks,
               whole.microbatches, capped.microbatches, rank, expected, got);
  }
  pp_schedule_free(&long_program);
  pp_schedule_free(&short_program);
}

static void more_microbatches_than_the_cap_change_no_peak(void **state) {
  uint32_t seed = 1;
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++)
    for (int ranks = 2; ranks <= 12; ranks += ranks < 4 ? 1 : 2)
      for (int microbatches = 1; microbatches <= 12 * ranks; microbatches += 1 + (int)(next_random(&seed) % 5)) {
        int needed = pp_schedule_traits_of((pp_schedule_kind)kind)->chunks;
        for (int chunks = needed ? needed : 2; chunks <= (needed ? needed : 4); chunks++) {
          pp_candidate candidate = candidate_of(kind, ranks, chunks, microbatches);
          compare_peaks(&candidate, &seed);
        }
      }
}

static void the_cap_does_not_grow_with_the_batch(void **state) {
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    pp_candidate candidate = candidate_of(kind, 8, 2, 80000);
    assert_true(pp_evaluate_capped_microbatches(&candidate) <= 64);
  }
}

/* What the whole table of ranks says, one by one, at the uncapped M. */
static double fullest_of_all_ranks(const search_case *c, const pp_candidate *candidate, const pp_layout_costs *costs, int copies) {
  pp_stage stages[PP_MAX_LAYERS];
  pp_stage_memory needs[PP_MAX_LAYERS];
  double scratch[4 * PP_MAX_LAYERS], most = 0;
  pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  pp_schedule schedule;
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c->problem, candidate, costs, false }, stages, NULL), PP_OK);
  assert_int_equal(pp_schedule_build(&request, &schedule, NULL), PP_OK);
  pp_memory_stages(stages, schedule.stages_per_chain, costs->bytes[copies - 1], needs);
  for (int rank = 0; rank < request.ranks; rank++) {
    pp_rank_bytes bytes;
    pp_memory_rank(&schedule, rank, needs, c->problem.overhead_bytes, scratch, &bytes);
    most = fmax(most, bytes.total);
  }
  pp_schedule_free(&schedule);
  return most;
}

static void the_fullest_rank_is_found_without_walking_all(void **state) {
  search_case c;
  pp_candidates list = { 0 };
  (void)state;
  set_deepseek(&c);
  assert_int_equal(pp_candidates_enumerate(&c.space, &list, NULL), PP_OK);
  for (size_t i = 0; i < list.count; i++) {
    const pp_candidate *candidate = &list.candidate[i];
    pp_memory_program program;
    pp_rank_bytes bytes;
    int rank;
    if (candidate->kind == PP_NO_SCHEDULE || pp_candidate_check(candidate, &c.model, NULL) != PP_OK) continue;
    pp_layout_costs costs = costs_of(&c, &candidate->layout);
    int copies = pp_schedule_traits_of((pp_schedule_kind)candidate->kind)->copies;
    assert_int_equal(pp_memory_program_build(candidate, &program, NULL), PP_OK);
    assert_int_equal(pp_evaluate_memory(&(pp_priced){ &c.problem, candidate, &costs, false }, &program, &bytes, &rank, NULL), PP_OK);
    expect(fullest_of_all_ranks(&c, candidate, &costs, copies), bytes.total, 1e-12);
    pp_memory_program_free(&program);
  }
  pp_candidates_free(&list);
}

/* A runtime that allocates two messages for each microbatch and stage: bf16, 4,096 tokens, hidden 4,096, of 8 microbatches and 2 chunks. */
static void buffers_for_messages_are_held_where_there_is_a_pipeline(void **state) {
  search_case c;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  pp_candidate candidate = { .layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 16, .pipeline = 4, .chunks = 2 },
                             .microbatches = 8 };
  expect(4 * GIB, pp_evaluate_overhead(&c.problem, &candidate, 0), 1e-12);
  c.problem.buffered_messages = 2;
  expect(4 * GIB + 2.0 * 2 * 8 * 2 * 4096 * 4096, pp_evaluate_overhead(&c.problem, &candidate, 0), 1e-12);
  candidate.layout.pipeline = candidate.layout.chunks = 1;
  expect(4 * GIB, pp_evaluate_overhead(&c.problem, &candidate, 0), 1e-12);
}

/* sail-sg/zero-bubble #36: the rank that holds both embedding and head is the fullest of a V, where all have as many layers. */
static void a_v_fills_the_rank_of_both_ends(void **state) {
  search_case c;
  const int two_each[16] = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 };
  pp_memory_program program;
  pp_rank_bytes bytes;
  int rank;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  c.problem.layers_per_stage = two_each;
  c.problem.given_stages = 16;
  pp_candidate candidate = candidate_of(PP_ZB_V, 8, 2, 64);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  assert_int_equal(pp_memory_program_build(&candidate, &program, NULL), PP_OK);
  assert_int_equal(pp_evaluate_memory(&(pp_priced){ &c.problem, &candidate, &costs, false }, &program, &bytes, &rank, NULL), PP_OK);
  assert_int_equal(rank, 0);
  pp_memory_program_free(&program);
}

/* Recipes from nothing recomputed to everything, links from fast to slow: the bound has to hold in all. */
static void vary(search_case *c, uint32_t *seed) {
  c->network.tier[1].bandwidth = 1e9 * (double)(1 + next_random(seed) % 100);
  c->network.tier[1].latency = 1e-6 * (double)(next_random(seed) % 200);
  c->device.overlap_overhead = (double)(next_random(seed) % 40) / 100;
  c->training.recompute.full = next_random(seed) % 3 == 0;
  c->training.sequence_length = 512 << next_random(seed) % 5;
  random_shapes(seed, &c->device);
  c->training.data_overlap = one_in(seed, 2) ? between(seed, 0, 1) : 0;
  c->training.tensor_overlap = one_in(seed, 2) ? between(seed, 0, 1) : 0;
  c->problem.hop_waiting = one_in(seed, 2) ? between(seed, 0, 1) : 0;
}

/* V-Min's order is made for F, I and W of about one length (Qi et al. 2405.15362 §4): where a card waits for its host in I it idles in W's place. */
static bool idles_by_design(const search_case *c, const pp_candidate *candidate, const pp_layout_costs *costs, int kernel) {
  const pp_block_seconds *layer = &costs->seconds[kernel][c->model.experts > 0 ? PP_BLOCK_MOE : PP_BLOCK_DENSE];
  return candidate->kind == PP_V_MIN && layer->weight < layer->input / 10;
}

static void check_bounds(const search_case *c, uint32_t *seed, size_t *checked) {
  pp_candidates list = { 0 };
  assert_int_equal(pp_candidates_enumerate(&c->space, &list, NULL), PP_OK);
  for (size_t i = next_random(seed) % 7; i < list.count; i += 1 + next_random(seed) % 13) {
    const pp_candidate *candidate = &list.candidate[i];
    pp_layout_costs costs = costs_of(c, &candidate->layout);
    for (int kernel = 0; kernel < 2; kernel++) {
      pp_timing timing;
      double bound = pp_evaluate_bound(&(pp_priced){ &c->problem, candidate, &costs, kernel });
      if (pp_evaluate_time(&(pp_priced){ &c->problem, candidate, &costs, kernel }, true, &timing, NULL, NULL, NULL) != PP_OK) continue;
      if (!(bound <= timing.step_seconds))
        fail_msg("%s P %d V %d M %d: bound %.9g above %.9g", name_of(candidate), candidate->layout.pipeline, candidate->layout.chunks,
                 (int)candidate->microbatches, bound, timing.step_seconds);
      /* The bound leaves out the hops there and back that every turn may wait for, where a chunk takes less than a hop. */
      double hops = 2 * (double)candidate->microbatches * candidate->layout.chunks * costs.hop;
      ++*checked;
      if (candidate->microbatches < 2 * candidate->layout.pipeline || idles_by_design(c, candidate, &costs, kernel)) continue;
      if (!(bound + hops > 0.5 * timing.step_seconds))
        fail_msg("%s P %d V %d M %d: bound %.9g is no use below %.9g", name_of(candidate), candidate->layout.pipeline,
                 candidate->layout.chunks, (int)candidate->microbatches, bound, timing.step_seconds);
    }
  }
  pp_candidates_free(&list);
}

static void the_bound_is_never_above_the_step(void **state) {
  uint32_t seed = 7;
  size_t checked = 0;
  (void)state;
  for (int round = 0; round < 12; round++) {
    search_case moe, dense;
    set_case(&moe, deepseek_v3(17, 2, 1), 128, 512);
    set_case(&dense, llama(24, 2048, 16, 8, 8192, 128256), 96, 192 << round % 4);
    vary(&moe, &seed);
    vary(&dense, &seed);
    check_bounds(&moe, &seed, &checked);
    check_bounds(&dense, &seed, &checked);
  }
  assert_true(checked > 1000);
}

/* Narayanan et al. 2104.04473 §2.2: (P − 1)(F + B) of the largest stage is lost; every stage here is alike but for the ends, which are
** made negligible by a vocabulary of one token. */
static void one_f1b_takes_m_plus_p_minus_1_slots(void **state) {
  search_case c;
  pp_timing timing;
  pp_stage stages[8];
  pp_stage_seconds seconds[8];
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 1), 64, 512);
  c.network.tier[0] = c.network.tier[1] = (pp_tier){ 1 << 24, 1e30, 1, 0, 0 };
  pp_candidate candidate = candidate_of(PP_1F1B, 8, 1, 64);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, false }, true, &timing, NULL, NULL, NULL), PP_OK);
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c.problem, &candidate, &costs, false }, stages, NULL), PP_OK);
  pp_stages_seconds(&(pp_priced){ NULL, &candidate, &costs, false }, stages, seconds);
  expect((64 + 8 - 1) * (seconds[3].forward + seconds[3].full), timing.makespan_seconds, 5e-3);
  expect(7.0 / 71, timing.bubble_fraction, 2e-2);
}

/* The whole program's simulation, of stages as they are without pairs that overlap. */
static pp_simulation whole_step(const search_case *c, const pp_candidate *candidate, const pp_layout_costs *costs) {
  pp_stage stages[32];
  pp_stage_seconds seconds[32];
  pp_stage_times times[32];
  pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  pp_schedule schedule;
  pp_simulation out;
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c->problem, candidate, costs, false }, stages, NULL), PP_OK);
  pp_stages_seconds(&(pp_priced){ NULL, candidate, costs, false }, stages, seconds);
  assert_int_equal(pp_schedule_build(&request, &schedule, NULL), PP_OK);
  for (int s = 0; s < schedule.stages; s++) {
    const pp_stage_seconds *of = &seconds[s % schedule.stages_per_chain];
    times[s] = (pp_stage_times){ of->forward, of->input, of->weight, of->full };
  }
  const pp_times all = { .stage = times, .p2p = costs->hop };
  assert_int_equal(pp_simulate(&schedule, &all, false, &out, NULL), PP_OK);
  pp_schedule_free(&schedule);
  return out;
}

static void a_step_of_many_actions_is_that_of_the_whole_program(void **state) {
  static const struct { int kind, chunks; } of[] = {
    { PP_1F1B, 1 }, { PP_ZB_H1, 1 }, { PP_ZB_V, 2 }, { PP_INTERLEAVED_1F1B, 3 }, { PP_DUALPIPE, 1 }, { PP_DUALPIPEV, 2 }
  };
  search_case c;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
    pp_candidate candidate = candidate_of(of[k].kind, 8, of[k].chunks, 150000);
    pp_layout_costs costs = costs_of(&c, &candidate.layout);
    pp_schedule program;
    pp_simulation got, expected = whole_step(&c, &candidate, &costs);
    pp_timing timing;
    assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, false }, false, &timing, &program, &got, NULL), PP_OK);
    assert_true(program.first[8] < PP_MOST_WHOLE / 100);
    expect(expected.makespan, timing.makespan_seconds, 1e-10);
    expect(expected.bubble_fraction, timing.bubble_fraction, 1e-8);
    for (int r = 0; r < 8; r++) {
      expect(expected.busy[r], got.busy[r], 1e-10);
      expect(expected.idle[r], got.idle[r], 1e-7);
    }
    pp_simulation_free(&got);
    pp_simulation_free(&expected);
    pp_schedule_free(&program);
  }
}

/* What splits are compared by is the step to two thousandths, though but few microbatches are simulated: of equal stages each beyond the
** warm-up takes as long as the one before, but for what hops delay. DualPipe goes both ways, an interleaved program in groups. */
static void a_split_is_compared_by_the_seconds_of_its_step(void **state) {
  static const struct { int kind, chunks; } of[] = {
    { PP_GPIPE, 1 }, { PP_1F1B, 1 }, { PP_ZB_H1, 1 }, { PP_ZB_V, 2 }, { PP_INTERLEAVED_1F1B, 2 }, { PP_DUALPIPE, 1 }
  };
  search_case c;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 0), 64, 512);   /* no vocabulary: no embedding and no head */
  for (size_t k = 0; k < sizeof of / sizeof *of; k++)
    for (int microbatches = 8; microbatches <= 512; microbatches *= 4) {
      pp_candidate candidate = candidate_of(of[k].kind, 4, of[k].chunks, microbatches);
      pp_layout_costs costs = costs_of(&c, &candidate.layout);
      const pp_priced of_this = { &c.problem, &candidate, &costs, false };
      pp_memory_program program;
      pp_comparison comparison = { .built = false };
      pp_workspace workspace = { 0 };
      pp_timing whole;
      double seconds;
      assert_int_equal(pp_memory_program_build(&candidate, &program, NULL), PP_OK);
      assert_int_equal(pp_evaluate_split(&of_this, &program.schedule, &comparison, &workspace, &seconds, NULL), PP_OK);
      assert_int_equal(pp_evaluate_time(&of_this, true, &whole, NULL, NULL, NULL), PP_OK);
      if (fabs(seconds / whole.step_seconds - 1) > 2e-3)
        fail_msg("%s M %d: %.12g s, the step takes %.12g", name_of(&candidate), microbatches, seconds, whole.step_seconds);
      pp_comparison_free(&comparison);
      pp_workspace_free(&workspace);
      pp_memory_program_free(&program);
    }
}

/* With unequal stages interleaved groups may take turns, a longer one and a shorter one: what two of them take together says what all take. */
static void groups_that_take_turns_are_compared_in_twos(void **state) {
  search_case c;
  (void)state;
  set_case(&c, deepseek_v3(11, 2, 1), 64, 512);
  pp_candidate candidate = candidate_of(PP_INTERLEAVED_1F1B, 4, 2, 65);
  const pp_layout_costs costs = costs_of(&c, &candidate.layout);
  const pp_priced of = { &c.problem, &candidate, &costs, false };
  pp_memory_program program;
  pp_comparison comparison = { .built = false };
  pp_workspace workspace = { 0 };
  double seconds, step[4];
  assert_int_equal(candidate.group, 5);
  assert_int_equal(pp_memory_program_build(&candidate, &program, NULL), PP_OK);
  assert_int_equal(pp_evaluate_split(&of, &program.schedule, &comparison, &workspace, &seconds, NULL), PP_OK);
  for (int i = 0; i < 4; i++, candidate.microbatches -= 5) {
    pp_timing whole;
    assert_int_equal(pp_evaluate_time(&of, true, &whole, NULL, NULL, NULL), PP_OK);
    step[i] = whole.step_seconds;
  }
  expect(step[0], seconds, 1e-9);
  expect(step[2] - step[3], step[0] - step[1], 1e-9);
  assert_true(fabs((step[1] - step[2]) / (step[0] - step[1]) - 1) > 0.01);
  pp_comparison_free(&comparison);
  pp_workspace_free(&workspace);
  pp_memory_program_free(&program);
}

static void what_cannot_be_simulated_by_periods_is_refused_with_a_bound(void **state) {
  search_case c;
  pp_error error;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  pp_candidate candidate = candidate_of(PP_GPIPE, 8, 1, PP_MOST_WHOLE / 16);
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_OK);
  candidate.microbatches = candidate.smallest_microbatches = 1000000;
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.too_many_actions");
  assert_string_equal(error.field, "microbatches");
  assert_int_equal((int)error.nearest, PP_MOST_WHOLE / 16);
  assert_string_equal(error.message, "M is 1000000; at most 131072 microbatches of gpipe on 8 ranks can be simulated");
  candidate.kind = PP_1F1B;
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_OK);
  candidate.microbatches = candidate.smallest_microbatches = INT32_MAX;
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_OK);
  candidate.microbatches++;   /* a microbatch is an int */
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_ILLEGAL);
  candidate.microbatches = candidate.smallest_microbatches = 1000000;
  c.problem.runtime = pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE);
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "M is 1000000; at most 131072 microbatches of 1f1b on 8 ranks can be simulated as run by torch-single");
  candidate.kind = PP_NO_SCHEDULE;
  assert_int_equal(pp_evaluate_check(&c.problem, &candidate, &error), PP_OK);
}

static void without_a_pipeline_a_step_is_its_microbatches_one_after_the_other(void **state) {
  search_case c;
  pp_timing timing;
  pp_stage stage;
  pp_stage_seconds seconds;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  pp_candidate candidate = candidate_of(PP_NO_SCHEDULE, 1, 1, 8);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, false }, true, &timing, NULL, NULL, NULL), PP_OK);
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c.problem, &candidate, &costs, false }, &stage, NULL), PP_OK);
  pp_stages_seconds(&(pp_priced){ NULL, &candidate, &costs, false }, &stage, &seconds);
  expect(8 * (seconds.forward + seconds.full), timing.makespan_seconds, 1e-12);
  expect(timing.makespan_seconds + timing.step.gradient_sync + timing.step.parameter_sync + timing.step.optimizer + 0.05, timing.step_seconds, 1e-12);
  assert_true(timing.bubble_fraction >= 0 && timing.bubble_fraction <= 0);

  /* A card that never waits is as hot as it gets: as one rank of a schedule that is simulated with heat. */
  c.problem.hardware = (pp_hardware){ .contention = 1, .heat_slope = 0.25, .heat_onset = 0.5, .heat_tau = 1e-4 };
  assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, false }, true, &timing, NULL, NULL, NULL), PP_OK);
  const pp_stage_times card = { seconds.forward, seconds.input, seconds.weight, seconds.full };
  const pp_times times = { .stage = &card };
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  runtime.first_skips_input = false;
  pp_schedule schedule;
  pp_simulation simulated;
  assert_int_equal(pp_schedule_build(&(pp_schedule_request){ .kind = PP_1F1B, .ranks = 1, .microbatches = 8, .chunks = 1 }, &schedule, NULL), PP_OK);
  assert_int_equal(pp_runtime_simulate(&schedule, &times, &runtime, &c.problem.hardware, false, &simulated, NULL), PP_OK);
  expect(simulated.makespan, timing.makespan_seconds, 1e-9);
  expect(1.25 * 8 * (seconds.forward + seconds.full), timing.makespan_seconds, 1e-12);
  pp_simulation_free(&simulated);
  pp_schedule_free(&schedule);
}

/* Only a schedule with overlapped pairs gains from a kernel that overlaps, and only in its pairs. */
static void only_overlapped_pairs_hide_alltoall(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    const pp_schedule_traits *traits = pp_schedule_traits_of((pp_schedule_kind)kind);
    pp_timing with, without;
    pp_candidate candidate = candidate_of(kind, 8, traits->chunks ? traits->chunks : 2, 64);
    candidate.layout.expert = 64;
    candidate.layout.data = 256;
    pp_layout_costs costs = costs_of(&c, &candidate.layout);
    assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, true }, true, &with, NULL, NULL, NULL), PP_OK);
    assert_int_equal(pp_evaluate_time(&(pp_priced){ &c.problem, &candidate, &costs, true }, false, &without, NULL, NULL, NULL), PP_OK);
    if (traits->overlaps) assert_true(with.makespan_seconds < 0.95 * without.makespan_seconds);
    else expect(without.makespan_seconds, with.makespan_seconds, 1e-12);
  }
}

static void a_dense_model_sends_nothing_to_experts(void **state) {
  search_case c;
  pp_candidate candidate = candidate_of(PP_1F1B, 8, 1, 64);
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 512);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  double fraction = pp_price_alltoall_fraction(&c.model, &costs, false);
  assert_true(fraction >= 0 && fraction <= 0);
  set_deepseek(&c);
  candidate.layout.expert = 64;
  candidate.layout.data = 256;
  costs = costs_of(&c, &candidate.layout);
  assert_true(pp_price_alltoall_fraction(&c.model, &costs, false) > pp_price_alltoall_fraction(&c.model, &costs, true));
  assert_true(pp_price_alltoall_fraction(&c.model, &costs, true) > 0.05);
}

/* A mirror pair holds each stage twice: the parameters of both ranks together are twice those of their stages. */
static void dualpipe_holds_every_parameter_twice(void **state) {
  search_case c;
  double dense[8], expert[8], once = 0, twice = 0;
  pp_stage stages[8];
  (void)state;
  set_case(&c, deepseek_v3(61, 3, 0), 2048, 15360);
  pp_candidate candidate = candidate_of(PP_DUALPIPE, 8, 1, 64);
  pp_layout_costs costs = costs_of(&c, &candidate.layout);
  assert_int_equal(pp_stages_fill(&(pp_priced){ &c.problem, &candidate, &costs, false }, stages, NULL), PP_OK);
  pp_evaluate_parameters(&(pp_priced){ NULL, &candidate, &costs, false }, stages, dense, expert);
  for (int rank = 0; rank < 8; rank++) twice += dense[rank] + expert[rank];
  candidate.kind = PP_1F1B;
  pp_evaluate_parameters(&(pp_priced){ NULL, &candidate, &costs, false }, stages, dense, expert);
  for (int rank = 0; rank < 8; rank++) once += dense[rank] + expert[rank];
  expect(2 * once, twice, 1e-12);
  expect((double)pp_model_parameters(&c.model).total, once, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(more_microbatches_than_the_cap_change_no_peak),
    cmocka_unit_test(the_cap_does_not_grow_with_the_batch),
    cmocka_unit_test(the_fullest_rank_is_found_without_walking_all),
    cmocka_unit_test(buffers_for_messages_are_held_where_there_is_a_pipeline),
    cmocka_unit_test(a_v_fills_the_rank_of_both_ends),
    cmocka_unit_test(the_bound_is_never_above_the_step),
    cmocka_unit_test(one_f1b_takes_m_plus_p_minus_1_slots),
    cmocka_unit_test(a_step_of_many_actions_is_that_of_the_whole_program),
    cmocka_unit_test(a_split_is_compared_by_the_seconds_of_its_step),
    cmocka_unit_test(groups_that_take_turns_are_compared_in_twos),
    cmocka_unit_test(what_cannot_be_simulated_by_periods_is_refused_with_a_bound),
    cmocka_unit_test(without_a_pipeline_a_step_is_its_microbatches_one_after_the_other),
    cmocka_unit_test(only_overlapped_pairs_hide_alltoall),
    cmocka_unit_test(a_dense_model_sends_nothing_to_experts),
    cmocka_unit_test(dualpipe_holds_every_parameter_twice),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

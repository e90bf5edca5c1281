/* SPDX-License-Identifier: Apache-2.0 */
/* search.c: the table of candidates, and the fastest of a mask without simulating all of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/fit.h"
#include "searches.h"

/* Kinds are their own symbols here, from 2. */
static pp_search_symbols symbols(void) {
  pp_search_symbols out;
  for (int i = 0; i <= PP_SCHEDULE_KINDS; i++) out.schedule[i] = out.family[i] = 2 + i;
  return out;
}

static void open_search(const search_case *c, pp_search *out) {
  pp_search_symbols names = symbols();
  pp_error error;
  if (pp_search_open(&(pp_search_choice){ c->problem, c->space }, 1, NULL, 0, &names, out, &error) != PP_OK) fail_msg("%s", error.message);
}

static pp_mask_word *mask_of(const pp_search *search, bool all) {
  size_t rows = search->candidates.count;
  pp_mask_word *mask = calloc(pp_mask_words(rows), sizeof *mask);
  for (size_t row = 0; all && row < rows; row++) mask[row / 64] |= (pp_mask_word)1 << row % 64;
  return mask;
}

static bool has(const pp_mask_word *mask, size_t row) {
  return mask[row / 64] >> row % 64 & 1;
}

static void give_kernels(pp_search *search) {
  for (size_t row = 0; row < search->candidates.count; row++) search->column[PP_COLUMN_KERNEL][row] = 99;
  assert_int_equal(pp_search_kernels_changed(search, NULL), PP_OK);
}

static void small_case(search_case *c) {
  set_case(c, deepseek_v3(17, 2, 1), 128, 1024);
}

static void best_is_what_simulating_everything_finds(void **state) {
  search_case c;
  pp_search lazy, whole;
  bool found;
  size_t best, simulated = 0, fastest = SIZE_MAX;
  (void)state;
  small_case(&c);
  open_search(&c, &lazy);
  open_search(&c, &whole);
  pp_mask_word *all = mask_of(&lazy, true), *within = mask_of(&lazy, false);
  for (size_t row = 0; row < whole.candidates.count; row++) {
    const double *seconds = whole.column[PP_COLUMN_STEP_SECONDS];
    if (pp_search_simulate(&whole, row, NULL) != PP_OK) continue;
    if (fastest == SIZE_MAX || seconds[row] < seconds[fastest]) fastest = row;
  }
  assert_int_equal(pp_search_best(&lazy, all, 0.25, INFINITY, INFINITY, &found, &best, within, NULL), PP_OK);
  assert_true(found);
  assert_int_equal(best, fastest);
  for (size_t row = 0; row < whole.candidates.count; row++) {
    double seconds = whole.column[PP_COLUMN_STEP_SECONDS][row];
    assert_int_equal(has(within, row), seconds <= 1.25 * whole.column[PP_COLUMN_STEP_SECONDS][fastest]);
    if (!isnan(lazy.column[PP_COLUMN_STEP_SECONDS][row])) simulated++;
  }
  assert_true(simulated < whole.candidates.count / 2);
  free(all);
  free(within);
  pp_search_free(&lazy);
  pp_search_free(&whole);
}

/* Best first by bounds that are none too high, the fastest is simulated before whatever has a bound above its step, and ends the search; a row's
** bound is that of its split, once that is chosen. */
static void nothing_is_simulated_whose_bound_is_above_the_fastest(void **state) {
  search_case c;
  pp_search search;
  bool found;
  size_t best, simulated = 0;
  (void)state;
  set_case(&c, llama(60, 4096, 32, 8, 14336, 128256), 64, 512);
  c.space.fixed.tensor = 1;
  open_search(&c, &search);
  pp_mask_word *all = mask_of(&search, true);
  assert_int_equal(pp_search_best(&search, all, 0, INFINITY, INFINITY, &found, &best, NULL, NULL), PP_OK);
  assert_true(found);
  const double *seconds = search.column[PP_COLUMN_STEP_SECONDS];
  for (size_t row = 0; row < search.candidates.count; row++) {
    if (isnan(seconds[row])) continue;
    assert_true(pp_search_bound(&search, row) <= seconds[best]);
    simulated++;
  }
  assert_true(simulated > 10);
  free(all);
  pp_search_free(&search);
}

static void nothing_under_a_limit_is_found_without_simulating(void **state) {
  search_case c;
  pp_search search;
  bool found;
  size_t best;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  pp_mask_word *all = mask_of(&search, true);
  assert_int_equal(pp_search_best(&search, all, 0, 1e-6, INFINITY, &found, &best, NULL, NULL), PP_OK);
  assert_false(found);
  for (size_t row = 0; row < search.candidates.count; row++) assert_true(isnan(search.column[PP_COLUMN_STEP_SECONDS][row]));
  free(all);
  pp_search_free(&search);
}

/* The program planned under the row's limit takes no more than the row says; the limit is between P and 2P, above P only where all fits. */
static void zb_auto_takes_no_more_than_its_limit_allows(const search_case *c, const pp_search *search, size_t row) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_layout_costs *costs = &search->costs[search->layout_of[row]];
  const double bytes = search->column[PP_COLUMN_PEAK_BYTES][row];
  const int ranks = candidate->layout.pipeline;
  pp_timing timing;
  pp_schedule schedule;
  pp_simulation simulation;
  pp_rank_bytes here[PP_MAX_LAYERS];
  assert_true(candidate->limit >= ranks && candidate->limit <= 2 * ranks);
  if (candidate->limit > ranks) assert_true(bytes <= c->problem.usable_bytes);
  assert_int_equal(pp_evaluate_time(&(pp_priced){ &c->problem, candidate, costs, false }, true, &timing, &schedule, &simulation, NULL), PP_OK);
  assert_int_equal(schedule.request.limit, candidate->limit);
  assert_int_equal(pp_evaluate_ranks(&(pp_priced){ &c->problem, candidate, costs, false }, &schedule, here, NULL), PP_OK);
  for (int rank = 0; rank < ranks; rank++) assert_true(here[rank].total <= bytes * (1 + 1e-12));
  pp_simulation_free(&simulation);
  pp_schedule_free(&schedule);
}

static void memory_is_filled_where_a_row_can_be_built_and_nowhere_else(void **state) {
  search_case c;
  pp_search search;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  pp_mask_word *all = mask_of(&search, true);
  assert_int_equal(pp_search_memory(&search, all, NULL), PP_OK);
  for (size_t row = 0; row < search.candidates.count; row++) {
    const pp_candidate *candidate = &search.candidates.candidate[row];
    double bytes = search.column[PP_COLUMN_PEAK_BYTES][row], one_copy = search.column[PP_COLUMN_ONE_COPY_BYTES][row];
    assert_int_equal(isnan(bytes), pp_candidate_check(candidate, &c.model, NULL) != PP_OK);
    assert_int_equal(!isnan(one_copy), candidate->kind == PP_DUALPIPE && !isnan(bytes));
    if (isnan(bytes)) continue;
    assert_true(bytes > c.problem.overhead_bytes);
    if (candidate->kind == PP_NO_SCHEDULE) continue;
    if (candidate->kind == PP_ZB_AUTO) {
      zb_auto_takes_no_more_than_its_limit_allows(&c, &search, row);
      continue;
    }
    pp_memory_program program;
    pp_rank_bytes alone;
    int rank;
    assert_int_equal(pp_memory_program_build(candidate, &program, NULL), PP_OK);
    const pp_priced of = { &c.problem, candidate, &search.costs[search.layout_of[row]], false };
    assert_int_equal(pp_evaluate_memory(&of, &program, &alone, &rank, NULL), PP_OK);
    expect(alone.total, bytes, 1e-12);
    assert_int_equal(rank, search.fullest[row]);
    /* DualPipe's two copies are of weights and gradients; the optimizer's state is spread over both (DeepSeek-V3 report, table 2: 2 × parameters) */
    if (!isnan(one_copy)) expect(bytes - (alone.parameters + alone.gradients) / 2, one_copy, 1e-12);
    pp_memory_program_free(&program);
  }
  free(all);
  pp_search_free(&search);
}

/* What a rank holds too much of goes to ranks that have room, at the price of time. */
static void stages_that_nearly_fit_give_layers_to_emptier_ranks(void **state) {
  search_case c;
  pp_search roomy, tight;
  size_t squeezed = 0;
  (void)state;
  set_deepseek(&c);
  c.problem.usable_bytes = INFINITY;
  open_search(&c, &roomy);
  give_kernels(&roomy);
  pp_mask_word *all = mask_of(&roomy, true);
  assert_int_equal(pp_search_memory(&roomy, all, NULL), PP_OK);
  for (size_t row = 0; row < roomy.candidates.count; row++) {
    double balanced = roomy.column[PP_COLUMN_PEAK_BYTES][row];
    if (roomy.candidates.candidate[row].kind == PP_NO_SCHEDULE || isnan(balanced)) continue;
    c.problem.usable_bytes = balanced * 0.97;
    open_search(&c, &tight);
    give_kernels(&tight);
    assert_int_equal(pp_search_memory(&tight, all, NULL), PP_OK);
    if (tight.column[PP_COLUMN_PEAK_BYTES][row] <= c.problem.usable_bytes) squeezed++;
    else assert_true(tight.column[PP_COLUMN_PEAK_BYTES][row] <= balanced * (1 + 1e-12));
    pp_search_free(&tight);
  }
  assert_true(squeezed > 10);
  free(all);
  pp_search_free(&roomy);
}

/* Balanced ranks with a layer at least on every stage: what layer counts say at their plainest. */
static void split_plainly(const pp_candidate *candidate, const pp_layout_costs *costs, const pp_model *model, int *layers) {
  pp_block_weights weights;
  int rank_of[PP_MAX_LAYERS], groups = candidate->layout.pipeline, count = pp_stages_count(candidate);
  bool overlaps = pp_stages_traits(candidate)->overlaps;
  for (int block = 0; block < PP_BLOCKS; block++) {
    const pp_block_seconds *seconds = &costs->seconds[1][block];
    weights.seconds[block] = seconds->forward + seconds->input + seconds->weight;
    if (!overlaps) weights.seconds[block] += seconds->alltoall_forward + seconds->alltoall_backward;
  }
  for (int s = 0; s < count; s++) {
    int rank[2];
    if (pp_stages_ranks(candidate, s, rank) == 2) groups = (candidate->layout.pipeline + 1) / 2;
    rank_of[s] = rank[1] < rank[0] ? rank[1] : rank[0];
  }
  pp_split_layers(model, &weights, &(pp_split){ count, rank_of, groups, PP_SHARE_TIME, NULL, false, false }, layers);
}

/* Simulated in full; half a percent is what splits may lose to save memory. */
static void no_split_is_slower_than_balanced_ranks_with_a_layer_everywhere(void **state) {
  uint32_t seed = 11;
  size_t compared = 0, faster = 0;
  (void)state;
  for (int round = 0; round < 120; round++) {
    search_case c;
    pp_search search;
    bool moe = next_random(&seed) % 2;
    int layers = 8 + (int)(next_random(&seed) % 60);
    if (moe) set_case(&c, deepseek_v3(layers, 3, next_random(&seed) % 2), 512, 1024);
    else set_case(&c, llama(layers, 2048 << next_random(&seed) % 3, 32, 8, 8192, 32000 << next_random(&seed) % 4), 128, 512);
    c.problem.usable_bytes = INFINITY;
    c.space.fixed.tensor = 1;
    c.space.fixed.expert = moe ? 8 : 1;
    c.training.recompute.full = next_random(&seed) % 3 == 0;
    open_search(&c, &search);
    give_kernels(&search);
    for (size_t row = next_random(&seed) % 5; row < search.candidates.count; row += 1 + next_random(&seed) % 5) {
      pp_candidate plain = search.candidates.candidate[row];
      int split[PP_MAX_LAYERS];
      pp_timing timing;
      if (plain.kind == PP_NO_SCHEDULE || pp_search_simulate(&search, row, NULL) != PP_OK) continue;
      split_plainly(&plain, &search.costs[search.layout_of[row]], &c.model, split);
      plain.layers_per_stage = split;
      const pp_priced of = { &c.problem, &plain, &search.costs[search.layout_of[row]], true };
      assert_int_equal(pp_evaluate_time(&of, true, &timing, NULL, NULL, NULL), PP_OK);
      double seconds = search.column[PP_COLUMN_STEP_SECONDS][row];
      if (seconds > timing.step_seconds * 1.005)
        fail_msg("%s P %d V %d M %d of %d layers: %g s, %g with plainly balanced ranks", name_of(&plain), plain.layout.pipeline,
                 plain.layout.chunks, (int)plain.microbatches, layers, seconds, timing.step_seconds);
      if (seconds < timing.step_seconds * 0.99) faster++;
      compared++;
    }
    pp_search_free(&search);
  }
  assert_true(compared > 500);
  assert_true(faster > compared / 20);
}

/* 8 GPUs a domain: EP 8 stays inside, EP 16 leaves it. */
static void the_expert_link_is_the_slowest_that_the_group_crosses(void **state) {
  search_case c;
  pp_search search;
  (void)state;
  small_case(&c);
  open_search(&c, &search);
  for (size_t row = 0; row < search.candidates.count; row++) {
    double link = search.column[PP_COLUMN_EXPERT_LINK][row];
    int expert = search.candidates.candidate[row].layout.expert;
    if (expert == 1) assert_true(isnan(link));
    else expect(expert <= 8 ? 160e9 : 50e9, link, 1e-12);
  }
  pp_search_free(&search);
}

static void a_kernel_makes_overlapping_schedules_faster_again(void **state) {
  search_case c;
  pp_search search;
  (void)state;
  set_deepseek(&c);
  open_search(&c, &search);
  for (size_t row = 0; row < search.candidates.count; row++) {
    double plain, fraction = search.column[PP_COLUMN_ALLTOALL_FRACTION][row];
    if (search.candidates.candidate[row].kind != PP_DUALPIPE || pp_search_simulate(&search, row, NULL) != PP_OK) continue;
    plain = search.column[PP_COLUMN_STEP_SECONDS][row];
    search.column[PP_COLUMN_KERNEL][row] = 99;
    assert_int_equal(pp_search_kernels_changed(&search, NULL), PP_OK);
    assert_true(search.column[PP_COLUMN_ALLTOALL_FRACTION][row] < fraction);
    assert_int_equal(pp_search_simulate(&search, row, NULL), PP_OK);
    assert_true(search.column[PP_COLUMN_STEP_SECONDS][row] < plain);
    search.column[PP_COLUMN_KERNEL][row] = 0;
    assert_int_equal(pp_search_kernels_changed(&search, NULL), PP_OK);
  }
  pp_search_free(&search);
}

/* A search waits with choosing splits as long as this says that a row fits, and is no faster than so. */
static void the_bound_of_all_splits_is_below_what_the_chosen_one_takes(void **state) {
  size_t compared = 0, full = 0;
  (void)state;
  for (int dense = 0; dense < 2; dense++) {
    search_case c;
    pp_search search;
    if (dense) set_case(&c, llama(37, 4096, 32, 8, 14336, 128256), 256, 1024);
    else small_case(&c);
    c.problem.usable_bytes = 60 * GIB;
    open_search(&c, &search);
    give_kernels(&search);
    for (size_t row = 0; row < search.candidates.count; row += 3) {
      pp_candidate candidate = search.candidates.candidate[row];
      const pp_priced of = { &c.problem, &candidate, &search.costs[search.layout_of[row]], true };
      pp_fit_programs programs = { .splits = &search.splits };
      pp_timing timing;
      pp_fit fit;
      int layers[PP_MAX_LAYERS];
      double bound;
      if (candidate.kind == PP_NO_SCHEDULE || pp_evaluate_check(&c.problem, &candidate, NULL) != PP_OK) continue;
      assert_int_equal(pp_fit_programs_build(&candidate, &programs, NULL), PP_OK);
      assert_int_equal(pp_fit_bound(&of, &programs, &bound, NULL), PP_OK);
      assert_int_equal(pp_fit_candidate(&of, &programs, layers, &fit, NULL), PP_OK);
      pp_fit_programs_free(&programs);
      pp_workspace_free(&programs.workspace);
      full += fit.bytes > c.problem.usable_bytes;
      if (isnan(bound)) continue;
      assert_true(fit.bytes <= c.problem.usable_bytes);
      candidate.layers_per_stage = fit.layers;
      candidate.limit = fit.limit;
      assert_int_equal(pp_evaluate_time(&of, true, &timing, NULL, NULL, NULL), PP_OK);
      if (bound > timing.step_seconds * (1 + 1e-12))
        fail_msg("%s P %d V %d: %.17g s, bounded by %.17g", name_of(&candidate), candidate.layout.pipeline, candidate.layout.chunks,
                 timing.step_seconds, bound);
      compared++;
    }
    pp_search_free(&search);
  }
  assert_true(compared > 200);
  assert_true(full > 20);
}

static double simulated_seconds(const pp_priced *of) {
  pp_timing timing;
  assert_int_equal(pp_evaluate_time(of, true, &timing, NULL, NULL, NULL), PP_OK);
  return timing.step_seconds;
}

/* Without a tie no time is given for memory; with one of a tenth as much at most, and none where layers are even. Every split is simulated whole. */
static void the_split_is_the_fastest_or_within_the_tie_and_no_slower_than_even(void **state) {
  size_t later = 0, slower = 0, as_even = 0;
  (void)state;
  for (int k = 0; k < 64; k++) {
    const int layers = 24 + k / 2, chunks = layers % 2 ? 2 : 4;
    search_case c;
    pp_fit_programs programs = { .splits = NULL };
    pp_fit fit;
    int splits[PP_MOST_SPLITS][PP_MAX_LAYERS], even[PP_MAX_LAYERS], chosen[PP_MAX_LAYERS];
    double first = 0, fastest = INFINITY;
    set_case(&c, layers % 2 ? deepseek_v3(layers, 2, 1) : llama(layers, 4096, 32, 8, 14336, 512000), 64, 512);
    c.problem.usable_bytes = INFINITY;
    c.problem.split_tie = k % 2 ? 0.1 : 0;
    c.problem.split_gain = 1;
    pp_candidate candidate = candidate_of(layers % 2 ? PP_ZB_V : PP_INTERLEAVED_1F1B, 4, chunks, 16);
    const pp_layout_costs costs = costs_of(&c, &candidate.layout);
    const pp_priced of = { &c.problem, &candidate, &costs, false };
    const int count = pp_stages_splits(&of, NULL, splits);
    for (int i = 0; i < count; i++) {
      candidate.layers_per_stage = splits[i];
      const double seconds = simulated_seconds(&of);
      fastest = fmin(fastest, seconds);
      if (i == 0) first = seconds;
    }
    for (int s = 0; s < 4 * chunks; s++) even[s] = pp_layout_even(layers, 4 * chunks, s);
    candidate.layers_per_stage = even;
    const double as_it_is = simulated_seconds(&of);
    candidate.layers_per_stage = NULL;
    assert_int_equal(pp_fit_programs_build(&candidate, &programs, NULL), PP_OK);
    assert_int_equal(pp_fit_candidate(&of, &programs, chosen, &fit, NULL), PP_OK);
    candidate.layers_per_stage = fit.layers;
    const double seconds = simulated_seconds(&of);
    assert_true(seconds <= fastest * (1 + c.problem.split_tie + 1e-12));
    assert_true(seconds <= as_it_is * (1 + 1e-12));
    later += fastest < first * (1 - 1e-6);
    slower += seconds > fastest * (1 + 1e-6);
    as_even += seconds == as_it_is;
    pp_fit_programs_free(&programs);
    pp_workspace_free(&programs.workspace);
  }
  assert_true(later > 5 && slower > 5 && as_even > 5);
}

/* Seconds with a kernel are those of a device that hides its all-to-all at that kernel's latency, EP or none, however often kernels change. */
static void prices_follow_the_kernel(void **state) {
  static const pp_kernel_latency latency = { 99, 3e-6 };
  const pp_search_symbols names = symbols();
  search_case c;
  pp_search search;
  size_t spread = 0, alone = 0;
  (void)state;
  small_case(&c);
  c.device.alltoall_latency = 20e-6;
  assert_int_equal(pp_search_open(&(pp_search_choice){ c.problem, c.space }, 1, &latency, 1, &names, &search, NULL), PP_OK);
  give_kernels(&search);
  for (size_t row = 0; row < search.candidates.count; row++) {
    const pp_layout *layout = &search.candidates.candidate[row].layout;
    const pp_layout_costs *costs = &search.costs[search.layout_of[row]];
    for (int kernel = 0; kernel < 2; kernel++) {
      pp_device device = c.device;
      pp_block_seconds seconds[PP_BLOCKS];
      device.hides_alltoall = kernel;
      if (kernel) device.alltoall_latency = latency.seconds;
      assert_int_equal(pp_cost_blocks(&c.model, layout, &c.training, &device, &c.network, seconds, NULL, NULL), PP_OK);
      assert_memory_equal(seconds, costs->seconds[kernel], sizeof seconds);
    }
    spread += layout->expert > 1;
    alone += layout->expert == 1;
  }
  assert_true(spread > 100 && alone > 20);
  pp_search_free(&search);
}

/* All but chunks. */
static bool same_degrees(pp_layout a, pp_layout b) {
  a.chunks = b.chunks;
  return memcmp(&a, &b, sizeof a) == 0;
}

/* Blocks of layouts that differ in depth and replicas are priced once: what a layout is priced at by itself is the same, to the last bit.
** Candidates of one layout have one price. */
static void layouts_share_the_seconds_of_their_blocks(void **state) {
  static pp_profile profile = { .stages = 1, .layout = { .tensor = 1, .context = 1, .expert = 8, .expert_tensor = 1, .data = 8, .pipeline = 1,
                                                         .chunks = 1 } };
  pp_profile_stage *measured = &profile.stage[0];
  measured->blocks = (pp_stage){ { 0, 1, 3, 0, 0 } };
  measured->pair = 0.3;
  for (int i = 0; i < PP_MEASURED_QUANTITIES; i++) measured->of[i] = NAN;
  measured->of[PP_MEASURED_FORWARD] = 0.1;
  measured->of[PP_MEASURED_FULL] = 0.25;
  measured->of[PP_MEASURED_STORED] = 3 * GIB;
  measured->of[PP_MEASURED_PARAMETERS] = 2 * GIB;
  uint32_t seed = 1;
  size_t shared = 0;
  (void)state;
  for (int round = 0; round < 16; round++) {
    search_case c;
    pp_search search;
    pp_layout_costs fresh;
    small_case(&c);
    c.training.sequence_parallel = next_random(&seed) % 2;
    c.training.shard_gradients = next_random(&seed) % 2;
    c.training.sharded_gradient_bytes = 2;
    c.training.recompute.full = next_random(&seed) % 4 == 0;
    c.training.recompute.moe = c.training.recompute.norm = next_random(&seed) % 2;
    c.training.fused_attention = next_random(&seed) % 2;
    c.training.unfused_experts = next_random(&seed) % 2;
    c.device.host = (pp_host){ .forward = 1e-3, .backward = 2e-3, .expert_forward = next_random(&seed) % 2 * 1e-4 };
    c.device.alltoall_latency = 1e-5 * (next_random(&seed) % 3);
    c.space.max_context = 4;
    if (round % 4 == 2) {   /* neighbours differ in expert TP alone */
      c.space.experts_as_tensor = c.space.experts_apart = true;
      c.space.fixed.expert = 8;
    }
    if (round % 4 == 3) c.problem.profile = &profile;
    open_search(&c, &search);
    if (next_random(&seed) % 2) give_kernels(&search);
    for (size_t row = 0; row < search.candidates.count; row++) {
      const pp_layout *layout = &search.candidates.candidate[row].layout;
      const pp_layout_costs *costs = &search.costs[search.layout_of[row]];
      const bool as_before = row > 0 && same_degrees(*layout, search.candidates.candidate[row - 1].layout);
      pp_error error;
      assert_int_equal(as_before, row > 0 && search.layout_of[row] == search.layout_of[row - 1]);
      if (as_before) continue;
      if (pp_price_layout(&c.problem, layout, c.device.alltoall_latency, NULL, &fresh, &error) != PP_OK) fail_msg("%s", error.message);
      assert_memory_equal(costs->seconds, fresh.seconds, sizeof fresh.seconds);
      assert_memory_equal(costs->bytes, fresh.bytes, sizeof fresh.bytes);
      assert_memory_equal(&costs->hop, &fresh.hop, sizeof fresh.hop);
      assert_memory_equal(&costs->pair_share, &fresh.pair_share, sizeof fresh.pair_share);
      shared += layout->pipeline > 1 && layout->tensor > 1;
    }
    pp_search_free(&search);
  }
  assert_true(shared > 1000);
}

static void an_empty_table_has_nothing_to_find(void **state) {
  search_case c;
  pp_search search;
  bool found;
  size_t best;
  (void)state;
  set_deepseek(&c);
  c.space.global_batch = c.space.smallest_batch = 15361;
  open_search(&c, &search);
  assert_int_equal(search.candidates.count, 0);
  assert_int_equal(pp_search_memory(&search, NULL, NULL), PP_OK);
  assert_int_equal(pp_search_best(&search, NULL, 0, INFINITY, INFINITY, &found, &best, NULL, NULL), PP_OK);
  assert_false(found);
  pp_search_free(&search);
}

/* 32 heads on TP 3, and a million microbatches that no period stands for: what is not legal is said before anything is
** built. */
static void what_cannot_be_settled_says_why(void **state) {
  search_case c;
  pp_search search;
  pp_error error;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 24, 8000000);
  c.space.fixed.tensor = 3;
  c.space.fixed.pipeline = 8;
  c.space.fixed.kind = PP_1F1B;
  open_search(&c, &search);
  assert_true(search.candidates.count > 0);
  size_t row = search.candidates.count - 1;
  assert_int_equal(search.candidates.candidate[row].kind, PP_1F1B);
  assert_int_equal(pp_search_settle(&search, row, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.tensor_heads");
  assert_true(isnan(search.column[PP_COLUMN_PEAK_BYTES][row]));
  pp_search_free(&search);
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 8000000);
  c.space.fixed.tensor = 8;
  c.space.fixed.pipeline = 8;
  c.space.fixed.kind = PP_GPIPE;
  open_search(&c, &search);
  row = search.candidates.count - 1;
  assert_int_equal(search.candidates.candidate[row].kind, PP_GPIPE);
  assert_int_equal(pp_search_settle(&search, row, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.too_many_actions");
  assert_true(isnan(search.column[PP_COLUMN_PEAK_BYTES][row]));
  pp_search_free(&search);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(best_is_what_simulating_everything_finds),
    cmocka_unit_test(nothing_is_simulated_whose_bound_is_above_the_fastest),
    cmocka_unit_test(nothing_under_a_limit_is_found_without_simulating),
    cmocka_unit_test(memory_is_filled_where_a_row_can_be_built_and_nowhere_else),
    cmocka_unit_test(stages_that_nearly_fit_give_layers_to_emptier_ranks),
    cmocka_unit_test(no_split_is_slower_than_balanced_ranks_with_a_layer_everywhere),
    cmocka_unit_test(the_expert_link_is_the_slowest_that_the_group_crosses),
    cmocka_unit_test(a_kernel_makes_overlapping_schedules_faster_again),
    cmocka_unit_test(the_bound_of_all_splits_is_below_what_the_chosen_one_takes),
    cmocka_unit_test(the_split_is_the_fastest_or_within_the_tie_and_no_slower_than_even),
    cmocka_unit_test(prices_follow_the_kernel),
    cmocka_unit_test(layouts_share_the_seconds_of_their_blocks),
    cmocka_unit_test(what_cannot_be_settled_says_why),
    cmocka_unit_test(an_empty_table_has_nothing_to_find),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

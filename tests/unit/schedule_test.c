/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c and schedules_*.c: which requests are legal, what the programs are, what makes a program wrong. */
#include "schedules.h"

static pp_error refused(pp_schedule_request request) {
  pp_error error = { .id = "" };
  assert_int_equal(pp_schedule_check(&request, &error), PP_ILLEGAL);
  return error;
}

static void assert_refused(pp_schedule_request request, const char *id, const char *field, double nearest) {
  pp_error error = refused(request);
  assert_string_equal(error.id, id);
  assert_string_equal(error.field, field);
  assert_near(error.nearest, nearest);
}

static void assert_legal(pp_schedule_request request) {
  pp_error error;
  if (pp_schedule_check(&request, &error) != PP_OK) fail_msg("%s", error.message);
}

static void names_and_kinds_correspond(void **state) {
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) assert_int_equal(pp_schedule_kind_of(pp_schedule_traits_of((pp_schedule_kind)kind)->name), kind);
  assert_int_equal(pp_schedule_kind_of("dualpipe_v"), -1);
}

static void out_of_range_is_invalid_rather_than_illegal(void **state) {
  (void)state;
  pp_error error;
  pp_schedule_request request = request_of(PP_1F1B, 0, 4);
  assert_int_equal(pp_schedule_check(&request, &error), PP_INVALID);
  assert_string_equal(error.message, "ranks must be at least 1, got 0");
  request = request_of(PP_1F1B, 4, -1);
  assert_int_equal(pp_schedule_check(&request, &error), PP_INVALID);
}

/* deepseek-ai/DualPipe, dualpipe.py: assert num_ranks % 2 == 0; num_chunks > 0 and num_chunks >= num_ranks * 2; num_chunks % 2 == 0 */
static void dualpipe_wants_even_depth_and_even_microbatches_of_twice_the_depth(void **state) {
  (void)state;
  assert_refused(request_of(PP_DUALPIPE, 5, 20), "engine.odd_depth", "ranks", 4);
  assert_refused(request_of(PP_DUALPIPE, 1, 20), "engine.odd_depth", "ranks", 2);
  assert_refused(request_of(PP_DUALPIPE, 8, 14), "engine.too_few_microbatches", "microbatches", 16);
  assert_refused(request_of(PP_DUALPIPE, 8, 15), "engine.too_few_microbatches", "microbatches", 16);
  assert_refused(request_of(PP_DUALPIPE, 8, 17), "engine.odd_microbatches", "microbatches", 16);
  assert_legal(request_of(PP_DUALPIPE, 8, 16));
  assert_legal(request_of(PP_DUALPIPE, 2, 4));
}

/* dualpipev.py asserts num_chunks >= num_ranks * 2 only; odd counts pass, and one rank works. */
static void dualpipev_takes_odd_microbatches_and_any_depth(void **state) {
  (void)state;
  assert_legal(request_of(PP_DUALPIPEV, 5, 11));
  assert_legal(request_of(PP_DUALPIPEV, 1, 2));
  assert_refused(request_of(PP_DUALPIPEV, 5, 9), "engine.too_few_microbatches", "microbatches", 10);
}

static void chunks_per_rank_belong_to_the_schedule(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_ZB_V, 4, 8);
  request.chunks = 1;
  assert_refused(request, "engine.chunks", "virtual", 2);
  request = request_of(PP_1F1B, 4, 8);
  request.chunks = 2;
  assert_refused(request, "engine.chunks", "virtual", 1);
  request = request_of(PP_INTERLEAVED_1F1B, 4, 8);
  request.chunks = 1;
  assert_refused(request, "engine.chunks", "virtual", 2);
}

/* Megatron-LM, schedules.py and model_parallel_config.py: P ≤ N ≤ M; M mod N is 0 or at least P. */
static void interleaved_groups_follow_megatrons_rule(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_INTERLEAVED_1F1B, 4, 3);
  assert_refused(request, "engine.too_few_microbatches", "microbatches", 4);
  assert_refused(request_of(PP_INTERLEAVED_1F1B, 4, 10), "engine.microbatch_group", "microbatches", 8);
  assert_refused(request_of(PP_INTERLEAVED_1F1B, 4, 11), "engine.microbatch_group", "microbatches", 12);
  request = request_of(PP_INTERLEAVED_1F1B, 4, 10);
  request.group = 3;
  assert_refused(request, "engine.microbatch_group", "group", 5);
  request.group = 11;
  assert_refused(request, "engine.microbatch_group", "group", 10);
  request.group = 5;
  assert_legal(request);
  request.group = 6;   /* 10 mod 6 = 4 = P */
  assert_legal(request);
  request = request_of(PP_1F1B, 4, 8);
  request.group = 4;
  assert_string_equal(refused(request).id, "engine.microbatch_group");
}

/* PyTorch 2.13, ScheduleInterleaved1F1B and ScheduleInterleavedZeroBubble: M mod max(1, M div P) = 0, and fewer microbatches than ranks pass. */
static void rounds_follow_pytorchs_rule(void **state) {
  (void)state;
  static const pp_schedule_kind kinds[] = { PP_INTERLEAVED_1F1B, PP_INTERLEAVED_1F1B_OVERLAP, PP_INTERLEAVED_ZERO_BUBBLE };
  static const struct { int ranks, microbatches, group; } legal[] = { { 4, 5, 5 }, { 4, 6, 6 }, { 4, 7, 7 }, { 4, 10, 5 }, { 8, 12, 12 }, { 4, 3, 3 }, { 8, 4, 4 } };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++) {
      pp_schedule_request request = request_of(kinds[k], legal[i].ranks, legal[i].microbatches);
      request.group = PP_GROUP_ROUNDS;
      assert_legal(request);
      assert_int_equal(pp_schedule_group(&request), legal[i].group);
    }
    pp_schedule_request request = request_of(kinds[k], 4, 11);
    request.group = PP_GROUP_ROUNDS;
    assert_refused(request, "engine.microbatch_group", "microbatches", 10);   /* 2 rounds */
    request.microbatches = 19;                                                /* 4 rounds; 18 are not 4 rounds either */
    assert_refused(request, "engine.microbatch_group", "microbatches", 20);
  }
  assert_refused(request_of(PP_INTERLEAVED_ZERO_BUBBLE, 4, 11), "engine.microbatch_group", "microbatches", 10);   /* its own rule */
  pp_schedule_request alone = request_of(PP_LOOPED_BFS, 4, 8);
  alone.group = PP_GROUP_ROUNDS;
  assert_string_equal(refused(alone).id, "engine.microbatch_group");
  alone.group = PP_GROUP_ROUNDS - 1;
  assert_int_equal(pp_schedule_check(&alone, NULL), PP_INVALID);
}

static void absurd_sizes_hit_a_stated_limit(void **state) {
  (void)state;
  assert_refused(request_of(PP_1F1B, 4, 1000000000), "engine.too_many_actions", "microbatches", PP_MAX_BUILT / 8);
  assert_refused(request_of(PP_DUALPIPE, 40000, 80000), "engine.too_many_actions", "ranks", 32767);
}

/* Found by fuzzing: P × V × 3 actions do not fit 64 bits, which UndefinedBehaviorSanitizer sees. */
static void sizes_beyond_64_bits_hit_it_too(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_INTERLEAVED_ZERO_BUBBLE, INT32_MAX, INT32_MAX);
  request.chunks = INT32_MAX;
  assert_refused(request, "engine.too_many_actions", "virtual", PP_MAX_STAGES);
  request.chunks = PP_MAX_STAGES;
  assert_refused(request, "engine.too_many_actions", "ranks", 1);
}

/* No program is made of it, so that the order's own rules are all there is; next to the largest int they must not run over it. */
static void without_a_program_only_the_orders_rules_count(void **state) {
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    const int group = pp_schedule_traits_of((pp_schedule_kind)kind)->grouping ? 8 : 2;
    pp_schedule_request request = request_of((pp_schedule_kind)kind, 8, INT32_MAX - INT32_MAX % group);
    pp_error error;
    if (pp_schedule_check_within(&request, INT64_MAX, &error) != PP_OK) fail_msg("%s", error.message);
    assert_true(pp_schedule_most_actions(&request) >= (int64_t)2 * 8 * request.microbatches);
    assert_string_equal(refused(request).id, "engine.too_many_actions");
  }
  pp_error error;
  pp_schedule_request rest = request_of(PP_INTERLEAVED_1F1B, 9, INT32_MAX);   /* 2147483647 = 9 × 238609294 + 1 */
  assert_int_equal(pp_schedule_check_within(&rest, INT64_MAX, &error), PP_ILLEGAL);
  assert_near(error.nearest, 2147483646);
  rest.ranks = 5;                                                             /* 5 × 429496729 + 2 */
  rest.microbatches = INT32_MAX - 3;                                          /* remainder 4: the next multiple is 2147483645 */
  assert_int_equal(pp_schedule_check_within(&rest, INT64_MAX, &error), PP_ILLEGAL);
  assert_near(error.nearest, 2147483645);
  rest.group = PP_GROUP_ROUNDS;
  assert_int_equal(pp_schedule_check_within(&rest, INT64_MAX, &error), PP_ILLEGAL);
}

static void no_program_has_more_actions_than_is_said(void **state) {
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++)
    for (int ranks = 2; ranks <= 8; ranks += 2) {
      const pp_schedule_request request = request_of((pp_schedule_kind)kind, ranks, 8 * ranks);
      assert_true(pp_schedule_actions(&request) <= (size_t)pp_schedule_most_actions(&request));
    }
}

/* Taking the nearest legal value of one field after another ends at a legal request. */
static void following_the_advice_leads_to_a_legal_request(void **state) {
  (void)state;
  static const int large[] = { 1, 3, 7, 16, 61, 300, 5000, 70001, 2000000001 };
  uint64_t seed = 23;
  int refusals = 0;
  for (int k = 0; k < 4000; k++) {
    pp_schedule_request request = { .kind = (pp_schedule_kind)(draw(&seed, PP_SCHEDULE_KINDS) - 1), .ranks = large[draw(&seed, 9) - 1],
                                    .microbatches = large[draw(&seed, 9) - 1] + draw(&seed, 2) - 1, .chunks = draw(&seed, 4) };
    if (draw(&seed, 20) == 1) request.chunks = large[draw(&seed, 9) - 1];
    if (pp_schedule_traits_of(request.kind)->grouping && draw(&seed, 2) == 1) request.group = draw(&seed, 100) - 2;
    pp_error error;
    int step = 0;
    for (; pp_schedule_check(&request, &error) == PP_ILLEGAL; step++) {
      if (step == 8) fail_msg("still: %s", error.message);
      int nearest = (int)error.nearest;
      if (strcmp(error.field, "ranks") == 0) request.ranks = nearest;
      else if (strcmp(error.field, "microbatches") == 0) request.microbatches = nearest;
      else if (strcmp(error.field, "virtual") == 0) request.chunks = nearest;
      else if (strcmp(error.field, "group") == 0) request.group = nearest;
      else fail_msg("no field '%s'", error.field);
      refusals++;
    }
    assert_legal(request);
  }
  assert_true(refusals > 1000);
}

/* What has no rule really runs: every small M, below and above P, is complete, ordered and free of deadlocks. */
static void schedules_without_a_rule_run_for_any_microbatch_count(void **state) {
  (void)state;
  static const pp_schedule_kind any[] = { PP_GPIPE, PP_LOOPED_BFS, PP_1F1B, PP_ZB_H1, PP_ZB_H2, PP_ZB_V, PP_ZB_AUTO, PP_V_HALF, PP_V_MIN };
  for (size_t k = 0; k < sizeof any / sizeof *any; k++)
    for (int ranks = 1; ranks <= 9; ranks++)
      for (int microbatches = 1; microbatches <= 2 * ranks + 1; microbatches++) {
        pp_error error;
        pp_schedule schedule = built(request_of(any[k], ranks, microbatches));
        if (pp_schedule_verify(&schedule, &error) != PP_OK) fail_msg("%s", error.message);
        pp_simulation result = simulated(&schedule, (equal_times){ 1, 1, 1, 0, 0 });
        pp_simulation_free(&result);
        pp_schedule_free(&schedule);
      }
}

static void legal_requests_give_complete_ordered_executable_programs(void **state) {
  (void)state;
  uint64_t seed = 1;
  int tried = 0;
  while (tried < 600) {
    pp_schedule_request request = request_of((pp_schedule_kind)(draw(&seed, PP_SCHEDULE_KINDS) - 1), draw(&seed, 12), draw(&seed, 50));
    if (pp_schedule_traits_of(request.kind)->chunks == 0) request.chunks = 1 + draw(&seed, 4);
    if (pp_schedule_traits_of(request.kind)->grouping) request.group = draw(&seed, 50) - 2;
    if (pp_schedule_check(&request, NULL) != PP_OK) continue;
    tried++;
    pp_error error;
    pp_schedule schedule = built(request);
    assert_int_equal(schedule.first[request.ranks], pp_schedule_actions(&request));
    if (pp_schedule_verify(&schedule, &error) != PP_OK) fail_msg("%s", error.message);
    pp_simulation result = simulated(&schedule, (equal_times){ 3, 2, 1, 5, 0.25 });
    assert_true(result.min_idle >= -1e-9);
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
}

/* Worked sequences. DualPipeV and DualPipe: derived by hand from deepseek-ai/DualPipe's step(); ZB-H1, ZB-H2: Qi et al. 2024, figures 2 and
** 3; ZB-V, interleaved: PyTorch's schedules.py. */
static void worked_sequences_come_out_action_for_action(void **state) {
  (void)state;
  static const struct { pp_schedule_kind kind; int ranks, microbatches, rank; const char *actions; } worked[] = {
    { PP_DUALPIPEV, 2, 4, 0, "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1),(3F2;0B0),3B2,(3F3;0B1),3B3,0I2,0W2,0I3,0W3" },
    { PP_DUALPIPEV, 2, 4, 1, "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0),(1F3;2B1),(2F3;1B1),2B2,1B2,2I3,1I3,2W3,1W3" },
    /* the same with stages 3, 2 → chain 1's stages 3, 2, numbered 7 and 6 */
    { PP_DUALPIPE, 4, 8, 0, "0F0,0F1,0F2,7F0,7I0,7W0,7F1,(0F3;7B1),(7F2;0B0),7B2,(7F3;0B1),7B3,0I2,0W2,0I3,0W3" },
    { PP_DUALPIPE, 4, 8, 1, "1F0,6F0,1F1,6F1,1F2,6B0,(6F2;1B0),(1F3;6B1),(6F3;1B1),6B2,1B2,6I3,1I3,6W3,1W3" },
    /* and mirrored */
    { PP_DUALPIPE, 4, 8, 3, "4F0,4F1,4F2,3F0,3I0,3W0,3F1,(4F3;3B1),(3F2;4B0),3B2,(3F3;4B1),3B3,4I2,4W2,4I3,4W3" },
    { PP_ZB_H1, 4, 8, 3, "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,3W5,3W6,3W7" },
    { PP_ZB_H2, 4, 8, 0, "0F0,0F1,0F2,0F3,0F4,0F5,0F6,0I0,0W0,0F7,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7" },
    { PP_ZB_V, 2, 4, 1, "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1F3,1I1,1W1,2F3,2I2,2W2,1I2,2I3,1I3,1W2,2W3,1W3" },
    { PP_INTERLEAVED_1F1B, 2, 4, 0, "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3" },
    /* rank 0 of that, one forward earlier and each turn a pair */
    { PP_INTERLEAVED_1F1B_OVERLAP, 2, 4, 0, "0F0,0F1,2F0,2F1,0F2,(0F3;2B0),(2F2;2B1),(2F3;0B0),0B1,2B2,2B3,0B2,0B3" },
    { PP_INTERLEAVED_ZERO_BUBBLE, 2, 2, 1, "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1I0,3W1,1I1,1W0,1W1" },
    { PP_LOOPED_BFS, 2, 2, 1, "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0" },
    { PP_1F1B, 4, 8, 2, "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7" },
    { PP_GPIPE, 2, 3, 1, "1F0,1F1,1F2,1B0,1B1,1B2" },
  };
  for (size_t k = 0; k < sizeof worked / sizeof *worked; k++) {
    pp_schedule schedule = built(request_of(worked[k].kind, worked[k].ranks, worked[k].microbatches));
    assert_string_equal(actions_of(&schedule, worked[k].rank), worked[k].actions);
    pp_schedule_free(&schedule);
  }
}

static void stages_live_where_their_placement_says(void **state) {
  (void)state;
  pp_schedule loop = built(request_of(PP_INTERLEAVED_1F1B, 4, 8)), v = built(request_of(PP_ZB_V, 4, 8)), both = built(request_of(PP_DUALPIPE, 4, 8));
  for (int s = 0; s < 8; s++) {
    assert_int_equal(loop.rank_of[s], s % 4);
    assert_int_equal(v.rank_of[s], s < 4 ? s : 7 - s);
    assert_int_equal(both.rank_of[s], s < 4 ? s : 3 - (s - 4));
    assert_int_equal(pp_schedule_stages_of(&both, both.rank_of[s])[both.slot_of[s]], s);
    assert_int_equal(pp_schedule_stages_of(&v, v.rank_of[s])[v.slot_of[s]], s);
  }
  pp_schedule_free(&loop);
  pp_schedule_free(&v);
  pp_schedule_free(&both);
}

/* deepseek-ai/DualPipe, step(): pairs 2(n − 2H + h + 1) + (H − h − 1), one less on a middle rank; deferred 2(H − h − 1) + (h + 1). */
static void eight_steps_have_as_many_pairs_and_deferred_weights_as_derived(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 16; ranks += 2)
    for (int microbatches = 2 * ranks; microbatches <= 3 * ranks; microbatches += 2) {
      pp_schedule schedule = built(request_of(PP_DUALPIPE, ranks, microbatches));
      for (int rank = 0; rank < ranks; rank++) {
        int turns = ranks / 2, half = rank < turns ? rank : ranks - 1 - rank, middle = half == turns - 1, count[5] = { 0 };
        for (size_t i = schedule.first[rank]; i < schedule.first[rank + 1]; i++) count[schedule.action[i].kind]++;
        assert_int_equal(count[PP_FB], 2 * (microbatches / 2 - 2 * turns + half + 1) + (turns - half - 1) - middle);
        assert_int_equal(count[PP_F], 3 * (turns - half - 1) + 2 * (half + 1) + middle);
        assert_int_equal(count[PP_B], turns + middle);
        assert_int_equal(count[PP_I], 2 * (turns - half - 1) + half + 1);
        assert_int_equal(count[PP_W], count[PP_I]);
      }
      pp_schedule_free(&schedule);
    }
}

/* Sources: README of deepseek-ai/DualPipe (P + 1); Narayanan et al. 2021 and Megatron's warm-up (interleaved); Qi et al. 2024 (ZB-H1, H2). */
static void peaks_in_chunks_follow_the_published_laws(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 8; ranks += 2) {
    int microbatches = 4 * ranks;
    for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
      pp_schedule_request request = request_of((pp_schedule_kind)kind, ranks, microbatches);
      if (pp_schedule_limit(&request) > 0) continue;   /* schedules_greedy_test.c */
      pp_schedule schedule = built(request);
      for (int rank = 0; rank < ranks; rank++) {
        const double expected[PP_SCHEDULE_KINDS][2] = {   /* freed at W, freed at I */
          [PP_GPIPE] = { microbatches, microbatches },
          [PP_LOOPED_BFS] = { 2 * microbatches, 2 * microbatches },
          [PP_1F1B] = { ranks - rank, ranks - rank },
          [PP_INTERLEAVED_1F1B] = { ranks + 2 * (ranks - 1 - rank) + 1, ranks + 2 * (ranks - 1 - rank) + 1 },
          [PP_INTERLEAVED_1F1B_OVERLAP] = { ranks + 2 * (ranks - 1 - rank) + 2, ranks + 2 * (ranks - 1 - rank) + 2 },
          [PP_ZB_H1] = { ranks, ranks - rank },
          [PP_ZB_H2] = { 2 * ranks - 1, 2 * (ranks - rank) - 1 },
          [PP_INTERLEAVED_ZERO_BUBBLE] = { 2 * ranks, 2 * ranks - rank },
          [PP_ZB_V] = { 2 * ranks, 2 * ranks },
          [PP_DUALPIPE] = { ranks + 1, ranks + 1 },
          [PP_DUALPIPEV] = { 2 * ranks + 1, 2 * ranks + 1 },
        };
        assert_near(peak_of(&schedule, rank, 1), expected[kind][0]);
        assert_near(peak_of(&schedule, rank, 0), expected[kind][1]);
      }
      pp_schedule_free(&schedule);
    }
  }
}

static void a_frontier_sized_schedule_builds_and_simulates(void **state) {
  (void)state;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    pp_error error;
    pp_schedule schedule = built(request_of((pp_schedule_kind)kind, 64, 4096));
    if (pp_schedule_verify(&schedule, &error) != PP_OK) fail_msg("%s", error.message);
    pp_simulation result = simulated(&schedule, (equal_times){ 1, 1, 1, 0, 0 });
    assert_true(result.makespan > 0);
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_and_kinds_correspond),
    cmocka_unit_test(out_of_range_is_invalid_rather_than_illegal),
    cmocka_unit_test(dualpipe_wants_even_depth_and_even_microbatches_of_twice_the_depth),
    cmocka_unit_test(dualpipev_takes_odd_microbatches_and_any_depth),
    cmocka_unit_test(chunks_per_rank_belong_to_the_schedule),
    cmocka_unit_test(interleaved_groups_follow_megatrons_rule),
    cmocka_unit_test(rounds_follow_pytorchs_rule),
    cmocka_unit_test(absurd_sizes_hit_a_stated_limit),
    cmocka_unit_test(sizes_beyond_64_bits_hit_it_too),
    cmocka_unit_test(without_a_program_only_the_orders_rules_count),
    cmocka_unit_test(no_program_has_more_actions_than_is_said),
    cmocka_unit_test(following_the_advice_leads_to_a_legal_request),
    cmocka_unit_test(schedules_without_a_rule_run_for_any_microbatch_count),
    cmocka_unit_test(legal_requests_give_complete_ordered_executable_programs),
    cmocka_unit_test(worked_sequences_come_out_action_for_action),
    cmocka_unit_test(stages_live_where_their_placement_says),
    cmocka_unit_test(eight_steps_have_as_many_pairs_and_deferred_weights_as_derived),
    cmocka_unit_test(peaks_in_chunks_follow_the_published_laws),
    cmocka_unit_test(a_frontier_sized_schedule_builds_and_simulates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

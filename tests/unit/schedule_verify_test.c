/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_verify.c: what makes a program wrong. Whether ranks wait for each other is held against a second, slow executor that is written
** differently: it keeps the messages of each stage in lists and lets any rank go on that can.
*/
#include "schedules.h"

enum { MAX_STAGES = 64, MAX_MICROBATCHES = 64, MAX_RANKS = 32 };

/* -- the slow executor ----------------------------------------------------------------------------------------------------------------- */

typedef struct {
  uint32_t microbatch[2 * MAX_MICROBATCHES];
  int length;
} inbox;   /* results that have come to a stage and have not been used, oldest first */

typedef struct {
  const pp_schedule *schedule;
  int capacity;                       /* of an inbox between ranks */
  inbox come[2][MAX_STAGES];         /* [forward 0, backward 1] */
  size_t next[MAX_RANKS];
  int unsent[MAX_RANKS][2];           /* stage whose result waits for room, or −1 */
  uint32_t unsent_microbatch[MAX_RANKS][2];
} slow_run;

static bool crosses(const pp_schedule *schedule, int a, int b) { return schedule->rank_of[a] != schedule->rank_of[b]; }
static bool is_first(const pp_schedule *schedule, int stage) { return stage % schedule->stages_per_chain == 0; }
static bool is_last(const pp_schedule *schedule, int stage) { return is_first(schedule, stage + 1); }

static int find(const inbox *from, uint32_t microbatch) {
  for (int i = 0; i < from->length; i++)
    if (from->microbatch[i] == microbatch) return i;
  return -1;
}

static bool has_input(const slow_run *run, int backward, int stage, uint32_t microbatch) {
  bool none = backward ? is_last(run->schedule, stage) : is_first(run->schedule, stage);
  return none || find(&run->come[backward][stage], microbatch) >= 0;
}

static void use_input(slow_run *run, int backward, int stage, uint32_t microbatch) {
  inbox *box = &run->come[backward][stage];
  int at = find(box, microbatch);
  if (at < 0) return;
  box->length--;
  memmove(&box->microbatch[at], &box->microbatch[at + 1], (size_t)(box->length - at) * sizeof *box->microbatch);
}

static bool try_send(slow_run *run, int backward, int stage, uint32_t microbatch) {
  int to = backward ? stage - 1 : stage + 1;
  inbox *box = &run->come[backward][to];
  if (crosses(run->schedule, stage, to) && box->length >= run->capacity) return false;
  box->microbatch[box->length++] = microbatch;
  return true;
}

static void produce(slow_run *run, int rank, int backward, int stage, uint32_t microbatch) {
  if (backward ? is_first(run->schedule, stage) : is_last(run->schedule, stage)) return;
  run->unsent[rank][backward] = stage;
  run->unsent_microbatch[rank][backward] = microbatch;
}

/* One send or one action of the rank, if it can. */
static bool step(slow_run *run, int rank) {
  bool sent = false;
  for (int backward = 0; backward < 2; backward++)
    if (run->unsent[rank][backward] >= 0 && try_send(run, backward, run->unsent[rank][backward], run->unsent_microbatch[rank][backward])) {
      run->unsent[rank][backward] = -1;
      sent = true;
    }
  if (run->unsent[rank][0] >= 0 || run->unsent[rank][1] >= 0 || run->next[rank] == run->schedule->first[rank + 1]) return sent;
  const pp_action *a = &run->schedule->action[run->next[rank]];
  bool forward = a->kind == PP_F || a->kind == PP_FB, backward = a->kind != PP_F && a->kind != PP_W;
  int stage_b = a->kind == PP_FB ? a->stage_b : a->stage;
  uint32_t microbatch_b = a->kind == PP_FB ? a->microbatch_b : a->microbatch;
  if (forward && !has_input(run, 0, a->stage, a->microbatch)) return sent;
  if (backward && !has_input(run, 1, stage_b, microbatch_b)) return sent;
  run->next[rank]++;
  if (forward) {
    use_input(run, 0, a->stage, a->microbatch);
    produce(run, rank, 0, a->stage, a->microbatch);
  }
  if (backward) {
    use_input(run, 1, stage_b, microbatch_b);
    produce(run, rank, 1, stage_b, microbatch_b);
  }
  return true;
}

/* Does the program run to its end? For complete programs whose lists are in order. */
static bool runs_slowly(const pp_schedule *schedule, int buffers) {
  static slow_run run;
  memset(&run, 0, sizeof run);
  run.schedule = schedule;
  run.capacity = buffers == PP_ASYNCHRONOUS ? 2 * MAX_MICROBATCHES : buffers;
  int ranks = schedule->request.ranks;
  assert_true(schedule->stages <= MAX_STAGES && schedule->microbatches_per_chain <= MAX_MICROBATCHES && ranks <= MAX_RANKS);
  for (int rank = 0; rank < ranks; rank++) {
    run.next[rank] = schedule->first[rank];
    run.unsent[rank][0] = run.unsent[rank][1] = -1;
  }
  for (bool moved = true; moved; ) {
    moved = false;
    for (int rank = 0; rank < ranks; rank++) moved |= step(&run, rank);
  }
  for (int rank = 0; rank < ranks; rank++)
    if (run.next[rank] < schedule->first[rank + 1] || run.unsent[rank][0] >= 0 || run.unsent[rank][1] >= 0) return false;
  return true;
}

/* -- helpers --------------------------------------------------------------------------------------------------------------------------- */

static void assert_found(const pp_schedule *schedule, int buffers, const char *id, int rank, int64_t position, const char *part) {
  pp_finding finding;
  pp_error error;
  assert_int_equal(pp_schedule_verify_p2p(schedule, buffers, &finding, &error), PP_ILLEGAL);
  assert_string_equal(error.id, id);
  if (!strstr(error.message, part)) fail_msg("no '%s' in '%s'", part, error.message);
  assert_int_equal(finding.rank, rank);
  assert_int_equal(finding.position, position);
}

static void assert_runs(const pp_schedule *schedule, int buffers) {
  pp_error error;
  if (pp_schedule_verify_p2p(schedule, buffers, NULL, &error) != PP_OK) fail_msg("%s", error.message);
}

/* Replaces a rank's list by F, B, I and W of its one stage: "F0 F1 B0 B1". The length must be the same. */
static void rewrite(pp_schedule *schedule, int rank, const char *text) {
  pp_action *action = &schedule->action[schedule->first[rank]];
  for (; *text; action++) {
    int kind = *text == 'F' ? PP_F : *text == 'B' ? PP_B : *text == 'I' ? PP_I : PP_W;
    char *end;
    *action = (pp_action){ .kind = (uint16_t)kind, .stage = (uint16_t)*pp_schedule_stages_of(schedule, rank), .microbatch = (uint32_t)strtoul(text + 1, &end, 10) };
    text = *end ? end + 1 : end;
  }
  assert_ptr_equal(action, &schedule->action[schedule->first[rank + 1]]);
}

/* -- one finding after another --------------------------------------------------------------------------------------------------------- */

static void each_error_of_a_list_is_found_where_it_is(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_ZB_H1, 4, 8));   /* rank 0: 0F0 0F1 0F2 0F3 0I0 0W0 … */
  pp_action *action = schedule.action, saved[4] = { action[0], action[1], action[2], action[3] };
  const int any = PP_ASYNCHRONOUS;

  action[1] = action[0];
  assert_found(&schedule, any, "engine.duplicate_action", 0, 1, "rank 0, action 2, 0F0: it was already run");
  action[1] = saved[1];
  action[2].kind = PP_W;
  assert_found(&schedule, any, "engine.action_order", 0, 2, "rank 0, action 3, 0W2: it comes before its I");
  action[2] = saved[2];
  action[0].kind = PP_I;
  assert_found(&schedule, any, "engine.action_order", 0, 0, "0I0: it comes before its F");
  action[0] = saved[0];
  action[0].stage = 2;
  assert_found(&schedule, any, "engine.wrong_rank", 0, 0, "rank 0, action 1, 2F0: stage 2 is on rank 2");
  action[0].stage = 77;
  assert_found(&schedule, any, "engine.unknown_action", 0, 0, "77F0: there are 4 stages and 8 microbatches");
  action[0].stage = 4;
  assert_found(&schedule, any, "engine.unknown_action", 0, 0, "4F0: there are 4 stages and 8 microbatches");
  action[0] = saved[0];
  action[3].microbatch = 8;
  assert_found(&schedule, any, "engine.unknown_action", 0, 3, "0F8: there are 4 stages and 8 microbatches");
  action[3] = saved[3];
  action[0].kind = 9;
  assert_found(&schedule, any, "engine.unknown_action", 0, 0, "no action has kind 9");
  action[0] = saved[0];
  schedule.first[4]--;   /* the last rank loses its last W */
  assert_found(&schedule, any, "engine.missing_action", 3, -1, "rank 3 never runs the W of stage 3, microbatch 7");
  schedule.first[4]++;
  assert_runs(&schedule, any);
  pp_schedule_free(&schedule);
}

/* M = 2, B = {0}, I = W = {0}: PyTorch's _validate_schedule counts #B + (#I + #W) / 2 = 2 = M and passes it. */
static void a_backward_that_is_done_twice_in_two_ways_is_found(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_ZB_H1, 1, 2));
  const int any = PP_ASYNCHRONOUS;
  rewrite(&schedule, 0, "F0 F1 B0 I0 W0 B1");
  assert_found(&schedule, any, "engine.duplicate_action", 0, 3, "0I0: its backward was already 0B0");
  rewrite(&schedule, 0, "F0 F1 I0 B0 W0 B1");
  assert_found(&schedule, any, "engine.duplicate_action", 0, 3, "0B0: its backward was already 0I0");
  rewrite(&schedule, 0, "F0 F1 B0 W0 I1 W1");   /* what a file of 2024 looks like: B is the backward for input */
  assert_found(&schedule, any, "engine.duplicate_action", 0, 3, "in PyTorch's files of 2024 B stood for what is I now");
  rewrite(&schedule, 0, "F0 F1 I0 W0 W0 I1");
  assert_found(&schedule, any, "engine.duplicate_action", 0, 4, "it was already run");
  pp_schedule_free(&schedule);
}

/* A pair runs both at once: its backward cannot be that of its forward. */
static void a_pair_is_not_of_one_microbatch(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 1, 1));
  schedule.action[0] = (pp_action){ .kind = PP_FB };
  schedule.first[1] = 1;
  assert_found(&schedule, PP_ASYNCHRONOUS, "engine.action_order", 0, 0, "rank 0, action 1, 0B0: it comes before its F");
  pp_schedule_free(&schedule);
}

/* Some tables would be far larger than their program: 60,000 stages × 60,000 microbatches with an action each. */
static void a_sparse_program_lacks_actions_and_needs_no_large_table(void **state) {
  (void)state;
  enum { N = 60000 };
  pp_schedule schedule = built(request_of(PP_1F1B, N, 1));
  schedule.microbatches_per_chain = N;
  assert_found(&schedule, PP_ASYNCHRONOUS, "engine.missing_action", 0, -1, "rank 0 never runs the F of stage 0, microbatch 1");
  schedule.action[0].microbatch = schedule.action[1].microbatch = 1;
  assert_found(&schedule, PP_ASYNCHRONOUS, "engine.missing_action", 0, -1, "rank 0 never runs the F of stage 0, microbatch 0");
  for (int stage = 0; stage < N; stage++) schedule.action[2 * stage].kind = schedule.action[2 * stage + 1].kind = 200;
  assert_found(&schedule, PP_ASYNCHRONOUS, "engine.missing_action", 0, -1, "microbatch");
  pp_schedule_free(&schedule);
}

/* -- waiting --------------------------------------------------------------------------------------------------------------------------- */

static void ranks_that_wait_for_each_other_are_named(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 2, 2));
  pp_finding finding;
  pp_error error;
  rewrite(&schedule, 0, "F0 B0 F1 B1");   /* rank 1: F0 F1 B0 B1 */
  assert_int_equal(pp_schedule_verify_p2p(&schedule, 1, &finding, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.deadlock");   /* whatever the runtime */
  assert_string_equal(error.message, "deadlock: rank 0 waits for 1B0 of rank 1, rank 1 waits for 0F1 of rank 0");
  assert_int_equal(finding.waits, 2);
  const pp_wait expected[] = { { 0, 1, 1, false, PP_B, 1, 0 }, { 1, 1, 0, false, PP_F, 0, 1 } };
  for (int i = 0; i < 2; i++) {
    assert_int_equal(finding.wait[i].rank, expected[i].rank);
    assert_int_equal(finding.wait[i].position, expected[i].position);
    assert_int_equal(finding.wait[i].of, expected[i].of);
    assert_int_equal(finding.wait[i].kind, expected[i].kind);
    assert_int_equal(finding.wait[i].stage, expected[i].stage);
    assert_int_equal(finding.wait[i].microbatch, expected[i].microbatch);
  }
  assert_false(finding.wait[0].sends || finding.wait[1].sends);
  assert_int_equal(pp_schedule_verify(&schedule, &error), PP_ILLEGAL);
  pp_schedule_free(&schedule);
}

static void a_rank_may_wait_for_itself(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_ZB_V, 1, 1));   /* 0F0 1F0 … */
  pp_action first = schedule.action[0];
  schedule.action[0] = schedule.action[1];
  schedule.action[1] = first;
  assert_found(&schedule, PP_ASYNCHRONOUS, "engine.deadlock", 0, 0, "deadlock: rank 0 waits for 0F0 of rank 0");
  pp_schedule_free(&schedule);
}

/* Rank 0 runs its second chunk first, which needs the first chunks of all ranks, which need rank 0's. */
static void a_long_cycle_is_cut_in_the_message_and_counted_in_the_finding(void **state) {
  (void)state;
  enum { P = 100 };
  pp_schedule schedule = built(request_of(PP_INTERLEAVED_1F1B, P, P));
  pp_action *action = schedule.action, first = action[0];
  pp_finding finding;
  pp_error error;
  int i = 0;
  while (action[i].stage != P) i++;
  action[0] = action[i];
  action[i] = first;
  assert_int_equal(pp_schedule_verify_p2p(&schedule, PP_ASYNCHRONOUS, &finding, &error), PP_ILLEGAL);
  assert_int_equal(finding.waits, P);
  for (i = 0; i < PP_FINDING_WAITS; i++) {
    assert_int_equal(finding.wait[i].rank, (P - i) % P);
    assert_int_equal(finding.wait[i].of, (2 * P - 1 - i) % P);
  }
  assert_true(strlen(error.message) < sizeof error.message - 1);
  assert_non_null(strstr(error.message, "rank 0 waits for 99F0 of rank 99, rank 99 waits for 98F0 of rank 98, "));
  assert_string_equal(error.message + strlen(error.message) - strlen(", …"), ", …");
  pp_schedule_free(&schedule);
}

/*
** By hand. Rank 0 forwards four microbatches before its first backward. Rank 1 has used F0, keeps F1 in its buffer, and its B0 lies in rank
** 0's. It runs F1, which lets F2 in; rank 0 runs F3, whose send waits until rank 1 runs F2; but rank 1 first has to send B1, whose buffer
** rank 0 empties only after that send. With one forward less, F2's send is matched while rank 0 needs no more.
*/
static void a_warm_up_too_long_for_the_buffers_blocks(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 4));
  pp_finding finding;
  pp_error error;
  rewrite(&schedule, 0, "F0 F1 F2 B0 F3 B1 B2 B3");
  rewrite(&schedule, 1, "F0 B0 F1 B1 F2 B2 F3 B3");
  assert_runs(&schedule, 1);
  rewrite(&schedule, 0, "F0 F1 F2 F3 B0 B1 B2 B3");
  assert_runs(&schedule, PP_ASYNCHRONOUS);
  assert_int_equal(pp_schedule_verify_p2p(&schedule, 1, &finding, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.blocking_deadlock");
  assert_string_equal(error.message, "deadlock where p2p blocks: rank 0 waits for rank 1 to take 0F3, rank 1 waits for rank 0 to take 1B1");
  assert_true(finding.waits == 2 && finding.wait[0].sends && finding.wait[1].sends);
  assert_int_equal(finding.wait[0].position, 4);
  pp_schedule_free(&schedule);
}

/* By hand: the buffer of stage 1 holds F0 when F1 is what it needs. Where sending blocks nobody, both come. */
static void another_order_than_the_senders_blocks(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 2, 2));
  rewrite(&schedule, 1, "F1 F0 B0 B1");
  assert_runs(&schedule, PP_ASYNCHRONOUS);
  assert_found(&schedule, 1, "engine.blocking_deadlock", 0, 2,
               "rank 0 waits for rank 1 to take 0F1, rank 1 waits for 0F1 of rank 0");
  pp_schedule_free(&schedule);
}

static int buffers_of(const pp_schedule *schedule) {
  int buffers = 0;
  pp_error error;
  if (pp_schedule_receive_buffers(schedule, &buffers, &error) != PP_OK) fail_msg("%s", error.message);
  return buffers;
}

/*
** deepseek-ai/DualPipe's step() waits for each group before it computes, and runs: so do PyTorch's 1F1B and Megatron-LM's interleaved 1F1B
** without overlapped p2p. The programs of the others of these kinds need no more either. Two need more, which PyTorch runs with receives
** posted ahead: looped BFS sends all microbatches of a stage before it takes one of the next, and interleaved zero bubble warms up with half
** of what a message there and back takes. Those planned from times run passes as early as they can, so that results wait for their
** receivers.
*/
static void most_schedules_run_where_p2p_blocks_with_a_buffer_for_each_input(void **state) {
  (void)state;
  static const pp_schedule_kind kinds[] = { PP_GPIPE, PP_1F1B, PP_INTERLEAVED_1F1B, PP_INTERLEAVED_1F1B_OVERLAP, PP_ZB_H1, PP_ZB_H2, PP_ZB_V,
                                            PP_DUALPIPE, PP_DUALPIPEV };
  static const pp_schedule_kind others[] = { PP_LOOPED_BFS, PP_INTERLEAVED_ZERO_BUBBLE };
  int programs = 0;
  for (size_t k = 0; k < 2; k++) {
    pp_schedule schedule = built(request_of(others[k], 4, 8));
    assert_true(buffers_of(&schedule) > 1);
    pp_schedule_free(&schedule);
  }
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    for (int ranks = 1; ranks <= 16; ranks++)
      for (int microbatches = 1; microbatches <= 50; microbatches += microbatches < 8 ? 1 : 3)
        for (int chunks = 1; chunks <= 4; chunks++) {
          pp_schedule_request request = request_of(kinds[kind], ranks, microbatches);
          request.chunks = chunks;
          if (kind == PP_LOOPED_BFS || kind == PP_INTERLEAVED_ZERO_BUBBLE || pp_schedule_limit(&request) > 0) continue;
          if (pp_schedule_check(&request, NULL) != PP_OK) continue;
          pp_schedule schedule = built(request);
          assert_runs(&schedule, 1);
          assert_int_equal(buffers_of(&schedule), 1);
          if (schedule.stages <= MAX_STAGES) assert_true(runs_slowly(&schedule, 1));
          pp_schedule_free(&schedule);
          programs++;
        }
  assert_true(programs > 1000);
}

/* GPipe whose last rank takes the microbatches in the opposite order has to keep all but the last it takes. */
static void the_least_number_of_buffers_is_found(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 2, 8));
  pp_error error;
  int buffers;
  rewrite(&schedule, 1, "F7 F6 F5 F4 F3 F2 F1 F0 B0 B1 B2 B3 B4 B5 B6 B7");
  assert_int_equal(buffers_of(&schedule), 8);
  rewrite(&schedule, 1, "F4 F3 F2 F1 F0 F7 F6 F5 B0 B1 B2 B3 B4 B5 B6 B7");
  assert_int_equal(buffers_of(&schedule), 5);
  rewrite(&schedule, 0, "F0 B0 F1 F2 F3 F4 F5 F6 F7 B1 B2 B3 B4 B5 B6 B7");
  assert_int_equal(pp_schedule_receive_buffers(&schedule, &buffers, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.deadlock");
  pp_schedule_free(&schedule);
}

/* -- corruption ------------------------------------------------------------------------------------------------------------------------ */

/* A small legal program, any kind. */
static pp_schedule drawn_schedule(uint64_t *seed) {
  for (;;) {
    pp_schedule_request request = request_of((pp_schedule_kind)(draw(seed, PP_SCHEDULE_KINDS) - 1), draw(seed, 6), draw(seed, 24));
    if (pp_schedule_check(&request, NULL) == PP_OK) return built(request);
  }
}

static size_t drawn_action(const pp_schedule *schedule, uint64_t *seed) {
  return (size_t)draw(seed, (int)schedule->first[schedule->request.ranks]) - 1;
}

static int rank_at(const pp_schedule *schedule, size_t i) {
  int rank = 0;
  while (i >= schedule->first[rank + 1]) rank++;
  return rank;
}

static void expect_finding(const pp_schedule *schedule, const char *change) {
  pp_error error;
  if (pp_schedule_verify(schedule, &error) != PP_ILLEGAL) fail_msg("%s was not found", change);
  assert_true(strncmp(error.id, "engine.", 7) == 0 && error.message[0] != '\0' && strcmp(error.id, "engine.deadlock") != 0);
}

/* These change what the program computes: none may pass, and none needs the second pass. */
static void what_changes_the_work_of_a_program_is_always_found(void **state) {
  (void)state;
  uint64_t seed = 37;
  for (int k = 0; k < 4000; k++) {
    pp_schedule schedule = drawn_schedule(&seed);
    size_t count = schedule.first[schedule.request.ranks], i = drawn_action(&schedule, &seed), j = drawn_action(&schedule, &seed);
    pp_action *action = schedule.action, before = action[i];
    int rank = rank_at(&schedule, i);
    switch (k % 5) {
      case 0:   /* dropped */
        memmove(&action[i], &action[i + 1], (count - i - 1) * sizeof *action);
        for (int r = rank + 1; r <= schedule.request.ranks; r++) schedule.first[r]--;
        expect_finding(&schedule, "a dropped action");
        break;
      case 1:   /* written over with another */
        if (memcmp(&action[i], &action[j], sizeof *action) == 0) break;
        action[i] = action[j];
        expect_finding(&schedule, "a duplicate");
        break;
      case 2:   /* exchanged with one of another rank */
        if (rank == rank_at(&schedule, j)) break;
        action[i] = action[j];
        action[j] = before;
        expect_finding(&schedule, "an action on another rank");
        break;
      case 3:   /* of another microbatch */
        action[i].microbatch = (uint32_t)(draw(&seed, schedule.microbatches_per_chain + 1) - 1);
        if (action[i].microbatch != before.microbatch) expect_finding(&schedule, "another microbatch");
        break;
      default:  /* another kind */
        action[i].kind = (uint16_t)(draw(&seed, 6) - 1);
        if (action[i].kind != before.kind) expect_finding(&schedule, "another kind");
        break;
    }
    pp_schedule_free(&schedule);
  }
}

/*
** Exchanging two actions of a rank leaves the work as it is. It passes exactly when the lists are still in order and the slow executor
** reaches the end: then it is a legal program with the same work, if a slower one.
*/
static void another_order_passes_exactly_when_it_runs(void **state) {
  (void)state;
  uint64_t seed = 41;
  int in_disorder = 0, stuck = 0, stuck_where_p2p_blocks = 0, harmless = 0;
  for (int k = 0; k < 6000; k++) {
    pp_schedule schedule = drawn_schedule(&seed);
    size_t i = drawn_action(&schedule, &seed), first = schedule.first[rank_at(&schedule, i)], end = schedule.first[rank_at(&schedule, i) + 1];
    size_t j = draw(&seed, 2) == 1 && i + 1 < end ? i + 1 : first + (size_t)draw(&seed, (int)(end - first)) - 1;
    pp_action before = schedule.action[i];
    schedule.action[i] = schedule.action[j];
    schedule.action[j] = before;
    pp_error error, blocking;
    int buffers = draw(&seed, 3);
    pp_status status = pp_schedule_verify(&schedule, &error), status_blocking = pp_schedule_verify_p2p(&schedule, buffers, NULL, &blocking);
    if (status == PP_ILLEGAL && strcmp(error.id, "engine.deadlock") != 0) {
      assert_string_equal(error.id, "engine.action_order");
      assert_string_equal(blocking.id, error.id);
      in_disorder++;
    } else {
      assert_int_equal(status == PP_OK, runs_slowly(&schedule, PP_ASYNCHRONOUS));
      assert_int_equal(status_blocking == PP_OK, runs_slowly(&schedule, buffers));
      if (status == PP_OK) assert_int_equal(status_blocking == PP_OK, buffers >= buffers_of(&schedule));
      if (status != PP_OK) assert_string_equal(blocking.message, error.message);
      else if (status_blocking != PP_OK) assert_string_equal(blocking.id, "engine.blocking_deadlock");
      stuck += status != PP_OK;
      stuck_where_p2p_blocks += status == PP_OK && status_blocking != PP_OK;
      harmless += status_blocking == PP_OK;
    }
    pp_schedule_free(&schedule);
  }
  assert_true(in_disorder > 300 && stuck > 300 && stuck_where_p2p_blocks > 300 && harmless > 300);
}

/* What verification accepts, simulation runs; what it does not, simulation refuses in the same words. */
static void simulation_runs_exactly_what_verification_accepts(void **state) {
  (void)state;
  uint64_t seed = 29;
  int ran = 0, stuck = 0;
  const pp_stage_times one = { 1, 1, 1, 2 };
  pp_stage_times stage[MAX_STAGES];
  for (int s = 0; s < MAX_STAGES; s++) stage[s] = one;
  for (int k = 0; k < 3000; k++) {
    pp_schedule schedule = drawn_schedule(&seed);
    size_t i = drawn_action(&schedule, &seed), j = i + 1 < schedule.first[rank_at(&schedule, i) + 1] ? i + 1 : i;
    pp_action before = schedule.action[i];
    schedule.action[i] = schedule.action[j];
    schedule.action[j] = before;
    schedule.verified = false;
    pp_error error, other;
    pp_simulation result;
    pp_times times = { .stage = stage };
    pp_status status = pp_schedule_verify(&schedule, &error), simulated = pp_simulate(&schedule, &times, false, &result, &other);
    assert_int_equal(simulated, status);
    if (simulated != PP_OK) {
      assert_string_equal(error.message, other.message);
      assert_null(result.busy);
      stuck++;
    } else ran++;
    pp_simulation_free(&result);
    pp_schedule_free(&schedule);
  }
  assert_true(ran > 500 && stuck > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_error_of_a_list_is_found_where_it_is),
    cmocka_unit_test(a_backward_that_is_done_twice_in_two_ways_is_found),
    cmocka_unit_test(a_pair_is_not_of_one_microbatch),
    cmocka_unit_test(a_sparse_program_lacks_actions_and_needs_no_large_table),
    cmocka_unit_test(ranks_that_wait_for_each_other_are_named),
    cmocka_unit_test(a_rank_may_wait_for_itself),
    cmocka_unit_test(a_long_cycle_is_cut_in_the_message_and_counted_in_the_finding),
    cmocka_unit_test(a_warm_up_too_long_for_the_buffers_blocks),
    cmocka_unit_test(another_order_than_the_senders_blocks),
    cmocka_unit_test(most_schedules_run_where_p2p_blocks_with_a_buffer_for_each_input),
    cmocka_unit_test(the_least_number_of_buffers_is_found),
    cmocka_unit_test(what_changes_the_work_of_a_program_is_always_found),
    cmocka_unit_test(another_order_passes_exactly_when_it_runs),
    cmocka_unit_test(simulation_runs_exactly_what_verification_accepts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

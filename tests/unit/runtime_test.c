/* SPDX-License-Identifier: Apache-2.0 */
/* runtime*.c: what in-order queues and batches do to a step, worked out by hand for two ranks; what the lowerings post, and deadlocks. */
#include "schedules.h"

#include "core/runtime.h"

static const pp_hardware plain = { .contention = 1 };
static const pp_stage_times four_stages[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };

static pp_simulation run_with(const pp_schedule *schedule, pp_runtime runtime, pp_times times, pp_hardware hardware) {
  pp_simulation result;
  pp_error error;
  if (pp_runtime_simulate(schedule, &times, &runtime, &hardware, true, &result, &error) != PP_OK) fail_msg("%s", error.message);
  return result;
}

static void assert_interval(const pp_simulation *result, size_t action, double start, double end) {
  assert_near(result->interval[action].start, start);
  assert_near(result->interval[action].end, end);
}

/*
** F 1, B 2, a hop 0.5. Rank 0 runs F0 F1 B0 B1, rank 1 F0 B0 F1 B1. F1's send is held back for B0's receive, so that it leaves only when rank
** 1 posts B0's send, at 4.5, and F1 there starts at 5 although it was ready at 2.5. Asynchronously the step takes 10.
*/
static void one_f_one_b_sends_a_forward_with_the_receive_of_a_backward(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 2));
  pp_times times = { .stage = four_stages, .p2p = 0.5 };
  pp_simulation ideal = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_IDEAL), times, plain);
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), times, plain);
  assert_near(ideal.makespan, 10);
  assert_interval(&result, 0, 0, 1);
  assert_interval(&result, 1, 1, 2);
  assert_interval(&result, 2, 5, 7);
  assert_interval(&result, 3, 8.5, 10.5);
  assert_interval(&result, 4, 1.5, 2.5);
  assert_interval(&result, 5, 2.5, 4.5);
  assert_interval(&result, 6, 5, 6);
  assert_interval(&result, 7, 6, 8);
  assert_near(result.makespan, 10.5);
  assert_near(result.busy[0], 6);
  assert_near(result.idle[1], 4.5);
  pp_simulation_free(&ideal);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/*
** GPipe, F 1, B 2, a hop 0.5, contention 2. F0's message is under way from 1 to 1.5, in which rank 0 does a quarter of F1: it ends at 2.25.
** B0's message is under way from 6 to 6.5, in which rank 1 does an eighth of B1: it ends at 8.25. Its message, for which rank 0 asks when
** its B0 ends at 8.5, arrives at 9.
*/
static void a_resident_batch_slows_what_runs_beside_it(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 2, 2));
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE),
                                  (pp_times){ .stage = four_stages, .p2p = 0.5 }, (pp_hardware){ .contention = 2 });
  assert_interval(&result, 1, 1, 2.25);
  assert_interval(&result, 4, 1.5, 2.5);
  assert_interval(&result, 5, 3, 4);
  assert_interval(&result, 7, 6, 8.25);
  assert_interval(&result, 3, 9, 11);
  assert_near(result.busy[0], 6.25);
  assert_near(result.busy[1], 6.25);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/*
** Rank 0 posts the receive of stage 3's microbatch 0 before the send of stage 0's microbatch 1, so that on one queue each microbatch goes
** right round the ring before the next leaves: rank 1's second forward starts at P × F. On a queue for each peer it starts at 2 F.
*/
static void an_early_receive_blocks_the_sends_behind_it(void **state) {
  (void)state;
  static const pp_stage_times six_stages[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };
  pp_schedule schedule = built(request_of(PP_INTERLEAVED_1F1B, 3, 3));
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  pp_simulation one = run_with(&schedule, runtime, (pp_times){ .stage = six_stages }, plain);
  runtime.queues = PP_QUEUE_PER_PEER;
  pp_simulation many = run_with(&schedule, runtime, (pp_times){ .stage = six_stages }, plain);
  assert_near(one.interval[schedule.first[1] + 1].start, 3);
  assert_near(many.interval[schedule.first[1] + 1].start, 2);
  pp_simulation_free(&one);
  pp_simulation_free(&many);
  pp_schedule_free(&schedule);
}

/* What a rank posts and runs, without waits, in a static buffer. */
static const char *posts_of(const pp_schedule *schedule, pp_runtime runtime, int rank) {
  static char text[4096];
  pp_lowered lowered;
  pp_error error;
  if (pp_runtime_lower(schedule, &runtime, &lowered, &error) != PP_OK) fail_msg("%s", error.message);
  char *at = text;
  for (size_t i = lowered.first[rank]; i < lowered.last[rank]; i++) {
    const pp_step *step = &lowered.step[i];
    const pp_batch *batch = &lowered.batch[step->index];
    if (step->kind == PP_STEP_WAIT) continue;
    *at++ = ' ';
    if (step->kind == PP_STEP_POST) {
      *at++ = '[';
      for (uint32_t k = 0; k < batch->count; k++) {
        if (k > 0) *at++ = ' ';
        at += pp_message_end_print(at, PP_ACTION_TEXT, &lowered.end[batch->first + k]);
      }
      *at++ = ']';
    } else if (step->kind == PP_STEP_ACTION) {
      at += pp_action_print(at, PP_ACTION_TEXT, &schedule->action[step->index]);
    } else {
      *at++ = step->kind == PP_STEP_FORWARD ? 'f' : 'b';
    }
  }
  *at = '\0';
  pp_lowered_free(&lowered);
  pp_lowered_free(&lowered);   /* leaves nothing to free */
  return text + 1;
}

/* Schedule1F1B._step_microbatches of PyTorch, followed by hand. */
static void torch_single_posts_as_one_f_one_b_of_pytorch(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_1F1B, 3, 3));
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE);
  assert_string_equal(posts_of(&schedule, runtime, 0),
                      "0F0 [0SEND_F0] 0F1 [0SEND_F1] 0F2 [0SEND_F2 0RECV_B0] 0B0 [0RECV_B1] 0B1 [0RECV_B2] 0B2");
  assert_string_equal(posts_of(&schedule, runtime, 1),
                      "[1RECV_F0] 1F0 [1SEND_F0] [1RECV_F1] 1F1 [1SEND_F1 1RECV_B0] 1B0 [1SEND_B0 1RECV_F2] 1F2 [1SEND_F2 1RECV_B1] 1B1 "
                      "[1SEND_B1] [1RECV_B2] 1B2 [1SEND_B2]");
  pp_schedule_free(&schedule);
}

/* DualPipeV.step() of deepseek-ai/DualPipe (dualpipev.py), followed by hand for 2 ranks and 4 microbatches. Rank 1 is where the V turns. */
static void deepseek_posts_a_group_before_each_action(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_DUALPIPEV, 2, 4));
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_DEEPSEEK);
  assert_string_equal(posts_of(&schedule, runtime, 0),
    "0F0 [0SEND_F0] 0F1 [0SEND_F1] 0F2 [3RECV_F0] 3F0 [0SEND_F2] 3I0 [3SEND_B0 3RECV_F1] 3W0 3F1 "
    "(0F3;3B1)OVERLAP_F_B [0SEND_F3 3SEND_B1 3RECV_F2 0RECV_B0] (3F2;0B0)OVERLAP_F_B 3B2 [3SEND_B2 3RECV_F3 0RECV_B1] "
    "(3F3;0B1)OVERLAP_F_B 3B3 [3SEND_B3 0RECV_B2] 0I2 0W2 [0RECV_B3] 0I3 0W3");
  assert_string_equal(posts_of(&schedule, runtime, 1),
    "[1RECV_F0] 1F0 [1RECV_F1] 2F0 [2SEND_F0] 1F1 [1RECV_F2] 2F1 1F2 [2SEND_F1 2RECV_B0] 2B0 "
    "(2F2;1B0)OVERLAP_F_B [2SEND_F2 1SEND_B0 1RECV_F3 2RECV_B1] (1F3;2B1)OVERLAP_F_B (2F3;1B1)OVERLAP_F_B "
    "[2SEND_F3 1SEND_B1 2RECV_B2] 2B2 1B2 [1SEND_B2 2RECV_B3] 2I3 1I3 [1SEND_B3] 2W3 1W3");
  pp_schedule_free(&schedule);
}

/*
** Rule 3 by hand: F 1, B 2, a pair 3, a hop 0.5. Both ranks of DualPipe do the same at the same time. F of either direction takes [0, 1]
** and [1.5, 2.5]; F1 and B0 follow to 5.5. Their two messages go out while two come in: 1 s, and the pair takes [6.5, 9.5]. B1 ends at 11.5;
** one message each way, and I and W take [12, 14].
*/
static void two_messages_of_a_batch_share_the_link(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_DUALPIPE, 2, 4));
  pp_times times = { .stage = four_stages, .p2p = 0.5 };
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_DEEPSEEK), times, plain);
  for (int rank = 0; rank < 2; rank++) {
    size_t first = schedule.first[rank];
    assert_interval(&result, first + 1, 1.5, 2.5);
    assert_interval(&result, first + 3, 3.5, 5.5);
    assert_interval(&result, first + 4, 6.5, 9.5);
    assert_interval(&result, first + 5, 9.5, 11.5);
    assert_interval(&result, first + 7, 13, 14);
  }
  assert_near(result.makespan, 14);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/*
** DualPipeV with the same times; its groups are above. The pairs (0F3;3B1) on rank 0 and (2F2;1B0) on rank 1 end at 13.5; two messages each
** way take until 14.5. (3F2;0B0) and 3B2 end at 19.5, rank 1's two pairs at 20.5: rank 0 sends one and receives two, until 21.5. 3B3 ends at
** 26.5; a message each way, and rank 1's two I's end at 29. 1SEND_B3 arrives at 29.5, for I and W.
*/
static void a_batch_takes_as_long_as_its_fuller_direction(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_DUALPIPEV, 2, 4));
  pp_times times = { .stage = four_stages, .p2p = 0.5 };
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_DEEPSEEK), times, plain);
  assert_interval(&result, 7, 10.5, 13.5);    /* (0F3;3B1) */
  assert_interval(&result, 8, 14.5, 17.5);    /* (3F2;0B0) */
  assert_interval(&result, 10, 21.5, 24.5);   /* (3F3;0B1) */
  assert_interval(&result, schedule.first[1] + 6, 10.5, 13.5);
  assert_interval(&result, schedule.first[1] + 7, 14.5, 17.5);
  assert_interval(&result, schedule.first[1] + 9, 21.5, 23.5);
  assert_near(result.makespan, 31.5);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/*
** DualPipe on 4 ranks, F 1, a hop 0.5: at 2.5 rank 1 sends 1F0 to rank 2 and receives 0F1 from rank 0 and 5F0 from rank 2: until 3.5, when
** 6F0 starts. Rank 0 sends 0F1 alone, is done at 3, and runs 0F2 from there: what else rank 1 receives does not hold it up.
** With F of stage 5, on rank 2, 0.4 longer, 0F1 is at rank 1 at 3, and 5F0, under way from 2.9, waits for it: 3.5 as before. Both that rank 2
** receives were waiting at 2.9: 3.9, when 2F0 starts; and rank 3, which sends one of them, goes on at 3.4.
*/
static void messages_move_once_both_ends_are_there(void **state) {
  (void)state;
  pp_stage_times stage[8];
  for (int s = 0; s < 8; s++) stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
  pp_schedule schedule = built(request_of(PP_DUALPIPE, 4, 8));
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_DEEPSEEK), (pp_times){ .stage = stage, .p2p = 0.5 }, plain);
  assert_interval(&result, schedule.first[0] + 2, 3, 4);
  assert_interval(&result, schedule.first[1] + 1, 3.5, 4.5);
  assert_interval(&result, schedule.first[2] + 1, 3.5, 4.5);
  assert_interval(&result, schedule.first[3] + 2, 3, 4);
  pp_simulation_free(&result);
  stage[5].forward = 1.4;
  result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_DEEPSEEK), (pp_times){ .stage = stage, .p2p = 0.5 }, plain);
  assert_interval(&result, schedule.first[0] + 2, 3, 4);
  assert_interval(&result, schedule.first[1] + 1, 3.5, 4.5);
  assert_interval(&result, schedule.first[2] + 1, 3.9, 4.9);
  assert_interval(&result, schedule.first[3] + 2, 3.4, 4.4);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/* What PyTorch's runtimes post holds at most one message each way, so that rule 3 is p2p for all of their batches. */
static void batches_of_pytorch_hold_at_most_one_message_each_way(void **state) {
  (void)state;
  static const pp_schedule_kind kinds[] = { PP_GPIPE, PP_1F1B, PP_ZB_H1, PP_ZB_H2, PP_INTERLEAVED_1F1B, PP_INTERLEAVED_ZERO_BUBBLE,
                                            PP_LOOPED_BFS, PP_ZB_V, PP_DUALPIPEV };
  pp_error error;
  int batches = 0;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (int pairing = PP_PAIR_OVERLAPPED; pairing <= PP_PAIR_SPLIT; pairing++) {
      pp_schedule schedule = built(request_of(kinds[k], 4, 8));
      pp_runtime runtime = *pp_runtime_preset(k < 2 ? PP_RUNTIME_TORCH_SINGLE : PP_RUNTIME_TORCH_MULTI);
      if (k >= 2) runtime.pairs = (pp_pairing)pairing;
      pp_lowered lowered;
      if (pp_runtime_lower(&schedule, &runtime, &lowered, &error) != PP_OK) fail_msg("%s", error.message);
      for (uint32_t b = 0; b < lowered.batches; b++) {
        int count[2] = { 0 };
        for (uint32_t i = 0; i < lowered.batch[b].count; i++) count[lowered.end[lowered.batch[b].first + i].receive]++;
        assert_true(count[0] <= 1 && count[1] <= 1);
        batches++;
      }
      pp_lowered_free(&lowered);
      pp_schedule_free(&schedule);
    }
  }
  assert_true(batches > 1000);
}

/* An independent simulation of DualPipe's and DualPipeV's groups found no step longer than without them, where F = I and hops take nothing. */
static void deepseeks_groups_cost_nothing_by_themselves(void **state) {
  (void)state;
  static const double weights[] = { 1, 0.5, 0.25, 0 };
  int compared = 0;
  for (int ranks = 2; ranks <= 16; ranks *= 2) {
    for (int kind = PP_DUALPIPE; kind <= PP_DUALPIPEV; kind++) {
      for (int more = 0; more <= 2 * ranks; more += more == 0 ? 2 : 2 * ranks - 2) {
        pp_schedule schedule = built(request_of((pp_schedule_kind)kind, ranks, 2 * ranks + more));
        for (size_t k = 0; k < sizeof weights / sizeof *weights; k++) {
          pp_stage_times stage[32];
          for (int s = 0; s < 32; s++) stage[s] = (pp_stage_times){ 1, 1, weights[k], 1 + weights[k] };
          pp_times times = { .stage = stage };
          pp_simulation ideal = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_IDEAL), times, plain);
          pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_DEEPSEEK), times, plain);
          assert_near(result.makespan, ideal.makespan);
          compared++;
          pp_simulation_free(&ideal);
          pp_simulation_free(&result);
        }
        pp_schedule_free(&schedule);
      }
    }
  }
  assert_true(compared >= 64);
}

/* No gradient of the model's input: I of stage 0 takes nothing and its W the whole backward, B. */
static void torch_skips_the_input_gradient_of_the_first_stage(void **state) {
  (void)state;
  static const pp_stage_times stage[] = { { 1, 1, 1, 3 }, { 1, 1, 1, 3 } };
  pp_schedule schedule = built(request_of(PP_ZB_H1, 2, 2));
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), (pp_times){ .stage = stage }, plain);
  for (size_t i = 0; i < schedule.first[2]; i++) {
    const pp_action *action = &schedule.action[i];
    double seconds = result.interval[i].end - result.interval[i].start;
    if (action->kind == PP_I) assert_near(seconds, action->stage == 0 ? 0 : 1);
    if (action->kind == PP_W) assert_near(seconds, action->stage == 0 ? 3 : 1);
  }
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/*
** GPipe whose rank 0 runs F1 before F0: asynchronously that is only slower. On a queue, F1's send waits for a receive that rank 1 posts after
** F0, whose message is behind F1's.
*/
static void batches_that_wait_for_each_other_are_named(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_GPIPE, 2, 2));
  pp_action first = schedule.action[0];
  schedule.action[0] = schedule.action[1];
  schedule.action[1] = first;
  schedule.verified = false;
  pp_times times = { .stage = four_stages };
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_IDEAL), times, plain);
  pp_simulation_free(&result);
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), &plain, true, &result, &error),
                   PP_ILLEGAL);
  assert_string_equal(error.id, "engine.deadlock");
  assert_string_equal(error.message, "deadlock: rank 0 waits in 0SEND_F1 for rank 1, rank 1 waits in 1RECV_F0 for rank 0");
  assert_null(result.busy);
  pp_schedule_free(&schedule);
}

/*
** Interleaved 1F1B on one queue a rank: each rank sends its first chunk's output on before it asks for more, round the ring to rank 0, which
** sends too. What waits is `digits` characters longer than "rank 0 waits in 0SEND_F4 for rank 1" in all: microbatches are renamed so.
*/
static pp_error ring_of(int ranks, int microbatches, int named[], size_t count) {
  pp_schedule schedule = built(request_of(PP_INTERLEAVED_1F1B, ranks, microbatches));
  for (size_t i = 0; i < schedule.first[ranks]; i++)
    for (int k = 0; k < (int)count; k++) {
      pp_action *action = &schedule.action[i];
      if (action->microbatch == (uint32_t)k) action->microbatch = (uint32_t)named[k];
      else if (action->microbatch == (uint32_t)named[k]) action->microbatch = (uint32_t)k;
      else continue;
      break;
    }
  schedule.verified = false;
  pp_runtime runtime = *pp_runtime_preset(PP_RUNTIME_TORCH_MULTI);
  runtime.queues = PP_QUEUE_ONE;
  runtime.receives = PP_RECEIVE_BEFORE_USE;
  pp_stage_times stage[64];
  for (int s = 0; s < 64; s++) stage[s] = four_stages[0];
  pp_times times = { .stage = stage };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, &runtime, &plain, false, &result, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.deadlock");
  pp_schedule_free(&schedule);
  return error;
}

/* Up to 199 characters of a cycle are shown; of a longer one the ends that fit whole, and that there are more. */
static void a_long_cycle_is_cut_between_two_ends(void **state) {
  (void)state;
  const char *first_four = "deadlock: rank 0 waits in 0SEND_F4 for rank 1, rank 1 waits in 1SEND_F3 for rank 2, rank 2 waits in 2SEND_F2 for "
                           "rank 3, rank 3 waits in 3SEND_F1 for rank 4";
  char whole[256];
  pp_error error = ring_of(5, 10, NULL, 0);
  snprintf(whole, sizeof whole, "%s, rank 4 waits in 4SEND_F0 for rank 0", first_four);
  assert_string_equal(error.message, whole);
  error = ring_of(6, 12, NULL, 0);   /* each F one later, and a sixth end that does not fit */
  assert_string_equal(error.message, "deadlock: rank 0 waits in 0SEND_F5 for rank 1, rank 1 waits in 1SEND_F4 for rank 2, rank 2 waits in "
                                     "2SEND_F3 for rank 3, rank 3 waits in 3SEND_F2 for rank 4, rank 4 waits in 4SEND_F1 for rank 5, …");
  int named[] = { 1000, 1001, 1002, 1003, 10000 };   /* 183 characters and 16 more */
  error = ring_of(5, 10005, named, 5);
  assert_string_equal(error.message, "deadlock: rank 0 waits in 0SEND_F10000 for rank 1, rank 1 waits in 1SEND_F1003 for rank 2, rank 2 waits "
                                     "in 2SEND_F1002 for rank 3, rank 3 waits in 3SEND_F1001 for rank 4, rank 4 waits in 4SEND_F1000 for rank 0");
  named[3] = 10001;   /* 200 */
  error = ring_of(5, 10005, named, 5);
  assert_string_equal(error.message, "deadlock: rank 0 waits in 0SEND_F10000 for rank 1, rank 1 waits in 1SEND_F10001 for rank 2, rank 2 waits "
                                     "in 2SEND_F1002 for rank 3, rank 3 waits in 3SEND_F1001 for rank 4, …");
}

/* 1F1B whose rank 0 runs B0 before F1, and rank 1 F1 before B0, waits for ever under any runtime. */
static void a_program_that_never_ends_is_refused(void **state) {
  (void)state;
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 2));
  schedule.verified = false;
  for (size_t first = 1; first < schedule.first[2]; first += 4) {
    pp_action action = schedule.action[first];
    schedule.action[first] = schedule.action[first + 1];
    schedule.action[first + 1] = action;
  }
  pp_times times = { .stage = four_stages };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_MULTI), &plain, false, &result, &error),
                   PP_ILLEGAL);
  assert_string_equal(error.id, "engine.deadlock");
  pp_schedule_free(&schedule);
}

/* One rank that never waits: the second of two steps, against the definition of heat integrated in small pieces. */
static void heat_is_the_running_average_of_busy(void **state) {
  (void)state;
  static const pp_stage_times stage[] = { { 1, 1, 1, 2 } };
  const pp_hardware hardware = { .contention = 1, .heat_onset = 0.5, .heat_slope = 0.2, .heat_tau = 3 };
  pp_schedule schedule = built(request_of(PP_1F1B, 1, 2));
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), (pp_times){ .stage = stage }, hardware);
  double u = 0, seconds = 0;
  const double piece = 1e-5;
  for (int step = 0; step < 2; step++) {
    double work = 6;
    for (seconds = 0; work > 0; seconds += piece) {
      double above = u > 0.5 ? (u - 0.5) / 0.5 : 0;
      work -= piece / (1 + 0.2 * above);
      u += (1 - u) * piece / 3;
    }
  }
  assert_true(fabs(result.makespan - seconds) < 1e-3);
  assert_true(seconds > 6.5);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/* Long work runs at 1 + slope; rare work stays cold: a rank that is busy a third of the time never reaches an onset of 0.6. */
static void heat_depends_on_duty(void **state) {
  (void)state;
  static const pp_stage_times hours[] = { { 1e6, 1e6, 1e6, 2e6 } };
  static const pp_stage_times uneven[] = { { 1, 1, 1, 2 }, { 3, 3, 3, 6 } };
  const pp_hardware hardware = { .contention = 1, .heat_onset = 0.6, .heat_slope = 0.2, .heat_tau = 40 };
  pp_schedule alone = built(request_of(PP_1F1B, 1, 1)), two = built(request_of(PP_1F1B, 2, 60));
  pp_simulation hot = run_with(&alone, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), (pp_times){ .stage = hours }, hardware);
  assert_true(fabs(hot.makespan / 3e6 - 1.2) < 1e-4);
  pp_simulation result = run_with(&two, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), (pp_times){ .stage = uneven }, hardware);
  assert_near(result.busy[0], 180);
  assert_true(result.busy[1] > 1.15 * 540 && result.busy[1] < 1.2 * 540);
  pp_simulation_free(&hot);
  pp_simulation_free(&result);
  pp_schedule_free(&alone);
  pp_schedule_free(&two);
}

/*
** F 1, B 1 on the card, 3 to hand either over, one microbatch. PyTorch's host on rank 1 hands F over from 0 on and B from 3 on, while it waits for
** nothing: F starts at 3, when its input is there, B ends at 6, rank 0's B, handed over from 3 on, at 7. Megatron's hosts wait with their cards for each
** message, and begin to hand the next action over only then: four actions, one after the other, of 3 each.
*/
static void megatrons_host_waits_for_messages(void **state) {
  (void)state;
  static const pp_stage_times stage[] = { { 1, 1, 1, 1 }, { 1, 1, 1, 1 } };
  static const pp_host_times host[] = { { .seconds = { 3, 3, 3, 3 } }, { .seconds = { 3, 3, 3, 3 } } };
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 1));
  const pp_times times = { .stage = stage, .host = host };
  pp_simulation torch = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), times, plain);
  pp_simulation megatron = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_MEGATRON), times, plain);
  assert_near(torch.makespan, 7);
  assert_near(megatron.makespan, 12);
  pp_simulation_free(&torch);
  pp_simulation_free(&megatron);
  pp_schedule_free(&schedule);
}

/*
** V 2, M 2, F 1, B 2, a hop 0.5. Rank 0 has all its forwards first: 0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1, and begins each when the message before was taken
** and its own is there: 0F1 at 1.5, 2F0 at 3 (1F0 ends at 2.5), 2F1 at 4.5. It asks for 2B0's at 6, when 2F1's was taken. Rank 1 has two forwards
** before it takes turns: 1F0 at 1.5, 1F1 at 3, then 3F0 at 4.5, 3B0 without a message, 3F1, whose input it asked for at 5.5, and 3B1 until 10.5. Then it
** asks for 1B0's, which rank 0 sends when 2B0, there at 8, is over at 10: both begin at 11, and so on by turns.
*/
static void megatrons_interleaving_waits_for_sends_and_receives_ahead(void **state) {
  (void)state;
  pp_schedule_request request = request_of(PP_INTERLEAVED_1F1B, 2, 2);
  request.chunks = 2;
  pp_schedule schedule = built(request);
  pp_simulation result = run_with(&schedule, *pp_runtime_preset(PP_RUNTIME_MEGATRON), (pp_times){ .stage = four_stages, .p2p = 0.5 }, plain);
  static const double start[] = { 0, 1.5, 3, 4.5, 8, 11, 13.5, 16, 1.5, 3, 4.5, 5.5, 7.5, 8.5, 11, 13.5 };
  for (size_t i = 0; i < 16; i++) assert_interval(&result, i, start[i], start[i] + (schedule.action[i].kind == PP_F ? 1 : 2));
  assert_near(result.makespan, 18);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

static void runtimes_refuse_what_they_do_not_run(void **state) {
  (void)state;
  static const struct { pp_schedule_kind kind; pp_runtime_kind runtime; const char *says; } cases[] = {
    { PP_ZB_H1, PP_RUNTIME_TORCH_SINGLE, "torch-single runs gpipe and 1f1b, not zb_h1" },
    { PP_DUALPIPE, PP_RUNTIME_TORCH_MULTI, "torch-multi runs no bidirectional schedule" },
    { PP_GPIPE, PP_RUNTIME_MEGATRON, "megatron runs 1f1b and interleaved_1f1b, not gpipe" },
    { PP_ZB_V, PP_RUNTIME_DEEPSEEK, "deepseek runs dualpipe and dualpipev, not zb_v" } };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    pp_schedule schedule = built(request_of(cases[k].kind, 2, 4));
    pp_times times = { .stage = four_stages };
    pp_simulation result;
    pp_error error;
    assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(cases[k].runtime), &plain, false, &result, &error), PP_ILLEGAL);
    assert_string_equal(error.id, "engine.runtime");
    assert_non_null(strstr(error.message, cases[k].says));
    pp_schedule_free(&schedule);
  }
}

/* Two ranks that work all the time, the second's card twice as much slower hot: a step of gpipe is paced by it, 100 forwards and backwards. */
static void each_rank_has_a_card_of_its_own(void **state) {
  (void)state;
  static const double slope[] = { 0.1, 0.2, 0.3 };
  pp_hardware hardware = { .contention = 1, .heat_slope = 0.15, .heat_onset = 0.5, .heat_tau = 1e-3, .rank_slope = slope, .slopes = 2 };
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 1000));
  const pp_stage_times times_of[] = { { 1, 1, 1, 2 }, { 1, 1, 1, 2 } };
  const pp_times times = { .stage = times_of };
  pp_simulation result;
  pp_error error;
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), &hardware, false, &result, &error), PP_OK);
  assert_true(fabs(result.busy[1] / (3000 * 1.2) - 1) < 1e-3);
  assert_true(fabs(result.busy[0] / (3000 * 1.1) - 1) < 1e-3);
  pp_simulation_free(&result);
  hardware.slopes = 3;   /* of three ranks: not of these two */
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), &hardware, false, &result, &error), PP_OK);
  assert_true(fabs(result.busy[1] / (3000 * 1.15) - 1) < 1e-3);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

static void hardware_out_of_range_is_invalid(void **state) {
  (void)state;
  static const pp_hardware wrong[] = {
    { .contention = 0.5 }, { .contention = NAN }, { .contention = 1, .heat_slope = -1 },
    { .contention = 1, .heat_slope = 1, .heat_onset = 1, .heat_tau = 1 }, { .contention = 1, .heat_slope = 1, .heat_tau = 0 } };
  pp_schedule schedule = built(request_of(PP_1F1B, 2, 2));
  pp_times times = { .stage = four_stages };
  pp_simulation result;
  pp_error error;
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
    assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_TORCH_SINGLE), &wrong[k], false, &result, &error),
                     PP_INVALID);
  pp_hardware warm = { .contention = 1.2 };
  assert_int_equal(pp_runtime_simulate(&schedule, &times, pp_runtime_preset(PP_RUNTIME_IDEAL), &warm, false, &result, &error), PP_INVALID);
  pp_schedule_free(&schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_f_one_b_sends_a_forward_with_the_receive_of_a_backward),
    cmocka_unit_test(a_resident_batch_slows_what_runs_beside_it),
    cmocka_unit_test(an_early_receive_blocks_the_sends_behind_it),
    cmocka_unit_test(torch_single_posts_as_one_f_one_b_of_pytorch),
    cmocka_unit_test(deepseek_posts_a_group_before_each_action),
    cmocka_unit_test(two_messages_of_a_batch_share_the_link),
    cmocka_unit_test(a_batch_takes_as_long_as_its_fuller_direction),
    cmocka_unit_test(messages_move_once_both_ends_are_there),
    cmocka_unit_test(batches_of_pytorch_hold_at_most_one_message_each_way),
    cmocka_unit_test(deepseeks_groups_cost_nothing_by_themselves),
    cmocka_unit_test(torch_skips_the_input_gradient_of_the_first_stage),
    cmocka_unit_test(batches_that_wait_for_each_other_are_named),
    cmocka_unit_test(a_long_cycle_is_cut_between_two_ends),
    cmocka_unit_test(a_program_that_never_ends_is_refused),
    cmocka_unit_test(heat_is_the_running_average_of_busy),
    cmocka_unit_test(heat_depends_on_duty),
    cmocka_unit_test(megatrons_host_waits_for_messages),
    cmocka_unit_test(megatrons_interleaving_waits_for_sends_and_receives_ahead),
    cmocka_unit_test(runtimes_refuse_what_they_do_not_run),
    cmocka_unit_test(each_rank_has_a_card_of_its_own),
    cmocka_unit_test(hardware_out_of_range_is_invalid),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_csv.c: what a text is read as, and where it is wrong. */
#include "schedules.h"

#include "core/schedule_csv.h"

static pp_schedule read_text(const char *text, int directions) {
  pp_schedule schedule;
  pp_error error;
  if (pp_schedule_read_csv(text, strlen(text), directions, &schedule, NULL, &error) != PP_OK) fail_msg("%s", error.message);
  return schedule;
}

static void assert_unreadable_bytes(const char *text, size_t length, const char *id, size_t line, size_t column, const char *part) {
  pp_schedule schedule;
  pp_csv_place place;
  pp_error error;
  assert_int_equal(pp_schedule_read_csv(text, length, 1, &schedule, &place, &error), PP_ILLEGAL);
  assert_string_equal(error.id, id);
  if (!strstr(error.message, part)) fail_msg("no '%s' in '%s'", part, error.message);
  assert_int_equal(place.line, line);
  assert_int_equal(place.column, column);
  assert_null(schedule.action);
}

static void assert_unreadable(const char *text, const char *id, size_t line, size_t column, const char *part) {
  assert_unreadable_bytes(text, strlen(text), id, line, column, part);
}

/* -- what is read ---------------------------------------------------------------------------------------------------------------------- */

/* By the description of the format in PyTorch's schedules.py: ragged rows, blanks for waiting, LF or CRLF, a last line end or none. */
static void lines_are_ranks_and_empty_cells_are_waiting(void **state) {
  (void)state;
  static const char *const texts[] = {
    "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n", "0F0,0F1,0I0,0W0,0B1\r\n1F0,1B0,1F1,1B1\r\n", "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1",
    ",0F0,,,0F1,0I0,0W0,0B1,,\n,,1F0,1B0,\t1F1 , 1B1\r\n", "00F00,0F01,0I0,0W0,0B1,\n1F0,1B0,1F1,1B1,",
  };
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    pp_schedule schedule = read_text(texts[k], 1);
    assert_string_equal(actions_of(&schedule, 0), "0F0,0F1,0I0,0W0,0B1");
    assert_string_equal(actions_of(&schedule, 1), "1F0,1B0,1F1,1B1");
    assert_int_equal(schedule.request.kind, PP_CUSTOM);
    assert_int_equal(schedule.request.ranks, 2);
    assert_int_equal(schedule.request.microbatches, 2);
    assert_int_equal(schedule.request.chunks, 1);
    assert_int_equal(schedule.stages, 2);
    assert_string_equal(schedule.traits.name, "csv");
    assert_true(schedule.traits.split_backward && !schedule.traits.overlaps);
    pp_schedule_free(&schedule);
  }
}

static void pairs_are_read_in_either_order(void **state) {
  (void)state;
  pp_schedule schedule = read_text("0F0,1F0,(0F1;1B0)OVERLAP_F_B,(0B0;1F1)OVERLAP_F_B,1B1,0B1", 1);
  assert_string_equal(actions_of(&schedule, 0), "0F0,1F0,(0F1;1B0),(1F1;0B0),1B1,0B1");
  assert_true(schedule.traits.overlaps && !schedule.traits.split_backward);
  assert_int_equal(pp_schedule_verify(&schedule, NULL), PP_OK);
  pp_schedule_free(&schedule);
}

static void the_upper_half_of_the_stages_may_be_another_direction(void **state) {
  (void)state;
  const char *text = "0F0,3F0,3B0,0B0\n1F0,2F0,1B0,2B0\n";   /* down 0 → 1, and up 2 → 3 */
  pp_schedule both = read_text(text, 2), one = read_text(text, 1);
  assert_int_equal(both.request.microbatches, 2);
  assert_int_equal(both.microbatches_per_chain, 1);
  assert_int_equal(both.stages_per_chain, 2);
  assert_int_equal(both.traits.copies, 2);
  assert_int_equal(both.request.chunks, 1);
  assert_int_equal(one.request.chunks, 2);
  assert_int_equal(pp_schedule_verify(&both, NULL), PP_OK);
  assert_int_equal(pp_schedule_verify(&one, NULL), PP_ILLEGAL);   /* a V, in which 1B0 waits for 2B0 behind it */
  pp_schedule_free(&both);
  pp_schedule_free(&one);
  pp_error error;
  assert_int_equal(pp_schedule_read_csv("0F0,0B0", 7, 2, &one, NULL, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.directions");
  assert_int_equal(pp_schedule_read_csv("0F0,0B0", 7, 3, &one, NULL, &error), PP_INVALID);
}

static void ranks_may_hold_unequally_many_stages(void **state) {
  (void)state;
  pp_schedule schedule = read_text("0F0,2F0,2B0,0B0\n1F0,1B0\n", 1);
  assert_int_equal(pp_schedule_stages_on(&schedule, 0), 2);
  assert_int_equal(pp_schedule_stages_on(&schedule, 1), 1);
  assert_int_equal(pp_schedule_stages_of(&schedule, 0)[0], 0);
  assert_int_equal(pp_schedule_stages_of(&schedule, 0)[1], 2);
  assert_int_equal(pp_schedule_stages_of(&schedule, 1)[0], 1);
  assert_int_equal(schedule.chunks_per_rank, 2);
  assert_true(schedule.verified);
  pp_simulation result = simulated(&schedule, (equal_times){ 1, 1, 1, 0, 0 });
  assert_near(result.makespan, 9);   /* one microbatch through three stages */
  assert_near(peak_of(&schedule, 0, 1), 2);
  pp_simulation_free(&result);
  pp_schedule_free(&schedule);
}

/* One action in the wrong line does not move its stage, though it comes first. */
static void a_stage_is_where_most_of_its_actions_are(void **state) {
  (void)state;
  pp_error error;
  pp_schedule schedule = read_text("1F0,0F0,0F1,0B0,0B1\n1B0,1F1,1B1\n", 1);
  assert_int_equal(schedule.rank_of[1], 1);
  assert_int_equal(pp_schedule_verify(&schedule, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "rank 0, action 1, 1F0: stage 1 is on rank 1");
  pp_schedule_free(&schedule);
}

/* -- what is not ----------------------------------------------------------------------------------------------------------------------- */

static void a_cell_that_is_no_action_is_named_with_its_place(void **state) {
  (void)state;
  static const char *const cells[] = { "0F1x", "x0F1", "0F", "F0", "0", "0f1", "0X1", "0F-1", "-1F0", "0F1.5", "0F1;", "(0F1)", "0 F1", "\"0F1\"",
    "(0F1;1B0)", "(0F1;1B0)OVERLAP_F_B ;", "(0F1;1I0)OVERLAP_F_B", "(0F1;1F0)OVERLAP_F_B", "(0B1;1B0)OVERLAP_F_B", "(0F1;1B0;2B0)OVERLAP_F_B",
    "(0F1;1B0OVERLAP_F_B", "0F1)OVERLAP_F_B", "(;)OVERLAP_F_B", "()", "(", "0F1\r\r", "0BX1", "None", "\357\273\2770F1", "0F1\302\240" };
  for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
    char text[128];
    snprintf(text, sizeof text, "0F0,,\n1F0,,%s,1B0\n", cells[k]);
    assert_unreadable(text, "engine.csv_cell", 2, 3, "line 2, column 3, '");
    assert_unreadable(text, "engine.csv_cell", 2, 3, "expected an action such as 0F7");
  }
  assert_unreadable("0F0\x01\x7F\n", "engine.csv_cell", 1, 1, "'0F0\\x01\\x7F'");
  assert_unreadable_bytes("0F0,0\0F1", 8, "engine.csv_cell", 1, 2, "'0\\x00F1'");
  assert_unreadable("0123456789012345678901234567890123456789012345678901234567890F1", "engine.csv_size", 1, 1, "0123456789");
  assert_unreadable("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "engine.csv_cell", 1, 1, "zzz…': expected");
}

static void files_of_another_format_get_a_hint(void **state) {
  (void)state;
  assert_unreadable("0F0,0BW0", "engine.csv_old_dialect", 1, 2, "BW is the full backward of PyTorch's files of 2024: it is B now, and their B is I");
  static const char *const cells[] = { "0SEND_F1", "0RECV_F0", "3SEND_B0", "3RECV_B12", "0UNSHARD", "0RESHARD", "1REDUCE_GRAD" };
  for (size_t k = 0; k < sizeof cells / sizeof *cells; k++) {
    char text[64];
    snprintf(text, sizeof text, "0F0,%s", cells[k]);
    assert_unreadable(text, "engine.csv_communication", 1, 2, "only compute_only is read");
  }
}

static void each_line_is_a_rank(void **state) {
  (void)state;
  assert_unreadable("", "engine.csv_row", 0, 0, "nothing to read");
  assert_unreadable("\n", "engine.csv_row", 1, 0, "line 1: no actions");
  assert_unreadable("0F0,0B0\n\n", "engine.csv_row", 2, 0, "line 2: no actions");
  assert_unreadable("0F0,0B0\n,,\r\n1F0,1B0\n", "engine.csv_row", 2, 0, "line 2: no actions");
  assert_unreadable(" \n0F0", "engine.csv_row", 1, 0, "line 1");
}

static void numbers_that_occur_nowhere_are_named(void **state) {
  (void)state;
  assert_unreadable("0F0,0B0\n2F0,2B0\n", "engine.missing_stage", 0, 0, "stage 1 occurs nowhere, but 2 does");
  assert_unreadable("0F0,65534F0\n", "engine.missing_stage", 0, 0, "stage 1 and 65532 others occur nowhere, but 65534 does");
  assert_unreadable("0F0,0B0,0F2,0B2", "engine.missing_microbatch", 0, 0, "microbatch 1 occurs nowhere, but 2 does");
  assert_unreadable("0F0,0B0,0F134217719", "engine.missing_microbatch", 0, 0, "microbatch 1 and many others occur nowhere, but 134217719 does");
}

static void absurd_numbers_hit_a_stated_limit(void **state) {
  (void)state;
  static const char *const texts[] = { "0F1000000000", "1000000000F0", "65535F0", "0F99999999999999999999999999", "(0F0;0B1000000000)OVERLAP_F_B",
                                       "(0F0;70000B0)OVERLAP_F_B" };
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
    assert_unreadable(texts[k], "engine.csv_size", 1, 1, "at most 65535 stages and 134217728 actions");
}

/* 300 ranks, of which one holds 300 stages and each other one. */
static void a_rank_may_hold_as_many_stages_as_there_are_ranks(void **state) {
  (void)state;
  char *text = malloc(1 << 16), *at = text;
  assert_non_null(text);
  for (int stage = 0; stage < 300; stage++) at += sprintf(at, "%dF0,", stage);
  for (int stage = 300; stage-- > 0; ) at += sprintf(at, "%dB0,", stage);
  for (int rank = 1; rank < 300; rank++) at += sprintf(at, "\n%dF0,%dB0", 299 + rank, 299 + rank);
  pp_schedule schedule = read_text(text, 1);
  assert_int_equal(schedule.chunks_per_rank, 300);
  assert_int_equal(pp_schedule_stages_of(&schedule, 299)[0], 598);
  assert_true(schedule.verified);
  pp_schedule_free(&schedule);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(lines_are_ranks_and_empty_cells_are_waiting),
    cmocka_unit_test(pairs_are_read_in_either_order),
    cmocka_unit_test(the_upper_half_of_the_stages_may_be_another_direction),
    cmocka_unit_test(ranks_may_hold_unequally_many_stages),
    cmocka_unit_test(a_stage_is_where_most_of_its_actions_are),
    cmocka_unit_test(a_cell_that_is_no_action_is_named_with_its_place),
    cmocka_unit_test(files_of_another_format_get_a_hint),
    cmocka_unit_test(each_line_is_a_rank),
    cmocka_unit_test(numbers_that_occur_nowhere_are_named),
    cmocka_unit_test(absurd_numbers_hit_a_stated_limit),
    cmocka_unit_test(a_rank_may_hold_as_many_stages_as_there_are_ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

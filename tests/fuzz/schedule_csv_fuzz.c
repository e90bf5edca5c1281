/*
** schedule_csv_fuzz.c: any text as a schedule CSV. What is read must survive being written and read again, verified, and, if that accepts it,
** simulated; whatever is wrong must have an id and a message. For libFuzzer (CMake preset `fuzz`): the first byte gives the directions.
**   cmake --preset fuzz && cmake --build --preset fuzz && build/fuzz/tests/fuzz/schedule_csv_fuzz -max_total_time=180 CORPUS tests/data/pytorch
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule_csv.h"
#include "core/schedule_verify.h"
#include "core/simulate.h"

static void require(int truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

/* The compact text of a schedule, as schedule:csv() writes it. */
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

static void check_round_trip(const pp_schedule *schedule, int directions) {
  size_t length, length_again;
  pp_schedule again;
  char *text = print(schedule, &length);
  require(pp_schedule_read_csv(text, length, directions, &again, NULL, NULL) == PP_OK, "what was written is read");
  char *text_again = print(&again, &length_again);
  require(length == length_again && memcmp(text, text_again, length) == 0, "what was read again is the same");
  free(text_again);
  free(text);
  pp_schedule_free(&again);
}

static void check_running(const pp_schedule *schedule) {
  pp_finding finding;
  pp_error error = { .id = "" };
  pp_simulation result;
  int buffers = 0;
  pp_status verified = pp_schedule_verify(schedule, &error);
  if (verified == PP_OK) {
    require(pp_schedule_receive_buffers(schedule, &buffers, &error) == PP_OK && buffers >= 1, "some number of buffers is enough");
    require(pp_schedule_verify_p2p(schedule, buffers, &finding, &error) == PP_OK, "that number is enough");
    require(buffers == 1 || pp_schedule_verify_p2p(schedule, buffers - 1, &finding, &error) == PP_ILLEGAL, "no fewer are");
    require(buffers == 1 || strcmp(error.id, "engine.blocking_deadlock") == 0, "for the reason that p2p blocks");
  } else require(error.id[0] != '\0' && error.message[0] != '\0', "a finding says what it is");
  pp_stage_times *stage = calloc((size_t)schedule->stages, sizeof *stage);
  double *seconds = calloc(2 * (size_t)schedule->stages, sizeof *seconds);
  require(stage && seconds, "memory");
  for (int s = 0; s < schedule->stages; s++) {
    stage[s] = (pp_stage_times){ 1, 1, 1, 2 };
    seconds[s] = 1;
  }
  pp_times times = { .stage = stage };
  pp_status simulated = pp_simulate(schedule, &times, true, &result, &error);
  if (verified == PP_OK) require(simulated == PP_OK && result.makespan > 0, "what is verified runs");
  for (int rank = 0; rank < schedule->request.ranks; rank++) pp_schedule_peak(schedule, rank, seconds, seconds + schedule->stages);
  if (simulated == PP_OK) pp_simulation_free(&result);
  free(seconds);
  free(stage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pp_schedule schedule;
  pp_csv_place place;
  pp_error error = { .id = "" };
  if (size == 0) return 0;
  int directions = data[0] == '2' ? 2 : 1;
  pp_status status = pp_schedule_read_csv((const char *)data + 1, size - 1, directions, &schedule, &place, &error);
  if (status == PP_ILLEGAL) require(error.id[0] != '\0' && error.message[0] != '\0' && !schedule.action, "an error says what it is");
  if (status != PP_OK) return 0;
  check_round_trip(&schedule, directions);
  check_running(&schedule);
  pp_schedule_free(&schedule);
  return 0;
}

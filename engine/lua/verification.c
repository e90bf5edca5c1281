/* SPDX-License-Identifier: Apache-2.0 */
/*
** verification.c: schedule:verify() or schedule:verify{ buffers = N } → true, or nil and the finding: is the program complete, in order,
** and does no rank wait for ever, where sending waits for nobody or, with N, blocks until one of N receive buffers of the stage is free, as
** schedule_verify.h says? schedule:receive_buffers() → the least such N, or nil and the finding. A finding is
**   { id, field, message, rank?, position?, action?, waits? }
** rank from 0; position is that of the action in schedule:actions(rank), absent where an action is missing; action as in the CSV. A
** deadlock has waits, the cycle, whose entries are { rank, position?, action?, of, what, sends }: the rank cannot run that action until
** rank `of` has made (sends: taken) the result of `what`.
*/
#include "lua/verification.h"

#include <lauxlib.h>

#include "core/schedule_verify.h"
#include "lua/arguments.h"
#include "lua/results.h"
#include "lua/schedule_object.h"

static const char call[] = "schedule:verify";

/* rank, position and action in the table on top; a rank that has run all its actions stands before none. */
static void set_place(lua_State *L, const pp_schedule *schedule, int rank, int64_t position) {
  char text[PP_ACTION_TEXT];
  if (rank < 0) return;
  pp_set_integer(L, "rank", rank);
  if (position < 0 || (size_t)position >= schedule->first[rank + 1] - schedule->first[rank]) return;
  const pp_action *action = &schedule->action[schedule->first[rank] + (size_t)position];
  pp_set_integer(L, "position", position + 1);
  if (action->kind > PP_FB) return;
  pp_action_print(text, sizeof text, action);
  pp_set_string(L, "action", text);
}

static void set_waits(lua_State *L, const pp_schedule *schedule, const pp_finding *finding) {
  int count = finding->waits < PP_FINDING_WAITS ? finding->waits : PP_FINDING_WAITS;
  if (count == 0) return;
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    const pp_wait *wait = &finding->wait[i];
    char text[PP_ACTION_TEXT];
    pp_action_print(text, sizeof text, &(pp_action){ .kind = (uint16_t)wait->kind, .stage = (uint16_t)wait->stage,
                                                     .microbatch = wait->microbatch });
    lua_createtable(L, 0, 6);
    set_place(L, schedule, wait->rank, wait->position);
    pp_set_integer(L, "of", wait->of);
    pp_set_string(L, "what", text);
    pp_set_boolean(L, "sends", wait->sends);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "waits");
}

int pp_schedule_verify_method(lua_State *L) {
  static const char *const known[] = { "buffers", NULL };
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  int buffers = PP_ASYNCHRONOUS;
  pp_finding finding;
  pp_error error;
  if (!lua_isnoneornil(L, 2)) {
    pp_args_begin(L, 2, call, known);
    buffers = (int)pp_args_integer_or(L, 2, call, "buffers", 1, PP_MAX_ACTIONS, PP_ASYNCHRONOUS);
  }
  pp_status status = pp_schedule_verify_p2p(schedule, buffers, &finding, &error);
  if (status == PP_OK) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if (status != PP_ILLEGAL) return pp_args_raise(L, call, &error);
  int results = pp_push_illegal(L, &error);
  set_place(L, schedule, finding.rank, finding.position);
  set_waits(L, schedule, &finding);
  return results;
}

int pp_schedule_receive_buffers_method(lua_State *L) {
  const pp_schedule *schedule = pp_check_schedule(L, 1);
  int buffers;
  pp_error error;
  lua_settop(L, 1);
  pp_status status = pp_schedule_receive_buffers(schedule, &buffers, &error);
  if (status == PP_ILLEGAL) return pp_schedule_verify_method(L);   /* says where, too */
  if (status != PP_OK) return pp_args_raise(L, "schedule:receive_buffers", &error);
  lua_pushinteger(L, buffers);
  return 1;
}

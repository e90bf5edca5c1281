/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_torch.c: the order in which PyTorch's pipelining posts messages. See runtime.h.
** Source: PyTorch 2.13, torch/distributed/pipelining/schedules.py: ScheduleGPipe and Schedule1F1B (_step_microbatches); the runtime of all
** others: _PipelineScheduleRuntime (_prepare_schedule_with_comms, _add_unshard_reshard, _add_reduce_grad, _add_send_recv,
** _defer_recv_ops, _step_microbatches).
*/
#include "core/runtime_torch.h"

#include <math.h>
#include <string.h>

#include "core/event_heap.h"
#include "core/meter.h"

/* -- torch-single --------------------------------------------------------------------------------------------------------------------- */

/*
** 1F1B holds a send back when an action of the other kind follows, and posts it in one batch with that action's receive; any other send is
** posted at once, after a wait for the one before. GPipe fuses nothing, and waits for its forwards' sends before the first backward.
*/
static void lower_single_rank(pp_lowering *lowering, int rank) {
  const pp_schedule *schedule = lowering->schedule;
  bool fuses = schedule->request.kind == PP_1F1B;
  pp_message_end ends[2];
  int held = 0;   /* ends that wait in ends[] to be posted */
  uint32_t sent = PP_NO_BATCH;
  for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
    const pp_action *action = &schedule->action[i];
    bool backward = action->kind != PP_F, last = i + 1 == schedule->first[rank + 1];
    bool turns = !last && (schedule->action[i + 1].kind != PP_F) != backward;   /* the next action is of the other kind */
    held += pp_lower_input(lowering, action->stage, action->microbatch, backward, &ends[held]);
    if (held > 0) pp_lower_step(lowering, rank, PP_STEP_WAIT, pp_lower_post(lowering, rank, ends, held));
    pp_lower_step(lowering, rank, PP_STEP_ACTION, i);
    held = pp_lower_output(lowering, action->stage, action->microbatch, backward, &ends[0]);
    if (held > 0 && !(fuses && turns)) {
      if (fuses && sent != PP_NO_BATCH) pp_lower_step(lowering, rank, PP_STEP_WAIT, sent);
      sent = pp_lower_post(lowering, rank, ends, held);
      held = 0;
    }
    if (!fuses && turns && sent != PP_NO_BATCH) pp_lower_step(lowering, rank, PP_STEP_WAIT, sent);
  }
}

void pp_lower_torch_single(pp_lowering *lowering) {
  for (int rank = 0; rank < lowering->schedule->request.ranks; rank++) lower_single_rank(lowering, rank);
}

/* -- torch-multi ---------------------------------------------------------------------------------------------------------------------- */

/*
** Planning goes round the ranks again and again; in each round every rank plans its next action if what it needs was planned to be sent.
** The send follows the action, and the receive goes to the end of the receiver's plan as it stands at that moment. So what else takes a
** rank's turn in a round, gathering and dropping the weights of stages and reducing their gradients, moves its sends, and is counted.
*/
enum { ACTIVE_STAGES = 3, KNOWN_STAGES = ACTIVE_STAGES + 1 };

/* One turn of a rank: an action, or half of a pair that is split. */
typedef struct {
  size_t action;       /* of the schedule */
  uint16_t part;       /* a pp_step_kind: PP_STEP_ACTION, _FORWARD or _BACKWARD */
  uint16_t turns;      /* of other things that come before it */
} planned;

typedef struct {
  pp_lowering *lowering;
  planned *units;           /* of all ranks */
  size_t *next, *end;       /* [ranks] of units */
  unsigned char *sent;      /* [2 × stages × microbatches]: was F's, or B's or I's, result planned? */
  size_t *awaited;          /* [ranks] the result that a rank waits for, or NOTHING */
  pp_event_heap turns;      /* the round in which a rank has its turn; of the same round the ranks in their order */
} plan;

static const size_t NOTHING = (size_t)-1;

/* The forward's and the backward's stage and microbatch of a unit; false when it has none. A W has neither. */
static bool forward_of(const plan *self, const planned *unit, int *stage, uint32_t *microbatch) {
  const pp_action *action = &self->lowering->schedule->action[unit->action];
  *stage = action->stage;
  *microbatch = action->microbatch;
  return action->kind == PP_F || (action->kind == PP_FB && unit->part != PP_STEP_BACKWARD);
}

static bool backward_of(const plan *self, const planned *unit, int *stage, uint32_t *microbatch) {
  const pp_action *action = &self->lowering->schedule->action[unit->action];
  *stage = action->kind == PP_FB ? action->stage_b : action->stage;
  *microbatch = action->kind == PP_FB ? action->microbatch_b : action->microbatch;
  return action->kind == PP_B || action->kind == PP_I || (action->kind == PP_FB && unit->part != PP_STEP_FORWARD);
}

static bool is_weight(const plan *self, const planned *unit) { return self->lowering->schedule->action[unit->action].kind == PP_W; }

/* Is a pair two units? */
static bool splits_pairs(const pp_lowering *lowering) {
  return lowering->schedule->traits.overlaps && lowering->runtime->pairs == PP_PAIR_SPLIT;
}

static void write_units(plan *self) {
  const pp_schedule *schedule = self->lowering->schedule;
  bool split = splits_pairs(self->lowering);
  size_t count = 0;
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    self->next[rank] = count;
    for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
      bool halves = split && schedule->action[i].kind == PP_FB;
      self->units[count++] = (planned){ .action = i, .part = halves ? PP_STEP_FORWARD : PP_STEP_ACTION };
      if (halves) self->units[count++] = (planned){ .action = i, .part = PP_STEP_BACKWARD };
    }
    self->end[rank] = count;
  }
}

/* The stages that come next on a rank, nearest first, each once, and the unit where it comes. */
typedef struct {
  int count;
  struct { int stage; size_t at; } next[KNOWN_STAGES];
} upcoming;

static void move_to_front(upcoming *list, int stage, size_t at) {
  int behind = 0;   /* how many move back by one */
  while (behind < list->count && list->next[behind].stage != stage) behind++;
  if (behind == list->count && list->count < KNOWN_STAGES) list->count++;
  if (behind == KNOWN_STAGES) behind--;   /* the farthest is forgotten */
  memmove(&list->next[1], &list->next[0], (size_t)behind * sizeof list->next[0]);
  list->next[0].stage = stage;
  list->next[0].at = at;
}

/* How many of them are to have their weights: the next three, and a fourth when it is in one pair with the third. */
static int active(const upcoming *list) {
  if (list->count <= ACTIVE_STAGES) return list->count;
  return list->next[ACTIVE_STAGES].at == list->next[ACTIVE_STAGES - 1].at ? KNOWN_STAGES : ACTIVE_STAGES;
}

/* Of the active stages in `some`, how many are not active in `others`. */
static int missing(const upcoming *some, const upcoming *others) {
  int count = 0;
  for (int i = 0; i < active(some); i++) {
    int k = 0;
    while (k < active(others) && others->next[k].stage != some->next[i].stage) k++;
    count += k == active(others);
  }
  return count;
}

/* Weights are gathered for the stages that come next, and dropped when a stage is no longer among them: a turn each. */
static void count_weight_turns(plan *self, int rank) {
  upcoming list = { 0 }, later = { 0 };
  for (size_t i = self->end[rank]; i-- > self->next[rank];) {
    int stage;
    uint32_t microbatch;
    later = list;
    if (backward_of(self, &self->units[i], &stage, &microbatch)) move_to_front(&list, stage, i);
    if (forward_of(self, &self->units[i], &stage, &microbatch) || is_weight(self, &self->units[i])) move_to_front(&list, stage, i);
    if (i + 1 < self->end[rank])
      self->units[i + 1].turns = (uint16_t)(self->units[i + 1].turns + missing(&list, &later) + missing(&later, &list));
  }
  if (self->next[rank] < self->end[rank]) self->units[self->next[rank]].turns = (uint16_t)active(&list);
}

/* Gradients of a stage are reduced after its last W or B: a turn. `left` counts down from the microbatches of each stage. */
static void count_gradient_turns(plan *self, int rank, int *left) {
  const pp_schedule *schedule = self->lowering->schedule;
  for (size_t i = self->next[rank]; i + 1 < self->end[rank]; i++) {
    const planned *unit = &self->units[i];
    int stage;
    uint32_t microbatch;
    bool ends = backward_of(self, unit, &stage, &microbatch) && schedule->action[unit->action].kind != PP_I;
    if ((ends || is_weight(self, unit)) && --left[stage] == 0) self->units[i + 1].turns++;
  }
}

static size_t result_number(const plan *self, int stage, uint32_t microbatch, bool backward) {
  return pp_lower_number(self->lowering->schedule, stage, microbatch, backward);
}

/* Is what a unit needs planned? If not, *awaited is a result that is not. */
static bool is_ready(const plan *self, const planned *unit, size_t *awaited) {
  int stage, last = self->lowering->schedule->stages - 1;
  uint32_t microbatch;
  if (forward_of(self, unit, &stage, &microbatch) && stage > 0) {
    *awaited = result_number(self, stage - 1, microbatch, false);
    if (!self->sent[*awaited]) return false;
  }
  if (!backward_of(self, unit, &stage, &microbatch) || stage == last) return true;
  *awaited = result_number(self, stage + 1, microbatch, true);
  return self->sent[*awaited];
}

static void wait_for(plan *self, int rank, int stage, uint32_t microbatch, bool backward) {
  pp_lowering *lowering = self->lowering;
  pp_message_end end;
  if (!pp_lower_input(lowering, stage, microbatch, backward, &end)) return;
  pp_lower_step(lowering, rank, PP_STEP_WAIT, lowering->batch_of[true][result_number(self, end.stage, microbatch, backward)]);
}

/* The send, and the receive on the other rank, which has its turn in this round if that is still to come, else in the next. */
static void send_result(plan *self, int rank, int stage, uint32_t microbatch, bool backward) {
  pp_lowering *lowering = self->lowering;
  size_t number = result_number(self, stage, microbatch, backward);
  pp_message_end end;
  self->sent[number] = 1;
  if (!pp_lower_output(lowering, stage, microbatch, backward, &end)) return;
  int to = lowering->schedule->rank_of[backward ? stage - 1 : stage + 1];
  pp_lower_post(lowering, rank, &end, 1);
  end.receive = true;
  pp_lower_post(lowering, to, &end, 1);
  if (self->awaited[to] != number) return;
  self->awaited[to] = NOTHING;
  pp_event_heap_set(&self->turns, (uint32_t)to, self->turns.time[rank] + (to > rank ? 0 : 1));
}

static void plan_unit(plan *self, int rank, const planned *unit) {
  pp_lowering *lowering = self->lowering;
  int f, b;
  uint32_t microbatch_f, microbatch_b;
  bool forward = forward_of(self, unit, &f, &microbatch_f), backward = backward_of(self, unit, &b, &microbatch_b);
  bool in_turn = forward && backward && lowering->runtime->pairs == PP_PAIR_IN_TURN;
  if (forward) wait_for(self, rank, f, microbatch_f, false);
  if (in_turn) pp_lower_step(lowering, rank, PP_STEP_FORWARD, unit->action);
  if (backward) wait_for(self, rank, b, microbatch_b, true);
  pp_lower_step(lowering, rank, in_turn ? PP_STEP_BACKWARD : (pp_step_kind)unit->part, unit->action);
  if (forward) send_result(self, rank, f, microbatch_f, false);
  if (backward) send_result(self, rank, b, microbatch_b, true);
}

/* When a rank comes to its next unit, if it has one: after a round for each of the other things before it. */
static void expect_turn(plan *self, int rank, double round) {
  bool left = self->next[rank] < self->end[rank];
  pp_event_heap_set(&self->turns, (uint32_t)rank, left ? round + self->units[self->next[rank]].turns : HUGE_VAL);
}

/*
** Goes round the ranks until all is planned. A rank that cannot go on looks again only when what it waits for was planned, so that a round
** costs what is done in it: O(units × log ranks). Ends, for in a program that was verified some rank can always go on; or when the meter is
** spent.
*/
static void plan_all(plan *self) {
  pp_event_heap *turns = &self->turns;
  uint64_t cost = 24;   /* of a turn, and twice the way through the heap */
  for (uint32_t n = turns->places; n > 1; n /= 2) cost += 2;
  pp_spend(8 * (uint64_t)turns->places);
  pp_event_heap_reset(turns);
  for (uint32_t rank = 0; rank < turns->places; rank++) {
    self->awaited[rank] = NOTHING;
    expect_turn(self, (int)rank, 0);
  }
  for (;;) {
    int rank = (int)pp_event_heap_first(turns);
    double round = turns->time[rank];
    if (!(round < HUGE_VAL) || !pp_spend(cost)) return;
    const planned *unit = &self->units[self->next[rank]];
    if (is_ready(self, unit, &self->awaited[rank])) {
      self->awaited[rank] = NOTHING;
      plan_unit(self, rank, unit);
      self->next[rank]++;
      expect_turn(self, rank, round + 1);
    } else {
      pp_event_heap_set(turns, (uint32_t)rank, HUGE_VAL);
    }
  }
}

/*
** Posting receives before use (_defer_recv_ops): each waits for the action that needs it, except that a rank posts what it will receive from
** a higher rank before it sends to that rank, so that of two ranks one always receives first.
*/
typedef struct {
  pp_lowering *lowering;
  pp_step *write;              /* steps are rewritten in place, never more than were read */
  unsigned char *held;         /* [batches] read and not yet written */
  uint32_t *next;              /* [batches] read after it from the same peer */
  uint32_t *head, *tail;       /* [ranks] of the batches from each peer; PP_NO_BATCH: none. Some may no longer be held */
} deferral;

static const pp_message_end *end_of(const deferral *self, uint32_t batch) {
  return &self->lowering->out->end[self->lowering->out->batch[batch].first];
}

static int peer_of(const deferral *self, uint32_t batch) {
  const pp_message_end *end = end_of(self, batch);
  int stage = end->receive ? end->stage : end->backward ? end->stage - 1 : end->stage + 1;
  return self->lowering->schedule->rank_of[stage];
}

static void hold(deferral *self, uint32_t batch) {
  int peer = peer_of(self, batch);
  self->held[batch] = 1;
  self->next[batch] = PP_NO_BATCH;
  if (self->head[peer] == PP_NO_BATCH) self->head[peer] = batch;
  else self->next[self->tail[peer]] = batch;
  self->tail[peer] = batch;
}

static void post_held(deferral *self, uint32_t batch) {
  if (self->held[batch]) *self->write++ = (pp_step){ PP_STEP_POST, batch };
  self->held[batch] = 0;
}

static void post_all_of(deferral *self, int peer) {
  for (uint32_t batch = self->head[peer]; batch != PP_NO_BATCH; batch = self->next[batch]) post_held(self, batch);
  self->head[peer] = PP_NO_BATCH;
}

/* Posts all that an action needs, before its first step: a pair that runs in turn waits twice. */
static void post_needed(deferral *self, const pp_step *step, const pp_step *last) {
  bool in_turn = self->lowering->runtime->pairs == PP_PAIR_IN_TURN;
  for (; step < last; step++) {
    if (step->kind == PP_STEP_WAIT) post_held(self, step->index);
    else if (!(step->kind == PP_STEP_FORWARD && in_turn)) return;
  }
}

static void defer_receives_of(deferral *self, int rank) {
  pp_lowered *out = self->lowering->out;
  const pp_step *last = out->step + out->last[rank];
  self->write = out->step + out->first[rank];
  for (const pp_step *read = self->write; read < last; read++) {
    const pp_step step = *read;
    if (step.kind == PP_STEP_POST && end_of(self, step.index)->receive) {
      hold(self, step.index);
      continue;
    }
    if (step.kind != PP_STEP_POST) post_needed(self, read, last);
    else if (rank < peer_of(self, step.index)) post_all_of(self, peer_of(self, step.index));
    *self->write++ = step;
  }
  for (const pp_step *step = out->step + out->first[rank]; step < self->write; step++)
    if (step->kind == PP_STEP_POST) self->head[peer_of(self, step->index)] = PP_NO_BATCH;   /* for the next rank */
}

static void defer_receives(deferral *self) {
  int ranks = self->lowering->schedule->request.ranks;
  for (int rank = 0; rank < ranks; rank++) self->head[rank] = PP_NO_BATCH;
  for (int rank = 0; rank < ranks; rank++) defer_receives_of(self, rank);
}

/* Lays out what planning needs in `memory`, or only says how many bytes that is. */
static size_t lay_out(plan *self, deferral *deferring, int **left, char *memory) {
  const pp_schedule *schedule = self->lowering->schedule;
  size_t ranks = (size_t)schedule->request.ranks, stages = (size_t)schedule->stages, actions = schedule->first[ranks], at = 0;
  size_t messages = pp_lower_messages(schedule), ends = self->lowering->most_ends;
  self->next = pp_lower_carve(memory, &at, ranks * sizeof *self->next);
  self->end = pp_lower_carve(memory, &at, ranks * sizeof *self->end);
  self->awaited = pp_lower_carve(memory, &at, ranks * sizeof *self->awaited);
  self->units = pp_lower_carve(memory, &at, (splits_pairs(self->lowering) ? 2 : 1) * actions * sizeof *self->units);
  self->sent = pp_lower_carve(memory, &at, messages);
  self->turns.places = (uint32_t)ranks;
  self->turns.time = pp_lower_carve(memory, &at, ranks * sizeof *self->turns.time);
  self->turns.order = pp_lower_carve(memory, &at, ranks * sizeof *self->turns.order);
  self->turns.position = pp_lower_carve(memory, &at, ranks * sizeof *self->turns.position);
  *left = pp_lower_carve(memory, &at, stages * sizeof **left);
  if (self->lowering->runtime->receives != PP_RECEIVE_BEFORE_USE) return at;
  deferring->held = pp_lower_carve(memory, &at, ends);
  deferring->next = pp_lower_carve(memory, &at, ends * sizeof *deferring->next);
  deferring->head = pp_lower_carve(memory, &at, ranks * sizeof *deferring->head);
  deferring->tail = pp_lower_carve(memory, &at, ranks * sizeof *deferring->tail);
  return at;
}

size_t pp_lower_torch_multi_bytes(pp_lowering *lowering) {
  plan self = { .lowering = lowering };
  deferral deferring;
  int *left;
  return lay_out(&self, &deferring, &left, NULL);
}

void pp_lower_torch_multi(pp_lowering *lowering, void *scratch) {
  const pp_schedule *schedule = lowering->schedule;
  plan self = { .lowering = lowering };
  deferral deferring = { .lowering = lowering };
  int *left;
  lay_out(&self, &deferring, &left, scratch);
  write_units(&self);
  for (int stage = 0; stage < schedule->stages; stage++) left[stage] = schedule->microbatches_per_chain;
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    count_weight_turns(&self, rank);
    count_gradient_turns(&self, rank, left);
  }
  plan_all(&self);
  if (lowering->runtime->receives == PP_RECEIVE_BEFORE_USE) defer_receives(&deferring);
}

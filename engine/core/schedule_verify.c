/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_verify.c: what is wrong with a program. See schedule_verify.h.
**
** Two passes. The first looks at each rank's list by itself and marks in had[] what each (stage, microbatch) gets. The second runs the
** ranks one after another, each as far as what has come allows, as simulate.c does but without a clock: whoever brings what a rank waits
** for puts it on the stack again. Which ranks are left in the end does not depend on the order in which they ran: a result that has come
** stays, and a buffer is only filled by its one sender and emptied by its one receiver.
*/
#include "core/schedule_verify.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/meter.h"
#include "core/prefetch.h"

/* Bits of had[]: 1 << kind for what was seen; whether the result of the forward, of the backward has come where it is needed. */
enum { HAS_F = 1 << PP_F, HAS_B = 1 << PP_B, HAS_I = 1 << PP_I, HAS_W = 1 << PP_W, SEEN = 15, FORWARD_CAME = 16, BACKWARD_CAME = 32 };

enum { NOWHERE = -1 };

/* With dozens of ranks the second pass hops between more lists than a processor follows by itself. */
enum { ACTIONS_AHEAD = 8 };

static const size_t NOTHING = (size_t)-1;

/* A stage's neighbours: forward results go up, backward results go down. */
typedef struct {
  size_t row;           /* of its first microbatch in had[] */
  int rank;             /* that holds it */
  int up, down;         /* ranks of the next and the previous stage of its chain, or NOWHERE */
  int forward_held, backward_held;    /* of its receive buffers */
} stage_link;

typedef struct {
  size_t next;          /* action to run */
  size_t waiting;       /* the result it waits for: 2 × entry of had[], + 1 for a backward's; or NOTHING */
  int sending_forward, sending_backward;   /* stage whose result of the action before waits for room, or NOWHERE */
} rank_state;

typedef struct {
  const pp_schedule *schedule;
  int stages;
  uint32_t microbatches;
  unsigned char *had;   /* [stages × microbatches] */
  stage_link *stage;    /* [stages] */
  rank_state *rank;     /* [ranks] */
  int *stack;           /* ranks that can go on; a rank is on it at most once */
  int depth;
  int buffers;
  pp_finding *finding;
  pp_error *error;
} verification;

/* -- the first pass: each rank's list by itself ---------------------------------------------------------------------------------------- */

typedef struct {
  pp_action_kind kind;
  int stage;
  uint32_t microbatch;
} single_action;      /* an action, or one half of a pair */

static pp_status fault(const verification *v, int rank, size_t i, single_action one, const char *id, const char *format, ...) {
  char text[160];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  *v->finding = (pp_finding){ .rank = rank, .position = (int64_t)(i - v->schedule->first[rank]) };
  return pp_illegal(v->error, id, "action", NAN, "rank %d, action %lld, %d%c%u: %s", rank, (long long)v->finding->position + 1, one.stage,
                    PP_KIND_LETTERS[one.kind], one.microbatch, text);
}

/* What is wrong with an action, or a half of one, that check_one did not pass. */
static pp_status explain_one(const verification *v, int rank, size_t i, single_action one) {
  const pp_schedule *schedule = v->schedule;
  if (one.stage >= schedule->stages || one.microbatch >= (uint32_t)schedule->microbatches_per_chain)
    return fault(v, rank, i, one, "engine.unknown_action", "there are %d stages and %d microbatches", schedule->stages,
                 schedule->microbatches_per_chain);
  if (schedule->rank_of[one.stage] != rank)
    return fault(v, rank, i, one, "engine.wrong_rank", "stage %d is on rank %d", one.stage, schedule->rank_of[one.stage]);
  unsigned char had = v->had[v->stage[one.stage].row + one.microbatch];
  if (one.kind == PP_W && had & HAS_B)
    return fault(v, rank, i, one, "engine.duplicate_action", "its %dB%u was a full backward, weights included (in PyTorch's files of 2024 "
                 "B stood for what is I now)", one.stage, one.microbatch);
  if (had & (one.kind == PP_B ? HAS_I : one.kind == PP_I ? HAS_B : 0))
    return fault(v, rank, i, one, "engine.duplicate_action", "its backward was already %d%c%u", one.stage, had & HAS_I ? 'I' : 'B',
                 one.microbatch);
  if (had & (1 << one.kind)) return fault(v, rank, i, one, "engine.duplicate_action", "it was already run");
  return fault(v, rank, i, one, "engine.action_order", "it comes before its %c", one.kind == PP_W ? 'I' : 'F');
}

static pp_status explain(const verification *v, int rank, size_t i, bool backward_of_pair) {
  const pp_action *action = &v->schedule->action[i];
  if (action->kind > PP_FB) {
    *v->finding = (pp_finding){ .rank = rank, .position = (int64_t)(i - v->schedule->first[rank]) };
    return pp_illegal(v->error, "engine.unknown_action", "action", NAN, "rank %d, action %lld: no action has kind %d", rank,
                      (long long)v->finding->position + 1, action->kind);
  }
  if (backward_of_pair) return explain_one(v, rank, i, (single_action){ PP_B, action->stage_b, action->microbatch_b });
  pp_action_kind kind = action->kind == PP_FB ? PP_F : (pp_action_kind)action->kind;
  return explain_one(v, rank, i, (single_action){ kind, action->stage, action->microbatch });
}

/* How many forwards and whole backwards (B, or the W of an I) there were; nothing is missing when both are all. */
typedef struct {
  size_t forwards, backwards;
} progress;

/*
** In range, on its stage's rank, not done before, and after what it needs? Takes `v` as a copy: a byte written to had[] could otherwise
** change any table, as far as the compiler knows.
*/
static inline bool check_one(const verification v, int rank, pp_action_kind kind, int stage, uint32_t microbatch, progress *done) {
  static const unsigned char needs[] = { 0, HAS_F, HAS_F, HAS_F | HAS_I };
  static const unsigned char matters[] = { HAS_F, SEEN, SEEN, SEEN };   /* of what was seen, exactly `needs` */
  if (stage >= v.stages || microbatch >= v.microbatches || v.stage[stage].rank != rank) return false;
  unsigned char *had = &v.had[v.stage[stage].row + microbatch];
  if ((*had & matters[kind]) != needs[kind]) return false;
  *had |= (unsigned char)(1 << kind);
  done->forwards += kind == PP_F;
  done->backwards += kind == PP_B || kind == PP_W;
  return true;
}

static pp_status check_list(const verification *v, int rank, progress *all) {
  const pp_schedule *schedule = v->schedule;
  const verification tables = *v;
  progress done = *all;
  for (size_t i = schedule->first[rank], end = schedule->first[rank + 1]; i < end; i++) {
    const pp_action *action = &schedule->action[i];
    const int stage = action->stage;
    const uint32_t microbatch = action->microbatch;
    bool good = false;
    switch (action->kind) {   /* each call for a constant kind */
      case PP_F: good = check_one(tables, rank, PP_F, stage, microbatch, &done); break;
      case PP_B: good = check_one(tables, rank, PP_B, stage, microbatch, &done); break;
      case PP_I: good = check_one(tables, rank, PP_I, stage, microbatch, &done); break;
      case PP_W: good = check_one(tables, rank, PP_W, stage, microbatch, &done); break;
      case PP_FB:   /* the backward first: its forward must be over when the pair begins */
        if (!check_one(tables, rank, PP_B, action->stage_b, action->microbatch_b, &done)) return explain(v, rank, i, true);
        good = check_one(tables, rank, PP_F, stage, microbatch, &done);
        break;
      default: break;
    }
    if (!good) return explain(v, rank, i, false);
  }
  *all = done;
  return PP_OK;
}

static pp_status missing(const verification *v, int stage, size_t microbatch, unsigned char had) {
  int rank = v->schedule->rank_of[stage];
  *v->finding = (pp_finding){ .rank = rank, .position = -1 };
  return pp_illegal(v->error, "engine.missing_action", "action", NAN, "rank %d never runs the %s of stage %d, microbatch %zu", rank,
                    !(had & HAS_F) ? "F" : had & HAS_I ? "W" : "backward", stage, microbatch);
}

static bool is_complete(unsigned char had) { return had == (HAS_F | HAS_B) || had == (HAS_F | HAS_I | HAS_W); }

static pp_status check_lists(const verification *v) {
  const pp_schedule *schedule = v->schedule;
  size_t microbatches = (size_t)schedule->microbatches_per_chain, all = (size_t)schedule->stages * microbatches, i = 0;
  progress done = { 0, 0 };
  for (int rank = 0; rank < schedule->request.ranks; rank++) {
    pp_status status = check_list(v, rank, &done);
    if (status != PP_OK) return status;
  }
  if (done.forwards == all && done.backwards == all) return PP_OK;
  while (is_complete(v->had[i])) i++;
  return missing(v, (int)(i / microbatches), i % microbatches, v->had[i]);
}

/*
** A program with fewer actions than (stage, microbatch) pairs lacks some, since each needs two actions or halves of pairs. Its table had[]
** might be far larger than itself, so only the row of the stage with the fewest is made.
*/
static pp_status find_missing(verification *v) {
  const pp_schedule *schedule = v->schedule;
  size_t microbatches = (size_t)schedule->microbatches_per_chain, stages = (size_t)schedule->stages;
  size_t *count = pp_allocate_zeros(stages * sizeof *count + microbatches);
  if (!count) return pp_fail(v->error, PP_NO_MEMORY, "not enough memory to verify %d stages", schedule->stages);
  unsigned char *had = (unsigned char *)(count + stages);
  const pp_action *end = schedule->action + schedule->first[schedule->request.ranks];
  for (const pp_action *action = schedule->action; action < end; action++) {
    if (action->stage < stages) count[action->stage]++;
    if (action->kind == PP_FB && action->stage_b < stages) count[action->stage_b]++;
  }
  size_t least = 0, at = 0;
  for (size_t stage = 1; stage < stages; stage++)
    if (count[stage] < count[least]) least = stage;
  for (const pp_action *action = schedule->action; action < end; action++) {
    if (action->stage == least && action->microbatch < microbatches)
      had[action->microbatch] |= (unsigned char)(action->kind == PP_FB ? HAS_F : 1 << (action->kind & 3));
    if (action->kind == PP_FB && action->stage_b == least && action->microbatch_b < microbatches) had[action->microbatch_b] |= HAS_B;
  }
  while (is_complete(had[at])) at++;
  pp_status status = missing(v, (int)least, at, had[at]);
  pp_free(count);
  return status;
}

/* -- the second pass: do ranks wait for each other? ------------------------------------------------------------------------------------ */

static inline void push(verification *v, int rank) { v->stack[v->depth++] = rank; }

/* The result of a stage's forward or backward is where it is needed: rank `to`, which may be waiting for it. */
static inline void deliver(verification *v, size_t entry, bool backward, int to) {
  v->had[entry] |= backward ? BACKWARD_CAME : FORWARD_CAME;
  if (v->rank[to].waiting == 2 * entry + backward) {
    v->rank[to].waiting = NOTHING;
    push(v, to);
  }
}

/* Has what a forward, a backward needs come? Otherwise its rank waits for it. A last stage's backward needs only its own forward. */
static inline bool forward_can_run(const verification *v, rank_state *state, int stage, uint32_t microbatch) {
  if (v->stage[stage].down == NOWHERE) return true;
  size_t entry = v->stage[stage - 1].row + microbatch;
  if (v->had[entry] & FORWARD_CAME) return true;
  state->waiting = 2 * entry;
  return false;
}

static inline bool backward_can_run(const verification *v, rank_state *state, int stage, uint32_t microbatch) {
  if (v->stage[stage].up == NOWHERE) return true;
  size_t entry = v->stage[stage + 1].row + microbatch;
  if (v->had[entry] & BACKWARD_CAME) return true;
  state->waiting = 2 * entry + 1;
  return false;
}

static inline bool can_run(const verification *v, rank_state *state, const pp_action *action) {
  switch (action->kind) {
    case PP_F: return forward_can_run(v, state, action->stage, action->microbatch);
    case PP_W: return true;
    case PP_FB: return forward_can_run(v, state, action->stage, action->microbatch) &&
                       backward_can_run(v, state, action->stage_b, action->microbatch_b);
    default: return backward_can_run(v, state, action->stage, action->microbatch);
  }
}

/* A rank whose results of its last action have all been taken goes on. */
static inline void sent(verification *v, int rank) {
  if (v->rank[rank].sending_forward == NOWHERE && v->rank[rank].sending_backward == NOWHERE) push(v, rank);
}

/* A buffer of the stage is free again, unless its sender waits for that. */
static inline void empty_forward_buffer(verification *v, int rank, int stage) {
  stage_link *link = &v->stage[stage];
  if (link->down == NOWHERE || link->down == rank) return;
  rank_state *sender = &v->rank[link->down];
  if (sender->sending_forward != stage - 1) {
    link->forward_held--;
    return;
  }
  sender->sending_forward = NOWHERE;
  deliver(v, v->stage[stage - 1].row + v->schedule->action[sender->next - 1].microbatch, false, rank);
  sent(v, link->down);
}

static inline void empty_backward_buffer(verification *v, int rank, int stage) {
  stage_link *link = &v->stage[stage];
  if (link->up == NOWHERE || link->up == rank) return;
  rank_state *sender = &v->rank[link->up];
  if (sender->sending_backward != stage + 1) {
    link->backward_held--;
    return;
  }
  const pp_action *action = &v->schedule->action[sender->next - 1];
  sender->sending_backward = NOWHERE;
  deliver(v, v->stage[stage + 1].row + (action->kind == PP_FB ? action->microbatch_b : action->microbatch), true, rank);
  sent(v, link->up);
}

static inline void run_forward(verification *v, int rank, int stage, uint32_t microbatch, bool blocking) {
  stage_link *link = &v->stage[stage];
  if (blocking) empty_forward_buffer(v, rank, stage);
  if (link->up == NOWHERE) return;
  if (blocking && link->up != rank) {
    if (v->stage[stage + 1].forward_held == v->buffers) {
      v->rank[rank].sending_forward = stage;
      return;
    }
    v->stage[stage + 1].forward_held++;
  }
  deliver(v, link->row + microbatch, false, link->up);
}

static inline void run_backward(verification *v, int rank, int stage, uint32_t microbatch, bool blocking) {
  stage_link *link = &v->stage[stage];
  if (blocking) empty_backward_buffer(v, rank, stage);
  if (link->down == NOWHERE) return;
  if (blocking && link->down != rank) {
    if (v->stage[stage - 1].backward_held == v->buffers) {
      v->rank[rank].sending_backward = stage;
      return;
    }
    v->stage[stage - 1].backward_held++;
  }
  deliver(v, link->row + microbatch, true, link->down);
}

/* Runs a rank until it waits or is done. Written once for both models; `blocking` is a constant in each. */
static inline void run_rank(verification *shared, int rank, bool blocking) {
  verification tables = *shared, *const v = &tables;   /* a copy, for the reason that check_one has */
  const pp_action *const actions = v->schedule->action;
  const size_t end = v->schedule->first[rank + 1];
  rank_state *state = &v->rank[rank];
  for (size_t next = state->next; next < end; ) {
    const pp_action *action = &actions[next];
    if (end - next > ACTIONS_AHEAD) PP_PREFETCH(action + ACTIONS_AHEAD, 0);
    if (!can_run(v, state, action)) break;
    state->next = ++next;
    switch (action->kind) {
      case PP_F: run_forward(v, rank, action->stage, action->microbatch, blocking); break;
      case PP_W: break;
      case PP_FB:
        run_forward(v, rank, action->stage, action->microbatch, blocking);
        run_backward(v, rank, action->stage_b, action->microbatch_b, blocking);
        break;
      default: run_backward(v, rank, action->stage, action->microbatch, blocking); break;
    }
    if (blocking && (state->sending_forward != NOWHERE || state->sending_backward != NOWHERE)) break;
  }
  shared->depth = v->depth;
}

static bool is_stuck(const verification *v, int rank) {
  const rank_state *state = &v->rank[rank];
  return state->waiting != NOTHING || state->sending_forward != NOWHERE || state->sending_backward != NOWHERE;
}

/* Runs the program from its start: a rank that cannot go on, or NOWHERE. */
static int run_all(verification *v, int buffers) {
  int ranks = v->schedule->request.ranks;
  pp_spend(4 * (v->schedule->first[ranks] + (uint64_t)v->stages));
  v->depth = 0;
  v->buffers = buffers;
  for (int stage = 0; stage < v->stages; stage++) v->stage[stage].forward_held = v->stage[stage].backward_held = 0;
  for (int rank = ranks - 1; rank >= 0; rank--) {
    v->rank[rank] = (rank_state){ v->schedule->first[rank], NOTHING, NOWHERE, NOWHERE };
    push(v, rank);
  }
  if (buffers != PP_ASYNCHRONOUS) while (v->depth > 0) run_rank(v, v->stack[--v->depth], true);
  else while (v->depth > 0) run_rank(v, v->stack[--v->depth], false);
  for (int rank = 0; rank < ranks; rank++)
    if (is_stuck(v, rank)) return rank;
  return NOWHERE;
}

/* -- the cycle ------------------------------------------------------------------------------------------------------------------------- */

static pp_wait wait_of(const verification *v, int rank) {
  const pp_schedule *schedule = v->schedule;
  const rank_state *state = &v->rank[rank];
  size_t microbatches = (size_t)schedule->microbatches_per_chain;
  pp_wait wait = { .rank = rank, .position = (int64_t)(state->next - schedule->first[rank]), .kind = PP_F };
  wait.sends = state->waiting == NOTHING;
  bool backward;
  if (wait.sends) {
    const pp_action *action = &schedule->action[state->next - 1];
    backward = state->sending_forward == NOWHERE;
    wait.stage = backward ? state->sending_backward : state->sending_forward;
    wait.microbatch = backward && action->kind == PP_FB ? action->microbatch_b : action->microbatch;
    wait.of = backward ? v->stage[wait.stage].down : v->stage[wait.stage].up;
  } else {
    backward = state->waiting % 2;
    wait.stage = (int)(state->waiting / 2 / microbatches);
    wait.microbatch = (uint32_t)(state->waiting / 2 % microbatches);
    wait.of = schedule->rank_of[wait.stage];
  }
  if (backward) wait.kind = v->had[v->stage[wait.stage].row + wait.microbatch] & HAS_I ? PP_I : PP_B;
  return wait;
}

static int print_wait(const pp_wait *wait, const char *before, char *text, size_t size) {
  if (wait->sends)
    return snprintf(text, size, "%srank %d waits for rank %d to take %d%c%u", before, wait->rank, wait->of, wait->stage,
                    PP_KIND_LETTERS[wait->kind], wait->microbatch);
  return snprintf(text, size, "%srank %d waits for %d%c%u of rank %d", before, wait->rank, wait->stage, PP_KIND_LETTERS[wait->kind],
                  wait->microbatch, wait->of);
}

/* As many waits of a cycle as fit in `size` bytes. */
static void print_cycle(const pp_finding *finding, char *text, size_t size) {
  size_t used = 0;
  for (int i = 0; i < finding->waits; i++) {
    char one[96];
    const pp_wait *wait = i < PP_FINDING_WAITS ? &finding->wait[i] : NULL;
    int length = wait ? print_wait(wait, i ? ", " : "", one, sizeof one) : 0;
    if (!wait || used + (size_t)length + sizeof ", …" > size) {
      memcpy(text + used, ", …", sizeof ", …");
      return;
    }
    memcpy(text + used, one, (size_t)length + 1);
    used += (size_t)length;
  }
}

/*
** All actions are there, so a rank that waits for a result waits for a rank that is itself stuck, and so does one that waits for a buffer:
** following the waits ends in a cycle. It is told from its lowest rank on.
*/
static pp_status deadlock(const verification *v, int rank, const char *id, const char *where) {
  char text[sizeof v->error->message - 32];
  pp_spend(8 * (uint64_t)v->schedule->request.ranks);
  for (int i = 0; i < v->schedule->request.ranks; i++) rank = wait_of(v, rank).of;
  for (int at = wait_of(v, rank).of, end = rank; at != end; at = wait_of(v, at).of)
    if (at < rank) rank = at;
  pp_finding *finding = v->finding;
  *finding = (pp_finding){ .rank = rank, .position = wait_of(v, rank).position };
  const int start = rank;
  do {
    pp_wait wait = wait_of(v, rank);
    if (finding->waits < PP_FINDING_WAITS) finding->wait[finding->waits] = wait;
    finding->waits++;
    rank = wait.of;
  } while (rank != start);
  print_cycle(finding, text, sizeof text);
  return pp_illegal(v->error, id, "action", NAN, "deadlock%s: %s", where, text);
}

/* For another run. */
static void forget_results(verification *v) {
  size_t entries = (size_t)v->stages * v->microbatches;
  pp_spend(entries / 4);
  for (size_t i = 0; i < entries; i++) v->had[i] &= SEEN;
}

static pp_status check_waits(verification *v, int buffers) {
  int stuck = run_all(v, buffers);
  if (stuck == NOWHERE) return PP_OK;
  if (buffers == PP_ASYNCHRONOUS) return deadlock(v, stuck, "engine.deadlock", "");
  pp_status status = deadlock(v, stuck, "engine.blocking_deadlock", " where p2p blocks");
  forget_results(v);
  stuck = run_all(v, PP_ASYNCHRONOUS);
  return stuck == NOWHERE ? status : deadlock(v, stuck, "engine.deadlock", "");
}

/* -- both passes ----------------------------------------------------------------------------------------------------------------------- */

/* Tables in one block, zeros where they count. */
static bool prepare(verification *v) {
  const pp_schedule *schedule = v->schedule;
  size_t stages = (size_t)schedule->stages, ranks = (size_t)schedule->request.ranks, microbatches = v->microbatches;
  char *memory = pp_allocate_zeros(stages * microbatches + stages * sizeof(stage_link) + ranks * (sizeof(rank_state) + sizeof(int)));
  if (!memory) return false;
  v->stage = (stage_link *)(void *)memory;
  v->rank = (rank_state *)(void *)(v->stage + stages);
  v->stack = (int *)(void *)(v->rank + ranks);
  v->had = (unsigned char *)(v->stack + ranks);
  for (int s = 0; s < schedule->stages; s++) {
    bool first = s % schedule->stages_per_chain == 0, last = (s + 1) % schedule->stages_per_chain == 0;
    v->stage[s] = (stage_link){ .row = (size_t)s * microbatches, .rank = schedule->rank_of[s],
                                .up = last ? NOWHERE : schedule->rank_of[s + 1], .down = first ? NOWHERE : schedule->rank_of[s - 1] };
  }
  return true;
}

/* Starts a verification: PP_OK when the lists are right and v's tables made, to be freed at v->stage, which is NULL otherwise. */
static pp_status start(verification *v, const pp_schedule *schedule, pp_finding *finding, pp_error *error) {
  *v = (verification){ .schedule = schedule, .stages = schedule->stages, .microbatches = (uint32_t)schedule->microbatches_per_chain,
                       .finding = finding, .error = error };
  *finding = (pp_finding){ .rank = NOWHERE, .position = -1 };
  size_t actions = schedule->first[schedule->request.ranks], stages = (size_t)schedule->stages;
  if (!pp_spend(4 * (actions + stages))) return pp_stopped(v->error);
  if (stages * (size_t)schedule->microbatches_per_chain > actions) return find_missing(v);
  if (!prepare(v)) return pp_fail(error, PP_NO_MEMORY, "not enough memory to verify %zu actions", actions);
  pp_status status = check_lists(v);
  if (status == PP_OK) return PP_OK;
  pp_free(v->stage);
  v->stage = NULL;
  return status;
}

pp_status pp_schedule_verify_p2p(const pp_schedule *schedule, int buffers, pp_finding *finding, pp_error *error) {
  pp_finding nobody_asks;
  pp_error nobody_reads;
  verification v;
  pp_status status = start(&v, schedule, finding ? finding : &nobody_asks, error ? error : &nobody_reads);
  if (status != PP_OK) return status;
  status = check_waits(&v, buffers);
  pp_free(v.stage);   /* the start of the block */
  return status;
}

pp_status pp_schedule_verify(const pp_schedule *schedule, pp_error *error) {
  return pp_schedule_verify_p2p(schedule, PP_ASYNCHRONOUS, NULL, error);
}

static bool runs_with(verification *v, int buffers) {
  forget_results(v);
  return run_all(v, buffers) == NOWHERE;
}

pp_status pp_schedule_receive_buffers(const pp_schedule *schedule, int *buffers, pp_error *error) {
  pp_finding finding;
  pp_error nobody_reads;
  verification v;
  pp_status status = start(&v, schedule, &finding, error ? error : &nobody_reads);
  if (status != PP_OK) return status;
  int most = schedule->microbatches_per_chain, enough = 1, least = 1;   /* least ≤ the result ≤ enough */
  for (; enough < most && !runs_with(&v, enough); enough = enough <= most / 2 ? 2 * enough : most) least = enough + 1;
  while (least < enough) {
    int middle = least + (enough - least) / 2;
    if (runs_with(&v, middle)) enough = middle;
    else least = middle + 1;
  }
  *buffers = enough;
  if (!runs_with(&v, enough)) {
    forget_results(&v);
    status = check_waits(&v, PP_ASYNCHRONOUS);
  }
  pp_free(v.stage);
  return status;
}

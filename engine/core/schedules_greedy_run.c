/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_greedy_run.c: the list scheduler. See schedules_greedy.h.
**
** Each rank keeps one decision: what it would do next, and when. The earliest of all ranks is carried out, and only the rank itself and the
** one that gets its result decide again. So whatever starts before a decision's time is known when the decision is carried out.
*/
#include <math.h>

#include "core/meter.h"
#include "core/schedules_greedy.h"

enum { WEIGHT = PP_MOST_QUEUES, NOTHING };   /* what a decision runs, beside a queue's next entry */

/* Of decisions at the same time: turns first, for what they bring may change what others do. */
typedef enum { TURN, EARLY, FILL } urgency;

typedef struct {
  double when;
  urgency urgency;
  int what;
} decision;

typedef struct {
  double clock, start, waited, held;
  int64_t key[PP_MOST_QUEUES];   /* of the queue's next entry */
  int done[PP_MOST_QUEUES];      /* entries that have run */
  int arrived[PP_MOST_QUEUES];   /* entries whose arrival is known */
  int weights[PP_MOST_QUEUES / 2];
  int due;                       /* W's whose I has run */
  decision next;
} rank_state;

typedef struct {
  const pp_greedy_problem *problem;
  const pp_greedy_plan *plan;
  pp_schedule *out;
  rank_state *rank;    /* [ranks] */
  double *arrival;     /* [ranks × queues × microbatches] */
  int *winner;         /* a tree over ranks: winner[1] decides earliest, winner[leaves + r] is r */
  int leaves;
  double tolerance;    /* rounding of whoever added times up in another order */
  double most_waited;  /* of any rank */
} run_state;

static bool is_forward(const pp_greedy_problem *problem, int queue) { return queue < problem->queues / 2; }

/* The chunk of an entry, as the number of its F's queue. */
static int chunk_of(const pp_greedy_problem *problem, int queue) {
  return is_forward(problem, queue) ? queue : problem->queues - 1 - queue;
}

static double *arrivals_of(const run_state *run, int rank, int queue) {
  return run->arrival + ((size_t)rank * (size_t)run->problem->queues + (size_t)queue) * (size_t)run->problem->microbatches;
}

/* -- deciding ------------------------------------------------------------------------------------------------------------------------- */

/* The chunk whose W's turn it is: the one with most due, the last one of those. */
static int weight_chunk(const pp_greedy_problem *problem, const rank_state *rank) {
  int chunk = 0, most = 0;
  for (int k = 0; k < problem->queues / 2; k++) {
    int due = rank->done[problem->queues - 1 - k] - rank->weights[k];
    if (due >= most) {
      most = due;
      chunk = k;
    }
  }
  return chunk;
}

/* Seconds until the next entry of a queue is there: 0 when it is, INFINITY when nobody knows. */
static double wait_of(const run_state *run, int number, int queue) {
  const rank_state *rank = &run->rank[number];
  if (rank->done[queue] >= rank->arrived[queue]) return INFINITY;
  double wait = arrivals_of(run, number, queue)[rank->done[queue]] - rank->clock;
  return wait <= run->tolerance ? 0 : wait;
}

/*
** Queues with entries left, in the order of their keys; when the last microbatch has come into the pipeline, with `drain` in the order in
** which their entries arrive. Returns how many.
*/
static int sort_queues(const run_state *run, int number, int order[PP_MOST_QUEUES]) {
  const rank_state *rank = &run->rank[number];
  const int microbatches = run->problem->microbatches;
  const bool by_arrival = run->plan->drain && rank->done[0] == microbatches;
  double place[PP_MOST_QUEUES];
  int count = 0;
  for (int queue = 0; queue < run->problem->queues; queue++) {
    if (rank->done[queue] == microbatches) continue;
    place[queue] = by_arrival ? wait_of(run, number, queue) : (double)rank->key[queue];
    int at = count++;
    for (; at > 0 && place[order[at - 1]] > place[queue]; at--) order[at] = order[at - 1];
    order[at] = queue;
  }
  return count;
}

static bool has_room(const run_state *run, const rank_state *rank, int reserve) {
  return rank->held + 1 <= run->problem->limit - reserve + 1e-6;
}

static bool may_forward_early(const run_state *run, int number, int queue) {
  const pp_greedy_plan *plan = run->plan;
  const rank_state *rank = &run->rank[number];
  const int64_t *key = &plan->key[number * run->problem->queues];
  int back = run->problem->queues - 1 - queue;
  switch (plan->forwards) {
    case PP_EARLY_WITH_ROOM: return has_room(run, rank, plan->reserve);
    case PP_EARLY_AS_PLANNED:
      return has_room(run, rank, 0) && rank->done[queue] - rank->done[back] <= (key[back] - key[queue]) / plan->period;
    default: return false;
  }
}

/* May this entry run before its turn, which is `gap` seconds away? */
static bool may_run_early(const run_state *run, int number, int queue, double gap) {
  if (is_forward(run->problem, queue) ? !may_forward_early(run, number, queue) : !run->plan->inputs) return false;
  double seconds = run->problem->seconds[number * run->problem->queues + queue];
  return wait_of(run, number, queue) <= 0 && seconds <= gap + run->tolerance;
}

static bool may_fill(const run_state *run, int number, double gap) {
  const rank_state *rank = &run->rank[number];
  switch (run->plan->fill) {
    case PP_FILL_ANY: return true;
    case PP_FILL_WORST:
      if (rank->waited + gap > run->most_waited + run->tolerance) return true;
      break;
    case PP_FILL_FITTING: break;
  }
  return run->problem->weight[number * run->problem->queues / 2 + weight_chunk(run->problem, rank)] <= gap + run->tolerance;
}

static decision decide(const run_state *run, int number) {
  const rank_state *rank = &run->rank[number];
  int order[PP_MOST_QUEUES], count = sort_queues(run, number, order), turn = order[0];
  const decision weight = { rank->clock, FILL, WEIGHT };
  if (count == 0) return rank->due > 0 ? weight : (decision){ INFINITY, FILL, NOTHING };

  const bool blocked = is_forward(run->problem, turn) && !has_room(run, rank, 0);
  const double wait = wait_of(run, number, turn);
  if (wait <= 0 && !blocked) return (decision){ rank->clock, TURN, turn };
  if (wait <= 0 && rank->due > 0) return weight;
  const double gap = wait > 0 ? wait : INFINITY;   /* a turn that waits for memory waits for an I, whenever that may be */
  if (rank->done[turn] < rank->arrived[turn] || run->plan->blind)
    for (int i = 1; i < count; i++)
      if (may_run_early(run, number, order[i], gap)) return (decision){ rank->clock, EARLY, order[i] };
  if (rank->due > 0 && (blocked || may_fill(run, number, gap))) return weight;
  if (blocked || gap == INFINITY) return (decision){ INFINITY, FILL, NOTHING };
  return (decision){ rank->clock + wait, TURN, turn };
}

/* -- carrying out --------------------------------------------------------------------------------------------------------------------- */

static bool is_before(const run_state *run, int a, int b) {
  const decision *left = &run->rank[a].next, *right = &run->rank[b].next;
  if (left->when < right->when) return true;
  if (left->when > right->when) return false;
  return left->urgency != right->urgency ? left->urgency < right->urgency : a < b;
}

static void decide_again(run_state *run, int number) {
  run->rank[number].next = decide(run, number);
  for (int at = (run->leaves + number) / 2; at > 0; at /= 2) {
    const int left = run->winner[2 * at], right = run->winner[2 * at + 1], before = run->winner[at];
    run->winner[at] = right < run->problem->ranks && (left >= run->problem->ranks || is_before(run, right, left)) ? right : left;
    if (run->winner[at] == before && before != number) break;   /* above, nothing changes */
  }
}

static void deliver(run_state *run, int rank, int queue, double when) {
  int entry = run->rank[rank].arrived[queue]++;
  arrivals_of(run, rank, queue)[entry] = when;
  decide_again(run, rank);
}

static void write_action(run_state *run, int number, pp_action_kind kind, int chunk, int microbatch) {
  pp_schedule *out = run->out;
  if (!out) return;
  const rank_state *rank = &run->rank[number];
  size_t before = 0;
  for (int queue = 0; queue < run->problem->queues; queue++) before += (size_t)rank->done[queue];
  for (int k = 0; k < run->problem->queues / 2; k++) before += (size_t)rank->weights[k];
  out->action[out->first[number] + before] = (pp_action){
    .kind = (uint16_t)kind, .stage = (uint16_t)pp_schedule_stages_of(out, number)[chunk], .microbatch = (uint32_t)microbatch };
}

static void run_weight(run_state *run, int number) {
  rank_state *rank = &run->rank[number];
  int chunk = weight_chunk(run->problem, rank);
  write_action(run, number, PP_W, chunk, rank->weights[chunk]);
  rank->weights[chunk]++;
  rank->due--;
  rank->held -= 1 - run->problem->released;
  rank->clock += run->problem->weight[number * run->problem->queues / 2 + chunk];
}

static void run_entry(run_state *run, int number, int queue, double when) {
  const pp_greedy_problem *problem = run->problem;
  rank_state *rank = &run->rank[number];
  bool forward = is_forward(problem, queue);
  write_action(run, number, forward ? PP_F : PP_I, chunk_of(problem, queue), rank->done[queue]);
  if (isnan(rank->start)) rank->start = when;
  else rank->waited += when - rank->clock;
  run->most_waited = fmax(run->most_waited, rank->waited);
  rank->clock = when + problem->seconds[number * problem->queues + queue];
  rank->key[queue] += run->plan->period;
  rank->done[queue]++;
  rank->held += forward ? 1 : -problem->released;
  rank->due += !forward;

  bool down = queue % 2 == 0;
  int last = down ? problem->ranks - 1 : 0;
  if (number != last) deliver(run, down ? number + 1 : number - 1, queue, rank->clock + problem->hop);
  else if (queue + 1 < problem->queues) deliver(run, number, queue + 1, rank->clock);
}

/* -- the run -------------------------------------------------------------------------------------------------------------------------- */

/* Matches between two ranks until the winner is known. */
static int levels_of(int ranks) {
  int levels = 0;
  while (1 << levels < ranks) levels++;
  return levels;
}

static int leaves_of(int ranks) {
  return 1 << levels_of(ranks);
}

size_t pp_greedy_scratch(const pp_greedy_problem *problem) {
  size_t ranks = (size_t)problem->ranks, entries = ranks * (size_t)problem->queues * (size_t)problem->microbatches;
  return entries * sizeof(double) + ranks * sizeof(rank_state) + 2 * (size_t)leaves_of(problem->ranks) * sizeof(int);
}

static void prepare(run_state *run, void *scratch) {
  const pp_greedy_problem *problem = run->problem;
  int queues = problem->queues;
  pp_spend(8 * (uint64_t)problem->ranks + (uint64_t)problem->microbatches);
  run->arrival = scratch;
  run->rank = (rank_state *)(void *)(run->arrival + (size_t)problem->ranks * (size_t)queues * (size_t)problem->microbatches);
  run->winner = (int *)(void *)(run->rank + problem->ranks);
  run->leaves = leaves_of(problem->ranks);
  run->tolerance = 0;
  for (int i = 0; i < problem->ranks * queues; i++) run->tolerance = fmax(run->tolerance, 1e-9 * problem->seconds[i]);
  for (int r = 0; r < problem->ranks; r++) {
    run->rank[r] = (rank_state){ .start = NAN, .next = { INFINITY, FILL, NOTHING } };
    for (int queue = 0; queue < queues; queue++) run->rank[r].key[queue] = run->plan->key[r * queues + queue];
  }
  for (int r = 0; r < run->leaves; r++) run->winner[run->leaves + r] = r;
  for (int at = run->leaves - 1; at > 0; at--) run->winner[at] = run->winner[2 * at];
  for (int m = 0; m < problem->microbatches; m++) run->arrival[m] = 0;
  run->rank[0].arrived[0] = problem->microbatches;
  decide_again(run, 0);
}

bool pp_greedy_run(const pp_greedy_problem *problem, const pp_greedy_plan *plan, void *scratch, pp_schedule *out, pp_greedy_score *score) {
  run_state run = { .problem = problem, .plan = plan, .out = out };
  size_t left = (size_t)problem->ranks * (size_t)problem->queues / 2 * 3 * (size_t)problem->microbatches;
  const uint64_t turns = 1024, cost = turns * (uint64_t)(16 + 2 * levels_of(run.problem->ranks));
  prepare(&run, scratch);
  for (; left > 0; left--) {
    if (left % turns == 0 && !pp_spend(cost)) return false;
    int number = run.winner[1];
    const decision next = run.rank[number].next;
    if (next.what == NOTHING) return false;
    if (next.what == WEIGHT) run_weight(&run, number);
    else run_entry(&run, number, next.what, next.when);
    decide_again(&run, number);
  }
  *score = (pp_greedy_score){ 0, 0 };
  for (int r = 0; r < problem->ranks; r++) {
    score->makespan = fmax(score->makespan, run.rank[r].clock);
    score->span = fmax(score->span, run.rank[r].clock - run.rank[r].start);
  }
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules_greedy.c: schedules that are planned from times, all ranks at once, under a limit of chunks that a rank holds: zb_auto with one
** chunk a rank, v_half and v_min with two in a V. Several plans are run by the list scheduler (schedules_greedy.h) and the best is written:
** the least makespan, of equals the least span, of those the first.
**
** zb_auto, after Qi et al. 2024, "Zero Bubble Pipeline Parallelism", section 3.1: as many forwards to warm up as the limit allows and as help,
** then a forward and a backward in turn; W's fill waits that are long enough or make room when memory wants it; what is open is tried out.
** How many forwards a rank may be ahead of its backwards falls from the first rank to the last: evenly from the limit (which at P and
** 2P − 1 gives ZB-H1 and ZB-H2), or by two a rank up to the limit, as in ZB-H2. Both handcrafted orders are among the plans, so that zb_auto
** is never slower than those that its limit allows.
**
** v_half and v_min, after Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", section 3: a block of a microbatch's passes,
** repeated every six of its units (F = I = W on two chunks). What a rank holds follows from how long a pass takes from rank to rank, in units:
** 1, 2, 1, 2 for v_half's way down, up, down and up, always 1 for v_min; a wait where the way turns keeps the passes of a rank apart
** modulo six. The block is only an order of preference here: passes run early when they can and memory allows, which closes the gaps that
** the repetition leaves at both ends.
*/
#include <math.h>

#include "core/meter.h"
#include "core/schedules.h"
#include "core/schedules_greedy.h"
#include "core/simulate.h"

static int smaller(int a, int b) { return a < b ? a : b; }

/* Everything the plans share. */
typedef struct {
  pp_greedy_problem problem;
  pp_stage_times *times;   /* [stages] */
  double *seconds, *weight;
  int64_t *key;
  void *scratch;
} workshop;

/* Fills the plan's keys: whose turn it is. */
typedef void (*shape_function)(const pp_greedy_problem *problem, int64_t *key);

typedef struct {
  shape_function shape;
  pp_greedy_plan plan;
} variant;

/* -- zb_auto -------------------------------------------------------------------------------------------------------------------------- */

static int limit_of(const pp_greedy_problem *problem) { return (int)problem->limit; }

/* Forwards ahead of backwards: `most` on the first rank, 1 on the last, evenly between. */
static int spread(int ranks, int most, int rank) {
  const int last = ranks - 1;
  return last == 0 ? most : 1 + (int)(((int64_t)(most - 1) * (last - rank) + last - 1) / last);
}

/* F m is entry 2m, so that I j, at 2(ahead + j) − 1, follows `ahead` forwards more. */
static void set_ahead(int64_t *key, int rank, int ahead) {
  key[2 * rank] = 0;
  key[2 * rank + 1] = 2 * (int64_t)ahead - 1;
}

static void spread_over_limit(const pp_greedy_problem *problem, int64_t *key) {
  for (int r = 0; r < problem->ranks; r++) set_ahead(key, r, spread(problem->ranks, limit_of(problem), r));
}

static void steep(const pp_greedy_problem *problem, int64_t *key) {
  for (int r = 0; r < problem->ranks; r++) set_ahead(key, r, smaller(limit_of(problem), 2 * (problem->ranks - r) - 1));
}

/* The first is the one that a brief search compares with the handcrafted orders. */
static const variant auto_variants[] = {
  { steep, { .period = 2, .fill = PP_FILL_FITTING, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { steep, { .period = 2, .fill = PP_FILL_WORST, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { steep, { .period = 2, .fill = PP_FILL_ANY, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_FITTING, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_WORST, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_ANY, .forwards = PP_EARLY_WITH_ROOM, .blind = true } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_FITTING } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_WORST } },
  { spread_over_limit, { .period = 2, .fill = PP_FILL_ANY } },
  { steep, { .period = 2, .fill = PP_FILL_FITTING } },
  { steep, { .period = 2, .fill = PP_FILL_WORST } },
  { steep, { .period = 2, .fill = PP_FILL_ANY } },
};

/*
** ZB-H1 for `most` P, ZB-H2 for 2P − 1, and what lies between and below: on each rank forwards ahead, then F, I and, as soon as more W's are
** due than the forwards leave of `most`, W. No rank holds more than `most`, and the order is executable for any, since a rank is never
** ahead by less than the next one.
*/
static void write_handcrafted(pp_schedule *out, int most) {
  const int ranks = out->request.ranks, microbatches = out->request.microbatches;
  for (int r = 0; r < ranks; r++) {
    pp_writer writer = { out->action + out->first[r], pp_schedule_stages_of(out, r) };
    int ahead = spread(ranks, most, r), forwards = 0, weights = 0;
    for (int j = 0; j < microbatches; j++) {
      for (; forwards < microbatches && forwards < ahead + j; forwards++) pp_write(&writer, PP_F, 0, forwards);
      pp_write(&writer, PP_I, 0, j);
      if (j - weights >= most - ahead) pp_write(&writer, PP_W, 0, weights++);
    }
    while (weights < microbatches) pp_write(&writer, PP_W, 0, weights++);
  }
}

/* -- v_half, v_min -------------------------------------------------------------------------------------------------------------------- */

enum { UNITS = 6 };

/* A block: units from rank to rank on each of the four ways, and those that it waits at the three turns. */
static void set_block(const pp_greedy_problem *problem, const int hop[4], const int wait[3], int64_t *key) {
  int last = problem->ranks - 1;
  int start = 0;
  for (int way = 0; way < 4; way++) {
    for (int r = 0; r <= last; r++) key[4 * r + way] = start + hop[way] * (way % 2 == 0 ? r : last - r);
    if (way < 3) start += hop[way] * last + 1 + wait[way];
  }
}

static void half_block(const pp_greedy_problem *problem, int64_t *key) {
  static const int hop[4] = { 1, 2, 1, 2 }, wait[2][3] = { { 0, 3, 1 }, { 0, 0, 1 } };
  set_block(problem, hop, wait[problem->ranks % 2], key);
}

static void min_block(const pp_greedy_problem *problem, int64_t *key) {
  static const int hop[4] = { 1, 1, 1, 1 }, wait[2][3] = { { 0, 0, 0 }, { 0, 2, 0 } };
  set_block(problem, hop, wait[problem->ranks % 3 == 0], key);
}

/* The first is the block as it stands, which never gets stuck. */
#define V_VARIANTS(block) \
  { block, { .period = UNITS } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 1, .drain = true } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 1, .inputs = true } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .drain = true } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_AS_PLANNED, .blind = true, .drain = true } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 2, .inputs = true, .blind = true, .drain = true } }, \
  { block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 3, .inputs = true, .blind = true, .drain = true } },

static const variant half_variants[] = { V_VARIANTS(half_block) };

/* On few ranks v_half's block fits under v_min's limit too, and idles less. */
static const variant min_variants[] = {
  V_VARIANTS(min_block)
  { half_block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 2, .inputs = true, .blind = true, .drain = true } },
  { half_block, { .period = UNITS, .forwards = PP_EARLY_WITH_ROOM, .reserve = 3, .inputs = true, .blind = true, .drain = true } },
};

/* -- choosing ------------------------------------------------------------------------------------------------------------------------- */

static pp_status check_times(const pp_schedule_request *request, const pp_schedule *schedule, pp_error *error) {
  if (!pp_is_seconds(request->p2p)) return pp_fail(error, PP_INVALID, "p2p must be " PP_SECONDS ", got %g", request->p2p);
  for (int s = 0; request->times && s < schedule->stages; s++) {
    const pp_stage_times *times = &request->times[s];
    if (!pp_is_seconds(times->forward) || !pp_is_seconds(times->input) || !pp_is_seconds(times->weight))
      return pp_fail(error, PP_INVALID, "times of stage %d must be " PP_SECONDS ", got F %g, I %g, W %g", s, times->forward, times->input,
                     times->weight);
  }
  return PP_OK;
}

static void set_times(const pp_schedule_request *request, const pp_schedule *schedule, workshop *shop) {
  pp_spend(8 * (uint64_t)schedule->stages);
  static const pp_stage_times unit = { 1, 1, 1, 2 };
  int queues = shop->problem.queues, chunks = queues / 2;
  for (int r = 0; r < request->ranks; r++)
    for (int chunk = 0; chunk < chunks; chunk++) {
      int stage = pp_schedule_stages_of(schedule, r)[chunk];
      pp_stage_times *times = &shop->times[stage];
      *times = request->times ? request->times[stage] : unit;
      times->full = 0;   /* there is no B */
      shop->seconds[r * queues + chunk] = times->forward;
      shop->seconds[r * queues + queues - 1 - chunk] = times->input;
      shop->weight[r * chunks + chunk] = times->weight;
    }
}

static pp_status open_shop(const pp_schedule_request *request, const pp_schedule *schedule, workshop *shop, pp_error *error) {
  int queues = 2 * request->chunks;
  size_t ranks = (size_t)request->ranks, entries = ranks * (size_t)queues;
  shop->problem = (pp_greedy_problem){ .ranks = request->ranks, .microbatches = request->microbatches, .queues = queues,
                                       .limit = pp_schedule_limit(request), .released = request->released, .hop = request->p2p };
  shop->scratch = pp_allocate(pp_greedy_scratch(&shop->problem) + entries * (2 * sizeof(double) + sizeof(int64_t)) +
                              (size_t)schedule->stages * sizeof *shop->times);
  if (!shop->scratch) return pp_fail(error, PP_NO_MEMORY, "not enough memory to plan %zu actions", schedule->first[request->ranks]);
  shop->seconds = (double *)(void *)((char *)shop->scratch + pp_greedy_scratch(&shop->problem));
  shop->weight = shop->seconds + entries;
  shop->key = (int64_t *)(void *)(shop->weight + entries);
  shop->times = (pp_stage_times *)(void *)(shop->key + entries);
  shop->problem.seconds = shop->seconds;
  shop->problem.weight = shop->weight;
  set_times(request, schedule, shop);
  return PP_OK;
}

static bool run_variant(workshop *shop, const variant *kind, pp_schedule *out, pp_greedy_score *score) {
  pp_greedy_plan plan = kind->plan;
  plan.key = shop->key;
  kind->shape(&shop->problem, shop->key);
  return pp_greedy_run(&shop->problem, &plan, shop->scratch, out, score);
}

/* Least makespan, when each rank starts as soon as a microbatch reaches it and never waits, and least span: what no order beats. */
static pp_greedy_score bound_of(const workshop *shop) {
  const pp_greedy_problem *problem = &shop->problem;
  pp_greedy_score bound = { 0, 0 };
  double reached = 0;
  for (int r = 0; r < problem->ranks; r++) {
    double work = 0;
    for (int queue = 0; queue < problem->queues; queue++) work += problem->seconds[r * problem->queues + queue];
    for (int chunk = 0; chunk < problem->queues / 2; chunk++) work += problem->weight[r * problem->queues / 2 + chunk];
    work *= problem->microbatches;
    bound.makespan = fmax(bound.makespan, reached + work);
    bound.span = fmax(bound.span, work);
    reached += problem->seconds[r * problem->queues] + problem->hop;
  }
  return bound;
}

static bool is_better(const pp_greedy_score *a, const pp_greedy_score *b) {
  const double same = 1e-9;
  if (fabs(a->makespan - b->makespan) > same * b->makespan) return a->makespan < b->makespan;
  return a->span < b->span * (1 - same);
}

/* Writes the handcrafted order into *out and says what it takes. */
static pp_status run_handcrafted(const workshop *shop, int most, pp_workspace *workspace, pp_schedule *out, pp_greedy_score *score,
                                 pp_error *error) {
  pp_simulation result;
  const pp_times times = { .stage = shop->times, .p2p = shop->problem.hop };
  write_handcrafted(out, most);
  if (!pp_spend(2 * out->first[out->request.ranks])) return pp_stopped(error);
  pp_status status = pp_simulate_in(out, &times, false, workspace, &result, error);
  if (status == PP_OK) *score = (pp_greedy_score){ result.makespan, result.max_span };
  return status;
}

#define COUNT(array) (sizeof (array) / sizeof *(array))

static const variant *variants_of(const pp_schedule_request *request, size_t *count) {
  switch (request->kind) {
    case PP_V_HALF: *count = COUNT(half_variants); return half_variants;
    case PP_V_MIN: *count = COUNT(min_variants); return min_variants;
    default: *count = request->brief ? 1 : COUNT(auto_variants); return auto_variants;
  }
}

/* The best of the handcrafted orders, which is what *out then has, and how long it takes. *chosen is what write_handcrafted wants for it. */
static pp_status choose_handcrafted(const workshop *shop, pp_schedule *out, pp_greedy_score *least, int *chosen, pp_error *error) {
  const int limit = limit_of(&shop->problem), ranks = shop->problem.ranks;
  const int most[2] = { smaller(ranks, limit), smaller(2 * ranks - 1, limit) };
  pp_workspace workspace = { 0 };
  pp_greedy_score score = { INFINITY, INFINITY };
  pp_status status = run_handcrafted(shop, most[0], &workspace, out, least, error);
  *chosen = most[0];
  if (status == PP_OK && most[1] > most[0]) status = run_handcrafted(shop, most[1], &workspace, out, &score, error);
  if (status == PP_OK && most[1] > most[0]) {
    if (is_better(&score, least)) {
      *least = score;
      *chosen = most[1];
    } else {
      write_handcrafted(out, most[0]);
    }
  }
  pp_workspace_free(&workspace);
  return status;
}

static pp_status write_greedy(const pp_schedule_request *request, pp_schedule *out, pp_error *error) {
  size_t count;
  const variant *variants = variants_of(request, &count), *best = NULL;
  pp_greedy_score score = { INFINITY, INFINITY }, least = score;
  workshop shop;
  int handcrafted = 0;
  pp_status status = check_times(request, out, error);
  if (status == PP_OK) status = open_shop(request, out, &shop, error);
  if (status != PP_OK) return status;
  const pp_greedy_score bound = bound_of(&shop);
  if (pp_schedule_is_planned(request->kind)) status = choose_handcrafted(&shop, out, &least, &handcrafted, error);
  bool found = handcrafted > 0;
  /* A single variant is written as it runs, and over again in the rare case that it is not the best. */
  pp_schedule *direct = count == 1 ? out : NULL;
  for (size_t i = 0; status == PP_OK && i < count && (!found || is_better(&bound, &least)); i++)
    if (run_variant(&shop, &variants[i], direct, &score) && (!found || is_better(&score, &least))) {
      least = score;
      best = &variants[i];
      found = true;
    } else if (direct) {
      write_handcrafted(out, handcrafted);
    }
  if (best && !direct) run_variant(&shop, best, out, &score);
  pp_free(shop.scratch);
  if (status == PP_OK && !pp_spend(0)) return pp_stopped(error);   /* a variant that was stopped looks like one that got stuck */
  if (status == PP_OK && !found)
    return pp_fail(error, PP_INVALID, "no order of %s for %d microbatches on %d ranks was found", out->traits.name, request->microbatches,
                   request->ranks);
  return status;
}

static size_t count_greedy(const pp_schedule_request *request, int rank) {
  (void)rank;
  return 3 * (size_t)request->microbatches * (size_t)request->chunks;
}

const pp_constructor pp_construct_greedy = { .count = count_greedy, .write_all = write_greedy };

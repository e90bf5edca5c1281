/*
** schedule.c: what schedules exist, which requests are legal, where stages live, and properties of any program. The orders themselves are
** in schedules_*.c. See schedule.h.
*/
#include "core/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedules.h"

static const struct {
  pp_schedule_traits traits;
  const pp_constructor *constructor;
} kinds[PP_SCHEDULE_KINDS] = {
  /*                       name                family              placement               chunks chains copies split  overlaps */
  [PP_GPIPE]            = { { "gpipe",            "gpipe",            PP_PLACE_LOOP,          1, 1, 1, false, false }, &pp_construct_table },
  [PP_1F1B]             = { { "1f1b",             "1f1b",             PP_PLACE_LOOP,          1, 1, 1, false, false }, &pp_construct_table },
  [PP_INTERLEAVED_1F1B] = { { "interleaved_1f1b", "interleaved_1f1b", PP_PLACE_LOOP,          0, 1, 1, false, false }, &pp_construct_table },
  [PP_ZB_H1]            = { { "zb_h1",            "zero_bubble",      PP_PLACE_LOOP,          1, 1, 1, true,  false }, &pp_construct_table },
  [PP_ZB_H2]            = { { "zb_h2",            "zero_bubble",      PP_PLACE_LOOP,          1, 1, 1, true,  false }, &pp_construct_table },
  [PP_ZB_V]             = { { "zb_v",             "zero_bubble",      PP_PLACE_V,             2, 1, 1, true,  false }, &pp_construct_v },
  [PP_DUALPIPE]         = { { "dualpipe",         "dualpipe",         PP_PLACE_BIDIRECTIONAL, 1, 2, 2, true,  true },  &pp_construct_eight_step },
  [PP_DUALPIPEV]        = { { "dualpipev",        "dualpipev",        PP_PLACE_V,             2, 1, 1, true,  true },  &pp_construct_eight_step },
};

const pp_schedule_traits *pp_schedule_traits_of(pp_schedule_kind kind) {
  return &kinds[kind].traits;
}

int pp_schedule_kind_of(const char *name) {
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++)
    if (strcmp(kinds[kind].traits.name, name) == 0) return kind;
  return -1;
}

/* -- legality ------------------------------------------------------------------------------------------------------------------------- */

static pp_status check_ranges(const pp_schedule_request *request, pp_error *error) {
  if (request->kind < 0 || request->kind >= PP_SCHEDULE_KINDS)
    return pp_fail(error, PP_INVALID, "no schedule has number %d", (int)request->kind);
  if (request->ranks < 1) return pp_fail(error, PP_INVALID, "ranks must be at least 1, got %d", request->ranks);
  if (request->microbatches < 1) return pp_fail(error, PP_INVALID, "microbatches must be at least 1, got %d", request->microbatches);
  if (request->chunks < 1) return pp_fail(error, PP_INVALID, "virtual must be at least 1, got %d", request->chunks);
  if (request->group < 0) return pp_fail(error, PP_INVALID, "group must be at least 0, got %d", request->group);
  return PP_OK;
}

/* Whole numbers of microbatches that a kind takes: DualPipe halves them, interleaved wants full groups. */
static int64_t microbatch_step(const pp_schedule_request *request, const pp_schedule_traits *traits) {
  return request->kind == PP_INTERLEAVED_1F1B ? request->ranks : traits->chains;
}

/* A stage is a 16-bit number; a program larger than that many actions is a typing error rather than a schedule. */
static pp_status check_size(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  int64_t per_rank = (int64_t)request->chunks * traits->chains;
  int64_t per_microbatch = (int64_t)request->ranks * request->chunks * (traits->split_backward ? 3 : 2);
  if (per_rank > PP_MAX_STAGES)
    return pp_illegal(error, "engine.too_many_actions", "virtual", PP_MAX_STAGES, "a rank cannot have more than %d chunks, got %d",
                      PP_MAX_STAGES, request->chunks);
  if (request->ranks > PP_MAX_STAGES / per_rank)
    return pp_illegal(error, "engine.too_many_actions", "ranks", (double)(PP_MAX_STAGES / per_rank),
                      "%s on %d ranks has more than %d stages", traits->name, request->ranks, PP_MAX_STAGES);
  int least = traits->overlaps ? 2 : request->kind == PP_INTERLEAVED_1F1B ? 1 : 0;   /* microbatches per rank that it needs at all */
  if ((int64_t)least * request->ranks > PP_MAX_ACTIONS / per_microbatch) {
    int64_t most = (int64_t)sqrt((double)PP_MAX_ACTIONS * request->ranks / (double)(least * per_microbatch));
    return pp_illegal(error, "engine.too_many_actions", "ranks", (double)(most - most % traits->chains),
                      "%s on %d ranks, with the microbatches it needs, has more than %d actions", traits->name, request->ranks,
                      PP_MAX_ACTIONS);
  }
  if (request->microbatches > PP_MAX_ACTIONS / per_microbatch) {
    int64_t most = PP_MAX_ACTIONS / per_microbatch;
    return pp_illegal(error, "engine.too_many_actions", "microbatches", (double)(most - most % microbatch_step(request, traits)),
                      "%s of %d microbatches on %d ranks has more than %d actions", traits->name, request->microbatches, request->ranks,
                      PP_MAX_ACTIONS);
  }
  return PP_OK;
}

static pp_status check_chunks(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  if (traits->chunks == 0) {
    if (request->chunks >= 2) return PP_OK;
    return pp_illegal(error, "engine.chunks", "virtual", 2, "%s needs at least 2 chunks per rank, got %d", traits->name, request->chunks);
  }
  if (request->chunks == traits->chunks) return PP_OK;
  return pp_illegal(error, "engine.chunks", "virtual", traits->chunks, "%s has exactly %d chunk%s per rank%s, got %d", traits->name,
                    traits->chunks, traits->chunks == 1 ? "" : "s", traits->chains == 2 ? " and direction" : "", request->chunks);
}

/*
** Megatron-LM, get_schedule_table and model_parallel_config.py: P ≤ N ≤ M, and the last group either full or itself at least P, else a
** rank's chunk would run dry. PyTorch's Interleaved1F1B rule (M mod max(1, M div P) = 0) is this one with N = M div (M div P).
*/
static bool group_is_legal(int group, const pp_schedule_request *request) {
  int rest = request->microbatches % group;
  return group >= request->ranks && group <= request->microbatches && (rest == 0 || rest >= request->ranks);
}

static pp_status check_group(const pp_schedule_request *request, pp_error *error) {
  int ranks = request->ranks, microbatches = request->microbatches, rest = microbatches % ranks;
  if (microbatches < ranks)
    return pp_illegal(error, "engine.too_few_microbatches", "microbatches", ranks,
                      "interleaved_1f1b needs at least as many microbatches as ranks: %d < %d", microbatches, ranks);
  if (request->group == 0) {
    if (rest == 0) return PP_OK;
    return pp_illegal(error, "engine.microbatch_group", "microbatches", microbatches - (2 * rest > ranks ? rest - ranks : rest),
                      "interleaved_1f1b in groups of %d needs the last of %d microbatches' groups full or at least %d large, not %d",
                      ranks, microbatches, ranks, rest);
  }
  if (group_is_legal(request->group, request)) return PP_OK;
  int nearest = request->group;
  if (nearest < ranks) nearest = ranks;
  if (nearest > microbatches) nearest = microbatches;
  for (int distance = 0; distance <= microbatches; distance++) {   /* ends: a group of all microbatches is legal */
    if (nearest - distance >= ranks && group_is_legal(nearest - distance, request)) { nearest -= distance; break; }
    if (group_is_legal(nearest + distance, request)) { nearest += distance; break; }
  }
  return pp_illegal(error, "engine.microbatch_group", "group", nearest,
                    "a microbatch group N must have %d ranks ≤ N ≤ %d microbatches and leave no remainder or one of at least %d; N is %d",
                    ranks, microbatches, ranks, request->group);
}

/* deepseek-ai/DualPipe: the asserts at the top of step() and of DualPipe.__init__; DualPipeV asks for M ≥ 2P only, and takes odd M. */
static pp_status check_eight_step(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  int ranks = request->ranks, microbatches = request->microbatches;
  if (traits->chains == 2 && ranks % 2 != 0)
    return pp_illegal(error, "engine.odd_depth", "ranks", ranks == 1 ? 2 : ranks - 1, "%s needs an even number of ranks, got %d",
                      traits->name, ranks);
  if (microbatches < 2 * ranks)
    return pp_illegal(error, "engine.too_few_microbatches", "microbatches", 2 * ranks,
                      "%s needs at least 2 microbatches per rank: %d < %d", traits->name, microbatches, 2 * ranks);
  if (traits->chains == 2 && microbatches % 2 != 0)
    return pp_illegal(error, "engine.odd_microbatches", "microbatches", microbatches - 1,
                      "%s splits the microbatches in two halves, one a direction: %d is odd", traits->name, microbatches);
  return PP_OK;
}

/*
** GPipe, 1F1B, ZB-H1, ZB-H2 and ZB-V run for any M ≥ 1 on any P ≥ 1; what a framework asks beyond that is the framework's rule, not the
** schedule's. 1F1B below P microbatches: DeepSpeed and Megatron-LM run it, PyTorch's Schedule1F1B does not. ZB-V: PyTorch writes the order
** for max(2P − 1, M) microbatches and drops those that do not exist. ZB-H1, ZB-H2: warm-up and lag are cut at M; derived, and proved
** executable by the tests for all small P and M.
*/
pp_status pp_schedule_check(const pp_schedule_request *request, pp_error *error) {
  pp_status status = check_ranges(request, error);
  if (status != PP_OK) return status;
  const pp_schedule_traits *traits = pp_schedule_traits_of(request->kind);
  if ((status = check_chunks(request, traits, error)) != PP_OK) return status;
  if ((status = check_size(request, traits, error)) != PP_OK) return status;
  if (request->kind == PP_INTERLEAVED_1F1B) return check_group(request, error);
  if (request->group != 0)
    return pp_illegal(error, "engine.microbatch_group", "group", NAN, "only interleaved_1f1b has microbatch groups, not %s", traits->name);
  return traits->overlaps ? check_eight_step(request, traits, error) : PP_OK;
}

/* -- building ------------------------------------------------------------------------------------------------------------------------- */

static int rank_of_stage(const pp_schedule *schedule, pp_placement placement, int stage) {
  int ranks = schedule->request.ranks, within = stage % schedule->stages_per_chain;
  switch (placement) {
    case PP_PLACE_V: return within < ranks ? within : 2 * ranks - 1 - within;
    case PP_PLACE_BIDIRECTIONAL: return stage < schedule->stages_per_chain ? within : ranks - 1 - within;
    default: return within % ranks;
  }
}

/* A rank's slots are its stages in ascending order, whatever the placement. */
static void place_stages(pp_schedule *schedule, pp_placement placement) {
  int ranks = schedule->request.ranks;
  for (int stage = 0; stage < schedule->stages; stage++) {
    schedule->rank_of[stage] = rank_of_stage(schedule, placement, stage);
    schedule->slot_of[stage] = stage / ranks;
    schedule->stage_at[schedule->rank_of[stage] * schedule->chunks_per_rank + schedule->slot_of[stage]] = stage;
  }
}

size_t pp_schedule_actions(const pp_schedule_request *request) {
  size_t actions = 0;
  for (int rank = 0; rank < request->ranks; rank++) actions += kinds[request->kind].constructor->count(request, rank);
  return actions;
}

size_t pp_schedule_bytes(const pp_schedule_request *request) {
  size_t ranks = (size_t)request->ranks, stages = ranks * (size_t)request->chunks * (size_t)kinds[request->kind].traits.chains;
  return pp_schedule_actions(request) * sizeof(pp_action) + (ranks + 1) * sizeof(size_t) + 3 * stages * sizeof(int);
}

/* Sizes, and one block for everything: actions first, for they are the largest and want the start's alignment. */
static pp_status lay_out(const pp_schedule_request *request, pp_schedule *schedule, pp_error *error) {
  int chains = pp_schedule_traits_of(request->kind)->chains;
  *schedule = (pp_schedule){ .request = *request, .chains = chains, .chunks_per_rank = request->chunks * chains };
  schedule->stages_per_chain = request->ranks * request->chunks;
  schedule->stages = schedule->stages_per_chain * chains;
  schedule->microbatches_per_chain = request->microbatches / chains;

  size_t actions = pp_schedule_actions(request);
  char *memory = malloc(pp_schedule_bytes(request));
  if (!memory) {
    *schedule = (pp_schedule){ 0 };
    return pp_fail(error, PP_NO_MEMORY, "no memory for a schedule of %zu actions", actions);
  }
  schedule->action = (pp_action *)(void *)memory;
  schedule->first = (size_t *)(void *)(memory + actions * sizeof(pp_action));
  schedule->rank_of = (int *)(void *)(schedule->first + request->ranks + 1);
  schedule->slot_of = schedule->rank_of + schedule->stages;
  schedule->stage_at = schedule->slot_of + schedule->stages;
  return PP_OK;
}

pp_status pp_schedule_build(const pp_schedule_request *request, pp_schedule *out, pp_error *error) {
  pp_status status = pp_schedule_check(request, error);
  *out = (pp_schedule){ 0 };
  if (status == PP_OK) status = lay_out(request, out, error);
  if (status != PP_OK) return status;
  place_stages(out, pp_schedule_traits_of(request->kind)->placement);
  pp_writer writer = { .next = out->action };
  for (int rank = 0; rank < request->ranks; rank++) {
    out->first[rank] = (size_t)(writer.next - out->action);
    writer.stage_at = out->stage_at + rank * out->chunks_per_rank;
    kinds[request->kind].constructor->write(request, rank, &writer);
  }
  out->first[request->ranks] = (size_t)(writer.next - out->action);
  return PP_OK;
}

void pp_schedule_free(pp_schedule *schedule) {
  free(schedule->action);   /* the start of the one allocation */
  *schedule = (pp_schedule){ 0 };
}

/* -- properties of a program ---------------------------------------------------------------------------------------------------------- */

static const char letter[] = { 'F', 'B', 'I', 'W' };

int pp_action_print(char *buffer, size_t size, const pp_action *action) {
  if (action->kind == PP_FB)
    return snprintf(buffer, size, "(%uF%u;%uB%u)OVERLAP_F_B", action->stage, action->microbatch, action->stage_b, action->microbatch_b);
  return snprintf(buffer, size, "%u%c%u", action->stage, letter[action->kind], action->microbatch);
}

double pp_schedule_peak(const pp_schedule *schedule, int rank, const double *stored, const double *pending) {
  double held = 0, peak = 0;
  for (size_t i = schedule->first[rank]; i < schedule->first[rank + 1]; i++) {
    const pp_action *action = &schedule->action[i];
    switch (action->kind) {
      case PP_F: case PP_FB: held += stored[action->stage]; break;
      case PP_B: held -= stored[action->stage]; break;
      case PP_I: held += pending[action->stage] - stored[action->stage]; break;
      default: held -= pending[action->stage]; break;
    }
    if (held > peak) peak = held;
    if (action->kind == PP_FB) held -= stored[action->stage_b];
  }
  return peak;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_request.c: what schedules exist, and which requests of them are legal. See schedule.h.
*/
#include <math.h>
#include <string.h>

#include "core/meter.h"
#include "core/schedule.h"

/* The columns of schedule_kinds.h that are several values of pp_schedule_traits. */
#define ONE_CHUNK PP_PLACE_LOOP, 1, 1, 1
#define LOOPED PP_PLACE_LOOP, 0, 1, 1
#define V_SHAPE PP_PLACE_V, 2, 1, 1
#define BOTH_WAYS PP_PLACE_BIDIRECTIONAL, 1, 2, 2
#define WHOLE false
#define SPLIT true
#define NO_PAIRS false, false
#define PAIRS true, false
#define PAIRS_OF_KERNEL true, true
#define PERIODS true
#define NO_PERIODS false

#define TRAITS_OF_ROW(kind, name, title, family, shape, backward, pairs, grouping, least, holds, periods, stand_in, constructor, law) \
  [PP_##kind] = { name, title, family, shape, backward, pairs, grouping, least, holds, periods, PP_##stand_in },

static const pp_schedule_traits kinds[PP_SCHEDULE_KINDS] = { PP_SCHEDULES(TRAITS_OF_ROW) };

const pp_schedule_traits *pp_schedule_traits_of(pp_schedule_kind kind) {
  return &kinds[kind];
}

bool pp_schedule_hides_alltoall(const pp_schedule_traits *traits, bool kernel) {
  return traits->overlaps && (kernel || !traits->needs_kernel);
}

int pp_schedule_kind_of(const char *name) {
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++)
    if (strcmp(kinds[kind].name, name) == 0) return kind;
  return -1;
}

/* -- legality ------------------------------------------------------------------------------------------------------------------------- */

static pp_status check_ranges(const pp_schedule_request *request, pp_error *error) {
  if (request->kind < 0 || request->kind >= PP_SCHEDULE_KINDS)
    return pp_fail(error, PP_INVALID, "no schedule has number %d", (int)request->kind);
  if (request->ranks < 1) return pp_fail(error, PP_INVALID, "ranks must be at least 1, got %d", request->ranks);
  if (request->microbatches < 1) return pp_fail(error, PP_INVALID, "microbatches must be at least 1, got %d", request->microbatches);
  if (request->chunks < 1) return pp_fail(error, PP_INVALID, "virtual must be at least 1, got %d", request->chunks);
  if (request->group < PP_GROUP_ROUNDS) return pp_fail(error, PP_INVALID, "group must be at least 0, got %d", request->group);
  if (request->limit < 0) return pp_fail(error, PP_INVALID, "limit must be at least 0, got %d", request->limit);
  if (!(request->released >= 0 && request->released <= 1))
    return pp_fail(error, PP_INVALID, "released must be a share from 0 to 1, got %g", request->released);
  return PP_OK;
}

static bool by_rounds(const pp_schedule_request *request, const pp_schedule_traits *traits) {
  return request->group == PP_GROUP_ROUNDS || (request->group == 0 && traits->grouping == PP_GROUPS_BY_ROUNDS);
}

/* Microbatches per rank below which there is no such program: groups other than rounds hold P each. */
static int least_of(const pp_schedule_request *request, const pp_schedule_traits *traits) {
  return traits->grouping != PP_UNGROUPED && !by_rounds(request, traits) ? 1 : traits->least;
}

/* The most microbatches up to `most` that a kind takes: full groups of P, both halves of DualPipe. */
static int64_t most_legal(int64_t most, const pp_schedule_request *request, const pp_schedule_traits *traits) {
  return most - most % (traits->grouping != PP_UNGROUPED && most >= request->ranks ? request->ranks : traits->chains);
}

static int64_t actions_of_microbatch(const pp_schedule_request *request, const pp_schedule_traits *traits) {
  return (int64_t)request->ranks * request->chunks * (traits->split_backward ? 3 : 2);
}

int64_t pp_schedule_most_actions(const pp_schedule_request *request) {
  return request->microbatches * actions_of_microbatch(request, pp_schedule_traits_of(request->kind));
}

/* A stage is a 16-bit number; a program larger than that many actions is a typing error rather than a schedule. */
static pp_status check_size(const pp_schedule_request *request, const pp_schedule_traits *traits, int64_t actions, pp_error *error) {
  int64_t per_rank = (int64_t)request->chunks * traits->chains;
  if (per_rank > PP_MAX_STAGES)
    return pp_illegal(error, "engine.too_many_actions", "virtual", PP_MAX_STAGES, "a rank cannot have more than %d chunks, got %d",
                      PP_MAX_STAGES, request->chunks);
  if (request->ranks > PP_MAX_STAGES / per_rank)
    return pp_illegal(error, "engine.too_many_actions", "ranks", (double)(PP_MAX_STAGES / per_rank),
                      "%s on %d ranks has more than %d stages", traits->name, request->ranks, PP_MAX_STAGES);
  int64_t per_microbatch = actions_of_microbatch(request, traits);   /* of so many stages: before, it may be beyond 64 bits */
  int least = least_of(request, traits);
  if ((int64_t)least * request->ranks > actions / per_microbatch) {
    int64_t most = (int64_t)sqrt((double)actions * request->ranks / (double)(least * per_microbatch));
    return pp_illegal(error, "engine.too_many_actions", "ranks", (double)(most - most % traits->chains),
                      "%s on %d ranks, with the microbatches it needs, has more than %lld actions", traits->name, request->ranks,
                      (long long)actions);
  }
  if (request->microbatches > actions / per_microbatch) {
    int64_t most = most_legal(actions / per_microbatch, request, traits);
    return pp_illegal(error, "engine.too_many_actions", "microbatches", (double)most,
                      "%s of %d microbatches on %d ranks has more than %lld actions", traits->name, request->microbatches, request->ranks,
                      (long long)actions);
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

static pp_status check_depth(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  int ranks = request->ranks, least = least_of(request, traits);
  if (traits->chains == 2 && ranks % 2 != 0)
    return pp_illegal(error, "engine.odd_depth", "ranks", ranks == 1 ? 2 : ranks - 1, "%s needs an even number of ranks, got %d",
                      traits->name, ranks);
  if (request->microbatches < least * ranks)
    return pp_illegal(error, "engine.too_few_microbatches", "microbatches", least * ranks,
                      "%s needs at least %d microbatch%s per rank: %d < %d", traits->name, least, least == 1 ? "" : "es",
                      request->microbatches, least * ranks);
  if (request->microbatches % traits->chains != 0)
    return pp_illegal(error, "engine.odd_microbatches", "microbatches", request->microbatches - 1,
                      "%s splits the microbatches in two halves, one a direction: %d is odd", traits->name, request->microbatches);
  return PP_OK;
}

static int64_t rounds_of(int64_t microbatches, int ranks) { return microbatches < ranks ? 1 : microbatches / ranks; }

static bool rounds_are_legal(int64_t microbatches, int ranks) {
  return microbatches > 0 && microbatches % rounds_of(microbatches, ranks) == 0;
}

static pp_status check_rounds(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  int ranks = request->ranks;
  int64_t microbatches = request->microbatches, distance = 1;
  if (rounds_are_legal(microbatches, ranks)) return PP_OK;
  while (!rounds_are_legal(microbatches - distance, ranks) && !rounds_are_legal(microbatches + distance, ranks)) distance++;
  pp_spend(4 * (uint64_t)distance);
  int64_t nearest = microbatches + (rounds_are_legal(microbatches - distance, ranks) ? -distance : distance);
  return pp_illegal(error, "engine.microbatch_group", "microbatches", (double)nearest,
                    "%s on %d ranks runs %d microbatches in %d rounds, which must hold equally many", traits->name, ranks,
                    request->microbatches, (int)rounds_of(microbatches, ranks));
}

static bool group_is_legal(int group, const pp_schedule_request *request) {
  int rest = request->microbatches % group;
  return group >= request->ranks && group <= request->microbatches && (rest == 0 || rest >= request->ranks);
}

/* The nearest legal group; a group of all microbatches is one. */
static int nearest_group(const pp_schedule_request *request) {
  int nearest = request->group;
  if (nearest < request->ranks) nearest = request->ranks;
  if (nearest > request->microbatches) nearest = request->microbatches;
  for (int distance = 0;; distance++) {
    pp_spend(4);
    if (nearest - distance >= request->ranks && group_is_legal(nearest - distance, request)) return nearest - distance;
    if (group_is_legal(nearest + distance, request)) return nearest + distance;
  }
}

/*
** Megatron-LM, get_schedule_table and model_parallel_config.py: P ≤ N ≤ M, and the last group either full or itself at least P, else a
** rank's chunk would run dry. PyTorch, ScheduleInterleaved1F1B and ScheduleInterleavedZeroBubble: M mod rounds = 0, rounds = max(1, M div P);
** that is Megatron's rule with N = M div rounds, except that fewer microbatches than ranks pass as one round, and leave ranks idle.
*/
static pp_status check_group(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  int ranks = request->ranks, microbatches = request->microbatches, rest = microbatches % ranks;
  if (traits->grouping == PP_UNGROUPED) {
    if (request->group == 0) return PP_OK;
    return pp_illegal(error, "engine.microbatch_group", "group", NAN, "%s has no microbatch groups", traits->name);
  }
  if (by_rounds(request, traits)) return check_rounds(request, traits, error);
  if (request->group == 0) {
    if (rest == 0) return PP_OK;
    return pp_illegal(error, "engine.microbatch_group", "microbatches", (double)microbatches - (2 * rest > ranks ? rest - ranks : rest),
                      "%s in groups of %d needs the last of %d microbatches' groups full or at least %d large, not %d", traits->name,
                      ranks, microbatches, ranks, rest);
  }
  if (group_is_legal(request->group, request)) return PP_OK;
  return pp_illegal(error, "engine.microbatch_group", "group", nearest_group(request),
                    "a microbatch group N must have %d ranks ≤ N ≤ %d microbatches and leave no remainder or one of at least %d; N is %d",
                    ranks, microbatches, ranks, request->group);
}

int pp_schedule_group(const pp_schedule_request *request) {
  if (request->kind == PP_CUSTOM) return 0;
  const pp_schedule_traits *traits = pp_schedule_traits_of(request->kind);
  if (traits->grouping == PP_UNGROUPED) return 0;
  if (by_rounds(request, traits)) return request->microbatches / (int)rounds_of(request->microbatches, request->ranks);
  return request->group ? request->group : request->ranks;
}

/* Under any limit of at least one chunk there is an order: each microbatch alone. v_half and v_min are what they are by their own limit. */
static pp_status check_limit(const pp_schedule_request *request, const pp_schedule_traits *traits, pp_error *error) {
  if (pp_schedule_is_planned(request->kind) || request->limit == 0) return PP_OK;
  return pp_illegal(error, "engine.activation_limit", "limit", NAN, "only zb_auto takes a limit of chunks held, not %s", traits->name);
}

int pp_schedule_limit(const pp_schedule_request *request) {
  switch (request->kind) {
    case PP_ZB_AUTO: return request->limit > 0 ? request->limit : 2 * request->ranks;
    case PP_V_HALF: return 2 * ((request->ranks + 2) / 2);
    case PP_V_MIN: return 2 * ((request->ranks + 4) / 3);
    default: return 0;
  }
}

/*
** DualPipe and DualPipeV: deepseek-ai/DualPipe, the asserts at the top of step() and of DualPipe.__init__: M ≥ 2P, and for DualPipe even M
** on an even P. GPipe, looped BFS, 1F1B, ZB-H1, ZB-H2, ZB-V and those planned from times run for any M ≥ 1 on any P ≥ 1; what a
** framework asks beyond that is the framework's rule, not the schedule's. 1F1B below P microbatches: DeepSpeed and Megatron-LM run it, PyTorch's Schedule1F1B does not. ZB-V:
** PyTorch writes the order for max(2P − 1, M) microbatches and drops those that do not exist. ZB-H1, ZB-H2: warm-up and lag are cut at M;
** derived, and proved executable by the tests for all small P and M.
*/
pp_status pp_schedule_check_within(const pp_schedule_request *request, int64_t actions, pp_error *error) {
  pp_status status = check_ranges(request, error);
  if (status != PP_OK) return status;
  const pp_schedule_traits *traits = pp_schedule_traits_of(request->kind);
  if ((status = check_chunks(request, traits, error)) != PP_OK) return status;
  if ((status = check_size(request, traits, actions, error)) != PP_OK) return status;
  if ((status = check_depth(request, traits, error)) != PP_OK) return status;
  if ((status = check_limit(request, traits, error)) != PP_OK) return status;
  return check_group(request, traits, error);
}

pp_status pp_schedule_check(const pp_schedule_request *request, pp_error *error) {
  return pp_schedule_check_within(request, PP_MAX_BUILT, error);
}

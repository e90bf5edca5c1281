/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule.h: a pipeline schedule as a program: for each rank, the ordered actions it executes. Pure data: whether it can run is
** schedule_verify.h's subject, when it runs simulate.h's.
**
** Vocabulary (docs/schedules.md): F forward, I backward for input, W backward for weights, B = I + W in one action, FB a forward
** overlapped with a full backward of another chunk. A stage is a slice of the model in one pipeline direction. Bidirectional schedules
** (DualPipe) have two chains: chain 1 holds the same slices again, its stage s being number stages_per_chain + s. Microbatches are
** numbered from 0 within their chain.
*/
#ifndef PP_SCHEDULE_H
#define PP_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/schedule_kinds.h"

#define PP_KIND_OF_ROW(kind, ...) PP_##kind,
typedef enum {
  PP_SCHEDULES(PP_KIND_OF_ROW)
  PP_SCHEDULE_KINDS,
  PP_CUSTOM = PP_SCHEDULE_KINDS   /* a program from elsewhere (schedule_csv.h): cannot be requested, has no traits but its own */
} pp_schedule_kind;
#undef PP_KIND_OF_ROW

typedef enum { PP_F, PP_B, PP_I, PP_W, PP_FB } pp_action_kind;

/* Of single actions, by kind. */
#define PP_KIND_LETTERS "FBIW"

enum {
  PP_MAX_STAGES = 65535,        /* a stage is a 16-bit number */
  PP_MAX_ACTIONS = 1 << 27,     /* 2 GiB of actions */
  PP_MAX_BUILT = 1 << 24        /* of a program that is not read but built, from a few numbers: 256 MiB, and as much again to simulate it */
};

/* 16 bytes. For PP_FB stage/microbatch are the forward's, stage_b/microbatch_b the backward's; otherwise the latter are unused (0). */
typedef struct {
  uint16_t kind, stage, stage_b, reserved;
  uint32_t microbatch, microbatch_b;
} pp_action;

typedef enum { PP_PLACE_LOOP, PP_PLACE_V, PP_PLACE_BIDIRECTIONAL, PP_PLACE_CUSTOM } pp_placement;

/* How many microbatches go through a chunk before the next chunk's turn, when the request does not say: P (Megatron-LM), or M in `rounds`
** equal parts, rounds = max(1, M div P) (PyTorch). */
typedef enum { PP_UNGROUPED, PP_GROUPS_OF_RANKS, PP_GROUPS_BY_ROUNDS } pp_grouping;

enum { PP_GROUP_ROUNDS = -1 };   /* pp_schedule_request.group: PyTorch's rule, whatever the kind's own */

/*
** How the most activations that a rank ever holds follow from M. ALL: every microbatch's, for all forwards come first. RANKS: no more than P
** of them. GROUPS: those of some groups, and of what is left over. BOUNDED: of some multiple of P.
*/
typedef enum { PP_HOLDS_ALL, PP_HOLDS_RANKS, PP_HOLDS_GROUPS, PP_HOLDS_BOUNDED } pp_schedule_holds;

/* What a kind is, independent of its size: a row of schedule_kinds.h. */
typedef struct {
  const char *name;         /* "zb_h1" */
  const char *title;        /* "ZB-H1" */
  const char *family;       /* "zero_bubble"; the name itself where there is no family */
  pp_placement placement;
  int chunks;               /* stages per rank and direction it needs: 1, 2 (V), or 0: any number ≥ 2 */
  int chains;               /* 1, or 2 for bidirectional */
  int copies;               /* parameter copies on the devices: 2 for dualpipe */
  bool split_backward;      /* has I and W actions */
  bool overlaps;            /* has FB pairs */
  bool needs_kernel;        /* its pairs hide an all-to-all only if its kernel runs beside compute; those of others hide a plain one too */
  pp_grouping grouping;
  int least;                /* microbatches per rank below which there is no such program; 0: runs for any M */
  pp_schedule_holds holds;
  bool has_periods;         /* beyond warm-up its steps repeat (steady.h) */
  pp_schedule_kind stand_in;  /* whose program stands for it where its own, which follows from times, is not planned yet; else itself */
} pp_schedule_traits;

const pp_schedule_traits *pp_schedule_traits_of(pp_schedule_kind kind);

/* Does its program follow from the stages' times and a limit of chunks held, which are known late? */
static inline bool pp_schedule_is_planned(pp_schedule_kind kind) {
  return pp_schedule_traits_of(kind)->stand_in != kind;
}

/* Do its pairs hide the all-to-all, with or without such a kernel? */
bool pp_schedule_hides_alltoall(const pp_schedule_traits *traits, bool kernel);

/* The kind of that name, or -1. */
int pp_schedule_kind_of(const char *name);

typedef struct pp_stage_times pp_stage_times;   /* simulate.h */

typedef struct {
  pp_schedule_kind kind;
  int ranks;         /* P ≥ 1 */
  int microbatches;  /* M ≥ 1 per pipeline; for DualPipe over both directions */
  int chunks;        /* V; 1 where the kind has one, 2 for V placements, otherwise ≥ 2 */
  int group;         /* kinds with groups: microbatches in one, 0 for the kind's own rule, or PP_GROUP_ROUNDS */
  int limit;         /* zb_auto: most chunks a rank holds at once, from F to W; 0: 2P */
  double released;   /* zb_auto: share of a chunk's memory that its I frees already, 0 … 1; its W frees the rest */
  bool brief;        /* zb_auto: compare one plan with the handcrafted orders instead of a dozen, for whoever plans many schedules */
  const pp_stage_times *times;  /* [stages] zb_auto, v_half, v_min: what they are planned from; NULL: F = I = W = 1. Only for pp_schedule_build */
  double p2p;        /* the same: seconds a hop */
} pp_schedule_request;

typedef struct {
  pp_schedule_request request;
  pp_schedule_traits traits;    /* of its kind; of a program from elsewhere, its own */
  bool verified;                /* pp_schedule_verify accepts it: always, but of a PP_CUSTOM that is wrong. What is not, no simulation runs */
  int chains, chunks_per_rank;  /* chunks_per_rank = chunks × chains: most stages of a rank. A rank of a PP_CUSTOM may hold fewer, or none */
  int stages_per_chain;         /* P × V, but for a PP_CUSTOM */
  int stages;                   /* stages_per_chain × chains */
  int microbatches_per_chain;
  int *rank_of;                 /* [stages] */
  int *slot_of;                 /* [stages] which of its rank's stages it is, from 0 */
  int *first_slot;              /* [ranks + 1] rank r's stages are stage_at[first_slot[r]] … stage_at[first_slot[r + 1] − 1], */
  int *stage_at;                /* [stages] in ascending order */
  size_t *first;                /* [ranks + 1] rank r's actions are action[first[r]] … action[first[r + 1] − 1] */
  pp_action *action;
} pp_schedule;

/* How many stages a rank holds, and which. */
static inline int pp_schedule_stages_on(const pp_schedule *schedule, int rank) {
  return schedule->first_slot[rank + 1] - schedule->first_slot[rank];
}

static inline const int *pp_schedule_stages_of(const pp_schedule *schedule, int rank) {
  return schedule->stage_at + schedule->first_slot[rank];
}

/*
** Can this be built? Framework-neutral legality (sources beside each rule in schedule.c): PP_ILLEGAL with the rule's id
** ("engine.odd_depth", "engine.odd_microbatches", "engine.too_few_microbatches", "engine.chunks", "engine.microbatch_group",
** "engine.too_many_actions", "engine.activation_limit"), what has to change ("ranks", "microbatches", "virtual", "group", "limit") and its
** nearest legal value. O(1) when legal, else
** O(ranks), to find that value.
*/
pp_status pp_schedule_check(const pp_schedule_request *request, pp_error *error);
/* The same for another number of actions than PP_MAX_BUILT. INT64_MAX: whatever M, for who needs no program. */
pp_status pp_schedule_check_within(const pp_schedule_request *request, int64_t actions, pp_error *error);
/* No less than the actions of a legal request's program, for any M. O(1). */
int64_t pp_schedule_most_actions(const pp_schedule_request *request);

/* Microbatches in a group of a legal request, whichever way it asks for them; 0 for kinds without groups. */
int pp_schedule_group(const pp_schedule_request *request);
/* Most chunks that a rank of zb_auto, v_half or v_min may hold: what was asked for or the kind's own; 0 for kinds without a limit. */
int pp_schedule_limit(const pp_schedule_request *request);

/* Actions of the program of a request that pp_schedule_check accepts. O(ranks). */
size_t pp_schedule_actions(const pp_schedule_request *request);

/*
** Builds the program. O(actions) time, one allocation. zb_auto, v_half and v_min: O(actions × log P), at most 14 times, a brief zb_auto 3
** times. PP_INVALID also for times that are negative or not finite. On PP_OK the caller frees it.
*/
pp_status pp_schedule_build(const pp_schedule_request *request, pp_schedule *out, pp_error *error);
void pp_schedule_free(pp_schedule *schedule);

/*
** The action as PyTorch's pipelining writes it (torch/distributed/pipelining/schedules.py, _Action): "3F0", "(0F3;3B1)OVERLAP_F_B".
** Returns what snprintf returns; PP_ACTION_TEXT bytes hold any.
*/
enum { PP_ACTION_TEXT = 64 };
int pp_action_print(char *buffer, size_t size, const pp_action *action);

/*
** Largest sum of held activations on one rank while its actions run in order, which is a property of the program, not of time.
** stored[s] is held from stage s's F until its B, or from F to I; pending[s] from I to W. In an FB the F is stored before the
** B is freed. With stored = pending = 1 it is the peak in chunks freed at W; with pending = 0 freed at I. O(actions of the rank).
*/
double pp_schedule_peak(const pp_schedule *schedule, int rank, const double *stored, const double *pending);

#endif

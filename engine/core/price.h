/* SPDX-License-Identifier: Apache-2.0 */
/*
** price.h: what all candidates of one search share, and what the blocks of one layout cost: its schedules only differ in how they arrange
** them.
*/
#ifndef PP_PRICE_H
#define PP_PRICE_H

#include "core/candidate.h"
#include "core/communicators.h"
#include "core/cost.h"
#include "core/memory.h"
#include "core/profile.h"
#include "core/runtime.h"

/* How what runs a schedule lets layers be spread over its stages. Where a rule has no split for so many layers, they are balanced by time:
** whether that is legal is for others to say. */
typedef enum {
  PP_LAYERS_ANY,              /* any numbers: balanced by time */
  PP_LAYERS_EVEN,             /* as many on each stage */
  PP_LAYERS_REMAINDER_FIRST,  /* as even as can be, the first stages one more */
  PP_LAYERS_EVEN_ENDS,        /* even numbers on ranks, as many on all but the first and the last; a rank's chunks hold half of them each */
  PP_LAYER_RULES
} pp_layer_rule;

/* What all candidates of one search share. */
typedef struct {
  const pp_model *model;
  const pp_training *training;
  const pp_device *device;         /* hides_alltoall is ignored: each candidate has its own kernel; alltoall_latency: without a kernel */
  const pp_network *network;
  const pp_profile *profile;       /* what was measured, in place of what is computed; NULL: nothing */
  const double *rank_speed;        /* [speeds] speed of a rank's card over the mean, used at that many ranks; NULL: all alike */
  int speeds;
  const pp_runtime *runtime;       /* what runs the schedules; NULL: the ideal one. Schedules that it cannot run: see pp_evaluate_time */
  pp_hardware hardware;            /* contention and heat, where there is a runtime */
  const int *layers_per_stage;     /* as fixed, for candidates with that many stages; or NULL */
  int given_stages;
  pp_layer_rule layer_rule[PP_SCHEDULE_KINDS];
  double usable_bytes;             /* of a GPU: where stages balanced by time take more, layers move to emptier ranks */
  /* Which split of the layers is better, as fractions: of splits whose steps are apart by no more than split_tie the one that takes least
  ** memory; layers stand on early ranks where that wins more than split_gain; beyond split_overfull of usable_bytes no layers are moved. */
  double split_tie, split_gain, split_overfull;
  double overhead_bytes;           /* of every GPU: context, libraries, what the first communicator takes beside its own bytes */
  pp_communicators communicators;  /* what each one takes; all 0: they are in overhead_bytes */
  double hop_waiting;              /* share of a hand-over's transfer in which the rank that receives it waits, besides computing: 0 … 1 */
  double buffered_messages;        /* that a runtime allocates for each microbatch and stage, up front */
  double step_overhead_seconds;    /* of every step, beside the pipeline */
  double run_days_per_second;      /* days of the whole run for a second of its step; NAN: not known */
  double gpu_hours_per_day, price_per_gpu_hour;  /* of all GPUs; NAN: no price */
} pp_problem;

/* Costs of one layout's blocks: shared by all its schedules. */
typedef struct {
  double kernel_latency;               /* as given */
  pp_block_seconds seconds[2][PP_BLOCKS];  /* [is there a custom all-to-all kernel?] */
  double pair_share;                   /* of pp_device, as measured; else 0 */
  double hop;                          /* seconds that a hand-over between ranks is on its way while both may compute */
  double waiting;                      /* seconds of each in which the rank that receives it does nothing else */
  pp_block_bytes bytes[2][PP_BLOCKS];  /* [copies − 1] */
  pp_gpu_parameters parameters[PP_BLOCKS];
} pp_layout_costs;

/* Do blocks take as long in both layouts? Depth and replicas alone do not matter to a block, but for whether its gradients are sharded. */
bool pp_price_same_seconds(const pp_training *training, const pp_layout *one, const pp_layout *other);

/* kernel_latency: the alltoall_latency of the layout's custom kernel, if it has one. alike: costs, as computed here for the same problem, of a
** layout whose blocks take as long, or NULL: they are not computed again, but where a profile says what they take. PP_INVALID when the shape or recipe cannot be priced. */
pp_status pp_price_layout(const pp_problem *problem, const pp_layout *layout, double kernel_latency, const pp_layout_costs *alike,
                          pp_layout_costs *out, pp_error *error);
/* Prices of the same layout once more, with another kernel_latency. */
pp_status pp_price_kernel(const pp_problem *problem, const pp_layout *layout, double kernel_latency, const pp_layout_costs *alike,
                          pp_layout_costs *out, pp_error *error);

/*
** A candidate of a problem, at the prices of its layout: what stages.h, evaluate_*.h and fit.h are asked about. kernel: does it have a custom
** all-to-all kernel? That makes the all-to-all itself faster and lets it run beside compute. Nothing here is owned.
*/
typedef struct {
  const pp_problem *problem;
  const pp_candidate *candidate;
  const pp_layout_costs *costs;
  bool kernel;
} pp_priced;

/* All-to-all seconds / seconds of the layout's work, before any overlap. 0 without experts. Derived: both sums run over all blocks of the
** model once per microbatch, so M and P cancel. */
double pp_price_alltoall_fraction(const pp_model *model, const pp_layout_costs *costs, bool kernel);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** split.h: how many layers each stage gets, so that nobody is the last to finish: embedding, head and MTP weigh as much time as they take.
** Every stage keeps at least one layer, but the first and the last one, which have something else to do, may keep none where `empty_ends`
** says so. Llama-3 405B was trained with an embedding alone on its first stage and a head alone on its last (report §3.3.2), Megatron-Core
** writes such stages "E|…|L" (pipeline_parallel_layer_layout.py).
*/
#ifndef PP_SPLIT_H
#define PP_SPLIT_H

#include <stdbool.h>

#include "core/layout.h"

/* Seconds of one block for one microbatch, forward and backward. */
typedef struct {
  double seconds[PP_BLOCKS];
} pp_block_weights;

/* How a rank's stages share its layers: as equal in time as may be, or in number, which in a V or with two chains holds less memory. */
typedef enum { PP_SHARE_TIME, PP_SHARE_LAYERS } pp_split_share;

typedef struct {
  int stages;
  const int *group_of;   /* [stages] < groups: which stages one rank executes (in bidirectional schedules: a pair of ranks); none empty */
  int groups;
  pp_split_share share;
  const int *most;       /* [groups] most layers of a group, which may cost time but saves memory; NULL: any number */
  bool empty_ends;
  bool outer;            /* of groups with as little to do the first gets the layer, not the last */
} pp_split;

/*
** layers[stages], adding up to the model's. Keeps the heaviest group as light as it can by moving single layers: within one layer of the
** least possible maximum, derived: layers of one kind cost the same and no group ends more than one layer above the mean unless its ends
** alone do. Of equals the last group (the first, where `outer`) and the last stage get the layer. Needs layers ≥ stages, and Σ most ≥ layers.
** O(layers × (stages + moves)), at most 64 moves.
*/
void pp_split_layers(const pp_model *model, const pp_block_weights *weights, const pp_split *split, int *layers);

/*
** A split whose heaviest stage is at most the fraction `tie` heavier than in layers[stages], each stage its own group: as many layers as that leaves room
** for on the first stage, then on the second, and so on; the last ones hold what is left. Where several stages may be the heaviest without
** costing the steady state anything, light stages at the end let the pipeline drain sooner: 9, 9, 9, 5 rather than 8, 8, 9, 7.
** O(layers × stages).
*/
void pp_split_forward(const pp_model *model, const pp_block_weights *weights, int stages, bool empty_ends, double tie, int *layers);

/*
** As pp_split_layers for an interleaved schedule, whose ranks go through their chunks together, in phases: all wait for the heaviest stage
** of chunk 0, then for that of chunk 1, and so on, so that a round of microbatches takes the sum over chunks of the heaviest stage, which this keeps
** least. Where the last stage has a head of three layers' time the other stages of the last chunk may as well hold three layers, and those of
** earlier chunks fewer. layers[ranks × chunks]. Balances layers / ranks times.
*/
void pp_split_phases(const pp_model *model, const pp_block_weights *weights, int ranks, int chunks, bool empty_ends, int *layers);

#endif

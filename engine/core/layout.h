/* SPDX-License-Identifier: Apache-2.0 */
/*
** layout.h: how a model is spread over GPUs, and which blocks each stage of its pipeline holds.
*/
#ifndef PP_LAYOUT_H
#define PP_LAYOUT_H

#include "core/error.h"
#include "core/model.h"

/* Degrees, all ≥ 1. GPUs = tensor × context × data × pipeline; experts lie over expert × expert_tensor GPUs of a stage, carved out of
** tensor × context × data, so expert × expert_tensor × pipeline divides GPUs. `chunks` is V: stages per rank and pipeline direction. */
typedef struct {
  int tensor, context, expert, expert_tensor, data, pipeline, chunks;
} pp_layout;

/* GPUs that hold the same experts of a stage: what expert gradients are reduced over and expert optimizer state is sharded over. */
int pp_layout_expert_data(const pp_layout *layout);

/* How many blocks of each kind one stage holds. */
typedef struct {
  int count[PP_BLOCKS];
} pp_stage;

/* Its decoder layers, of all kinds. */
int pp_stage_layers(const pp_stage *stage);

/*
** Stages that may hold no layer: the first, which has the embedding, and the last, which has head and loss. Qwen3-235B's 94 layers ran on
** 32 ranks × 3 chunks (yanring/Megatron-MoE-ModelZoo best_practice/qwen3): Megatron-LM counts embedding and loss as layers there.
*/
enum { PP_EMPTY_ENDS = 2 };

/* Layers of a stage where they are spread as evenly as possible. 0 ≤ stage < stages. */
int pp_layout_even(int layers, int stages, int stage);

/*
** Splits the model's layers over `stages` stages (stage 0 has the embedding, the last one head and MTP). With layers_per_stage (`stages`
** entries that sum to model->layers) as given; with NULL as evenly as possible, stages that get one layer less chosen from the ends
** inwards: last, first, last but one, second, … since the ends carry embedding, head and MTP: they may go without a layer.
** `out` has room for `stages`. PP_ILLEGAL "engine.layers_below_stages" when stages between the ends would be empty.
*/
pp_status pp_layout_stages(const pp_model *model, int stages, const int *layers_per_stage, pp_stage *out, pp_error *error);

#endif

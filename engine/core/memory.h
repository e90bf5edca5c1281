/* SPDX-License-Identifier: Apache-2.0 */
/*
** memory.h: bytes on each rank of a pipeline, term by term:
**   parameters   weights in three buckets: split over TP, the same on all TP ranks (norms, router, latents), routed experts over EP ×
**                expert TP; a rank that holds a slice of both chains of a bidirectional schedule holds both. Tied output weights once where both
**                ends share a rank (V placements, DualPipe), else on both; MTP needs the embedding too (Megatron-LM)
**   gradients    accumulated, of the same weights
**   optimizer    master weights and moments, sharded over the GPUs that hold the same weights: DP × CP, for experts the expert-data group
**                (Megatron-LM distrib_optimizer; its #4050), with two copies over the mirror pair too; less what is offloaded
**   activations  stored from F to I (or B) and pending from I to W, at the fullest point of the rank's actions as the schedule orders them;
**                the head's logits on the stage that holds it. Tensor by tensor in memory.c (Korthikanti et al. 2205.05198, Table 2)
**   transient    the largest temporary of one action, and gradients of weights before they are accumulated
**   overhead     context, workspaces, communicators: the caller's assumption
** Not modelled: pools of CUDA graphs, user buffers of overlapped communication, receive buffers, weights that FSDP gathers, and an MTP module
** on another stage than the head (Megatron-LM's "m|L"; "mL" alone on the last stage is a layers_per_stage that ends with 0).
** tests/oracles/table.lua compares with published and measured bytes.
*/
#ifndef PP_MEMORY_H
#define PP_MEMORY_H

#include "core/layout.h"
#include "core/schedule.h"
#include "core/training.h"

/* Parameters of one block on one GPU. */
typedef struct {
  double dense;           /* all but routed experts, with a tower that trains; tied output weights are left out */
  double expert;          /* routed experts */
  double embedding_copy;  /* what it needs beside them where its rank holds no embedding: tied output weights, MTP's input embedding */
} pp_gpu_parameters;

/* Degrees ≥ 1. */
void pp_memory_parameters(const pp_model *model, const pp_layout *layout, pp_gpu_parameters out[PP_BLOCKS]);

/*
** Weights with what training keeps beside them, on one GPU; `host` is what of it lies in host memory: with an offloaded optimizer the
** master weights, the moments and a copy of the gradients, for the host's update reads them there (Megatron-LM
** core/optimizer/cpu_offloading/hybrid_optimizer.py).
*/
typedef struct {
  double parameters, gradients, optimizer, host;
  double update;   /* a temporary of an update that is not fused, when no activations are there */
} pp_state_bytes;

/*
** Weights by what has weights of the same shapes. A gradient that is not added in place lies in a temporary before; Transformer Engine
** keeps one for each shape, for all layers and for the whole run (module/base.py, get_dummy_wgrad).
*/
typedef enum { PP_SHAPES_ATTENTION, PP_SHAPES_MIXER, PP_SHAPES_MLP, PP_SHAPES_EXPERTS, PP_SHAPES_HEAD, PP_SHAPES_MTP, PP_SHAPES } pp_shapes;

/* Bytes of one block on one GPU. Static terms are there always; activations per microbatch in flight. */
typedef struct {
  pp_state_bytes state;
  double weight_gradients[PP_SHAPES];  /* temporaries that it needs, once however many blocks of the rank need them */
  double stored;     /* activations kept from F to I (or B) */
  double pending;    /* kept from I to W: the inputs of the linear layers, the output gradients, and what recompute brought back */
  double transient;  /* the largest temporary of the block's F, B, I or W, beside stored and pending: recomputed layer, fp32 logits */
  pp_state_bytes embedding_copy;  /* of pp_gpu_parameters.embedding_copy */
  double tower;      /* of state: what a tower of images takes of the GPU */
} pp_block_bytes;

/*
** copies: 1, or 2 for DualPipe (the optimizer state is then sharded over the mirror pair too; a rank's two copies are two stages of its
** schedule, so what is returned here is for one of them). Sources of each term stand in memory.c. PP_INVALID names the field.
*/
pp_status pp_memory_blocks(const pp_model *model, const pp_layout *layout, const pp_training *training, int copies,
                           pp_block_bytes out[PP_BLOCKS], pp_error *error);

/* Bytes on one rank, term by term; total is their sum. */
typedef struct {
  double parameters, gradients, optimizer;
  double activations;  /* peak of stored + pending over the rank's actions */
  double transient;    /* largest of its blocks, and temporaries of weight gradients */
  double overhead;     /* as given */
  double total;
  double host;         /* in host memory, for this GPU; no part of total */
  double tower;        /* of parameters, gradients and optimizer: what a tower of images takes */
} pp_rank_bytes;

/* What a stage needs on a GPU: the sums and maxima of its blocks. */
typedef struct {
  pp_state_bytes state;
  pp_state_bytes embedding_copy;  /* beside it on a rank without an embedding */
  bool has_embedding;
  double tower;
  double transient, weight_gradients[PP_SHAPES];
  double stored, pending;         /* per microbatch in flight */
} pp_stage_memory;

/* out[count], for all that follows. O(count). */
void pp_memory_stages(const pp_stage *stages, int count, const pp_block_bytes blocks[PP_BLOCKS], pp_stage_memory *out);

/* Of a rank that holds `copies` of its stages: what all but one of them take. The optimizer's state is spread over the copies, so one would have
** as much. */
double pp_memory_further_copies(const pp_rank_bytes *rank, int copies);

/*
** stages[stages_per_chain]: what each slice of the model needs; chain 1's stages need the same. scratch has room for
** 2 × schedule->stages doubles. O(actions of the rank).
*/
void pp_memory_rank(const pp_schedule *schedule, int rank, const pp_stage_memory *stages, double overhead, double *scratch,
                    pp_rank_bytes *out);

/* The most microbatches that a rank ever holds of all its slots at once: stored, pending, and of both together. */
typedef struct {
  uint32_t stored, pending, both;
} pp_most_held;

/*
** The same without walking the rank's actions: no less than it takes, for it is as if all its slots were fullest at once, or as if all it ever
** holds were of its largest slot. stored[chunks_per_rank], pending[chunks_per_rank]: the most microbatches that each slot ever holds. O(slots).
*/
void pp_memory_rank_bound(const pp_schedule *schedule, int rank, const pp_stage_memory *stages, const uint32_t *stored,
                          const uint32_t *pending, const pp_most_held *held, double overhead, pp_rank_bytes *out);

/* A rank with that one stage and so many bytes of activations: those of one microbatch without a pipeline (P = 1). */
void pp_memory_holding(const pp_stage_memory *stage, double activations, double overhead, pp_rank_bytes *out);

#endif

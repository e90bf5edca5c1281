/* SPDX-License-Identifier: Apache-2.0 */
/*
** work.h: a block counted as work, before it is timed: FLOPs by the kernel that does them, bytes by who moves them. cost.c times it and says
** where the formulas come from.
*/
#ifndef PP_WORK_H
#define PP_WORK_H

#include "core/cost.h"
#include "core/kernels.h"

/* Forward work of one block for one microbatch on one rank. */
typedef struct {
  int products;         /* at the training precision */
  pp_product_shape product[PP_MOST_PRODUCTS];  /* without peak, efficiency and bytes */
  double kept;          /* FLOPs of linear layers kept in bf16: head, router */
  double expert;        /* FLOPs of grouped products */
  double attention;     /* FLOPs of core attention, bf16 */
  double length;        /* tokens within which that stays */
  double recurrence;    /* FLOPs of a mixer with a state in place of attention, bf16 */
  bool layer;           /* a decoder layer, not an end */
  double traffic;       /* bytes of element-wise kernels */
  double traffic_back;  /* … of I: gradients beside values, twice as many in a layer */
  double kept_weights, expert_weights;  /* parameters on this rank */
  double tensor_seconds;   /* exposed TP collectives, one way */
  double context_bytes;    /* keys and values that this rank passes on in a ring step */
  int routings;            /* MoE layers: a dispatch and a combine each */
} pp_work;

/* What recompute does again at the start of I. */
typedef struct {
  double linear, kept, traffic, tensor_seconds;  /* as in pp_work */
  bool all;       /* the whole forward */
  bool experts;   /* grouped products, dispatch and combine */
} pp_again;

typedef struct {
  const pp_model *model;
  const pp_layout *layout;
  const pp_training *training;
  const pp_device *device;
  const pp_network *network;
  double tokens;            /* of a microbatch on one rank, before TP */
  double tensor, sequence;  /* divisors: of what TP splits, of what sequence parallelism splits */
} pp_scene;

/* Matrices before an activation: gate and up, or up alone. */
double pp_work_gate_factor(const pp_model *model);
/* Seconds of TP's collectives around attention or a feed-forward, one way; bytes that an unfused softmax moves for a token. */
double pp_work_tensor_region(const pp_scene *at);
double pp_work_score_traffic(const pp_scene *at);
/* Of a decoder layer of the scene's model; of an MTP module of `whole`, whose layer is the scene's, without its head. */
pp_work pp_work_of_layer(const pp_scene *at, const pp_block_flops *flops, const pp_block_parameters *parameters, bool moe);
pp_work pp_work_of_mtp(const pp_scene *at, const pp_model *whole, const pp_block_flops *flops, const pp_block_parameters *parameters, bool moe);
pp_work pp_work_of_head(const pp_scene *at);
pp_again pp_work_again(const pp_scene *at, const pp_block_flops *flops, bool moe);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** cost.h: F, I, W, B and F&B seconds of a stage. The one owner of overlap.
*/
#ifndef PP_COST_H
#define PP_COST_H

#include "core/comm.h"
#include "core/device.h"
#include "core/layout.h"
#include "core/training.h"

/*
** Seconds of one block for one microbatch on one rank. Roofline: products at their efficiency or at the speed their weights are read,
** whichever is slower, element-wise kernels at memory speed. Includes exposed TP and CP traffic; all-to-all is apart. PP_INVALID names
** the field.
*/
typedef struct {
  double forward, input, weight;   /* input includes recompute */
  double full;                     /* B; input + weight, but not where it was measured */
  double alltoall_forward;         /* dispatch + combine */
  double alltoall_backward;
  double tensor;                   /* TP collectives, of experts too: part of forward, input and weight together, all exposed */
  double context;                  /* the ring of keys and values, forward and backward; attention hides most of it */
  double context_exposed;          /* the rest of it: part of forward and input */
  double host_forward;             /* what the card waits for its host: part of forward, and of input and weight */
  double host_backward;
  double launch_forward, launch_backward;  /* what launching F and B takes the host, whether the card waits for it or not */
  double lost_forward, lost_backward;      /* of host_…: what the host's waiting for rows of experts costs */
} pp_block_seconds;

/* What the seconds of F, I or W of a block are made of; they sum to them. */
typedef struct {
  double products, grouped;   /* of dense weights, and of experts */
  double attention;           /* its core */
  double moved;               /* element-wise kernels */
  double accumulated;         /* gradients read and written, in W */
  double tensor, ring;        /* TP collectives; what attention does not hide of CP's ring */
  double latency;             /* of a layer, and of routing */
  double recompute;           /* what I computes again */
  double host;                /* what the card waits for its host */
} pp_pass_terms;

enum { PP_PASSES = 3 };       /* F, I, W */

/* terms: NULL where nobody asks. */
pp_status pp_cost_blocks(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_device *device,
                         const pp_network *network, pp_block_seconds out[PP_BLOCKS], pp_pass_terms terms[PP_BLOCKS][PP_PASSES], pp_error *error);

/* Seconds of a whole stage: the sum of its blocks. forward, input, full as executed alone, all-to-all exposed. */
typedef struct {
  double forward, input, weight, full;
  double alltoall_forward, alltoall_backward;  /* their share of forward, and of input and full */
  double tensor, context, context_exposed;     /* as in pp_block_seconds, like the next */
  double host_forward, host_backward, launch_forward, launch_backward, lost_forward, lost_backward;
} pp_stage_seconds;

void pp_cost_stage(const pp_stage *stage, const pp_block_seconds blocks[PP_BLOCKS], pp_stage_seconds *out);

/*
** F&B = clamp(max(compute, all-to-all) + overhead, max(F, B), F + B): compute is what both do beside communication, all-to-all what both
** send. With hidden_share: F + B less that share of the shorter of compute and all-to-all. Either way one host launches both: no less than
** that, and what its waiting for rows of experts costs, but for the share of it that is hidden. So no slower network makes a pair faster,
** beyond that share. Without anything that hides it: F + B. Where its share of F + B was measured: that, and no less than the longer of both
** alone.
*/
double pp_cost_pair(const pp_device *device, const pp_stage_seconds *forward, const pp_stage_seconds *backward);

/*
** What a step takes beside the pipeline: gradient reduce-scatter and parameter all-gather of the heaviest rank, the optimizer's memory
** traffic, and DualPipe's mirror sum. Seconds, none of it hidden. An offloaded optimizer sends gradients to the host and weights back, and
** is bound by the host's memory between them. Parameters are those resident on the rank: after TP and EP, all its
** stages, both copies.
*/
typedef struct {
  double gradient_sync, parameter_sync, optimizer, mirror;
  double replicas;   /* all-reduce of gradients between the groups that each shard a whole state */
  double sharding;   /* what gathers and reductions of sharded parameters and gradients add to all microbatches: see sharding.h */
} pp_step_seconds;

void pp_cost_step(const pp_layout *layout, const pp_training *training, const pp_device *device, const pp_network *network,
                  double dense_parameters, double expert_parameters, int copies, pp_step_seconds *out);

/* Tokens of a microbatch on one rank, before TP. */
double pp_cost_tokens(const pp_layout *layout, const pp_training *training);

/* One microbatch's boundary activations (tokens × hidden × 2 bytes over TP with sequence parallel), and seconds to the next stage. */
double pp_cost_hop_bytes(const pp_model *model, const pp_layout *layout, const pp_training *training);
double pp_cost_hop(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_network *network);

/* What of pp_cost_hop grows with the bytes: 0 without a pipeline. */
double pp_cost_transfer(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_network *network);

#endif

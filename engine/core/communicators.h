/* SPDX-License-Identifier: Apache-2.0 */
/*
** communicators.h: GPU memory of the communicators that a process makes when it first uses a process group.
** Sizes are NCCL's with peers on NVLink, in one node (tests/data/gpu/README.md); what a communicator takes for peers in other nodes beyond
** that is not known, and counted as nothing.
*/
#ifndef PP_COMMUNICATORS_H
#define PP_COMMUNICATORS_H

#include <stdbool.h>

#include "core/layout.h"
#include "core/model.h"
#include "core/training.h"

/* Process groups, after Megatron-LM's core/parallel_state.py. */
typedef enum {
  PP_GROUP_WORLD,        /* all ranks */
  PP_GROUP_TENSOR,
  PP_GROUP_CONTEXT,      /* a ring of messages, where CP is over 1 */
  PP_GROUP_DATA,         /* CP's ranks among them */
  PP_GROUP_MODEL,        /* TP × P: norms of gradients, agreement */
  PP_GROUP_OPTIMIZER,    /* all ranks among which the optimizer's state is sharded, where it is: norms of gradients */
  PP_GROUP_PIPELINE,     /* messages, where P is over 1 */
  PP_GROUP_PAIRS,        /* of two neighbours each: messages of interleaved stages, beside or instead of the pipeline's */
  PP_GROUP_EMBEDDING,    /* first and last stage, of tied embeddings */
  PP_GROUP_DISPATCH,     /* EP × expert TP, where EP is over 1: how many tokens go where */
  PP_GROUP_EXPERT,       /* all-to-all, where EP is over 1 */
  PP_GROUP_EXPERT_DATA,  /* ranks with the same experts, where EP is over 1 */
  PP_GROUPS
} pp_group;

/* Bytes ≥ 0. */
typedef struct {
  bool has[PP_GROUPS];   /* those that the framework communicates in */
  double one, several;   /* a communicator of one rank, and one of several, once a collective ran in it */
  double messages, peer; /* one once messages ran in it, and for each rank of the node that they were exchanged with */
  int node;              /* GPUs of a node; 0: all are in one */
} pp_communicators;

/* What every rank of a layout has: no peer in the node, no tied embedding. */
enum { PP_EVERY_RANK = -1 };

/* Bytes of one pipeline rank's communicators; PP_EVERY_RANK: no more than those of any. interleaved: do stages follow each other round the
** ranks? GPUs are numbered as by Megatron-LM: TP, CP, EP, DP, pipeline. O(1). */
double pp_communicators_bytes(const pp_communicators *of, const pp_model *model, const pp_training *training, const pp_layout *layout,
                              bool interleaved, int rank);

#endif

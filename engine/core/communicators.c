/* SPDX-License-Identifier: Apache-2.0 */
/*
** communicators.c: bytes of a rank's communicators. See communicators.h.
*/
#include "core/communicators.h"

#include <stdint.h>

static int least(int64_t a, int64_t b) { return (int)(a < b ? a : b); }

/* Other members of a group, `stride` GPUs apart, that stand in the node of its first. */
static int others_in_node(const pp_communicators *of, int size, int64_t stride) {
  if (of->node == 0) return size - 1;
  return least(size, of->node > stride ? of->node / stride : 1) - 1;
}

static bool in_one_node(const pp_communicators *of, int64_t stage, int a, int b) {
  return of->node == 0 || a * stage / of->node == b * stage / of->node;
}

/* Neighbours of a pipeline rank that are in its node. */
static int neighbours(const pp_communicators *of, const pp_layout *layout, bool ring, int rank) {
  const int last = layout->pipeline - 1;
  const int64_t stage = (int64_t)layout->tensor * layout->context * layout->data;
  const int before = rank > 0 ? rank - 1 : ring ? last : -1, after = rank < last ? rank + 1 : ring ? 0 : -1;
  int count = 0;
  if (rank == PP_EVERY_RANK) return 0;
  if (before >= 0) count += in_one_node(of, stage, before, rank);
  if (after >= 0 && after != before) count += in_one_node(of, stage, after, rank);
  return count;
}

/* Ranks of a group whose communicator serves collectives; 0: the layout does not use it. */
static int64_t members(pp_group group, const pp_model *model, const pp_training *training, const pp_layout *layout, int rank) {
  const int64_t data = (int64_t)layout->context * layout->data, world = layout->tensor * data * layout->pipeline;
  const bool ends = rank == 0 || rank == layout->pipeline - 1;
  switch (group) {
    case PP_GROUP_WORLD: return world;
    case PP_GROUP_TENSOR: return layout->tensor;
    case PP_GROUP_DATA: return data;
    case PP_GROUP_MODEL: return (int64_t)layout->tensor * layout->pipeline;
    case PP_GROUP_OPTIMIZER: return training->shard_optimizer ? world : 0;
    case PP_GROUP_EMBEDDING: return model->tied_embeddings && layout->pipeline > 1 && ends ? 2 : 0;
    case PP_GROUP_DISPATCH: return layout->expert > 1 ? (int64_t)layout->expert * layout->expert_tensor : 0;
    case PP_GROUP_EXPERT_DATA: return layout->expert > 1 ? pp_layout_expert_data(layout) : 0;
    default: return 0;
  }
}

/* One or two communicators for messages between stages. */
static double pipeline_bytes(const pp_communicators *of, const pp_layout *layout, bool interleaved, int rank) {
  const bool pairs = interleaved && of->has[PP_GROUP_PAIRS];
  if (layout->pipeline == 1 || !(pairs || of->has[PP_GROUP_PIPELINE])) return 0;
  return (pairs ? 2 : 1) * of->messages + neighbours(of, layout, interleaved, rank) * of->peer;
}

double pp_communicators_bytes(const pp_communicators *of, const pp_model *model, const pp_training *training, const pp_layout *layout,
                              bool interleaved, int rank) {
  double bytes = pipeline_bytes(of, layout, interleaved, rank);
  for (int group = 0; group < PP_GROUPS; group++) {
    const int64_t size = of->has[group] ? members((pp_group)group, model, training, layout, rank) : 0;
    if (size > 0) bytes += size > 1 ? of->several : of->one;
  }
  if (of->has[PP_GROUP_CONTEXT] && layout->context > 1)
    bytes += of->messages + least(2, others_in_node(of, layout->context, layout->tensor)) * of->peer;
  if (of->has[PP_GROUP_EXPERT] && layout->expert > 1)
    bytes += of->messages + others_in_node(of, layout->expert, layout->expert_tensor) * of->peer;
  return bytes;
}

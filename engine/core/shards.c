/* SPDX-License-Identifier: Apache-2.0 */
/*
** shards.c: see shards.h.
*/
#include "core/shards.h"

#include <math.h>

bool pp_shards_parameters(const pp_layout *layout, const pp_training *training) {
  return training->shard_parameters && (training->reshard || layout->pipeline == 1);
}

/* A pipeline adds up gradients of its microbatches before it reduces them. */
bool pp_shards_gradients(const pp_layout *layout, const pp_training *training) {
  return training->shard_gradients && layout->pipeline == 1;
}

double pp_shards_gradient_bytes(const pp_layout *layout, const pp_training *training) {
  return pp_shards_gradients(layout, training) && training->sharded_gradient_bytes > 0 ? training->sharded_gradient_bytes
                                                                                       : training->gradient_bytes;
}

double pp_shards_gathered_bytes(const pp_training *training) {
  return training->gathered_bytes > 0 ? training->gathered_bytes : 2;
}

double pp_shards_ranks(const pp_layout *layout, const pp_training *training, bool experts) {
  const double replicas = training->replicas > 1 ? (double)training->replicas : 1;
  const double alike = experts ? pp_layout_expert_data(layout) : (double)layout->data * layout->context;
  return fmax(1, floor(alike / replicas));
}

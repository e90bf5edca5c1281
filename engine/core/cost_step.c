/* SPDX-License-Identifier: Apache-2.0 */
/*
** cost_step.c: seconds of what a step takes beside its pipeline, and of hand-overs. See cost.h.
*/
#include <math.h>
#include <string.h>

#include "core/cost.h"
#include "core/kernels.h"
#include "core/shards.h"

/*
** Bytes of a parameter's update out of PyTorch's operations on lists of tensors (torch/optim/adam.py, _multi_tensor_adam), as Megatron-LM has it
** without apex and Transformer Engine (core/optimizer/__init__.py): of the master, decay and step read and write it; of the first moment 3, of the
** second 5, of a root of that 6; of the gradient 2, beside its norm 1 and clipping 4 (core/utils.py, local_multi_tensor_scale); the cast to a weight.
*/
static double unfused_bytes(const pp_training *training, double gradient) {
  const double master = training->master_bytes > 0 ? training->master_bytes : training->parameter_bytes;
  const double cast = training->master_bytes > 0 ? training->master_bytes + training->parameter_bytes : 0;
  return 4 * master + 7 * training->moment_bytes + 7 * gradient + cast;
}

/* An optimizer step reads gradient, master and moments and writes master, moments and weight, of the parameters that this GPU updates. */
static double optimizer_seconds(const pp_training *training, const pp_device *device, double gradient, double updated) {
  const double sent = gradient + training->parameter_bytes, away = training->optimizer_offload * updated;
  const double bytes = sent + 2 * (training->master_bytes + training->moment_bytes);
  const double here = pp_kernels_moved(device, (updated - away) * (training->unfused_optimizer ? unfused_bytes(training, gradient) : bytes));
  return away > 0 ? here + away * sent / device->host_link + away * bytes / device->host_memory_bandwidth : here;
}

/* GPUs from a pipeline rank to the next: those that share a rank's stages (Megatron-LM core/parallel_state.py, order tp-cp-ep-dp-pp). */
static int64_t rank_stride(const pp_layout *layout) {
  return (int64_t)layout->tensor * layout->context * layout->data;
}

/* Steps of the rings of all buckets but the first, whose steps are in the exchange itself. */
static double further_buckets(const pp_training *training, const pp_network *network, int64_t ranks, int64_t stride, double parameters) {
  const double bucket = fmax(training->bucket, training->bucket_per_rank * (double)ranks);
  if (bucket <= 0 || parameters <= bucket) return 0;
  return (ceil(parameters / bucket) - 1) * pp_comm_ring(network, ranks, stride);
}

/*
** With a sharded optimizer gradients are reduce-scattered, unless each rank wants all of them, and parameters gathered; without, gradients are
** all-reduced. Those that are sent in another precision are cast before and after. The mirror pair (DualPipe) does the same with what the
** sharding inside each copy leaves.
*/
void pp_cost_step(const pp_layout *layout, const pp_training *training, const pp_device *device, const pp_network *network,
                  double dense_parameters, double expert_parameters, int copies, pp_step_seconds *out) {
  const int64_t dense_ranks = (int64_t)pp_shards_ranks(layout, training, false), dense_stride = layout->tensor;
  const int64_t expert_ranks = (int64_t)pp_shards_ranks(layout, training, true), expert_stride = (int64_t)layout->expert * layout->expert_tensor;
  const double kept = pp_shards_gradient_bytes(layout, training), parameter = training->parameter_bytes;
  const double gradient = training->reduced_bytes > 0 ? training->reduced_bytes : kept;
  const double slower = pp_comm_slower(network, PP_TRAFFIC_DATA);
  const bool sharded = training->shard_optimizer, scattered = sharded && !training->allreduce_gradients;
  memset(out, 0, sizeof *out);
  dense_parameters *= 1 - training->frozen;
  expert_parameters *= 1 - training->frozen;
  const double buckets = further_buckets(training, network, dense_ranks, dense_stride, dense_parameters) +
                         further_buckets(training, network, expert_ranks, expert_stride, expert_parameters);
  out->gradient_sync = slower * (scattered ? 1 : 2) *
                       (pp_comm_allgather(network, dense_ranks, dense_stride, gradient * dense_parameters) +
                        pp_comm_allgather(network, expert_ranks, expert_stride, gradient * expert_parameters) + buckets);
  if (gradient != kept && dense_ranks * expert_ranks > 1)
    out->gradient_sync += pp_kernels_moved(device, 2 * (kept + gradient) * (dense_parameters + expert_parameters));
  if (sharded)
    out->parameter_sync = slower * (pp_comm_allgather(network, dense_ranks, dense_stride, parameter * dense_parameters) +
                                    pp_comm_allgather(network, expert_ranks, expert_stride, parameter * expert_parameters) + buckets);
  out->optimizer = optimizer_seconds(training, device, kept, sharded ? dense_parameters / ((double)dense_ranks * copies) +
                                                                   expert_parameters / ((double)expert_ranks * copies)
                                                               : dense_parameters + expert_parameters);
  if (training->replicas > 1)
    out->replicas = slower * pp_comm_allreduce(network, training->replicas, dense_ranks * layout->tensor,
                                               gradient * (dense_parameters / (double)dense_ranks + expert_parameters / (double)expert_ranks));
  if (copies > 1) {
    /* The first rank and the last are the pair that is farthest apart. */
    const double share = dense_parameters / (double)dense_ranks + expert_parameters / (double)expert_ranks;
    const int64_t stride = (layout->pipeline > 1 ? layout->pipeline - 1 : 1) * rank_stride(layout);
    out->mirror = sharded ? pp_comm_allgather(network, copies, stride, gradient * share) +
                              pp_comm_allgather(network, copies, stride, parameter * share)
                          : pp_comm_allreduce(network, copies, stride, gradient * (dense_parameters + expert_parameters));
    out->mirror *= slower;
  }
}

double pp_cost_hop_bytes(const pp_model *model, const pp_layout *layout, const pp_training *training) {
  const bool cut = training->sequence_parallel || training->scatter_messages;
  return 2 * pp_cost_tokens(layout, training) * (double)pp_model_stream_width(model) / (cut ? layout->tensor : 1);
}

double pp_cost_hop(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_network *network) {
  const double bytes = pp_cost_hop_bytes(model, layout, training), sent = pp_comm_p2p(network, rank_stride(layout), bytes);
  const double slower = pp_comm_slower(network, PP_TRAFFIC_PIPELINE);
  if (!training->scatter_messages || training->sequence_parallel) return slower * sent;
  return slower * (sent + pp_comm_allgather(network, layout->tensor, 1, bytes * layout->tensor));
}

double pp_cost_transfer(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_network *network) {
  const double bytes = pp_cost_hop_bytes(model, layout, training);
  if (layout->pipeline == 1) return 0;
  const double latency = pp_comm_p2p(network, rank_stride(layout), fmin(1, bytes));
  return pp_comm_slower(network, PP_TRAFFIC_PIPELINE) * fmax(0, pp_comm_p2p(network, rank_stride(layout), bytes) - latency);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** sharding.c: see sharding.h.
*/
#include "core/sharding.h"

#include <math.h>

#include "core/kernels.h"
#include "core/shards.h"

/*
** What collectives beside it slow compute down by, as a share of the time that both run: the SMs that they take. Over GPUs that share nodes a
** collective has 16 to 32 of an H100's 132 (Megatron-LM docs/user-guide/features/megatron_fsdp.md; 1.1 to 1.3 is what PKU-DAIR/Hetu-Galvatron
** finds, docs: overlap_coe); where each GPU is alone in its node NCCL opens two to four channels for its one network card, an SM each (assumed).
*/
static const double SLOWED = 24.0 / 132, SLOWED_ALONE = 4.0 / 132;

typedef struct {
  const pp_layout *layout;
  const pp_training *training;
  const pp_device *device;
  const pp_network *network;
} scene;

/* Seconds that a collective takes, and the share of it that compute beside it loses. */
typedef struct {
  double seconds, lost;
} collective;

static void add(const scene *at, collective *sum, int64_t ranks, int64_t stride, double bytes) {
  const double seconds = pp_comm_slower(at->network, PP_TRAFFIC_DATA) * pp_comm_allgather(at->network, ranks, stride, bytes);
  sum->seconds += seconds;
  sum->lost += (stride < at->network->tier[0].reach ? SLOWED : SLOWED_ALONE) * seconds;
}

/* An all-gather or a reduce-scatter of so many bytes a parameter, over the GPUs that share it. */
static collective exchange(const scene *at, const pp_gpu_parameters *parameters, double bytes) {
  const int64_t dense = (int64_t)pp_shards_ranks(at->layout, at->training, false);
  const int64_t expert = (int64_t)pp_shards_ranks(at->layout, at->training, true);
  collective sum = { 0, 0 };
  add(at, &sum, dense, at->layout->tensor, bytes * parameters->dense);
  add(at, &sum, expert, (int64_t)at->layout->expert * at->layout->expert_tensor, bytes * parameters->expert);
  return sum;
}

/* What collectives beside `compute` add to it. */
static double added(collective traffic, double compute) {
  if (traffic.seconds <= 0) return 0;
  return fmax(0, traffic.seconds - compute) + traffic.lost * fmin(1, compute / traffic.seconds);
}

static collective both(collective a, collective b) {
  return (collective){ a.seconds + b.seconds, a.lost + b.lost };
}

/* Reading and writing what a unit gathers, or reading its gradients as bf16 and writing them as they are reduced. */
static double copied(const scene *at, const pp_gpu_parameters *parameters, double bytes) {
  return at->training->shard_in_place ? 0 : pp_kernels_moved(at->device, bytes * (parameters->dense + parameters->expert));
}

double pp_sharding_step(const pp_layout *layout, const pp_training *training, const pp_device *device, const pp_network *network,
                        const pp_stage *held, const pp_gpu_parameters parameters[PP_BLOCKS], const pp_block_seconds seconds[PP_BLOCKS],
                        double microbatches) {
  const scene at = { layout, training, device, network };
  const bool gathers = pp_shards_parameters(layout, training), reduces = pp_shards_gradients(layout, training);
  const double gathered = pp_shards_gathered_bytes(training), trained = 1 - training->frozen;
  const double reduced = training->reduced_bytes > 0 ? training->reduced_bytes : pp_shards_gradient_bytes(layout, training);
  double forward = 0, backward = 0, first = 0, last = 0;
  if (!gathers && !reduces) return 0;
  for (int i = 0; i < PP_BLOCKS; i++) {
    const collective none = { 0, 0 }, gather = gathers ? exchange(&at, &parameters[i], gathered) : none;
    const collective reduce = reduces ? exchange(&at, &parameters[i], trained * reduced) : none;
    const double out = gathers ? copied(&at, &parameters[i], 2 * gathered) : 0;
    const double in = reduces ? copied(&at, &parameters[i], trained * (2 + reduced)) : 0;
    const double ahead = seconds[i].forward + seconds[i].alltoall_forward + out;
    const double back = seconds[i].full + seconds[i].alltoall_backward + out + in;
    if (held->count[i] == 0) continue;
    forward += held->count[i] * (added(gather, ahead) + out);
    backward += held->count[i] * (added(both(gather, reduce), back) + out + in);
    first = fmax(first, gather.seconds);
    last = fmax(last, reduce.seconds);
  }
  return microbatches * (forward + first + backward + last);
}

/*
** sharding.c: see sharding.h.
*/
#include "core/sharding.h"

#include <math.h>

#include "core/shards.h"

/* What collectives beside it slow compute down by, as a share of the time that both run: 1.1 to 1.3 is what is found (PKU-DAIR/Hetu-Galvatron
** docs: overlap_coe). */
static const double SLOWED = 0.15;

typedef struct {
  const pp_layout *layout;
  const pp_training *training;
  const pp_network *network;
} scene;

/* An all-gather or a reduce-scatter of so many bytes a parameter, over the GPUs that share it. */
static double exchange(const scene *at, const pp_gpu_parameters *parameters, double bytes) {
  const int64_t dense = (int64_t)pp_shards_ranks(at->layout, at->training, false);
  const int64_t expert = (int64_t)pp_shards_ranks(at->layout, at->training, true);
  return pp_comm_allgather(at->network, dense, at->layout->tensor, bytes * parameters->dense) +
         pp_comm_allgather(at->network, expert, (int64_t)at->layout->expert * at->layout->expert_tensor, bytes * parameters->expert);
}

/* What `traffic` beside `compute` adds to it. */
static double added(double traffic, double compute) {
  return fmax(0, traffic - compute) + SLOWED * fmin(traffic, compute);
}

double pp_sharding_step(const pp_layout *layout, const pp_training *training, const pp_network *network, const pp_stage *held,
                        const pp_gpu_parameters parameters[PP_BLOCKS], const pp_block_seconds seconds[PP_BLOCKS], double microbatches) {
  const scene at = { layout, training, network };
  const bool gathers = pp_shards_parameters(layout, training), reduces = pp_shards_gradients(layout, training);
  const double gathered = 2, reduced = (1 - training->frozen) * training->gradient_bytes;   /* bf16 on the wire; gradients as they are accumulated */
  double forward = 0, backward = 0, first = 0, last = 0;
  if (!gathers && !reduces) return 0;
  for (int i = 0; i < PP_BLOCKS; i++) {
    const double gather = gathers ? exchange(&at, &parameters[i], gathered) : 0, reduce = reduces ? exchange(&at, &parameters[i], reduced) : 0;
    const double ahead = seconds[i].forward + seconds[i].alltoall_forward, back = seconds[i].full + seconds[i].alltoall_backward;
    if (held->count[i] == 0) continue;
    forward += held->count[i] * added(gather, ahead);
    backward += held->count[i] * added(gather + reduce, back);
    first = fmax(first, gather);
    last = fmax(last, reduce);
  }
  return microbatches * (forward + first + backward + last);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** sharding.h: gradients and parameters that are sharded too (ZeRO-2 and -3, FSDP, HSDP): what a step's gathers and reductions take beside its
** compute. Sources: PyTorch torch/distributed/fsdp/_fully_shard (a unit is gathered while the one before computes); Megatron-LM
** docs/user-guide/features/megatron_fsdp.md (what each stage of sharding sends).
*/
#ifndef PP_SHARDING_H
#define PP_SHARDING_H

#include "core/cost.h"
#include "core/memory.h"

/*
** Seconds of a step that gathers and reductions of all microbatches add, of a rank that holds these blocks. Each layer is a unit: its
** parameters are gathered while the one before computes, and its gradients reduced beside the next one's backward; what is left of the longer
** is exposed, as are the first gather and the last reduction of a microbatch. What is hidden slows the compute that hides it. Unless
** training->shard_in_place, what was gathered is copied out before a unit computes, and gradients are copied into what reduces them, beside
** nothing: PyTorch _fsdp_collectives.py, foreach_all_gather_copy_out and foreach_reduce_scatter_copy_in. Everything 0 where neither gradients
** nor parameters are sharded.
*/
double pp_sharding_step(const pp_layout *layout, const pp_training *training, const pp_device *device, const pp_network *network,
                        const pp_stage *held, const pp_gpu_parameters parameters[PP_BLOCKS], const pp_block_seconds seconds[PP_BLOCKS],
                        double microbatches);

#endif

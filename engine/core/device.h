/* SPDX-License-Identifier: Apache-2.0 */
/*
** device.h: what an accelerator, its kernels and its host reach: catalogue facts and measurements, passed in.
*/
#ifndef PP_DEVICE_H
#define PP_DEVICE_H

#include <stdbool.h>

/*
** Seconds that the host needs to launch what one layer does in one direction: a layer takes no less. An MoE layer whose experts run one by one
** takes `expert` more for each. waiting: share of the shorter of card and host that an MoE layer takes more without an all-to-all kernel, where
** the host waits for row counts in the middle. All 0: hosts are never late.
*/
typedef struct {
  double forward, backward;          /* of a dense layer */
  double moe_forward, moe_backward;
  double expert_forward, expert_backward;
  double waiting;
} pp_host;

typedef struct {
  double flops;                 /* dense peak at the training precision, per second */
  double flops_bf16;            /* dense peak in bf16: what attention and everything kept above fp8 runs at */
  double memory_bandwidth;      /* bytes per second */
  double gemm_efficiency;       /* share of `flops` that large matrix products reach */
  double grouped_gemm_efficiency;  /* the same for experts' grouped products of large inner size */
  double grouped_gemm_half;     /* inner size at which they reach half of that: efficiency × K / (K + half) */
  double product_depth;         /* inner size that a product of any shape takes as much longer as: pipelines that fill and drain */
  double product_floor;         /* seconds of the smallest product, on top of what others take */
  double grouped_rows;          /* rows of a tile, to which each expert's are padded; 0: grouped products by grouped_gemm_half alone */
  double grouped_floor;         /* as product_floor, of a grouped product; with grouped_rows only */
  double attention_efficiency;  /* share of flops_bf16 that fused attention reaches forward */
  double attention_backward;    /* share of that which backward reaches; 0: as forward */
  double attention_half, attention_half_backward;  /* tokens of a sequence at which it reaches half */
  double attention_fill;        /* pieces of 128 queries of one head at which it reaches half: too few for all of the card */
  double memory_efficiency;     /* share of memory_bandwidth that element-wise kernels reach */
  double overlap_overhead;      /* share of a pair's compute that sharing SMs with communication kernels costs: ≥ 0 */
  bool hides_alltoall;          /* is there an all-to-all kernel that runs beside compute? Without one it is the plain, flat all-to-all */
  double layer_latency;         /* seconds that a layer's F and its I each take beside their work, and W half of it: launches, fills and drains of
                                ** its kernels, which do not shrink with the microbatch */
  double routing_latency;       /* seconds that an MoE layer takes each way beside its work: counts to the host, launches of small kernels */
  double plain_routing_latency; /* seconds more each way where the all-to-all has no kernel of its own: its sizes are read back by the host, tokens
                                ** are permuted by kernels apart, and nothing hides that */
  double tensor_latency;        /* seconds that a TP collective takes beside its transfer and the links' latencies: launch, synchronisation */
  double tensor_regather;       /* share of backward's further all-gather under sequence parallelism that is not hidden beside I */
  double hidden_share;          /* of the shorter of compute and all-to-all, what pairs on two streams hide, as measured; 0: all of it, at
                                ** overlap_overhead. Pairs of schedules with a kernel of their own hide all */
  pp_host host;
  double alltoall_rate;         /* bytes per second at which a kernel that crosses nodes forwards inside them; 0: as fast as the link */
  double alltoall_latency;      /* seconds that one dispatch or combine takes beside its transfers: launch, counting, notification */
  double pair_share;            /* F&B over F + B, as measured; 0: F&B is computed */
  double host_link;             /* bytes per second to and from the host, one direction; read with optimizer_offload only, like the next */
  double host_memory_bandwidth; /* bytes per second of host memory that an update on the host reaches, of one GPU's share of the host */
} pp_device;

#endif

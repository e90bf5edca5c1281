/* SPDX-License-Identifier: Apache-2.0 */
/* devices.h: GPUs and links of which seconds can be counted by hand, for the tests of cost. */
#ifndef PP_TEST_DEVICES_H
#define PP_TEST_DEVICES_H

#include "core/cost.h"

/* Memory and links so fast that only products and attention take time; 1 PFLOP/s, everything at its peak. */
static const pp_device ideal = {
  .flops = 1e15, .flops_bf16 = 1e15, .memory_bandwidth = 1e30, .gemm_efficiency = 1, .grouped_gemm_efficiency = 1,
  .attention_efficiency = 1, .memory_efficiency = 1, .overlap_overhead = 0, .hides_alltoall = true,
};
static const pp_network instant = { .tiers = 1, .tier = { { 1 << 20, 1e30, 1, 0, 0 } } };
static const pp_network real = { .tiers = 2, .tier = { { 8, 400e9, 0.8, 2e-6, 0 }, { 1 << 20, 50e9, 0.9, 10e-6, 0 } } };

static inline pp_layout layout_of(int tensor, int context, int expert, int data, int pipeline) {
  return (pp_layout){ .tensor = tensor, .context = context, .expert = expert, .expert_tensor = 1, .data = data, .pipeline = pipeline, .chunks = 1 };
}

#endif

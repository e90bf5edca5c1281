/* SPDX-License-Identifier: Apache-2.0 */
/* searches.h: problems that the tests of candidates, evaluation and search share. Include after cmocka.h. */
#ifndef PP_TEST_SEARCHES_H
#define PP_TEST_SEARCHES_H

#include "core/search.h"
#include "shapes.h"

/* A model with its recipe on H800-like nodes: 8 GPUs at 160 GB/s, 50 GB/s between them. */
typedef struct {
  pp_model model;
  pp_training training;
  pp_device device;
  pp_network network;
  pp_problem problem;
  pp_candidate_space space;
} search_case;

static inline void set_case(search_case *out, pp_model model, int64_t gpus, int64_t batch) {
  out->model = model;
  out->training = bf16_recipe(4096);
  out->device = (pp_device){ .flops = 990e12, .flops_bf16 = 990e12, .memory_bandwidth = 3.35e12, .gemm_efficiency = 0.6,
                             .grouped_gemm_efficiency = 0.5, .attention_efficiency = 0.4, .memory_efficiency = 0.8, .overlap_overhead = 0.1 };
  out->network = (pp_network){ .tiers = 2, .tier = { { 8, 160e9, 0.8, 2e-6, 0 }, { 1 << 24, 50e9, 0.9, 10e-6, 0 } } };
  out->problem = (pp_problem){ .model = &out->model, .training = &out->training, .device = &out->device, .network = &out->network,
                               .usable_bytes = 73 * GIB, .overhead_bytes = 4 * GIB, .step_overhead_seconds = 0.05,
                               .split_tie = 0.005, .split_gain = 0.01, .split_overfull = 0.15 };
  out->space = (pp_candidate_space){ .model = &out->model, .gpus = gpus, .global_batch = batch, .smallest_batch = batch, .micro_batch = 1,
                                     .scale_up_gpus = 8, .fixed = { .kind = PP_SCHEDULE_KINDS }, .max_tensor = 64, .max_context = 1,
                                     .max_chunks = 8 };
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) out->space.planned[kind] = true;
}

/* DeepSeek-V3 as its report trained it (§4.2: 2,048 GPUs, 15,360 sequences): TP 1, EP 64. */
static inline void set_deepseek(search_case *out) {
  set_case(out, deepseek_v3(61, 3, 1), 2048, 15360);
  out->space.fixed.tensor = 1;
  out->space.fixed.expert = 64;
}

static inline pp_layout_costs costs_of(const search_case *c, const pp_layout *layout) {
  pp_layout_costs costs;
  pp_error error;
  if (pp_price_layout(&c->problem, layout, c->device.alltoall_latency, NULL, &costs, &error) != PP_OK) fail_msg("%s", error.message);
  return costs;
}

static inline pp_candidate candidate_of(int kind, int ranks, int chunks, int64_t microbatches) {
  pp_candidate out = { .layout = { .tensor = 1, .context = 1, .expert = 1, .expert_tensor = 1, .data = 8, .pipeline = ranks, .chunks = chunks },
                       .kind = kind, .configured_virtual = 1, .microbatches = microbatches, .smallest_microbatches = microbatches };
  if (kind >= 0 && pp_schedule_traits_of((pp_schedule_kind)kind)->grouping == PP_GROUPS_OF_RANKS)
    for (out.group = ranks; out.group < microbatches; out.group++)
      if (microbatches % out.group == 0 || microbatches % out.group >= ranks) break;
  return out;
}

static inline const char *name_of(const pp_candidate *candidate) {
  return candidate->kind == PP_NO_SCHEDULE ? "none" : pp_schedule_traits_of((pp_schedule_kind)candidate->kind)->name;
}

/* The same numbers on every run. */
static inline uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

#endif

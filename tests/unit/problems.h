/* SPDX-License-Identifier: Apache-2.0 */
/*
** problems.h: random problems in which every optional term is switched on at some time: what one part of the engine computes twice, or
** bounds, is compared over them. Include after cmocka.h. The same seed gives the same problem on every machine.
*/
#ifndef PP_TEST_PROBLEMS_H
#define PP_TEST_PROBLEMS_H

#include <stdlib.h>

#include "searches.h"

enum { MOST_SPEEDS = 8 };

typedef struct {
  search_case c;
  pp_profile profile;
  double speed[MOST_SPEEDS];
  int layers[PP_MAX_LAYERS];
} random_problem;

/* From 0 to `below` − 1. */
static inline int any_of(uint32_t *seed, int below) { return (int)(next_random(seed) % (uint32_t)below); }

static inline bool one_in(uint32_t *seed, int n) { return any_of(seed, n) == 0; }

static inline double between(uint32_t *seed, double low, double high) { return low + (high - low) * (double)any_of(seed, 100001) / 1e5; }

#define PICK(seed, ...) ((const double[]){ __VA_ARGS__ })[any_of(seed, (int)(sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double)))]

static inline pp_model random_model(uint32_t *seed) {
  pp_model model = {
    .layers = 4 + any_of(seed, 29), .hidden = 512 << any_of(seed, 4), .vocab = 1000 << any_of(seed, 8), .heads = 8 << any_of(seed, 3),
    .head_dim = 64 << any_of(seed, 2), .ffn = 2048 << any_of(seed, 4), .gated = !one_in(seed, 3), .qkv_bias = one_in(seed, 3),
    .output_bias = one_in(seed, 4), .mlp_bias = one_in(seed, 4), .norms_per_layer = (int64_t)PICK(seed, 0, 1, 2, 2, 4),
    .norm_bias = one_in(seed, 3), .embedding_norm = one_in(seed, 8), .head_bias = one_in(seed, 8), .tied_embeddings = one_in(seed, 3),
    .mtp_layers = one_in(seed, 3) ? 1 + any_of(seed, 2) : 0, .learned_positions = one_in(seed, 5) ? 2048 : 0,
    .attention_sinks = one_in(seed, 6) ? 8 : 0, .qk_norm = (pp_qk_norm)any_of(seed, 3),
  };
  model.kv_heads = model.heads >> any_of(seed, 4);
  if (one_in(seed, 3)) {
    model.attention = PP_ATTENTION_MLA;
    model.q_lora_rank = one_in(seed, 2) ? 1536 : 0;
    model.kv_lora_rank = 512;
    model.qk_nope_dim = model.v_dim = 128;
    model.qk_rope_dim = 64;
  }
  if (one_in(seed, 2)) {
    model.experts = 16 << any_of(seed, 3);
    model.experts_per_token = 1 + any_of(seed, 8);
    model.expert_ffn = 256 << any_of(seed, 4);
    model.shared_ffn = one_in(seed, 2) ? 1024 : 0;
    model.shared_gate = one_in(seed, 3);
    model.router_bias = model.expert_bias = one_in(seed, 3);
    model.router_correction_bias = one_in(seed, 3);
    const int64_t dense = one_in(seed, 2) ? any_of(seed, 4) : 0, every = one_in(seed, 4) ? 2 : 1;
    for (int64_t i = dense; i < model.layers; i++) model.moe[i] = i % every == 0 || i == model.layers - 1;
  }
  return model;
}

static inline pp_training random_training(uint32_t *seed, const pp_model *model) {
  pp_training training = {
    .precision = (pp_precision)any_of(seed, 4), .sequence_length = 512 << any_of(seed, 5), .micro_batch = 1 + any_of(seed, 4),
    .parameter_bytes = PICK(seed, 1, 2, 2, 4), .gradient_bytes = PICK(seed, 2, 4, 4), .master_bytes = PICK(seed, 0, 4, 4),
    .moment_bytes = PICK(seed, 2, 4, 8, 8), .shard_optimizer = !one_in(seed, 3), .shard_gradients = one_in(seed, 4),
    .shard_parameters = one_in(seed, 6), .shard_master = one_in(seed, 3), .shard_in_place = one_in(seed, 2),
    .sharded_gradient_bytes = PICK(seed, 0, 2, 4), .gathered_bytes = PICK(seed, 0, 1, 2), .bucket = one_in(seed, 3) ? between(seed, 1e6, 1e9) : 0,
    .optimizer_offload = one_in(seed, 4) ? between(seed, 0, 1) : 0,
    .allreduce_gradients = one_in(seed, 4), .reduced_bytes = PICK(seed, 0, 0, 2, 4), .scatter_messages = one_in(seed, 3),
    .sequence_parallel = !one_in(seed, 3), .tensor_overlap = one_in(seed, 3) ? between(seed, 0, 1) : 0,
    .overlap_alone = one_in(seed, 2), .data_overlap = one_in(seed, 3) ? between(seed, 0, 1) : 0, .fused_attention = !one_in(seed, 3),
    .loss = (pp_loss)any_of(seed, PP_LOSSES),
    .unfused_norm = one_in(seed, 4), .unfused_rope = one_in(seed, 4), .unfused_activation = one_in(seed, 4),
    .unfused_experts = one_in(seed, 4), .unfused_optimizer = one_in(seed, 4), .dropout = one_in(seed, 3),
    .activation_bytes = PICK(seed, 1, 2, 2, 4), .attention_output_bytes = PICK(seed, 1, 1.5, 2, 3), .activation_input_bytes = PICK(seed, 1, 2),
    .weight_gradient_bytes = PICK(seed, 0, 2, 4), .weight_gradients_pass = one_in(seed, 3), .dispatch_bytes = PICK(seed, 1, 1.03, 2), .combine_bytes = 2,
    .expert_imbalance = one_in(seed, 2) ? between(seed, 1, 1.5) : 1, .max_domains = any_of(seed, 5),
    .recompute = { .full = one_in(seed, 4), .core_attention = one_in(seed, 3), .norm = one_in(seed, 3), .mla_up_projection = one_in(seed, 3),
                   .activation = one_in(seed, 3), .moe = one_in(seed, 4) },
  };
  if (model->attention != PP_ATTENTION_MLA) training.recompute.mla_up_projection = false;
  return training;
}

/* Launches of a fraction of a layer's time, or of more than it. */
static inline pp_host random_host(uint32_t *seed) {
  const double most = PICK(seed, 1e-4, 1e-3, 1e-2);
  return (pp_host){ .forward = between(seed, 0, most), .backward = between(seed, 0, 2 * most), .moe_forward = between(seed, 0, 2 * most),
                    .moe_backward = between(seed, 0, 4 * most), .expert_forward = between(seed, 0, most / 4),
                    .expert_backward = between(seed, 0, most / 4), .waiting = one_in(seed, 2) ? between(seed, 0, 1) : 0 };
}

static inline void random_shapes(uint32_t *seed, pp_device *out) {
  if (one_in(seed, 2)) out->product_depth = between(seed, 0, 200), out->product_floor = between(seed, 0, 1e-5);
  if (one_in(seed, 2)) out->grouped_rows = between(seed, 0, 256), out->grouped_floor = between(seed, 0, 5e-5);
  if (one_in(seed, 2)) out->attention_backward = between(seed, 0.5, 1.2), out->attention_fill = between(seed, 0, 500);
  if (one_in(seed, 2)) out->attention_half = between(seed, 0, 2000), out->attention_half_backward = between(seed, 0, 2000);
  if (one_in(seed, 2)) out->tensor_latency = between(seed, 0, 1e-4), out->tensor_regather = between(seed, 0, 1);
  if (one_in(seed, 2)) out->hidden_share = between(seed, 0, 1);
  if (one_in(seed, 2)) out->alltoall_rate = between(seed, 1e10, 5e11);
  if (one_in(seed, 2)) out->host = random_host(seed);
}

static inline pp_device random_device(uint32_t *seed) {
  const double flops = 1e14 * (double)(1 + any_of(seed, 20));
  pp_device device = {
    .flops = flops, .flops_bf16 = one_in(seed, 2) ? flops : flops / 2, .memory_bandwidth = 1e12 * between(seed, 1, 8),
    .gemm_efficiency = between(seed, 0.3, 0.9), .grouped_gemm_efficiency = between(seed, 0.2, 0.8),
    .grouped_gemm_half = one_in(seed, 2) ? between(seed, 0, 1000) : 0, .attention_efficiency = between(seed, 0.2, 0.7),
    .memory_efficiency = between(seed, 0.4, 0.9), .overlap_overhead = one_in(seed, 2) ? between(seed, 0, 0.4) : 0,
    .layer_latency = one_in(seed, 2) ? between(seed, 0, 2e-4) : 0, .routing_latency = one_in(seed, 2) ? between(seed, 0, 2e-4) : 0,
    .plain_routing_latency = one_in(seed, 2) ? between(seed, 0, 5e-4) : 0, .alltoall_latency = one_in(seed, 2) ? between(seed, 0, 2e-4) : 0,
    .host_link = 25e9, .host_memory_bandwidth = 20e9,
  };
  random_shapes(seed, &device);
  return device;
}

/* Sizes of 1 KiB and up, times that mostly grow: measurements are noisy. */
static inline pp_message_table random_messages(uint32_t *seed) {
  pp_message_table table = { .count = 1 + any_of(seed, 6) };
  for (int i = 0; i < table.count; i++) {
    table.bytes[i] = (double)(1024 << 3 * i);
    table.seconds[i] = between(seed, 1e-5, 3e-5) + table.bytes[i] / between(seed, 1e10, 1e11);
  }
  return table;
}

static inline pp_network random_network(uint32_t *seed) {
  pp_network network = { .tiers = 1 + any_of(seed, 3) };
  int reach = 1 << any_of(seed, 4);
  double bandwidth = between(seed, 5e10, 9e11);
  for (int i = 0; i < network.tiers; i++) {
    network.tier[i] = (pp_tier){ i == network.tiers - 1 ? 1 << 24 : reach, bandwidth, between(seed, 0.4, 1), between(seed, 0, 3e-5),
                                 one_in(seed, 2) ? between(seed, 0, 3e-5) : 0 };
    for (int k = 0; k < PP_TRANSFERS; k++)
      if (one_in(seed, 4)) network.measured[i][k] = (pp_measured_link){ bandwidth * between(seed, 0.2, 1), between(seed, 0, 5e-5) };
    if (one_in(seed, 4)) network.messages[i] = random_messages(seed);
    reach *= 2 << any_of(seed, 3);
    bandwidth /= 1 + any_of(seed, 8);
  }
  return network;
}

/* Four stages of a model of this kind; what may be missing is missing at times. */
static inline void random_profile(uint32_t *seed, const pp_model *model, pp_profile *out) {
  const bool split = one_in(seed, 2), bytes = one_in(seed, 2), ends = !one_in(seed, 3);
  *out = (pp_profile){ .stages = 4, .layout = { 1, 1, 1, 1, 1, 1, 1 } };
  for (int s = 0; s < out->stages; s++) {
    pp_profile_stage *stage = &out->stage[s];
    const double forward = between(seed, 2e-3, 2e-2);
    for (int i = 0; i < PP_MEASURED_QUANTITIES; i++) stage->of[i] = (double)NAN;
    stage->blocks.count[model->experts > 0 ? PP_BLOCK_MOE : PP_BLOCK_DENSE] = 1 + any_of(seed, 4);
    stage->blocks.count[PP_BLOCK_EMBEDDING] = ends && s == 0;
    stage->blocks.count[PP_BLOCK_HEAD] = ends && s == out->stages - 1;
    stage->of[PP_MEASURED_FORWARD] = forward;
    stage->of[PP_MEASURED_FULL] = forward * between(seed, 1.5, 2.5);
    if (split) stage->of[PP_MEASURED_INPUT] = stage->of[PP_MEASURED_FULL] * between(seed, 0.3, 0.7);
    if (split && one_in(seed, 2)) stage->of[PP_MEASURED_WEIGHT] = stage->of[PP_MEASURED_FULL] * between(seed, 0.3, 0.7);
    if (bytes)
      for (int i = PP_MEASURED_PARAMETERS; i <= PP_MEASURED_TRANSIENT; i++) stage->of[i] = between(seed, 1e8, 4e9);
    stage->pair = one_in(seed, 2) ? forward * between(seed, 1.5, 4) : (double)NAN;
  }
  out->has_hosts = one_in(seed, 3);
  for (int s = 0; s < out->stages; s++) {
    pp_host_times *host = &out->stage[s].host;
    const double most = 2 * out->stage[s].of[PP_MEASURED_FORWARD];
    host->seconds = (pp_stage_times){ between(seed, 0, most), between(seed, 0, most), between(seed, 0, most), between(seed, 0, 2 * most) };
    if (one_in(seed, 2)) host->beyond = (pp_stage_times){ 0, between(seed, 0, most), 0, between(seed, 0, most) };
    host->forward_waits = one_in(seed, 2);
    host->weight_waits = one_in(seed, 4);
  }
}

/* Cards of unequal speed, a runtime with its heat and contention. */
static inline void random_machine(uint32_t *seed, random_problem *out) {
  pp_problem *problem = &out->c.problem;
  if (one_in(seed, 3)) {
    problem->speeds = 2 << any_of(seed, 3);
    problem->rank_speed = out->speed;
    for (int i = 0; i < MOST_SPEEDS; i++) out->speed[i] = between(seed, 0.8, 1.2);
  }
  problem->hardware = (pp_hardware){ .contention = 1 };
  if (one_in(seed, 2)) return;
  problem->runtime = pp_runtime_preset((pp_runtime_kind)(1 + any_of(seed, PP_RUNTIMES - 1)));
  if (one_in(seed, 2)) problem->hardware.contention = between(seed, 1, 1.5);
  if (one_in(seed, 2))
    problem->hardware = (pp_hardware){ .contention = problem->hardware.contention, .heat_onset = between(seed, 0, 0.9),
                                       .heat_slope = between(seed, 0, 0.3), .heat_tau = between(seed, 1e-3, 1) };
}

/* What is fixed, so that the table stays small: whatever a spec may fix. */
static inline void random_space(uint32_t *seed, random_problem *out) {
  search_case *c = &out->c;
  pp_fixed fixed = { .kind = PP_SCHEDULE_KINDS };
  const int64_t gpus = 8 << any_of(seed, 4), per_gpu = 1 + any_of(seed, 12);
  fixed.tensor = one_in(seed, 2) ? 1 << any_of(seed, 3) : 0;
  fixed.context = one_in(seed, 3) ? 1 << any_of(seed, 3) : 1;
  if (c->model.experts > 0 && one_in(seed, 3)) fixed.expert_tensor = 1 << any_of(seed, 2);
  if (one_in(seed, 3)) fixed.pipeline = 2 << any_of(seed, 3);
  c->space = (pp_candidate_space){
    .model = &c->model, .gpus = gpus, .global_batch = gpus * per_gpu * c->training.micro_batch, .micro_batch = c->training.micro_batch,
    .scale_up_gpus = 8, .fixed = fixed, .max_tensor = 8, .max_context = 4, .max_chunks = 3, .rounds = one_in(seed, 4),
  };
  c->space.smallest_batch = one_in(seed, 3) ? c->space.global_batch / 2 : c->space.global_batch;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) c->space.planned[kind] = c->problem.layer_rule[kind] != PP_LAYERS_ANY || !one_in(seed, 2);
  if (fixed.pipeline > 0 && fixed.pipeline <= c->model.layers && one_in(seed, 3)) {
    int left = (int)c->model.layers;
    c->problem.layers_per_stage = out->layers;
    c->problem.given_stages = c->space.fixed.stages = fixed.pipeline;
    for (int s = 0; s < fixed.pipeline; s++) {
      out->layers[s] = s == fixed.pipeline - 1 ? left : any_of(seed, left * 2 / (fixed.pipeline - s) + 1);
      left -= out->layers[s];
    }
  }
}

static inline pp_communicators random_communicators(uint32_t *seed) {
  pp_communicators out = { .one = one_in(seed, 2) ? 0 : GIB * between(seed, 0, 1), .several = GIB * between(seed, 0, 1),
                           .messages = GIB * between(seed, 0, 1), .peer = GIB * between(seed, 0, 1), .node = one_in(seed, 2) ? 8 : 0 };
  for (int group = 0; group < PP_GROUPS; group++) out.has[group] = one_in(seed, 2);
  return out;
}

/* `out` holds what its parts point to: it is not to be copied. */
static inline void set_random(random_problem *out, uint32_t *seed) {
  search_case *c = &out->c;
  pp_error error;
  c->model = random_model(seed);
  if (pp_model_check(&c->model, &error) != PP_OK) fail_msg("%s", error.message);
  c->training = random_training(seed, &c->model);
  c->device = random_device(seed);
  c->network = random_network(seed);
  c->problem = (pp_problem){
    .model = &c->model, .training = &c->training, .device = &c->device, .network = &c->network,
    .usable_bytes = one_in(seed, 3) ? (double)INFINITY : GIB * between(seed, 1, 120), .overhead_bytes = one_in(seed, 3) ? 0 : GIB * between(seed, 0, 6),
    .hop_waiting = one_in(seed, 2) ? between(seed, 0, 1) : 0,
    .buffered_messages = one_in(seed, 3) ? between(seed, 0, 3) : 0, .step_overhead_seconds = one_in(seed, 2) ? 0.05 : 0,
    .split_tie = 0.005, .split_gain = 0.01, .split_overfull = 0.15,
  };
  if (one_in(seed, 2)) c->problem.communicators = random_communicators(seed);
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) if (one_in(seed, 4)) c->problem.layer_rule[kind] = (pp_layer_rule)any_of(seed, PP_LAYER_RULES);
  if (one_in(seed, 4)) {
    random_profile(seed, &c->model, &out->profile);
    c->problem.profile = &out->profile;
  }
  random_machine(seed, out);
  random_space(seed, out);
}

/* Rows of a search with kernels for some of them. Kinds are their own symbols, from 2. */
static inline void open_random(const random_problem *problem, uint32_t *seed, pp_search *out) {
  pp_search_symbols symbols;
  pp_error error;
  for (int i = 0; i <= PP_SCHEDULE_KINDS; i++) symbols.schedule[i] = symbols.family[i] = 2 + i;
  if (pp_search_open(&(pp_search_choice){ problem->c.problem, problem->c.space }, 1, NULL, 0, &symbols, out, &error) != PP_OK) fail_msg("%s", error.message);
  for (size_t row = 0; row < out->candidates.count; row++) out->column[PP_COLUMN_KERNEL][row] = one_in(seed, 2) ? 99 : 0;
  if (pp_search_kernels_changed(out, &error) != PP_OK) fail_msg("%s", error.message);
}

static inline bool row_has_kernel(const pp_search *search, size_t row) { return search->column[PP_COLUMN_KERNEL][row] >= 2; }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** recipe.c: checking training recipes, layouts, devices and networks. May longjmp. See recipe.h.
*/
#include "lua/recipe.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "lua/arguments.h"
#include "lua/results.h"

const char *const pp_block_names[PP_BLOCKS + 1] = {
  [PP_BLOCK_EMBEDDING] = "embedding", [PP_BLOCK_DENSE] = "dense", [PP_BLOCK_MOE] = "moe", [PP_BLOCK_HEAD] = "head",
  [PP_BLOCK_MTP] = "mtp", "kind_1", "kind_2", "kind_3", "kind_4", "kind_5", "kind_6", "kind_7", "kind_8", "kind_9", "kind_10", "kind_11", NULL,
};

int pp_blocks_of(const pp_model *model) {
  return PP_BLOCK_FURTHER + model->kinds;
}

void pp_push_stage(lua_State *L, const pp_stage *stage) {
  lua_createtable(L, 0, PP_BLOCK_FURTHER);
  for (int i = 0; i < PP_BLOCKS; i++)
    if (i < PP_BLOCK_FURTHER || stage->count[i] > 0) pp_set_integer(L, pp_block_names[i], stage->count[i]);
}

static const char training_call[] = "training", layout_call[] = "layout", device_call[] = "device", network_call[] = "network",
                  tier_call[] = "network tier";

/* Far beyond any recipe, and what a spec may say; keeps the product of two sizes within int64. */
enum { SIZE_LIMIT = INT32_MAX };

static const double bytes_limit = 64;

static double bytes_of(lua_State *L, int index, const char *name) {
  return pp_args_number(L, index, training_call, name, 0, bytes_limit);
}

static double bytes_or(lua_State *L, int index, const char *name, double otherwise) {
  return pp_args_number_or(L, index, training_call, name, 0, bytes_limit, otherwise);
}

static bool given(lua_State *L, int index, const char *name) {
  return pp_args_boolean_or(L, index, training_call, name, false);
}

static void check_recompute(lua_State *L, int index, pp_recompute *out) {
  static const char call[] = "training.recompute";
  static const char *const known[] = { "full", "core_attention", "norm", "mla_up_projection", "activation", "moe", NULL };
  memset(out, 0, sizeof *out);
  if (!pp_args_has(L, index, "recompute")) return;
  pp_args_table(L, index, training_call, "recompute");
  const int table = lua_gettop(L);
  pp_args_begin(L, table, call, known);
  out->full = pp_args_boolean_or(L, table, call, "full", false);
  out->core_attention = pp_args_boolean_or(L, table, call, "core_attention", false);
  out->norm = pp_args_boolean_or(L, table, call, "norm", false);
  out->mla_up_projection = pp_args_boolean_or(L, table, call, "mla_up_projection", false);
  out->activation = pp_args_boolean_or(L, table, call, "activation", false);
  out->moe = pp_args_boolean_or(L, table, call, "moe", false);
  lua_pop(L, 1);
}

void pp_check_training(lua_State *L, int index, pp_training *out) {
  static const char *const known[] = {
    "precision", "sequence_length", "micro_batch", "document_length", "parameter_bytes", "gradient_bytes", "master_bytes",
    "moment_bytes", "frozen",
    "shard_optimizer", "optimizer_offload", "shard_gradients", "shard_parameters", "sharded_gradient_bytes", "gathered_bytes",
    "shard_master", "shard_in_place", "reshard", "replicas", "allreduce_gradients", "reduced_bytes", "sequence_parallel", "scatter_messages", "bucket",
    "bucket_per_rank", "data_overlap",
    "overlap_alone", "tensor_overlap", "fused_attention", "loss", "unfused_norm", "unfused_rope", "unfused_activation",
    "unfused_experts", "unfused_optimizer", "dropout", "activation_bytes",
    "attention_output_bytes", "activation_input_bytes", "weight_gradient_bytes", "weight_gradients_pass", "dispatch_bytes",
    "combine_bytes", "expert_imbalance", "max_domains", "rerun_per_weight", "recompute", NULL };
  static const char *const precisions[] = { "bf16", "fp8", "fp16", "fp32", NULL };
  index = lua_absindex(L, index);
  pp_args_begin(L, index, training_call, known);
  memset(out, 0, sizeof *out);
  out->precision = (pp_precision)pp_args_option(L, index, training_call, "precision", precisions, -1);
  out->sequence_length = pp_args_integer(L, index, training_call, "sequence_length", 1, SIZE_LIMIT);
  out->micro_batch = pp_args_integer_or(L, index, training_call, "micro_batch", 1, SIZE_LIMIT, 1);
  out->document_length = pp_args_number_or(L, index, training_call, "document_length", 0, (double)SIZE_LIMIT, 0);
  out->parameter_bytes = bytes_of(L, index, "parameter_bytes");
  out->gradient_bytes = bytes_of(L, index, "gradient_bytes");
  out->master_bytes = bytes_of(L, index, "master_bytes");
  out->moment_bytes = bytes_of(L, index, "moment_bytes");
  out->frozen = pp_args_number_or(L, index, training_call, "frozen", 0, 1, 0);
  out->shard_optimizer = given(L, index, "shard_optimizer");
  out->optimizer_offload = pp_args_number_or(L, index, training_call, "optimizer_offload", 0, 1, 0);
  out->shard_gradients = given(L, index, "shard_gradients");
  out->shard_parameters = given(L, index, "shard_parameters");
  out->sharded_gradient_bytes = bytes_or(L, index, "sharded_gradient_bytes", 0);
  out->gathered_bytes = bytes_or(L, index, "gathered_bytes", 0);
  out->shard_master = given(L, index, "shard_master");
  out->shard_in_place = given(L, index, "shard_in_place");
  out->reshard = given(L, index, "reshard");
  out->replicas = pp_args_integer_or(L, index, training_call, "replicas", 0, SIZE_LIMIT, 0);
  out->allreduce_gradients = given(L, index, "allreduce_gradients");
  out->reduced_bytes = bytes_or(L, index, "reduced_bytes", 0);
  out->sequence_parallel = given(L, index, "sequence_parallel");
  out->scatter_messages = given(L, index, "scatter_messages");
  out->bucket = pp_args_number_or(L, index, training_call, "bucket", 0, 1e30, 0);
  out->bucket_per_rank = pp_args_number_or(L, index, training_call, "bucket_per_rank", 0, 1e30, 0);
  out->data_overlap = pp_args_number_or(L, index, training_call, "data_overlap", 0, 1, 0);
  out->overlap_alone = given(L, index, "overlap_alone");
  out->tensor_overlap = pp_args_number_or(L, index, training_call, "tensor_overlap", 0, 1, 0);
  out->fused_attention = given(L, index, "fused_attention");
  out->loss = (pp_loss)pp_args_option(L, index, training_call, "loss", pp_loss_names, PP_LOSS_VOCAB_PARALLEL);
  out->unfused_norm = given(L, index, "unfused_norm");
  out->unfused_rope = given(L, index, "unfused_rope");
  out->unfused_activation = given(L, index, "unfused_activation");
  out->unfused_experts = given(L, index, "unfused_experts");
  out->unfused_optimizer = given(L, index, "unfused_optimizer");
  out->dropout = given(L, index, "dropout");
  out->activation_bytes = bytes_or(L, index, "activation_bytes", 2);
  pp_training_defaults(out);
  out->attention_output_bytes = bytes_or(L, index, "attention_output_bytes", out->attention_output_bytes);
  out->activation_input_bytes = bytes_or(L, index, "activation_input_bytes", out->activation_input_bytes);
  out->weight_gradient_bytes = bytes_or(L, index, "weight_gradient_bytes", out->weight_gradient_bytes);
  out->weight_gradients_pass = given(L, index, "weight_gradients_pass");
  out->dispatch_bytes = bytes_or(L, index, "dispatch_bytes", out->dispatch_bytes);
  out->combine_bytes = bytes_or(L, index, "combine_bytes", out->combine_bytes);
  out->expert_imbalance = pp_args_number_or(L, index, training_call, "expert_imbalance", 1, 1e6, 1);
  out->max_domains = pp_args_integer_or(L, index, training_call, "max_domains", 0, SIZE_LIMIT, 0);
  out->rerun_per_weight = given(L, index, "rerun_per_weight");
  check_recompute(L, index, &out->recompute);
}

static int degree(lua_State *L, int index, const char *name) {
  return (int)pp_args_integer_or(L, index, layout_call, name, 1, SIZE_LIMIT, 1);
}

void pp_check_layout(lua_State *L, int index, pp_layout *out) {
  static const char *const known[] = { "tensor", "context", "expert", "expert_tensor", "data", "pipeline", "chunks", NULL };
  index = lua_absindex(L, index);
  pp_args_begin(L, index, layout_call, known);
  out->tensor = degree(L, index, "tensor");
  out->context = degree(L, index, "context");
  out->expert = degree(L, index, "expert");
  out->expert_tensor = degree(L, index, "expert_tensor");
  out->data = degree(L, index, "data");
  out->pipeline = degree(L, index, "pipeline");
  out->chunks = degree(L, index, "chunks");
  const double gpus = (double)out->tensor * out->context * out->data, experts = (double)out->expert * out->expert_tensor;
  if (gpus * out->pipeline > SIZE_LIMIT) luaL_error(L, "layout: %f GPUs are more than any cluster has", gpus * out->pipeline);
  if (fmod(gpus, experts) > 0)
    luaL_error(L, "layout: 'expert' × 'expert_tensor' = %f must divide the %f GPUs of a stage", experts, gpus);
}

void pp_check_communicators(lua_State *L, int index, const char *call, pp_communicators *out) {
  static const char table_call[] = "communicators";
  static const char *const names[PP_GROUPS] = {
    [PP_GROUP_WORLD] = "world", [PP_GROUP_TENSOR] = "tensor", [PP_GROUP_CONTEXT] = "context", [PP_GROUP_DATA] = "data",
    [PP_GROUP_MODEL] = "model", [PP_GROUP_OPTIMIZER] = "optimizer", [PP_GROUP_PIPELINE] = "pipeline", [PP_GROUP_PAIRS] = "pairs",
    [PP_GROUP_EMBEDDING] = "embedding", [PP_GROUP_DISPATCH] = "dispatch", [PP_GROUP_EXPERT] = "expert",
    [PP_GROUP_EXPERT_DATA] = "expert_data"
  };
  enum { SIZES = 5 };
  const char *known[SIZES + PP_GROUPS + 1] = { "one", "several", "messages", "peer", "node" };
  memcpy(known + SIZES, names, sizeof names);
  memset(out, 0, sizeof *out);
  if (!pp_args_has(L, index, "communicators")) return;
  pp_args_table(L, index, call, "communicators");
  const int table = lua_gettop(L);
  pp_args_begin(L, table, table_call, known);
  out->one = pp_args_number_or(L, table, table_call, "one", 0, HUGE_VAL, 0);
  out->several = pp_args_number_or(L, table, table_call, "several", 0, HUGE_VAL, 0);
  out->messages = pp_args_number_or(L, table, table_call, "messages", 0, HUGE_VAL, 0);
  out->peer = pp_args_number_or(L, table, table_call, "peer", 0, HUGE_VAL, 0);
  out->node = (int)pp_args_integer_or(L, table, table_call, "node", 0, SIZE_LIMIT, 0);
  for (int group = 0; group < PP_GROUPS; group++) out->has[group] = pp_args_boolean_or(L, table, table_call, names[group], false);
  lua_pop(L, 1);
}

static void check_host(lua_State *L, int index, pp_host *out) {
  static const char call[] = "device: host";
  static const char *const known[] = { "forward", "backward", "moe_forward", "moe_backward", "expert_forward", "expert_backward", "waiting", NULL };
  double *const fields[] = { &out->forward, &out->backward, &out->moe_forward, &out->moe_backward, &out->expert_forward, &out->expert_backward,
                             &out->waiting };
  *out = (pp_host){ 0, 0, 0, 0, 0, 0, 0 };
  if (!pp_args_has(L, index, "host")) return;
  pp_args_table(L, index, device_call, "host");
  const int table = lua_gettop(L);
  pp_args_begin(L, table, call, known);
  for (int i = 0; known[i]; i++) *fields[i] = pp_args_number_or(L, table, call, known[i], 0, i == 6 ? 1 : 1e6, 0);
  lua_pop(L, 1);
}

void pp_check_device(lua_State *L, int index, pp_device *out) {
  static const char *const known[] = {
    "flops", "flops_bf16", "memory_bandwidth", "gemm_efficiency", "grouped_gemm_efficiency", "grouped_gemm_half", "attention_efficiency",
    "product_depth", "product_floor", "grouped_rows", "grouped_floor", "attention_backward", "attention_half", "attention_half_backward",
    "attention_fill", "tensor_latency", "tensor_regather", "hidden_share", "alltoall_rate", "host",
    "memory_efficiency", "overlap_overhead", "hides_alltoall", "layer_latency", "routing_latency", "plain_routing_latency",
    "alltoall_latency", "pair_share",
    "host_link", "host_memory_bandwidth", NULL };
  static const double least = 1e-9, most = 1e30;
  index = lua_absindex(L, index);
  pp_args_begin(L, index, device_call, known);
  out->flops = pp_args_number(L, index, device_call, "flops", least, most);
  out->flops_bf16 = pp_args_number_or(L, index, device_call, "flops_bf16", least, most, out->flops);
  out->memory_bandwidth = pp_args_number(L, index, device_call, "memory_bandwidth", least, most);
  out->gemm_efficiency = pp_args_number(L, index, device_call, "gemm_efficiency", least, 1);
  out->grouped_gemm_efficiency = pp_args_number(L, index, device_call, "grouped_gemm_efficiency", least, 1);
  out->grouped_gemm_half = pp_args_number_or(L, index, device_call, "grouped_gemm_half", 0, 1e9, 0);
  out->attention_efficiency = pp_args_number(L, index, device_call, "attention_efficiency", least, 1);
  out->memory_efficiency = pp_args_number(L, index, device_call, "memory_efficiency", least, 1);
  out->overlap_overhead = pp_args_number_or(L, index, device_call, "overlap_overhead", 0, 100, 0);
  out->hides_alltoall = pp_args_boolean_or(L, index, device_call, "hides_alltoall", false);
  out->product_depth = pp_args_number_or(L, index, device_call, "product_depth", 0, 1e9, 0);
  out->product_floor = pp_args_number_or(L, index, device_call, "product_floor", 0, 1e6, 0);
  out->grouped_rows = pp_args_number_or(L, index, device_call, "grouped_rows", 0, 1e9, 0);
  out->grouped_floor = pp_args_number_or(L, index, device_call, "grouped_floor", 0, 1e6, 0);
  out->attention_backward = pp_args_number_or(L, index, device_call, "attention_backward", 0, 100, 0);
  out->attention_half = pp_args_number_or(L, index, device_call, "attention_half", 0, 1e9, 0);
  out->attention_half_backward = pp_args_number_or(L, index, device_call, "attention_half_backward", 0, 1e9, 0);
  out->attention_fill = pp_args_number_or(L, index, device_call, "attention_fill", 0, 1e9, 0);
  out->tensor_latency = pp_args_number_or(L, index, device_call, "tensor_latency", 0, 1e6, 0);
  out->tensor_regather = pp_args_number_or(L, index, device_call, "tensor_regather", 0, 1, 0);
  out->hidden_share = pp_args_number_or(L, index, device_call, "hidden_share", 0, 1, 0);
  out->alltoall_rate = pp_args_number_or(L, index, device_call, "alltoall_rate", least, most, 0);
  check_host(L, index, &out->host);
  out->layer_latency = pp_args_number_or(L, index, device_call, "layer_latency", 0, 1e6, 0);
  out->routing_latency = pp_args_number_or(L, index, device_call, "routing_latency", 0, 1e6, 0);
  out->plain_routing_latency = pp_args_number_or(L, index, device_call, "plain_routing_latency", 0, 1e6, 0);
  out->alltoall_latency = pp_args_number_or(L, index, device_call, "alltoall_latency", 0, 1e6, 0);
  out->pair_share = pp_args_number_or(L, index, device_call, "pair_share", 0, 1e6, 0);
  out->host_link = pp_args_number_or(L, index, device_call, "host_link", least, most, 0);
  out->host_memory_bandwidth = pp_args_number_or(L, index, device_call, "host_memory_bandwidth", least, most, 0);
}

void pp_check_link(lua_State *L, int index, const char *call, pp_measured_link *out) {
  static const char *const known[] = { "bandwidth", "latency", NULL };
  index = lua_absindex(L, index);
  pp_args_begin(L, index, call, known);
  out->bandwidth = pp_args_number(L, index, call, "bandwidth", 1e-9, 1e30);
  out->latency = pp_args_number_or(L, index, call, "latency", 0, 1e6, 0);
}

/* The tier's field `measured`, the tier being on top of the stack. */
static void check_measured(lua_State *L, pp_measured_link out[PP_TRANSFERS]) {
  static const char *const known[PP_TRANSFERS + 1] = { [PP_MESSAGE] = "message", [PP_RING] = "ring", [PP_ALLTOALL] = "alltoall" };
  static const char call[] = "network tier: measured";
  if (!pp_args_has(L, -1, "measured")) return;
  pp_args_table(L, -1, tier_call, "measured");
  const int index = lua_gettop(L);
  pp_args_begin(L, index, call, known);
  for (int i = 0; i < PP_TRANSFERS; i++) {
    if (!pp_args_has(L, index, known[i])) continue;
    pp_args_table(L, index, call, known[i]);
    pp_check_link(L, -1, call, &out[i]);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/* Its field `messages`. */
static void check_messages(lua_State *L, pp_message_table *out) {
  static const char call[] = "network tier: messages";
  static const char *const known[] = { "bytes", "seconds", NULL };
  if (!pp_args_has(L, -1, "messages")) return;
  pp_args_table(L, -1, tier_call, "messages");
  const lua_Integer count = luaL_len(L, -1);
  if (count < 1 || count > PP_MAX_MESSAGES) luaL_error(L, "%s: from 1 to %d sizes expected, got %d", call, PP_MAX_MESSAGES, (int)count);
  for (out->count = 0; out->count < count; out->count++) {
    const int i = out->count;
    lua_geti(L, -1, i + 1);
    pp_args_begin(L, lua_gettop(L), call, known);
    out->bytes[i] = pp_args_number(L, -1, call, "bytes", 1e-9, 1e30);
    out->seconds[i] = pp_args_number(L, -1, call, "seconds", 0, 1e6);
    lua_pop(L, 1);
    if (i > 0 && out->bytes[i] <= out->bytes[i - 1]) luaL_error(L, "%s: sizes must ascend: entry %d does not", call, i + 1);
  }
  lua_pop(L, 1);
}

/* The tier on top of the stack. */
static void check_tier(lua_State *L, pp_network *network, int number) {
  static const char *const known[] = { "reach", "bandwidth", "efficiency", "latency", "ring_latency", "measured", "messages", NULL };
  const int index = lua_gettop(L);
  pp_tier *out = &network->tier[number];
  pp_args_begin(L, index, tier_call, known);
  out->reach = (int)pp_args_integer(L, index, tier_call, "reach", 1, SIZE_LIMIT);
  out->bandwidth = pp_args_number(L, index, tier_call, "bandwidth", 1e-9, 1e30);
  out->efficiency = pp_args_number_or(L, index, tier_call, "efficiency", 1e-9, 10, 1);
  out->latency = pp_args_number_or(L, index, tier_call, "latency", 0, 1e6, 0);
  out->ring_latency = pp_args_number_or(L, index, tier_call, "ring_latency", 0, 1e6, 0);
  check_measured(L, network->measured[number]);
  check_messages(L, &network->messages[number]);
}

/* Its field `slower`: the network at an index. */
static void check_slower(lua_State *L, int index, double out[PP_TRAFFICS]) {
  static const char *const known[PP_TRAFFICS + 1] = { [PP_TRAFFIC_TENSOR] = "tensor", [PP_TRAFFIC_CONTEXT] = "context",
                                                      [PP_TRAFFIC_EXPERT] = "expert", [PP_TRAFFIC_DATA] = "data",
                                                      [PP_TRAFFIC_PIPELINE] = "pipeline" };
  static const char call[] = "network: slower";
  if (!pp_args_has(L, index, "slower")) return;
  pp_args_table(L, index, network_call, "slower");
  pp_args_begin(L, lua_gettop(L), call, known);
  for (int i = 0; i < PP_TRAFFICS; i++) out[i] = pp_args_number_or(L, lua_gettop(L), call, known[i], 1e-3, 1e3, 1);
  lua_pop(L, 1);
}

void pp_check_network(lua_State *L, int index, pp_network *out) {
  static const char *const known[] = { "tiers", "slower", NULL };
  index = lua_absindex(L, index);
  pp_args_begin(L, index, network_call, known);
  memset(out, 0, sizeof *out);
  pp_args_table(L, index, network_call, "tiers");
  const lua_Integer tiers = luaL_len(L, -1);
  if (tiers < 1 || tiers > PP_MAX_TIERS) luaL_error(L, "network: from 1 to %d tiers expected, got %d", PP_MAX_TIERS, (int)tiers);
  out->tiers = (int)tiers;
  for (int i = 0; i < out->tiers; i++) {
    lua_geti(L, -1, i + 1);
    check_tier(L, out, i);
    lua_pop(L, 1);
    if (i > 0 && out->tier[i].reach < out->tier[i - 1].reach)
      luaL_error(L, "network: tier %d reaches %d GPUs, fewer than the tier inside it", i + 1, out->tier[i].reach);
  }
  lua_pop(L, 1);
  check_slower(L, index, out->slower);
}

void pp_push_numbers(lua_State *L, const pp_named_number *fields) {
  lua_newtable(L);
  for (; fields->name; fields++) {
    lua_pushnumber(L, fields->value);
    lua_setfield(L, -2, fields->name);
  }
}

void pp_check_stage(lua_State *L, int index, const char *call, pp_stage *out) {
  index = lua_absindex(L, index);
  pp_args_begin(L, index, call, pp_block_names);
  for (int i = 0; i < PP_BLOCKS; i++) out->count[i] = (int)pp_args_integer_or(L, index, call, pp_block_names[i], 0, PP_MAX_LAYERS, 0);
}

void pp_check_layers(lua_State *L, int index, const char *call, int stages, int *out) {
  index = lua_absindex(L, index);
  if (lua_type(L, index) != LUA_TTABLE || luaL_len(L, index) != stages)
    luaL_error(L, "%s: 'layers_per_stage' must list %d stages", call, stages);
  for (int s = 0; s < stages; s++) {
    int integral;
    lua_geti(L, index, s + 1);
    const lua_Integer count = lua_tointegerx(L, -1, &integral);
    if (!integral || count < 0 || count > PP_MAX_LAYERS)
      luaL_error(L, "%s: 'layers_per_stage' must list integers from 0 to %d", call, PP_MAX_LAYERS);
    out[s] = (int)count;
    lua_pop(L, 1);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** cost.c: seconds of blocks, stages and pairs: the work of a block (work.h), timed.
**
** Sources: 2 FLOPs a multiply-add, backward for input and for weights as much as forward each (Narayanan et al. 2104.04473 appendix);
** fused attention's backward 2.5 times its forward, five products for two (FlashAttention-2 §3); TP traffic per layer from Korthikanti
** 2205.05198 §4.2; ring context parallelism hides behind attention (Megatron-LM context parallel guide).
*/
#include "core/cost.h"

#include <math.h>
#include <string.h>

#include "core/kernels.h"
#include "core/shards.h"
#include "core/work.h"

/* --- timing -------------------------------------------------------------------------------------------------------------------- */

static double moved(const pp_device *device, double bytes) {
  return pp_kernels_moved(device, bytes);
}

typedef enum { FORWARD, INPUT, WEIGHT } pass;

/*
** What the sizes of experts leave of their products' efficiency: a product of inner size K keeps K / (K + half), as filling and draining its
** pipeline does not shrink with K. Inner sizes: hidden for gate and up, the expert's width for down; for input the other way round; for
** weights the tokens of an expert. A gated expert has two products of three before its activation, a plain one of two.
*/
static double grouped_share(const pp_scene *at, pass which) {
  const pp_model *model = at->model;
  const double half = at->device->grouped_gemm_half, before = pp_work_gate_factor(model) / (pp_work_gate_factor(model) + 1);
  const double hidden = (double)pp_model_expert_hidden(model), width = (double)model->expert_ffn / at->layout->expert_tensor;
  const double ranks = (double)at->layout->expert * at->layout->expert_tensor;
  const double rows = at->tokens / at->tensor * ranks * pp_model_experts_per_token(model) / (double)model->experts;
  const double first = which == FORWARD ? hidden : which == INPUT ? pp_work_gate_factor(model) * width : rows;
  const double second = which == FORWARD ? width : which == INPUT ? hidden : rows;
  return 1 / (before * (1 + half / first) + (1 - before) * (1 + half / second));
}

/* Where a card's grouped products are known by their shapes. */
static double grouped_by_shape(const pp_scene *at, const pp_work *job, pass which, double bytes_per_weight) {
  const pp_model *model = at->model;
  const double width = (double)model->expert_ffn / at->layout->expert_tensor, hidden = (double)pp_model_expert_hidden(model);
  const double experts = (double)model->experts / at->layout->expert, before = pp_work_gate_factor(model) * width;
  const double rows = job->expert / (2 * (pp_work_gate_factor(model) + 1) * hidden * width);
  const pp_grouped_shape gate = { experts, rows, before, hidden, bytes_per_weight * experts * before * hidden };
  const pp_grouped_shape down = { experts, rows, hidden, width, bytes_per_weight * experts * width * hidden };
  const bool grouped = !at->training->unfused_experts;
  if (which == WEIGHT)
    return pp_kernels_grouped_weights(at->device, &gate, grouped) + pp_kernels_grouped_weights(at->device, &down, grouped);
  if (which == FORWARD) return pp_kernels_grouped(at->device, &gate, grouped) + pp_kernels_grouped(at->device, &down, grouped);
  const pp_grouped_shape gate_input = { experts, rows, hidden, before, gate.bytes }, down_input = { experts, rows, width, hidden, down.bytes };
  return pp_kernels_grouped(at->device, &gate_input, grouped) + pp_kernels_grouped(at->device, &down_input, grouped);
}

static double grouped_seconds(const pp_scene *at, const pp_work *job, pass which, double bytes_per_weight) {
  const pp_device *device = at->device;
  if (job->expert <= 0) return 0;
  if (device->grouped_rows > 0) return grouped_by_shape(at, job, which, bytes_per_weight);
  const double rate = device->flops * device->grouped_gemm_efficiency * grouped_share(at, which);
  return fmax(job->expert / rate, moved(device, bytes_per_weight * job->expert_weights));
}

/* One product forward, for input (n and k change places) or for weights (the tokens are its inner size). */
static double product_seconds(const pp_scene *at, const pp_product_shape *product, pass which, double bytes_per_weight) {
  pp_product_shape turned = *product;
  turned.peak = at->device->flops;
  turned.efficiency = at->device->gemm_efficiency;
  turned.bytes = bytes_per_weight * product->n * product->k;
  if (which == INPUT) turned.n = product->k, turned.k = product->n;
  if (which == WEIGHT) turned.m = product->n, turned.n = product->k, turned.k = product->m;
  return pp_kernels_product(at->device, &turned);
}

/* Dense products, and those kept in bf16; weights are read where they are used. */
static double products(const pp_scene *at, const pp_work *job, pass which, double bytes_per_weight, double bytes_per_kept_weight) {
  const pp_device *device = at->device;
  const double kept = job->kept / (device->flops_bf16 * device->gemm_efficiency), read = moved(device, bytes_per_kept_weight * job->kept_weights);
  double sum = which == WEIGHT ? kept : fmax(kept, read);
  for (int i = 0; i < job->products; i++) sum += product_seconds(at, &job->product[i], which, which == WEIGHT ? 0 : bytes_per_weight);
  return sum;
}

/* W reads and writes the gradients that it adds to. */
static double accumulated(const pp_scene *at, const pp_work *job, double bytes) {
  double weights = job->expert_weights + job->kept_weights;
  for (int i = 0; i < job->products; i++) weights += job->product[i].n * job->product[i].k;
  return moved(at->device, bytes * weights);
}

typedef struct {
  double seconds;        /* core attention, and `exposed` */
  double ring, exposed;  /* its ring of keys and values; what that takes beyond the core */
} attention_time;

/* Of a mixer's recurrence: at the speed of attention's products. Its backward is twice its forward. */
static double recurrence_seconds(const pp_scene *at, const pp_work *job, double factor) {
  return factor * job->recurrence / (at->device->flops_bf16 * at->device->attention_efficiency);
}

/* `factor` times the forward of core attention beside a ring of `passes` times keys and values; the own block needs no waiting. */
static attention_time time_attention(const pp_scene *at, const pp_work *job, double factor, double passes) {
  const double pieces = (double)at->model->heads / at->tensor * at->tokens / 128;
  const double core = pp_kernels_attention(at->device, factor * job->attention, job->length, pieces, factor > 1) +
                      recurrence_seconds(at, job, factor > 1 ? 2 : 1);
  const double ranks = at->layout->context;
  attention_time out;
  out.ring = pp_comm_slower(at->network, PP_TRAFFIC_CONTEXT) *
             pp_comm_allgather(at->network, at->layout->context, at->layout->tensor, passes * ranks * job->context_bytes);
  out.exposed = fmax(0, out.ring - core * (ranks - 1) / ranks);
  out.seconds = core + out.exposed;
  return out;
}

static void add_ring(pp_block_seconds *out, const attention_time *attention) {
  out->context += attention->ring;
  out->context_exposed += attention->exposed;
}

/* One dispatch or combine of what a rank sends. */
static double routing_seconds(const pp_scene *at, double bytes) {
  const pp_alltoall transfer = {
    .group = at->layout->expert,
    .stride = at->layout->expert_tensor,
    .tokens = at->tokens * at->training->expert_imbalance / at->tensor,
    .experts_per_token = pp_model_experts_per_token(at->model),
    .experts = at->model->experts,
    .rate = at->device->alltoall_rate,
    .max_domains = at->training->max_domains,
    .bytes_per_token = (double)pp_model_expert_hidden(at->model) * bytes,
    .flat = !at->device->hides_alltoall,
  };
  const double seconds = pp_comm_alltoall(at->network, &transfer);
  return seconds > 0 ? (seconds + at->device->alltoall_latency) * pp_comm_slower(at->network, PP_TRAFFIC_EXPERT) : 0;
}

/* Of an MoE layer, each way, beside its work. */
static double routing_latency(const pp_scene *at) {
  const pp_device *device = at->device;
  const bool plain = at->layout->expert > 1 && !device->hides_alltoall;
  return device->routing_latency + (plain ? device->plain_routing_latency : 0);
}

/* Expert TP gathers the dispatched tokens of its ranks and scatters the sums. */
static double expert_tensor_seconds(const pp_scene *at) {
  const double copies = pp_model_experts_per_token(at->model) * at->training->expert_imbalance / at->tensor;
  const double bytes = 2 * at->tokens * copies * (double)pp_model_expert_hidden(at->model) * at->layout->expert_tensor;
  return 2 * pp_comm_slower(at->network, PP_TRAFFIC_TENSOR) * pp_comm_allgather(at->network, at->layout->expert_tensor, 1, bytes);
}

static double sum_of(const pp_pass_terms *terms) {
  return terms->products + terms->grouped + terms->attention + terms->moved + terms->accumulated + terms->tensor + terms->ring + terms->latency +
         terms->recompute + terms->host;
}

/* W has about half as many kernels as I. */
static const double LAUNCHES_OF_WEIGHTS = 1.0 / 3;

/*
** A layer takes no less than its launches take the host; I and W together no less than those of backward, each its part of them where both
** would be shorter, for a host runs ahead from one into the other. Computing experts again launches what an MoE layer launches beyond a dense
** one. Where the host waits for the rows of experts in the middle of a layer, what it had launched ahead is lost: a share of the shorter of both
** comes on top.
*/
static void wait_for_host(const pp_scene *at, const pp_work *job, const pp_again *redo, pp_block_seconds *out, pp_pass_terms terms[PP_PASSES]) {
  const pp_host *host = &at->device->host;
  const bool moe = job->routings > 0, waits = moe && at->layout->expert > 1 && !at->device->hides_alltoall;
  const double alone = moe && at->training->unfused_experts ? (double)at->model->experts / at->layout->expert : 0;
  if (!job->layer) return;   /* the ends are a few large kernels */
  const double forward = (moe ? host->moe_forward : host->forward) + alone * host->expert_forward;
  const double rerun = redo->all ? forward : redo->experts ? fmax(0, forward - host->forward) : 0;
  const double backward = (moe ? host->moe_backward : host->backward) + alone * host->expert_backward;
  const double ahead = sum_of(&terms[FORWARD]) + out->alltoall_forward;
  const double back = sum_of(&terms[INPUT]) + sum_of(&terms[WEIGHT]) + out->alltoall_backward;
  const double late = fmax(0, backward + rerun - back);
  out->launch_forward = forward;
  out->launch_backward = backward + rerun;
  out->lost_forward = waits ? host->waiting * fmin(forward, ahead) : 0;
  out->lost_backward = waits ? host->waiting * fmin(backward + rerun, back) : 0;
  terms[FORWARD].host = fmax(0, forward - ahead) + out->lost_forward;
  terms[WEIGHT].host = fmin(late, fmax(0, LAUNCHES_OF_WEIGHTS * backward - sum_of(&terms[WEIGHT])));
  terms[INPUT].host = late - terms[WEIGHT].host + out->lost_backward;
}

/* Of I, what is computed again before it. */
static double recomputed(const pp_scene *at, const pp_work *job, const pp_again *redo, const pp_pass_terms *forward, const attention_time *ahead,
                         double weight, double experts_again) {
  const pp_device *device = at->device;
  if (redo->all) return sum_of(forward);
  double sum = redo->linear / (device->flops * device->gemm_efficiency) + redo->kept / (device->flops_bf16 * device->gemm_efficiency) +
               moved(device, redo->traffic) + redo->tensor_seconds;
  if (at->training->recompute.core_attention) sum += ahead->seconds + moved(device, job->attention > 0 ? at->tokens * pp_work_score_traffic(at) : 0);
  if (redo->experts) sum += grouped_seconds(at, job, FORWARD, weight) + experts_again;
  return sum;
}

/* Weights of a layer that a trainer's modules hold apart: projections of attention, of an MLP or of all experts together, of a router. */
static double weights_of_layer(const pp_model *model, bool moe) {
  const double feed_forward = moe || model->ffn > 0 ? pp_work_gate_factor(model) + 1 : 0;
  pp_product product[PP_MOST_PRODUCTS];
  double attention = model->attention == PP_ATTENTION_MLA ? (model->q_lora_rank > 0 ? 5 : 4) : 4;
  if (model->attention >= PP_ATTENTION_NONE)   /* the layer's products, but for those of its feed-forward: two */
    attention = pp_model_block_products(model, PP_BLOCK_DENSE, product) - (model->ffn > 0 ? 2 : 0);
  return attention + feed_forward + (moe ? 1 + (model->shared_ffn > 0 ? feed_forward : 0) : 0);
}

/* What TP and CP spend on traffic, in all passes. */
static void count_traffic(const pp_work *job, const pp_again *redo, double regather, double expert_tensor, bool ring_again, const attention_time *ahead,
                          const attention_time *back, pp_block_seconds *out) {
  out->tensor = 2 * (job->tensor_seconds + expert_tensor) + regather + redo->tensor_seconds;
  if (redo->all) out->tensor += job->tensor_seconds;
  if (redo->all || redo->experts) out->tensor += expert_tensor;
  add_ring(out, ahead);
  add_ring(out, back);
  if (ring_again) add_ring(out, ahead);
}

/*
** I: as many product FLOPs as F, attention's backward, the element-wise bytes of gradients beside values, F's collectives again in
** reverse, and before all that what is recomputed. W: the products once more, adding to gradients that are read and written.
*/
static void time_block(const pp_scene *at, const pp_work *job, const pp_again *redo, pp_block_seconds *out, pp_pass_terms terms[PP_PASSES]) {
  const pp_device *device = at->device;
  const pp_training *training = at->training;
  const double weight = training->precision == PP_FP8 ? 1 : 2;
  const double gradient = pp_shards_gradients(at->layout, training) ? 0 : 2 * training->gradient_bytes;   /* sharded ones are added up apart */
  const attention_time ahead = time_attention(at, job, 1, 1), back = time_attention(at, job, training->fused_attention ? 2.5 : 2, 2);
  const double regather = training->sequence_parallel ? device->tensor_regather * job->tensor_seconds / 2 : 0;
  const double layer = job->layer ? device->layer_latency : 0;   /* a head is no layer; W has about half as many kernels as F */
  const bool routed = job->routings > 0;
  const double routing = routed ? routing_latency(at) : 0, expert_tensor = routed ? expert_tensor_seconds(at) : 0;
  const double once = routed ? routing_seconds(at, training->dispatch_bytes) + routing_seconds(at, training->combine_bytes) : 0;
  out->alltoall_forward = job->routings * once;
  out->alltoall_backward = (redo->all || redo->experts ? 2 : 1) * out->alltoall_forward;
  terms[FORWARD] = (pp_pass_terms){
    .products = products(at, job, FORWARD, weight, 2), .grouped = grouped_seconds(at, job, FORWARD, weight),
    .attention = ahead.seconds - ahead.exposed, .ring = ahead.exposed, .moved = moved(device, job->traffic),
    .tensor = job->tensor_seconds + expert_tensor, .latency = layer + routing };
  terms[INPUT] = (pp_pass_terms){
    .products = products(at, job, INPUT, weight, 2), .grouped = grouped_seconds(at, job, INPUT, weight),
    .attention = back.seconds - back.exposed, .ring = back.exposed, .moved = moved(device, job->traffic_back),
    .tensor = job->tensor_seconds + expert_tensor + regather, .latency = layer + routing,
    .recompute = recomputed(at, job, redo, &terms[FORWARD], &ahead, weight, expert_tensor + routing) };
  const double trained = 1 - training->frozen;
  terms[WEIGHT] = (pp_pass_terms){
    .products = trained * products(at, job, WEIGHT, 0, 0), .grouped = trained * grouped_seconds(at, job, WEIGHT, 0),
    .accumulated = trained * accumulated(at, job, gradient),
    .latency = layer / 2,
    .recompute = redo->all && training->rerun_per_weight ? weights_of_layer(at->model, routed) * sum_of(&terms[FORWARD]) : 0 };
  count_traffic(job, redo, regather, expert_tensor, redo->all || training->recompute.core_attention, &ahead, &back, out);
  wait_for_host(at, job, redo, out, terms);
  out->forward = sum_of(&terms[FORWARD]);
  out->input = sum_of(&terms[INPUT]);
  out->weight = sum_of(&terms[WEIGHT]);
  out->host_forward = terms[FORWARD].host;
  out->host_backward = terms[INPUT].host + terms[WEIGHT].host;
}

/* A lookup: read a row, write it; W adds the gradient to its rows. */
static void time_embedding(const pp_scene *at, pp_block_seconds *out, pp_pass_terms terms[PP_PASSES]) {
  const double elements = at->tokens * (double)at->model->hidden / at->sequence, half = pp_work_tensor_region(at) / 2;
  terms[FORWARD] = (pp_pass_terms){ .moved = moved(at->device, 4 * elements), .tensor = half };
  terms[WEIGHT] = (pp_pass_terms){ .moved = moved(at->device, 2 * elements), .tensor = half,
                                   .accumulated = moved(at->device, 2 * at->training->gradient_bytes * elements) };
  out->forward = sum_of(&terms[FORWARD]);
  out->weight = sum_of(&terms[WEIGHT]);
  out->tensor = 2 * half;
}

/* --- checking ------------------------------------------------------------------------------------------------------------------ */

static pp_status bad_number(pp_error *error, const char *field, double value) {
  return pp_invalid(error, field, NAN, "'%s' must be a positive finite number, got %g", field, value);
}

static pp_status check_scene(const pp_training *training, const pp_device *device, const pp_network *network, pp_error *error) {
  const struct { const char *field; double value; } positive[] = {
    { "flops", device->flops },                             { "flops_bf16", device->flops_bf16 },
    { "memory_bandwidth", device->memory_bandwidth },       { "gemm_efficiency", device->gemm_efficiency },
    { "grouped_gemm_efficiency", device->grouped_gemm_efficiency },
    { "attention_efficiency", device->attention_efficiency },
    { "memory_efficiency", device->memory_efficiency },     { "sequence_length", (double)training->sequence_length },
    { "micro_batch", (double)training->micro_batch },       { "tiers", network->tiers },
    { "expert_imbalance", training->expert_imbalance },
  };
  for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
    if (!(positive[i].value > 0) || !isfinite(positive[i].value)) return bad_number(error, positive[i].field, positive[i].value);
  if (training->optimizer_offload > 0 && !(device->host_link > 0)) return bad_number(error, "host_link", device->host_link);
  if (training->optimizer_offload > 0 && !(device->host_memory_bandwidth > 0))
    return bad_number(error, "host_memory_bandwidth", device->host_memory_bandwidth);
  for (int i = 0; i < network->tiers; i++) {
    if (!(network->tier[i].bandwidth > 0)) return bad_number(error, "bandwidth", network->tier[i].bandwidth);
    if (!(network->tier[i].efficiency > 0)) return bad_number(error, "efficiency", network->tier[i].efficiency);
  }
  return PP_OK;
}

/* --- the interface ------------------------------------------------------------------------------------------------------------- */

double pp_cost_tokens(const pp_layout *layout, const pp_training *training) {
  return (double)(training->sequence_length * training->micro_batch) / layout->context;
}

static void add_terms(pp_pass_terms *sum, const pp_pass_terms *more) {
  sum->products += more->products;
  sum->grouped += more->grouped;
  sum->attention += more->attention;
  sum->moved += more->moved;
  sum->accumulated += more->accumulated;
  sum->tensor += more->tensor;
  sum->ring += more->ring;
  sum->latency += more->latency;
  sum->recompute += more->recompute;
  sum->host += more->host;
}

static void add_seconds(pp_block_seconds *sum, const pp_block_seconds *more) {
  sum->forward += more->forward;
  sum->input += more->input;
  sum->weight += more->weight;
  sum->alltoall_forward += more->alltoall_forward;
  sum->alltoall_backward += more->alltoall_backward;
  sum->tensor += more->tensor;
  sum->context += more->context;
  sum->context_exposed += more->context_exposed;
  sum->host_forward += more->host_forward;
  sum->host_backward += more->host_backward;
  sum->launch_forward += more->launch_forward;
  sum->launch_backward += more->launch_backward;
  sum->lost_forward += more->lost_forward;
  sum->lost_backward += more->lost_backward;
}

static void add_block(pp_block_seconds *sum, pp_pass_terms terms[PP_PASSES], const pp_block_seconds *more, const pp_pass_terms more_terms[PP_PASSES]) {
  add_seconds(sum, more);
  for (int i = 0; i < PP_PASSES; i++) add_terms(&terms[i], &more_terms[i]);
}

/* A decoder layer of some kind, or an MTP module without its head. */
static void time_layer(const pp_scene *of, pp_block block, const pp_block_flops *flops, const pp_block_parameters *parameters,
                       pp_block_seconds *out, pp_pass_terms terms[PP_PASSES]) {
  const pp_block layer = block == PP_BLOCK_MTP ? pp_model_last_block(of->model) : block;
  const bool moe = pp_model_block_is_moe(of->model, layer);
  pp_model room;
  pp_scene at = *of;
  at.model = pp_model_as(of->model, layer, &room);
  const pp_work job = block == PP_BLOCK_MTP ? pp_work_of_mtp(&at, of->model, flops, parameters, moe) : pp_work_of_layer(&at, flops, parameters, moe);
  const pp_again redo = pp_work_again(&at, flops, moe);
  time_block(&at, &job, &redo, out, terms);
}

pp_status pp_cost_blocks(const pp_model *model, const pp_layout *layout, const pp_training *training, const pp_device *device,
                         const pp_network *network, pp_block_seconds out[PP_BLOCKS], pp_pass_terms terms[PP_BLOCKS][PP_PASSES],
                         pp_error *error) {
  const pp_status status = check_scene(training, device, network, error);
  if (status != PP_OK) return status;
  const pp_scene at = {
    .model = model, .layout = layout, .training = training, .device = device, .network = network,
    .tokens = pp_cost_tokens(layout, training),
    .tensor = layout->tensor,
    .sequence = training->sequence_parallel ? layout->tensor : 1,
  };
  pp_block_flops flops[PP_BLOCKS];
  pp_block_parameters parameters[PP_BLOCKS];
  pp_model_kind_flops(model, pp_training_attended(training), flops);
  pp_model_kind_parameters(model, parameters);
  pp_pass_terms own[PP_BLOCKS][PP_PASSES];
  if (!terms) terms = own;
  memset(out, 0, PP_BLOCKS * sizeof *out);
  memset(terms, 0, sizeof own);

  time_embedding(&at, &out[PP_BLOCK_EMBEDDING], terms[PP_BLOCK_EMBEDDING]);
  for (int i = 0; i < PP_BLOCKS; i++)
    if (pp_model_has_layers_of(model, (pp_block)i)) time_layer(&at, (pp_block)i, &flops[i], &parameters[i], &out[i], terms[i]);
  const pp_work head = pp_work_of_head(&at);
  time_block(&at, &head, &(pp_again){ 0 }, &out[PP_BLOCK_HEAD], terms[PP_BLOCK_HEAD]);
  if (model->mtp_layers > 0) {
    time_layer(&at, PP_BLOCK_MTP, &flops[PP_BLOCK_MTP], &parameters[PP_BLOCK_MTP], &out[PP_BLOCK_MTP], terms[PP_BLOCK_MTP]);
    add_block(&out[PP_BLOCK_MTP], terms[PP_BLOCK_MTP], &out[PP_BLOCK_HEAD], terms[PP_BLOCK_HEAD]);
  }
  for (int i = PP_BLOCK_FURTHER; i < PP_BLOCK_FURTHER + model->kinds; i++) {
    const pp_block beside = pp_model_beside(model, (pp_block)i);
    if (beside < PP_BLOCKS) add_block(&out[i], terms[i], &out[beside], terms[beside]);
  }
  /* A whole backward computes a layer again once. */
  for (int i = 0; i < PP_BLOCKS; i++) out[i].full = out[i].input + out[i].weight - terms[i][WEIGHT].recompute;
  return PP_OK;
}

void pp_cost_stage(const pp_stage *stage, const pp_block_seconds blocks[PP_BLOCKS], pp_stage_seconds *out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < PP_BLOCKS; i++) {
    const double count = stage->count[i];
    if (stage->count[i] == 0) continue;
    out->forward += count * (blocks[i].forward + blocks[i].alltoall_forward);
    out->input += count * (blocks[i].input + blocks[i].alltoall_backward);
    out->weight += count * blocks[i].weight;
    out->full += count * (blocks[i].full + blocks[i].alltoall_backward);
    out->alltoall_forward += count * blocks[i].alltoall_forward;
    out->alltoall_backward += count * blocks[i].alltoall_backward;
    out->tensor += count * blocks[i].tensor;
    out->context += count * blocks[i].context;
    out->context_exposed += count * blocks[i].context_exposed;
    out->host_forward += count * blocks[i].host_forward;
    out->host_backward += count * blocks[i].host_backward;
    out->launch_forward += count * blocks[i].launch_forward;
    out->launch_backward += count * blocks[i].launch_backward;
    out->lost_forward += count * blocks[i].lost_forward;
    out->lost_backward += count * blocks[i].lost_backward;
  }
}

double pp_cost_pair(const pp_device *device, const pp_stage_seconds *forward, const pp_stage_seconds *backward) {
  const double alone = forward->forward + backward->full, longer = fmax(forward->forward, backward->full);
  const double alltoall = forward->alltoall_forward + backward->alltoall_backward;
  if (device->pair_share > 0) return fmax(device->pair_share * alone, longer);
  if (!device->hides_alltoall || alltoall <= 0) return alone;
  const double compute = alone - alltoall, share = device->hidden_share;
  const double pair = share > 0 ? alone - share * fmin(compute, alltoall) : fmax(compute, alltoall) + device->overlap_overhead * compute;
  const double launches = forward->launch_forward + backward->launch_backward, lost = forward->lost_forward + backward->lost_backward;
  return fmin(fmax(pair, fmax(longer, launches + (1 - share) * lost)), alone);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** price.c: costs of one layout's blocks. See price.h.
*/
#include "core/price.h"

#include <string.h>

#include "core/shards.h"

/* Costs as computed: with the all-to-all kernel or without, and with one copy. */
static pp_status computed(const pp_problem *problem, const pp_layout *layout, const pp_device *device, pp_block_seconds seconds[PP_BLOCKS],
                          pp_block_bytes bytes[PP_BLOCKS], pp_error *error) {
  const pp_status status = pp_cost_blocks(problem->model, layout, problem->training, device, problem->network, seconds, NULL, error);
  if (status != PP_OK) return status;
  return pp_memory_blocks(problem->model, layout, problem->training, 1, bytes, error);
}

/* Puts measured costs in the place of computed ones. */
static pp_status apply_profile(const pp_problem *problem, const pp_device *device, int kernel, pp_layout_costs *out, pp_error *error) {
  pp_block_seconds seconds[PP_BLOCKS];
  pp_block_bytes bytes[PP_BLOCKS];
  pp_profile_factors factors;
  pp_status status = computed(problem, &problem->profile->layout, device, seconds, bytes, error);
  if (status == PP_OK) status = pp_profile_factors_of(problem->profile, seconds, bytes, &factors, error);
  if (status != PP_OK) return status;
  pp_profile_scale_seconds(&factors, out->seconds[kernel]);
  out->pair_share = factors.pair_share;
  if (kernel == 0)
    for (int copies = 0; copies < 2; copies++) pp_profile_scale_bytes(&factors, out->bytes[copies]);
  return PP_OK;
}

/* Seconds with a custom all-to-all kernel, which takes so long a call beside its transfers, or without one. */
static pp_status fill_seconds(const pp_problem *problem, const pp_layout *layout, bool kernel, double kernel_latency, pp_layout_costs *out,
                              pp_error *error) {
  pp_device device = *problem->device;
  if (problem->profile) device.host = (pp_host){ 0, 0, 0, 0, 0, 0, 0 };   /* what was measured has its host's time in it */
  device.hides_alltoall = kernel;
  if (kernel) device.alltoall_latency = kernel_latency;
  pp_status status =
    pp_cost_blocks(problem->model, layout, problem->training, &device, problem->network, out->seconds[kernel], NULL, error);
  if (status == PP_OK && problem->profile) status = apply_profile(problem, &device, kernel, out, error);
  return status;
}

bool pp_price_same_seconds(const pp_training *training, const pp_layout *one, const pp_layout *other) {
  return one->tensor == other->tensor && one->context == other->context && one->expert == other->expert &&
         one->expert_tensor == other->expert_tensor && pp_shards_gradients(one, training) == pp_shards_gradients(other, training);
}

pp_status pp_price_kernel(const pp_problem *problem, const pp_layout *layout, double kernel_latency, const pp_layout_costs *alike,
                          pp_layout_costs *out, pp_error *error) {
  out->kernel_latency = kernel_latency;
  if (alike && alike->kernel_latency == kernel_latency) {
    memcpy(out->seconds[1], alike->seconds[1], sizeof out->seconds[1]);
    return PP_OK;
  }
  if (layout->expert > 1 || problem->profile) return fill_seconds(problem, layout, true, kernel_latency, out, error);
  memcpy(out->seconds[1], out->seconds[0], sizeof out->seconds[0]);   /* no all-to-all, no difference; what is profiled may have had one */
  return PP_OK;
}

pp_status pp_price_layout(const pp_problem *problem, const pp_layout *layout, double kernel_latency, const pp_layout_costs *alike,
                          pp_layout_costs *out, pp_error *error) {
  const pp_model *model = problem->model;
  pp_status status = PP_OK;
  if (problem->profile) alike = NULL;   /* it says what blocks hold, too */
  out->pair_share = 0;
  for (int i = 0; i < 2 && status == PP_OK; i++)
    status = pp_memory_blocks(model, layout, problem->training, i + 1, out->bytes[i], error);
  if (alike) memcpy(out->seconds[0], alike->seconds[0], sizeof out->seconds[0]);
  else if (status == PP_OK) status = fill_seconds(problem, layout, false, 0, out, error);
  if (status == PP_OK) status = pp_price_kernel(problem, layout, kernel_latency, alike, out, error);
  if (status != PP_OK) return status;
  out->hop = layout->pipeline > 1 ? pp_cost_hop(model, layout, problem->training, problem->network) : 0;
  out->waiting = problem->profile ? 0 : problem->hop_waiting * pp_cost_transfer(model, layout, problem->training, problem->network);
  out->hop -= out->waiting;
  pp_memory_parameters(model, layout, out->parameters);
  return PP_OK;
}

double pp_price_alltoall_fraction(const pp_model *model, const pp_layout_costs *costs, bool kernel) {
  pp_stage whole;
  pp_stage_seconds seconds;
  double sent, work;
  if (pp_layout_stages(model, 1, NULL, &whole, NULL) != PP_OK) return 0;
  pp_cost_stage(&whole, costs->seconds[kernel], &seconds);
  sent = seconds.alltoall_forward + seconds.alltoall_backward;
  work = seconds.forward + seconds.full;
  return work > 0 ? sent / work : 0;
}


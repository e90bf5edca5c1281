/*
** price.c: costs of one layout's blocks. See price.h.
*/
#include "core/price.h"

pp_status pp_price_layout(const pp_problem *problem, const pp_layout *layout, double kernel_latency, pp_layout_costs *out, pp_error *error) {
  const pp_model *model = problem->model;
  pp_device device = *problem->device;
  pp_status status = PP_OK;
  for (int i = 0; i < 2 && status == PP_OK; i++) {
    device.hides_alltoall = i == 1;
    if (i == 1) device.alltoall_latency = kernel_latency;
    status = pp_cost_blocks(model, layout, problem->training, &device, problem->network, out->seconds[i], error);
    if (status == PP_OK) status = pp_memory_blocks(model, layout, problem->training, i + 1, out->bytes[i], error);
  }
  if (status != PP_OK) return status;
  out->kernel_latency = kernel_latency;
  out->hop = layout->pipeline > 1 ? pp_cost_hop(model, layout, problem->training, problem->network) : 0;
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


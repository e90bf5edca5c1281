/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels.c: seconds of one kernel by its shape. See kernels.h.
*/
#include "core/kernels.h"

#include <math.h>

double pp_kernels_moved(const pp_device *device, double bytes) {
  return bytes / (device->memory_bandwidth * device->memory_efficiency);
}

double pp_kernels_product(const pp_device *device, const pp_product_shape *shape) {
  if (shape->m <= 0 || shape->n <= 0) return 0;
  const double flops = 2 * shape->m * shape->n * (shape->k + device->product_depth);
  return fmax(flops / (shape->peak * shape->efficiency), pp_kernels_moved(device, shape->bytes)) + device->product_floor;
}

/* Rows of one expert as its tiles cover them. */
static double covered(const pp_device *device, const pp_grouped_shape *shape) {
  return shape->rows / shape->experts + device->grouped_rows / 2;
}

/* Seconds of m × n × k of each expert: in one kernel, or in one for each. */
static double products_of_experts(const pp_device *device, const pp_grouped_shape *shape, double m, double n, double k, bool grouped) {
  const double rate = device->flops * device->grouped_gemm_efficiency;
  const double flops = 2 * shape->experts * m * n * (k + device->product_depth);
  const double least = fmax(flops / rate, pp_kernels_moved(device, shape->bytes));
  return least + (grouped ? device->grouped_floor : shape->experts * device->product_floor);
}

double pp_kernels_grouped(const pp_device *device, const pp_grouped_shape *shape, bool grouped) {
  if (shape->rows <= 0 || shape->experts <= 0) return 0;
  return products_of_experts(device, shape, covered(device, shape), shape->n, shape->k, grouped);
}

double pp_kernels_grouped_weights(const pp_device *device, const pp_grouped_shape *shape, bool grouped) {
  if (shape->rows <= 0 || shape->experts <= 0) return 0;
  return products_of_experts(device, shape, shape->n, shape->k, covered(device, shape), grouped);
}

double pp_kernels_attention(const pp_device *device, double flops, double length, double blocks, bool backward) {
  const double share = backward && device->attention_backward > 0 ? device->attention_backward : 1;
  const double half = backward ? device->attention_half_backward : device->attention_half;
  const double shape = (1 + half / length) * (1 + device->attention_fill / blocks);
  if (flops <= 0) return 0;
  return flops / (device->flops_bf16 * device->attention_efficiency * share) * shape;
}

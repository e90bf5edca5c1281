/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels_fit.c: see kernels_fit.h. The forms are those of kernels.c, asked with a rate of 1.
*/
#include "core/kernels_fit.h"

#include <math.h>
#include <stdlib.h>

#include "core/kernels.h"
#include "core/meter.h"

/* What is tried: inner sizes that filling takes, seconds of the smallest kernel, tokens and pieces at which attention reaches half. */
static const double depths[] = { 0, 16, 32, 64, 128, 256 };
static const double floors[] = { 0, 1e-6, 2e-6, 3e-6, 4e-6, 6e-6, 8e-6, 12e-6, 16e-6, 20e-6, 24e-6, 32e-6 };
static const double halves[] = { 0, 250, 500, 750, 1000, 1500, 2000, 3000, 4000 };
static const double fills[] = { 0, 50, 100, 150, 200, 300, 400 };

enum { TILE_ROWS = 128 };   /* of grouped products on the cards that were measured */
static const double BACKWARD_FLOPS = 2.5;   /* FlashAttention-2 §3 */

typedef struct {
  const double *first, *second;
  int firsts, seconds;
} grid;

#define LENGTH(list) ((int)(sizeof(list) / sizeof *(list)))

static grid grid_of(pp_kernel_form form, const pp_device *device) {
  switch (form) {
    case PP_FIT_PRODUCTS: return (grid){ depths, floors, LENGTH(depths), LENGTH(floors) };
    case PP_FIT_GROUPED: return (grid){ &device->product_depth, floors, 1, LENGTH(floors) };
    case PP_FIT_ATTENTION: return (grid){ halves, fills, LENGTH(halves), LENGTH(fills) };
    default: return (grid){ halves, &device->attention_fill, LENGTH(halves), 1 };
  }
}

/* What comes on top of a kernel's work, whatever the rate. */
static double beside(pp_kernel_form form, double second) {
  return form == PP_FIT_PRODUCTS || form == PP_FIT_GROUPED ? second : 0;
}

/* What a rate of 1 would take, without what comes on top. */
static double amount(pp_kernel_form form, const pp_measured_kernel *row, double first, double second) {
  const pp_device unit = {
    .flops = 1, .flops_bf16 = 1, .memory_bandwidth = 1, .memory_efficiency = 1, .grouped_gemm_efficiency = 1, .attention_efficiency = 1,
    .product_depth = first, .grouped_rows = TILE_ROWS, .attention_half = first, .attention_half_backward = first, .attention_fill = second,
  };
  const pp_product_shape product = { row->m, row->n, row->k, 1, 1, 0 };
  const pp_grouped_shape grouped = { row->experts, row->rows, row->n, row->k, 0 };
  switch (form) {
    case PP_FIT_PRODUCTS: return pp_kernels_product(&unit, &product);
    case PP_FIT_GROUPED: return pp_kernels_grouped(&unit, &grouped, true);
    case PP_FIT_ATTENTION: return pp_kernels_attention(&unit, row->flops, row->length, row->pieces, false);
    default: return pp_kernels_attention(&unit, BACKWARD_FLOPS * row->flops, row->length, row->pieces, true);
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, ascending);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

typedef struct {
  double rate, first, second, error;
} found;

/* The rate at a point of the grid, and how far the form then is from what was measured. */
static found attempt(pp_kernel_form form, const pp_measured_kernel *rows, int count, double first, double second, double *rates) {
  const double top = beside(form, second);
  found out = { .first = first, .second = second };
  for (int i = 0; i < count; i++)
    rates[i] = amount(form, &rows[i], first, second) / fmax(rows[i].seconds - top, 0.05 * rows[i].seconds);
  out.rate = median(rates, count);
  for (int i = 0; i < count; i++)
    out.error += fabs(log((amount(form, &rows[i], first, second) / out.rate + top) / rows[i].seconds)) / count;
  return out;
}

static void fill(pp_kernel_form form, const found *best, pp_device *device) {
  switch (form) {
    case PP_FIT_PRODUCTS:
      device->gemm_efficiency = fmin(1, best->rate / device->flops);
      device->product_depth = best->first;
      device->product_floor = best->second;
      return;
    case PP_FIT_GROUPED:
      device->grouped_gemm_efficiency = fmin(1, best->rate / device->flops);
      device->grouped_rows = TILE_ROWS;
      device->grouped_floor = best->second;
      return;
    case PP_FIT_ATTENTION:
      device->attention_efficiency = fmin(1, best->rate / device->flops_bf16);
      device->attention_half = best->first;
      device->attention_fill = best->second;
      return;
    default:
      device->attention_backward = best->rate / (device->attention_efficiency * device->flops_bf16);
      device->attention_half_backward = best->first;
  }
}

pp_status pp_kernels_fit(pp_kernel_form form, const pp_measured_kernel *rows, int count, pp_device *device, double *error, pp_error *problem) {
  double *rates = pp_allocate_zeros((size_t)count * sizeof *rates);
  const grid tried = grid_of(form, device);
  found best = { .error = INFINITY };
  if (!rates) return pp_fail(problem, PP_NO_MEMORY, "not enough memory for %d kernels", count);
  for (int a = 0; a < tried.firsts; a++)
    for (int b = 0; b < tried.seconds; b++) {
      const found now = attempt(form, rows, count, tried.first[a], tried.second[b], rates);
      if (now.error < best.error - 1e-12) best = now;
    }
  pp_free(rates);
  fill(form, &best, device);
  *error = best.error;
  return PP_OK;
}

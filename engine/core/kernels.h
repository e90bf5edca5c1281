/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels.h: seconds of one kernel by its shape: products, experts' grouped products, attention, and what only moves bytes. What a card
** reaches is in pp_device; where it says nothing of a shape (0) every shape of a kind runs at the same rate.
*/
#ifndef PP_KERNELS_H
#define PP_KERNELS_H

#include <stdbool.h>

#include "core/device.h"

/* y[m, n] += x[m, k] · w[k, n] at one precision. */
typedef struct {
  double m, n, k;
  double peak, efficiency;  /* of the card at that precision */
  double bytes;             /* moved beside, such as its weights: it takes no less than they do */
} pp_product_shape;

/*
** 2·m·n·(k + depth) FLOPs at the product's rate, but no less than its bytes take, and product_floor: filling and draining a tile's pipeline
** takes as long as `depth` more of k would; the floor is what the smallest takes. On an H200 within 9 % (mean of 120 products timed inside
** CUDA graphs, m 512 … 16,384, n and k 512 … 16,384), where one rate for all is 13 % off.
*/
double pp_kernels_product(const pp_device *device, const pp_product_shape *shape);

/* Grouped products of experts: `experts` on this GPU, `rows` tokens in all, of products k → n. */
typedef struct {
  double experts, rows, n, k;
  double bytes;             /* of the weights of one product of all experts: no less than they take */
} pp_grouped_shape;

/*
** One grouped product forward or for input. Rows of an expert are padded to whole tiles: half a tile of device->grouped_rows each. Without
** `grouped` a product an expert, one after the other.
*/
double pp_kernels_grouped(const pp_device *device, const pp_grouped_shape *shape, bool grouped);

/* Its gradient for weights: experts products of n × k over the rows of each, without what adding to the gradients moves. */
double pp_kernels_grouped_weights(const pp_device *device, const pp_grouped_shape *shape, bool grouped);

/*
** Core attention of FLOPs over `blocks` pieces of 128 queries of one head, in sequences of that length: slower where few pieces fill the card
** (by attention_fill) and where each is short (attention_half). backward: 2.5 times the FLOPs (FlashAttention-2 §3) at its own rate.
*/
double pp_kernels_attention(const pp_device *device, double flops, double length, double blocks, bool backward);

/* Bytes of element-wise kernels. */
double pp_kernels_moved(const pp_device *device, double bytes);

#endif

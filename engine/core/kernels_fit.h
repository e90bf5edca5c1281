/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels_fit.h: from times of kernels to what a card reaches: the numbers of pp_device with which the forms of kernels.h are nearest to what
** was measured.
*/
#ifndef PP_KERNELS_FIT_H
#define PP_KERNELS_FIT_H

#include "core/device.h"
#include "core/error.h"

typedef enum { PP_FIT_PRODUCTS, PP_FIT_GROUPED, PP_FIT_ATTENTION, PP_FIT_ATTENTION_BACKWARD, PP_FITS } pp_kernel_form;

/* One measured kernel; what its form does not read is 0. */
typedef struct {
  double m, n, k;                        /* of a product */
  double experts, rows;                  /* of a grouped one, of n × k */
  double flops, length, pieces;          /* of attention: forward's FLOPs, tokens of a sequence, pieces of 128 queries of a head */
  double seconds;
} pp_measured_kernel;

/*
** Fills of *device what the form is made of, keeps the rest; what a grouped product has in common with a dense one and backward with forward
** must be there before. A form has one or two numbers beside its rate: they are tried on a grid, and the rate is the median that the
** measurements imply, so that one wild time does no harm; the best is that of the least mean |log(form / measured)|, which is *error.
** device->flops and flops_bf16 are the peaks that efficiencies are shares of, 1 at most. PP_NO_MEMORY.
*/
pp_status pp_kernels_fit(pp_kernel_form form, const pp_measured_kernel *rows, int count, pp_device *device, double *error, pp_error *problem);

#endif

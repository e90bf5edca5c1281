/* SPDX-License-Identifier: Apache-2.0 */
/*
** training.c: see training.h.
*/
#include "core/training.h"

#include <math.h>

/*
** An fp8 cache of activations (below 2 bytes an element): DeepSeek-V3 report, section 3.3.2: 12 bits of what attention writes, for its own
** backward reads it too; weights' gradients are added in place. fp8 is dispatched in tiles with one fp32 scale for 128 elements.
*/
void pp_training_defaults(pp_training *training) {
  const bool cached = training->activation_bytes < 2;
  training->attention_output_bytes = cached ? 1.5 : 2;
  training->activation_input_bytes = cached ? training->activation_bytes : 2;
  training->weight_gradient_bytes = cached ? 0 : 2;
  training->dispatch_bytes = training->precision == PP_FP8 ? 1 + 4.0 / 128 : 2;
  training->combine_bytes = 2;
}

double pp_training_attended(const pp_training *training) {
  const double sequence = (double)training->sequence_length;
  return training->document_length > 0 ? fmin(training->document_length, sequence) : sequence;
}

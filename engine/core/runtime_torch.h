/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_torch.h: the lowerings of PyTorch's runtimes: see runtime_torch.c. Internal to engine/core.
*/
#ifndef PP_RUNTIME_TORCH_H
#define PP_RUNTIME_TORCH_H

#include "core/lowering.h"

void pp_lower_torch_single(pp_lowering *lowering);
size_t pp_lower_torch_multi_bytes(pp_lowering *lowering);          /* of scratch memory, zeros, that it wants: */
void pp_lower_torch_multi(pp_lowering *lowering, void *scratch);

#endif

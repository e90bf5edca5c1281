/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_megatron.h: the lowering of megatron-core's schedules: see runtime_megatron.c. Internal to engine/core.
*/
#ifndef PP_RUNTIME_MEGATRON_H
#define PP_RUNTIME_MEGATRON_H

#include "core/lowering.h"

void pp_lower_megatron(pp_lowering *lowering);

#endif

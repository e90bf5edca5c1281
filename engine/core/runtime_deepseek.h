/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime_deepseek.h: the lowering of DeepSeek's package: see runtime_deepseek.c. Internal to engine/core.
*/
#ifndef PP_RUNTIME_DEEPSEEK_H
#define PP_RUNTIME_DEEPSEEK_H

#include "core/lowering.h"

void pp_lower_deepseek(pp_lowering *lowering);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
** shards.h: who holds which part of a state that data parallelism shards.
*/
#ifndef PP_SHARDS_H
#define PP_SHARDS_H

#include <stdbool.h>

#include "core/layout.h"
#include "core/training.h"

/* What is sharded of a stage's state in this layout. Without reshard a pipeline keeps parameters and gradients whole over its microbatches. */
bool pp_shards_parameters(const pp_layout *layout, const pp_training *training);
bool pp_shards_gradients(const pp_layout *layout, const pp_training *training);

/* Bytes of an accumulated gradient, and of a parameter as it is gathered. */
double pp_shards_gradient_bytes(const pp_layout *layout, const pp_training *training);
double pp_shards_gathered_bytes(const pp_training *training);

/* GPUs over which state is sharded: data × context of them, or of one replica (HSDP); and those that hold the same experts, likewise. */
double pp_shards_ranks(const pp_layout *layout, const pp_training *training, bool experts);

#endif

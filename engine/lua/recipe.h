/* SPDX-License-Identifier: Apache-2.0 */
/*
** recipe.h: training recipe, layout, device and network as Lua tables: keys are the fields of the C structs. May longjmp.
*/
#ifndef PP_LUA_RECIPE_H
#define PP_LUA_RECIPE_H

#include <lua.h>

#include "core/comm.h"
#include "core/communicators.h"
#include "core/cost.h"
#include "core/layout.h"
#include "core/training.h"

/*
** Required: precision ("bf16", "fp8", "fp16", "fp32"), sequence_length, parameter_bytes, gradient_bytes, master_bytes, moment_bytes.
** Absent: micro_batch 1; switches false; recompute = {} none; activation_bytes 2, combine_bytes 2, expert_imbalance 1, max_domains 0;
** dispatch_bytes as the products are: fp8 with a 4-byte scale for every 128 elements, else 2. With activation_bytes under 2 what is cached
** beside linear inputs follows DeepSeek-V3's report: attention_output_bytes 1.5, activation_input_bytes = activation_bytes,
** weight_gradient_bytes 0; otherwise each is 2.
*/
void pp_check_training(lua_State *L, int index, pp_training *out);

/* tensor, context, expert, expert_tensor, data, pipeline, chunks: each 1 when absent. Experts have to divide what they lie over. */
void pp_check_layout(lua_State *L, int index, pp_layout *out);

/* Required: all but grouped_gemm_half, overlap_overhead, all latencies (0) and hides_alltoall (false); flops_bf16 is flops when absent. */
void pp_check_device(lua_State *L, int index, pp_device *out);

/* { tiers = { { reach, bandwidth, efficiency (1), latency (0), measured = { message, ring, alltoall = { bandwidth, latency } }, messages =
** { { bytes, seconds }, … } }, … } }, from the innermost outwards; what is measured may be absent. */
void pp_check_network(lua_State *L, int index, pp_network *out);
/* { bandwidth, latency (0) } */
void pp_check_link(lua_State *L, int index, const char *call, pp_measured_link *out);

/* The argument communicators of the table at that index: { one, several, messages, peer (0), node (0), and true for each group that is
** communicated in, by the names of pp_communicators }; all 0 when absent. */
void pp_check_communicators(lua_State *L, int index, const char *call, pp_communicators *out);

/* Pushes a table with a number per field; `fields` ends with a NULL name. */
typedef struct {
  const char *name;
  double value;
} pp_named_number;

void pp_push_numbers(lua_State *L, const pp_named_number *fields);

/* The list of whole numbers of layers at that index, 0 … PP_MAX_LAYERS for each of `stages` stages, into out[stages]. */
void pp_check_layers(lua_State *L, int index, const char *call, int stages, int *out);

/* Names of the kinds of block, and how many of each a stage holds: { embedding, dense, moe, head, mtp }, each 0 when absent. */
extern const char *const pp_block_names[PP_BLOCKS + 1];
/* The blocks that a model may have, from the first: those of no further kind, and its own. */
int pp_blocks_of(const pp_model *model);
/* { embedding = …, dense = …, moe = …, head = …, mtp = …, kind_1 = …, … }: how many of each; a further kind only where there is one. */
void pp_push_stage(lua_State *L, const pp_stage *stage);
void pp_check_stage(lua_State *L, int index, const char *call, pp_stage *out);

#endif

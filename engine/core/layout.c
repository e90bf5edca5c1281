/* SPDX-License-Identifier: Apache-2.0 */
/*
** layout.c: which blocks each stage of a pipeline holds. See layout.h.
*/
#include "core/layout.h"

#include <math.h>
#include <string.h>

#include "core/meter.h"

int pp_layout_expert_data(const pp_layout *layout) {
  return layout->tensor * layout->context * layout->data / (layout->expert * layout->expert_tensor);
}

int pp_stage_layers(const pp_stage *stage) {
  int sum = 0;
  for (int i = 0; i < PP_BLOCKS; i++) sum += i == PP_BLOCK_DENSE || i == PP_BLOCK_MOE || i >= PP_BLOCK_FURTHER ? stage->count[i] : 0;
  return sum;
}

/*
** Stages get one layer less in this order: last, first, last but one, second, …: the ends carry embedding, head and MTP beside their layers
** (Llama-3 405B gives its first and last stage one layer less for the same reason; report §3.3.2).
*/
int pp_layout_even(int layers, int stages, int stage) {
  const int each = layers / stages, more = layers % stages;
  const int from_the_ends = stage < stages / 2 ? 2 * stage + 1 : 2 * (stages - 1 - stage);
  return each + (more > 0 && from_the_ends >= stages - more);
}

/* out[s].count[DENSE] = layers of stage s; which kind they are is decided afterwards. */
static void spread_evenly(int layers, int stages, pp_stage *out) {
  for (int s = 0; s < stages; s++) out[s].count[PP_BLOCK_DENSE] = pp_layout_even(layers, stages, s);
}

static pp_status spread_as_given(int layers, int stages, const int *layers_per_stage, pp_stage *out, pp_error *error) {
  int64_t sum = 0;
  for (int s = 0; s < stages; s++) {
    if (layers_per_stage[s] < 0) return pp_fail(error, PP_INVALID, "stage %d would have %d layers", s + 1, layers_per_stage[s]);
    sum += layers_per_stage[s];
    out[s].count[PP_BLOCK_DENSE] = layers_per_stage[s];
  }
  if (sum != layers)
    return pp_fail(error, PP_INVALID, "layers_per_stage adds up to %lld, the model has %d layers", (long long)sum, layers);
  return PP_OK;
}

pp_status pp_layout_stages(const pp_model *model, int stages, const int *layers_per_stage, pp_stage *out, pp_error *error) {
  const int layers = (int)model->layers;
  int layer = 0;
  if (stages < 1) return pp_fail(error, PP_INVALID, "stages must be at least 1, got %d", stages);
  pp_spend(8 * (uint64_t)stages + (uint64_t)layers);
  memset(out, 0, (size_t)stages * sizeof *out);
  if (layers_per_stage) {
    const pp_status status = spread_as_given(layers, stages, layers_per_stage, out, error);
    if (status != PP_OK) return status;
  } else {
    if (layers + PP_EMPTY_ENDS < stages)
      return pp_illegal(error, "engine.layers_below_stages", "stages", layers, "%d layers cannot fill %d pipeline stages", layers, stages);
    spread_evenly(layers, stages, out);
  }
  for (int s = 0; s < stages; s++) {
    const int count = out[s].count[PP_BLOCK_DENSE];
    out[s].count[PP_BLOCK_DENSE] = 0;
    for (int i = 0; i < count; i++, layer++) out[s].count[pp_model_block_of(model, layer)]++;
  }
  out[0].count[PP_BLOCK_EMBEDDING] = 1;
  out[stages - 1].count[PP_BLOCK_HEAD] = 1;
  out[stages - 1].count[PP_BLOCK_MTP] = (int)model->mtp_layers;
  return PP_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** profile.c: from measured stages to factors of blocks. See profile.h.
*/
#include "core/profile.h"

#include <math.h>

#define MOST_FASTER 0.5   /* assumed: what a layer takes at least of what is computed; a few layers of a stage have the noise of all of it */

static bool is_inner(const pp_stage *stage) {
  return stage->count[PP_BLOCK_EMBEDDING] + stage->count[PP_BLOCK_HEAD] + stage->count[PP_BLOCK_MTP] == 0;
}

/* One quantity: as measured of stage s, and as computed of one block of each kind. */
typedef struct {
  const pp_profile *profile;
  double measured[PP_MAX_LAYERS], computed[PP_BLOCKS];
  bool largest;   /* of a stage it is the largest of its blocks, not their sum */
  bool alike;     /* layers of all kinds take the same */
} quantity;

static bool is_layer(int block) {
  return block == PP_BLOCK_DENSE || block == PP_BLOCK_MOE || block >= PP_BLOCK_FURTHER;
}

static bool is_head(int block) {
  return block == PP_BLOCK_HEAD || block == PP_BLOCK_MTP;
}

static bool is_embedding(int block) {
  return block == PP_BLOCK_EMBEDDING;
}

/* What the blocks of a stage that `wanted` says cost as computed, times `factors` where there are any. */
static double cost_of(const quantity *of, const pp_stage *stage, bool (*wanted)(int), const double *factors) {
  double sum = 0, most = 0;
  for (int block = 0; block < PP_BLOCKS; block++) {
    if (!wanted(block) || stage->count[block] == 0) continue;
    const double one = of->computed[block] * (factors ? factors[block] : 1);
    sum += stage->count[block] * one;
    most = fmax(most, one);
  }
  return of->largest ? most : sum;
}

static double layer_factor(const quantity *of) {
  double measured = 0, computed = 0, least = INFINITY;
  for (int s = 0; s < of->profile->stages; s++) {
    const pp_stage *stage = &of->profile->stage[s].blocks;
    const double layers = cost_of(of, stage, is_layer, NULL);
    if (isnan(of->measured[s]) || !(layers > 0)) continue;
    least = fmin(least, of->measured[s] / layers);
    if (!is_inner(stage)) continue;
    measured += of->measured[s];
    computed += layers;
  }
  if (computed > 0) return measured / computed;
  return isinf(least) ? 1 : least;
}

/* Kinds of layers that stages with ends alone hold, and that make these slower than they were measured: what is left for them beside the
** other layers, but no less than MOST_FASTER of what is computed. What is more may be the end's. */
static void fit_kinds_of_ends(const quantity *of, double layers, double factors[PP_BLOCKS]) {
  bool inner[PP_BLOCKS] = { false }, any = false;
  double left = 0, computed = 0;
  for (int s = 0; s < of->profile->stages; s++) {
    const pp_stage *stage = &of->profile->stage[s].blocks;
    any = any || is_inner(stage);
    for (int block = 0; block < PP_BLOCKS; block++) inner[block] = inner[block] || (is_inner(stage) && stage->count[block] > 0);
  }
  if (!any || of->largest || of->alike) return;
  for (int s = 0; s < of->profile->stages; s++) {
    const pp_stage *stage = &of->profile->stage[s].blocks;
    double here = 0, others = 0;
    for (int block = 0; block < PP_BLOCKS; block++)
      if (is_layer(block)) *(inner[block] ? &others : &here) += stage->count[block] * of->computed[block];
    if (!(of->measured[s] > 0) || !(here > 0)) continue;   /* a first stage's I may be nothing: its W has all of B */
    left += of->measured[s] - layers * others;
    computed += here;
  }
  if (!(computed > 0)) return;
  const double fitted = fmin(layers, fmax(MOST_FASTER, left / computed));
  for (int block = 0; block < PP_BLOCKS; block++)
    if (is_layer(block) && !inner[block]) factors[block] = fitted;
}

/* What the blocks of an end took beyond the layers of the stages that hold them, over the same computed; 1 where no stage does. A
** stage with both ends does not tell them apart: all of it is the head's, which is the larger. */
static double end_factor(const quantity *of, const double factors[PP_BLOCKS], bool (*end)(int)) {
  double measured = 0, computed = 0;
  bool held = false;
  for (int s = 0; s < of->profile->stages; s++) {
    const pp_stage *stage = &of->profile->stage[s].blocks;
    const double here = cost_of(of, stage, end, NULL), beyond = of->measured[s] - cost_of(of, stage, is_layer, factors);
    if (isnan(of->measured[s]) || !(here > 0)) continue;
    held = true;
    if (end == is_embedding && stage->count[PP_BLOCK_HEAD] > 0) continue;
    if (beyond > 0) measured += of->largest ? of->measured[s] : beyond;
    computed += here;
  }
  return computed > 0 ? measured / computed : held ? 0 : 1;
}

static bool is_measured(const quantity *of) {
  for (int s = 0; s < of->profile->stages; s++)
    if (!isnan(of->measured[s])) return true;
  return false;
}

static void find_factors(const quantity *of, double out[PP_BLOCKS]) {
  const double layers = layer_factor(of);
  for (int i = 0; i < PP_BLOCKS; i++) out[i] = layers;
  fit_kinds_of_ends(of, layers, out);
  out[PP_BLOCK_EMBEDDING] = end_factor(of, out, is_embedding);
  out[PP_BLOCK_HEAD] = out[PP_BLOCK_MTP] = end_factor(of, out, is_head);
}

static double backward_of(const pp_block_seconds *block) {
  return block->full + block->alltoall_backward;
}

/* One block's computed costs, as they are measured. */
static void computed_costs(const pp_block_seconds *seconds, const pp_block_bytes *bytes, double out[PP_MEASURED_QUANTITIES]) {
  out[PP_MEASURED_FORWARD] = seconds->forward + seconds->alltoall_forward;
  out[PP_MEASURED_FULL] = backward_of(seconds);
  out[PP_MEASURED_INPUT] = seconds->input + seconds->alltoall_backward;
  out[PP_MEASURED_WEIGHT] = seconds->weight;
  out[PP_MEASURED_PARAMETERS] = bytes->state.parameters;
  out[PP_MEASURED_GRADIENTS] = bytes->state.gradients;
  out[PP_MEASURED_STORED] = bytes->stored;
  out[PP_MEASURED_PENDING] = bytes->pending;
  out[PP_MEASURED_TRANSIENT] = bytes->transient;
}

static pp_status bad(pp_error *error, const char *field, int stage, double value, const char *problem) {
  return pp_invalid(error, field, NAN, "stage %d: '%s' is %g: %s", stage, field, value, problem);
}

static pp_status check(const pp_profile *profile, pp_error *error) {
  int layers = 0;
  for (int s = 0; s < profile->stages; s++) {
    const double *of = profile->stage[s].of, full = of[PP_MEASURED_FULL];
    const bool both = !isnan(of[PP_MEASURED_INPUT]) && !isnan(of[PP_MEASURED_WEIGHT]);
    if (!(of[PP_MEASURED_FORWARD] > 0)) return bad(error, "F", s, of[PP_MEASURED_FORWARD], "more than 0 expected");
    if (!(full > 0)) return bad(error, "B", s, full, "more than 0 expected");
    if (!both && of[PP_MEASURED_INPUT] > full) return bad(error, "I", s, of[PP_MEASURED_INPUT], "more than B, nothing is left for W");
    if (!both && of[PP_MEASURED_WEIGHT] > full) return bad(error, "W", s, of[PP_MEASURED_WEIGHT], "more than B, nothing is left for I");
    layers += pp_stage_layers(&profile->stage[s].blocks);
  }
  return layers > 0 ? PP_OK : bad(error, "layers", 0, 0, "no stage of the profile holds a layer");
}

/* A stage's quantity; of I and W the one that is missing is what the other leaves of B. */
static double measured_of(const pp_profile_stage *stage, pp_measured_quantity which) {
  const bool input = which == PP_MEASURED_INPUT, split = input || which == PP_MEASURED_WEIGHT;
  if (!split || !isnan(stage->of[which])) return stage->of[which];
  return stage->of[PP_MEASURED_FULL] - stage->of[input ? PP_MEASURED_WEIGHT : PP_MEASURED_INPUT];   /* NAN when both are missing */
}

pp_status pp_profile_factors_of(const pp_profile *profile, const pp_block_seconds seconds[PP_BLOCKS],
                                const pp_block_bytes bytes[PP_BLOCKS], pp_profile_factors *out, pp_error *error) {
  double costs[PP_BLOCKS][PP_MEASURED_QUANTITIES], pairs = 0, apart = 0;
  const pp_status status = check(profile, error);
  if (status != PP_OK) return status;
  for (int block = 0; block < PP_BLOCKS; block++) computed_costs(&seconds[block], &bytes[block], costs[block]);
  for (int which = 0; which < PP_MEASURED_QUANTITIES; which++) {
    quantity of = { .profile = profile, .largest = which == PP_MEASURED_TRANSIENT };
    const bool split = which == PP_MEASURED_INPUT || which == PP_MEASURED_WEIGHT;
    for (int block = 0; block < PP_BLOCKS; block++) of.computed[block] = costs[block][which];
    for (int s = 0; s < profile->stages; s++) of.measured[s] = measured_of(&profile->stage[s], (pp_measured_quantity)which);
    if (is_measured(&of)) find_factors(&of, out->of[which]);
    else for (int block = 0; block < PP_BLOCKS; block++) out->of[which][block] = split ? out->of[PP_MEASURED_FULL][block] : 1;
  }
  for (int s = 0; s < profile->stages; s++) {
    const pp_profile_stage *stage = &profile->stage[s];
    if (isnan(stage->pair)) continue;
    pairs += stage->pair;
    apart += stage->of[PP_MEASURED_FORWARD] + stage->of[PP_MEASURED_FULL];
  }
  out->pair_share = apart > 0 ? pairs / apart : 0;
  return PP_OK;
}

/* Collectives are part of forward and backward, and take what these take. */
void pp_profile_scale_seconds(const pp_profile_factors *factors, pp_block_seconds blocks[PP_BLOCKS]) {
  for (int i = 0; i < PP_BLOCKS; i++) {
    pp_block_seconds *block = &blocks[i];
    const double before = block->forward + backward_of(block), full = backward_of(block) * factors->of[PP_MEASURED_FULL][i];
    block->forward *= factors->of[PP_MEASURED_FORWARD][i];
    block->alltoall_forward *= factors->of[PP_MEASURED_FORWARD][i];
    block->input *= factors->of[PP_MEASURED_INPUT][i];
    block->alltoall_backward *= factors->of[PP_MEASURED_INPUT][i];
    block->weight *= factors->of[PP_MEASURED_WEIGHT][i];
    block->full = fmax(0, full - block->alltoall_backward);
    const double change = before > 0 ? (block->forward + backward_of(block)) / before : 1;
    block->tensor *= change;
    block->context *= change;
    block->context_exposed *= change;
    block->host_forward *= factors->of[PP_MEASURED_FORWARD][i];
    block->host_backward *= factors->of[PP_MEASURED_INPUT][i];
    block->launch_forward *= factors->of[PP_MEASURED_FORWARD][i];
    block->launch_backward *= factors->of[PP_MEASURED_INPUT][i];
    block->lost_forward *= factors->of[PP_MEASURED_FORWARD][i];
    block->lost_backward *= factors->of[PP_MEASURED_INPUT][i];
  }
}

void pp_profile_scale_bytes(const pp_profile_factors *factors, pp_block_bytes blocks[PP_BLOCKS]) {
  for (int i = 0; i < PP_BLOCKS; i++) {
    blocks[i].state.parameters *= factors->of[PP_MEASURED_PARAMETERS][i];
    blocks[i].state.gradients *= factors->of[PP_MEASURED_GRADIENTS][i];
    blocks[i].stored *= factors->of[PP_MEASURED_STORED][i];
    blocks[i].pending *= factors->of[PP_MEASURED_PENDING][i];
    blocks[i].transient *= factors->of[PP_MEASURED_TRANSIENT][i];
  }
}

static void four_of(const pp_stage_times *times, double four[4]) {
  four[0] = times->forward;
  four[1] = times->input;
  four[2] = times->weight;
  four[3] = times->full;
}

static bool any_holds(const pp_profile *profile, int from, int to) {
  for (int s = 0; s < profile->stages; s++)
    for (int block = from; block <= to; block++)
      if (profile->stage[s].blocks.count[block] > 0) return true;
  return false;
}

/* Of a kind of action, 0 … 3: what a host takes of each block. */
static void seconds_of_blocks(const pp_profile *profile, int kind, double out[PP_BLOCKS]) {
  quantity of = { .profile = profile, .alike = true };
  for (int block = 0; block < PP_BLOCKS; block++) of.computed[block] = 1;
  for (int s = 0; s < profile->stages; s++) {
    double seconds[4];
    four_of(&profile->stage[s].host.seconds, seconds);
    of.measured[s] = seconds[kind];
  }
  find_factors(&of, out);
  if (!any_holds(profile, PP_BLOCK_EMBEDDING, PP_BLOCK_EMBEDDING)) out[PP_BLOCK_EMBEDDING] = 0;
  if (!any_holds(profile, PP_BLOCK_HEAD, PP_BLOCK_MTP)) out[PP_BLOCK_HEAD] = out[PP_BLOCK_MTP] = 0;
}

void pp_profile_hosts_of(const pp_profile *profile, pp_profile_hosts *out) {
  *out = (pp_profile_hosts){ .experts_wait = any_holds(profile, PP_BLOCK_MOE, PP_BLOCK_MOE) };
  for (int kind = 0; kind < 4; kind++) seconds_of_blocks(profile, kind, out->seconds[kind]);
  for (int s = 0; s < profile->stages; s++) {
    const pp_profile_stage *stage = &profile->stage[s];
    const bool waits[] = { stage->host.forward_waits, stage->host.input_waits, stage->host.weight_waits, stage->host.full_waits };
    double beyond[4];
    four_of(&stage->host.beyond, beyond);
    for (int kind = 0; kind < 4; kind++) {
      out->waits[kind] = out->waits[kind] || waits[kind];
      out->beyond[kind] += beyond[kind] / profile->stages;
    }
  }
}

void pp_profile_host_of_stage(const pp_profile_hosts *hosts, const pp_stage *blocks, pp_host_times *out) {
  double seconds[4] = { 0, 0, 0, 0 };
  const double *beyond = hosts->beyond;
  const bool waits = !hosts->experts_wait || blocks->count[PP_BLOCK_MOE] > 0;
  for (int kind = 0; kind < 4; kind++)
    for (int block = 0; block < PP_BLOCKS; block++) seconds[kind] += blocks->count[block] * hosts->seconds[kind][block];
  *out = (pp_host_times){ .seconds = { seconds[0], seconds[1], seconds[2], seconds[3] }, .beyond = { beyond[0], beyond[1], beyond[2], beyond[3] },
                          .forward_waits = waits && hosts->waits[0], .input_waits = waits && hosts->waits[1],
                          .weight_waits = waits && hosts->waits[2], .full_waits = waits && hosts->waits[3] };
}

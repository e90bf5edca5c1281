/* SPDX-License-Identifier: Apache-2.0 */
/*
** split.c: balancing stages. See split.h.
*/
#include "core/split.h"

#include <math.h>

enum { MOST_MOVES = 64 };

/* What there is to spread: the first `layers` layers of the model over the first `given.stages` stages of all. */
typedef struct {
  const pp_model *model;
  const pp_block_weights *weights;
  pp_split given;
  int layers;
  bool whole;   /* are these all stages? the last one then has the head */
} spreading;

static int fewest_of(const spreading *job, int stage) {
  bool end = stage == 0 || (job->whole && stage == job->given.stages - 1);
  return end && job->given.empty_ends ? 0 : 1;
}

/* What the first and the last stage execute beside layers. */
static double ends_of(const spreading *job, int stage) {
  const double *seconds = job->weights->seconds;
  double sum = 0;
  if (stage == 0) sum += seconds[PP_BLOCK_EMBEDDING];
  if (job->whole && stage == job->given.stages - 1) sum += seconds[PP_BLOCK_HEAD] + (double)job->model->mtp_layers * seconds[PP_BLOCK_MTP];
  return sum;
}

static double layer_seconds(const spreading *job, int layer) {
  return job->weights->seconds[pp_model_block_of(job->model, layer)];
}

/* The group with least to do that may take another layer, or −1. Unless `outer`, the last of equals: early ranks hold the most microbatches,
** and are the better for a layer less. */
static int lightest(const pp_split *given, const double *load, const int *held) {
  int best = -1;
  for (int g = 0; g < given->groups; g++) {
    if (given->most && held[g] >= given->most[g]) continue;
    if (best < 0 || load[g] < load[best] || (load[g] == load[best] && !given->outer)) best = g;
  }
  return best;
}

/* The one stage of a group where each has its own, in their order; else −1. */
static int only_stage(const spreading *job, int group) {
  return job->given.groups == job->given.stages && job->given.group_of[group] == group ? group : -1;
}

/* The stage of a group that the next layer goes to: the one with least, the last of equals. */
static int stage_for_more(const spreading *job, int group, const int *layers, const double *stage_load) {
  int best = only_stage(job, group);
  if (best >= 0) return best;
  for (int s = 0; s < job->given.stages; s++) {
    if (job->given.group_of[s] != group) continue;
    if (best < 0 || (job->given.share == PP_SHARE_LAYERS ? layers[s] <= layers[best] : stage_load[s] <= stage_load[best])) best = s;
  }
  return best;
}

/* The stage of a group that a layer is taken from: the one with most, the first of equals; −1: each has only what it keeps. */
static int stage_for_less(const spreading *job, int group, const int *layers, const double *stage_load) {
  int best = only_stage(job, group);
  if (best >= 0) return layers[best] > fewest_of(job, best) ? best : -1;
  for (int s = 0; s < job->given.stages; s++) {
    if (job->given.group_of[s] != group || layers[s] <= fewest_of(job, s)) continue;
    if (best < 0 || (job->given.share == PP_SHARE_LAYERS ? layers[s] > layers[best] : stage_load[s] > stage_load[best])) best = s;
  }
  return best;
}

/* Layers taken as equal: what each stage keeps, then one by one to the lightest group. */
static void spread(const spreading *job, int *layers, int *held) {
  double each = 0, load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS];
  int left = job->layers;
  for (int g = 0; g < job->given.groups; g++) {
    held[g] = 0;
    load[g] = 0;
  }
  for (int i = 0; i < job->layers; i++) each += layer_seconds(job, i) / job->layers;
  for (int s = 0; s < job->given.stages; s++) {
    int group = job->given.group_of[s];
    layers[s] = fewest_of(job, s);
    stage_load[s] = ends_of(job, s) + layers[s] * each;
    load[group] += stage_load[s];
    held[group] += layers[s];
    left -= layers[s];
  }
  for (; left > 0; left--) {
    const int group = lightest(&job->given, load, held), stage = stage_for_more(job, group, layers, stage_load);
    held[group]++;
    load[group] += each;
    layers[stage]++;
    stage_load[stage] += each;
  }
}

static void true_loads(const spreading *job, const int *layers, double *load, double *stage_load) {
  for (int g = 0; g < job->given.groups; g++) load[g] = 0;
  for (int s = 0, layer = 0; s < job->given.stages; s++) {
    stage_load[s] = ends_of(job, s);
    for (int i = 0; i < layers[s]; i++) stage_load[s] += layer_seconds(job, layer++);
    load[job->given.group_of[s]] += stage_load[s];
  }
}

static int heaviest(const double *load, int groups) {
  int best = 0;
  for (int g = 1; g < groups; g++)
    if (load[g] > load[best]) best = g;
  return best;
}

static void move_layer(const spreading *job, int *layers, int *held, int from, int to) {
  layers[from]--;
  held[job->given.group_of[from]]--;
  layers[to]++;
  held[job->given.group_of[to]]++;
}

static void balance(const spreading *job, int *layers) {
  const int groups = job->given.groups;
  double load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS];
  int held[PP_MAX_LAYERS];
  spread(job, layers, held);
  /* Dense and MoE layers differ: move single layers while that lightens the heaviest group. */
  true_loads(job, layers, load, stage_load);
  for (int move = 0; move < MOST_MOVES; move++) {
    int heavy, light, from, to;
    double before;
    heavy = heaviest(load, groups);
    light = lightest(&job->given, load, held);
    if (light < 0 || light == heavy) return;
    before = load[heavy];
    from = stage_for_less(job, heavy, layers, stage_load);
    to = stage_for_more(job, light, layers, stage_load);
    if (from < 0) return;
    move_layer(job, layers, held, from, to);
    true_loads(job, layers, load, stage_load);
    if (load[heaviest(load, groups)] < before * (1 - 1e-12)) continue;
    move_layer(job, layers, held, to, from);
    return;
  }
}

void pp_split_layers(const pp_model *model, const pp_block_weights *weights, const pp_split *split, int *layers) {
  const spreading job = { model, weights, *split, (int)model->layers, true };
  balance(&job, layers);
}

void pp_split_forward(const pp_model *model, const pp_block_weights *weights, int stages, bool empty_ends, double tie, int *layers) {
  int alone[PP_MAX_LAYERS], kept = 0, layer = 0;
  double load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS];
  for (int s = 0; s < stages; s++) alone[s] = s;
  const spreading job = { model, weights, { stages, alone, stages, PP_SHARE_TIME, NULL, empty_ends, false }, (int)model->layers, true };
  true_loads(&job, layers, load, stage_load);
  const double most = load[heaviest(load, stages)] * (1 + tie);
  for (int s = 0; s < stages; s++) kept += fewest_of(&job, s);
  for (int s = 0; s < stages; s++) {
    double here = ends_of(&job, s);
    kept -= fewest_of(&job, s);
    for (layers[s] = 0; layer < job.layers - kept; layer++, layers[s]++) {
      const bool room = here + layer_seconds(&job, layer) <= most || layers[s] < fewest_of(&job, s) || s == stages - 1;
      if (!room) break;
      here += layer_seconds(&job, layer);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------------------- phases */

/* Sum over chunks of the heaviest of its stages. */
static double round_seconds(const spreading *whole, int ranks, const int *layers) {
  double load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS], sum = 0;
  true_loads(whole, layers, load, stage_load);
  for (int first = 0; first < whole->given.stages; first += ranks) sum += stage_load[first + heaviest(stage_load + first, ranks)];
  return sum;
}

/* No more than round_seconds of those stages of the last chunk with `rest` layers before them, however these are spread: the chunks before
** the last take no less than their mean, and, where layers are of two kinds at most, no less than one kind of layer does: with n of it on the
** fullest stages of all chunks together there are at most ranks × n. */
static double round_seconds_bound(const spreading *whole, int ranks, int rest, const double *before, const int *moe_before,
                                  const int *layers) {
  const double *seconds = whole->weights->seconds;
  const int last = whole->given.stages - 1, moe = moe_before[rest];
  const double moe_seconds = (moe + ranks - 1) / ranks * seconds[PP_BLOCK_MOE];
  const double dense_seconds = (rest - moe + ranks - 1) / ranks * seconds[PP_BLOCK_DENSE];
  double heaviest_stage = 0;
  for (int s = last - ranks + 1, layer = rest; s <= last; s++) {
    heaviest_stage = fmax(heaviest_stage, ends_of(whole, s) + before[layer + layers[s]] - before[layer]);
    layer += layers[s];
  }
  const double one_kind = whole->model->kinds > 0 ? 0 : fmax(moe_seconds, dense_seconds);
  return heaviest_stage + fmax((ends_of(whole, 0) + before[rest]) / ranks, one_kind);
}

/* The stages of the last chunk get `each_stage` layers, the last of them as many as its ends leave time for. Returns how many in all. */
static int fill_last_chunk(const spreading *whole, int ranks, int each_stage, double each, int *layers) {
  const int last = whole->given.stages - 1, fewest = fewest_of(whole, last);
  const double room = each > 0 ? each_stage - ends_of(whole, last) / each : each_stage;
  for (int s = last - ranks + 1; s < last; s++) layers[s] = each_stage;
  layers[last] = room > fewest ? (int)(room * (1 + 1e-12)) : fewest;
  return (ranks - 1) * each_stage + layers[last];
}

void pp_split_phases(const pp_model *model, const pp_block_weights *weights, int ranks, int chunks, bool empty_ends, int *layers) {
  int alone[PP_MAX_LAYERS], trial[PP_MAX_LAYERS];
  const int stages = ranks * chunks, total = (int)model->layers;
  double each = weights->seconds[pp_model_last_block(model)], least = INFINITY;
  double before[PP_MAX_LAYERS + 1];   /* seconds of so many first layers, and how many of them are MoE layers */
  int moe_before[PP_MAX_LAYERS + 1];
  before[0] = moe_before[0] = 0;
  for (int s = 0; s < stages; s++) alone[s] = s;
  spreading whole = { model, weights, { stages, alone, stages, PP_SHARE_TIME, NULL, empty_ends, false }, total, true };
  spreading rest = whole;
  rest.given.stages = rest.given.groups = stages - ranks;
  rest.whole = false;
  balance(&whole, layers);
  least = round_seconds(&whole, ranks, layers);
  for (int i = 0; i < total; i++) {
    before[i + 1] = before[i] + layer_seconds(&whole, i);
    moe_before[i + 1] = moe_before[i] + model->moe[i];
  }
  for (int each_stage = 1; each_stage <= total; each_stage++) {
    double seconds;
    rest.layers = total - fill_last_chunk(&whole, ranks, each_stage, each, trial);
    if (each_stage * each >= least || rest.layers < stages - ranks) return;
    /* sums of a thousand layers round by less than this */
    if (round_seconds_bound(&whole, ranks, rest.layers, before, moe_before, trial) * (1 - 5e-13) >= least * (1 - 1e-12)) continue;
    balance(&rest, trial);
    seconds = round_seconds(&whole, ranks, trial);
    if (seconds >= least * (1 - 1e-12)) continue;
    least = seconds;
    for (int s = 0; s < stages; s++) layers[s] = trial[s];
  }
}

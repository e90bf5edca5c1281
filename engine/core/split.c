/*
** split.c: balancing stages. See split.h.
*/
#include "core/split.h"

#include <math.h>

enum { MOST_MOVES = 64 };

/* What the first and the last stage execute beside layers. */
static double ends_of(const pp_model *model, const pp_block_weights *weights, int stage, int stages) {
  double seconds = 0;
  if (stage == 0) seconds += weights->seconds[PP_BLOCK_EMBEDDING];
  if (stage == stages - 1) seconds += weights->seconds[PP_BLOCK_HEAD] + (double)model->mtp_layers * weights->seconds[PP_BLOCK_MTP];
  return seconds;
}

static double layer_seconds(const pp_model *model, const pp_block_weights *weights, int layer) {
  return weights->seconds[model->moe[layer] ? PP_BLOCK_MOE : PP_BLOCK_DENSE];
}

/* The group with least to do that may take another layer, or −1. The last of equals: early ranks hold the most microbatches, and are the
** better for a layer less. */
static int lightest(const double *load, const int *held, int groups, const int *most) {
  int best = -1;
  for (int g = 0; g < groups; g++)
    if ((!most || held[g] < most[g]) && (best < 0 || load[g] <= load[best])) best = g;
  return best;
}

/* The stage of a group that the next layer goes to: the one with least, the last of equals. */
static int stage_for_more(int stages, const int *group_of, int group, pp_split_share share, const int *layers, const double *stage_load) {
  int best = -1;
  for (int s = 0; s < stages; s++) {
    if (group_of[s] != group) continue;
    if (best < 0 || (share == PP_SHARE_LAYERS ? layers[s] <= layers[best] : stage_load[s] <= stage_load[best])) best = s;
  }
  return best;
}

/* The stage of a group that a layer is taken from: the one with most, the first of equals; −1: each has only one. */
static int stage_for_less(int stages, const int *group_of, int group, pp_split_share share, const int *layers, const double *stage_load) {
  int best = -1;
  for (int s = 0; s < stages; s++) {
    if (group_of[s] != group || layers[s] <= 1) continue;
    if (best < 0 || (share == PP_SHARE_LAYERS ? layers[s] > layers[best] : stage_load[s] > stage_load[best])) best = s;
  }
  return best;
}

/* The load that all groups would have if `more` were poured over them: groups above it get nothing. */
static double level_of(const double *load, int groups, double more) {
  double level = INFINITY;
  for (;;) {
    double sum = more;
    int below = 0;
    for (int g = 0; g < groups; g++)
      if (load[g] < level) {
        sum += load[g];
        below++;
      }
    /* Leaving out what stands above a level lowers it, until nothing is left out any more. */
    if (below == 0 || sum / below >= level) return level;
    level = sum / below;
  }
}

/* Layers taken as equal: one each, then as many as fit under the common level, then one by one to the lightest group. */
static void spread(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups,
                   pp_split_share share, const int *most, int *layers, int *held) {
  double each = 0, level, load[PP_MAX_LAYERS] = { 0 }, stage_load[PP_MAX_LAYERS];
  int left = (int)model->layers - stages, wanted[PP_MAX_LAYERS] = { 0 };
  for (int g = 0; g < groups; g++) held[g] = 0;
  for (int i = 0; i < model->layers; i++) each += layer_seconds(model, weights, i) / (double)model->layers;
  for (int s = 0; s < stages; s++) {
    stage_load[s] = ends_of(model, weights, s, stages) + each;
    load[group_of[s]] += stage_load[s];
    layers[s] = 1;
    held[group_of[s]]++;
  }
  level = level_of(load, groups, each * left);
  for (int g = 0; g < groups && each > 0; g++) {
    int fitting = load[g] < level ? (int)((level - load[g]) / each) : 0;
    if (most && fitting > most[g] - held[g]) fitting = most[g] - held[g];
    wanted[g] = fitting < left ? fitting : left;
    held[g] += wanted[g];
    load[g] += wanted[g] * each;
    left -= wanted[g];
  }
  for (; left > 0; left--) {
    int g = lightest(load, held, groups, most);
    wanted[g]++;
    held[g]++;
    load[g] += each;
  }
  for (int g = 0; g < groups; g++)
    for (; wanted[g] > 0; wanted[g]--) {
      int s = stage_for_more(stages, group_of, g, share, layers, stage_load);
      layers[s]++;
      stage_load[s] += each;
    }
}

static void true_loads(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups,
                       const int *layers, double *load, double *stage_load) {
  for (int g = 0; g < groups; g++) load[g] = 0;
  for (int s = 0, layer = 0; s < stages; s++) {
    stage_load[s] = ends_of(model, weights, s, stages);
    for (int i = 0; i < layers[s]; i++) stage_load[s] += layer_seconds(model, weights, layer++);
    load[group_of[s]] += stage_load[s];
  }
}

static int heaviest(const double *load, int groups) {
  int best = 0;
  for (int g = 1; g < groups; g++)
    if (load[g] > load[best]) best = g;
  return best;
}

static void move_layer(int *layers, int *held, const int *group_of, int from, int to) {
  layers[from]--;
  held[group_of[from]]--;
  layers[to]++;
  held[group_of[to]]++;
}

void pp_split_layers(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups,
                     pp_split_share share, const int *most, int *layers) {
  double load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS];
  int held[PP_MAX_LAYERS];
  spread(model, weights, stages, group_of, groups, share, most, layers, held);
  /* Dense and MoE layers differ: move single layers while that lightens the heaviest group. */
  for (int move = 0; move < MOST_MOVES; move++) {
    int heavy, light, from, to;
    double before;
    true_loads(model, weights, stages, group_of, groups, layers, load, stage_load);
    heavy = heaviest(load, groups);
    light = lightest(load, held, groups, most);
    if (light < 0 || light == heavy) return;
    before = load[heavy];
    from = stage_for_less(stages, group_of, heavy, share, layers, stage_load);
    to = stage_for_more(stages, group_of, light, share, layers, stage_load);
    if (from < 0) return;
    move_layer(layers, held, group_of, from, to);
    true_loads(model, weights, stages, group_of, groups, layers, load, stage_load);
    if (load[heaviest(load, groups)] < before * (1 - 1e-12)) continue;
    move_layer(layers, held, group_of, to, from);
    return;
  }
}

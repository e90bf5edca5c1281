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

/* The last of equals: early ranks hold the most microbatches, and are the better for a layer less. */
static int lightest(const double *load, int count) {
  int best = 0;
  for (int i = 1; i < count; i++)
    if (load[i] <= load[best]) best = i;
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
static void spread(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups, int *layers) {
  double each = 0, level, load[PP_MAX_LAYERS] = { 0 }, stage_load[PP_MAX_LAYERS];
  int left = (int)model->layers - stages, wanted[PP_MAX_LAYERS] = { 0 };
  for (int i = 0; i < model->layers; i++) each += layer_seconds(model, weights, i) / (double)model->layers;
  for (int s = 0; s < stages; s++) {
    stage_load[s] = ends_of(model, weights, s, stages) + each;
    load[group_of[s]] += stage_load[s];
    layers[s] = 1;
  }
  level = level_of(load, groups, each * left);
  for (int g = 0; g < groups && each > 0; g++) {
    int fitting = load[g] < level ? (int)((level - load[g]) / each) : 0;
    wanted[g] = fitting < left ? fitting : left;
    load[g] += wanted[g] * each;
    left -= wanted[g];
  }
  for (; left > 0; left--) {
    int g = lightest(load, groups);
    wanted[g]++;
    load[g] += each;
  }
  /* Within a group to the lightest of its stages. */
  for (int g = 0; g < groups; g++)
    for (; wanted[g] > 0; wanted[g]--) {
      int best = -1;
      for (int s = 0; s < stages; s++)
        if (group_of[s] == g && (best < 0 || stage_load[s] <= stage_load[best])) best = s;
      layers[best]++;
      stage_load[best] += each;
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

static double most(const double *load, int count) {
  double most_load = 0;
  for (int i = 0; i < count; i++) most_load = fmax(most_load, load[i]);
  return most_load;
}

/* The heaviest group's stage with most to give (it keeps one layer), or −1; the lightest group's lightest stage. */
static int giver(const double *load, int groups, const double *stage_load, int stages, const int *group_of, const int *layers) {
  int heavy = 0, best = -1;
  for (int g = 1; g < groups; g++)
    if (load[g] > load[heavy]) heavy = g;
  for (int s = 0; s < stages; s++)
    if (group_of[s] == heavy && layers[s] > 1 && (best < 0 || stage_load[s] > stage_load[best])) best = s;
  return best;
}

static int taker(const double *load, int groups, const double *stage_load, int stages, const int *group_of) {
  int light = lightest(load, groups), best = -1;
  for (int s = 0; s < stages; s++)
    if (group_of[s] == light && (best < 0 || stage_load[s] <= stage_load[best])) best = s;
  return best;
}

void pp_split_layers(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups, int *layers) {
  double load[PP_MAX_LAYERS], stage_load[PP_MAX_LAYERS];
  spread(model, weights, stages, group_of, groups, layers);
  /* Dense and MoE layers differ: move single layers while that lightens the heaviest group. */
  for (int move = 0; move < MOST_MOVES; move++) {
    int from, to;
    double before;
    true_loads(model, weights, stages, group_of, groups, layers, load, stage_load);
    before = most(load, groups);
    from = giver(load, groups, stage_load, stages, group_of, layers);
    to = taker(load, groups, stage_load, stages, group_of);
    if (from < 0 || to < 0 || from == to) return;
    layers[from]--;
    layers[to]++;
    true_loads(model, weights, stages, group_of, groups, layers, load, stage_load);
    if (most(load, groups) < before * (1 - 1e-12)) continue;
    layers[from]++;
    layers[to]--;
    return;
  }
}

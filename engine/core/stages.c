/* SPDX-License-Identifier: Apache-2.0 */
/*
** stages.c: splits of a model over a candidate's stages. See stages.h.
*/
#include "core/stages.h"

#include <math.h>
#include <string.h>

int pp_stages_count(const pp_candidate *candidate) {
  return candidate->layout.pipeline * candidate->layout.chunks;
}

const pp_schedule_traits *pp_stages_traits(const pp_candidate *candidate) {
  return candidate->kind == PP_NO_SCHEDULE ? NULL : pp_schedule_traits_of((pp_schedule_kind)candidate->kind);
}

bool pp_stages_overlap_alone(const pp_priced *of) {
  const pp_training *training = of->problem->training;
  return !pp_stages_traits(of->candidate) && training->overlap_alone && of->candidate->layout.expert > 1 && of->candidate->microbatches > 1 &&
         !training->recompute.full && !training->recompute.moe;
}

int pp_stages_ranks(const pp_candidate *candidate, int stage, int rank[2]) {
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  int ranks = candidate->layout.pipeline, position = stage % ranks, chunk = stage / ranks;
  bool upward = traits && traits->placement == PP_PLACE_V && chunk % 2 == 1;
  rank[0] = rank[1] = upward ? ranks - 1 - position : position;
  if (!traits || traits->placement != PP_PLACE_BIDIRECTIONAL) return 1;
  rank[1] = ranks - 1 - rank[0];
  return 2;
}

static bool meets(const pp_candidate *candidate, int stage, int other) {
  int mine[2], theirs[2];
  pp_stages_ranks(candidate, stage, mine);
  pp_stages_ranks(candidate, other, theirs);
  return mine[0] == theirs[0];
}

/* F waits for the activations of the stage before, where that is on another rank, and I for the gradients of the stage behind. */
static void wait_for_messages(const pp_priced *of, pp_stage_seconds *seconds) {
  const int stages = pp_stages_count(of->candidate);
  for (int s = 0; s < stages; s++) {
    if (s > 0 && !meets(of->candidate, s, s - 1)) seconds[s].forward += of->costs->waiting;
    if (s + 1 == stages || meets(of->candidate, s, s + 1)) continue;
    seconds[s].input += of->costs->waiting;
    seconds[s].full += of->costs->waiting;
  }
}

void pp_stages_seconds(const pp_priced *of, const pp_stage *stages, pp_stage_seconds *out) {
  for (int s = 0; s < pp_stages_count(of->candidate); s++) {
    /* Most stages hold what their neighbour holds. */
    if (s > 0 && memcmp(&stages[s], &stages[s - 1], sizeof stages[s]) == 0) out[s] = out[s - 1];
    else pp_cost_stage(&stages[s], of->costs->seconds[of->kernel], &out[s]);
  }
  if (of->costs->waiting > 0) wait_for_messages(of, out);
}

/* Time of a block as the split weighs it: all that a rank spends on it, without what overlapped pairs hide. */
static pp_block_weights weights_of(const pp_priced *of) {
  const pp_schedule_traits *traits = pp_stages_traits(of->candidate);
  pp_block_weights weights;
  for (int block = 0; block < PP_BLOCKS; block++) {
    const pp_block_seconds *seconds = &of->costs->seconds[of->kernel][block];
    weights.seconds[block] = seconds->forward + (traits->split_backward ? seconds->input + seconds->weight : seconds->full);
    if (!pp_schedule_hides_alltoall(traits, of->kernel)) weights.seconds[block] += seconds->alltoall_forward + seconds->alltoall_backward;
  }
  return weights;
}

/* Which stages of a chain one rank (of bidirectional schedules: one mirror pair) executes. Returns how many such groups there are. */
static int group_stages(const pp_candidate *candidate, int *group_of) {
  int ranks = candidate->layout.pipeline, holders = 1;
  for (int s = 0; s < pp_stages_count(candidate); s++) {
    int rank[2];
    holders = pp_stages_ranks(candidate, s, rank);
    group_of[s] = rank[1] < rank[0] ? rank[1] : rank[0];
  }
  return holders == 2 ? (ranks + 1) / 2 : ranks;
}

/* What a split costs the ranks of a chain that runs up, and with two chunks down again. */
typedef struct {
  const double *seconds;             /* of a block of each kind */
  double tail;                       /* what the last stage has beside its layers: head and MTP */
  double before[PP_MAX_LAYERS + 1];  /* of all layers before each */
  int ranks, chunks;
} rank_loads;

static rank_loads loads_of(const pp_priced *of, const pp_block_weights *weights) {
  const pp_model *model = of->problem->model;
  const double *seconds = weights->seconds;
  rank_loads loads = { .seconds = seconds, .ranks = of->candidate->layout.pipeline, .chunks = of->candidate->layout.chunks };
  loads.tail = seconds[PP_BLOCK_HEAD] + (double)model->mtp_layers * seconds[PP_BLOCK_MTP];
  for (int i = 0; i < (int)model->layers; i++)
    loads.before[i + 1] = loads.before[i] + seconds[pp_model_block_of(model, i)];
  return loads;
}

/* Seconds of the slowest rank. */
static double heaviest_of(const rank_loads *loads, const int *layers) {
  const int ranks = loads->ranks, last = ranks * loads->chunks - 1;
  double load[PP_MAX_LAYERS] = { 0 }, heaviest = 0;
  for (int s = 0, layer = 0; s <= last; layer += layers[s++]) {
    const int rank = s < ranks ? s : 2 * ranks - 1 - s;
    load[rank] += loads->before[layer + layers[s]] - loads->before[layer];
    if (s == 0) load[rank] += loads->seconds[PP_BLOCK_EMBEDDING];
    if (s == last) load[rank] += loads->tail;
    heaviest = fmax(heaviest, load[rank]);
  }
  return heaviest;
}

/* So many layers on the first rank, on the last and on each between, in halves where a rank has two chunks. */
static void set_ends(const rank_loads *loads, int first, int between, int last, int *layers) {
  const int ranks = loads->ranks;
  for (int s = 0; s < ranks * loads->chunks; s++) {
    const int rank = s < ranks ? s : 2 * ranks - 1 - s;
    layers[s] = (rank == 0 ? first : rank == ranks - 1 ? last : between) / loads->chunks;
  }
}

/* PP_LAYERS_EVEN_ENDS: of all splits the one whose slowest rank is the fastest; of equals the one with fewer layers between, then on the first
** rank. O(layers² · stages / (4 · (ranks − 2))). */
static bool even_ends(const pp_priced *of, int *layers) {
  const int ranks = of->candidate->layout.pipeline, stages = pp_stages_count(of->candidate), total = (int)of->problem->model->layers;
  const pp_block_weights weights = weights_of(of);
  const rank_loads loads = loads_of(of, &weights);
  const int least_between = ranks > 2 ? 2 : 0, most_between = ranks > 2 ? (total - 4) / (ranks - 2) : 0;
  double least = INFINITY;
  int trial[PP_MAX_LAYERS];
  if (total % 2 != 0) return false;
  for (int between = least_between; between <= most_between; between += 2) {
    const int ends = total - (ranks - 2) * between;
    for (int first = 2; first <= ends - 2; first += 2) {
      set_ends(&loads, first, between, ends - first, trial);
      const double heaviest = heaviest_of(&loads, trial);
      if (heaviest >= least * (1 - 1e-12)) continue;
      least = heaviest;
      memcpy(layers, trial, (size_t)stages * sizeof *layers);
    }
  }
  return least < INFINITY;
}

/* The split that a rule leaves: false where there is none, or where it leaves many. */
static bool split_by_rule(const pp_priced *of, int *layers) {
  const pp_candidate *candidate = of->candidate;
  const int stages = pp_stages_count(candidate), total = (int)of->problem->model->layers;
  const pp_schedule_traits *traits = pp_stages_traits(candidate);
  if (!traits || total < stages) return false;
  switch (of->problem->layer_rule[candidate->kind]) {
    case PP_LAYERS_EVEN:
      if (total % stages != 0) return false;
      break;
    case PP_LAYERS_REMAINDER_FIRST:
      break;
    case PP_LAYERS_EVEN_ENDS:
      if (candidate->layout.pipeline == 1 || candidate->layout.chunks > 2) return false;
      if (candidate->layout.chunks == 2 && traits->placement != PP_PLACE_V) return false;
      return even_ends(of, layers);
    default:
      return false;
  }
  for (int s = 0; s < stages; s++) layers[s] = total / stages + (s < total % stages);
  return true;
}

/* Is the split the planner's to choose? Given ones are those of the pipeline asked for: what is compared with it may have another number of
** stages. */
static bool splits_freely(const pp_priced *of) {
  int stages = pp_stages_count(of->candidate), layers[PP_MAX_LAYERS];
  if (of->candidate->kind == PP_NO_SCHEDULE || of->problem->model->layers < stages) return false;
  if (of->problem->layers_per_stage && stages == of->problem->given_stages) return false;
  return !split_by_rule(of, layers);
}

static void split_ranks(const pp_priced *of, pp_split_share share, const int *most, bool empty_ends, bool outer, int *layers) {
  const pp_block_weights weights = weights_of(of);
  int group_of[PP_MAX_LAYERS], groups = group_stages(of->candidate, group_of);
  const pp_split split = { pp_stages_count(of->candidate), group_of, groups, share, most, empty_ends, outer };
  pp_split_layers(of->problem->model, &weights, &split, layers);
}

pp_status pp_stages_fill(const pp_priced *of, pp_stage *out, pp_error *error) {
  int stages, layers[PP_MAX_LAYERS];
  const int *given;
  if (of->candidate->layout.pipeline > PP_MAX_LAYERS / of->candidate->layout.chunks)
    return pp_illegal(error, "engine.layers_below_stages", "pipeline", NAN, "%d ranks of %d stages are more than %d stages",
                      of->candidate->layout.pipeline, of->candidate->layout.chunks, PP_MAX_LAYERS);
  stages = pp_stages_count(of->candidate);
  given = stages == of->problem->given_stages ? of->problem->layers_per_stage : NULL;
  if (!given && of->candidate->layers_per_stage) given = of->candidate->layers_per_stage;
  else if (split_by_rule(of, layers)) {
    if (!given) given = layers;
  } else if (splits_freely(of)) {
    split_ranks(of, PP_SHARE_TIME, NULL, true, false, layers);
    given = layers;
  }
  return pp_layout_stages(of->problem->model, stages, given, out, error);
}

/* Is the last of the splits none of those before it? */
static int keep_if_new(int layers[PP_MOST_SPLITS][PP_MAX_LAYERS], int count, int stages) {
  for (int i = 0; i < count; i++)
    if (memcmp(layers[i], layers[count], (size_t)stages * sizeof layers[i][0]) == 0) return count;
  return count + 1;
}

static int find_splits(const pp_priced *of, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]) {
  const int stages = pp_stages_count(of->candidate);
  int count = 1;
  split_ranks(of, PP_SHARE_TIME, NULL, true, false, layers[0]);
  if (of->candidate->layout.chunks > 1 && pp_stages_traits(of->candidate)->placement == PP_PLACE_LOOP) {
    const pp_block_weights weights = weights_of(of);
    pp_split_phases(of->problem->model, &weights, of->candidate->layout.pipeline, of->candidate->layout.chunks, true, layers[count]);
    count = keep_if_new(layers, count, stages);
  }
  if (layers[0][0] == 0 || layers[0][stages - 1] == 0) {
    split_ranks(of, PP_SHARE_TIME, NULL, false, false, layers[count]);
    count = keep_if_new(layers, count, stages);
  }
  if (pp_stages_traits(of->candidate)->placement != PP_PLACE_LOOP) {
    /* a layer more on an outer rank's second slice, the pipeline's end, is held for the shortest time and keeps the fewest waiting */
    split_ranks(of, PP_SHARE_LAYERS, NULL, true, true, layers[count]);
    count = keep_if_new(layers, count, stages);
  }
  for (int s = 0; s < stages; s++) layers[count][s] = pp_layout_even((int)of->problem->model->layers, stages, s);
  return keep_if_new(layers, count, stages);
}

bool pp_stages_early(const pp_priced *of, pp_early_split which, int *layers) {
  const int stages = pp_stages_count(of->candidate);
  int balanced[PP_MAX_LAYERS];
  if (!splits_freely(of) || of->candidate->layout.chunks > 1) return false;
  if (pp_stages_traits(of->candidate)->placement != PP_PLACE_LOOP) return false;
  const pp_block_weights weights = weights_of(of);
  split_ranks(of, PP_SHARE_TIME, NULL, true, false, balanced);
  if (which == PP_EARLY_EQUAL) {
    split_ranks(of, PP_SHARE_TIME, NULL, true, true, layers);
  } else {
    memcpy(layers, balanced, (size_t)stages * sizeof *layers);
    pp_split_forward(of->problem->model, &weights, stages, true, of->problem->split_tie, layers);
  }
  return memcmp(layers, balanced, (size_t)stages * sizeof *layers) != 0;
}

int pp_stages_splits(const pp_priced *of, pp_split_cache *cache, int layers[PP_MOST_SPLITS][PP_MAX_LAYERS]) {
  pp_split_key key = { .ranks = of->candidate->layout.pipeline, .chunks = of->candidate->layout.chunks };
  int count;
  if (!splits_freely(of)) return 0;
  if (!cache) return find_splits(of, layers);
  key.weights = weights_of(of);
  key.placement = (int)pp_stages_traits(of->candidate)->placement;
  count = pp_split_cache_find(cache, &key, layers);
  if (count > 0) return count;
  count = find_splits(of, layers);
  pp_split_cache_keep(cache, &key, count, layers);
  return count;
}

/* Moves a layer between two stages of a group whose numbers differ by more than one, towards the later of equals. */
static bool even_out(int stages, const int *group_of, int group, int *layers) {
  int most = -1, fewest = -1;
  for (int s = 0; s < stages; s++) {
    if (group_of[s] != group) continue;
    if (most < 0 || layers[s] > layers[most]) most = s;
    if (fewest < 0 || layers[s] <= layers[fewest]) fewest = s;
  }
  if (most < 0 || layers[most] - layers[fewest] < 2) return false;
  layers[most]--;
  layers[fewest]++;
  return true;
}

bool pp_stages_squeeze(const pp_priced *of, const pp_stage *stages, int rank, int *most, int *layers) {
  const int count = pp_stages_count(of->candidate);
  int group_of[PP_MAX_LAYERS], groups, held = 0, kept = 0, group = rank;
  bool loop;
  int64_t room = 0;
  if (!splits_freely(of)) return false;
  loop = pp_stages_traits(of->candidate)->placement == PP_PLACE_LOOP;
  groups = group_stages(of->candidate, group_of);
  if (group >= groups) group = of->candidate->layout.pipeline - 1 - rank;  /* the mirror of a bidirectional schedule */
  for (int s = 0; s < count; s++) {
    layers[s] = pp_stage_layers(&stages[s]);
    if (group_of[s] != group) continue;
    held += layers[s];
    if (s > 0 && s < count - 1) kept++;
  }
  if (!loop && even_out(count, group_of, group, layers)) return true;
  if (held <= kept) return false;
  most[group] = held - 1;
  for (int g = 0; g < groups; g++) room += most[g];
  if (room < of->problem->model->layers) return false;
  split_ranks(of, loop ? PP_SHARE_TIME : PP_SHARE_LAYERS, most, true, false, layers);
  return true;
}

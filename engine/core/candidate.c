/* SPDX-License-Identifier: Apache-2.0 */
/*
** candidate.c: enumeration of candidates. See candidate.h.
*/
#include "core/candidate.h"

#include <limits.h>
#include <math.h>

#include "core/meter.h"

static bool divides(int64_t divisor, int64_t number) {
  return divisor > 0 && number % divisor == 0;
}

/* What of a layer cannot be cut over TP: how many there are, their name, and the most that TP can be for them; NULL: all can. */
typedef struct {
  const char *what;
  int64_t number, most;
} uncut;

static uncut uncut_is(const char *what, int64_t number) { return (uncut){ what, number, number }; }

static uncut uncut_of_layer(const pp_layer *layer, int tensor) {
  if (layer->attention == PP_ATTENTION_COMPRESSED) {
    if (!divides(tensor, layer->output_groups)) return uncut_is("groups of heads", layer->output_groups);
  } else if (layer->attention > PP_ATTENTION_NONE && layer->attention != PP_ATTENTION_CONV) {   /* a mixer with a state */
    if (!divides(tensor, layer->value_heads)) return uncut_is("heads of a mixer", layer->value_heads);
    if (!divides(tensor, layer->key_heads)) return uncut_is("groups of a mixer's heads", layer->key_heads);
  } else {
    if (!divides(tensor, layer->heads)) return uncut_is("attention heads", layer->heads);
    if (layer->attention == PP_ATTENTION_GQA && layer->kv_heads > 0 && !divides(tensor, layer->kv_heads) && !divides(layer->kv_heads, tensor))
      return (uncut){ "key-value heads, nor they it", layer->kv_heads, layer->heads };
  }
  if (layer->ffn > 0 && !divides(tensor, layer->ffn)) return uncut_is("columns of the MLP", layer->ffn);
  return uncut_is(NULL, 0);
}

static uncut uncut_of_model(const pp_model *model, int tensor) {
  uncut found = uncut_of_layer(&model->layer, tensor);
  for (int i = 0; i < model->kinds && !found.what; i++) found = uncut_of_layer(&model->further[i].layer, tensor);
  return found;
}

static pp_status append(pp_candidates *list, const pp_candidate *candidate, pp_error *error) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? 2 * list->capacity : 256;
    pp_candidate *grown = pp_resize(list->candidate, capacity * sizeof *grown);
    if (!grown) return pp_fail(error, PP_NO_MEMORY, "not enough memory for %zu candidates", capacity);
    list->candidate = grown;
    list->capacity = capacity;
  }
  list->candidate[list->count++] = *candidate;
  return PP_OK;
}

/* Megatron: P ≤ N ≤ M, and the last group holds either N or at least P microbatches. P when no N serves both M: the check then says why. */
static bool group_serves(int64_t group, int ranks, int64_t microbatches) {
  return group <= microbatches && (microbatches % group == 0 || microbatches % group >= ranks);
}

static int smallest_group(int ranks, int64_t microbatches, int64_t smallest) {
  for (int64_t group = ranks; group <= smallest && group <= INT_MAX; group++)
    if (group_serves(group, ranks, microbatches) && group_serves(group, ranks, smallest)) return (int)group;
  return ranks;
}

pp_schedule_request pp_candidate_request(const pp_candidate *candidate, int64_t microbatches) {
  pp_schedule_request request = {
    .kind = (pp_schedule_kind)candidate->kind, .ranks = candidate->layout.pipeline,
    .microbatches = microbatches > INT_MAX ? INT_MAX : (int)microbatches,
    .chunks = candidate->layout.chunks, .group = candidate->group, .limit = candidate->limit
  };
  return request;
}

int pp_candidate_group(const pp_candidate *candidate) {
  const pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  return pp_schedule_group(&request);
}

pp_schedule_request pp_candidate_shortened(const pp_candidate *candidate, int64_t microbatches) {
  pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  if (microbatches >= candidate->microbatches) return request;
  request.group = pp_schedule_group(&request);
  request.microbatches = (int)microbatches;
  return request;
}

/* One candidate per schedule and V of a layout that has its degrees and M. */
static pp_status append_schedules(const pp_candidate_space *space, const pp_candidate *base, pp_candidates *out, pp_error *error) {
  const pp_fixed *fixed = &space->fixed;
  int ranks = base->layout.pipeline;
  for (int kind = 0; kind < PP_SCHEDULE_KINDS; kind++) {
    const pp_schedule_traits *traits = pp_schedule_traits_of((pp_schedule_kind)kind);
    bool interleaved = traits->chunks == 0;
    int first, last;
    if (fixed->kind != PP_SCHEDULE_KINDS ? kind != fixed->kind : !space->planned[kind]) continue;
    if (interleaved) {
      first = 2;
      last = space->max_chunks;
      if (fixed->configured_virtual) first = last = fixed->configured_virtual;
    } else {
      first = last = traits->chunks;
      /* A configured V is wrong for every other schedule; V placements have two chunks anyway. */
      if (fixed->configured_virtual > traits->chunks) first = last = fixed->configured_virtual;
    }
    for (int chunks = first; chunks <= last; chunks++) {
      pp_candidate candidate = *base;
      int64_t stages = (int64_t)ranks * chunks;
      if (fixed->stages && stages != fixed->stages) continue;
      /* Too many stages: only a fixed depth is worth reporting, and for a free V its smallest value. Empty ends are for who asks for them. */
      if (!fixed->stages && stages > space->model->layers && (!fixed->pipeline || chunks > first)) break;
      candidate.kind = kind;
      candidate.layout.chunks = chunks;
      candidate.configured_virtual = interleaved ? chunks : fixed->configured_virtual ? fixed->configured_virtual : 1;
      if (traits->grouping != PP_UNGROUPED && space->rounds) candidate.group = PP_GROUP_ROUNDS;
      else if (traits->grouping == PP_GROUPS_OF_RANKS) candidate.group = smallest_group(ranks, base->microbatches, base->smallest_microbatches);
      pp_status status = append(out, &candidate, error);
      if (status != PP_OK) return status;
    }
  }
  return PP_OK;
}

/* M for so many data-parallel ranks, or 0 when a batch does not divide. */
static int64_t microbatches_of(int64_t batch, int64_t data, int64_t micro_batch) {
  return divides(data * micro_batch, batch) ? batch / (data * micro_batch) : 0;
}

/* All expert splits and schedules of one (P, TP, CP, expert TP). */
static pp_status append_layouts(const pp_candidate_space *space, int pipeline, int tensor, int context, int expert_tensor, pp_candidates *out,
                                pp_error *error) {
  const pp_fixed *fixed = &space->fixed;
  const pp_model *model = space->model;
  bool apart = pipeline == 1 && fixed->pipeline != 1;  /* depth 1 beside a search for pipelines */
  int64_t stage_gpus = space->gpus / pipeline, data = stage_gpus / ((int64_t)tensor * context);
  int64_t last_expert = model->experts > 0 ? model->experts : 1;
  pp_candidate base = { .kind = PP_NO_SCHEDULE, .configured_virtual = 1, .group = 0, .choice = space->choice };
  base.microbatches = microbatches_of(space->global_batch, data, space->micro_batch);
  base.smallest_microbatches = microbatches_of(space->smallest_batch, data, space->micro_batch);
  if (data > INT_MAX || base.microbatches == 0 || base.smallest_microbatches == 0) return PP_OK;
  if (!apart && fixed->data && data != fixed->data) return PP_OK;
  if (!apart && fixed->microbatches && base.microbatches != fixed->microbatches) return PP_OK;
  if (!fixed->expert_tensor && !fixed->tensor && model->expert_ffn > 0 && !divides(expert_tensor, model->expert_ffn)) return PP_OK;
  if (fixed->expert) last_expert = fixed->expert;
  for (int64_t expert = fixed->expert ? fixed->expert : 1; expert <= last_expert; expert++) {
    pp_status status;
    if (!fixed->expert && model->experts > 0 && !divides(expert, model->experts)) continue;
    if (!divides(expert * expert_tensor, stage_gpus)) continue;
    base.layout = (pp_layout){ .tensor = tensor, .context = context, .expert = (int)expert, .expert_tensor = expert_tensor,
                               .data = (int)data, .pipeline = pipeline, .chunks = 1 };
    status = pipeline == 1 ? append(out, &base, error) : append_schedules(space, &base, out, error);
    if (status != PP_OK) return status;
  }
  return PP_OK;
}

/* Expert TP: what is fixed, or TP, or 1; where TP is open too, both. */
static pp_status append_expert_tensors(const pp_candidate_space *space, int pipeline, int tensor, int context, pp_candidates *out,
                                       pp_error *error) {
  const pp_fixed *fixed = &space->fixed;
  const bool as_tensor = space->experts_as_tensor && space->model->experts > 0 && tensor > 1;
  pp_status status = PP_OK;
  if (fixed->expert_tensor) return append_layouts(space, pipeline, tensor, context, fixed->expert_tensor, out, error);
  if (!as_tensor || (space->experts_apart && !fixed->tensor)) status = append_layouts(space, pipeline, tensor, context, 1, out, error);
  if (status == PP_OK && as_tensor) status = append_layouts(space, pipeline, tensor, context, tensor, out, error);
  return status;
}

static pp_status append_depth(const pp_candidate_space *space, int pipeline, pp_candidates *out, pp_error *error) {
  const pp_fixed *fixed = &space->fixed;
  int max_tensor = pipeline == 1 && space->scale_up_gpus < space->max_tensor ? space->scale_up_gpus : space->max_tensor;
  int first = fixed->tensor ? fixed->tensor : 1, last = fixed->tensor ? fixed->tensor : max_tensor;
  for (int tensor = first; tensor <= last; tensor++) {
    if (!divides((int64_t)pipeline * tensor, space->gpus)) continue;
    if (!fixed->tensor && uncut_of_model(space->model, tensor).what) continue;
    int context = fixed->context ? fixed->context : 1, last_context = fixed->context ? fixed->context : space->max_context;
    for (; context <= last_context; context *= 2) {
      pp_status status;
      if (!divides((int64_t)pipeline * tensor * context, space->gpus)) continue;
      status = append_expert_tensors(space, pipeline, tensor, context, out, error);
      if (status != PP_OK) return status;
    }
  }
  return PP_OK;
}

pp_status pp_candidates_enumerate(const pp_candidate_space *space, pp_candidates *out, pp_error *error) {
  const pp_fixed *fixed = &space->fixed;
  int64_t deepest = space->model->layers < space->gpus ? space->model->layers : space->gpus;
  pp_status status = PP_OK;
  for (int pipeline = 1; pipeline <= deepest && status == PP_OK; pipeline++) {
    if (fixed->pipeline && pipeline != 1 && pipeline != fixed->pipeline) continue;
    if (space->alone && pipeline > 1) break;
    if (divides(pipeline, space->gpus)) status = append_depth(space, pipeline, out, error);
  }
  if (status == PP_OK && !space->alone && fixed->pipeline > deepest && divides(fixed->pipeline, space->gpus))
    status = append_depth(space, fixed->pipeline, out, error);
  return status;
}

void pp_candidates_free(pp_candidates *candidates) {
  pp_free(candidates->candidate);
  *candidates = (pp_candidates){ 0, 0, NULL };
}

/* The largest divisor of `number` that is at most `limit`. */
static int64_t divisor_at_most(int64_t number, int64_t limit) {
  while (limit > 1 && !divides(limit, number)) limit--;
  return limit;
}

pp_status pp_candidate_check_within(const pp_candidate *candidate, const pp_model *model, int64_t actions, pp_error *error) {
  const pp_layout *layout = &candidate->layout;
  const int64_t stages = (int64_t)layout->pipeline * layout->chunks;
  pp_schedule_request request;
  pp_status status;
  const uncut whole = uncut_of_model(model, layout->tensor);
  if (whole.what) {
    int nearest = layout->tensor > whole.most ? (int)whole.most : layout->tensor;
    while (nearest > 1 && uncut_of_model(model, nearest).what) nearest--;
    return pp_illegal(error, "engine.tensor_heads", "tensor", nearest, "TP %d does not divide the %lld %s", layout->tensor,
                      (long long)whole.number, whole.what);
  }
  if (layout->expert > 1 && !divides(layout->expert, model->experts))
    return pp_illegal(error, "engine.expert_count", "expert",
                      model->experts > 0 ? (double)divisor_at_most(model->experts, layout->expert) : 1,
                      "EP %d does not divide the %lld experts", layout->expert, (long long)model->experts);
  if (layout->expert_tensor > 1 && model->experts > 0 && !divides(layout->expert_tensor, model->expert_ffn))
    return pp_illegal(error, "engine.expert_columns", "expert_tensor", (double)divisor_at_most(model->expert_ffn, layout->expert_tensor),
                      "ETP %d does not divide the %lld columns of an expert", layout->expert_tensor, (long long)model->expert_ffn);
  if (stages > model->layers + PP_EMPTY_ENDS)
    return pp_illegal(error, "engine.layers_below_stages", "pipeline",
                      layout->chunks <= model->layers ? (double)(model->layers / layout->chunks) : NAN,
                      "%lld layers are too few for %lld stages", (long long)model->layers, (long long)stages);
  if (candidate->kind == PP_NO_SCHEDULE) return PP_OK;
  request = pp_candidate_request(candidate, candidate->smallest_microbatches);
  status = pp_schedule_check_within(&request, actions, error);
  if (status != PP_OK || candidate->microbatches == candidate->smallest_microbatches) return status;
  request = pp_candidate_request(candidate, candidate->microbatches);
  return pp_schedule_check_within(&request, actions, error);
}

pp_status pp_candidate_check(const pp_candidate *candidate, const pp_model *model, pp_error *error) {
  return pp_candidate_check_within(candidate, model, INT64_MAX, error);
}

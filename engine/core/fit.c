/* SPDX-License-Identifier: Apache-2.0 */
/*
** fit.c: the choice of a split. See fit.h.
*/
#include "core/fit.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/evaluate_bound.h"

/* Of a bounded search: how often a layer is moved. */
enum { MOST_SQUEEZES = 24 };

/* Stages balanced by time that take so many times what there is: no other split of the layers makes them fit. Of 37,000 random candidates none
** took less than a 2.4th in another split (tests/unit/agreement_test.c). */
static const double hopeless = 4;

pp_status pp_fit_programs_build(const pp_candidate *candidate, pp_fit_programs *out, pp_error *error) {
  out->comparison = (pp_comparison){ .built = false };
  return pp_memory_program_build(candidate, &out->memory, error);
}

void pp_fit_programs_free(pp_fit_programs *programs) {
  pp_memory_program_free(&programs->memory);
  pp_comparison_free(&programs->comparison);
}

typedef struct {
  pp_priced of;              /* of `candidate` */
  pp_candidate *candidate;   /* a copy, whose split is tried */
  pp_fit_programs *programs;
} fitting;

/* One way to split a candidate's layers, and what its fullest rank then takes. */
typedef struct {
  const int *layers;  /* NULL: given or even */
  pp_fit fit;
} choice;

static bool is_planned(const pp_candidate *candidate) {
  return pp_stages_traits(candidate) && pp_schedule_is_planned((pp_schedule_kind)candidate->kind);
}

static pp_status measure(const fitting *job, choice *out, pp_error *error) {
  int copies = job->candidate->kind == PP_NO_SCHEDULE ? 1 : pp_stages_traits(job->candidate)->copies;
  pp_rank_bytes sum;
  job->candidate->layers_per_stage = out->layers;
  out->fit.one_copy = NAN;
  if (is_planned(job->candidate))
    return pp_evaluate_limited_memory(&job->of, &out->fit.bytes, &out->fit.rank, &out->fit.limit, error);
  pp_status status = pp_evaluate_memory(&job->of, job->programs ? &job->programs->memory : NULL, &sum, &out->fit.rank, error);
  if (status != PP_OK) return status;
  out->fit.bytes = sum.total;
  out->fit.one_copy = copies > 1 ? sum.total - pp_memory_further_copies(&sum, copies) : NAN;
  return PP_OK;
}

/*
** Stages balanced by time do not fit: a layer less on the fullest rank, again and again, as long as it fits at the end. Slower than
** balanced, faster than a deeper pipeline. `now` is the balanced split, and becomes the last that was tried, in layers[].
*/
static pp_status squeeze(const fitting *job, choice *now, int *layers, pp_error *error) {
  int most[PP_MAX_LAYERS];
  pp_stage stages[PP_MAX_LAYERS];
  pp_status status = PP_OK;
  for (size_t g = 0; g < PP_MAX_LAYERS; g++) most[g] = INT_MAX;
  for (int i = 0; i < MOST_SQUEEZES && now->fit.bytes > job->of.problem->usable_bytes && status == PP_OK; i++) {
    job->candidate->layers_per_stage = now->layers;
    status = pp_stages_fill(&job->of, stages, error);
    if (status != PP_OK) break;
    if (!pp_stages_squeeze(&job->of, stages, now->fit.rank, most, layers)) break;
    now->layers = layers;
    status = measure(job, now, error);
  }
  return status;
}

static bool is_even(const fitting *job, const int *layers) {
  const int stages = pp_stages_count(job->candidate);
  for (int s = 0; s < stages; s++)
    if (layers[s] != pp_layout_even((int)job->of.problem->model->layers, stages, s)) return false;
  return true;
}

/* Seconds of a split, where these are not known (0). */
static pp_status time_of(const fitting *job, const int *layers, double *seconds, pp_error *error) {
  if (*seconds > 0) return PP_OK;
  job->candidate->layers_per_stage = layers;
  return pp_evaluate_split(&job->of, &job->programs->memory.schedule, &job->programs->comparison, &job->programs->workspace, seconds, error);
}

/*
** Of equals the first; less memory is no reason to be slower than the even split. Splits of a planned schedule are compared by its stand-in,
** which is wrong by more than less memory is worth: of those within split_gain the first. *best_seconds: what the best takes, 0 where nothing
** had to be compared.
*/
static pp_status best_of(const fitting *job, const choice *from, int count, int *best, double *best_seconds, pp_error *error) {
  const double usable = job->of.problem->usable_bytes;
  const bool planned = is_planned(job->candidate);
  const double tie = planned ? job->of.problem->split_gain : job->of.problem->split_tie;
  double seconds[PP_MOST_SPLITS + 1] = { 0 }, fastest = INFINITY, least = INFINITY;
  int fits = 0;
  for (int i = 0; i < count; i++) fits += from[i].fit.bytes <= usable;
  for (int i = 0; i < count && fits > 1; i++) {
    if (from[i].fit.bytes > usable) continue;
    job->candidate->layers_per_stage = from[i].layers;
    if (pp_evaluate_bound(&job->of) > fastest * (1 + tie)) seconds[i] = INFINITY;
    pp_status status = time_of(job, from[i].layers, &seconds[i], error);
    if (status != PP_OK) return status;
    fastest = fmin(fastest, seconds[i]);
  }
  for (int i = 0; i < count; i++) {
    if (fits > 0 && (from[i].fit.bytes > usable || seconds[i] > fastest * (1 + tie))) continue;
    if (from[i].fit.bytes >= least || (planned && fits > 1 && least < INFINITY)) continue;
    least = from[i].fit.bytes;
    *best = i;
  }
  for (int i = 0; i < count && !planned; i++)   /* none is faster where nothing was compared: all are 0 */
    if (seconds[i] < seconds[*best] && from[i].fit.bytes <= usable && is_even(job, from[i].layers)) *best = i;
  *best_seconds = seconds[*best];
  return PP_OK;
}

/* Is a split with layers on early ranks faster than `other`, whose seconds are *now or not known yet (0), and than *least, which it then becomes?
** By split_gain where it takes more memory, or where a stand-in is what compares them. */
static pp_status is_faster(const fitting *job, const choice *early, const choice *other, double *now, double *least, bool *faster,
                           pp_error *error) {
  const bool for_nothing = early->fit.bytes <= other->fit.bytes && !is_planned(job->candidate);
  double then = 0;
  *faster = false;
  pp_status status = time_of(job, other->layers, now, error);
  if (status != PP_OK) return status;
  const double most = fmin(*least, for_nothing ? *now : *now * (1 - job->of.problem->split_gain));
  job->candidate->layers_per_stage = early->layers;
  if (pp_evaluate_bound(&job->of) >= most) return PP_OK;  /* most cannot win as much, whatever their order */
  status = time_of(job, early->layers, &then, error);
  if (status != PP_OK || then >= most) return status;
  *least = then;
  *faster = true;
  return PP_OK;
}

/* Which split with layers on early ranks is to be taken in place of from[*best], if one is: from[count] or the one after it becomes *best.
** Where from[*best] does not fit, one that takes less. */
static pp_status try_early(const fitting *job, choice *from, int splits[][PP_MAX_LAYERS], int count, int *best, double now, pp_error *error) {
  const size_t bytes = (size_t)pp_stages_count(job->candidate) * sizeof(int);
  const double usable = job->of.problem->usable_bytes;
  const choice *other = &from[*best];
  double least = INFINITY;
  pp_status status = PP_OK;
  if (other->fit.bytes > (1 + job->of.problem->split_overfull) * usable) return PP_OK;
  for (int which = 0, tried = count; which < PP_EARLY_SPLITS && status == PP_OK; which++) {
    choice *early = &from[tried];
    bool better = false;
    if (!pp_stages_early(&job->of, (pp_early_split)which, splits[tried])) continue;
    if (tried > count && memcmp(splits[tried], splits[count], bytes) == 0) continue;
    early->layers = splits[tried];
    status = measure(job, early, error);
    if (status != PP_OK) return status;
    if (other->fit.bytes > usable) better = early->fit.bytes < from[*best].fit.bytes;
    else if (early->fit.bytes <= usable) status = is_faster(job, early, other, &now, &least, &better, error);
    if (better) *best = tried;
    tried++;
  }
  return status;
}

pp_status pp_fit_candidate(const pp_priced *of, pp_fit_programs *programs, int *layers, pp_fit *out, pp_error *error) {
  pp_candidate candidate = *of->candidate;
  const fitting job = { { of->problem, &candidate, of->costs, of->kernel }, &candidate, programs };
  const double usable = of->problem->usable_bytes;
  int splits[PP_MOST_SPLITS + 1 + PP_EARLY_SPLITS][PP_MAX_LAYERS], best = 0;
  choice from[PP_MOST_SPLITS + 1 + PP_EARLY_SPLITS] = { { .layers = NULL } };
  int count = pp_stages_splits(of, programs ? programs->splits : NULL, splits);
  double seconds = 0;
  pp_status status = PP_OK;
  for (int i = 0; i < count && status == PP_OK; i++) {
    from[i].layers = splits[i];
    status = measure(&job, &from[i], error);
    if (i == 0 && from[i].fit.bytes > hopeless * usable) count = 1;
  }
  if (count == 0) {
    count = 1;
    status = measure(&job, &from[0], error);
  } else if (status == PP_OK && from[0].fit.bytes > usable && from[0].fit.bytes <= (1 + of->problem->split_overfull) * usable) {
    from[count] = from[0];
    status = squeeze(&job, &from[count], splits[count], error);
    if (from[count].fit.bytes <= usable) count++;
  }
  if (status == PP_OK) status = best_of(&job, from, count, &best, &seconds, error);
  if (status == PP_OK && programs) status = try_early(&job, from, splits, count, &best, seconds, error);
  if (status != PP_OK) return status;
  *out = from[best].fit;
  out->layers = NULL;
  if (best == 0) return PP_OK;  /* what stages are without being told */
  memcpy(layers, from[best].layers, (size_t)pp_stages_count(&candidate) * sizeof *layers);
  out->layers = layers;
  return PP_OK;
}

pp_status pp_fit_bound(const pp_priced *of, pp_fit_programs *programs, double *seconds, pp_error *error) {
  pp_candidate candidate = *of->candidate;
  const fitting job = { { of->problem, &candidate, of->costs, of->kernel }, &candidate, programs };
  int splits[PP_MOST_SPLITS + PP_EARLY_SPLITS][PP_MAX_LAYERS];
  choice first = { .layers = NULL };
  *seconds = NAN;
  if (!programs || is_planned(&candidate)) return PP_OK;
  const int count = pp_stages_splits(of, programs->splits, splits);
  if (count > 0) first.layers = splits[0];
  pp_status status = measure(&job, &first, error);
  if (status != PP_OK || first.fit.bytes > of->problem->usable_bytes) return status;
  *seconds = pp_evaluate_bound(&job.of);
  for (int i = 1; count > 0 && i < count + PP_EARLY_SPLITS; i++) {   /* a given or even split is the only one */
    if (i >= count && !pp_stages_early(&job.of, (pp_early_split)(i - count), splits[i])) continue;
    candidate.layers_per_stage = splits[i];
    *seconds = fmin(*seconds, pp_evaluate_bound(&job.of));
  }
  return PP_OK;
}

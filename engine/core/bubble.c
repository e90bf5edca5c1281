/* SPDX-License-Identifier: Apache-2.0 */
/*
** bubble.c: closed forms of the makespan bubble. See bubble.h.
**
** Every law here is for equal stages and p2p 0, in seconds of one chunk. "Checked" means: against the simulation of our own program, for
** hundreds of random times (tests/unit/bubble_test.c). Where its conditions do not hold the law is only an estimate; what still bounds the
** bubble from below is that the last rank (the middle one in DualPipe) waits for the first microbatch to come down.
*/
#include "core/bubble.h"

#include <math.h>

#include "core/simulate.h"

/* The times with what was left out filled in, and the request. */
typedef struct {
  const pp_schedule_request *request;
  double f, i, w, b, fb;
  bool whole;   /* B = I + W, which every law of a split backward needs */
} setting;

/* a ≤ b, give or take the rounding of whoever computed them. */
static bool at_most(double a, double b) { return a <= b + 1e-12 * fabs(b); }

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* (P − 1)(F + B): fill and drain. GPipe: Huang et al. 2019, section 3.2; 1F1B and interleaved: Narayanan et al. 2021, section 2.2. */
static void fused(const setting *at, pp_closed_form *out) {
  out->seconds = (at->request->ranks - 1) * (at->f + at->b);
  out->exact = true;
}

/* Microbatches that are missing to keep P ranks busy for a lap: each chunk but one waits for them, in either direction. Derived. */
static double missing_turns(const pp_schedule_request *request) {
  int missing = request->ranks - request->microbatches;
  return missing > 0 ? (double)(request->chunks - 1) * missing : 0;
}

static void looped(const setting *at, pp_closed_form *out) {
  out->seconds = (at->request->ranks - 1 + missing_turns(at->request)) * (at->f + at->b);
  out->exact = true;
}

/* Pairs shorten the work of the ranks that run more of them, not the idle time of the last, which runs fewest. */
static void looped_pairs(const setting *at, pp_closed_form *out) {
  looped(at, out);
  out->exact = at_most(larger(at->f, at->b), at->fb) && at_most(at->fb, at->f + at->b);
}

/* (P − 1) max(F, F + I − W); below P microbatches nothing but M − 1 W's fills the wait. Qi et al. 2024, table 1 and the section on M ≤ P. */
static void zb_h1(const setting *at, pp_closed_form *out) {
  int ranks = at->request->ranks, microbatches = at->request->microbatches;
  out->exact = at->whole && at_most(at->w, at->f);
  if (microbatches >= ranks) {
    out->seconds = (ranks - 1) * larger(at->f, at->f + at->i - at->w);
  } else {
    out->seconds = larger((ranks - 1) * (at->f + at->i) - (microbatches - 1) * at->w, 0);
    out->exact = out->exact && at_most(at->w, at->i);
  }
}

/*
** ZB-H1's, of one chunk. Below P microbatches a lower bound: the last stage runs M forwards and M I's after V·P − 1 stages down and before as
** many up, and at best all W's of a rank but the last fill its waiting. Derived.
*/
static void interleaved_zero_bubble(const setting *at, pp_closed_form *out) {
  const pp_schedule_request *request = at->request;
  zb_h1(at, out);
  if (request->microbatches >= request->ranks) return;
  double weights = (double)request->microbatches * request->chunks - 1;
  out->seconds = (request->ranks - 1 + missing_turns(request)) * (at->f + at->i) - weights * at->w;
  out->seconds = out->low = larger(out->seconds, out->low);
  out->exact = false;
}

/* (P − 1) max(F, F + I − 2W). Qi et al. 2024, table 1, whose spans leave out the start: the parallelogram put upright. */
static void zb_h2(const setting *at, pp_closed_form *out) {
  int ranks = at->request->ranks;
  out->seconds = (ranks - 1) * larger(at->f, at->f + at->i - 2 * at->w);
  out->exact = at->whole && at_most(at->w, at->f) && at->request->microbatches >= 2 * ranks - 1;
}

/* (P − 1) max(F, I, 2(I − W)), which is the paper's (P − 1)F at F = I = W; derived from simulation for the rest. */
static void zb_v(const setting *at, pp_closed_form *out) {
  int ranks = at->request->ranks;
  out->seconds = (ranks - 1) * larger(larger(at->f, at->i), 2 * (at->i - at->w));
  out->exact = at->whole && at_most(at->f, at->i) && at_most(at->w, at->i) && at->request->microbatches >= 2 * ranks - 1;
}

/*
** (H − 1)(F&B + max(F, I) − 2W), which is the README's (PP/2 − 1)(F&B + B − 3W) for I ≥ F. deepseek-ai/DualPipe, README. Exact for F ≥ I;
** for I > F the true value lies between the forms with F and with I.
*/
static void eight_step(const setting *at, pp_closed_form *out) {
  int turns = at->request->ranks / pp_schedule_traits_of(at->request->kind)->chains;
  double low = (turns - 1) * (at->fb + at->f - 2 * at->w), high = (turns - 1) * (at->fb + larger(at->f, at->i) - 2 * at->w);
  bool holds = at->whole && at_most(at->w, smaller(at->f, at->i)) && at_most(larger(at->f, at->b), at->fb) && at_most(at->fb, at->f + at->b);
  out->seconds = larger(high, 0);
  out->exact = holds && (at_most(at->i, at->f) || turns == 1);
  out->low = holds ? low : (turns - 1) * at->f;
  out->high = holds ? high : NAN;
}

/* Under a limit of P chunks nothing beats ZB-H1; what a higher limit saves depends on the times. */
static void zb_auto(const setting *at, pp_closed_form *out) {
  if (pp_schedule_limit(at->request) == at->request->ranks) zb_h1(at, out);
  else out->seconds = NAN;
}

static void none(const setting *at, pp_closed_form *out) {
  (void)at;
  out->seconds = NAN;
}

/* The closed forms that rows of schedule_kinds.h name. */
typedef struct {
  void (*law)(const setting *at, pp_closed_form *out);
  const char *conditions;
} closed_form;

static const closed_form law_gpipe = {
  fused, "(P−1)(F+B); exact for every M (Huang et al. 2019, GPipe)"
};
static const closed_form law_1f1b = {
  fused, "(P−1)(F+B); exact for every M (Narayanan et al. 2021, section 2.2.1)"
};
static const closed_form law_looped_bfs = {
  looped, "(P−1)(F+B) of one chunk, and (V−1)(P−M)(F+B) more below P microbatches; exact for every M (derived)"
};
static const closed_form law_interleaved_1f1b = {
  looped, "(P−1)(F+B) of one chunk; exact for every legal M and group (Narayanan et al. 2021, section 2.2.2); "
          "(V−1)(P−M)(F+B) more below P microbatches (derived)"
};
static const closed_form law_interleaved_1f1b_overlap = {
  looped_pairs, "(P−1)(F+B) of one chunk, and (V−1)(P−M)(F+B) more below P microbatches; "
                "exact when max(F,B) ≤ F&B ≤ F+B (derived)"
};
static const closed_form law_zb_h1 = {
  zb_h1, "(P−1)·max(F, F+I−W), exact when W ≤ F; below P microbatches (P−1)(F+I)−(M−1)W, exact when W ≤ min(F, I) "
         "(Qi et al. 2024, table 1)"
};
static const closed_form law_zb_h2 = {
  zb_h2, "(P−1)·max(F, F+I−2W); exact when W ≤ F and M ≥ 2P−1 (Qi et al. 2024, table 1)"
};
static const closed_form law_interleaved_zero_bubble = {
  interleaved_zero_bubble, "(P−1)·max(F, F+I−W) of one chunk; exact when W ≤ F and M ≥ P; below P "
                           "microbatches a lower bound (derived; with one chunk it is ZB-H1)"
};
static const closed_form law_zb_v = {
  zb_v, "(P−1)·max(I, 2(I−W)); exact when F ≤ I, W ≤ I and M ≥ 2P−1 (Qi et al. 2024 for F = I = W, simulation for the rest)"
};
static const closed_form law_dualpipe = {
  eight_step, "(P/2−1)(F&B+max(F,I)−2W); exact when F ≥ I, W ≤ I and max(F,B) ≤ F&B ≤ F+B; an upper bound when I > F, "
              "W ≤ F (deepseek-ai/DualPipe README, (PP/2−1)(F&B+B−3W) at F = I)"
};
static const closed_form law_dualpipev = {
  eight_step, "(P−1)(F&B+max(F,I)−2W) of one chunk; exact when F ≥ I, W ≤ I and max(F,B) ≤ F&B ≤ F+B; an upper bound when "
              "I > F, W ≤ F (deepseek-ai/DualPipe README, PP = 2P stages)"
};
static const closed_form law_zb_auto = {
  zb_auto, "none known; under a limit of P chunks that of zb_h1: (P−1)·max(F, F+I−W), exact when W ≤ F"
};
static const closed_form law_none_known = {
  none, "none known"
};

#define LAW_OF_ROW(kind, name, title, family, shape, backward, pairs, grouping, least, holds, periods, stand_in, constructor, law) \
  [PP_##kind] = &law_##law,

static const closed_form *const laws[PP_SCHEDULE_KINDS] = { PP_SCHEDULES(LAW_OF_ROW) };

pp_status pp_bubble(const pp_schedule_request *request, const pp_chunk_times *times, pp_closed_form *out, pp_error *error) {
  const double value[] = { times->forward, times->input, times->weight, times->full, times->overlapped };
  static const char *const name[] = { "F", "I", "W", "B", "FB" };
  *out = (pp_closed_form){ 0 };
  for (int k = 0; k < 5; k++)
    if (!pp_is_seconds(value[k])) return pp_fail(error, PP_INVALID, "%s must be " PP_SECONDS ", got %g", name[k], value[k]);
  pp_status status = pp_schedule_check_within(request, INT64_MAX, error);
  if (status != PP_OK) return status;

  setting at = { .request = request, .f = times->forward, .i = times->input, .w = times->weight };
  double split = at.i + at.w;
  at.b = times->full > 0 ? times->full : split;
  at.whole = fabs(at.b - split) <= 1e-12 * split;
  at.fb = times->overlapped > 0 ? times->overlapped : at.f + at.b;
  out->low = (request->ranks - 1) * at.f;
  out->high = NAN;
  out->conditions = laws[request->kind]->conditions;
  laws[request->kind]->law(&at, out);
  if (out->exact) out->low = out->high = out->seconds;
  return PP_OK;
}

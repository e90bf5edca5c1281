/*
** evaluation.c: candidates:evaluate(row): everything that a plan prints about one candidate. See evaluation.h.
*/
#include "lua/evaluation.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "lua/arguments.h"
#include "lua/class.h"
#include "lua/recipe.h"
#include "lua/results.h"

static const char evaluation_type[] = "pipeplan.evaluation";
static const char evaluation_call[] = "candidates:evaluate";

/* One candidate's results. A userdata, so that a Lua error frees what it holds. */
typedef struct {
  const pp_candidate *candidate;
  const pp_schedule_traits *traits;  /* NULL at depth 1 */
  const pp_layout_costs *costs;
  bool kernel;
  pp_timing timing;
  pp_timing no_overlap;          /* with pairs that take F + B */
  pp_timing cool;                /* with cards that do not heat up */
  double hop_exposed;            /* what hand-overs between ranks add to the makespan */
  int stages;
  pp_stage stage[PP_MAX_LAYERS];
  pp_stage_seconds seconds[PP_MAX_LAYERS];
  bool has_simulation, has_program;
  pp_schedule schedule;          /* at the full batch, with its simulation; not at depth 1 */
  pp_simulation simulation;
  pp_memory_program program;     /* not at depth 1, nor where the whole schedule has to serve */
  pp_rank_bytes bytes[PP_MAX_LAYERS];
} evaluation;

static int evaluation_gc(lua_State *L) {
  evaluation *self = luaL_checkudata(L, 1, evaluation_type);
  if (self->has_simulation) {
    pp_simulation_free(&self->simulation);
    pp_schedule_free(&self->schedule);
  }
  if (self->has_program) pp_memory_program_free(&self->program);
  self->has_simulation = self->has_program = false;
  return 0;
}

static evaluation *push_evaluation(lua_State *L) {
  evaluation *self = lua_newuserdatauv(L, sizeof *self, 0);
  memset(self, 0, sizeof *self);
  pp_new_class(L, evaluation_type, evaluation_gc, NULL);
  luaL_setmetatable(L, evaluation_type);
  return self;
}

/* -------------------------------------------------------------------------------------------------------------------------- the parts */

static void set_layout(lua_State *L, const evaluation *self) {
  const pp_candidate *candidate = self->candidate;
  const pp_layout *layout = &candidate->layout;
  pp_set_integer(L, "tensor", layout->tensor);
  pp_set_integer(L, "context", layout->context);
  pp_set_integer(L, "expert", layout->expert);
  pp_set_integer(L, "expert_tensor", layout->expert_tensor);
  pp_set_integer(L, "data", layout->data);
  pp_set_integer(L, "pipeline", layout->pipeline);
  pp_set_integer(L, "virtual", candidate->configured_virtual);
  pp_set_integer(L, "chunks", layout->chunks);
  pp_set_string(L, "schedule", self->traits ? self->traits->name : "none");
  pp_set_string(L, "schedule_family", self->traits ? self->traits->family : "none");
  pp_set_integer(L, "copies", self->traits ? self->traits->copies : 1);
  pp_set_integer(L, "chains", self->traits ? self->traits->chains : 1);
  pp_set_integer(L, "microbatches", candidate->microbatches);
  pp_set_integer(L, "smallest_microbatches", candidate->smallest_microbatches);
  if (candidate->limit > 0) pp_set_integer(L, "limit", candidate->limit);
  if (!self->traits) return;
  const pp_schedule_request request = pp_candidate_request(candidate, candidate->microbatches);
  const int group = pp_schedule_group(&request);
  if (group > 0) pp_set_integer(L, "group", group);
}

static void set_stages(lua_State *L, const evaluation *self) {
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    lua_pushinteger(L, self->stage[s].count[PP_BLOCK_DENSE] + self->stage[s].count[PP_BLOCK_MOE]);
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "layers_per_stage");
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    lua_createtable(L, 0, PP_BLOCKS);
    for (int block = 0; block < PP_BLOCKS; block++) pp_set_integer(L, pp_block_names[block], self->stage[s].count[block]);
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "stages");
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    const pp_stage_seconds *seconds = &self->seconds[s];
    lua_createtable(L, 0, 6);
    pp_set_number(L, "forward", seconds->forward);
    pp_set_number(L, "input", seconds->input);
    pp_set_number(L, "weight", seconds->weight);
    pp_set_number(L, "full", seconds->full);
    pp_set_number(L, "alltoall_forward", seconds->alltoall_forward);
    pp_set_number(L, "alltoall_backward", seconds->alltoall_backward);
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "stage_seconds");
}

/* stage of one chain → the ranks that hold it, ascending chain */
static void set_placement(lua_State *L, const evaluation *self) {
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    lua_createtable(L, 2, 0);
    for (int chain = 0; chain < (self->traits ? self->schedule.chains : 1); chain++) {
      lua_pushinteger(L, self->traits ? self->schedule.rank_of[chain * self->stages + s] : 0);
      lua_rawseti(L, -2, chain + 1);
    }
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "placement");
}

/* The program that memory is counted over: a capped one, or the whole one where its order follows from times. */
static const pp_schedule *memory_schedule(const evaluation *self) {
  return self->has_program ? &self->program.schedule : &self->schedule;
}

static int slots_of(const evaluation *self) {
  return self->traits ? memory_schedule(self)->chunks_per_rank : 1;
}

/* The stage of one chain that a rank has in that slot. */
static int stage_in_slot(const evaluation *self, int rank, int slot) {
  const pp_schedule *schedule = memory_schedule(self);
  return self->traits ? pp_schedule_stages_of(schedule, rank)[slot] % schedule->stages_per_chain : 0;
}

static void set_memory(lua_State *L, const evaluation *self) {
  double heaviest = -1;
  int ranks = self->candidate->layout.pipeline, heaviest_rank = 0, slots = slots_of(self);
  lua_createtable(L, ranks, 0);
  for (int rank = 0; rank < ranks; rank++) {
    const pp_rank_bytes bytes = self->bytes[rank];
    if (bytes.total > heaviest) {
      heaviest = bytes.total;
      heaviest_rank = rank;
    }
    lua_createtable(L, 0, 10);
    pp_set_integer(L, "rank", rank);
    lua_createtable(L, slots, 0);
    for (int slot = 0; slot < slots; slot++) {
      lua_pushinteger(L, stage_in_slot(self, rank, slot) + 1);
      lua_rawseti(L, -2, slot + 1);
    }
    lua_setfield(L, -2, "stages");
    pp_set_number(L, "parameters", bytes.parameters);
    pp_set_number(L, "gradients", bytes.gradients);
    pp_set_number(L, "optimizer", bytes.optimizer);
    pp_set_number(L, "activations", bytes.activations);
    pp_set_number(L, "transient", bytes.transient);
    pp_set_number(L, "overhead", bytes.overhead);
    pp_set_number(L, "total", bytes.total);
    pp_set_number(L, "host", bytes.host);
    lua_rawseti(L, -2, rank + 1);
  }
  lua_setfield(L, -2, "memory");
  pp_set_integer(L, "heaviest_rank", heaviest_rank);
  pp_set_number(L, "peak_bytes", heaviest);
  pp_set_number(L, "further_copies_bytes", pp_memory_further_copies(&self->bytes[heaviest_rank], self->traits ? self->traits->copies : 1));
}

/* Parameters on one GPU: resident on the rank that holds most, and what each would hold of one copy spread evenly. */
static void set_parameters(lua_State *L, const evaluation *self) {
  double dense[PP_MAX_LAYERS], expert[PP_MAX_LAYERS], resident = 0, unique = 0;
  int ranks = self->candidate->layout.pipeline;
  pp_evaluate_parameters(self->candidate, self->costs, self->stage, dense, expert);
  for (int rank = 0; rank < ranks; rank++) {
    resident = fmax(resident, dense[rank] + expert[rank]);
    unique += (dense[rank] + expert[rank]) / ranks / (self->traits ? self->traits->copies : 1);
  }
  lua_createtable(L, 0, 2);
  pp_set_number(L, "resident", resident);
  pp_set_number(L, "unique", unique);
  lua_setfield(L, -2, "parameters");
}

static void set_simulation(lua_State *L, const evaluation *self) {
  const pp_simulation *simulation = &self->simulation;
  pp_set_number(L, "makespan_seconds", self->timing.makespan_seconds);
  pp_set_number(L, "bubble_fraction", self->timing.bubble_fraction);
  pp_set_number(L, "max_idle_fraction", self->traits ? simulation->max_idle_fraction : 0);
  pp_set_number(L, "max_idle_seconds", self->traits ? simulation->max_idle : 0);
  pp_set_number(L, "min_idle_seconds", self->traits ? simulation->min_idle : 0);
  pp_set_number(L, "max_span_seconds", self->traits ? simulation->max_span : self->timing.makespan_seconds);
  if (self->traits) {
    pp_set_numbers(L, "idle_per_rank_seconds", simulation->idle, simulation->ranks);
    pp_set_numbers(L, "busy_per_rank_seconds", simulation->busy, simulation->ranks);
  } else {
    const double idle = 0;
    pp_set_numbers(L, "idle_per_rank_seconds", &idle, 1);
    pp_set_numbers(L, "busy_per_rank_seconds", &self->timing.makespan_seconds, 1);
  }
}

/*
** Work and all-to-all of a rank in one step, per chunk as executed alone. Exposed all-to-all is what the busiest rank's time holds beyond
** compute: nothing of it is hidden outside overlapped pairs.
*/
static void set_alltoall(lua_State *L, const evaluation *self) {
  int ranks = self->candidate->layout.pipeline, slots = slots_of(self);
  double per_stage = (double)self->candidate->microbatches / (self->traits ? self->traits->chains : 1);
  double work = 0, compute = 0, most = 0, exposed = 0;
  for (int rank = 0; rank < ranks; rank++) {
    double here = 0, sent = 0, busy;
    for (int slot = 0; slot < slots; slot++) {
      const pp_stage_seconds *seconds = &self->seconds[stage_in_slot(self, rank, slot)];
      here += per_stage * (seconds->forward + seconds->full);
      sent += per_stage * (seconds->alltoall_forward + seconds->alltoall_backward);
    }
    busy = self->traits ? self->simulation.busy[rank] : here;
    work += here / ranks;
    compute += (here - sent) / ranks;
    if (sent > most) {
      most = sent;
      exposed = fmin(sent, fmax(0, busy - (here - sent)));
    }
  }
  pp_set_number(L, "work_seconds", work);
  pp_set_number(L, "ideal_step_seconds", compute);
  pp_set_number(L, "alltoall_seconds", most);
  pp_set_number(L, "alltoall_exposed_seconds", exposed);
}

/* TP and CP collectives of one step on the rank that spends most on them. */
static void set_collectives(lua_State *L, const evaluation *self) {
  int slots = slots_of(self);
  double per_stage = (double)self->candidate->microbatches / (self->traits ? self->traits->chains : 1);
  double tensor = 0, context = 0, exposed = 0;
  for (int rank = 0; rank < self->candidate->layout.pipeline; rank++) {
    double here = 0, ring = 0, beyond = 0;
    for (int slot = 0; slot < slots; slot++) {
      const pp_stage_seconds *seconds = &self->seconds[stage_in_slot(self, rank, slot)];
      here += per_stage * seconds->tensor;
      ring += per_stage * seconds->context;
      beyond += per_stage * seconds->context_exposed;
    }
    tensor = fmax(tensor, here);
    if (ring > context) {
      context = ring;
      exposed = beyond;
    }
  }
  pp_set_number(L, "tensor_seconds", tensor);
  pp_set_number(L, "context_seconds", context);
  pp_set_number(L, "context_exposed_seconds", exposed);
}

static void set_step(lua_State *L, const evaluation *self, const pp_problem *problem) {
  pp_set_number(L, "step_seconds", self->timing.step_seconds);
  pp_set_number(L, "hop_seconds", self->costs->hop);
  pp_set_number(L, "hop_exposed_seconds", self->hop_exposed);
  pp_set_number(L, "cool_step_seconds", self->cool.step_seconds);
  pp_set_number(L, "pair_share", self->costs->pair_share);
  lua_createtable(L, 0, 5);
  pp_set_number(L, "gradient_sync", self->timing.step.gradient_sync);
  pp_set_number(L, "parameter_sync", self->timing.step.parameter_sync);
  pp_set_number(L, "optimizer", self->timing.step.optimizer);
  pp_set_number(L, "mirror", self->timing.step.mirror);
  pp_set_number(L, "overhead", problem->step_overhead_seconds);
  lua_setfield(L, -2, "step");
  lua_createtable(L, 0, 3);
  pp_set_number(L, "step_seconds", self->no_overlap.step_seconds);
  pp_set_number(L, "makespan_seconds", self->no_overlap.makespan_seconds);
  pp_set_number(L, "bubble_fraction", self->no_overlap.bubble_fraction);
  lua_setfield(L, -2, "no_overlap");
}

static pp_problem without_heat(const pp_problem *problem) {
  pp_problem cool = *problem;
  cool.hardware.heat_slope = 0;
  return cool;
}

typedef struct {
  pp_fit fit;
  pp_timing timing, cool;
} baseline_result;

static pp_status compute_baseline(const pp_problem *problem, const evaluation *self, pp_schedule_kind kind, baseline_result *out, pp_error *error) {
  pp_candidate baseline = *self->candidate;
  pp_fit_programs programs = { .workspace = { 0 } };
  const pp_problem cool_problem = without_heat(problem);
  int layers[PP_MAX_LAYERS];
  pp_status status;
  baseline.kind = (int)kind;
  baseline.layout.chunks = baseline.configured_virtual = 1;
  baseline.group = baseline.limit = 0;
  baseline.layers_per_stage = NULL;
  if ((status = pp_evaluate_check(problem, &baseline, error)) != PP_OK) return status;
  if ((status = pp_fit_programs_build(&baseline, &programs, error)) != PP_OK) return status;
  status = pp_fit_candidate(problem, &baseline, self->costs, self->kernel, &programs, layers, &out->fit, error);
  pp_fit_programs_free(&programs);
  pp_workspace_free(&programs.workspace);
  if (status == PP_OK)
    status = pp_evaluate_time(problem, &baseline, self->costs, self->kernel, false, &out->timing, NULL, NULL, error);
  if (status != PP_OK) return status;
  out->cool = out->timing;
  if (!(problem->hardware.heat_slope > 0)) return PP_OK;
  return pp_evaluate_time(&cool_problem, &baseline, self->costs, self->kernel, false, &out->cool, NULL, NULL, error);
}

/* The same layout and M under another schedule, without overlap: what savings are counted against. Nothing where it cannot be built. */
static void set_baseline(lua_State *L, const pp_problem *problem, const evaluation *self, pp_schedule_kind kind) {
  baseline_result found;
  pp_error error;
  const pp_status status = compute_baseline(problem, self, kind, &found, &error);
  if (status == PP_NO_MEMORY) pp_args_raise(L, evaluation_call, &error);
  if (status != PP_OK) return;
  lua_createtable(L, 0, 6);
  pp_set_number(L, "step_seconds", found.timing.step_seconds);
  pp_set_number(L, "cool_step_seconds", found.cool.step_seconds);
  pp_set_number(L, "makespan_seconds", found.timing.makespan_seconds);
  pp_set_number(L, "bubble_fraction", found.timing.bubble_fraction);
  pp_set_number(L, "peak_bytes", found.fit.bytes);
  pp_set_boolean(L, "fits", found.fit.bytes <= problem->usable_bytes);
  lua_setfield(L, -2, pp_schedule_traits_of(kind)->name);
}

/* --------------------------------------------------------------------------------------------------------------------------- together */

static pp_status compute_time(const pp_problem *problem, evaluation *self, pp_error *error) {
  pp_layout_costs no_hops = *self->costs;
  pp_timing instant;
  pp_status status = pp_evaluate_check(problem, self->candidate, error);
  if (status != PP_OK) return status;
  status = pp_stages_fill(problem, self->candidate, self->costs, self->kernel, self->stage, error);
  if (status != PP_OK) return status;
  pp_stages_seconds(self->candidate, self->costs, self->kernel, self->stage, self->seconds);
  self->stages = pp_stages_count(self->candidate);
  status = pp_evaluate_time(problem, self->candidate, self->costs, self->kernel, true, &self->timing, &self->schedule, &self->simulation,
                            error);
  if (status != PP_OK) return status;
  self->has_simulation = self->traits != NULL;
  self->no_overlap = self->cool = self->timing;
  if (!self->traits) return PP_OK;
  if (self->traits->overlaps)
    status = pp_evaluate_time(problem, self->candidate, self->costs, self->kernel, false, &self->no_overlap, NULL, NULL, error);
  if (status != PP_OK) return status;
  if (problem->hardware.heat_slope > 0) {
    const pp_problem cool = without_heat(problem);
    status = pp_evaluate_time(&cool, self->candidate, self->costs, self->kernel, true, &self->cool, NULL, NULL, error);
    if (status != PP_OK) return status;
  }
  no_hops.hop = 0;
  status = pp_evaluate_time(problem, self->candidate, &no_hops, self->kernel, true, &instant, NULL, NULL, error);
  if (status != PP_OK) return status;
  self->hop_exposed = fmax(0, self->timing.makespan_seconds - instant.makespan_seconds);
  return PP_OK;
}

/* After compute_time, whose program zb_auto's memory is counted over. */
static pp_status compute_memory(const pp_problem *problem, evaluation *self, pp_error *error) {
  if (self->traits && self->candidate->kind != PP_ZB_AUTO) {
    pp_status status = pp_memory_program_build(self->candidate, &self->program, error);
    if (status != PP_OK) return status;
    self->has_program = true;
  }
  return pp_evaluate_ranks(problem, self->candidate, self->costs, self->kernel, self->traits ? memory_schedule(self) : NULL, self->bytes,
                           error);
}

int pp_push_evaluation(lua_State *L, pp_search *search, size_t row) {
  const pp_problem *problem = &search->problem;
  evaluation *self;
  pp_error error;
  pp_status status;
  luaL_checkstack(L, 16, evaluation_call);
  self = push_evaluation(L);
  self->candidate = &search->candidates.candidate[row];
  self->traits = self->candidate->kind == PP_NO_SCHEDULE ? NULL : pp_schedule_traits_of((pp_schedule_kind)self->candidate->kind);
  self->costs = &search->costs[search->layout_of[row]];
  self->kernel = search->column[PP_COLUMN_KERNEL][row] >= 2;
  status = pp_search_settle(search, row, &error);
  if (status == PP_OK) status = compute_time(problem, self, &error);
  if (status == PP_OK) status = compute_memory(problem, self, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, evaluation_call, &error);
  lua_createtable(L, 0, 45);
  set_layout(L, self);
  set_stages(L, self);
  set_placement(L, self);
  set_memory(L, self);
  set_parameters(L, self);
  set_simulation(L, self);
  set_alltoall(L, self);
  set_collectives(L, self);
  set_step(L, self, problem);
  lua_createtable(L, 0, 2);
  if (self->traits) set_baseline(L, problem, self, PP_1F1B);
  if (self->traits && self->traits->overlaps) set_baseline(L, problem, self, PP_ZB_H1);
  lua_setfield(L, -2, "baselines");
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** evaluation.c: candidates:evaluate(row): everything that a plan prints about one candidate. See evaluation.h.
*/
#include "lua/evaluation.h"

#include <lauxlib.h>
#include <string.h>

#include "core/evaluation.h"
#include "lua/arguments.h"
#include "lua/class.h"
#include "lua/memory.h"
#include "lua/recipe.h"
#include "lua/results.h"

static const char evaluation_type[] = "pipeplan.evaluation";
static const char evaluation_call[] = "candidates:evaluate";

static int evaluation_gc(lua_State *L) {
  pp_evaluation_free(luaL_checkudata(L, 1, evaluation_type));
  return 0;
}

/* A userdata, so that a Lua error frees what it holds. */
static pp_evaluation *push_evaluation(lua_State *L) {
  pp_evaluation *self = lua_newuserdatauv(L, sizeof *self, 0);
  memset(self, 0, sizeof *self);
  pp_new_class(L, evaluation_type, evaluation_gc, NULL);
  luaL_setmetatable(L, evaluation_type);
  return self;
}

/* -------------------------------------------------------------------------------------------------------------------------- the parts */

static void set_layout(lua_State *L, const pp_evaluation *self) {
  const pp_candidate *candidate = self->of.candidate;
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
  const int group = pp_candidate_group(candidate);
  if (group > 0) pp_set_integer(L, "group", group);
}

static void set_stages(lua_State *L, const pp_evaluation *self) {
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    lua_pushinteger(L, pp_stage_layers(&self->stage[s]));
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "layers_per_stage");
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    pp_push_stage(L, &self->stage[s]);
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "stages");
  lua_createtable(L, self->stages, 0);
  for (int s = 0; s < self->stages; s++) {
    const pp_stage_seconds *seconds = &self->seconds[s];
    lua_createtable(L, 0, 14);
    pp_set_number(L, "forward", seconds->forward);
    pp_set_number(L, "input", seconds->input);
    pp_set_number(L, "weight", seconds->weight);
    pp_set_number(L, "full", seconds->full);
    pp_set_number(L, "host_forward", seconds->host_forward);
    pp_set_number(L, "host_backward", seconds->host_backward);
    pp_set_number(L, "launch_forward", seconds->launch_forward);
    pp_set_number(L, "launch_backward", seconds->launch_backward);
    pp_set_number(L, "lost_forward", seconds->lost_forward);
    pp_set_number(L, "lost_backward", seconds->lost_backward);
    pp_set_number(L, "alltoall_forward", seconds->alltoall_forward);
    pp_set_number(L, "alltoall_backward", seconds->alltoall_backward);
    lua_rawseti(L, -2, s + 1);
  }
  lua_setfield(L, -2, "stage_seconds");
}

/* One number of each stage, F, I, W and B, into the table on top of the stack. */
static void set_four(lua_State *L, const pp_host_times *host, int stages, bool beyond) {
  static const char *const names[] = { "F", "I", "W", "B" };
  double values[4][PP_MAX_LAYERS];
  for (int s = 0; s < stages; s++) {
    const pp_stage_times *of = beyond ? &host[s].beyond : &host[s].seconds;
    values[0][s] = of->forward;
    values[1][s] = of->input;
    values[2][s] = of->weight;
    values[3][s] = of->full;
  }
  for (int kind = 0; kind < 4; kind++) pp_set_numbers(L, names[kind], values[kind], stages);
}

static void set_waits(lua_State *L, const pp_host_times *host, int stages) {
  static const char *const names[] = { "F", "I", "W", "B" };
  lua_createtable(L, 0, 4);
  for (int kind = 0; kind < 4; kind++) {
    lua_createtable(L, stages, 0);
    for (int s = 0; s < stages; s++) {
      const bool waits[] = { host[s].forward_waits, host[s].input_waits, host[s].weight_waits, host[s].full_waits };
      lua_pushboolean(L, waits[kind]);
      lua_rawseti(L, -2, s + 1);
    }
    lua_setfield(L, -2, names[kind]);
  }
  lua_setfield(L, -2, "waits");
}

/* What handing over the actions of each stage takes its host, as schedule:simulate takes it; where the profile says so. */
static void set_hosts(lua_State *L, const pp_evaluation *self) {
  pp_profile_hosts hosts;
  pp_host_times host[PP_MAX_LAYERS];
  if (!pp_evaluate_hosted(self->of.problem)) return;
  pp_profile_hosts_of(self->of.problem->profile, &hosts);
  for (int s = 0; s < self->stages; s++) pp_profile_host_of_stage(&hosts, &self->stage[s], &host[s]);
  lua_createtable(L, 0, 6);
  set_four(L, host, self->stages, false);
  lua_createtable(L, 0, 4);
  set_four(L, host, self->stages, true);
  lua_setfield(L, -2, "beyond");
  set_waits(L, host, self->stages);
  lua_setfield(L, -2, "stage_hosts");
  pp_set_number(L, "host_wait_seconds", self->timing.host_wait_seconds);
}

/* stage of one chain → the ranks that hold it, ascending chain */
static void set_placement(lua_State *L, const pp_evaluation *self) {
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

static void set_memory(lua_State *L, const pp_evaluation *self) {
  const int ranks = self->of.candidate->layout.pipeline, slots = pp_evaluation_slots(self);
  const pp_rank_bytes *fullest = &self->bytes[self->fullest];
  lua_createtable(L, ranks, 0);
  for (int rank = 0; rank < ranks; rank++) {
    pp_push_rank(L, &self->bytes[rank]);
    pp_set_integer(L, "rank", rank);
    lua_createtable(L, slots, 0);
    for (int slot = 0; slot < slots; slot++) {
      lua_pushinteger(L, pp_evaluation_stage_in_slot(self, rank, slot) + 1);
      lua_rawseti(L, -2, slot + 1);
    }
    lua_setfield(L, -2, "stages");
    lua_rawseti(L, -2, rank + 1);
  }
  lua_setfield(L, -2, "memory");
  pp_set_integer(L, "heaviest_rank", self->fullest);
  pp_set_number(L, "peak_bytes", fullest->total);
  pp_set_number(L, "further_copies_bytes", pp_memory_further_copies(fullest, self->traits ? self->traits->copies : 1));
}

static void set_parameters(lua_State *L, const pp_evaluation *self) {
  const pp_held_parameters held = pp_evaluation_parameters(self);
  lua_createtable(L, 0, 2);
  pp_set_number(L, "resident", held.resident);
  pp_set_number(L, "unique", held.unique);
  lua_setfield(L, -2, "parameters");
}

static void set_simulation(lua_State *L, const pp_evaluation *self) {
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

static void set_parts(lua_State *L, const pp_evaluation *self) {
  const pp_step_parts parts = pp_evaluation_parts(self);
  pp_set_number(L, "work_seconds", parts.work);
  pp_set_number(L, "ideal_step_seconds", parts.ideal);
  pp_set_number(L, "alltoall_seconds", parts.alltoall);
  pp_set_number(L, "alltoall_exposed_seconds", parts.alltoall_exposed);
  pp_set_number(L, "tensor_seconds", parts.tensor);
  pp_set_number(L, "context_seconds", parts.context);
  pp_set_number(L, "context_exposed_seconds", parts.context_exposed);
}

static void set_step(lua_State *L, const pp_evaluation *self) {
  pp_set_number(L, "step_seconds", self->timing.step_seconds);
  pp_set_number(L, "hop_seconds", self->of.costs->hop);
  pp_set_number(L, "hop_waiting_seconds", self->of.costs->waiting);
  pp_set_number(L, "hop_exposed_seconds", self->hop_exposed);
  pp_set_number(L, "cool_step_seconds", self->cool.step_seconds);
  pp_set_number(L, "pair_share", self->of.costs->pair_share);
  lua_createtable(L, 0, 5);
  pp_set_number(L, "gradient_sync", self->timing.step.gradient_sync);
  pp_set_number(L, "parameter_sync", self->timing.step.parameter_sync);
  pp_set_number(L, "optimizer", self->timing.step.optimizer);
  pp_set_number(L, "mirror", self->timing.step.mirror);
  pp_set_number(L, "replicas", self->timing.step.replicas);
  pp_set_number(L, "sharding", self->timing.step.sharding);
  pp_set_number(L, "overhead", self->of.problem->step_overhead_seconds);
  lua_setfield(L, -2, "step");
  lua_createtable(L, 0, 3);
  pp_set_number(L, "step_seconds", self->no_overlap.step_seconds);
  pp_set_number(L, "makespan_seconds", self->no_overlap.makespan_seconds);
  pp_set_number(L, "bubble_fraction", self->no_overlap.bubble_fraction);
  lua_setfield(L, -2, "no_overlap");
  pp_set_boolean(L, "overlap_alone", pp_stages_overlap_alone(&self->of));
}

/* Nothing where it cannot be built, nor without a pipeline. */
static void set_baseline(lua_State *L, const pp_evaluation *self, const char *name) {
  pp_baseline found;
  pp_error error;
  const int kind = pp_schedule_kind_of(name);
  if (kind < 0) luaL_error(L, "%s: no schedule '%s'", evaluation_call, name);
  if (!self->traits) return;
  const pp_status status = pp_evaluation_baseline(&self->of, (pp_schedule_kind)kind, &found, &error);
  if (status == PP_NO_MEMORY) pp_args_raise(L, evaluation_call, &error);
  if (status != PP_OK) return;
  lua_createtable(L, 0, 6);
  pp_set_number(L, "step_seconds", found.timing.step_seconds);
  pp_set_number(L, "cool_step_seconds", found.cool.step_seconds);
  pp_set_number(L, "makespan_seconds", found.timing.makespan_seconds);
  pp_set_number(L, "bubble_fraction", found.timing.bubble_fraction);
  pp_set_number(L, "peak_bytes", found.bytes);
  pp_set_boolean(L, "fits", found.bytes <= self->of.problem->usable_bytes);
  lua_setfield(L, -2, name);
}

/* The evaluation on top gets `baselines`: those that the list at an index names, if there is one. */
static void set_baselines(lua_State *L, const pp_evaluation *self, int names) {
  lua_newtable(L);
  if (!lua_isnoneornil(L, names)) {
    luaL_checktype(L, names, LUA_TTABLE);
    for (lua_Integer i = 1; lua_geti(L, names, i) != LUA_TNIL; i++) {
      const char *name = luaL_checkstring(L, -1);
      lua_insert(L, -2);  /* the name stays on the stack while it is used */
      set_baseline(L, self, name);
      lua_remove(L, -2);
    }
    lua_pop(L, 1);
  }
  lua_setfield(L, -2, "baselines");
}

/* --------------------------------------------------------------------------------------------------------------------------- together */

int pp_push_evaluation(lua_State *L, pp_search *search, size_t row, int baselines) {
  pp_error error;
  luaL_checkstack(L, 16, evaluation_call);
  pp_evaluation *self = push_evaluation(L);
  pp_status status = pp_search_settle(search, row, &error);
  if (status == PP_OK) {
    const pp_priced of = pp_search_priced(search, row);
    status = pp_evaluation_compute(&of, self, &error);
  }
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, evaluation_call, &error);
  lua_createtable(L, 0, 45);
  set_layout(L, self);
  set_stages(L, self);
  set_placement(L, self);
  set_hosts(L, self);
  set_memory(L, self);
  set_parameters(L, self);
  set_simulation(L, self);
  set_parts(L, self);
  set_step(L, self);
  set_baselines(L, self, baselines);
  return 1;
}

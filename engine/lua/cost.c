/* SPDX-License-Identifier: Apache-2.0 */
/*
** cost.c: engine.cost: seconds of blocks, stages, pairs, steps and hand-overs; names of losses. May longjmp.
*/
#include "lua/cost.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "core/cost.h"
#include "core/loss.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/recipe.h"
#include "lua/shape.h"

/* Units of pp_charge: pricing every kind of block, and a table for each. */
enum { BLOCKS_WORK = 500 };

typedef struct {
  pp_model model;
  pp_layout layout;
  pp_training training;
  pp_device device;
  pp_network network;
} setting;

static void check_model(lua_State *L, const char *call, setting *out) {
  pp_args_table(L, 1, call, "model");
  pp_check_shape(L, lua_gettop(L), &out->model);
  lua_pop(L, 1);
}

static void check_recipe(lua_State *L, const char *call, setting *out) {
  pp_args_table(L, 1, call, "layout");
  pp_check_layout(L, -1, &out->layout);
  pp_args_table(L, 1, call, "training");
  pp_check_training(L, -1, &out->training);
  pp_args_table(L, 1, call, "network");
  pp_check_network(L, -1, &out->network);
  lua_pop(L, 3);
}

static void check_device(lua_State *L, const char *call, setting *out) {
  pp_args_table(L, 1, call, "device");
  pp_check_device(L, -1, &out->device);
  lua_pop(L, 1);
}

/* Returns how many kinds of blocks the model may have. */
static int blocks_of(lua_State *L, const char *call, pp_block_seconds blocks[PP_BLOCKS], pp_pass_terms terms[PP_BLOCKS][PP_PASSES]) {
  setting at;
  pp_error error;
  pp_charge(L, BLOCKS_WORK);
  check_model(L, call, &at);
  check_recipe(L, call, &at);
  check_device(L, call, &at);
  if (pp_cost_blocks(&at.model, &at.layout, &at.training, &at.device, &at.network, blocks, terms, &error) != PP_OK)
    pp_args_raise(L, call, &error);
  return pp_blocks_of(&at.model);
}

/*
** engine.cost.blocks{ model, layout, training, device, network } → { embedding = { forward, input, weight, full, alltoall_forward,
** alltoall_backward, tensor, context, context_exposed }, dense = …, … }: seconds of one block for one microbatch, all-to-all apart;
** tensor and context_exposed are part of the first three
*/
static int cost_blocks(lua_State *L) {
  static const char call[] = "engine.cost.blocks";
  static const char *const known[] = { "model", "layout", "training", "device", "network", NULL };
  pp_block_seconds blocks[PP_BLOCKS];
  pp_args_begin(L, 1, call, known);
  const int count = blocks_of(L, call, blocks, NULL);
  lua_createtable(L, 0, count);
  for (int i = 0; i < count; i++) {
    pp_push_numbers(L, (pp_named_number[]){
      { "forward", blocks[i].forward }, { "input", blocks[i].input }, { "weight", blocks[i].weight },
      { "full", blocks[i].full },
      { "alltoall_forward", blocks[i].alltoall_forward }, { "alltoall_backward", blocks[i].alltoall_backward },
      { "tensor", blocks[i].tensor }, { "context", blocks[i].context }, { "context_exposed", blocks[i].context_exposed },
      { "host_forward", blocks[i].host_forward }, { "host_backward", blocks[i].host_backward },
      { "launch_forward", blocks[i].launch_forward }, { "launch_backward", blocks[i].launch_backward },
      { "lost_forward", blocks[i].lost_forward }, { "lost_backward", blocks[i].lost_backward }, { NULL, 0 } });
    lua_setfield(L, -2, pp_block_names[i]);
  }
  return 1;
}

static void push_terms(lua_State *L, const pp_pass_terms *terms) {
  pp_push_numbers(L, (pp_named_number[]){
    { "products", terms->products }, { "grouped", terms->grouped }, { "attention", terms->attention }, { "moved", terms->moved },
    { "accumulated", terms->accumulated }, { "tensor", terms->tensor }, { "ring", terms->ring }, { "latency", terms->latency },
    { "recompute", terms->recompute }, { "host", terms->host }, { NULL, 0 } });
}

/*
** engine.cost.terms{ model, layout, training, device, network } → { embedding = { forward = { products, grouped, attention, moved,
** accumulated, tensor, ring, latency, recompute, host }, input = …, weight = … }, dense = …, … }: what the seconds of engine.cost.blocks
** are made of
*/
static int cost_terms(lua_State *L) {
  static const char call[] = "engine.cost.terms";
  static const char *const known[] = { "model", "layout", "training", "device", "network", NULL };
  static const char *const passes[PP_PASSES] = { "forward", "input", "weight" };
  pp_block_seconds blocks[PP_BLOCKS];
  pp_pass_terms terms[PP_BLOCKS][PP_PASSES];
  pp_args_begin(L, 1, call, known);
  const int count = blocks_of(L, call, blocks, terms);
  lua_createtable(L, 0, count);
  for (int i = 0; i < count; i++) {
    lua_createtable(L, 0, PP_PASSES);
    for (int k = 0; k < PP_PASSES; k++) {
      push_terms(L, &terms[i][k]);
      lua_setfield(L, -2, passes[k]);
    }
    lua_setfield(L, -2, pp_block_names[i]);
  }
  return 1;
}

/*
** engine.cost.stage{ model, layout, training, device, network, stage = { embedding = 0, dense = 0, moe = 0, head = 0, mtp = 0 } } →
** { forward, input, weight, full, alltoall_forward, alltoall_backward, tensor, context, context_exposed }: seconds for one microbatch,
** executed alone
*/
static int cost_stage(lua_State *L) {
  static const char call[] = "engine.cost.stage";
  static const char *const known[] = { "model", "layout", "training", "device", "network", "stage", NULL };
  pp_block_seconds blocks[PP_BLOCKS];
  pp_stage stage;
  pp_stage_seconds out;
  pp_args_begin(L, 1, call, known);
  blocks_of(L, call, blocks, NULL);
  pp_args_table(L, 1, call, "stage");
  pp_check_stage(L, -1, call, &stage);
  pp_cost_stage(&stage, blocks, &out);
  pp_push_numbers(L, (pp_named_number[]){
    { "forward", out.forward }, { "input", out.input }, { "weight", out.weight }, { "full", out.full },
    { "alltoall_forward", out.alltoall_forward }, { "alltoall_backward", out.alltoall_backward },
    { "tensor", out.tensor }, { "context", out.context }, { "context_exposed", out.context_exposed },
    { "host_forward", out.host_forward }, { "host_backward", out.host_backward },
    { "launch_forward", out.launch_forward }, { "launch_backward", out.launch_backward },
    { "lost_forward", out.lost_forward }, { "lost_backward", out.lost_backward }, { NULL, 0 } });
  return 1;
}

static void check_stage_seconds(lua_State *L, const char *call, const char *name, pp_stage_seconds *out) {
  static const char *const known[] = { "forward", "input", "weight", "full", "alltoall_forward", "alltoall_backward", "tensor", "context",
                                       "context_exposed", "host_forward", "host_backward", "launch_forward", "launch_backward",
                                       "lost_forward", "lost_backward", NULL };
  memset(out, 0, sizeof *out);
  pp_args_table(L, 1, call, name);
  const int index = lua_gettop(L);
  pp_args_begin(L, index, call, known);
  out->forward = pp_args_number(L, index, call, "forward", 0, HUGE_VAL);
  out->input = pp_args_number_or(L, index, call, "input", 0, HUGE_VAL, 0);
  out->weight = pp_args_number_or(L, index, call, "weight", 0, HUGE_VAL, 0);
  out->full = pp_args_number_or(L, index, call, "full", 0, HUGE_VAL, out->input + out->weight);
  out->alltoall_forward = pp_args_number_or(L, index, call, "alltoall_forward", 0, out->forward, 0);
  out->alltoall_backward = pp_args_number_or(L, index, call, "alltoall_backward", 0, out->full, 0);
  out->launch_forward = pp_args_number_or(L, index, call, "launch_forward", 0, HUGE_VAL, 0);
  out->launch_backward = pp_args_number_or(L, index, call, "launch_backward", 0, HUGE_VAL, 0);
  out->lost_forward = pp_args_number_or(L, index, call, "lost_forward", 0, out->forward, 0);
  out->lost_backward = pp_args_number_or(L, index, call, "lost_backward", 0, out->full, 0);
  lua_pop(L, 1);
}

/* engine.cost.pair{ device, forward = stage seconds, backward = stage seconds } → seconds of F&B */
static int cost_pair(lua_State *L) {
  static const char call[] = "engine.cost.pair";
  static const char *const known[] = { "device", "forward", "backward", NULL };
  setting at;
  pp_stage_seconds forward, backward;
  pp_args_begin(L, 1, call, known);
  check_device(L, call, &at);
  check_stage_seconds(L, call, "forward", &forward);
  check_stage_seconds(L, call, "backward", &backward);
  lua_pushnumber(L, pp_cost_pair(&at.device, &forward, &backward));
  return 1;
}

/*
** engine.cost.step{ layout, training, device, network, dense_parameters, expert_parameters = 0, copies = 1 } →
** { gradient_sync, parameter_sync, optimizer, mirror }: seconds beside the pipeline; parameters resident on the rank
*/
static int cost_step(lua_State *L) {
  static const char call[] = "engine.cost.step";
  static const char *const known[] = { "layout", "training", "device", "network", "dense_parameters", "expert_parameters", "copies", NULL };
  setting at;
  pp_step_seconds out;
  pp_args_begin(L, 1, call, known);
  check_recipe(L, call, &at);
  check_device(L, call, &at);
  const double dense = pp_args_number(L, 1, call, "dense_parameters", 0, HUGE_VAL);
  const double expert = pp_args_number_or(L, 1, call, "expert_parameters", 0, HUGE_VAL, 0);
  const int copies = (int)pp_args_integer_or(L, 1, call, "copies", 1, 2, 1);
  if (at.training.optimizer_offload > 0 && !(at.device.host_link > 0 && at.device.host_memory_bandwidth > 0))
    return luaL_error(L, "%s: device 'host_link' and 'host_memory_bandwidth' must be given with optimizer_offload", call);
  pp_cost_step(&at.layout, &at.training, &at.device, &at.network, dense, expert, copies, &out);
  pp_push_numbers(L, (pp_named_number[]){
    { "gradient_sync", out.gradient_sync }, { "parameter_sync", out.parameter_sync }, { "optimizer", out.optimizer },
    { "mirror", out.mirror }, { "replicas", out.replicas }, { "sharding", out.sharding }, { NULL, 0 } });
  return 1;
}

/* engine.cost.hop{ model, layout, training, network } → seconds that one microbatch's activations take to the next stage */
static int cost_hop(lua_State *L) {
  static const char call[] = "engine.cost.hop";
  static const char *const known[] = { "model", "layout", "training", "network", NULL };
  setting at;
  pp_args_begin(L, 1, call, known);
  check_model(L, call, &at);
  check_recipe(L, call, &at);
  lua_pushnumber(L, pp_cost_hop(&at.model, &at.layout, &at.training, &at.network));
  return 1;
}

static const luaL_Reg cost_functions[] = {
  { "blocks", cost_blocks },
  { "hop",    cost_hop },
  { "pair",   cost_pair },
  { "stage",  cost_stage },
  { "terms",  cost_terms },
  { "step",   cost_step },
  { NULL, NULL }
};

int pp_open_cost(lua_State *L) {
  luaL_newlib(L, cost_functions);
  lua_createtable(L, PP_LOSSES, 0);
  for (int loss = 0; loss < PP_LOSSES; loss++) {
    lua_pushstring(L, pp_loss_names[loss]);
    lua_rawseti(L, -2, loss + 1);
  }
  lua_setfield(L, -2, "losses");
  return 1;
}

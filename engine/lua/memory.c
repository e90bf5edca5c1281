/* SPDX-License-Identifier: Apache-2.0 */
/*
** memory.c: engine.memory: bytes of blocks, and of every rank of a pipeline. May longjmp: what the C heap would hold is a userdata.
*/
#include "lua/memory.h"

#include <lauxlib.h>
#include <math.h>

#include "core/memory.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/recipe.h"
#include "lua/schedule_object.h"
#include "lua/shape.h"

/* Units of pp_charge: five tables of six fields, and their arithmetic. */
enum { BLOCKS_WORK = 500 };

typedef struct {
  pp_model model;
  pp_layout layout;
  pp_training training;
} setting;

/* The arguments model, layout and training. */
static void check_setting(lua_State *L, const char *call, setting *out) {
  pp_args_table(L, 1, call, "model");
  pp_check_shape(L, lua_gettop(L), &out->model);
  pp_args_table(L, 1, call, "layout");
  pp_check_layout(L, -1, &out->layout);
  pp_args_table(L, 1, call, "training");
  pp_check_training(L, -1, &out->training);
  lua_pop(L, 3);
}

static void blocks_of(lua_State *L, const char *call, const setting *at, int copies, pp_block_bytes blocks[PP_BLOCKS]) {
  pp_error error;
  if (pp_memory_blocks(&at->model, &at->layout, &at->training, copies, blocks, &error) != PP_OK) pp_args_raise(L, call, &error);
}

/*
** engine.memory.blocks{ model, layout, training, copies = 1 } → { embedding = { parameters, gradients, optimizer, host, stored,
** pending, transient }, dense = …, moe = …, head = …, mtp = … }: bytes of one block on one GPU
*/
static int memory_blocks(lua_State *L) {
  static const char call[] = "engine.memory.blocks";
  static const char *const known[] = { "model", "layout", "training", "copies", NULL };
  setting at;
  pp_block_bytes blocks[PP_BLOCKS];
  pp_args_begin(L, 1, call, known);
  pp_charge(L, BLOCKS_WORK);
  check_setting(L, call, &at);
  blocks_of(L, call, &at, (int)pp_args_integer_or(L, 1, call, "copies", 1, 2, 1), blocks);
  lua_createtable(L, 0, PP_BLOCKS);
  for (int i = 0; i < pp_blocks_of(&at.model); i++) {
    const pp_block_bytes *block = &blocks[i];
    pp_push_numbers(L, (pp_named_number[]){
      { "parameters", block->state.parameters }, { "gradients", block->state.gradients }, { "optimizer", block->state.optimizer },
      { "host", block->state.host },
      { "stored", block->stored },         { "pending", block->pending },     { "transient", block->transient },
      { NULL, 0 } });
    lua_setfield(L, -2, pp_block_names[i]);
  }
  return 1;
}

/* The argument layers_per_stage as a userdata that stays on the stack, or NULL when absent. */
static const int *check_layers(lua_State *L, const char *call, int stages) {
  if (!pp_args_has(L, 1, "layers_per_stage")) return NULL;
  int *layers = lua_newuserdatauv(L, (size_t)stages * sizeof *layers, 0);
  pp_args_table(L, 1, call, "layers_per_stage");
  pp_check_layers(L, -1, call, stages, layers);
  lua_pop(L, 1);
  return layers;
}

void pp_push_rank(lua_State *L, const pp_rank_bytes *rank) {
  pp_push_numbers(L, (pp_named_number[]){
    { "parameters", rank->parameters },   { "gradients", rank->gradients }, { "optimizer", rank->optimizer },
    { "activations", rank->activations }, { "transient", rank->transient }, { "overhead", rank->overhead },
    { "total", rank->total },             { "host", rank->host },           { "tower", rank->tower },
    { NULL, 0 } });
}

/*
** engine.memory.stages{ model, layout, training, schedule = nil (no pipeline), overhead = 0, communicators = nil (in overhead),
** layers_per_stage = nil (even) } → list, one entry a rank: { parameters, gradients, optimizer, activations, transient, overhead, total,
** host, tower }; or nil and the broken rule when there are more stages than layers.
*/
static int memory_stages(lua_State *L) {
  static const char call[] = "engine.memory.stages";
  static const char *const known[] = { "model", "layout", "training", "schedule", "overhead", "communicators", "layers_per_stage", NULL };
  setting at;
  pp_block_bytes blocks[PP_BLOCKS];
  pp_rank_bytes rank;
  pp_error error;
  const pp_schedule *schedule = NULL;
  pp_args_begin(L, 1, call, known);
  check_setting(L, call, &at);
  const double overhead = pp_args_number_or(L, 1, call, "overhead", 0, HUGE_VAL, 0);
  pp_communicators communicators;
  pp_check_communicators(L, 1, call, &communicators);
  if (pp_args_has(L, 1, "schedule")) {
    lua_getfield(L, 1, "schedule");
    schedule = pp_check_schedule(L, lua_gettop(L));   /* stays on the stack: it must live as long as we read it */
  }
  const int stages = schedule ? schedule->stages_per_chain : 1, ranks = schedule ? schedule->request.ranks : 1;
  /* every action is walked once; a stage and a rank cost a table each */
  pp_charge(L, 50 * (uint64_t)(stages + ranks) + (schedule ? schedule->first[ranks] : 0));
  const int *layers = check_layers(L, call, stages);
  pp_stage *out = lua_newuserdatauv(L, (size_t)stages * sizeof *out, 0);
  blocks_of(L, call, &at, schedule ? schedule->traits.copies : 1, blocks);
  const pp_status status = pp_layout_stages(&at.model, stages, layers, out, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, call, &error);
  pp_stage_memory *needs = lua_newuserdatauv(L, (size_t)stages * sizeof *needs, 0);
  pp_memory_stages(out, stages, blocks, needs);
  double *scratch = schedule ? lua_newuserdatauv(L, 2 * (size_t)schedule->stages * sizeof *scratch, 0) : NULL;
  lua_createtable(L, ranks, 0);
  for (int r = 0; r < ranks; r++) {
    const bool interleaved = schedule && schedule->stages_per_chain > ranks && schedule->traits.placement == PP_PLACE_LOOP;
    const double process = overhead + pp_communicators_bytes(&communicators, &at.model, &at.training, &at.layout, interleaved, r);
    if (schedule) pp_memory_rank(schedule, r, needs, process, scratch, &rank);
    else pp_memory_holding(needs, needs->stored, process, &rank);
    pp_push_rank(L, &rank);
    lua_rawseti(L, -2, r + 1);
  }
  return 1;
}

static const luaL_Reg memory_functions[] = {
  { "blocks", memory_blocks },
  { "stages", memory_stages },
  { NULL, NULL }
};

int pp_open_memory(lua_State *L) {
  luaL_newlib(L, memory_functions);
  return 1;
}

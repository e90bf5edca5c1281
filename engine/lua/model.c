/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.c: engine.model. May longjmp. See model.h. engine.model.fields lists the keys of a shape.
*/
#include "lua/model.h"

#include "core/layout.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/recipe.h"
#include "lua/results.h"
#include "lua/shape.h"

/*
** engine.model.parameters(shape) → { total, active, active_without_embedding, mtp, tower, adapters, blocks = { embedding = { tensor, replicated,
** expert }, … } }
*/
static int model_parameters(lua_State *L) {
  pp_model model;
  pp_block_parameters blocks[PP_BLOCKS];
  pp_check_shape(L, 1, &model);
  const pp_parameter_totals totals = pp_model_parameters(&model);
  pp_model_block_parameters(&model, blocks);
  lua_createtable(L, 0, 7);
  pp_set_integer(L, "total", totals.total);
  pp_set_integer(L, "active", totals.active);
  pp_set_integer(L, "active_without_embedding", totals.active_without_embedding);
  pp_set_integer(L, "mtp", totals.mtp);
  pp_set_integer(L, "tower", totals.tower);
  pp_set_integer(L, "adapters", totals.adapters);
  lua_createtable(L, 0, PP_BLOCKS);
  for (int i = 0; i < pp_blocks_of(&model); i++) {
    lua_createtable(L, 0, 3);
    pp_set_integer(L, "tensor", blocks[i].tensor);
    pp_set_integer(L, "replicated", blocks[i].replicated);
    pp_set_integer(L, "expert", blocks[i].expert);
    lua_setfield(L, -2, pp_block_names[i]);
  }
  lua_setfield(L, -2, "blocks");
  return 1;
}

/*
** engine.model.flops(shape, length) → { per_token, blocks = { embedding = { linear, expert, attention, router }, … } }
** `length`: tokens within which attention stays. per_token is training (forward and backward); blocks are forward.
*/
static int model_flops(lua_State *L) {
  pp_model model;
  pp_block_flops blocks[PP_BLOCKS];
  pp_check_shape(L, 1, &model);
  const lua_Number length = luaL_checknumber(L, 2);
  luaL_argcheck(L, length >= 1 && length <= 0x1p62, 2, "a sequence has at least one token");
  pp_model_block_flops(&model, length, blocks);
  lua_createtable(L, 0, 2);
  pp_set_number(L, "per_token", pp_model_flops_per_token(&model, length));
  lua_createtable(L, 0, PP_BLOCKS);
  for (int i = 0; i < pp_blocks_of(&model); i++) {
    lua_createtable(L, 0, 4);
    pp_set_number(L, "linear", blocks[i].linear);
    pp_set_number(L, "expert", blocks[i].expert);
    pp_set_number(L, "attention", blocks[i].attention);
    pp_set_number(L, "router", blocks[i].router);
    lua_setfield(L, -2, pp_block_names[i]);
  }
  lua_setfield(L, -2, "blocks");
  return 1;
}

/* engine.model.stages(shape, stages [, layers_per_stage]) → list of { embedding, dense, moe, head, mtp } counts | nil, illegal */
static int model_stages(lua_State *L) {
  static const char stages_call[] = "engine.model.stages";
  pp_model model;
  pp_error error;
  pp_check_shape(L, 1, &model);
  const lua_Integer stages = luaL_checkinteger(L, 2);
  luaL_argcheck(L, stages >= 1 && stages <= 65536, 2, "number of stages from 1 to 65536 expected");
  pp_charge(L, 50 * (uint64_t)stages);  /* a table of five fields each */
  int *layers = NULL;
  if (!lua_isnoneornil(L, 3)) {
    layers = lua_newuserdatauv(L, (size_t)stages * sizeof *layers, 0);
    pp_check_layers(L, 3, stages_call, (int)stages, layers);
  }
  pp_stage *out = lua_newuserdatauv(L, (size_t)stages * sizeof *out, 0);
  const pp_status status = pp_layout_stages(&model, (int)stages, layers, out, &error);
  if (status == PP_ILLEGAL) return pp_push_illegal(L, &error);
  if (status != PP_OK) return pp_args_raise(L, stages_call, &error);
  lua_createtable(L, (int)stages, 0);
  for (lua_Integer s = 0; s < stages; s++) {
    pp_push_stage(L, &out[s]);
    lua_rawseti(L, -2, s + 1);
  }
  return 1;
}

static const luaL_Reg model_functions[] = {
  { "flops",      model_flops },
  { "parameters", model_parameters },
  { "stages",     model_stages },
  { NULL, NULL }
};

int pp_open_model(lua_State *L) {
  luaL_newlib(L, model_functions);
  pp_push_shape_fields(L);
  lua_setfield(L, -2, "fields");
  return 1;
}

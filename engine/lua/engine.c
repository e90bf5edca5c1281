/* SPDX-License-Identifier: Apache-2.0 */
/*
** engine.c: the table `engine`: one field per binding file. May longjmp.
*/
#include "lua/engine.h"

#include "host/embedded.h"
#include "lua/conditions.h"
#include "lua/host.h"
#include "lua/json.h"
#include "lua/kernels.h"
#include "lua/primitives.h"
#include "lua/process.h"
#include "lua/search.h"
#include "lua/stdlib.h"
#include "lua/text.h"

/* engine.embedded(name) → the text of an embedded file, or nil. */
static int engine_embedded(lua_State *L) {
  const pp_embedded *file = pp_embedded_find(luaL_checkstring(L, 1));
  if (!file) return 0;
  lua_pushlstring(L, file->text, file->text_size);
  return 1;
}

/* engine.embedded_names(prefix) → sorted list of the embedded files whose names start with prefix. */
static int engine_embedded_names(lua_State *L) {
  size_t length;
  const char *prefix = luaL_checklstring(L, 1, &length);
  lua_Integer n = 0;
  lua_newtable(L);
  for (size_t i = 0; i < pp_embedded_count; i++) {
    const char *name = pp_embedded_files[i].name;
    size_t j = 0;
    while (j < length && name[j] == prefix[j]) j++;
    if (j < length) continue;
    lua_pushstring(L, name);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

static const luaL_Reg engine_functions[] = {
  { "embedded",       engine_embedded },
  { "embedded_names", engine_embedded_names },
  { NULL, NULL }
};

/* Beside the primitives; opened in this order, each pushes its table. */
static const luaL_Reg engine_modules[] = {
  { "conditions", pp_open_conditions },
  { "host",       pp_open_host },
  { "json",       pp_open_json },
  { "kernels",    pp_open_kernels },
  { "process",    pp_open_process },
  { "search",     pp_open_search },
  { "text",       pp_open_text },
  { NULL, NULL }
};

int pp_open_engine(lua_State *L) {
  pp_open_primitives(L);
  luaL_setfuncs(L, engine_functions, 0);
  lua_pushliteral(L, PP_VERSION);
  lua_setfield(L, -2, "version");
  lua_pushstring(L, pp_embedded_library);     /* what of pipeplan is Lua, and which catalogue: digests */
  lua_setfield(L, -2, "library");
  lua_pushstring(L, pp_embedded_catalogue);
  lua_setfield(L, -2, "catalogue");
  if (lua_getfield(L, LUA_REGISTRYINDEX, PP_STDLIB_ON_DISK) != LUA_TSTRING) {
    lua_pop(L, 1);
    lua_pushstring(L, pp_embedded_build);
  }
  lua_setfield(L, -2, "build");
  for (const luaL_Reg *module = engine_modules; module->name; module++) {
    lua_pushcfunction(L, module->func);
    lua_call(L, 0, 1);
    lua_setfield(L, -2, module->name);
  }
  return 1;
}

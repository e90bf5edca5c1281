/* SPDX-License-Identifier: Apache-2.0 */
/*
** text.c: binding of core/text.h. May longjmp.
*/
#include "lua/text.h"

#include <lauxlib.h>
#include <string.h>

#include "core/text.h"

/* engine.text.visible(text) → the text on one line, with what a terminal would obey, or a reader not see, escaped */
static int text_visible(lua_State *L) {
  size_t length, plain;
  const char *text = luaL_checklstring(L, 1, &length);
  luaL_Buffer out;
  plain = pp_text_plain(text, length);
  if (plain == length) {
    lua_settop(L, 1);
    return 1;
  }
  luaL_buffinit(L, &out);
  while (length > 0) {
    luaL_addlstring(&out, text, plain);
    text += plain;
    length -= plain;
    if (length > 0) {
      char escape[PP_ESCAPE_SIZE];
      size_t taken = pp_text_escape(text, length, escape);
      luaL_addstring(&out, escape);
      text += taken;
      length -= taken;
    }
    plain = pp_text_plain(text, length);
  }
  luaL_pushresult(&out);
  return 1;
}

/* engine.text.width(text) → columns that it takes */
static int text_width(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  lua_pushinteger(L, (lua_Integer)pp_text_width(text, length));
  return 1;
}

/* engine.text.fit(text, columns [, from]) → how many bytes at its start, or behind its first `from`, take at most so many columns */
static int text_fit(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  lua_Integer columns = luaL_checkinteger(L, 2), from = luaL_optinteger(L, 3, 0);
  luaL_argcheck(L, from >= 0 && (size_t)from <= length, 3, "not in the text");
  lua_pushinteger(L, (lua_Integer)pp_text_fit(text + from, length - (size_t)from, columns > 0 ? (size_t)columns : 0));
  return 1;
}

static const luaL_Reg text_functions[] = {
  { "fit",     text_fit },
  { "visible", text_visible },
  { "width",   text_width },
  { NULL, NULL }
};

int pp_open_text(lua_State *L) {
  luaL_newlib(L, text_functions);
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
** kernels.c: engine.kernels: what a card reaches, from times of its kernels. May longjmp.
*/
#include "lua/kernels.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "core/kernels_fit.h"
#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/results.h"

enum { MOST_ROWS = 10000, FIT_WORK = 100 };  /* rows as the schema of measured kernels has them; units of pp_charge a row: a grid of 72 */

static const char call[] = "engine.kernels.fit";
static const char *const forms[PP_FITS + 1] = {
  [PP_FIT_PRODUCTS] = "products", [PP_FIT_GROUPED] = "grouped", [PP_FIT_ATTENTION] = "attention",
  [PP_FIT_ATTENTION_BACKWARD] = "attention_backward" };

static double size(lua_State *L, int index, const char *name) {
  return pp_args_number(L, index, call, name, 1, 1e12);
}

/* The row on top of the stack. Attention: causal, two products of length² / 2. */
static void check_row(lua_State *L, pp_kernel_form form, pp_measured_kernel *out) {
  const int index = lua_gettop(L);
  const char *seconds = form == PP_FIT_ATTENTION ? "forward" : form == PP_FIT_ATTENTION_BACKWARD ? "backward" : "seconds";
  luaL_checktype(L, index, LUA_TTABLE);
  memset(out, 0, sizeof *out);
  out->seconds = pp_args_number(L, index, call, seconds, 1e-9, 1e12);
  if (form == PP_FIT_PRODUCTS) out->m = size(L, index, "m");
  if (form == PP_FIT_GROUPED) out->experts = size(L, index, "experts"), out->rows = size(L, index, "rows");
  if (form == PP_FIT_PRODUCTS || form == PP_FIT_GROUPED) {
    out->n = size(L, index, "n");
    out->k = size(L, index, "k");
    return;
  }
  const double heads = size(L, index, "heads") * pp_args_number_or(L, index, call, "sequences", 1, 1e12, 1);
  out->length = size(L, index, "length");
  out->pieces = heads * out->length / 128;
  out->flops = 2 * out->length * out->length * heads * size(L, index, "head_dim");
}

/* What is read of `device`: peaks, and what another form's fit found. */
static void check_card(lua_State *L, pp_device *out) {
  static const char where[] = "engine.kernels.fit: device";
  static const char *const known[] = { "flops", "flops_bf16", "product_depth", "attention_efficiency", "attention_fill", NULL };
  pp_args_table(L, 1, call, "device");
  const int index = lua_gettop(L);
  pp_args_begin(L, index, where, known);
  memset(out, 0, sizeof *out);
  out->flops = pp_args_number(L, index, where, "flops", 1e-9, 1e30);
  out->flops_bf16 = pp_args_number(L, index, where, "flops_bf16", 1e-9, 1e30);
  out->product_depth = pp_args_number_or(L, index, where, "product_depth", 0, 1e9, 0);
  out->attention_efficiency = pp_args_number_or(L, index, where, "attention_efficiency", 1e-9, 1, 1);
  out->attention_fill = pp_args_number_or(L, index, where, "attention_fill", 0, 1e9, 0);
  lua_pop(L, 1);
}

static void push_found(lua_State *L, pp_kernel_form form, const pp_device *device, double error) {
  lua_createtable(L, 0, 4);
  pp_set_number(L, "error", error);
  switch (form) {
    case PP_FIT_PRODUCTS:
      pp_set_number(L, "gemm_efficiency", device->gemm_efficiency);
      pp_set_number(L, "product_depth", device->product_depth);
      pp_set_number(L, "product_floor", device->product_floor);
      return;
    case PP_FIT_GROUPED:
      pp_set_number(L, "grouped_gemm_efficiency", device->grouped_gemm_efficiency);
      pp_set_number(L, "grouped_rows", device->grouped_rows);
      pp_set_number(L, "grouped_floor", device->grouped_floor);
      return;
    case PP_FIT_ATTENTION:
      pp_set_number(L, "attention_efficiency", device->attention_efficiency);
      pp_set_number(L, "attention_half", device->attention_half);
      pp_set_number(L, "attention_fill", device->attention_fill);
      return;
    default:
      pp_set_number(L, "attention_backward", device->attention_backward);
      pp_set_number(L, "attention_half_backward", device->attention_half_backward);
  }
}

/*
** engine.kernels.fit{ form = "products" | "grouped" | "attention" | "attention_backward", rows, device = { flops, flops_bf16, product_depth = 0,
** attention_efficiency = 1, attention_fill = 0 } } → { error, and what of a device that form gives }. rows as in the schema of measured kernels.
*/
static int kernels_fit(lua_State *L) {
  static const char *const known[] = { "form", "rows", "device", NULL };
  pp_device device;
  pp_error problem;
  double error;
  pp_args_begin(L, 1, call, known);
  const pp_kernel_form form = (pp_kernel_form)pp_args_option(L, 1, call, "form", forms, -1);
  check_card(L, &device);
  pp_args_table(L, 1, call, "rows");
  const lua_Integer count = luaL_len(L, -1);
  if (count < 1 || count > MOST_ROWS) luaL_error(L, "%s: 'rows' must be from 1 to %d", call, MOST_ROWS);
  pp_charge(L, FIT_WORK * (uint64_t)count);
  pp_measured_kernel *rows = lua_newuserdatauv(L, (size_t)count * sizeof *rows, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_geti(L, -2, i + 1);
    check_row(L, form, &rows[i]);
    lua_pop(L, 1);
  }
  if (pp_kernels_fit(form, rows, (int)count, &device, &error, &problem) != PP_OK) return pp_args_raise(L, call, &problem);
  push_found(L, form, &device, error);
  return 1;
}

static const luaL_Reg kernels_functions[] = {
  { "fit", kernels_fit },
  { NULL, NULL }
};

int pp_open_kernels(lua_State *L) {
  luaL_newlib(L, kernels_functions);
  return 1;
}

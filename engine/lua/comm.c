/* SPDX-License-Identifier: Apache-2.0 */
/*
** comm.c: engine.comm: seconds of transfers. May longjmp.
*/
#include "lua/comm.h"

#include <lauxlib.h>
#include <math.h>

#include "host/budget.h"
#include "lua/arguments.h"
#include "lua/recipe.h"
#include "lua/results.h"

enum { MOST_POINTS = 4096 };  /* far more sizes than any run has */

/* Reads the argument `network`. */
static void check_network(lua_State *L, const char *call, pp_network *out) {
  pp_args_table(L, 1, call, "network");
  pp_check_network(L, -1, out);
  lua_pop(L, 1);
}

static double bytes_of(lua_State *L, const char *call) {
  return pp_args_number(L, 1, call, "bytes", 0, HUGE_VAL);
}

static int64_t stride_of(lua_State *L, const char *call) {
  return pp_args_integer_or(L, 1, call, "stride", 1, INT32_MAX, 1);
}

/* engine.comm.p2p{ network, stride = 1, bytes } → seconds */
static int comm_p2p(lua_State *L) {
  static const char call[] = "engine.comm.p2p";
  static const char *const known[] = { "network", "stride", "bytes", NULL };
  pp_network network;
  pp_args_begin(L, 1, call, known);
  check_network(L, call, &network);
  lua_pushnumber(L, pp_comm_p2p(&network, stride_of(L, call), bytes_of(L, call)));
  return 1;
}

typedef double (*collective)(const pp_network *network, int64_t size, int64_t stride, double bytes);

static int comm_collective(lua_State *L, const char *call, collective seconds) {
  static const char *const known[] = { "network", "size", "stride", "bytes", NULL };
  pp_network network;
  pp_args_begin(L, 1, call, known);
  check_network(L, call, &network);
  const int64_t size = pp_args_integer(L, 1, call, "size", 1, INT32_MAX);
  lua_pushnumber(L, seconds(&network, size, stride_of(L, call), bytes_of(L, call)));
  return 1;
}

/* engine.comm.allgather{ network, size, stride = 1, bytes } → seconds; a reduce-scatter takes as long. bytes: of all ranks together. */
static int comm_allgather(lua_State *L) {
  return comm_collective(L, "engine.comm.allgather", pp_comm_allgather);
}

/* engine.comm.allreduce{ network, size, stride = 1, bytes } → seconds */
static int comm_allreduce(lua_State *L) {
  return comm_collective(L, "engine.comm.allreduce", pp_comm_allreduce);
}

/*
** engine.comm.alltoall{ network, group, stride = 1, tokens, experts_per_token, experts = 0, bytes_per_token, rate = 0, max_domains = 0,
**   flat = false } → seconds
*/
static int comm_alltoall(lua_State *L) {
  static const char call[] = "engine.comm.alltoall";
  static const char *const known[] = { "network", "group", "stride", "tokens", "experts_per_token", "experts", "bytes_per_token",
                                       "rate", "max_domains", "flat", NULL };
  pp_network network;
  pp_args_begin(L, 1, call, known);
  check_network(L, call, &network);
  const pp_alltoall transfer = {
    .group = pp_args_integer(L, 1, call, "group", 1, INT32_MAX),
    .stride = stride_of(L, call),
    .tokens = pp_args_number(L, 1, call, "tokens", 0, HUGE_VAL),
    .experts_per_token = (double)pp_args_integer(L, 1, call, "experts_per_token", 1, 1 << 16),
    .experts = pp_args_integer_or(L, 1, call, "experts", 0, INT32_MAX, 0),
    .rate = pp_args_number_or(L, 1, call, "rate", 0, HUGE_VAL, 0),
    .max_domains = pp_args_integer_or(L, 1, call, "max_domains", 0, INT32_MAX, 0),
    .bytes_per_token = pp_args_number(L, 1, call, "bytes_per_token", 0, HUGE_VAL),
    .flat = pp_args_boolean_or(L, 1, call, "flat", false),
  };
  if (transfer.experts > 0 && transfer.experts_per_token > (double)transfer.experts)
    luaL_error(L, "%s: 'experts_per_token' must be at most 'experts', %I, got %I", call, (lua_Integer)transfer.experts,
               (lua_Integer)transfer.experts_per_token);
  lua_pushnumber(L, pp_comm_alltoall(&network, &transfer));
  return 1;
}

/* Reads the argument `points`, { { bytes, seconds }, … }, into a userdata that it leaves on the stack: [count] bytes, then [count] seconds. */
static double *check_points(lua_State *L, const char *call, int *count) {
  pp_args_table(L, 1, call, "points");
  const lua_Integer length = luaL_len(L, -1);
  if (length < 1 || length > MOST_POINTS) luaL_error(L, "%s: 'points' must be from 1 to %d", call, MOST_POINTS);
  *count = (int)length;
  double *values = lua_newuserdatauv(L, 2 * (size_t)length * sizeof *values, 0);
  pp_charge(L, (uint64_t)length);
  for (int i = 0; i < *count; i++) {
    if (lua_geti(L, -2, i + 1) != LUA_TTABLE) luaL_error(L, "%s: 'points' must hold { bytes, seconds }", call);
    for (int k = 0; k < 2; k++) {
      if (lua_geti(L, -1, k + 1) != LUA_TNUMBER) luaL_error(L, "%s: 'points' must hold { bytes, seconds }", call);
      values[k * *count + i] = lua_tonumber(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  return values;
}

/*
** engine.comm.fit{ test, ranks, members = ranks, points = { { bytes, seconds }, … }, inner = { bandwidth, latency }? } →
** { transfer, bandwidth, latency, alpha, beta, median_error, worst_error, bound_inside }: what an nccl-tests table says of the tier that it crosses
*/
static int comm_fit(lua_State *L) {
  static const char call[] = "engine.comm.fit";
  static const char *const known[] = { "test", "ranks", "members", "points", "inner", NULL };
  static const char *const tests[PP_TESTS + 1] = {
    [PP_TEST_SENDRECV] = "sendrecv", [PP_TEST_ALL_GATHER] = "all_gather", [PP_TEST_REDUCE_SCATTER] = "reduce_scatter",
    [PP_TEST_ALL_REDUCE] = "all_reduce", [PP_TEST_ALLTOALL] = "alltoall" };
  static const char *const transfers[PP_TRANSFERS] = { [PP_MESSAGE] = "message", [PP_RING] = "ring", [PP_ALLTOALL] = "alltoall" };
  pp_measured_link inner = { 0, 0 };
  pp_link_fit fit;
  pp_error error;
  pp_args_begin(L, 1, call, known);
  pp_test_run run = {
    .test = (pp_test)pp_args_option(L, 1, call, "test", tests, -1),
    .ranks = pp_args_integer(L, 1, call, "ranks", 1, INT32_MAX),
  };
  run.members = pp_args_integer_or(L, 1, call, "members", 1, run.ranks, run.ranks);
  if (pp_args_has(L, 1, "inner")) {
    pp_args_table(L, 1, call, "inner");
    pp_check_link(L, -1, "engine.comm.fit: inner", &inner);
    lua_pop(L, 1);
  }
  run.bytes = check_points(L, call, &run.count);
  run.seconds = run.bytes + run.count;
  if (pp_comm_fit(&run, &inner, &fit, &error) != PP_OK) return pp_args_raise(L, call, &error);
  lua_createtable(L, 0, 8);
  pp_set_string(L, "transfer", transfers[fit.transfer]);
  pp_set_number(L, "bandwidth", fit.link.bandwidth);
  pp_set_number(L, "latency", fit.link.latency);
  pp_set_number(L, "alpha", fit.alpha);
  pp_set_number(L, "beta", fit.beta);
  pp_set_number(L, "median_error", fit.median_error);
  pp_set_number(L, "worst_error", fit.worst_error);
  pp_set_boolean(L, "bound_inside", fit.bound_inside);
  return 1;
}

static const luaL_Reg comm_functions[] = {
  { "allgather", comm_allgather },
  { "allreduce", comm_allreduce },
  { "alltoall",  comm_alltoall },
  { "fit",       comm_fit },
  { "p2p",       comm_p2p },
  { NULL, NULL }
};

int pp_open_comm(lua_State *L) {
  luaL_newlib(L, comm_functions);
  return 1;
}

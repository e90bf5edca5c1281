/*
** comm.c: engine.comm: seconds of transfers. May longjmp.
*/
#include "lua/comm.h"

#include <lauxlib.h>
#include <math.h>

#include "lua/arguments.h"
#include "lua/recipe.h"

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

/* engine.comm.alltoall{ network, group, stride = 1, tokens, experts_per_token, bytes_per_token, max_domains = 0, flat = false } → seconds */
static int comm_alltoall(lua_State *L) {
  static const char call[] = "engine.comm.alltoall";
  static const char *const known[] = { "network", "group", "stride", "tokens", "experts_per_token", "bytes_per_token", "max_domains",
                                       "flat", NULL };
  pp_network network;
  pp_args_begin(L, 1, call, known);
  check_network(L, call, &network);
  const pp_alltoall transfer = {
    .group = pp_args_integer(L, 1, call, "group", 1, INT32_MAX),
    .stride = stride_of(L, call),
    .tokens = pp_args_number(L, 1, call, "tokens", 0, HUGE_VAL),
    .experts_per_token = pp_args_integer(L, 1, call, "experts_per_token", 1, 1 << 16),
    .max_domains = pp_args_integer_or(L, 1, call, "max_domains", 0, INT32_MAX, 0),
    .bytes_per_token = pp_args_number(L, 1, call, "bytes_per_token", 0, HUGE_VAL),
    .flat = pp_args_boolean_or(L, 1, call, "flat", false),
  };
  lua_pushnumber(L, pp_comm_alltoall(&network, &transfer));
  return 1;
}

static const luaL_Reg comm_functions[] = {
  { "allgather", comm_allgather },
  { "allreduce", comm_allreduce },
  { "alltoall",  comm_alltoall },
  { "p2p",       comm_p2p },
  { NULL, NULL }
};

int pp_open_comm(lua_State *L) {
  luaL_newlib(L, comm_functions);
  return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE   /* wait4 under a strict standard */
/*
** What a policy really takes, measured from outside: each engine call that a policy can reach, with sizes as large as it likes, ends over
** budget, and its process never holds more than the cap and a constant. The operating system's limits end what the budget forgets.
*/
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <lauxlib.h>
#include <lua.h>

#include "host/last_resort.h"
#include "host/sandbox.h"
#include "lua/primitives.h"

enum {
  MIB = 1 << 20,
  CAP = 64 * MIB,
  WORK = 30 * 1000 * 1000,
  BESIDE = 16 * MIB,     /* what a process may hold beside the cap: what the allocator keeps in pieces, a sort's scratch of a block's size */
  CPU_SECONDS = 300      /* of a child: far more than the budget, on any machine */
};

/* -- engine calls --------------------------------------------------------------------------------------------------------------------- */

/* A function's name, or "schedule:method"; a script that asks it for as much as it can. */
static const struct {
  const char *call, *script;
} calls[] = {
  { "engine.bubble", "while true do engine.bubble { schedule = '1f1b', ranks = 2^30, microbatches = 2^30, F = 1, I = 1, W = 1 } end" },
  { "engine.comm.allgather", "while true do engine.comm.allgather { network = net, size = 2^31 - 1, bytes = 1e300 } end" },
  { "engine.comm.allreduce", "while true do engine.comm.allreduce { network = net, size = 2^31 - 1, bytes = 1e300 } end" },
  { "engine.comm.alltoall", "while true do engine.comm.alltoall { network = net, group = 2^31 - 1, tokens = 1e300, experts_per_token = 65536, "
                            "bytes_per_token = 1e9 } end" },
  { "engine.comm.alltoall", "while true do engine.comm.alltoall { network = net, group = 2^31 - 1, tokens = 1e300, experts_per_token = 65536, "
                            "experts = 2^31 - 1, bytes_per_token = 1e9 } end" },
  { "engine.comm.fit", "local p = {} for i = 1, 4096 do p[i] = { i, i } end\n"
                       "while true do engine.comm.fit { test = 'all_reduce', ranks = 2^31 - 1, points = p } end" },
  { "engine.comm.p2p", "while true do engine.comm.p2p { network = net, bytes = 1e300 } end" },
  { "engine.cost.blocks", "while true do engine.cost.blocks(setting {}) end" },
  { "engine.cost.blocks", "local s = setting {} s.layout = { data = 2^15, expert = 2^15 } device.hides_alltoall = true\n"
                          "s.model = { layers = 1024, hidden = 1024, vocab = 1024, heads = 8, ffn = 1024, experts = 2^16, experts_per_token = 2^16 - 1, "
                          "expert_ffn = 1 }\n"
                          "while true do engine.cost.blocks(s) end" },
  { "engine.cost.hop", "local s = setting {} s.device = nil while true do engine.cost.hop(s) end" },
  { "engine.cost.pair", "while true do engine.cost.pair { device = device, forward = { forward = 1 }, backward = { forward = 1 } } end" },
  { "engine.cost.stage", "while true do engine.cost.stage(setting { stage = { dense = 1024 } }) end" },
  { "engine.cost.step", "local s = setting { dense_parameters = 1e300 } s.model = nil while true do engine.cost.step(s) end" },
  { "engine.cost.terms", "while true do engine.cost.terms(setting {}) end" },
  { "engine.memory.blocks", "local s = setting {} s.device, s.network = nil, nil while true do engine.memory.blocks(s) end" },
  { "engine.memory.stages", "local s = setting { schedule = engine.schedule { kind = '1f1b', ranks = 1024, microbatches = 1000 } }\n"
                            "s.device, s.network = nil, nil while true do engine.memory.stages(s) end" },
  { "engine.model.flops", "while true do engine.model.flops(model, 2^31) end" },
  { "engine.model.parameters", "while true do engine.model.parameters(model) end" },
  { "engine.model.stages", "while true do engine.model.stages(model, 1024) end" },
  { "engine.schedule", "local kept = {} for i = 1, 9 do kept[i] = engine.schedule { kind = 'gpipe', ranks = 60000, microbatches = 130 } end" },
  { "engine.schedule", "while true do engine.schedule { kind = 'zb_auto', ranks = 200, microbatches = 3000 } end" },
  { "engine.schedule", "while true do engine.schedule { kind = 'v_min', ranks = 100, microbatches = 3000 } end" },
  { "engine.schedule", "while true do engine.schedule { kind = 'zb_v', ranks = 32767, microbatches = 1 } end" },
  { "engine.schedule", "local f = {} for i = 1, 60000 do f[i] = 1 end\n"
                       "while true do engine.schedule { kind = 'zb_auto', ranks = 60000, microbatches = 1, F = f, I = f, W = f } end" },
  { "engine.schedule.check", "while true do engine.schedule.check { kind = 'interleaved_1f1b', ranks = 30000, microbatches = 59999, "
                             "group = 45000 } end" },
  { "engine.schedule.from_csv", "local t = '0F0' for _ = 1, 19 do t = t .. ',' .. t end engine.schedule.from_csv(t)\n"
                                "while true do engine.schedule.from_csv '0F134217000' end" },
  { "engine.schedule.from_csv", "local t = '' for i = 0, 9999 do t = t .. i .. 'F0,' .. i .. 'B0,' end for i = 1, 9999 do t = t .. '0F' .. i .. ',' end\n"
                                "while true do engine.schedule.from_csv(t) end" },
  { "engine.schedule.traits", "while true do engine.schedule.traits '1f1b' end" },
  { "schedule:actions", "while true do wide:actions(0) end" },
  { "schedule:actions", "engine.schedule { kind = 'gpipe', ranks = 1, microbatches = 1500000 }:actions(0)" },
  { "schedule:csv", "while true do wide:csv() end" },
  { "schedule:csv", "engine.schedule { kind = 'gpipe', ranks = 1, microbatches = 1500000 }:csv()" },
  { "schedule:info", "while true do flat:info() end" },
  { "schedule:lowered", "while true do wide:lowered { runtime = 'torch-multi', queues = 'per_peer', receives = 'before_use' } end" },
  { "schedule:lowered", "while true do flat:lowered { runtime = 'torch-multi' } end" },
  { "schedule:peaks", "while true do wide:peaks() end" },
  { "schedule:receive_buffers", "while true do wide:receive_buffers() end" },
  { "schedule:simulate", "while true do wide:simulate { F = 1, I = 1, W = 1, intervals = true } end" },
  { "schedule:simulate", "engine.schedule { kind = 'gpipe', ranks = 1, microbatches = 1500000 }:simulate { F = 1, I = 1, W = 1, intervals = true }" },
  { "schedule:simulate", "while true do wide:simulate { F = 1, I = 1, W = 1, runtime = 'torch-multi', bytes = { stored = 1, message = 1 } } end" },
  { "schedule:simulate", "while true do flat:simulate { F = 1, I = 1, W = 1, runtime = 'torch-multi', receives = 'before_use', "
                         "heat = { onset = 0.5, slope = 1, tau = 1 } } end" },
  { "schedule:simulate", "while true do pairs_of_it:simulate { F = 1, I = 1, W = 1, FB = 2, runtime = 'deepseek' } end" },
  { "schedule:verify", "while true do wide:verify { buffers = 2 } end" },
};
enum { CALLS = sizeof calls / sizeof *calls };

/* What the scripts share. */
static const char preamble[] =
  "local net = { tiers = { { reach = 8, bandwidth = 1e11 }, { reach = 1024, bandwidth = 1e10 } } }\n"
  "local model = { layers = 1024, hidden = 16384, vocab = 128256, heads = 128, ffn = 53248 }\n"
  "local device = { flops = 1e15, memory_bandwidth = 3e12, gemm_efficiency = 0.6, grouped_gemm_efficiency = 0.5, attention_efficiency = 0.5,\n"
  "  memory_efficiency = 0.8 }\n"
  "local function setting(more)\n"
  "  more.model, more.layout, more.network, more.device = model, {}, net, device\n"
  "  more.training = { precision = 'bf16', sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 4, master_bytes = 4, moment_bytes = 8 }\n"
  "  return more\n"
  "end\n"
  "local wide = engine.schedule { kind = 'interleaved_1f1b', ranks = 16, microbatches = 4096, virtual = 2 }\n"
  "local flat = engine.schedule { kind = '1f1b', ranks = 60000, microbatches = 2 }\n"
  "local pairs_of_it = engine.schedule { kind = 'dualpipe', ranks = 16, microbatches = 4096 }\n";

/* A sandbox whose records have no fields. */
static void open_sandbox(pp_sandbox *sandbox, uint64_t work) {
  lua_State *from = luaL_newstate();
  if (!from) _exit(99);
  lua_newtable(from);
  if (pp_sandbox_open(sandbox, work, CAP, pp_open_primitives, from, 1) != PP_RAN) _exit(98);
  lua_close(from);
}

/* In the child: runs the script; the exit status is its outcome. */
static _Noreturn void run(const char *script) {
  static pp_sandbox sandbox;
  char text[8192];
  const struct rlimit seconds = { CPU_SECONDS, CPU_SECONDS };
  setrlimit(RLIMIT_CPU, &seconds);
  open_sandbox(&sandbox, WORK);
  snprintf(text, sizeof text, "%s%s", preamble, script);
  pp_outcome outcome = pp_sandbox_run(&sandbox, "hostile.lua", text, strlen(text), false);
  if (outcome == PP_BROKEN) fprintf(stderr, "%s\n", sandbox.message);
  if (sandbox.budget.meter.peak > CAP) outcome = 97;
  _exit((int)outcome);
}

typedef struct {
  int status;        /* as waitpid gives it */
  size_t bytes;      /* most that it held in memory */
  double seconds;
} usage;

static usage in_a_child(const char *script) {
  struct rusage used;
  usage out = { 0 };
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) run(script);
  assert_true(child > 0);
  assert_int_equal(wait4(child, &out.status, 0, &used), child);
  out.bytes = (size_t)used.ru_maxrss * 1024;
  out.seconds = (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
  return out;
}

/* A sanitizer keeps what was freed, and ends a process that gets no memory. */
static bool counts_memory(void) {
#ifdef __SANITIZE_ADDRESS__
  puts("# the memory of processes is not looked at under a sanitizer");
  return false;
#else
  return true;
#endif
}

static void engine_calls_of_any_size_end_over_budget_within_the_cap(void **state) {
  (void)state;
  const usage nothing = in_a_child("");
  const bool counts = counts_memory();
  size_t most = 0;
  double longest = 0;
  assert_int_equal(nothing.status, 0);
  for (int i = 0; i < CALLS; i++) {
    const usage used = in_a_child(calls[i].script);
    if (!WIFEXITED(used.status) || WEXITSTATUS(used.status) != PP_OVER_BUDGET)
      fail_msg("%s: wait status %d of: %s", calls[i].call, used.status, calls[i].script);
    if (counts && used.bytes > nothing.bytes + CAP + BESIDE)
      fail_msg("%s: %zu MiB beside the %zu of a policy that does nothing: %s", calls[i].call, (used.bytes - nothing.bytes) / MIB,
               nothing.bytes / MIB, calls[i].script);
    if (used.bytes > most) most = used.bytes;
    if (used.seconds > longest) longest = used.seconds;
  }
  printf("# most memory of a process %zu MiB (%zu without a policy's call), longest %.1f s\n", most / MIB, nothing.bytes / MIB, longest);
}

static bool is_listed(const char *name) {
  for (int i = 0; i < CALLS; i++)
    if (strcmp(calls[i].call, name) == 0) return true;
  return false;
}

static void assert_listed(const char *name) {
  if (!is_listed(name)) fail_msg("no script asks %s for as much as it can", name);
}

/* Asks for each function in the table on top, and in what its views show. */
static int assert_all_listed(lua_State *L, const char *prefix) {
  int found = 0;
  if (luaL_getmetafield(L, -1, "__index") != LUA_TNIL) lua_replace(L, -2);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    char name[128];
    if (lua_type(L, -2) != LUA_TSTRING) continue;   /* a list of words */
    snprintf(name, sizeof name, "%s%s", prefix, lua_tostring(L, -2));
    if (lua_isfunction(L, -1)) {
      assert_listed(name);
      found++;
    } else if (lua_istable(L, -1)) {
      strcat(name, ".");
      lua_pushvalue(L, -1);
      found += assert_all_listed(L, name);
      lua_pop(L, 1);
    }
  }
  return found;
}

static void no_engine_call_is_left_out(void **state) {
  (void)state;
  static pp_sandbox sandbox;
  open_sandbox(&sandbox, WORK);
  lua_State *L = sandbox.L;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pp_names_key);
  lua_getfield(L, -1, "engine");
  assert_true(assert_all_listed(L, "engine.") >= 19);
  luaL_getmetatable(L, "pipeplan.schedule");
  lua_getfield(L, -1, "__index");
  assert_true(assert_all_listed(L, "schedule:") >= 8);
  pp_sandbox_close(&sandbox);
}

/* -- the last resort ------------------------------------------------------------------------------------------------------------------ */

/* What nobody counts. */
static int spin(lua_State *L) {
  volatile bool for_ever = true;
  while (for_ever) ;
  lua_pushboolean(L, for_ever);
  return 1;
}

static int take(lua_State *L) {
  void *block = malloc((size_t)3 << 30);
  lua_pushboolean(L, block != NULL);
  free(block);
  return 1;
}

static void add_name(pp_sandbox *sandbox, const char *name, lua_CFunction function) {
  lua_rawgetp(sandbox->L, LUA_REGISTRYINDEX, &pp_names_key);
  lua_pushcfunction(sandbox->L, function);
  lua_setfield(sandbox->L, -2, name);
  lua_settop(sandbox->L, 0);
}

/* Runs a script with those two functions where the last resort is enabled; fills `said` with what came on standard error. */
static int with_last_resort(const char *script, char *said, size_t size) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    static pp_sandbox sandbox;
    struct rlimit before, after;
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    pp_last_resort_enable();
    getrlimit(RLIMIT_AS, &before);
    open_sandbox(&sandbox, 100000);
    add_name(&sandbox, "spin", spin);
    add_name(&sandbox, "take", take);
    pp_outcome outcome = pp_sandbox_run(&sandbox, "sites/hog.lua", script, strlen(script), false);
    getrlimit(RLIMIT_AS, &after);
    if (after.rlim_cur != before.rlim_cur) _exit(96);
    if (outcome == PP_BROKEN) fprintf(stderr, "%s", sandbox.message);
    _exit(outcome == PP_RAN ? 0 : 10 + (int)outcome);
  }
  close(ends[1]);
  ssize_t length = 0, got;
  while ((got = read(ends[0], said + length, size - 1 - (size_t)length)) > 0) length += got;
  said[length] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void time_that_nobody_counts_ends_the_process(void **state) {
  (void)state;
  char said[512];
  assert_int_equal(with_last_resort("spin()", said, sizeof said), 4);
  assert_string_equal(said, "pipeplan: sites/hog.lua: over budget: out of processor time, long after its units of work should have run out\n");
}

static void memory_that_nobody_counts_is_refused_inside_a_policy(void **state) {
  (void)state;
  char said[512];
  if (!counts_memory()) return;
  assert_int_equal(with_last_resort("assert(take() == false)", said, sizeof said), 0);
  assert_string_equal(said, "");
}

static void time_outside_of_policies_is_nobodys_business(void **state) {
  (void)state;
  fflush(NULL);
  const pid_t child = fork();
  int status;
  if (child == 0) {
    static pp_sandbox sandbox;
    struct timeval limit = { .tv_sec = 3 };
    struct rusage used;
    pp_last_resort_enable();
    open_sandbox(&sandbox, 100000);
    do getrusage(RUSAGE_SELF, &used);
    while (used.ru_utime.tv_sec + used.ru_stime.tv_sec < limit.tv_sec);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(engine_calls_of_any_size_end_over_budget_within_the_cap),
    cmocka_unit_test(no_engine_call_is_left_out),
    cmocka_unit_test(time_that_nobody_counts_ends_the_process),
    cmocka_unit_test(memory_that_nobody_counts_is_refused_inside_a_policy),
    cmocka_unit_test(time_outside_of_policies_is_nobodys_business),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

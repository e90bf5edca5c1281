#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CPU milliseconds of whole processes from a cold start, median of 21 runs each, taken in turn: a fixed loop of stock Lua, by which machines
# compare, an empty command, a plan that is little more than its start, and the headline plan; and the ratio of each to the loop. Where there
# is valgrind, the instructions of the small plan before its first search too.
# Wanted: the headline at most 20 ms; it took 66 on 2026-11-29. The start of a plan: 41 M instructions; it was 68 M then. Rows of bench.sh.
# usage: tests/bench/cold_start.sh build/release/pipeplan
set -eu
program=$1
python3 - "$program" <<'P'
import resource, statistics, subprocess, sys
def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode in (0, 1), command   # 1: the two ranks had better not be a pipeline
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
program = sys.argv[1]
LOOP = "a loop of 2,000,000 turns"
cases = {LOOP: ["lua5.4", "-e", "local s = 0 for i = 1, 2000000 do s = s + i % 7 end"], "pipeplan --version": [program, "--version"],
         "pipeplan plan, two ranks": [program, "plan", "examples/specs/two-ranks-on-a-cpu.json"],
         "pipeplan plan, deepseek-v3": [program, "plan", "examples/specs/deepseek-v3.json"]}
samples = {name: [] for name in cases}
for _ in range(21):
    for name, command in cases.items():
        samples[name].append(cpu(command))
medians = {name: statistics.median(values) for name, values in samples.items()}
for name, value in medians.items():
    print(f"process\t{name}\t{value:.1f} ms CPU, {value / medians[LOOP]:.2f} of the loop\tmin {min(samples[name]):.1f}, max {max(samples[name]):.1f}")
P
command -v valgrind >/dev/null || exit 0
counted=$(mktemp -d)
trap 'rm -rf "$counted"' EXIT
valgrind --tool=callgrind --callgrind-out-file="$counted/counts" --dump-before=pp_lua_search_make "$program" plan \
  examples/specs/two-ranks-on-a-cpu.json >/dev/null 2>&1 || [ $? -eq 1 ]
awk '/^totals:/ { printf "process\tthe start of a plan\t%.1f M instructions\tof two ranks, before its first search\n", $2 / 1e6 }' "$counted/counts.1"

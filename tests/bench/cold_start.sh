#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CPU milliseconds of whole processes from a cold start, median of 21 runs each: an empty command, the headline plan, and their ratio.
# Wanted: the headline at most 20 ms; it took 66 on 2026-11-29. Rows of bench.sh.
# usage: tests/bench/cold_start.sh build/release/pipeplan
set -eu
program=$1
python3 - "$program" <<'P'
import resource, statistics, subprocess, sys
def cpu(arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.argv[1], *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
cases = {"--version": ["--version"], "deepseek-v3": ["plan", "examples/specs/deepseek-v3.json"]}
samples = {name: [] for name in cases}
for _ in range(21):
    for name, arguments in cases.items():
        samples[name].append(cpu(arguments))
medians = {name: statistics.median(values) for name, values in samples.items()}
for name, value in medians.items():
    print(f"process\tpipeplan {' '.join(cases[name])}\t{value:.1f} ms CPU\tmin {min(samples[name]):.1f}, max {max(samples[name]):.1f}")
print(f"process\tthe plan / an empty command\t{medians['deepseek-v3'] / medians['--version']:.1f}\t")
P

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plan_growth.py PIPEPLAN: CPU seconds and peak memory of one plan at a thousand to ten million microbatches, all else equal; rows of bench.sh.

Steps of up to two million actions are simulated whole, longer ones by the periods of their schedule, so that from there on neither may grow:
the last rows are told as multiples of a hundred thousand microbatches'. The least of several runs."""
import os
import subprocess
import sys

PLAN = ["plan", "--gpus", "256", "--accelerator", "H100-SXM", "--model", "examples/models/llama-3-70b.json", "--tokens", "2T",
        "--per_gpu", "400Gbps", "--sequence_length", "4096", "--pipeline", "8", "--tensor", "4", "--format", "json"]
REPLICAS, RUNS = 8, 5


def measure(program, microbatches):
    """CPU seconds and KiB of the cheapest of some runs."""
    seconds, kib = [], []
    for _ in range(RUNS):
        with open(os.devnull, "wb") as nothing:
            child = subprocess.Popen([program, *PLAN, "--global_batch_size", str(REPLICAS * microbatches)], stdout=nothing)
            _, status, used = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"plan at {microbatches} microbatches: wait status {status}")
        seconds.append(used.ru_utime + used.ru_stime)
        kib.append(used.ru_maxrss)
    return min(seconds), min(kib)


def main():
    base = None
    for power in range(3, 8):
        seconds, kib = measure(sys.argv[1], 10**power)
        figures = f"{seconds * 1e3:.0f} ms, {kib / 1024:.1f} MiB"
        if power >= 5:
            base = base or (seconds, kib)
            figures += f"; {seconds / base[0]:.2f} times the time, {kib / base[1]:.2f} times the memory"
        print(f"plan\tllama-3-70b on 256, P 8, M {10**power:,}\t{figures}\t{'wanted: at most 1.5' if power > 5 else ''}", flush=True)


if __name__ == "__main__":
    main()

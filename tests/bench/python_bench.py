#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the same schedules cost elsewhere, as ratios to ours in one run: PyTorch's own generator, where PyTorch is, and a straightforward simulator in
Python (tests/oracles/simulator.py). Rows of bench.sh. usage: python_bench.py schedule_bench pipeplan"""
import os
import subprocess
import sys
import time
import warnings
from unittest import mock

warnings.simplefilter("ignore")
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "oracles"), os.path.join(here, "..", "torch")]
os.environ["PIPEPLAN"] = sys.argv[2]

import simulator

try:
    import schedules_test
except ImportError:
    schedules_test = None

CASES = [("interleaved_1f1b", "Interleaved1F1B", 16, 256), ("zb_v", "ZBVZeroBubble", 16, 256), ("dualpipev", "DualPipeV", 16, 256),
         ("zb_v", "ZBVZeroBubble", 64, 4096)]
CHUNKS = 2
LONG = 100_000  # actions of which one pass is long enough


def ours(kind, ranks, microbatches):
    """Nanoseconds an action of building, verifying and simulating, and the actions."""
    return [float(number) for number in subprocess.run([sys.argv[1], kind, str(ranks), str(microbatches)], stdout=subprocess.PIPE, check=True,
                                                       text=True).stdout.split()]


def nanoseconds(work, actions):
    passes = []
    for _ in range(3 if actions < LONG else 1):
        start = time.process_time()
        work()
        passes.append(time.process_time() - start)
    return 1e9 * min(passes) / actions


def row(kind, ranks, microbatches, what, value, reference, note):
    print(f"python\t{kind}, P {ranks}, M {microbatches}: {what}\t{value:,.0f} ns an action, {value / reference:,.0f} times ours\t{note}", flush=True)


def time_torch(torch_kind, kind, ranks, microbatches, reference):
    """PyTorch's class: writing the orders alone, and its constructor, which validates too and lowers them to sends and receives."""
    build, verify, _, actions = reference
    stages = schedules_test.mock_stages(ranks, CHUNKS)
    with mock.patch.object(torch_kind, "_prepare_schedule_with_comms", lambda *_: None):
        alone = nanoseconds(lambda: torch_kind(stages, microbatches), actions)
    row(kind, ranks, microbatches, "PyTorch writes the orders", alone, build, f"ours: build {build:.1f}")
    if actions < LONG:
        whole = nanoseconds(lambda: torch_kind(stages, microbatches), actions)
        row(kind, ranks, microbatches, "PyTorch's constructor", whole, build + verify, f"validates and lowers too; ours: build and verify {build + verify:.1f}")


def main():
    if schedules_test is None:
        print("python\tPyTorch's generators\tnot timed: no PyTorch\tscripts/torch installs it")
    for kind, name, ranks, microbatches in CASES:
        reference = ours(kind, ranks, microbatches)
        program = subprocess.run([sys.argv[2], "simulate", kind, "--ranks", str(ranks), "--microbatches", str(microbatches), "--format", "csv"],
                                 stdout=subprocess.PIPE, check=True, text=True).stdout
        rows = simulator.parse(program)
        times = {letter: [seconds] * (ranks * CHUNKS) for letter, seconds in {"F": 1, "I": 1.1, "W": .9, "B": 2, "FB": 2.6}.items()}
        simulated = nanoseconds(lambda: simulator.simulate(rows, ranks * CHUNKS, times, .01), reference[3])
        row(kind, ranks, microbatches, "a simulator in Python", simulated, reference[2], f"ours: {reference[2]:.1f}")
        if schedules_test is not None:
            time_torch(schedules_test.schedules.get_schedule_class(name), kind, ranks, microbatches, reference)


main()

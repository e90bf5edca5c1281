#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""plan --jsonl as a stream: lines a second, and the memory of its processes on the way, which must stay what it is.

usage: tests/bench/stream_bench.py build/release/pipeplan [LINES [JOBS [plan | error]]]    (default 2000 2 plan)
  plan   no two lines alike, each a 70B with TP 4 and PP 4 given, which takes a plan some 10 ms of a core
  error  lines that are refused as they are read: little is left but the stream itself
"""
import json, os, subprocess, sys, threading, time

program, lines, jobs, kind = sys.argv[1], *(sys.argv[2:] + ["2000", "2", "plan"][len(sys.argv) - 2:])[:3]
lines = int(lines)


def spec(number):
    gpus = 64 + 16 * (number % 13) if kind == "plan" else 0
    return {"cluster": {"gpus": gpus, "accelerator": "H100-SXM"}, "training": {"tokens": f"{1000000 + number}M"},
            "model": {"architecture": "dense", "total": "70B", "layers": 80}, "parallelism": {"pipeline": 4, "tensor": 4}}


def resident(process):
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def workers_of(process):
    with open(f"/proc/{process}/task/{process}/children") as children:
        return children.read().split()


def feed(stream):
    for number in range(lines):
        stream.write(json.dumps(spec(number)).encode() + b"\n")
    stream.close()


start = time.monotonic()
run = subprocess.Popen([program, "plan", "--jsonl", "--jobs", jobs, "--date", "2026-12-01"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL)
threading.Thread(target=feed, args=(run.stdin,)).start()
written = 0
for number, answer in enumerate(run.stdout, 1):
    written += len(answer)
    if number % (lines // 10) == 0 and number < lines or number == lines // 100:
        memory = " ".join(f"{resident(worker):.0f}" for worker in workers_of(run.pid))
        print(f"{number:9,} lines, {time.monotonic() - start:6.0f} s: parent {resident(run.pid):.0f} MiB, workers {memory} MiB", flush=True)
assert run.wait() in (0, 2) and number == lines, (run.returncode, number)
seconds = time.monotonic() - start
usage = os.times()
print(f"{lines:,} lines ({kind}), {written / 1e6:,.0f} MB of answers, {jobs} jobs on {os.cpu_count()} cores: {seconds:.0f} s, "
      f"{lines / seconds:,.0f} lines a second; {1e3 * (usage.children_user + usage.children_system) / lines:.3g} ms of processor a line")

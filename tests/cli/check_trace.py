# SPDX-License-Identifier: Apache-2.0
"""Reads a Chrome trace on standard input and checks it as a viewer would, knowing nothing of pipelines. Prints what it counted:
slices, flows, processes, then the largest value of each process's counter in the order of their pids, comma-separated."""
import json
import sys
from collections import defaultdict

trace = json.load(sys.stdin)
assert set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}, set(trace)
assert trace["displayTimeUnit"] in ("ms", "ns")
events = trace["traceEvents"]


def of(phase):
    return [event for event in events if event["ph"] == phase]


slices = defaultdict(list)  # (pid, tid) → [start, end) in whole nanoseconds, so that sums are exact
for event in of("X"):
    start, duration = round(event["ts"] * 1000), round(event["dur"] * 1000)
    assert start >= 0 and duration >= 0
    slices[event["pid"], event["tid"]].append((start, start + duration))
for thread in slices.values():
    thread.sort()
    for (_, end), (start, _) in zip(thread, thread[1:]):
        assert start >= end, "slices overlap"


def enclosed(event):
    at = round(event["ts"] * 1000)
    return any(start <= at < end or start == at == end for start, end in slices[event["pid"], event["tid"]])


starts, ends = ({(e["cat"], e["name"], e["id"]): e for e in of(phase)} for phase in "sf")
assert len(starts) == len(of("s")) and len(ends) == len(of("f")), "two flows share an id"
assert starts.keys() == ends.keys(), "a flow without its other end"
for key, start in starts.items():
    end = ends[key]
    assert end["bp"] == "e" and start["pid"] != end["pid"] and start["ts"] <= end["ts"], key
    assert enclosed(start) and enclosed(end), key

peaks, last = defaultdict(int), {}
for event in of("C"):
    (value,) = event["args"].values()
    assert value >= 0 and event["ts"] >= last.get(event["pid"], 0)
    last[event["pid"]] = event["ts"]
    peaks[event["pid"]] = max(peaks[event["pid"]], value)

named = {e["pid"] for e in of("M") if e["name"] == "process_name"}
threads = {(e["pid"], e["tid"]) for e in of("M") if e["name"] == "thread_name"}
order = {e["pid"]: e["args"]["sort_index"] for e in of("M") if e["name"] == "process_sort_index"}
assert named == set(order) == set(peaks) and threads >= set(slices)
assert sorted(named, key=order.get) == sorted(named)
assert {event["ph"] for event in events} <= set("XMsfC")
print(len(of("X")), len(starts), len(named), ",".join(str(peaks[pid]) for pid in sorted(peaks)))

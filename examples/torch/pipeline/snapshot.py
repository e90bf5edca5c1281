# SPDX-License-Identifier: Apache-2.0
"""What is alive on this GPU when a step holds most: from the allocator's own history, as a short table by the line of Python that asked for it.

    snapshot = Snapshot(device)
    runner = Executor(…, timeline=snapshot.timeline)       # or any runner that takes one; it says in which action a block was made
    with snapshot:
        runner.step(…)
    print(snapshot.table())

A block of autograd's own thread has no line of Python; its action is all that is known of it.
"""
from __future__ import annotations

import bisect
import collections
import os
import time
from typing import TYPE_CHECKING

import torch

from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import _GeneratorContextManager
    from typing import Any

    from .watchdog import Watchdog

BEFORE = "there before the step"
UNKNOWN = "no line of Python (autograd)"


class _Marks(Timeline):
    """A timeline that also notes when, on the host's clock, an action began: the allocator's history has that clock."""

    def __init__(self, device: torch.device | str, watchdog: Watchdog | None = None) -> None:
        super().__init__(device, watchdog)
        self.begun: list[tuple[float, str]] = []

    def action(self, name: str) -> _GeneratorContextManager[None]:
        self.begun.append((time.time_ns() / 1000, name))
        return super().action(name)


class Snapshot:
    """entries: of the allocator's history, which forgets the oldest; a step makes some thousands for each microbatch and layer."""

    def __init__(self, device: torch.device | str, watchdog: Watchdog | None = None, entries: int = 2_000_000) -> None:
        self.device, self.entries = torch.device(device), entries
        self.timeline = _Marks(device, watchdog)

    def __enter__(self) -> Snapshot:
        torch.cuda.synchronize(self.device)
        self.timeline.begun.clear()
        self.before = torch.cuda.memory_allocated(self.device)
        torch.cuda.memory._record_memory_history(max_entries=self.entries, context="alloc", stacks="python")
        return self

    def __exit__(self, *_: Any) -> None:
        torch.cuda.synchronize(self.device)
        traces = torch.cuda.memory._snapshot(self.device)["device_traces"]
        index = self.device.index if self.device.index is not None else torch.cuda.current_device()
        self.events = traces[index]
        torch.cuda.memory._record_memory_history(enabled=None)

    def rows(self) -> tuple[int, str, list[tuple[int, int, str, str]]]:
        return rows_at_peak(self.events, self.before, self.timeline.begun)

    def table(self, lines: int = 25) -> str:
        return table(*self.rows(), lines)


def rows_at_peak(events: Sequence[dict[str, Any]], before: int,
                 begun: Sequence[tuple[float, str]]) -> tuple[int, str, list[tuple[int, int, str, str]]]:
    """events: the allocator's, in order; before: bytes allocated before the first; begun: [(µs, action)] in order.
    → (bytes at the peak, the action then, [(bytes, blocks, line, kinds of actions)] largest first)"""
    total, most, at = before, before, -1
    for i, event in enumerate(events):
        total += _change(event)
        if total > most:
            most, at = total, i
    alive, older = {}, before
    for event in events[:at + 1]:
        if event["action"] == "alloc":
            alive[event["addr"]] = event
        elif event["action"] == "free_requested" and alive.pop(event["addr"], None) is None:
            older -= event["size"]
    moments = [moment for moment, _ in begun]

    def action(event: dict[str, Any]) -> str:
        place = bisect.bisect_right(moments, event.get("time_us", 0)) - 1
        return begun[place][1] if place >= 0 else ""

    sizes: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    kinds: dict[str, set[str]] = collections.defaultdict(set)
    for event in alive.values():
        line = _line(event.get("frames") or [])
        sizes[line] += event["size"]
        counts[line] += 1
        kinds[line].add("".join(letter for letter in action(event) if letter in "FBIW"))
    rows = [(size, counts[line], line, " ".join(sorted(kinds[line] - {""}))) for line, size in sizes.items()]
    rows.append((older, 0, BEFORE, ""))
    return most, action(events[at]) if at >= 0 else "", sorted(rows, key=lambda row: -row[0])


def table(most: int, action: str, rows: list[tuple[int, int, str, str]], lines: int = 25) -> str:
    out = [f"{most / 2**30:9.3f} GiB at the peak{', in ' + action if action else ''}"]
    shown, rest = rows[:lines], rows[lines:]
    if rest:
        shown = shown + [(sum(row[0] for row in rest), sum(row[1] for row in rest), f"{len(rest)} other lines", "")]
    for size, count, line, kinds in shown:
        out.append(f"{size / 2**30:9.3f} {count or '':>6} {line}{' in ' + kinds if kinds else ''}")
    return "\n".join(out)


def _change(event: dict[str, Any]) -> int:
    return {"alloc": 1, "free_requested": -1}.get(event["action"], 0) * event["size"]


def _line(frames: Sequence[dict[str, Any]]) -> str:
    """The innermost line that is not PyTorch's own."""
    inside = os.sep + os.path.join("torch", "")
    for frame in frames:
        name = frame["filename"]
        if name.endswith(".py") and inside not in name.replace(os.path.join("examples", "torch"), "examples"):
            return f"{os.path.basename(name)}:{frame['line']} {frame['name']}"
    return UNKNOWN

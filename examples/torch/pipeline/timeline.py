# SPDX-License-Identifier: Apache-2.0
"""When the actions of a step ran on this rank: CUDA events on a GPU, the clock elsewhere. Costs nothing in steps that are not recorded.

    timeline = Timeline(device)
    timeline.start()                      # this moment is 0 ms; record until stop()
    with timeline.action("0F0"):          # <stage><F|I|W|B><microbatch>, as in a program
        …
    timeline.rows()                       # → [["0F0", start_ms, end_ms], …], in the order in which they began
"""
from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .watchdog import Watchdog


class Timeline:
    """watchdog: told of every action, recorded or not (watchdog.py)."""

    def __init__(self, device: torch.device | str = "cpu", watchdog: Watchdog | None = None) -> None:
        self.cuda = torch.device(device).type == "cuda"
        self.watchdog = watchdog
        self.recording = False
        self.zero: Any = None
        self.spans: list[tuple[str, Any, Any]] = []

    def start(self) -> None:
        """Call it on every rank right behind a barrier: times of different ranks are then comparable."""
        self.spans = []
        if self.cuda:
            torch.cuda.synchronize()
        self.zero = self._now()
        self.recording = True

    def stop(self) -> None:
        self.recording = False

    @contextlib.contextmanager
    def action(self, name: str) -> Iterator[None]:
        if self.watchdog:
            self.watchdog.at(name)
        begin = self._now() if self.recording else None
        yield
        if begin is not None:
            self.spans.append((name, begin, self._now()))
        if self.watchdog:
            self.watchdog.done()

    def rows(self) -> list[list]:
        """Of everything since start(). Waits for the device."""
        if self.cuda:
            torch.cuda.synchronize()
        rows = [[name, self._since_zero(begin), self._since_zero(end)] for name, begin, end in self.spans]
        return sorted(rows, key=lambda row: row[1])

    def _now(self) -> Any:
        """Of the current stream, where its work so far will be done; not of the host, which runs ahead of it."""
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _since_zero(self, moment: Any) -> float:
        return self.zero.elapsed_time(moment) if self.cuda else (moment - self.zero) * 1000

# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a run, on purpose: a rank that is slow, dies, waits for ever, or computes no numbers. To see that it is noticed.

    2:1.5          rank 2 takes half as long again over each action
    1:5ms,2:8ms    rank 1 takes 5 ms more over each action, rank 2 8 ms
    kill:2:3       rank 2 is killed in the middle of step 3; stall:2:3: it stops there and lives; nan:2:3: its weights are no numbers from there on
"""
from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import time
from typing import TYPE_CHECKING

import torch

from .program import Mismatch
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    import torch.nn as nn

    from .watchdog import Watchdog


def parse_stragglers(text: str, ranks: int) -> dict[int, tuple[float, float]]:
    """→ {rank: (factor, milliseconds)}, of so many ranks"""
    slow: dict[int, tuple[float, float]] = {}
    for part in text.split(","):
        found = re.fullmatch(r"(\d+):(\d+(?:\.\d+)?)(ms)?", part)
        if not found or (not found[3] and float(found[2]) < 1):
            raise Mismatch(f"--straggler {part}: expected RANK:FACTOR, such as 2:1.5, at least 1, or RANK:TIMEms, such as 2:5ms")
        rank = _rank(int(found[1]), ranks, f"--straggler {part}")
        if rank in slow:
            raise Mismatch(f"--straggler {text}: rank {rank} is there twice; expected each rank once")
        slow[rank] = (1.0, float(found[2])) if found[3] else (float(found[2]), 0.0)
    return slow


def _rank(rank: int, ranks: int, what: str) -> int:
    if rank >= ranks:
        raise Mismatch(f"{what}: there is no rank {rank}; expected {'0, the only one' if ranks == 1 else f'0 to {ranks - 1}'}")
    return rank


def parse_fault(text: str, ranks: int, steps: int) -> tuple[str, int, int]:
    """→ (kind, rank, step), of so many of both"""
    found = re.fullmatch(r"(kill|stall|nan):(\d+):(\d+)", text)
    if not found:
        raise Mismatch(f"--fault {text}: expected kill, stall or nan:RANK:STEP, such as kill:1:3")
    rank, step = _rank(int(found[2]), ranks, f"--fault {text}"), int(found[3])
    if not 1 <= step <= steps:
        raise Mismatch(f"--fault {text}: there is no step {step}; expected {'1, the only one' if steps == 1 else f'1 to {steps}'}")
    return found[1], rank, step


class FaultyTimeline(Timeline):
    """A Timeline whose actions take `factor` times as long and `ms` longer; die ("kill") or "stall" before that action of a step."""

    def __init__(self, device: torch.device | str, watchdog: Watchdog | None = None, factor: float = 1.0, ms: float = 0.0) -> None:
        super().__init__(device, watchdog)
        self.factor, self.ms = factor, ms
        self.fault: str | None = None
        self.left = 0

    def fail(self, kind: str, actions: int) -> None:
        """kind "kill" or "stall", when `actions` more have run."""
        self.fault, self.left = kind, actions

    @contextlib.contextmanager
    def action(self, name: str) -> Iterator[None]:
        with super().action(name):
            if self.fault:
                self._count_down()
            begin = self._host()
            yield
            if self.factor > 1 or self.ms:
                time.sleep((self._host() - begin) * (self.factor - 1) + self.ms / 1000)

    def _host(self) -> float:
        if self.cuda and (self.factor > 1 or self.ms):
            torch.cuda.synchronize()
        return time.perf_counter()

    def _count_down(self) -> None:
        self.left -= 1
        if self.left > 0:
            return
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            time.sleep(1)


@torch.no_grad()
def spoil(modules: dict[int, nn.Module]) -> None:
    """Makes a weight of each module no number."""
    for module in modules.values():
        next(module.parameters()).fill_(math.nan)

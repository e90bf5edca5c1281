# SPDX-License-Identifier: Apache-2.0
"""How much longer a card takes the more of the time it works: power cap and temperature. The model, as pipeplan simulates it:

    a card takes 1 + slope × max(0, u − onset) / (1 − onset) times as long, where u is the share of time that it was busy, averaged over tau

slope is how much longer hot actions take than cold ones (timing.py), onset is fitted to forwards with backwards at several shares, tau to the
first moments of work after idleness. All three belong to the card and the model's kind of work, not to one stage: they are measured once.
"""
from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .timing import Timer

DUTIES = (0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
LEAST = 0.005     # of a slope that is told from noise


def excess(u: float, onset: float) -> float:
    return max(0.0, u - onset) / (1 - onset)


def _slope(points: Iterable[Sequence[float]], onset: float) -> tuple[float, float]:
    """Least squares of slow_down − 1 = slope × excess; → slope ≥ 0, sum of squares left."""
    xs = [(excess(u, onset), slow - 1) for u, slow in points]
    square = sum(x * x for x, _ in xs)
    slope = max(0.0, sum(x * y for x, y in xs) / square) if square > 0 else 0.0
    return slope, sum((y - slope * x) ** 2 for x, y in xs)


def fit_curve(points: Sequence[Sequence[float]]) -> tuple[float, float]:
    """points: (share of time busy, slow-down) → onset, slope"""
    best = min((i / 100 for i in range(20, 96)), key=lambda onset: _slope(points, onset)[1])
    return best, _slope(points, best)[0]


def fit_tau(points: Sequence[Sequence[float]], onset: float) -> float:
    """points: (ms since idleness, slow-down), busy all the time since → tau in ms"""
    def left(tau: float) -> float:
        return _slope([(1 - math.exp(-t / tau), slow) for t, slow in points], onset)[1]
    return min((5 * 1.05**i for i in range(100)), key=left)


class Heat:
    """timer: a timing.Timer whose stage has run before. seconds: of each share of the curve."""

    def __init__(self, timer: Timer, seconds: float = 1.0) -> None:
        self.timer, self.seconds = timer, seconds
        self.actions, self.clock, self.control = timer.actions, timer.clock, timer.control

    def measure(self) -> dict[str, Any]:
        """→ {"curve": [{duty, slow_down, clock_mhz}], "points": [[ms since idleness, slow-down]]} of this card. Collective."""
        self.control.barrier()
        busy = self.control.most(self._busy(), self.timer.members)
        rows = [self._at(duty, busy) for duty in DUTIES]
        cool = rows[0]["ms"]
        curve = [{"duty": round(row["duty"], 3), "slow_down": round(row["ms"] / cool, 4), **row["state"]} for row in rows[1:]]
        return {"curve": curve, "points": self._from_idle(busy)}

    def _busy(self) -> float:
        """Seconds of a forward with its backward."""
        return statistics.median(self._once() for _ in range(5)) / 1000

    def _once(self) -> float:
        begin = self.clock.mark()
        self.actions.backward(self.actions.forward())
        end = self.clock.mark()
        self.clock.wait(end)
        return self.clock.milliseconds(begin, end)

    def _at(self, duty: float, busy: float) -> dict[str, Any]:
        """Busy for that share of the time; what the first half took is not counted. The host is ahead throughout, as it is of a card without rest:
        the card itself rests after each pair, so that no pair waits for its host."""
        self.control.barrier()
        count, marks, start = max(6, math.ceil(self.seconds * duty / busy)), [], time.perf_counter()
        self.timer.meter.begin()
        for _ in range(count):
            marks.append(self._pair())
            self._rest(busy * (1 - duty) / duty)
            if len(marks) > 2:
                self.clock.wait(marks[-3][1])
        self.clock.wait(marks[-1][1])
        wall = time.perf_counter() - start
        state = {k: v for k, v in self.timer.meter.end().items() if k == "clock_mhz"}
        spans = [self.clock.milliseconds(*mark) for mark in marks]
        return {"duty": min(1.0, sum(spans) / 1000 / wall), "ms": statistics.median(spans[count // 2:]), "state": state}

    def _rest(self, seconds: float) -> None:
        if self.clock.cuda:
            self.clock.delay(seconds)
        else:
            time.sleep(seconds)

    def _pair(self) -> tuple[Any, Any]:
        begin = self.clock.mark()
        self.actions.backward(self.actions.forward())
        return begin, self.clock.mark()

    def _from_idle(self, busy: float) -> list[list[float]]:
        """(ms since idleness of its middle, over what the first of its kind takes) of each F and each B; three times the first 400 ms."""
        turns = [self._turn(max(3, math.ceil(0.4 / busy))) for _ in range(3)]
        rested = {kind: statistics.median(next(took for k, _, took in turn if k == kind) for turn in turns) for kind in "FB"}
        return [[round(at, 2), round(took / rested[kind], 4)] for turn in turns for kind, at, took in turn]

    def _turn(self, count: int) -> list[tuple[str, float, float]]:
        self.control.barrier()
        time.sleep(min(self.seconds, 1.2))
        marks: list[tuple[str, Any, Any]] = []
        kept: Any = None
        for _ in range(count):
            for kind in "FB":
                begin = self.clock.mark()
                kept = self.actions.forward() if kind == "F" else self.actions.backward(kept)
                marks.append((kind, begin, self.clock.mark()))
        self.clock.wait(marks[-1][2])
        spans = [(kind, self.clock.milliseconds(marks[0][1], begin), self.clock.milliseconds(begin, end)) for kind, begin, end in marks]
        return [(kind, at + took / 2, took) for kind, at, took in spans]


def combine(cards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What several cards' Heat.measure() and `slope` gave → `heat` of a profile: the mean curve, and onset, slope and tau where they slow down."""
    rows = [list(row) for row in zip(*(card["curve"] for card in cards))]
    curve = [{name: round(statistics.fmean(card[name] for card in row), 4) for name in row[0]} for row in rows]
    out: dict[str, Any] = {"curve": curve}
    onset, fitted = fit_curve([(row["duty"], row["slow_down"]) for row in curve])
    if fitted <= LEAST and all(row.get("clock_mhz") for row in curve):
        # Where a card that rests waits longer for its host than one that works, times do not rise. Clocks fall all the same.
        onset, fitted = fit_curve([(row["duty"], curve[0]["clock_mhz"] / row["clock_mhz"]) for row in curve])
    slope = statistics.fmean(card["slope"] for card in cards)
    if fitted > LEAST and slope > LEAST:
        tau = fit_tau([tuple(point) for card in cards for point in card["points"]], onset)
        out.update(onset=onset, slope=round(slope, 4), tau_ms=round(tau, 1))
    return out

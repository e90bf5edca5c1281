# SPDX-License-Identifier: Apache-2.0
"""What F, B, I, W and a pair F&B of a stage take, each timed directly: events around that action alone, what it needs made before. Three ways:

    cold       after a pause that is longer than what was timed, so that the card is busy less than half of the time
    hot        all kinds in turn without a pause, after seconds of the same on all cards at once
    alone      as cold, but the host is not ahead: it begins when the card has nothing to do
    shadowed   as cold, while a receive that nobody answers waits on the communication stream, as in a run

And what each takes its host: to hand it to a card that has nothing else to do, and to one that is busy for a while. Where the second takes as
much longer as the card is busy, the host waits for its card in that action, as for the row counts of experts.

On a GPU the host is ahead of the card when an action begins, as in a run: a short kernel that only waits comes before what is timed cold.
With experts the members of an expert group run the same actions in step.
"""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
import statistics
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any
    from pipeline.power import Meter

    from .actions import Actions
    from .control import Control


@dataclasses.dataclass(frozen=True)
class Effort:
    """samples: of each kind, cold and hot, half as many shadowed; load: seconds before hot timings; pause: least seconds between cold ones;
    shadowed, pairs: are they wanted? two_streams: are pairs tried on two streams too?"""
    samples: int = 20
    load: float = 2.0
    pause: float = 0.01
    shadowed: bool = True
    pairs: bool = True
    two_streams: bool = True


@functools.cache
def side_streams(device: torch.device) -> tuple[Any, Any]:
    """Two, the same ones always: a matrix product leaves a workspace behind on every stream that it has run on."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device)


class Clock:
    """Moments of a device: CUDA events, or the host's clock."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"

    def mark(self) -> Any:
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self, moment: Any) -> None:
        """Until the device is there. Never synchronize the whole device here: a receive that nobody answers is on it."""
        if self.cuda:
            moment.synchronize()

    def milliseconds(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end) if self.cuda else (end - begin) * 1000

    def delay(self, seconds: float) -> None:
        """Keeps the current stream waiting while the host hands it what comes next; on a CPU host and device are one."""
        if self.cuda and seconds > 0 and hasattr(torch.cuda, "_sleep"):
            torch.cuda._sleep(int(seconds * 1.8e9))    # cycles


def _of_actions(seconds: dict[str, float]) -> dict[str, float]:
    """In milliseconds; a pair takes its host what both halves do, and is no kind of its own."""
    return {kind: round(seconds[kind] * 1e3, 4) for kind in "FBIW" if kind in seconds}


class Timer:
    """Times the actions of one stage. meter: a power.Meter; control: a control.Control; group: the expert group or None."""

    def __init__(self, actions: Actions, device: torch.device, effort: Effort, meter: Meter, control: Control,
                 group: dist.ProcessGroup | None = None) -> None:
        self.actions, self.device, self.effort, self.meter, self.control = actions, device, effort, meter, control
        self.group, self.clock = group, Clock(device)
        self.members = dist.get_process_group_ranks(group) if group else [dist.get_rank()]
        self.token = torch.zeros(1, device=device) if group else None
        self.streams: Any = side_streams(device) if self.clock.cuda and effort.two_streams else None
        self.spans: dict[str, list[tuple[Any, Any]]] = collections.defaultdict(list)     # kind → [(begin, end)]
        self.host: dict[str, list[float]] = collections.defaultdict(list)      # kind → seconds that the host took to hand it over
        self.cold = self.alone = False                 # alone: nothing is queued before an action, so that the host never waits for room
        self.ahead, self.worked = 0.0, 0.0             # seconds: by which the host goes ahead; of the last action
        self.behind = 0.0                              # seconds for which the card is busy when an action is handed to it

    def measure(self, shadow: AbstractContextManager | None = None) -> dict[str, Any]:
        """→ {"cold": {kind: ms}, "hot": …, "alone": …, "shadowed": …, "clock_mhz": {"cold": …, …}, "power_w": …, "launch_us": …}, on a GPU also
        "host_ms": {kind: ms}, "host_ms_behind": … and "behind_ms", for how long the card was busy then.
        shadow: a context in which a receive waits. Collective: every process calls it, with whatever stage it has."""
        out: dict[str, Any] = {"clock_mhz": {}, "power_w": {}, **self._prepare()}
        samples = self.effort.samples
        self._state(out, "cold", lambda: self._paused(samples))
        if self.clock.cuda:
            ahead, self.ahead = self.ahead, 0.0
            self._state(out, "alone", lambda: self._paused((samples + 1) // 2))
            self.ahead = ahead
        self._state(out, "hot", self._loaded)
        if shadow and self.effort.shadowed:
            with shadow:
                self._state(out, "shadowed", lambda: self._paused((samples + 1) // 2))
        return out

    def beside(self, shadow: AbstractContextManager) -> tuple[dict[str, float], dict[str, float]]:
        """→ {kind: ms} cold and shadowed, nothing else: as measure has them."""
        out: dict[str, Any] = {"clock_mhz": {}, "power_w": {}}
        self._prepare()
        self._state(out, "cold", lambda: self._paused(self.effort.samples))
        with shadow:
            self._state(out, "shadowed", lambda: self._paused(self.effort.samples))
        return out["cold"], out["shadowed"]

    # ------------------------------------------------------------------------------------------------------------------ states

    def _state(self, out: dict[str, Any], name: str, run: Callable) -> None:
        self.control.barrier()
        self.meter.begin()
        out[name] = {kind: round(ms, 4) for kind, ms in run().items()}
        for quantity, value in self.meter.end().items():
            out[quantity][name] = value
        self.control.barrier()

    def _prepare(self) -> dict[str, Any]:
        """Allocates, builds kernels and communicators, and learns what the host takes and how far ahead it has to be."""
        for _ in range(3):
            self._cycle()
        self._read()
        alone = self._hosts()
        self.ahead = min(0.1, 1.3 * self.control.most(max(alone.values())) + 0.0002)
        out: dict[str, Any] = {"launch_us": round(1e6 * statistics.fmean(alone[kind] for kind in ("F", "B")), 1)}
        if self.clock.cuda:
            # Longer than any action is handed over in: an action that waits then stands out.
            self.behind = self.control.most(max(0.02, 3 * max(alone.values())))
            begin = self.clock.mark()
            self.clock.delay(self.behind)
            end = self.clock.mark()
            self.clock.wait(end)
            busy = self._hosts()
            self.behind = 0.0
            out.update(host_ms=_of_actions(alone), host_ms_behind=_of_actions(busy), behind_ms=round(self.clock.milliseconds(begin, end), 3))
        return out

    def _hosts(self) -> dict[str, float]:
        """→ median seconds by kind that the host takes for an action, the card having ended all before it."""
        self.host.clear()
        self.alone = True
        for _ in range(10):
            self._cycle()
        self.alone = False
        self._read()
        return {kind: statistics.median(seconds) for kind, seconds in self.host.items()}

    def _paused(self, samples: int) -> dict[str, float]:
        self.cold = True
        self.meter.pause()
        for _ in range(samples):
            self._cycle()
        self.cold = False
        return self._read()

    def _loaded(self) -> dict[str, float]:
        """Load, what is timed, and load again until the slowest card has been timed."""
        seconds = self._seconds_of_cycle()
        timed = self.control.most(self.effort.samples * seconds)
        before, rest = math.ceil(self.effort.load / seconds), math.ceil(timed / seconds)
        before, rest = self.control.most([before, rest], self.members)    # members of a group run equally many
        self._cycles(before)
        self._read()
        self._cycles(self.effort.samples)
        out = self._read()
        self._cycles(max(0, rest - self.effort.samples))
        self._read()
        return out

    def _seconds_of_cycle(self) -> float:
        begin = time.perf_counter()
        self._cycles(2)
        self._read()
        return self.control.most((time.perf_counter() - begin) / 2, self.members)

    def _cycles(self, count: int) -> None:
        """The host at most two cycles ahead of the card."""
        ends: collections.deque[Any] = collections.deque()
        for _ in range(count):
            self._cycle()
            ends.append(self.clock.mark())
            if len(ends) > 2:
                self.clock.wait(ends.popleft())

    # ----------------------------------------------------------------------------------------------------------------- actions

    def _cycle(self) -> None:
        """Every kind at least once, in the order of a step."""
        actions = self.actions
        kept = self._timed("F", actions.forward)
        self._timed("B", actions.backward, kept)
        if actions.splits:
            kept = self._timed("F", actions.forward)
            pending = self._timed("I", actions.backward_input, kept)
            self._timed("W", actions.backward_weight, pending)
        if self.effort.pairs:
            kept = self._timed("F", actions.forward)
            self._timed("FB_in_turn", self._in_turn, kept)
            if self.streams:
                with self._stream(1):
                    kept = actions.forward()
                self._timed("FB_two_streams", self._two_streams, kept)

    def _in_turn(self, kept: list) -> list:
        new = self.actions.forward()
        self.actions.backward(kept)
        return new

    def _two_streams(self, kept: list) -> list:
        """autograd runs a backward on the stream of its forward, which was the second."""
        now = torch.cuda.current_stream()
        for stream in self.streams:
            stream.wait_stream(now)
        with torch.cuda.stream(self.streams[0]):
            new = self.actions.forward()
        with torch.cuda.stream(self.streams[1]):
            self.actions.backward(kept)
        for stream in self.streams:
            now.wait_stream(stream)
        return new

    @contextlib.contextmanager
    def _stream(self, which: int) -> Iterator[None]:
        now, stream = torch.cuda.current_stream(), self.streams[which]
        stream.wait_stream(now)
        with torch.cuda.stream(stream):
            yield
        now.wait_stream(stream)

    def _timed(self, kind: str, action: Callable, *needed: Any) -> Any:
        if self.cold:
            self._rest()
        self.clock.delay(self.behind)
        begin, host = self.clock.mark(), time.perf_counter()
        made = action(*needed)
        self.host[kind].append(time.perf_counter() - host)
        end = self.clock.mark()
        self.spans[kind].append((begin, end))
        if self.cold or self.alone:
            self.clock.wait(end)
        if self.cold:
            self.meter.pause()
            self.worked = time.perf_counter() - host
        return made

    def _rest(self) -> None:
        if self.clock.cuda:
            self.clock.wait(self.clock.mark())
        time.sleep(max(self.effort.pause, 1.5 * self.worked))
        self.meter.resume()
        if self.group:
            dist.all_reduce(self.token, group=self.group)
            if self.clock.cuda:     # else the rest of others would count as work, after which this one rests the longer
                self.clock.wait(self.clock.mark())
        self.clock.delay(self.ahead)

    def _read(self) -> dict[str, float]:
        """→ median ms by kind of what was timed since the last call."""
        if self.clock.cuda:
            self.clock.wait(self.clock.mark())
        out = {kind: statistics.median(self.clock.milliseconds(*span) for span in spans) for kind, spans in self.spans.items()}
        self.spans.clear()
        return out

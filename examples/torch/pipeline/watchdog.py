# SPDX-License-Identifier: Apache-2.0
"""No step hangs: a thread that ends this process, and says where it was, when nothing moves any more or another process has died.

    watchdog = Watchdog(30, rank, device)
    watchdog.step(7, ["0F0", "0F1", …])   # a step begins; the actions, in order, that this rank will run (may be left out)
    watchdog.at("0F0"); …; watchdog.done()
    watchdog.at("all-reduce of gradients")
    with watchdog.phase("building the stages", 600):      # of the host, which takes as long as it takes: a limit of its own
        …
    watchdog.stop()
"""
from __future__ import annotations

import collections
import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


def say(text: str) -> None:
    """One write, so that the lines of several processes do not mix."""
    os.write(2, (text.rstrip("\n") + "\n").encode())


def last_words(text: str) -> None:
    """Before a process ends because of itself: says so, and has torchrun repeat it in its own summary (torch.distributed.elastic reads this file)."""
    say(text)
    if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        with contextlib.suppress(OSError), open(path, "w") as file:
            json.dump({"message": text, "timestamp": int(time.time())}, file)


def _main_thread() -> str:
    """Where the main thread is: its own line, and the line of ours that led there."""
    frames = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident or 0])
    here = [f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames]
    ours = [name for name, f in zip(here, frames) if os.path.dirname(f.filename).endswith("pipeline")][-2:]
    return " > ".join(dict.fromkeys([*ours, here[-1]]))


STOPPED = 2.0     # seconds that the watching thread may come late on a busy machine; later than that nothing of the process ran


class Watchdog:
    """Ends the process with status 1 if neither host nor device begins or ends an action for `seconds` (0: never), or at SIGTERM, which
    torchrun sends to all processes when one has failed. Neither needs the main thread, which may be waiting inside a library for good.

    A process that was stopped as a whole (SIGSTOP, a machine put to sleep, a library that lets no thread run) says so, and how long, when it
    goes on. That time is no part of `seconds`, for nothing could move in it."""

    def __init__(self, seconds: float, rank: int, device: torch.device | str = "cpu") -> None:
        self.seconds, self.rank = seconds, rank
        self.limit = seconds                        # of what runs now: of a phase, or seconds
        self.stopped = 0.0                          # seconds, since something last moved
        self.cuda = torch.device(device).type == "cuda"
        self.number: int | None = None
        self.actions: tuple[str, ...] = ()
        self.current: str | None = "start"
        self.last: str | None = None
        self.beats = 0
        self.begun: collections.deque[tuple[str, Any]] = collections.deque()          # (action, CUDA event), until the device has got there
        self.wake, self.signalled = os.pipe()
        os.set_blocking(self.signalled, False)
        self.handler = signal.signal(signal.SIGTERM, lambda *_: None)
        self.fd = signal.set_wakeup_fd(self.signalled)
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.running = True
        self.thread.start()

    def step(self, number: int, actions: Iterable[str] = ()) -> None:
        self.number, self.actions = number, tuple(actions)
        self.current = self.last = None
        self.beats += 1

    def at(self, what: str) -> None:
        """What begins now. On a GPU: what the host hands to the device now."""
        if self.cuda:
            event = torch.cuda.Event()
            event.record()
            self.begun.append((what, event))
        self.current = what
        self.beats += 1

    def done(self) -> None:
        self.last, self.current = self.current, None
        self.beats += 1

    @contextlib.contextmanager
    def phase(self, what: str, seconds: float) -> Iterator[None]:
        """What the host does by itself, with the limit of its own."""
        self.limit = seconds
        self.at(what)
        try:
            yield
        finally:
            self.limit = self.seconds
            self.beats += 1

    def stop(self) -> None:
        self.running = False
        signal.set_wakeup_fd(self.fd)
        signal.signal(signal.SIGTERM, self.handler)
        os.write(self.signalled, b"\0")
        self.thread.join()

    def where(self) -> str:
        step = "" if self.number is None else f", step {self.number}"
        return f"rank {self.rank}{step}: {self._place()} [{_main_thread()}]"

    def _place(self) -> str:
        waiting = self.begun[0][0] if self.begun else None
        if waiting and waiting != self.current:
            return f"{waiting} has not begun on the device: what it receives has not come, or what runs before it has not ended"
        if self.current:
            return f"in {self.current}"
        if self.last in self.actions and self.last != self.actions[-1]:
            return f"{self._next()} has not begun after {self.last}: what it receives has not come, or a peer does not take what was sent"
        if self.last is None and self.actions:
            return f"{self.actions[0]} has not begun: what it receives has not come"
        return f"after {self.last}" if self.last else "between actions"

    def _next(self) -> str:
        return self.actions[self.actions.index(self.last or "") + 1]

    def _watch(self) -> None:
        moved, before = time.monotonic(), None
        while self.running:
            pause, asked = (min(1, self.limit / 10) if self.limit else 1), time.monotonic()
            ready, _, _ = select.select([self.wake], [], [], pause)
            now = time.monotonic()
            if ready and self.running and signal.SIGTERM in os.read(self.wake, 64):
                say(f"{self.where()}: told to stop (SIGTERM), most likely because another process has failed")
                os._exit(1)
            if now - asked - pause > STOPPED:
                self._was_stopped(now - asked - pause)
            reached = 0
            while self.begun and self.begun[0][1].query():
                self.begun.popleft()
                reached += 1
            if reached or self.beats != before:
                moved, before, self.stopped = now, self.beats, 0.0
            elif self.limit and now - moved - self.stopped >= self.limit:
                last_words(f"{self.where()}: nothing has moved for {now - moved - self.stopped:.1f} s, of {self.limit:g} s allowed"
                    f"{f', besides {self.stopped:.1f} s in which this process was stopped' if self.stopped else ''}; "
                    "a process has died, or the ranks wait for each other")
                os._exit(1)

    def _was_stopped(self, seconds: float) -> None:
        self.stopped += seconds
        say(f"{self.where()}: this process was stopped for {seconds:.1f} s (SIGSTOP, a machine asleep, or a library that let no thread run); "
            "the others waited for it")


def all_finite(values: Iterable[Any], device: torch.device, group: dist.ProcessGroup | None = None) -> bool:
    """Whether every value of every process of the group (None: all) is finite. Collective. One rank has the loss, all have to know."""
    bad = torch.tensor([float(sum(not torch.isfinite(torch.as_tensor(v)).all() for v in values))], device=device)
    dist.all_reduce(bad, group=group)
    return bad.item() == 0

# SPDX-License-Identifier: Apache-2.0
"""Which messages DualPipe and DualPipeV post before which action, so that no rank waits for another in a circle.

A rank collects its sends and receives, and right before an action posts all that it has collected as one group, and waits for the whole
group. In general an action's receives are collected right before it and its sends right after it; steps 2, 3 and 4 of the eight differ.
The order is that of DeepSeek's own step() (deepseek-ai/DualPipe, dualpipe/dualpipe.py and dualpipe/dualpipev.py).
"""
from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from .program import Mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .program import Cell, Program


@dataclasses.dataclass(frozen=True)
class Message:
    """One end of it. kind "F": the output of `source` stage, or "B": the gradient of its input, on the way to the stage `target`."""
    sends: bool
    kind: str
    source: int
    target: int
    microbatch: int
    peer: int              # rank of the pipeline at the other end

    def __str__(self) -> str:     # as PyTorch writes it: a send names the stage that sends, a receive the one that receives
        return f"{self.source}SEND_{self.kind}{self.microbatch}" if self.sends else f"{self.target}RECV_{self.kind}{self.microbatch}"


class _Rank:
    """Walks along a rank's row through the eight steps: groups[i] is what is posted before action i, groups[-1] what is at the end."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program, self.rank, self.row = program, rank, program.rows[rank]
        self.stage = rank, 2 * program.ranks - 1 - rank       # of phase 0, which microbatches reach first, and of phase 1
        self.turns, self.half = program.ranks, rank           # ranks that a microbatch passes in phase 0, and those before this one
        self.microbatches = program.microbatches // program.directions
        if program.directions == 2:
            self.turns //= 2
            if rank >= self.turns:
                self.stage, self.half = self.stage[::-1], program.ranks - 1 - rank
        self.middle = self.half == self.turns - 1
        self.groups: list[list[Message]] = []
        self.collected: list[Message] = []
        self.count: collections.Counter[tuple] = collections.Counter()          # of messages and actions of a kind: microbatches are taken in order
        self._steps()
        if len(self.groups) != len(self.row):
            raise Mismatch(f"{program.source}: rank {rank} has {len(self.row)} actions; expected {len(self.groups)}")
        self.groups.append(self.collected)

    def _collect(self, sends: bool, kind: str, phase: int) -> None:
        here = self.stage[phase]
        there = here + 1 if sends == (kind == "F") else here - 1
        if there not in range(self.program.stages) or here // self.program.slices != there // self.program.slices:
            return                                   # where the batch comes in, or the loss is
        peer = self.program.placement[there]
        if peer == self.rank:
            return
        source, target = (here, there) if sends else (there, here)
        microbatch = self.count[sends, kind, phase]
        self.count[sends, kind, phase] += 1
        self.collected.append(Message(sends, kind, source, target, microbatch, peer))

    def receive(self, kind: str, phase: int) -> None:
        self._collect(False, kind, phase)

    def send(self, kind: str, phase: int) -> None:
        self._collect(True, kind, phase)

    def run(self, kinds: Sequence[str], *phases: int) -> None:
        """The next action is to be one of these kinds (a pair: "FB"), of the stages of these phases (none: of any)."""
        at = len(self.groups)
        cell = self.row[at] if at < len(self.row) else ()
        if "".join(action.kind for action in cell) not in kinds or phases and [action.stage for action in cell] != [self.stage[p] for p in phases]:
            self._refuse(at, cell, " or ".join(kinds) + (" of stage " if phases else "") + " and ".join(str(self.stage[p]) for p in phases))
        for action in cell:
            way = action.stage, "F" if action.kind == "F" else "W" if action.kind == "W" else "B"
            if action.kind != "W" and action.microbatch != self.count[way]:
                self._refuse(at, cell, f"microbatch {self.count[way]} of stage {action.stage}")
            self.count[way] += 1
        self.groups.append(self.collected)
        self.collected = []

    def _refuse(self, at: int, cell: Cell, wanted: str) -> None:
        found = " and ".join(map(str, cell)) or "missing"
        raise Mismatch(f"{self.program.source}: rank {self.rank}, action {at + 1} is {found}; DualPipe and DualPipeV have {wanted} there")

    def forward(self, phase: int) -> None:
        self.receive("F", phase)
        self.run(["F"], phase)
        self.send("F", phase)

    def backward(self, phase: int, kinds: Sequence[str] = ("B", "I")) -> None:
        self.receive("B", phase)
        self.run(kinds, phase)
        self.send("B", phase)

    def pair(self, forward: int, backward: int, receives: bool = True) -> None:
        if receives:
            self.receive("F", forward)
        self.receive("B", backward)
        self.run(["FB"], forward, backward)
        self.send("F", forward)
        self.send("B", backward)

    def _step_2(self, times: int) -> None:
        self.receive("F", 0)
        for k in range(times):
            self.run(["F"], 0)
            if self.middle:
                self.send("F", 0)
            self.receive("F", 0)                     # of the next round, or of step 4
            self.receive("F", 1)
            self.run(["F"], 1)
            if not self.middle or k < times - 1:
                self.send("F", 1)
            if not self.middle:
                self.send("F", 0)

    def _turn(self) -> None:
        """The first round of step 4 in the middle: nothing of phase 1 has come back that could overlap, and its last F is not sent yet."""
        self.run(["F"], 0)
        self.send("F", 1)
        self.receive("B", 1)
        self.run(["B"], 1)
        self.send("F", 0)
        self.send("B", 1)

    def _steps(self) -> None:
        before, after = self.half + 1, self.turns - self.half - 1
        for _ in range(2 * after):                   # 1
            self.forward(0)
        self._step_2(before)
        for _ in range(after):                       # 3
            self.backward(1, ["I"])
            self.receive("F", 1)
            self.run(["W"], 1)
            self.run(["F"], 1)
            self.send("F", 1)
        for k in range(self.microbatches - 2 * self.turns + self.half + 1):    # 4
            if k == 0 and self.middle:
                self._turn()
            else:
                self.pair(0, 1, receives=k > 0)
            self.pair(1, 0)
        for _ in range(after):                       # 5
            self.backward(1)
            self.pair(1, 0)
        for _ in range(before):                      # 6
            self.backward(1)
            self.backward(0)
        for _ in range(after):                       # 7
            self.run(["W"])
            self.backward(0, ["I"])
        for _ in range(before):                      # 8
            self.run(["W"])


def groups(program: Program) -> list[list[list[Message]]]:
    """→ for each rank, for each of its cells the messages that are posted right before it, and last those that are posted when all is done.
    Mismatch: these are not the eight steps, or the ranks would wait for each other."""
    ranks = program.ranks
    if program.directions == 2 and ranks % 2:
        raise Mismatch(f"{program.source}: {ranks} ranks; DualPipe wants an even number")
    if program.placement != tuple(range(ranks)) + tuple(reversed(range(ranks))):
        raise Mismatch(f"{program.source}: its stages are on ranks {program.placement}; DualPipe and DualPipeV have stages r and {2 * ranks - 1} - r "
                       "on rank r")
    if program.microbatches < 2 * ranks:
        raise Mismatch(f"{program.source}: {program.microbatches} microbatches; DualPipe and DualPipeV want 2 for each of {ranks} ranks at least")
    made = [_Rank(program, rank).groups for rank in range(ranks)]
    _run_dry(program, made)
    return made


def _run_dry(program: Program, made: list[list[list[Message]]]) -> None:
    """A group ends when each of its messages is posted at the other end, too; what goes from rank to rank is matched in order."""
    for rank in range(len(made)):
        for peer in range(len(made)):
            if _between(made[rank], True, peer) != _between(made[peer], False, rank):
                raise Mismatch(f"{program.source}: ranks {rank} and {peer} do not agree on what one sends to the other")
    at = [-1] * len(made)                                   # the group that each rank waits for
    posted: list[collections.Counter[tuple[bool, int]]] = [collections.Counter() for _ in made]          # (sends, peer): how many so far
    moving = True
    while moving:
        moving = False
        for rank in range(len(made)):
            while at[rank] < len(made[rank]) and all(posted[peer][not sends, rank] >= count for (sends, peer), count in posted[rank].items()):
                at[rank] += 1
                moving = True
                if at[rank] < len(made[rank]):
                    posted[rank].update((message.sends, message.peer) for message in made[rank][at[rank]])
    stuck = [rank for rank in range(len(made)) if at[rank] < len(made[rank])]
    if stuck:
        raise Mismatch(f"{program.source}: ranks {stuck} would wait for each other")


def _between(row: list[list[Message]], sends: bool, peer: int) -> list[tuple[str, int, int]]:
    return [(m.kind, m.source, m.microbatch) for group in row for m in group if (m.sends, m.peer) == (sends, peer)]

# SPDX-License-Identifier: Apache-2.0
"""Runs the program of a DualPipe or DualPipeV (pipeplan simulate dualpipe --format csv) on this rank of a pipeline.

    executor = Executor(program, modules, grid, shape, device)     # modules: stage → module, of executor's stages, see stages_of
    losses = executor.step(*executor.share(input, target))         # gradients are in .grad: of the mean over microbatches
    executor.reduce()                                              # sums those of both copies of a slice, averages over data replicas

In DualPipe each rank has two slices of the model, r and P − 1 − r, and so each slice is on two ranks: stage s and stage P + s of the program.
One half of the batch enters at rank 0, the other at rank P − 1. PyTorch's runtime knows no second copy of a stage; so this is one of its own.
Before each action the messages collected so far are posted as one group and waited for (eight_steps.py). I leaves its weight gradients to W
(deferred.py).

What is held, and until when:
  a received activation, as input of its stage: until the backward (the first layer's graph has it in any case)
  what a forward stores for its backward: until B or I. Then I holds, until W, of each linear layer the input and the output's gradient
  an output: not after it was sent; the graph is kept by its edge alone
  a received gradient: until its backward ends; a gradient for the stage before: until it was sent
  a loss: until its backward; then its value
Nothing is allocated up front, and nothing but the caller's batch grows with the number of microbatches.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import deferred, eight_steps, gradients
from .model import loss_of
from .program import Mismatch
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any
    import torch.nn as nn

    from .eight_steps import Message
    from .grid import Grid
    from .model import Shape
    from .program import Action, Cell, Program
    from .watchdog import Watchdog


class Executor:
    """modules: of this rank's stages, by number; their nn.Linear become deferrable. Collective: every process makes its executor at the same time.

    overlapped_forward_backward(forward stage's module, forward, backward stage's module, backward) runs a pair: forward() and backward() do the
    work, and what forward() returns is to be returned. None: forward(), then backward(), as two actions. message: as of torch_runtime.Runner.
    """

    def __init__(self, program: Program, modules: dict[int, nn.Module], grid: Grid, shape: Shape, device: torch.device | str = "cpu", *,
                 loss: Callable = loss_of, timeline: Timeline | None = None, watchdog: Watchdog | None = None,
                 overlapped_forward_backward: Callable | None = None, message: torch.Tensor | None = None) -> None:
        self.program, self.grid, self.device, self.loss = program, grid, torch.device(device), loss
        self.rank = grid.rank
        if program.ranks != grid.pipeline:
            raise Mismatch(f"{program.source} is for {program.ranks} ranks; expected {grid.pipeline}, those of the pipeline")
        if sorted(modules) != program.stages_of(self.rank):
            raise Mismatch(f"rank {self.rank} was given stages {sorted(modules)}; {program.source} has {program.stages_of(self.rank)} on it")
        self.groups = eight_steps.groups(program)[self.rank]
        self.modules = modules
        for module in modules.values():
            deferred.defer(module)
        if message is None:
            dtype = next(parameter for module in modules.values() for parameter in module.parameters()).dtype
            message = torch.empty(shape.micro_batch_size, shape.sequence_length, shape.hidden, dtype=dtype, device="meta")
        self.message, self.dtype = tuple(message.shape), message.dtype
        self.micro_batch_size = shape.micro_batch_size
        self.each = program.microbatches // program.directions
        self.overlapped = overlapped_forward_backward
        self.watchdog = watchdog
        self.timeline_of_step = timeline or Timeline(device, watchdog)
        self.names = [str(action) for action in program.actions(self.rank)]
        self.steps, self.recorded = 0, False
        self.posted: list | None = None                 # a list: what was posted, and run, is noted in it
        self.copies = _copies(program, grid)
        # Messages of two ranks must not be what connects all of them: communicators are made at their first use, which blocks the host.
        dist.all_reduce(torch.zeros(1, device=self.device), group=grid.pipeline_group)
        self._reset()

    # What of the batch is whose

    def feeds(self) -> int | None:
        """The direction whose microbatches enter here, or None."""
        return next((stage // self.program.slices for stage in self.modules if self.program.slice_of(stage) == 0), None)

    def finishes(self) -> int | None:
        """The direction whose losses are here, or None."""
        return next((stage // self.program.slices for stage in self.modules if self._is_last(stage)), None)

    def share(self, input: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Of a batch of all microbatches: (input of those that enter here, target of those that end here), None where there are none."""
        def part(whole: torch.Tensor, direction: int | None) -> torch.Tensor | None:
            size = self.each * self.micro_batch_size
            return None if direction is None else whole[direction * size:(direction + 1) * size]
        return part(input, self.feeds()), part(target, self.finishes())

    # Steps

    def step(self, input: torch.Tensor | None = None, target: torch.Tensor | None = None) -> list[torch.Tensor]:
        """One step's forwards and backwards, gradients added to what is there. input, target: see share. → losses of the microbatches that
        end here, in their order, or []"""
        self.steps += 1
        if self.watchdog:
            self.watchdog.step(self.steps, self.names)
        self._reset()
        self.input = self._cut(input, "input", self.feeds())
        self.target = self._cut(target, "target", self.finishes())
        if self.recorded:
            dist.all_reduce(torch.zeros(1, device=self.device))
            self.timeline_of_step.start()
        for cell, group in zip(self.program.rows[self.rank], self.groups):
            self._exchange(group, text_of(cell))
            if self.posted is not None:
                self.posted.append(text_of(cell))
            self._run(cell)
        self._exchange(self.groups[-1], "the end")
        self.timeline_of_step.stop()
        self.input = self.target = None
        return self.losses

    def record(self, on: bool = True) -> None:
        """Whether the next steps leave a timeline. They begin with a barrier, so that ranks have a common 0."""
        self.recorded = on

    def timeline(self) -> list[list]:
        """→ [["0F0", start_ms, end_ms], …] of the last recorded step, on this rank"""
        return self.timeline_of_step.rows()

    def log(self) -> list | None:
        """→ the list to which steps add, from now on, what they post and run: "0F0", "0SEND_F0", …"""
        self.posted = []
        return self.posted

    def _reset(self) -> None:
        self.arrived: dict[tuple, torch.Tensor] = {}
        self.leaving: dict[tuple, torch.Tensor] = {}    # (kind, stage that gets it or that made it, microbatch) → tensor
        self.leaf: dict[tuple, Any] = {}
        self.root: dict[tuple, Any] = {}                # (stage, microbatch) → input; where its backward starts
        self.waiting: dict[tuple, list] = {}            # (stage, microbatch) → weight gradients of an I
        self.losses: list[torch.Tensor] = []

    def _cut(self, share: torch.Tensor | None, name: str, direction: int | None) -> Any:
        if direction is None:
            return None
        expected = self.each * self.micro_batch_size
        if share is None or len(share) != expected:
            raise Mismatch(f"rank {self.rank}, {name}: {'none' if share is None else f'{len(share)} sequences'}; "
                           f"expected {expected}, {self.each} microbatches of {self.micro_batch_size}")
        return share.split(self.micro_batch_size)

    def _exchange(self, group: list[Message], before: str) -> None:
        if not group:
            return
        if self.watchdog:
            self.watchdog.at(f"messages before {before}: " + ", ".join(f"{m} {'to' if m.sends else 'from'} rank {m.peer}" for m in group))
        operations = []
        for message in group:
            if message.sends:
                tensor = self.leaving.pop((message.kind, message.source, message.microbatch)).contiguous()
            else:
                tensor = torch.empty(self.message, dtype=self.dtype, device=self.device)
                self.arrived[message.kind, message.target, message.microbatch] = tensor
            operations.append(dist.P2POp(dist.isend if message.sends else dist.irecv, tensor, self.grid.world_rank(message.peer), self.grid.pipeline_group))
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        if self.posted is not None:
            self.posted.extend(map(str, group))
        if self.watchdog:
            self.watchdog.done()

    def _run(self, cell: Cell) -> None:
        if len(cell) == 2 and self.overlapped:
            ahead, back = cell
            with self.timeline_of_step.action(text_of(cell)):
                output = self.overlapped(self.modules[ahead.stage], lambda: self._compute(ahead), self.modules[back.stage], lambda: self._backward(back))
                self._keep(ahead, output)
            return
        for action in cell:
            with self.timeline_of_step.action(str(action)):
                if action.kind == "F":
                    self._keep(action, self._compute(action))
                elif action.kind == "W":
                    deferred.run(self.waiting.pop(action[::2]))
                    gradients.gather(self.modules[action.stage])
                else:
                    self._backward(action)

    # Actions

    def _is_last(self, stage: int) -> bool:
        return self.program.slice_of(stage) == self.program.slices - 1

    def _compute(self, action: Action) -> torch.Tensor:
        """→ the output, or the loss."""
        stage, _, microbatch = action
        if self.program.slice_of(stage) == 0:
            x = self.input[microbatch]
        else:
            x = self.arrived.pop(("F", stage, microbatch)).requires_grad_()
            self.leaf[stage, microbatch] = x
        output = self.modules[stage](x)
        return self.loss(output, self.target[microbatch]) if self._is_last(stage) else output

    def _keep(self, action: Action, output: torch.Tensor) -> None:
        stage, _, microbatch = action
        if self._is_last(stage):
            self.root[stage, microbatch] = output
            self.losses.append(output.detach())
            return
        self.root[stage, microbatch] = torch.autograd.graph.get_gradient_edge(output)
        self._hand_over("F", stage, stage + 1, microbatch, output.detach())

    def _backward(self, action: Action) -> None:
        stage, kind, microbatch = action
        root = self.root.pop((stage, microbatch))
        if self._is_last(stage):
            gradient = torch.full_like(root, 1 / self.program.microbatches)
        else:
            gradient = self.arrived.pop(("B", stage, microbatch))
        if kind == "I":
            with deferred.deferring() as self.waiting[stage, microbatch]:
                torch.autograd.backward(root, gradient)
        else:
            torch.autograd.backward(root, gradient)
        gradients.gather(self.modules[stage])
        x = self.leaf.pop((stage, microbatch), None)
        if x is not None:
            self._hand_over("B", stage, stage - 1, microbatch, x.grad)

    def _hand_over(self, kind: str, source: int, target: int, microbatch: int, tensor: torch.Tensor) -> None:
        if self.program.placement[target] == self.rank:
            self.arrived[kind, target, microbatch] = tensor
        else:
            self.leaving[kind, source, microbatch] = tensor

    # Gradients

    def reduce(self) -> None:
        """Sums the gradients of a slice over the ranks that have a copy of it, and averages over data replicas. Those of an expert are of the
        tokens of all replicas that share it: they are summed over the replicas that have a copy of it. Collective."""
        if self.watchdog:
            self.watchdog.at("all-reduce of gradients")
        for stage in sorted(self.modules, key=self.program.slice_of):
            for name, parameter in self.modules[stage].named_parameters():
                if not parameter.requires_grad:
                    continue
                if gradients.of(parameter) is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradient = gradients.of(parameter)
                group = self.copies["expert" if gradients.is_expert(name) else "other"]
                if group is not None:
                    dist.all_reduce(gradient, group=group)
                if self.grid.data > 1:
                    gradient.div_(self.grid.data)
        if self.watchdog:
            self.watchdog.done()


def stages_of(program: Program, rank: int) -> dict[int, int]:
    """→ {stage: slice of the model} of that rank."""
    return {stage: program.slice_of(stage) for stage in program.stages_of(rank)}


def _copies(program: Program, grid: Grid) -> dict[str, dist.ProcessGroup | None]:
    """→ {"expert", "other"}: group of those that have the same weights of this rank's stages, None: nobody else. Collective."""
    holders: dict[frozenset[int], list[int]] = {}          # slices → the ranks that have just these
    for rank in range(program.ranks):
        holders.setdefault(frozenset(map(program.slice_of, program.stages_of(rank))), []).append(rank)
    mine: dict[str, dist.ProcessGroup | None] = {}
    for ranks in holders.values():
        for kind, apart in ("other", 1), ("expert", grid.expert):
            for first in range(apart):
                members = [rank * grid.data + replica for rank in ranks for replica in range(first, grid.data, apart)]
                group = dist.new_group(members) if len(members) > 1 else None
                if dist.get_rank() in members:
                    mine[kind] = group
    return mine


def text_of(cell: Cell) -> str:
    return str(cell[0]) if len(cell) == 1 else f"({';'.join(map(str, cell))})OVERLAP_F_B"

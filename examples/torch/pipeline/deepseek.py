# SPDX-License-Identifier: Apache-2.0
"""Runs a DualPipe or DualPipeV on DeepSeek's own package, github.com/deepseek-ai/DualPipe, which is not part of this repository.

    runner = Runner(folder, program, modules, grid, shape, device)     # folder: the package's checkout; the rest as dualpipe.Executor

The package runs its own order, which is the program's, and its own messages. Weight gradients are deferred by our linear layers (deferred.py)
through the package's WeightGradStore. The linear layer of its examples would leave more behind: it computes W where autograd records, from
an input that has a history, so that weight.grad has one, too, and keeps the gradients of outputs until it is dropped (not: set to zero).
Its F&B pairs run as F, then B, unless the stages' class has the overlapped_forward_backward that the package asks for.
"""
from __future__ import annotations

import collections
import importlib
import sys
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import deferred
from .dualpipe import Executor
from .program import Mismatch

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
    import torch.nn as nn

    from .grid import Grid
    from .model import Shape
    from .program import Program


def package(folder: str) -> ModuleType:
    """→ DeepSeek's dualpipe, from that folder."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module("dualpipe")
    except ImportError as error:
        raise Mismatch(f"{folder}: {error}; expected a checkout of github.com/deepseek-ai/DualPipe") from error


class Runner(Executor):
    """step(), share(), reduce(), record() and timeline() are those of dualpipe.Executor."""

    def __init__(self, folder: str, program: Program, modules: dict[int, nn.Module], grid: Grid, shape: Shape,
                 device: torch.device | str = "cpu", **options: Any) -> None:
        super().__init__(program, modules, grid, shape, device, **options)
        self.package = package(folder)
        if self.device.type == "cpu":
            self._allow_cpu()
        self.package.set_p2p_tensor_shapes([self.message])
        self.package.set_p2p_tensor_dtype(self.dtype)
        kind = self.package.DualPipe if program.directions == 2 else self.package.DualPipeV
        self.stages = program.stages_of(self.rank)
        self.pipe = kind([modules[stage] for stage in self.stages], process_group=grid.pipeline_group)
        # A rank of DualPipe's second half counts its phases from the other direction.
        self.turned = program.directions == 2 and self.rank >= program.ranks // 2
        self._wrap()

    def step(self, input: torch.Tensor | None = None, target: torch.Tensor | None = None) -> list[torch.Tensor]:
        self.steps += 1
        if self.watchdog:
            self.watchdog.step(self.steps, self.names)
        self._cut(input, "input", self.feeds())
        self._cut(target, "target", self.finishes())
        self.count: collections.Counter[tuple[str, int]] = collections.Counter()
        if self.recorded:
            dist.all_reduce(torch.zeros(1, device=self.device))
            self.timeline_of_step.start()
        losses, _ = self.pipe.step(*([] if input is None else [input]), num_chunks=self.program.microbatches, criterion=self._mean,
                                   labels=[] if target is None else [target])
        self.timeline_of_step.stop()
        return [] if losses is None else list(losses.detach() * self.program.microbatches)

    def _mean(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.loss(output, target) / self.program.microbatches

    def _action(self, kind: str, phase: int) -> tuple[int, int]:
        """The name of what runs next. Microbatches are taken in order."""
        stage = self.stages[phase ^ self.turned]
        self.count[kind, stage] += 1
        return stage, self.count[kind, stage] - 1

    def _wrap(self) -> None:
        """Around what computes, without the waiting for messages: the timeline, and the list of weight gradients of an I."""
        forward, backward, action = self.pipe._forward_compute_chunk, self.pipe._backward_compute_chunk, self.timeline_of_step.action

        def timed_forward(phase: int) -> None:
            stage, microbatch = self._action("F", phase)
            with action(f"{stage}F{microbatch}"):
                forward(phase)

        def timed_backward(phase: int, enable_zb: bool = False) -> None:
            stage, microbatch = self._action("B", phase)
            if not enable_zb:
                with action(f"{stage}B{microbatch}"):
                    return backward(phase)
            with action(f"{stage}I{microbatch}"), deferred.deferring() as waiting:
                self.package.WeightGradStore.put(lambda: weight(stage, microbatch, waiting))
                backward(phase, True)

        def weight(stage: int, microbatch: int, waiting: list) -> None:
            with action(f"{stage}W{microbatch}"):
                deferred.run(waiting)

        self.pipe._forward_compute_chunk, self.pipe._backward_compute_chunk = timed_forward, timed_backward

    def _allow_cpu(self) -> None:
        """The package checks that modules are on the current GPU, and makes its buffers there."""
        comm: Any = importlib.import_module("dualpipe.comm")
        comm.build_from_tensor_shapes = lambda: [torch.empty(size, dtype=comm.TENSOR_DTYPE, requires_grad=True) for size in comm.TENSOR_SHAPES]
        torch.cuda.current_device = lambda: "cpu"

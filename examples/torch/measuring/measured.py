# SPDX-License-Identifier: Apache-2.0
"""Steps of a runner, timed: what runs.json (fidelity.py, compare.py) says of one run."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from pipeline import power, watchdog

if TYPE_CHECKING:
    from typing import Any
    from pipeline.grid import Grid

    from .control import Control


class Steps:
    """runner: torch_runtime.Runner, dualpipe.Executor, or what else has their step(), record() and timeline(). given, target: what its step
    takes on this process. control: control.Control. foreign: bytes on the GPU that are not the run's. Collective: all processes of the grid
    do the same."""

    def __init__(self, runner: Any, grid: Grid, device: torch.device, given: torch.Tensor | None, target: torch.Tensor | None, control: Control,
                 foreign: int = 0) -> None:
        self.runner, self.grid, self.device, self.given, self.target, self.control = runner, grid, device, given, target, control
        self.foreign = foreign
        self.cuda = device.type == "cuda"

    def once(self) -> float:
        """Milliseconds of a step on the host's clock, of the slowest process. Gradients exist and are zero before it."""
        for module in self.runner.modules.values():
            for weight in module.parameters():
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad.zero_()
        self._settle()
        dist.barrier()
        begin = time.perf_counter()
        losses = self.runner.step(self.given, self.target)
        self._settle()
        took = torch.tensor((time.perf_counter() - begin) * 1000, device=self.device)
        dist.all_reduce(took, dist.ReduceOp.MAX)
        if not watchdog.all_finite(losses or [], self.device):
            raise ArithmeticError("a loss is not finite")
        return took.item()

    def measure(self, warmup: int, steps: int) -> dict[str, Any]:
        """→ {step_ms, base_bytes, input_bytes, peak_bytes, sm_clock_mhz, power_w, timeline}: all but the first by pipeline rank, of one replica.
        The steps of step_ms, sorted, come after `warmup` others; that of the timeline after them."""
        for _ in range(warmup):
            self.once()
        mine = {"base_bytes": torch.cuda.memory_allocated() - self.foreign if self.cuda else None,
                "input_bytes": sum(tensor.untyped_storage().nbytes() for tensor in (self.given, self.target) if tensor is not None)}
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
        meter = power.Meter(self.device)
        meter.begin()
        took = sorted(round(self.once(), 3) for _ in range(steps))
        beside = meter.end()
        meter.close()
        mine.update(peak_bytes=torch.cuda.max_memory_allocated() - self.foreign if self.cuda else None,
                    sm_clock_mhz=beside.get("clock_mhz"), power_w=beside.get("power_w"))
        self.runner.record(True)
        self.once()
        self.runner.record(False)
        mine["timeline"] = [[name, round(begin, 3), round(end, 3)] for name, begin, end in self.runner.timeline()]
        ranks = self.control.gather(mine)[::self.grid.data]
        lists = {name: [rank[name] for rank in ranks] for name in mine}
        return {"step_ms": took, **{name: None if None in values else values for name, values in lists.items()}}

    def _settle(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

# SPDX-License-Identifier: Apache-2.0
"""Gradients of a step beside the pipeline: where they are summed, their sum over replicas, their norm, and whether they are those of the model
without a pipeline.

Weights of 16 bits may have gradients of 32: `widen` gives each a weight.main_grad, as Megatron-LM calls it, and `gather` adds to it what a backward
has left in weight.grad. Weights that do not require a gradient are frozen: none of this is about them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any
    import torch.nn as nn

    from .grid import Grid


def is_expert(name: str) -> bool:
    return ".expert." in name


def of(weight: nn.Parameter) -> Any:
    """Its gradient, wherever it is summed: a tensor, or None."""
    main = getattr(weight, "main_grad", None)
    return weight.grad if main is None else main


def widen(module: nn.Module, dtype: torch.dtype) -> None:
    """Sums gradients in that type from now on, where weights have another."""
    module.widened = [weight for weight in module.parameters() if weight.requires_grad and weight.dtype != dtype]
    for weight in module.widened:
        weight.main_grad = torch.zeros_like(weight, dtype=dtype)


@torch.no_grad()
def gather(module: nn.Module) -> None:
    """After a backward of the module."""
    for weight in getattr(module, "widened", ()):
        if weight.grad is not None:
            weight.main_grad.add_(weight.grad)
            weight.grad = None


class Gradients:
    """Of this rank's modules {stage: module}. copies: how many ranks of a pipeline hold each stage (2 where it is bidirectional). slice_of(stage):
    the part of the model that it is, where two stages may be the same."""

    def __init__(self, modules: dict[int, nn.Module], grid: Grid, copies: int = 1, slice_of: Callable = int) -> None:
        self.modules, self.grid, self.copies, self.slice_of = modules, grid, copies, slice_of

    def named(self) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
        """→ (module, name, parameter) of what is trained, in the same order on all processes that hold the same"""
        for stage in sorted(self.modules, key=self.slice_of):
            for name, weight in self.modules[stage].named_parameters():
                if weight.requires_grad:
                    yield self.modules[stage], name, weight

    def zero(self) -> None:
        for _, _, weight in self.named():
            weight.grad = None
            if getattr(weight, "main_grad", None) is not None:
                weight.main_grad.zero_()

    def fill(self) -> None:
        """A weight that took no part in this step has a gradient of zeros: elsewhere it may have taken part."""
        for _, _, weight in self.named():
            if of(weight) is None:
                weight.grad = torch.zeros_like(weight)

    def reduce(self) -> None:
        """Mean over replicas. A replica's gradient is that of the mean over its microbatches; an expert's has come from all replicas that share
        it already, through the all-to-all, and is summed over those that hold the same one."""
        self.fill()
        if self.grid.data == 1:
            return
        work = []
        for _, name, weight in self.named():
            group = self.grid.expert_data_group if is_expert(name) else self.grid.data_group
            work.append(dist.all_reduce(of(weight), group=group, async_op=True))
        for each in work:
            each.wait()
        for _, _, weight in self.named():
            of(weight).div_(self.grid.data)

    def norm(self, device: torch.device) -> float:
        """Of the whole model's gradient, each weight once; not finite on every process if a gradient is not on any. Collective."""
        self.fill()
        squares = torch.zeros(2, dtype=torch.float64, device=device)          # of experts, of all else
        for _, name, weight in self.named():
            squares[0 if is_expert(name) else 1] += torch.linalg.vector_norm(of(weight), dtype=torch.float64).square()
        if self.grid.expert_group:
            dist.all_reduce(squares[0], group=self.grid.expert_group)
        total = squares.sum() / self.copies
        dist.all_reduce(total, group=self.grid.pipeline_group)
        bad = (~total.isfinite()).double()
        dist.all_reduce(bad, dist.ReduceOp.MAX)                               # replicas have the same gradients, unless one of them is wrong
        return float("nan") if bad.item() and total.isfinite().item() else total.sqrt().item()

    @torch.no_grad()
    def clip(self, norm: float, most: float) -> None:
        """Makes a gradient of that norm one of norm `most`, if it is larger."""
        if norm > most:
            for _, _, weight in self.named():
                of(weight).mul_(most / norm)


def key_of(module: nn.Module, name: str) -> str:
    """What that weight of a stage is called in the whole model."""
    return module.key(name) if hasattr(module, "key") else name


def reference(whole: nn.Module, loss_of: Callable, micro_batch_size: int,
              batches: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, dict[str, torch.Tensor | None]]:
    """The model in one piece, by plain autograd: (loss, {weight: gradient}) of the mean over all microbatches of [(input, target), …]."""
    loss, count = 0.0, sum(len(input) // micro_batch_size for input, _ in batches)
    for input, target in batches:
        for x, y in zip(input.split(micro_batch_size), target.split(micro_batch_size)):
            one = loss_of(whole(x), y) / count
            one.backward()
            loss += one.item()
    return loss, {key_of(whole, name): weight.grad for name, weight in whole.named_parameters() if weight.requires_grad}


# Of ‖difference‖/‖gradient‖ of a weight; sums are taken in another order, in the pipeline and over replicas. By the type of the products.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 0.05}
LOSS = 0.1   # of that, of the loss, whose forwards are the same


def differences(gradients: Gradients, expected: dict[str, torch.Tensor | None]) -> dict:
    """→ {weight: ‖difference‖/‖expected‖} of this rank's gradients, nan where there is none."""
    found = {}
    for module, name, weight in gradients.named():
        key, here = key_of(module, name), of(weight)
        want = expected.get(key)
        want = torch.zeros_like(weight, dtype=torch.float64) if want is None else want.double()
        got = here.double() if here is not None else torch.full_like(want, torch.nan)
        found[key] = ((got - want).norm() / want.norm().clamp_min(1e-30)).item()
    return found

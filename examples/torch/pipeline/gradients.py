# SPDX-License-Identifier: Apache-2.0
"""Gradients of a step beside the pipeline: their sum over replicas, their norm, and whether they are those of the model without a pipeline."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    import torch.nn as nn

    from .grid import Grid
    from .model import Shape


def is_expert(name: str) -> bool:
    return ".expert." in name


class Gradients:
    """Of this rank's modules {stage: module}. copies: how many ranks of a pipeline hold each stage (2 where it is bidirectional)."""

    def __init__(self, modules: dict[int, nn.Module], grid: Grid, copies: int = 1) -> None:
        self.modules, self.grid, self.copies = modules, grid, copies

    def named(self) -> Iterator[tuple[nn.Module, str, nn.Parameter]]:
        """→ (module, name, parameter), in the same order on all replicas"""
        for stage in sorted(self.modules):
            for name, weight in self.modules[stage].named_parameters():
                yield self.modules[stage], name, weight

    def zero(self) -> None:
        for _, _, weight in self.named():
            weight.grad = None

    def reduce(self) -> None:
        """Mean over replicas. A replica's gradient is that of the mean over its microbatches; an expert's has come from all replicas that share
        it already, through the all-to-all, and is summed over those that hold the same one."""
        if self.grid.data == 1:
            return
        work = []
        for _, name, weight in self.named():
            group = self.grid.expert_data_group if is_expert(name) else self.grid.data_group
            work.append(dist.all_reduce(weight.grad, group=group, async_op=True))
        for each in work:
            each.wait()
        for _, _, weight in self.named():
            weight.grad /= self.grid.data

    def norm(self, device: torch.device) -> float:
        """Of the whole model's gradient, each weight once. Collective."""
        squares = torch.zeros(2, dtype=torch.float64, device=device)          # of experts, of all else
        for _, name, weight in self.named():
            squares[0 if is_expert(name) else 1] += weight.grad.double().square().sum()
        if self.grid.expert_group:
            dist.all_reduce(squares[0], group=self.grid.expert_group)
        total = squares.sum() / self.copies
        dist.all_reduce(total, group=self.grid.pipeline_group)
        return total.sqrt().item()


def reference(shape: Shape, batches: Sequence[tuple[torch.Tensor, torch.Tensor]], device: torch.device,
              dtype: torch.dtype) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The model in one piece, by plain autograd: (loss, {weight: gradient}) of the mean over all microbatches of [(input, target), …]."""
    whole = model.Stage(shape, 0, shape.layers, starts=True, ends=True).to(device=device, dtype=dtype)
    loss, count = 0, sum(len(input) // shape.micro_batch_size for input, _ in batches)
    for input, target in batches:
        for x, y in zip(input.split(shape.micro_batch_size), target.split(shape.micro_batch_size)):
            one = model.loss_of(whole(x), y) / count
            one.backward()
            loss += one.item()
    return loss, {whole.key(name): weight.grad for name, weight in whole.named_parameters()}


# Of ‖difference‖/‖gradient‖ of a weight; sums are taken in another order, in the pipeline and over replicas.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-4, torch.bfloat16: 0.05}


def differences(gradients: Gradients, expected: dict[str, torch.Tensor]) -> dict:
    """→ {weight: ‖difference‖/‖expected‖} of this rank's gradients, nan where there is none."""
    found = {}
    for module, name, weight in gradients.named():
        want = expected[module.key(name)].double()
        got = weight.grad.double() if weight.grad is not None else torch.full_like(want, torch.nan)
        found[module.key(name)] = ((got - want).norm() / want.norm().clamp_min(1e-30)).item()
    return found

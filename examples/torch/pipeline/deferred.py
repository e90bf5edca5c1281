# SPDX-License-Identifier: Apache-2.0
"""Linear layers whose weight gradients can wait, so that a backward can be cut into I (for the input) and W (for the weights).

    defer(module)                         # its nn.Linear can wait from now on; nothing else about it changes
    with deferring() as waiting:
        torch.autograd.backward(…)        # I: everything but the weight gradients of linear layers
    run(waiting)                          # W: adds them to .grad

What PyTorch's pipelining does instead (torch.distributed.pipelining._backward) needs nothing of the layers, but it walks the graph twice and
keeps until W all that the forward stored, and gradients of layers' outputs beside it. Here the graph is gone after I: a linear layer keeps
its input and the gradient of its output. Weights of other layers (norms, biases, embeddings) get their gradients in I.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_waiting: list | None = None          # where weight gradients go; None: they are computed at once. Autograd's own threads read it, too


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x = gradient @ weight if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return of_x, None
        rows, gradients = x.flatten(0, -2), gradient.flatten(0, -2)
        if _waiting is None:
            return of_x, gradients.t() @ rows
        # Detached: what is left of the graph would stay as long as the gradient that is made of it, and with it what its leaves hold.
        _waiting.append((weight, gradients, rows.detach()))
        return of_x, None


class Linear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = _Function.apply(x, self.weight)
        return out if self.bias is None else out + self.bias


def defer(module: nn.Module) -> None:
    for part in module.modules():
        if type(part) is nn.Linear:
            part.__class__ = Linear


@contextlib.contextmanager
def deferring() -> Iterator[list]:
    global _waiting
    made: list = []
    _waiting = made
    try:
        yield made
    finally:
        _waiting = None


@torch.no_grad()
def run(waiting: list) -> None:
    """In place, without a temporary of the size of the weight; what each layer kept is free as soon as it has been used."""
    waiting.reverse()
    while waiting:
        weight, gradients, rows = waiting.pop()
        if weight.grad is None:
            weight.grad = gradients.t() @ rows
        else:
            weight.grad.addmm_(gradients.t(), rows)

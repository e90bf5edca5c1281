# SPDX-License-Identifier: Apache-2.0
"""Linear layers whose weight gradients can wait, so that a backward can be cut into I (for the input) and W (for the weights).

    defer(module)                         # its nn.Linear, and subclasses, can wait from now on; nothing else about it changes
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
    """x in the type in which the product is taken; the weight is cast to it, and its gradient back, as autocast does."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.weight = weight            # itself: under a checkpoint what is saved comes back as another tensor, whose .grad nobody reads
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x, weight.to(x.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        (x,), weight = ctx.saved_tensors, ctx.weight
        of_x = gradient @ weight.to(gradient.dtype) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return of_x, None
        rows, gradients = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
        if _waiting is None:
            return of_x, (gradients.t() @ rows).to(weight.dtype)
        # Detached: what is left of the graph would stay as long as the gradient that is made of it, and with it what its leaves hold.
        _waiting.append((weight, gradients, rows.detach()))
        return of_x, None


class Linear(nn.Linear):
    """Stands between a subclass of nn.Linear and nn.Linear itself, so that what the subclass calls with super().forward() waits, too."""
    waits = False     # has its forward come here?

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not _is_plain(self.weight):
            return super().forward(x)
        if not self.waits:
            self.waits = True
        if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:
            x = x.to(torch.get_autocast_dtype(x.device.type))
        elif x.dtype != self.weight.dtype:
            return super().forward(x)                  # which says what is wrong
        out = _Function.apply(x, self.weight)
        return out if self.bias is None else out + self.bias.to(out.dtype)


def _is_plain(weight: torch.Tensor) -> bool:
    """Is it a parameter whose gradient nobody asks to be told of? One that is computed of others (a parametrization), or that has hooks, has its
    gradient in I, where autograd hands it on."""
    return weight.is_leaf and not weight._backward_hooks and not getattr(weight, "_post_accumulate_grad_hooks", None)


def defer(module: nn.Module) -> None:
    for part in module.modules():
        kind = type(part)
        if isinstance(part, nn.Linear) and not isinstance(part, Linear):
            part.__class__ = Linear if kind is nn.Linear else type(kind.__name__, (kind, Linear), {"__module__": kind.__module__})


def not_deferred(module: nn.Module) -> list[str]:
    """After a forward: names of the linear layers with weights to train whose forward is their own and takes none of nn.Linear's, or whose weight is
    computed of others: their gradients come in I, so that W does not hold them."""
    return [f"{name} ({type(part).__name__})" for name, part in module.named_modules()
            if isinstance(part, Linear) and not part.waits and any(weight.requires_grad for weight in part.parameters())]


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
        if weight.grad is not None and weight.grad.dtype == rows.dtype:
            weight.grad.addmm_(gradients.t(), rows)
            continue
        made = (gradients.t() @ rows).to(weight.dtype)
        weight.grad = made if weight.grad is None else weight.grad.add_(made)

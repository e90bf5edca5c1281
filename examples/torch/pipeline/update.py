# SPDX-License-Identifier: Apache-2.0
"""The optimizer's step as a plan counts it: main weights of 32 bits beside weights of 16, and both they and the moments cut over the processes that
hold the same weights (ZeRO-1, Megatron-LM's distributed optimizer), each of which updates its part and gets the others'.

    update = Update(gradients.named(), groups, torch.optim.AdamW, sharded=True, lr=1e-4)
    update.step()                         # of gradients that are summed over replicas already, as gradients.of(weight) has them
"""
from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any
    import torch.nn as nn

HALVES = (torch.bfloat16, torch.float16)


@dataclasses.dataclass
class Part:
    """Of a weight, elements first … last − 1 of its flat self are this process's to update. main: these, in 32 bits, or the weight's own."""
    weight: nn.Parameter
    group: dist.ProcessGroup | None
    first: int
    last: int
    main: nn.Parameter

    @property
    def own(self) -> torch.Tensor:
        return self.weight.data.view(-1)[self.first:self.last]


class Update:
    """groups: {"expert", "other"} → processes that hold the same weights of that sort as this one, None: nobody else."""

    def __init__(self, named: Iterable[tuple[Any, str, nn.Parameter]], groups: dict[str, dist.ProcessGroup | None], kind: Callable, sharded: bool,
                 **options: Any) -> None:
        self.parts = []
        for _, name, weight in named:
            group = groups["expert" if gradients.is_expert(name) else "other"] if sharded else None
            self.parts.append(_part(weight, group))
        mains = [part.main for part in self.parts if part.main.numel()]
        # On a GPU in one kernel: PyTorch's other way takes temporaries as large as all main weights, which no plan has.
        self.optimizer = kind(mains, **options, fused=any(main.is_cuda for main in mains) or None)

    @torch.no_grad()
    def step(self) -> None:
        for part in self.parts:
            gradient = gradients.of(part.weight)
            part.main.grad = gradient.reshape(-1)[part.first:part.last].to(part.main.dtype) if gradient is not None else None
        self.optimizer.step()
        for part in self.parts:
            part.main.grad = None
            if part.weight.dtype in HALVES:
                part.own.copy_(part.main)
        for group in dict.fromkeys(part.group for part in self.parts if part.group is not None):
            for dtype in dict.fromkeys(part.weight.dtype for part in self.parts if part.group is group):
                _exchange(group, [part for part in self.parts if part.group is group and part.weight.dtype == dtype])

    def bytes(self) -> dict[str, int]:
        """That tensors of this process take: weights and gradients, whole, and what the optimizer keeps beside them."""
        beside = [part.main for part in self.parts if part.weight.dtype in HALVES]
        beside += [value for state in self.optimizer.state.values() for value in state.values() if torch.is_tensor(value) and value.dim()]
        return {"parameters": _bytes(part.weight for part in self.parts), "optimizer": _bytes(beside),
                "gradients": _bytes(gradient for part in self.parts if (gradient := gradients.of(part.weight)) is not None)}


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _part(weight: nn.Parameter, group: dist.ProcessGroup | None) -> Part:
    weight.data = weight.data.contiguous()
    members, member = (dist.get_world_size(group), dist.get_rank(group)) if group else (1, 0)
    length = -(-weight.numel() // members)
    first, last = min(member * length, weight.numel()), min((member + 1) * length, weight.numel())
    own = weight.data.view(-1)[first:last]
    return Part(weight, group, first, last, torch.nn.Parameter(own.float() if weight.dtype in HALVES else own))


def _exchange(group: dist.ProcessGroup, parts: list[Part]) -> None:
    """Gives the others of the group what this process has updated, and takes theirs: in one message, each weight padded to equal parts."""
    members = dist.get_world_size(group)
    lengths = [-(-part.weight.numel() // members) for part in parts]
    mine = torch.cat([torch.nn.functional.pad(part.own, (0, length - part.own.numel())) for part, length in zip(parts, lengths)])
    every = mine.new_empty(members * len(mine))
    dist.all_gather_into_tensor(every, mine, group=group)
    at = 0
    for part, length in zip(parts, lengths):
        part.weight.data.view(-1).copy_(every.view(members, -1)[:, at:at + length].reshape(-1)[:part.weight.numel()])
        at += length

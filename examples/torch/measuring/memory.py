# SPDX-License-Identifier: Apache-2.0
"""What a stage and one of its microbatches take, in bytes: from the allocator on a GPU, elsewhere by following the storages that operations
make. Of PyTorch's runtime the stage's input and the gradient of its output are outside of it: they lie in its buffers for messages."""
from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .actions import Actions


class _Allocator:
    """Of the card. What one operation needs inside itself is part of the peak."""

    def __init__(self, device: torch.device, known: Iterable[torch.Tensor]) -> None:
        self.device = device

    def __enter__(self) -> _Allocator:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def held(self) -> int:
        return torch.cuda.memory_allocated(self.device)

    def peak(self) -> int:
        """Since the last call."""
        most = torch.cuda.max_memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        return most


class _Storages(TorchDispatchMode):
    """Counts storages from the operation that makes them until nothing holds them. known: tensors that were there before."""

    def __init__(self, device: torch.device, known: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.live, self.most = 0, 0
        self.seen = {self._key(tensor.untyped_storage()) for tensor in known}

    @staticmethod
    def _key(storage: Any) -> int:
        return storage._cdata

    def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        return out

    def _add(self, storage: Any) -> None:
        key, size = self._key(storage), storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.live += size
        self.most = max(self.most, self.live)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.live -= size

    def held(self) -> int:
        return self.live

    def peak(self) -> int:
        most, self.most = self.most, self.live
        return most


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


class _Scale:
    """held: since the beginning, before and after the action that ran last; transient: its peak above the larger of both."""

    def __init__(self, meter: Any) -> None:
        self.meter, self.base = meter, meter.held()
        self.meter.peak()
        self.before = self.held = 0

    def step(self) -> int:
        self.before, self.held = self.held, self.meter.held() - self.base
        self.transient = max(0, self.meter.peak() - self.base - max(self.before, self.held))
        return self.transient


def most(these: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of several `mem` of a stage the most in each place: microbatches with experts differ, and the fullest card is the one that has to hold them."""
    return {name: most([one[name] for one in these]) if isinstance(value, dict) else max(one[name] for one in these)
            for name, value in these[0].items()}


def weigh(actions: Actions, device: torch.device) -> dict[str, Any]:
    """→ `mem` of a profile's stage: weights, grads; act_bytes, all that is kept of a microbatch from F to B or I; wgrad_pending_bytes, all that
    is kept of it from I to W without the gradient of its input, which is a message; transient_bytes by kind: each the most that any microbatch
    of the actions takes. Run the actions once before."""
    gc.collect()
    actions.received = True
    with (_Allocator if device.type == "cuda" else _Storages)(device, actions.tensors()) as meter:
        out = most([_weigh(actions, meter) for _ in actions.inputs])
    actions.received = False
    return {"weights": _bytes(actions.stage.parameters()), "grads": _bytes(actions.gradients()), **out}


def _weigh(actions: Actions, meter: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"transient_bytes": {}}
    scale = _Scale(meter)
    kept = actions.forward()
    out["transient_bytes"]["F"] = scale.step()
    out["act_bytes"] = scale.held
    actions.backward(kept)
    out["transient_bytes"]["B"] = scale.step()
    if actions.splits:
        scale = _Scale(meter)
        kept = actions.forward()
        scale.step()
        pending = actions.backward_input(kept)
        out["transient_bytes"]["I"] = scale.step()
        out["wgrad_pending_bytes"] = scale.held - _bytes(actions.input_gradient_of(pending))
        actions.backward_weight(pending)
        out["transient_bytes"]["W"] = scale.step()
    return out

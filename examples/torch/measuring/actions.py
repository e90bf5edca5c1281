# SPDX-License-Identifier: Apache-2.0
"""One microbatch's F, B, I and W of a stage, with nothing around them: what profiles time and weigh. Executed as by what runs the schedule:

    Actions    torch.distributed.pipelining (stage.py: forward_one_chunk with the loss, backward_one_chunk, backward_weight_one_chunk)
    Deferred   dualpipe.py, whose I leaves the weight gradients of linear layers to W (deferred.py)
"""
from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight

from pipeline import model


# That differ, by turns, and from those of other processes, as in a run: experts get other numbers of rows each time. With one for all, and experts
# spread over replicas, both members of a pair had as many rows for each other, and waited less than in a run (examples/megatron/actions.py).
MICROBATCHES = 4


class Actions:
    """stage: a model.Stage; starts, ends: is it the model's first, last? Gradients of weights are there from the beginning and added to.
    received: set it while memory is measured: messages are then made anew, where the runtime has no buffers for all of them up front."""
    received = False

    def __init__(self, stage: model.Stage, shape: model.Shape, starts: bool, ends: bool, device: torch.device, dtype: torch.dtype) -> None:
        self.stage, self.starts, self.ends = stage, starts, ends
        rank, self.turn = dist.get_rank() if dist.is_initialized() else 0, 0
        batches = [model.batch(shape, 1, rank * MICROBATCHES + turn, device, dtype) for turn in range(MICROBATCHES if shape.experts else 1)]
        self.targets = [target if ends else None for _, target in batches]
        size, draw = (shape.micro_batch_size, shape.sequence_length, shape.hidden), torch.Generator(device).manual_seed(rank)
        self.inputs = [x if starts else torch.randn(size, device=device, dtype=dtype, generator=draw) for x, _ in batches]
        # like what comes from the next stage; a card that multiplies equal numbers draws less power, and runs faster, than in a run
        self.gradient = None if ends else torch.randn(size, device=device, dtype=dtype) * 0.01
        for weight in stage.parameters():
            weight.grad = torch.zeros_like(weight)

    @property
    def splits(self) -> bool:
        """Does it have I and W? The first stage's input needs no gradient: PyTorch's I does nothing there, and its W is B."""
        return not self.starts

    def gradients(self) -> list[torch.Tensor]:
        """Of the weights."""
        return [weight.grad for weight in self.stage.parameters()]

    def tensors(self) -> list[torch.Tensor]:
        """What is there before and after every action."""
        return [t for t in (*self.inputs, *self.targets, self.gradient) if t is not None] + list(self.stage.parameters()) + self.gradients()

    def end_step(self) -> None:
        """What a step does once beside its actions: PyTorch's runtime divides gradients by the number of microbatches."""
        for gradient in self.gradients():
            gradient.div_(8)

    def forward(self) -> list:
        """F → what the runtime keeps for the backward: [input, output, loss or None]"""
        self.turn = (self.turn + 1) % len(self.inputs)
        given, target = self.inputs[self.turn], self.targets[self.turn]
        x = given if self.starts else self._message(given).detach().requires_grad_()
        y = self.stage(x)
        return [x, y, model.loss_of(y, target) if self.ends else None]

    def backward(self, kept: list) -> torch.Tensor | None:
        """B. Empties `kept`, of which the runtime keeps nothing either. → gradient of the input or None"""
        x, y, loss = kept
        kept.clear()
        if self.ends:
            grads = stage_backward(loss, None, [x])
        else:
            grads = stage_backward((y,), (self.gradient,), [x])
        self._let_go(y)
        return grads[0]

    def backward_input(self, kept: list) -> list:
        """I. Empties `kept`. → what the runtime keeps for W"""
        x, y, loss = kept
        kept.clear()
        roots, grads = ((loss,), None) if self.ends else ((y,), (self.gradient,))
        _, groups = stage_backward_input(roots, grads, [x], self.stage.parameters())
        self._let_go(y)
        return [x, groups, roots]

    def backward_weight(self, pending: list) -> None:
        """W. Empties `pending`."""
        _, groups, _ = pending
        pending.clear()
        stage_backward_weight(self.stage.parameters(), groups)

    def input_gradient_of(self, pending: list) -> list[torch.Tensor]:
        """What `pending` holds and W does not need."""
        return [pending[0].grad]

    def _message(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def _let_go(self, y: torch.Tensor) -> None:
        if self.ends and not self.starts and not y._is_view():
            y.detach_()


class Deferred(Actions):
    def __init__(self, stage: model.Stage, shape: model.Shape, starts: bool, ends: bool, device: torch.device, dtype: torch.dtype) -> None:
        from pipeline import deferred
        self.deferred = deferred
        deferred.defer(stage)
        super().__init__(stage, shape, starts, ends, device, dtype)
        if ends:
            self.gradient = torch.ones((), device=device)

    @property
    def splits(self) -> bool:
        return True

    def forward(self) -> list:
        """The output is not kept: once it was sent, the graph's edge is what is left of it."""
        x, y, loss = super().forward()
        return [x, loss if self.ends else torch.autograd.graph.get_gradient_edge(y)]

    def backward(self, kept: list) -> torch.Tensor | None:
        x, root = kept
        kept.clear()
        torch.autograd.backward(root, self._message(self.gradient))
        return x.grad

    def backward_input(self, kept: list) -> list:
        x, root = kept
        kept.clear()
        with self.deferred.deferring() as waiting:
            torch.autograd.backward(root, self._message(self.gradient))
        return [x.grad, waiting]

    def backward_weight(self, pending: list) -> None:
        _, waiting = pending
        pending.clear()
        self.deferred.run(waiting)

    def _message(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if self.received else tensor

    def input_gradient_of(self, pending: list) -> list[torch.Tensor]:
        return [] if self.starts else [pending[0]]

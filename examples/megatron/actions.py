# SPDX-License-Identifier: Apache-2.0
"""One microbatch's F and B of a stage of Megatron's, by its own forward_step and backward_step, with nothing around them: what
examples/torch/measuring times and weighs. After shim.load alone."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import schedules
from megatron.core.utils import get_attr_wrapped_model

from pipeline import model
from steps import forward_step

if TYPE_CHECKING:
    from typing import Any
    from pipeline.model import Shape


# That differ, by turns, and from those of other replicas, as in a run: experts get other numbers of rows each time. Where they are spread over
# replicas that all had the same tokens, F and B took 10 to 15 % less time on H200s than with tokens of their own.
MICROBATCHES = 4


class StageActions:
    """stage: wrapped as chunks.wrapped does. received: see measuring.actions.Actions. Megatron has no I and W."""
    received, splits = False, False

    def __init__(self, stage: Any, shape: Shape, starts: bool, ends: bool, device: torch.device, dtype: torch.dtype) -> None:
        self.stage, self.starts, self.ends = stage, starts, ends
        self.config = stage.config
        self.turn, replica = 0, parallel_state.get_data_parallel_rank()
        self.tokens = [model.batch(shape, 1, replica * MICROBATCHES + turn, device=device) for turn in range(MICROBATCHES)]
        tensor = self.config.tensor_model_parallel_size if self.config.sequence_parallel else 1
        size = (shape.sequence_length // tensor, shape.micro_batch_size, shape.hidden)
        draw = torch.Generator(device).manual_seed(replica)
        self.inputs = [None if starts else torch.randn(size, device=device, dtype=dtype, generator=draw) for _ in range(MICROBATCHES)]
        self.gradient = None if ends else torch.randn(size, device=device, dtype=dtype) * 0.01
        self.replicas = parallel_state.get_data_parallel_world_size()

    def gradients(self) -> list[torch.Tensor]:
        return [weight.main_grad for weight in self.stage.parameters()]

    def tensors(self) -> list[torch.Tensor]:
        """What is there before and after every action."""
        given = [*(t for pair in self.tokens for t in pair), *self.inputs, self.gradient]
        return [t for t in given if t is not None] + list(self.stage.parameters()) + self.gradients()

    def forward(self) -> list:
        """→ [input, output], which the schedule keeps for the backward. The output's data is let go as once it was sent."""
        self.turn = (self.turn + 1) % MICROBATCHES
        given = None if self.starts else self._message(self.inputs[self.turn]).detach().requires_grad_()
        out, _ = schedules.forward_step(forward_step, iter([self.tokens[self.turn]]), self.stage, 1, given, [], self.config, 1, current_microbatch=0,
                                        vp_stage=get_attr_wrapped_model(self.stage, "vp_stage"),
                                        is_last_stage=self.ends)
        if not self.ends:
            schedules.deallocate_output_tensor(out, self.config.deallocate_pipeline_outputs)
        return [given, out]

    def backward(self, kept: list) -> torch.Tensor | None:
        """Empties `kept`. → gradient of the input or None"""
        given, out = kept
        kept.clear()
        return schedules.backward_step(given, out, None if self.gradient is None else self._message(self.gradient), self.config)

    def end_step(self) -> None:
        """Gradients are zeroed, and, with one replica, looked through for what is no number."""
        self.stage.zero_grad_buffer()
        if self.replicas == 1:
            self.stage.finish_grad_sync()

    def _message(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if self.received else tensor

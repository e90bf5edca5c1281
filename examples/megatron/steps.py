# SPDX-License-Identifier: Apache-2.0
"""Steps of a job with Megatron's own schedules (megatron.core.pipeline_parallel.get_forward_backward_func), when their actions ran, and whether
their gradients are those of the model in one piece. After shim.load alone."""
from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel import get_forward_backward_func, schedules
from megatron.core.utils import get_attr_wrapped_model

import chunks
import compiled
from pipeline import gradients, metrics, model
from pipeline.program import Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any
    from job import Job
    from pipeline.timeline import Timeline


def forward_step(data: Iterator, stage: torch.nn.Module) -> tuple:
    """What Megatron's schedules call for a microbatch of a stage."""
    tokens, labels = next(data)
    positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    return stage(tokens, positions, None, labels=labels), loss_of


def loss_of(output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    loss = output.float().mean()
    return loss, loss.detach().clone()


class Steps:
    """Collective: all processes of the job do the same."""

    def __init__(self, job: Job, dtype: torch.dtype, device: torch.device, timeline: Timeline, engine: bool, rate: float) -> None:
        self.job, self.dtype, self.device, self.timeline = job, dtype, device, timeline
        self.config, self.chunks = chunks.build(job, dtype, device, engine)
        compiled.experts(self.config, dtype, device)
        self.optimizer = chunks.optimizer_of(job, self.config, self.chunks, rate)
        self.tokens = 0                   # bytes of a step's
        self.peaks = [0, 0]               # most bytes allocated, in the pipeline and in the update
        self.replica, self.replicas = parallel_state.get_data_parallel_rank(), job.plan.data

    def batch(self, step: int, replica: int) -> tuple[torch.Tensor, torch.Tensor]:
        return model.batch(self.job.shape, self.job.plan.microbatches, seed=step * self.replicas + replica, device=self.device)

    def microbatches(self, step: int, replica: int) -> list[tuple]:
        return list(zip(*(part.split(self.job.shape.micro_batch_size) for part in self.batch(step, replica))))

    def settle(self) -> float:
        """→ seconds now, the card having done all it was given"""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def forward_backward(self, step: int, record: bool = False, whole: bool = False) -> tuple[float, float]:
        """→ (loss, the mean over all microbatches of all replicas, on every process; ms of the pipeline's part of the step: zeroed gradients,
        forwards and backwards, reduced gradients). whole: every replica gets all gradients, not its share of them."""
        data = self.microbatches(step, self.replica)
        self.tokens = 2 * len(data) * data[0][0].nbytes
        run = get_forward_backward_func()
        begin = self.settle()
        for chunk in self.chunks:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        with self.recorded() if record else contextlib.nullcontext():
            losses = run(forward_step_func=forward_step, data_iterator=[iter(data) for _ in self.chunks], model=self.chunks,
                         num_microbatches=len(data), seq_length=self.job.shape.sequence_length, micro_batch_size=self.job.shape.micro_batch_size,
                         force_all_reduce=whole)
        took = self.settle() - begin
        self.peak(0)
        total = torch.zeros(1, dtype=torch.float64, device=self.device)
        for loss in losses:
            total += loss
        dist.all_reduce(total)
        return total.item() / (len(data) * self.replicas * self.job.plan.tensor), took * 1000

    def update(self) -> tuple[float, float]:
        """→ (norm of the gradient, ms)"""
        begin = self.settle()
        done, norm, _ = self.optimizer.step()
        if not done:
            raise Mismatch("Megatron's optimizer found gradients that are no numbers: weights are as before this step")
        took = self.settle() - begin
        self.peak(1)
        return norm or 0.0, took * 1000

    def peak(self, part: int) -> None:
        if self.device.type == "cuda":
            self.peaks[part] = max(self.peaks[part], torch.cuda.max_memory_allocated())
            torch.cuda.reset_peak_memory_stats()

    def optimizer_bytes(self) -> int:
        """Of what the optimizer keeps beside weights and gradients: moments, and weights in fp32."""
        ours = {t.untyped_storage().data_ptr() for chunk in self.chunks for w in chunk.parameters() for t in (w, w.main_grad)}
        each = getattr(self.optimizer, "chained_optimizers", [self.optimizer])
        tensors = [t for one in each for state in one.optimizer.state.values() for t in state.values() if isinstance(t, torch.Tensor)]
        tensors += [w for one in each for group in one.optimizer.param_groups for w in group["params"]]
        kept = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        return sum(size for at, size in kept.items() if at not in ours)

    def memory(self) -> dict[str, Any]:
        """Of this rank, in bytes: peaks of what PyTorch allocated, the most that it reserved, and what is in use on the card, others' included."""
        out: dict[str, Any] = {"input_bytes": self.tokens, "optimizer_bytes": self.optimizer_bytes()}
        if self.device.type == "cuda":
            free, whole = torch.cuda.mem_get_info()
            out.update(peak_bytes=self.peaks[0], update_peak_bytes=self.peaks[1], reserved_bytes=torch.cuda.max_memory_reserved(),
                       used_bytes=whole - free)
        return out

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Marks each action of the step in the timeline, around Megatron's forward_step and backward_step."""
        forward, backward = schedules.forward_step, schedules.backward_step

        def named_forward(function: Any, data: Any, stage: Any, *words: Any, **names: Any) -> Any:
            number = get_attr_wrapped_model(stage, "number")
            with self.timeline.action(f"{number}F{names['current_microbatch']}"):
                out = forward(function, data, stage, *words, **names)
            _first(out[0]).ran = number, names["current_microbatch"]
            return out

        def named_backward(given: Any, output: Any, *words: Any) -> Any:
            number, microbatch = _first(output).ran
            with self.timeline.action(f"{number}B{microbatch}"):
                return backward(given, output, *words)

        dist.barrier()
        self.timeline.start()
        schedules.forward_step, schedules.backward_step = named_forward, named_backward
        try:
            yield
        finally:
            schedules.forward_step, schedules.backward_step = forward, backward
            self.timeline.stop()

    # ------------------------------------------------------------------------------------------------------------------ the check

    def check(self, step: int, loss: float) -> str:
        """Loss and gradients of that step, run with `whole`, against plain autograd on the model in one piece, on every process."""
        if self.job.plan.tensor > 1:
            raise Mismatch("--check: a rank has parts of weights with tensor parallelism: expected parallelism.tensor 1")
        names = [self.stage(chunk).key(name) for chunk in self.chunks for name, _ in self.stage(chunk).named_parameters()]
        found = [weight.main_grad for chunk in self.chunks for _, weight in self.stage(chunk).named_parameters()]
        expected, wanted = self.reference(step)
        off = {name: ((got.double() - wanted[name].double()).norm() / wanted[name].double().norm().clamp_min(1e-30)).item()
               for name, got in zip(names, found)}
        worst, tolerance = max(off, key=lambda name: off[name] if off[name] == off[name] else float("inf")), gradients.TOLERANCE[self.dtype]
        everywhere = metrics.gathered([names, off[worst], worst], self.device)
        missing = sorted(set(wanted) - {name for these, _, _ in everywhere for name in these})
        if missing:
            raise Mismatch(f"--check: no process has {missing[0]}, nor {len(missing) - 1} other weights: expected each weight of the model")
        _, most, at = max(everywhere, key=lambda one: one[1] if one[1] == one[1] else float("inf"))
        if not most <= tolerance or not abs(loss - expected) <= tolerance * abs(expected):
            raise Mismatch(f"--check: loss {loss:.12g}, expected {expected:.12g}; the worst gradient is that of {at}, off by {most:.2g} of it; "
                           f"expected at most {tolerance:g}")
        return (f"checked: loss {loss:.12g} and {len(wanted)} gradients are the unpipelined model's (loss {expected:.12g}; worst: {at}, off by "
                f"{most:.2g})")

    @staticmethod
    def stage(chunk: Any) -> Any:
        """The chunk without what wraps it."""
        while hasattr(chunk, "module"):
            chunk = chunk.module
        return chunk

    def reference(self, step: int) -> tuple[float, dict[str, torch.Tensor]]:
        plan = dataclasses.replace(self.job.plan, pipeline=1, virtual=1, expert=1, layers_per_stage=(self.job.shape.layers,))
        kept = dict(vars(parallel_state))
        parallel_state.destroy_model_parallel()
        whole_job = dataclasses.replace(self.job, plan=plan)
        chunks.start(whole_job)
        whole = chunks.Chunk(whole_job, chunks.config_of(whole_job, self.dtype), 0, self.device).to(self.dtype)
        data = [pair for replica in range(self.replicas) for pair in self.microbatches(step, replica)]
        total = 0.0
        for pair in data:
            loss = loss_of(forward_step(iter([pair]), whole)[0])[0] / len(data)
            loss.backward()
            total += loss.item()
        wanted = {whole.key(name): weight.grad for name, weight in whole.named_parameters()}
        vars(parallel_state).update(kept)
        return total, wanted


def _first(tensor: Any) -> torch.Tensor:
    return tensor[0] if isinstance(tensor, list) else tensor

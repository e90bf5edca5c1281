# SPDX-License-Identifier: Apache-2.0
"""A process's stages, what runs them, and the optimizer: one training step after the other, as a job says (job.py)."""
from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from . import autocast, deferred, dualpipe, faults, gradients, grid as processes, job as jobs, metrics, torch_runtime
from .program import Mismatch
from .timeline import Timeline
from .update import Update

if TYPE_CHECKING:
    from collections.abc import Callable
    import torch.nn as nn

    from .job import Job
    from .watchdog import Watchdog


class Trainer:
    """Collective: all processes make theirs at the same time, `stages` first, then `prepare`."""

    def __init__(self, options: Any, job: Job, device: torch.device, watchdog: Watchdog) -> None:
        self.options, self.job, self.device, self.watchdog = options, job, device, watchdog
        self.grid = processes.Grid(job.plan.pipeline, job.plan.expert)
        self.steps = 0
        self.pipeline_ms = 0.0

    def stages(self) -> None:
        """Builds this process's, by the user's code."""
        layers = list(self.job.plan.layers_per_stage)
        self.modules = {stage: self._build(layers, self.job.program.slice_of(stage)) for stage in self.job.program.stages_of(self.grid.rank)}
        self.input = self.batch(1, self.grid.replica, 1)[0]

    def _build(self, layers: list[int], stage: int, alone: bool = False) -> nn.Module:
        job = self.job
        made = job.model.build_stage(job.shape, layers, stage, None if alone else self.grid.expert_group, self.device, job.dtype)
        if not any(weight.requires_grad for weight in made.parameters()) and not alone:
            raise Mismatch(f"{job.model.source}: stage {stage} has no weight to train: expected one at least on each stage")
        if job.plan.recompute and not alone and job.model.recompute:
            job.model.recompute(made, job.plan.recompute)
        hands_on = job.dtype if stage < len(layers) - 1 else None
        if job.autocast or job.model.source != "pipeline/model.py":
            autocast.under(made, job.autocast, self.device, hands_on)
        return made

    def prepare(self) -> None:
        job = self.job
        self.gradients = gradients.Gradients(self.modules, self.grid, job.program.directions, job.program.slice_of)
        self._refuse_shared()
        for module in self.modules.values():
            gradients.widen(module, job.gradients)
        factor, ms = job.stragglers.get(dist.get_rank(), (1, 0))
        faulty = bool(job.stragglers) or bool(job.fault[0])
        self.timeline: Any = faults.FaultyTimeline(self.device, self.watchdog, factor, ms) if faulty else Timeline(self.device, self.watchdog)
        self.runner, self.share, self.reduce, groups = self._runner()
        self.update = Update(self.gradients.named(), groups, jobs.OPTIMIZERS[job.optimizer], job.sharded, lr=self.options.lr)

    def _runner(self) -> tuple[Any, Callable, Callable, dict]:
        """→ what runs a step, what of a batch is this process's, what sums gradients over copies and replicas, and the groups that do"""
        job = self.job
        message = torch.empty(*job.model.message(job.shape), dtype=job.dtype, device="meta")
        given = job.program, self.modules, self.grid, job.shape, self.device
        common = {"timeline": self.timeline, "watchdog": self.watchdog, "message": message, "loss": self._loss}
        if job.program.directions == 2 or self.options.runtime == "ours":
            ours = dualpipe.Executor(*given, **common)
            return ours, ours.share, ours.reduce, ours.copies
        runner = torch_runtime.Runner(*given, runtime=self.options.runtime, pairs=self.options.pairs, queues=self.options.queues, own=job.own,
                                      input=self.input, **common)
        replicas = {"other": self.grid.data_group if self.grid.data > 1 else None,
                    "expert": self.grid.expert_data_group if self.grid.data > self.grid.expert else None}
        return runner, lambda input, target: (input, target), self.gradients.reduce, replicas

    def _loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=self.job.autocast, enabled=self.job.autocast is not None):
            return self.job.model.loss_of(output, target)

    def _refuse_shared(self) -> None:
        """A weight that two stages have would be trained as two, whether they are one tensor or two of one name."""
        source, mine, twice = self.job.model.source, [], None
        slices: dict[int, tuple[int, str]] = {}
        for stage, module in self.modules.items():
            slice = self.job.program.slice_of(stage)
            for name, weight in module.named_parameters():
                if weight.requires_grad:
                    key = gradients.key_of(module, name)
                    mine.append([slice, key])
                    other, other_key = slices.setdefault(id(weight), (slice, key))
                    if other != slice:
                        twice = f"{other_key} of stage {other} is also {key} of stage {slice}: expected each weight on one stage"
        owner: dict[str, int] = {}
        for pairs, of_process in metrics.gathered([mine, twice], self.device):
            if of_process:
                raise Mismatch(f"{source}: {of_process}; gradients of a shared one are not summed here")
            for slice, key in pairs:
                if owner.setdefault(key, slice) != slice:
                    raise Mismatch(f"{source}: stages {owner[key]} and {slice} both have the weight {key}: expected each weight on one stage, "
                                   "by a name of its own (key(name) of a stage); gradients of a shared one are not summed here")

    def batch(self, step: int, replica: int, microbatches: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        made = self.job.model.batch(self.job.shape, microbatches or self.job.plan.microbatches, step * self.grid.data + replica, self.device,
                                    self.job.dtype)
        rows = (microbatches or self.job.plan.microbatches) * self.job.shape.micro_batch_size
        if len(made) != 2 or any(len(tensor) != rows for tensor in made):
            raise Mismatch(f"{self.job.model.source}: batch gave {[tuple(t.shape) for t in made]}: expected (input, target), each of {rows} rows")
        # A tensor of one row may keep the strides of what it was cut out of, which PyTorch up to 2.11 holds against those of other microbatches.
        input, target = (tensor.clone(memory_format=torch.contiguous_format) for tensor in made)
        return input, target

    # A step

    def forward_backward(self, step: int, record: bool = False) -> float:
        """→ loss of the step, the mean over all microbatches of all replicas, on every process. Gradients are those of that mean."""
        self.gradients.zero()
        batch = self.share(*self.batch(step, self.grid.replica))
        self._fail(step)
        self.runner.record(record)
        begin = time.perf_counter()
        losses = self.runner.step(*batch)
        self.watchdog.at("the end of the pipeline")
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.pipeline_ms = (time.perf_counter() - begin) * 1000
        self.watchdog.at("all-reduce of gradients")
        self.reduce()
        self.watchdog.at("all-reduce of the loss")
        total = torch.zeros(1, dtype=torch.float64, device=self.device)
        for loss in losses:
            total += loss.detach()
        dist.all_reduce(total)
        return total.item() / (self.job.plan.microbatches * self.grid.data)

    def finite_norm(self, step: int, loss: float) -> float:
        """→ the norm of the gradient; Mismatch on every process, before anything is updated, if it or the loss is no number."""
        if loss != loss or abs(loss) == float("inf"):
            raise Mismatch(f"step {step}: the loss is {loss}: expected a number; weights are as before this step")
        self.watchdog.at("the norm of the gradient")
        norm = self.gradients.norm(self.device)
        if norm != norm or norm == float("inf"):
            raise Mismatch(f"step {step}: the norm of the gradient is {norm}, and the loss {loss:.6g}: expected numbers; weights are as before this step")
        return norm

    def optimize(self, norm: float) -> None:
        if self.options.clip:
            self.gradients.clip(norm, self.options.clip)
        self.watchdog.at("the optimizer")
        self.update.step()
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _fail(self, step: int) -> None:
        kind, process, at = self.job.fault
        if at != step or process != dist.get_rank():
            return
        if kind == "nan":
            faults.spoil(self.modules)
        elif kind:
            self.timeline.fail(kind, len(self.runner.names) // 2)

    # What is said of it

    def check(self, step: int, loss: float) -> str:
        """Loss and gradients of a step against those of the model in one piece, on every process."""
        batches = [self.batch(step, replica) for replica in range(self.grid.data)]
        job = self.job
        if job.model.reference:
            expected, wanted = job.model.reference(job.shape, batches, self.device, job.dtype)
        else:
            whole = self._build([job.shape.layers], 0, alone=True)
            expected, wanted = gradients.reference(whole, self._loss, job.shape.micro_batch_size, batches)
        found = gradients.differences(self.gradients, wanted)
        tolerance = gradients.TOLERANCE[job.product]
        worst = max(found, key=lambda name: found[name] if found[name] == found[name] else float("inf"))
        everywhere = metrics.gathered([sorted(found), found[worst], worst], self.device)
        missing = sorted(set(wanted) - {name for names, _, _ in everywhere for name in names})
        if missing:
            raise Mismatch(f"--check: no process has {missing[0]}, nor {len(missing) - 1} other weights: expected each weight of the model")
        close = abs(loss - expected) <= gradients.LOSS * tolerance * abs(expected)
        if not close or not all(value <= tolerance for _, value, _ in everywhere):
            raise Mismatch(f"--check: loss {loss:.12g}, expected {expected:.12g}; this process's worst gradient is that of {worst}, off by "
                           f"{found[worst]:.2g} of it; expected at most {tolerance:g}, and of the loss {gradients.LOSS * tolerance:g}")
        _, value, worst = max(everywhere, key=lambda one: one[1])
        return (f"checked: loss {loss:.12g} and {len(wanted)} gradients are the unpipelined model's (loss {expected:.12g}; worst: {worst}, "
                f"off by {value:.2g})")

    def state(self) -> str:
        """Bytes of weights, gradients and optimizer, after a step, beside the plan's. Collective."""
        ranks = metrics.gathered(self.update.bytes(), self.device)[::self.grid.data]
        return jobs.said_otherwise(self.job, ranks)

    def not_deferred(self) -> list[str]:
        """After a step: linear layers whose weight gradients do not wait for W, under our own runtime."""
        if isinstance(self.runner, torch_runtime.Runner) or not self.job.splits:
            return []
        return [name for module in self.modules.values() for name in deferred.not_deferred(module)]

    def record(self, step: int) -> list[list]:
        """Runs one further step, → its timeline on this process."""
        self.forward_backward(step, record=True)
        return self.runner.timeline()

    def run_fields(self) -> dict[str, Any]:
        """Of the entry of runs.json: what ran."""
        job, ours = self.job, not isinstance(self.runner, torch_runtime.Runner)
        runtime = "ours" if ours else self.runner.runtime
        schedule = torch_runtime.single_kind(job.program, job.plan.schedule) if runtime == "torch-single" else job.plan.schedule
        return {"name": schedule, "schedule": schedule,
                "program": job.program.text if runtime == "torch-multi" else None,       # the others run but one order of a schedule
                "directions": job.program.directions, "microbatches": job.program.microbatches, "virtual": job.program.slices // job.program.ranks,
                "runtime": runtime, "pairs": None if ours else self.options.pairs, "queues": None if ours else self.options.queues,
                "model": "moe" if getattr(job.shape, "experts", 0) else "dense", "data": job.plan.data,
                "sizes": sizes(job.shape), "profile": next(iter(job.profiles), None),
                "layers_per_stage": list(job.plan.layers_per_stage), "fallback": job.plan.fallback}


def sizes(shape: Any) -> dict[str, int]:
    """Fields of a Shape that are whole numbers from 0 on, which compare.py takes for sizes."""
    found = {field.name: getattr(shape, field.name) for field in dataclasses.fields(shape)}
    return {name: value for name, value in found.items() if isinstance(value, int) and not isinstance(value, bool) and value >= 0}


def agreed(device: torch.device, work: Callable, *args: Any) -> Any:
    """work(*args), or Mismatch on every process, in the words of the first, if it fails on any."""
    from . import failure
    result = error = None
    try:
        result = work(*args)
    except Exception as found:
        error = found
    errors = metrics.gathered(failure.in_words(error) if error else None, device)
    if any(errors):
        rank, said = next((rank, each) for rank, each in enumerate(errors) if each)
        raise Mismatch(failure.in_words(error) if error else f"rank {rank} says: {said}" if errors.count(None) else said) from error
    return result

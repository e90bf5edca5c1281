# SPDX-License-Identifier: Apache-2.0
"""Runs a program on torch.distributed.pipelining, PyTorch's own runtime (2.9 or newer).

    runner = Runner(program, {stage: module, …}, grid, shape, device)
    losses = runner.step(input, target)        # gradients are in the modules' .grad: of the mean over microbatches

GPipe and 1F1B run on PyTorch's classes for one stage a rank ("torch-single"), all others on its runtime for programs, which adds sends and
receives to our CSV ("torch-multi"). What only measurements need, such as clocks around actions, is in a subclass of PipelineStage: nothing of
PyTorch's schedules is replaced.
"""
from __future__ import annotations

import inspect
import os
import tempfile
import types
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules

from . import gradients, model
from .program import Action, Mismatch, Program, parse
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any
    import torch.nn as nn

    from .grid import Grid
    from .program import Cell
    from .watchdog import Watchdog

CLASSES = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved_1f1b": "Interleaved1F1B", "looped_bfs": "LoopedBFS",
           "interleaved_zero_bubble": "InterleavedZeroBubble", "zb_v": "ZBVZeroBubble", "dualpipev": "DualPipeV"}
SINGLE = ("gpipe", "1f1b")


def single_rows(kind: str, ranks: int, microbatches: int) -> tuple[tuple[Cell, ...], ...]:
    """The order in which PyTorch's class for one stage a rank runs gpipe or 1f1b. (Its own table of 1F1B, for pictures, is another.)"""
    rows = []
    for rank in range(ranks):
        ahead = microbatches if kind == "gpipe" else min(microbatches, ranks - rank)
        order = [("F", m) for m in range(ahead)]
        for m in range(microbatches):
            order.append(("B", m))
            if m + ahead < microbatches:
                order.append(("F", m + ahead))
        rows.append(tuple((Action(rank, kind, m),) for kind, m in order))
    return tuple(rows)


def single_kind(program: Program, preferred: str) -> str:
    """Which of gpipe and 1f1b a program that torch-single runs is: where it is both, the preferred."""
    kinds = [kind for kind in SINGLE if program.rows == single_rows(kind, program.ranks, program.microbatches)]
    return preferred if preferred in kinds or not kinds else kinds[0]


def own_program(schedule: str, ranks: int, microbatches: int, virtual: int = 2) -> Program:
    """The program of PyTorch's own class of that schedule, as pipeplan calls it."""
    if schedule not in CLASSES:
        raise Mismatch(f"PyTorch has no {schedule}: expected one of {', '.join(CLASSES)}, or its program, which "
                       f"`pipeplan simulate {schedule} --format csv` writes")
    if schedule in SINGLE:
        return Program(CLASSES[schedule], single_rows(schedule, ranks, microbatches), tuple(range(ranks)), microbatches)
    stage = types.SimpleNamespace(group_rank=0, group_size=ranks, num_stages=ranks * virtual, stage_index=0, submod=None)
    order = schedules.get_schedule_class(CLASSES[schedule])([stage] * virtual, microbatches).pipeline_order
    text = "".join(",".join(str(a) for a in order[rank] if a and str(a.computation_type) != "REDUCE_GRAD") + "\n" for rank in range(ranks))
    return parse(text, CLASSES[schedule])


class Stage(PipelineStage):
    """timeline: of the actions. queue(sender, receiver), world ranks → the process group of their messages."""

    def __init__(self, module: nn.Module, number: int, stages: int, device: torch.device, group: dist.ProcessGroup, input: torch.Tensor,
                 output: torch.Tensor, timeline: Timeline, queue: Callable | None = None) -> None:
        super().__init__(module, number, stages, device, input_args=input, output_args=output, group=group)
        self.timeline, self.queue = timeline, queue

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        with self.timeline.action(f"{self.stage_index}F{fwd_chunk_id}"):
            return super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)

    def backward_one_chunk(self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False) -> Any:
        with self.timeline.action(f"{self.stage_index}{'B' if full_backward else 'I'}{bwd_chunk_id}"):
            found = super().backward_one_chunk(bwd_chunk_id, loss=loss, full_backward=full_backward, last_backward=last_backward)
            gradients.gather(self.submod)
            return found

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> Any:
        with self.timeline.action(f"{self.stage_index}W{bwd_chunk_id}"):
            super().backward_weight_one_chunk(bwd_chunk_id, last_backward=last_backward)
            gradients.gather(self.submod)

    def scale_grads(self, grad_scale_factor: int) -> None:
        super().scale_grads(grad_scale_factor)
        for weight in self.submod.parameters():
            if getattr(weight, "main_grad", None) is not None:
                weight.main_grad.div_(grad_scale_factor)

    def _validate_fwd_outputs(self, outputs: Any) -> None:
        """Up to PyTorch 2.11: not of the last stage, whose output goes to the loss, whatever it is like."""
        if not self.is_last:
            super()._validate_fwd_outputs(outputs)

    def _get_init_p2p_neighbors_ops(self) -> list:
        """Up to PyTorch 2.11 a step's first messages; where two neighbouring stages share a rank it has some to itself, which gloo cannot send."""
        return [o for o in super()._get_init_p2p_neighbors_ops() if o.peer != dist.get_rank()]

    def get_fwd_recv_ops(self, *args: Any) -> list:
        return self._queued(super().get_fwd_recv_ops(*args))

    def get_fwd_send_ops(self, *args: Any) -> list:
        return self._queued(super().get_fwd_send_ops(*args))

    def get_bwd_recv_ops(self, *args: Any) -> list:
        return self._queued(super().get_bwd_recv_ops(*args))

    def get_bwd_send_ops(self, *args: Any) -> list:
        return self._queued(super().get_bwd_send_ops(*args))

    def _queued(self, operations: list) -> list:
        if self.queue is None:
            return operations
        me = dist.get_rank()
        return [dist.P2POp(o.op, o.tensor, o.peer, self.queue(me, o.peer) if o.op is dist.isend else self.queue(o.peer, me)) for o in operations]


class Runner:
    """modules: of this rank's stages, by number. Collective: every process makes its runner at the same time.

    runtime  "torch-single", "torch-multi", or None: single for programs of GPipe and 1F1B
    pairs    of torch-multi: "in_turn": F, then B, then the messages of both; "split": as two actions, each with its messages
    queues   "one" communicator for all messages of a rank; "per_peer": one for each two neighbours; "per_direction": for each way between two
    own      pipeplan's name of the schedule: run PyTorch's class of it instead of loading the program
    message  what goes from stage to stage is like it; None: [micro_batch_size, sequence_length, hidden], of the weights' type
    input    what the first stage takes of a microbatch is like it; None: tokens, or a message where the model has no vocabulary
    """

    def __init__(self, program: Program, modules: dict[int, nn.Module], grid: Grid, shape: model.Shape, device: torch.device, *,
                 runtime: str | None = None, pairs: str = "in_turn", queues: str = "one", own: str | None = None, loss: Callable = model.loss_of,
                 timeline: Timeline | None = None, watchdog: Watchdog | None = None, message: torch.Tensor | None = None,
                 input: torch.Tensor | None = None) -> None:
        if program.directions != 1:
            raise Mismatch(f"{program.source} has two directions, for which PyTorch's runtime has no second copy of a stage")
        self.program = program.split() if pairs == "split" else program
        self.modules, self.grid, self.shape, self.device = modules, grid, shape, device
        self.watchdog, self.timeline_of_step = watchdog, timeline or Timeline(device, watchdog)
        self.names = [str(action) for action in program.actions(grid.rank)]
        self.steps, self.recorded = 0, False
        self.runtime = runtime or ("torch-single" if self._fits_single() else "torch-multi")
        self.loss, self.message, self.input = loss, message, input
        queue = self._queues(queues)
        self.stages = [self._stage(number, queue) for number in program.stages_of(grid.rank)]
        self.schedule = self._schedule(own)
        keeps_outputs = "return_outputs" in inspect.signature(self.schedule.step).parameters
        self.options = {"return_outputs": False} if keeps_outputs else {}

    def step(self, input: torch.Tensor | None = None, target: torch.Tensor | None = None) -> list[torch.Tensor]:
        """One step's forwards and backwards, gradients added to what is there. input counts on the rank of the first stage, target on that of
        the last: all microbatches, stacked. → the losses of the microbatches on the rank of the last stage, elsewhere []"""
        self.steps += 1
        if self.watchdog:
            self.watchdog.step(self.steps, self.names)
        if self.recorded:
            dist.all_reduce(torch.zeros(1, device=self.device))
            self.timeline_of_step.start()
        losses: list[torch.Tensor] = []
        first, last = 0 in self.modules, self.program.stages - 1 in self.modules
        self.schedule.step(*((input,) if first else ()), target=target if last else None, losses=losses, **self.options)
        if self.recorded:
            self.timeline_of_step.stop()
        return losses

    def record(self, on: bool) -> None:
        """Whether the next steps leave a timeline. They begin with a barrier, so that ranks have a common 0."""
        self.recorded = on

    def timeline(self) -> list[list]:
        """→ [["0F0", start_ms, end_ms], …] of the last recorded step, on this rank"""
        return self.timeline_of_step.rows()

    def _fits_single(self) -> bool:
        return any(self.program.rows == single_rows(kind, self.program.ranks, self.program.microbatches) for kind in SINGLE)

    def _stage(self, number: int, queue: Callable | None) -> Stage:
        """Shapes are given, so that PyTorch has no need of a forward or of messages to find them out."""
        shape, message = self.shape, self.message
        if message is None:
            dtype = next((weight.dtype for module in self.modules.values() for weight in module.parameters()), torch.get_default_dtype())
            message = torch.empty(shape.micro_batch_size, shape.sequence_length, shape.hidden, dtype=dtype)
        message = torch.empty_like(message, device="meta")
        first = self.input
        if first is None:
            first = torch.empty(shape.micro_batch_size, shape.sequence_length, dtype=torch.long) if shape.vocab else message
        input = torch.empty_like(first, device="meta") if number == 0 else message.clone().requires_grad_()
        output = message.clone().requires_grad_()
        return Stage(self.modules[number], number, self.program.stages, self.device, self.grid.pipeline_group, input, output,
                     self.timeline_of_step, queue)

    def _schedule(self, own: str | None) -> Any:
        microbatches = self.program.microbatches
        if own:
            kind = schedules.get_schedule_class(CLASSES[own])
            return kind(self.stages[0] if own in SINGLE else self.stages, microbatches, loss_fn=self.loss)
        if self.runtime == "torch-single":
            if not self._fits_single():
                raise Mismatch(f"{self.program.source} is neither GPipe nor 1F1B of {self.program.ranks} ranks, which is all that torch-single runs")
            gpipe = self.program.rows == single_rows("gpipe", self.program.ranks, microbatches)
            return (schedules.ScheduleGPipe if gpipe else schedules.Schedule1F1B)(self.stages[0], microbatches, loss_fn=self.loss)
        self._check_losses()
        schedule = schedules._PipelineScheduleRuntime(self.stages, microbatches, loss_fn=self.loss)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "schedule.csv")
            with open(path, "w") as file:
                file.write(self.program.text)
            try:
                schedule._load_csv(path)
            except AssertionError as error:
                raise Mismatch(f"{self.program.source}: PyTorch cannot run this order, ranks wait for each other: {error}") from error
        return schedule

    def _check_losses(self) -> None:
        """PyTorch keeps losses in the order in which they come and finds a microbatch's by its number."""
        last = self.program.stages - 1
        order = [a.microbatch for a in self.program.actions(self.program.placement[last]) if a.stage == last and a.kind == "F"]
        if order != sorted(order):
            raise Mismatch(f"{self.program.source} runs the forwards of stage {last} in the order {order[:8]}…: expected 0, 1, 2, …, as PyTorch "
                           "wants it")

    def _queues(self, queues: str) -> Callable | None:
        """→ (sender, receiver) → process group, or None: all in the pipeline's. Every process makes all groups, in the same order."""
        if queues == "one":
            return None
        if queues == "per_direction" and self.runtime == "torch-single":
            raise Mismatch("queues per_direction: torch-single posts a send and a receive as one batch, which wants one communicator; expected "
                           "one or per_peer")
        ways = {(a, b) for a, b in zip(self.program.placement, self.program.placement[1:]) if a != b}
        ways |= {(b, a) for a, b in ways}
        groups = {}
        for replica in range(self.grid.data):
            for a, b in sorted(ways if queues == "per_direction" else {(min(way), max(way)) for way in ways}):
                ends = [rank * self.grid.data + replica for rank in (a, b)]
                group = dist.new_group(ends)
                if dist.get_rank() in ends:
                    self._connect(group, ends)
                    groups[tuple(ends)] = group
        return (lambda sender, receiver: groups[sender, receiver]) if queues == "per_direction" else (
            lambda sender, receiver: groups[min(sender, receiver), max(sender, receiver)])

    def _connect(self, group: dist.ProcessGroup, ends: Sequence[int]) -> None:
        """Communicators are made at their first use, which blocks the host until both ends are there: now, in order, and not in a step."""
        token = torch.zeros(1, device=self.device)
        dist.all_reduce(token, group=group)
        if dist.get_rank() == ends[0]:
            dist.send(token, ends[1], group=group)
        else:
            dist.recv(token, ends[0], group=group)

# SPDX-License-Identifier: Apache-2.0
"""What is to run: a schedule's program, as `pipeplan simulate … --format csv` writes it, and the plan, from `pipeplan plan --format json`.

A program has one row a rank, as PyTorch's pipelining has it (compute_only): cells are actions <stage><F|I|W|B><microbatch>, forward, backward
for the input, for the weights, or both at once; (a;b)OVERLAP_F_B is a pair; empty cells do not count.
"""
from __future__ import annotations

import dataclasses
import json
import re
import typing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Mismatch(ValueError):
    """What the user gave does not fit together; the message says what was expected."""


class Action(typing.NamedTuple):
    stage: int
    kind: str          # F, I, W or B
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


Cell = tuple[Action, ...]     # one action, or the two of a pair


@dataclasses.dataclass(frozen=True)
class Program:
    """rows[rank]: its cells in order, each a tuple of one action or of the two of a pair.

    directions 2 is bidirectional DualPipe: the upper half of the stages is the model's slices again, for microbatches that travel the other
    way; both directions number their own microbatches from 0. microbatches counts both.
    """
    source: str
    rows: tuple
    placement: tuple      # stage → rank
    microbatches: int
    directions: int = 1

    @property
    def ranks(self) -> int:
        return len(self.rows)

    @property
    def stages(self) -> int:
        return len(self.placement)

    @property
    def slices(self) -> int:
        """Of the model: stages s and s + slices of a bidirectional program have the same weights."""
        return self.stages // self.directions

    def slice_of(self, stage: int) -> int:
        return stage % self.slices

    def stages_of(self, rank: int) -> list[int]:
        return [stage for stage in range(self.stages) if self.placement[stage] == rank]

    def actions(self, rank: int) -> list[Action]:
        """In order, pairs taken apart."""
        return [action for cell in self.rows[rank] for action in cell]

    def split(self) -> Program:
        """The same program without pairs: an F, then a B."""
        return dataclasses.replace(self, rows=tuple(tuple((action,) for action in self.actions(rank)) for rank in range(self.ranks)))

    @property
    def text(self) -> str:
        return "".join(",".join(map(_cell_text, row)) + "\n" for row in self.rows)


def _cell_text(cell: Cell) -> str:
    return str(cell[0]) if len(cell) == 1 else f"({';'.join(map(str, cell))})OVERLAP_F_B"


def load(path: str, directions: int = 1) -> Program:
    """→ Program of that file."""
    try:
        with open(path, newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Mismatch(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path), directions)


def parse(text: str, source: str, directions: int = 1) -> Program:
    """→ Program of a CSV's text; source: what messages call it."""
    rows = [_row(line, f"{source}, line {number}") for number, line in enumerate(text.splitlines(), 1) if line.strip(", ")]
    if not rows:
        raise Mismatch(f"{source}: no row; expected one a rank")
    seen: dict[tuple[int, int], list[str]] = {}      # (stage, microbatch) → kinds, in order
    rank_of: dict[int, int] = {}
    for rank, row in enumerate(rows):
        for action in (action for cell in row for action in cell):
            if rank_of.setdefault(action.stage, rank) != rank:
                raise Mismatch(f"{source}: {action} is on rank {rank}, but stage {action.stage} on rank {rank_of[action.stage]}; "
                               "expected a stage on one rank")
            seen.setdefault((action.stage, action.microbatch), []).append(action.kind)
    stages, each = max(rank_of) + 1, max(microbatch for _, microbatch in seen) + 1
    for stage in range(stages):
        for microbatch in range(each):
            kinds = "".join(seen.get((stage, microbatch), []))
            if kinds not in ("FB", "FIW"):
                raise Mismatch(f"{source}: stage {stage} has {kinds or 'nothing'} for microbatch {microbatch}; "
                               f"expected F then B, or F, I, W, of {stages} stages and {each} microbatches")
    if stages % directions:
        raise Mismatch(f"{source}: {stages} stages; expected an even number, half for each direction")
    return Program(source, tuple(rows), tuple(rank_of[stage] for stage in range(stages)), each * directions, directions)


def _row(line: str, where: str) -> tuple[Cell, ...]:
    return tuple(_cell(text.strip(), f"{where}, cell {number}") for number, text in enumerate(line.split(","), 1) if text.strip())


def _cell(text: str, where: str) -> Cell:
    pair = re.fullmatch(r"\(([^;()]*);([^;()]*)\)OVERLAP_F_B", text)
    actions = [re.fullmatch(r"(\d+)([FIWB])(\d+)", part) for part in (pair.groups() if pair else [text])]
    if None in actions:
        raise Mismatch(f"{where}: \"{text[:60]}\" is no action; expected such as 0F0, 1I3, 1W3, 2B0 or (0F3;3B1)OVERLAP_F_B")
    return tuple(Action(int(action[1]), action[2], int(action[3])) for action in actions if action)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What running needs of a plan. placement[slice]: ranks that hold it, two where the schedule is bidirectional."""
    source: str
    schedule: str
    pipeline: int
    data: int
    expert: int
    virtual: int
    layers_per_stage: tuple
    placement: tuple
    microbatches: int
    micro_batch_size: int
    sequence_length: int
    global_batch_size: int
    recompute: tuple = ()
    sharding: str = "none"                          # what data parallelism shards
    state: dict = dataclasses.field(default_factory=dict)       # "training.optimizer", … → what the plan takes
    rank_bytes: tuple = ()                          # by rank: {"parameters", "gradients", "optimizer", "total"}
    fallback: str | None = None                     # the schedule to roll back to
    tensor: int = 1

    @property
    def directions(self) -> int:
        return 2 if self.schedule == "dualpipe" else 1

    @property
    def processes(self) -> int:
        return self.pipeline * self.data * self.tensor

    @property
    def simulate(self) -> str:
        """The command that writes this plan's program."""
        virtual = f" --virtual {self.virtual}" if self.virtual > 1 else ""
        return f"pipeplan simulate {self.schedule} --ranks {self.pipeline} --microbatches {self.microbatches}{virtual} --format csv"


def load_plan(path: str, ones: Sequence[str] = ("tensor", "context", "expert_tensor")) -> Plan:
    """ones: degrees that have to be 1."""
    try:
        with open(path) as file:
            plan = json.load(file)
        if plan["status"] != "planned":
            why = "; ".join(reason["message"] for reason in plan["reasons"])
            raise Mismatch(f"{path}: nothing to run, the plan was {plan['status']}: {why or 'see the plan'}")
        parallelism = plan["parallelism"]
        for name in ones:
            if parallelism[name] != 1:
                raise Mismatch(f"{path}: parallelism.{name} is {parallelism[name]}; expected 1, which is what runs here")
        piped = plan["schedule"] != "none"
        return Plan(str(path), plan["schedule"], parallelism["pipeline"], parallelism["data"], parallelism["expert"], parallelism["virtual"],
                    tuple(plan["layers_per_stage"] if piped else [plan["model"]["layers"]]),
                    tuple(map(tuple, plan["placement"] if piped else [[0]])),
                    plan["microbatches"], plan["micro_batch_size"], plan["training"]["sequence_length"], plan["global_batch_size"],
                    tuple(plan["recompute"] or ()), plan["sharding"] or "none", _state(plan),
                    tuple({name: rank[f"{name}_bytes"] for name in ("parameters", "gradients", "optimizer", "total")}
                          for rank in (plan["memory"] or {"ranks": []})["ranks"]),
                    ((plan["rollback"] or {}).get("fallback") or {}).get("schedule"),
                    parallelism["tensor"])
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Mismatch(f"{path}: cannot be read: {error}; expected what `pipeplan plan SPEC --format json` writes") from error
    except (KeyError, TypeError) as error:
        raise Mismatch(f"{path}: no plan: {error!r} is missing; expected what `pipeplan plan SPEC --format json` writes") from error


def _state(plan: dict) -> dict[str, typing.Any]:
    """Of the recipe, as the spec says it or the plan assumes it."""
    said = {each["field"]: each["value"] for each in (*plan["assumptions"], *plan["spec"]["fields"])}
    return {"training.optimizer": "adam", "training.moments": "fp32", "training.gradients": "fp32",
            **{field: value for field, value in said.items() if field.startswith("training.")}, "training.precision": plan["training"]["precision"]}


def check(plan: Plan, program: Program, processes: int) -> None:
    """The plan, the program and the number of processes fit each other, or Mismatch."""
    batch = plan.microbatches * plan.micro_batch_size * plan.data
    if plan.global_batch_size != batch:
        raise Mismatch(f"{plan.source}: global_batch_size is {plan.global_batch_size}: expected {batch}, its {plan.microbatches} microbatches × "
                       f"{plan.micro_batch_size} × {plan.data} replicas")
    if processes != plan.processes:
        raise Mismatch(f"{plan.source} is for {plan.processes} processes ({plan.pipeline} pipeline ranks × {plan.data} replicas): there are "
                       f"{processes}; expected --nproc-per-node × --nnodes = {plan.processes}")
    for what, has, expected in (("ranks", program.ranks, plan.pipeline), ("stages", program.slices, len(plan.layers_per_stage)),
                                ("microbatches", program.microbatches, plan.microbatches)):
        if has != expected:
            raise Mismatch(f"{program.source} has {has} {what}: expected {expected}, as {plan.source} says; `{plan.simulate}` writes such a program")
    for part, ranks in enumerate(plan.placement):
        placed = tuple(program.placement[part + direction * program.slices] for direction in range(program.directions))
        if placed != ranks:
            raise Mismatch(f"{program.source} has stage {part} on rank {_numbers(placed)}: expected {_numbers(ranks)}, as {plan.source} says; "
                           f"`{plan.simulate}` writes such a program")


def _numbers(ranks: Iterable[int]) -> str:
    return " and ".join(map(str, ranks))

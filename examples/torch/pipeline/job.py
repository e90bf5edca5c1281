# SPDX-License-Identifier: Apache-2.0
"""What is to run, read of the options and checked before anything does: the plan, its program, the model, sizes, faults. Mismatch says what is wrong."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import torch

from . import faults, program as programs, torch_runtime, user_model
from .program import Mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


@dataclasses.dataclass
class Job:
    plan: programs.Plan
    program: programs.Program
    own: str | None              # PyTorch's own class runs the schedule of this name; None: the program
    model: user_model.UserModel
    shape: Any
    dtype: torch.dtype           # of weights
    autocast: torch.dtype | None
    gradients: torch.dtype       # that they are summed in
    optimizer: str
    sharded: bool
    stragglers: dict             # process → factor, ms
    fault: tuple                 # kind, process, step
    profiles: dict               # name → profile, of --profile
    otherwise: tuple             # where the plan takes something else: (option of `pipeplan plan`, what it would be here, what the plan has)

    @property
    def product(self) -> torch.dtype:
        """In which products are taken."""
        return self.autocast or self.dtype

    @property
    def splits(self) -> bool:
        return any(action.kind == "W" for rank in range(self.program.ranks) for action in self.program.actions(rank))


def read(options: Any, processes: int, device: torch.device) -> Job:
    plan = programs.load_plan(options.plan)
    program, own = _program(options, plan)
    programs.check(plan, program, processes)
    if options.runs and options.steps <= options.warmup:
        raise Mismatch(f"--runs with {options.steps} steps, of which {options.warmup} are --warmup: expected more")
    model = user_model.load(options.module)
    dtype = DTYPES[options.dtype or ("bf16" if device.type == "cuda" and not options.autocast else "fp32")]
    if options.autocast and dtype != torch.float32:
        raise Mismatch(f"--autocast {options.autocast} --dtype {options.dtype}: expected weights of fp32 under autocast")
    gradients = torch.float32 if dtype == torch.bfloat16 and plan.state.get("training.gradients") != "bf16" else dtype
    optimizer = options.optimizer or plan.state.get("training.optimizer")
    if optimizer not in OPTIMIZERS:
        raise Mismatch(f"{plan.source} is for {optimizer}, which does not run here: expected --optimizer {', '.join(OPTIMIZERS)}")
    shape = _shape(options, plan, model)
    job = Job(plan, program, own, model, shape, dtype, DTYPES[options.autocast] if options.autocast else None, gradients,
              optimizer, plan.sharding != "none",
              faults.parse_stragglers(options.straggler, processes) if options.straggler else {},
              faults.parse_fault(options.fault, processes, options.steps) if options.fault else ("", 0, 0), _profiles(options.profile, shape), ())
    _check_recompute(job, options)
    return dataclasses.replace(job, otherwise=tuple(_otherwise(job)))


def _program(options: Any, plan: programs.Plan) -> tuple[programs.Program, str | None]:
    if options.schedule:
        return programs.load(options.schedule, plan.directions), None
    if plan.schedule in torch_runtime.CLASSES:
        own = None if options.runtime == "ours" else plan.schedule
        runtime = "torch-single" if own in torch_runtime.SINGLE else "torch-multi"
        if own and options.runtime not in (None, runtime):
            raise Mismatch(f"--runtime {options.runtime}: PyTorch's own class of {plan.schedule} is {runtime}; expected that, or --schedule FILE.csv, "
                           f"which `{plan.simulate}` writes")
        return torch_runtime.own_program(plan.schedule, plan.pipeline, plan.microbatches, max(2, plan.virtual)), own
    if plan.schedule == "none":
        return torch_runtime.own_program("1f1b", 1, plan.microbatches), None
    raise Mismatch(f"{plan.source}: PyTorch has no class for {plan.schedule}: expected --schedule FILE.csv, which `{plan.simulate}` writes")


def _shape(options: Any, plan: programs.Plan, model: user_model.UserModel) -> Any:
    """Sizes of the model: --model, the plan's sequence length and microbatch size, then --shape."""
    if not options.model and not options.shape and not options.module:
        raise Mismatch(f"{plan.source} has no sizes of the model: expected --model config.json, or --shape hidden=64,heads=4,…")
    shape = model.shape({"layers": sum(plan.layers_per_stage), **_config(options.model, model), "sequence_length": plan.sequence_length,
                         "micro_batch_size": plan.micro_batch_size, **options.shape})
    layers = sum(plan.layers_per_stage)
    if shape.micro_batch_size != plan.micro_batch_size:
        raise Mismatch(f"the model has micro_batch_size {shape.micro_batch_size}: expected {plan.micro_batch_size}, as {plan.source} says")
    if shape.layers != layers:
        raise Mismatch(f"the model has {shape.layers} layers: expected {layers}, as {plan.source} says "
                       f"(layers_per_stage {list(plan.layers_per_stage)})")
    heads, experts = getattr(shape, "heads", 1), getattr(shape, "experts", 0)
    if shape.hidden % heads:
        raise Mismatch(f"the model has hidden {shape.hidden} and {heads} heads: expected a multiple")
    if experts % plan.expert or (plan.expert > 1 and not experts):
        raise Mismatch(f"the model has {experts} experts: expected a multiple of {plan.expert}, as {plan.source} spreads them")
    return shape


def _config(path: str | None, model: user_model.UserModel) -> dict[str, int]:
    if not path:
        return {}
    if not model.sizes_of_config:
        raise Mismatch(f"--model {path}: {model.source} has no sizes_of_config, which would read it; expected that, or --shape alone")
    try:
        with open(path) as file:
            return model.sizes_of_config(json.load(file))
    except (ValueError, AttributeError, TypeError) as error:
        raise Mismatch(f"--model {path}: {error}") from error
    except OSError as error:
        raise Mismatch(f"--model {path}: cannot be read: {error.strerror}; expected a Hugging Face config.json") from error


def _profiles(path: str | None, shape: Any) -> dict[str, Any]:
    """{ name: profile }, which is of the same sizes as the run."""
    if not path:
        return {}
    try:
        with open(path) as file:
            profile = json.load(file)
    except (OSError, ValueError) as error:
        raise Mismatch(f"--profile {path}: cannot be read: {error}; expected what profile_stage.py writes") from error
    if not isinstance(profile, dict) or not isinstance(profile.get("stage"), list):
        raise Mismatch(f"--profile {path}: no stages; expected what profile_stage.py writes")
    at = profile.get("at")
    for name in ("sequence_length", "micro_batch_size"):
        if isinstance(at, dict) and name in at and at[name] != getattr(shape, name, at[name]):
            raise Mismatch(f"--profile {path}: at.{name} is {at[name]}: expected {getattr(shape, name)}, as the model has it")
    layers = [stage.get("layers") if isinstance(stage, dict) else None for stage in profile["stage"]]
    if all(isinstance(count, int) for count in layers) and sum(layers) != shape.layers:
        raise Mismatch(f"--profile {path}: its stages have {sum(layers)} layers: expected {shape.layers}, as the model has them")
    return {os.path.splitext(os.path.basename(path))[0]: profile}


def _check_recompute(job: Job, options: Any) -> None:
    """What the plan recomputes can be, by this model under this runtime."""
    what = set(job.plan.recompute)
    if job.model.recompute is None and what:
        raise Mismatch(f"{job.plan.source} recomputes {_list(what)}, and {job.model.source} has no recompute(module, what), which would do it: "
                       "expected that, or a plan with --recompute none")
    if options.module is None:
        what.discard("core_attention")            # its attention is fused, and keeps nothing of it in any case
    ours = options.runtime == "ours" or job.program.directions == 2
    if job.splits and not ours and what - {"full"}:
        raise Mismatch(f"{job.plan.source} recomputes {_list(what)}, and {job.plan.schedule} splits backwards: PyTorch's runtime reads in I and again "
                       "in W what a checkpoint of a part frees after its first use; expected a plan with --recompute none or full, a schedule "
                       "without I and W, or DualPipe or DualPipeV with --runtime ours")


def _list(names: set) -> str:
    return ", ".join(sorted(names))


def _otherwise(job: Job) -> list[tuple[str, str, str]]:
    """Where weights, gradients and optimizer are not as the plan takes them."""
    state, names = job.plan.state, {dtype: name for name, dtype in DTYPES.items()}
    found = []
    precision, gradients = names[job.dtype], names[job.gradients]
    if precision != state["training.precision"]:
        found.append(("--precision", precision, state["training.precision"]))
    elif gradients != state["training.gradients"]:
        found.append(("--gradients", gradients, state["training.gradients"]))
    if job.optimizer.removesuffix("w") != state["training.optimizer"].removesuffix("w"):
        found.append(("--optimizer", job.optimizer, state["training.optimizer"]))
    if job.optimizer == "sgd" and state["training.optimizer"] == "sgd":
        found.append(("--optimizer", "sgd without momentum", "sgd with momentum"))
    if state["training.moments"] != "fp32" and job.optimizer != "sgd":
        found.append(("--moments", "fp32", state["training.moments"]))
    if job.sharded and job.plan.data > 1 and state.get("training.reduction") != "all":
        found.append(("--reduction", "all", "scatter"))
    if job.plan.sharding in ("gradients", "parameters"):
        found.append(("--sharding", "optimizer", job.plan.sharding))
    return found


def in_mib(of_rank: dict[str, float]) -> str:
    return ", ".join(f"{name} {of_rank[name] / 2**20:.3f}" for name in ("parameters", "gradients", "optimizer"))


def said_otherwise(job: Job, ranks: Sequence[dict[str, float]]) -> str:
    """What weights, gradients and optimizer take on the fullest rank, and in the plan there."""
    rank = max(range(len(ranks)), key=lambda r: sum(ranks[r][name] for name in ("parameters", "gradients", "optimizer")))
    text = f"state of rank {rank}, MiB: {in_mib(ranks[rank])}"
    if not job.plan.rank_bytes:
        return text
    text += f"; in the plan: {in_mib(job.plan.rank_bytes[rank])}"
    for option, here, there in job.otherwise:
        text += f"; {option.lstrip('-')} is {here} here, and {there} there"
    return text

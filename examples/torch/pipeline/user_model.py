# SPDX-License-Identifier: Apache-2.0
"""A model of your own: a Python file that train_step.py --module trains. pipeline/model.py is the one that is there without, and an example.

It has three functions:

    build_stage(shape, layers_per_stage, stage, expert_group, device, dtype)
        → torch.nn.Module of stage number `stage`, of len(layers_per_stage) stages with so many layers each: with what stands before the first
          layer where stage is 0, with what stands behind the last one in the last. forward(x) → one tensor. Each process builds its own stages;
          a layer must not depend on how the model is cut, or --check has nothing to compare. expert_group: the processes that share a stage's
          experts, or None.
    batch(shape, microbatches, seed, device, dtype)
        → (input, target): of all microbatches, shape.micro_batch_size rows each, by one seed a step and replica.
    loss_of(output, target)
        → mean loss of one microbatch.

and may have more:

    Shape                       dataclass of whole numbers, what `shape` is, and what --shape sets. It has layers, hidden, sequence_length and
                                micro_batch_size at least. Default: that of pipeline/model.py.
    sizes_of_config(config)     → {field of Shape: number}, of a Hugging Face config.json, for --model
    message(shape)              → size of what goes from stage to stage; default (micro_batch_size, sequence_length, hidden)
    reference(shape, batches, device, dtype)
                                → (loss, {weight: gradient}), what --check holds a step against: of the mean over the microbatches of all batches.
                                Default: plain autograd on build_stage with one stage of all layers.
    recompute(module, what)     makes a stage compute again what the plan's `recompute` names: "full", "moe", "activation", "norm", …; raises
                                ValueError where it cannot
    flops_of_sequence(shape)    forward and backward, for the TFLOP/s of the log

and modules of stages may have

    key(name)                   → what the weight `name` of the stage is called in the whole model; default: the same. Weights of experts have
                                ".expert." in their names.

Weights that do not require a gradient stay as they are. Weights that several stages share are refused: nothing here sums their gradients.
"""
from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

from . import failure, model, options
from .program import Mismatch

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = {"build_stage": 6, "batch": 5, "loss_of": 2}      # and how many arguments each takes
FIELDS = ("layers", "hidden", "sequence_length", "micro_batch_size")


@dataclasses.dataclass(frozen=True)
class UserModel:
    source: str
    build_stage: Callable
    batch: Callable
    loss_of: Callable
    Shape: type
    sizes_of_config: Callable | None
    message: Callable
    reference: Callable | None
    recompute: Callable | None
    flops_of_sequence: Callable | None

    def shape(self, sizes: dict[str, int]) -> Any:
        """Of sizes by name, or Mismatch."""
        known, given = [field.name for field in dataclasses.fields(self.Shape)], {}
        for name, size in sizes.items():
            if name not in known and options.RENAMED.get(name) in known:
                options.warn(name, options.RENAMED[name])
                name = options.RENAMED[name]
            if name not in known:
                raise Mismatch(f'--shape: "{name}={size}": expected NAME=N, a whole number, NAME one of {", ".join(known)}, sizes of {self.source}')
            given[name] = size
        return self.Shape(**given)


def message_of(shape: Any) -> tuple[int, ...]:
    return shape.micro_batch_size, shape.sequence_length, shape.hidden


def load(path: str | None) -> UserModel:
    """→ what the file gives; None: pipeline/model.py"""
    module: Any = model if path is None else _run(path)
    source = path or "pipeline/model.py"
    for name, count in NEEDED.items():
        _check(source, name, getattr(module, name, None), count)
    shape = getattr(module, "Shape", model.Shape)
    lacking = [name for name in FIELDS if name not in {field.name for field in dataclasses.fields(shape)}] if dataclasses.is_dataclass(shape) else FIELDS
    if lacking:
        raise Mismatch(f"{source}: Shape has no {lacking[0]}: expected a dataclass with {', '.join(FIELDS)}")
    config = getattr(module, "sizes_of_config", model.sizes_of_config if shape is model.Shape else None)
    return UserModel(source, module.build_stage, module.batch, module.loss_of, shape, config, getattr(module, "message", message_of),
                     getattr(module, "reference", None), getattr(module, "recompute", None), getattr(module, "flops_of_sequence", None))


def _run(path: str) -> Any:
    if not os.path.isfile(path):
        raise Mismatch(f"--module {path}: no such file: expected a Python file with {', '.join(NEEDED)}")
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise Mismatch(f"--module {path}: no Python: expected a file whose name ends in .py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made                # dataclasses look their module up
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(made)
    except Exception as error:
        raise Mismatch(f"--module {path}: cannot be loaded: {failure.in_words(error)}") from error
    return made


def _check(source: str, name: str, found: Any, count: int) -> None:
    if not callable(found):
        raise Mismatch(f"{source} has no {name}: expected {', '.join(NEEDED)} (examples/torch/pipeline/user_model.py says what each takes)")
    try:
        inspect.signature(found).bind(*range(count))
    except TypeError:
        raise Mismatch(f"{source}: {name}{inspect.signature(found)} does not take {count} arguments: expected those that "
                       "examples/torch/pipeline/user_model.py says") from None

# SPDX-License-Identifier: Apache-2.0
"""What Megatron has to know of a plan: PLAN.json (`pipeplan plan --format json`, of a spec with framework megatron) → a Job. No Megatron here."""
from __future__ import annotations

import dataclasses
import json
import shlex
from typing import TYPE_CHECKING

from pipeline import model, program as programs
from pipeline.program import Mismatch

if TYPE_CHECKING:
    from typing import Any

# Of the flags that a plan writes beside the model's: those that are obeyed here. Any other is refused.
FLAGS = ("--pipeline-model-parallel-layout", "--use-distributed-optimizer", "--sequence-parallel", "--overlap-grad-reduce",
         "--overlap-param-gather", "--recompute-granularity", "--recompute-method", "--recompute-num-layers", "--recompute-modules",
         "--hidden-dropout", "--attention-dropout")
# Of the model, and what of it is built here: None, any value.
MODEL = {"layers": None, "hidden": None, "heads": None, "kv_heads": None, "head_dim": None, "vocab": None, "ffn": None, "gated": None,
         "experts": None, "experts_per_token": None, "expert_ffn": None, "tied_embeddings": None, "qkv_bias": None, "mlp_bias": None,
         "norm_bias": None, "qk_norm": ("none", "head"), "learned_positions": (0,), "norms_per_layer": (2,), "moe_every": (1,), "first_dense": (0,),
         "max_positions": None}


@dataclasses.dataclass(frozen=True)
class Shape(model.Shape):
    """As measuring knows it, and what else tells layers of Megatron apart."""
    kv_heads: int = 0
    head_dim: int = 0
    gated: bool = True


@dataclasses.dataclass(frozen=True)
class Job:
    """given: the model in the words of a spec; flags: of FLAGS, with their values."""
    plan: programs.Plan
    shape: Shape
    given: dict[str, Any]
    flags: dict[str, Any]
    precision: str
    group: int | None         # microbatches of a chunk's turn; None: as Megatron has it

    @property
    def stages(self) -> int:
        return len(self.plan.layers_per_stage)

    @property
    def schedule(self) -> str:
        """In pipeplan's words; one rank takes turns of F and B, as 1F1B does."""
        return "1f1b" if self.plan.schedule == "none" else self.plan.schedule

    def flops_of_sequence(self) -> int:
        """Forward and backward: 6 for each weight that a token meets, and causal attention's scores and sums, thrice."""
        g, s = self.shape, self.shape.sequence_length
        attention = g.hidden * g.head_dim * 2 * (g.heads + g.kv_heads)
        experts = g.experts_per_token if g.experts else 1
        layer = attention + g.hidden * g.ffn * (3 if g.gated else 2) * experts + g.hidden * g.experts
        return 6 * s * (g.layers * (layer + s * g.heads * g.head_dim) + g.hidden * g.vocab)


def load(path: str) -> Job:
    plan = programs.load_plan(path, ones=("context",))
    with open(path) as file:
        text = json.load(file)
    if text["framework"] != "megatron":
        raise Mismatch(f"{path} is a plan of framework {text['framework']}: expected megatron, as the spec says with \"framework\": \"megatron\"")
    if plan.schedule not in ("none", "1f1b", "interleaved_1f1b"):
        raise Mismatch(f"{path}: schedule {plan.schedule}: expected 1f1b, interleaved_1f1b, or no pipeline")
    if plan.state.get("training.dropout"):
        raise Mismatch(f"{path}: training.dropout is true: expected a plan without, which is what runs here")
    given = text["model"]["shape"]
    _check_model(path, given)
    flags = _flags(path, (text["framework_flags"] or []) + (text["layout_flags"] or []))
    heads, experts = given["heads"], given.get("experts") or 0
    shape = Shape(hidden=given["hidden"], heads=heads, ffn=given["expert_ffn" if experts else "ffn"], layers=given["layers"], vocab=given["vocab"],
                  experts=experts, experts_per_token=given.get("experts_per_token") or 0, sequence_length=plan.sequence_length,
                  micro_batch_size=plan.micro_batch_size, kv_heads=given.get("kv_heads") or heads,
                  head_dim=given.get("head_dim") or given["hidden"] // heads, gated=given.get("gated") is not False)
    return Job(plan, shape, given, flags, text["training"]["precision"], text.get("microbatch_group_size"))


def _check_model(path: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in MODEL and value not in (None, 0, False, "none"):
            raise Mismatch(f"{path}: model.shape.{name} is {json.dumps(value)}: expected a model without, such as Llama, Mixtral or Qwen3")
        if MODEL.get(name) and value not in MODEL[name]:
            raise Mismatch(f"{path}: model.shape.{name} is {json.dumps(value)}: expected {' or '.join(map(json.dumps, MODEL[name]))}")


def _flags(path: str, lines: list[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    for line in lines:
        key, *values = shlex.split(line)
        if key not in FLAGS:
            raise Mismatch(f"{path} wants {key}: expected none but {', '.join(FLAGS)}, which are obeyed here")
        flags[key] = values if len(values) > 1 else values[0] if values else True
    return flags

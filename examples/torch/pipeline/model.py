# SPDX-License-Identifier: Apache-2.0
"""The model that the examples train: transformer blocks, dense or with experts, cut into pipeline stages. Of a model of your own train_step.py
wants the same functions (user_model.py).

On one kind of device a layer's weights depend on its number and the seed alone, an expert's on its own number too: however the model is
cut, over however many ranks, it is the same model, so that gradients of any two partitions can be compared.
"""
from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


@dataclasses.dataclass(frozen=True)
class Shape:
    """vocab 0: no embedding and no head, the loss is the mean square of the last block's output. experts 0: dense blocks."""
    hidden: int = 4096
    heads: int = 32
    ffn: int = 16384           # of a dense block, or of one expert
    layers: int = 16
    vocab: int = 0
    experts: int = 0
    experts_per_token: int = 2
    sequence_length: int = 4096
    micro_batch_size: int = 1
    seed: int = 1

    @property
    def message_elements(self) -> int:
        return self.micro_batch_size * self.sequence_length * self.hidden


def wrong_size(shape: Shape) -> str | None:
    """What is no size, in words."""
    for name in ("hidden", "heads", "ffn", "layers", "sequence_length", "micro_batch_size"):
        if getattr(shape, name) < 1:
            return f"{name} is {getattr(shape, name)}: expected 1 or more"
    if shape.hidden % shape.heads:
        return f"hidden is {shape.hidden}: expected a multiple of the {shape.heads} heads"
    if shape.experts and not 1 <= shape.experts_per_token <= shape.experts:
        return f"experts_per_token is {shape.experts_per_token}: expected 1 to {shape.experts}, the experts"
    return None


def sizes_of_config(config: dict[str, Any]) -> dict[str, int]:
    """Of a Hugging Face config.json: sizes by the names of Shape. The blocks are those below all the same, not that model's."""
    names = {"hidden": ["hidden_size"], "heads": ["num_attention_heads"], "layers": ["num_hidden_layers"], "vocab": ["vocab_size"],
             "ffn": ["moe_intermediate_size", "intermediate_size"], "experts": ["num_local_experts", "n_routed_experts", "num_experts"],
             "experts_per_token": ["num_experts_per_tok"]}
    found = {name: next((config[key] for key in keys if config.get(key)), None) for name, keys in names.items()}
    missing = [names[name][0] for name in ("hidden", "heads", "layers", "vocab") if not found[name]]
    if missing:
        raise ValueError(f"a config.json without {', '.join(missing)}: expected Hugging Face's names")
    sizes = {name: size for name, size in found.items() if size}
    sizes.setdefault("ffn", 4 * sizes["hidden"])
    if config.get("max_position_embeddings"):
        sizes["sequence_length"] = min(4096, config["max_position_embeddings"])    # as `pipeplan plan` assumes where the spec does not say
    return sizes


def read_config(path: str) -> dict[str, int]:
    with open(path) as file:
        try:
            return sizes_of_config(json.load(file))
        except (ValueError, AttributeError, TypeError) as error:
            raise ValueError(f"{path}: {error}") from error


class Exchange(torch.autograd.Function):
    """All-to-all of rows between the ranks of an expert group; the gradient takes the way back."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, sent: list[int], received: list[int], group: dist.ProcessGroup | None) -> torch.Tensor:
        ctx.sent, ctx.received, ctx.group = sent, received, group
        out = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return Exchange.forward(ctx, grad, ctx.received, ctx.sent, ctx.group), None, None, None


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm = nn.LayerNorm(shape.hidden)
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden, bias=False)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, h = x.shape
        q, k, v = self.project(x).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(a.transpose(1, 2).reshape(b, s, h))

    def project(self, x: torch.Tensor) -> torch.Tensor:
        return self.qkv(self.norm(x))


class Expert(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(shape.hidden, shape.ffn, bias=False), nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activate(self.up(x))

    def activate(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(x))


class Experts(nn.Module):
    """Top-k routing over experts that are spread over the ranks of `group` (None: all of them are here). Nothing is dropped."""

    def __init__(self, shape: Shape, group: dist.ProcessGroup | None) -> None:
        super().__init__()
        self.experts_per_token, self.group = shape.experts_per_token, group
        self.ranks = dist.get_world_size(group) if group else 1
        if shape.experts % self.ranks:
            raise ValueError(f"{shape.experts} experts cannot be spread over {self.ranks} ranks: expected a multiple of {self.ranks}")
        self.each = shape.experts // self.ranks
        self.first = (dist.get_rank(group) if group else 0) * self.each
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.expert = nn.ModuleList(Expert(shape) for _ in range(self.each))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        weight, chosen = self.router(rows).softmax(-1).topk(self.experts_per_token)
        order = chosen.flatten().argsort(stable=True)      # copies of rows, by expert
        counts = chosen.flatten().bincount(minlength=self.each * self.ranks)
        out = self.apply_experts(rows[order // self.experts_per_token], counts)
        out = out * weight.flatten()[order, None]
        return torch.zeros_like(rows).index_add(0, order // self.experts_per_token, out).view_as(x)

    def apply_experts(self, rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        if self.ranks == 1:
            return self.local(rows, counts.tolist())
        theirs = torch.empty_like(counts)                  # [rank that sends, my expert]
        dist.all_to_all_single(theirs, counts, group=self.group)
        theirs = theirs.view(self.ranks, self.each)
        sent, received = counts.view(self.ranks, self.each).sum(1).tolist(), theirs.sum(1).tolist()
        arrived = Exchange.apply(rows, sent, received, self.group)
        expert = torch.arange(self.each, device=rows.device).repeat(self.ranks).repeat_interleave(theirs.flatten())
        order = expert.argsort(stable=True)
        out = self.local(arrived[order], theirs.sum(0).tolist())
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        return Exchange.apply(out[back], received, sent, self.group)

    def local(self, rows: torch.Tensor, counts: list[int]) -> torch.Tensor:
        # An expert without rows takes part, so that its weights get a gradient of zeros and not none.
        return torch.cat([expert(part) for expert, part in zip(self.expert, rows.split(counts))])


class Block(nn.Module):
    def __init__(self, shape: Shape, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self.attention, self.norm = Attention(shape), nn.LayerNorm(shape.hidden)
        self.mlp = Experts(shape, group) if shape.experts else Expert(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.attention(x)
        return x + self.mlp(self.norm(x))


class Stage(nn.Module):
    """Layers first … first + count − 1 of a model; `starts`: the embedding before them, `ends`: the head behind them, if the model has any."""

    def __init__(self, shape: Shape, first: int, count: int, starts: bool, ends: bool, expert_group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self.shape, self.first = shape, first
        self.embedding = nn.Embedding(shape.vocab, shape.hidden) if shape.vocab and starts else None
        self.block = nn.ModuleList(Block(shape, expert_group) for _ in range(count))
        self.norm = nn.LayerNorm(shape.hidden) if shape.vocab and ends else None
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False) if shape.vocab and ends else None
        self.initialize()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.embedding is not None:
            x = self.embedding(x)
        for block in self.block:
            x = block(x)
        return x if self.head is None or self.norm is None else self.head(self.norm(x))

    def key(self, name: str) -> str:
        """Where a weight is in the whole model: "block.0.mlp.expert.1.up.weight" of a stage → "block.6.mlp.expert.5.up.weight"."""
        part = name.split(".")
        if part[0] == "block":
            experts = self.block[int(part[1])].mlp
            part[1] = str(int(part[1]) + self.first)
            if "expert" in part:
                part[4] = str(int(part[4]) + experts.first)
        return ".".join(part)

    @torch.no_grad()
    def initialize(self) -> None:
        for name, weight in self.named_parameters():
            key = self.key(name)
            if weight.dim() == 1:
                weight.fill_(0 if name.endswith("bias") else 1)
                continue
            generator = torch.Generator(weight.device).manual_seed(self.shape.seed * 1000003 + sum(31**i * b for i, b in enumerate(key.encode())) % 2**40)
            scale = 0.02 if "embedding" in key else 1 / math.sqrt(weight.shape[1])
            weight.copy_(torch.randn(weight.shape, generator=generator, device=weight.device) * scale)


def recompute(module: Any, what: Sequence[str]) -> None:
    """Makes the blocks of a stage compute again in the backward what `recompute` of a plan names. A checkpoint begins at what is kept and ends where
    the layer behind it has got its input, which PyTorch's then is as soon as it has it. Fused attention keeps nothing of its core in any case."""
    known = ("full", "moe", "activation", "gelu", "norm", "core_attention")
    unknown = [name for name in what if name not in known]
    if unknown:
        raise ValueError(f"pipeline/model.py has no {unknown[0]} to recompute: expected some of {', '.join(known)}")
    for block in module.block:
        if "full" in what:
            block.forward = again(block.forward)
            continue
        mlp: Any = block.mlp
        experts = mlp.expert if hasattr(mlp, "router") else [mlp]
        if "moe" in what and hasattr(mlp, "router"):
            mlp.forward = again(mlp.forward)
        elif "activation" in what or "gelu" in what:
            for expert in experts:
                expert.activate = again(expert.activate)
        if "norm" in what:
            block.attention.project = again(block.attention.project)


def again(function: Callable) -> Callable:
    """The same function, of which the backward finds nothing kept but its inputs."""
    return lambda *args: checkpoint(function, *args, use_reentrant=False)


def first_layers(layers_per_stage: Sequence[int]) -> list[int]:
    """[3, 2, 2] → [0, 3, 5]"""
    return [sum(layers_per_stage[:s]) for s in range(len(layers_per_stage))]


def build_stage(shape: Shape, layers_per_stage: Sequence[int], stage: int, expert_group: dist.ProcessGroup | None = None,
                device: torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Stage:
    """Stage number `stage` of those that layers_per_stage says."""
    if sum(layers_per_stage) != shape.layers:
        raise ValueError(f"layers_per_stage {layers_per_stage} has {sum(layers_per_stage)} layers: expected {shape.layers}")
    first, count = first_layers(layers_per_stage)[stage], layers_per_stage[stage]
    with torch.device(device):
        made = Stage(shape, first, count, stage == 0, stage == len(layers_per_stage) - 1, expert_group)
    return made.to(dtype=dtype)


def batch(shape: Shape, microbatches: int, seed: int = 0, device: torch.device = "cpu",
          dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """(input, target) of `microbatches` microbatches, stacked: tokens and the tokens that follow, or, without vocabulary, activations and
    a target that loss_of does not read."""
    generator = torch.Generator(device).manual_seed(shape.seed * 7919 + seed)
    size = (microbatches * shape.micro_batch_size, shape.sequence_length)
    if shape.vocab:
        tokens = torch.randint(shape.vocab, (size[0], size[1] + 1), generator=generator, device=device)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    x = torch.randn(*size, shape.hidden, generator=generator, device=device).to(dtype)
    return x, torch.zeros(size[0], device=device)


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Loss of one microbatch, a mean: of a step it is the mean over microbatches."""
    if target.dtype == torch.long:
        return F.cross_entropy(output.flatten(0, 1).float() if output.dtype != torch.float64 else output.flatten(0, 1), target.flatten())
    return (output.float() if output.dtype != torch.float64 else output).square().mean()

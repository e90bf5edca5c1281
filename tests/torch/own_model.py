# SPDX-License-Identifier: Apache-2.0
"""own_model.py: a model of somebody else's, for trainer_test.py: learned positions, biases, layers named by their place in the model, adapters beside
frozen weights, rows of a batch folded into tokens, a loss of its own. `fails` of its Shape breaks something."""
import dataclasses
import time

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    sequence_length: int
    micro_batch_size: int
    hidden: int = 12
    words: int = 11
    fails: int = 0


class Adapted(nn.Linear):
    """Its weight is frozen; what is trained is beside it."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.weight.requires_grad_(False)
        self.down, self.up = nn.Linear(inputs, 2, bias=False), nn.Linear(2, outputs)

    def forward(self, x):
        return super().forward(x) + self.up(self.down(x))


class Renamed(nn.Linear):
    pass


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(width), Renamed(width, 3 * width), Adapted(3 * width, width)

    def forward(self, x):
        return x + self.second(torch.tanh(self.first(self.norm(x))))


class Spoiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * float("inf")


class Stage(nn.Module):
    def __init__(self, shape, first, count, starts, ends):
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleDict({str(number): seeded(number, lambda: Layer(shape.hidden)) for number in range(first, first + count)})
        if starts:
            self.word = seeded(1001, lambda: nn.Embedding(shape.words, shape.hidden))
            self.position = seeded(1002, lambda: nn.Embedding(shape.sequence_length, shape.hidden))
        self.out = seeded(1003, lambda: nn.Linear(shape.hidden, shape.words)) if ends or shape.fails == 5 else None
        if shape.fails == 6 and starts:
            shared.append(self.word.weight)
        if shape.fails == 6 and ends:
            self.out.weight = shared.pop()
        self.starts, self.ends, self.calls = starts, ends, 0

    def forward(self, x):
        self.calls += 1
        if self.starts:
            x = (self.word(x) + self.position.weight).flatten(0, 1)
        for layer in self.layers.values():
            x = layer(x)
        if self.shape.fails == 2 and self.ends and self.calls > 8:
            raise KeyError("no such word")
        if self.shape.fails == 3 and self.ends and self.calls == 9:
            x = Spoiled.apply(x)
        return self.out(x) if self.ends else x


shared = []   # the first stage's weight, for the last where both are on one rank


def seeded(seed, make):
    torch.manual_seed(seed)
    return make()


def build_stage(shape, layers_per_stage, stage, expert_group, device, dtype):
    if shape.fails == 1 and stage == 1:
        raise RuntimeError("no weights here")
    if shape.fails == 4:
        time.sleep(2.2)
    first = sum(layers_per_stage[:stage])
    return Stage(shape, first, layers_per_stage[stage], stage == 0, stage == len(layers_per_stage) - 1).to(device, dtype)


def batch(shape, microbatches, seed, device, dtype):
    torch.manual_seed(seed)
    rows = microbatches * shape.micro_batch_size
    return tuple(torch.randint(shape.words, (rows, shape.sequence_length), device=device) for _ in range(2))


def loss_of(output, target):
    return nn.functional.multi_margin_loss(output.double(), target.flatten())


def message(shape):
    return shape.micro_batch_size * shape.sequence_length, shape.hidden

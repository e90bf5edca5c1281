#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes that a cross entropy moves and keeps, a logit in bf16, counted as PyTorch runs it on a CPU, against the engine's (engine/core/loss.c).
Megatron's needs build/megatron: scripts/megatron.
usage: loss_test.py"""
import os, subprocess, sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TOKENS, VOCABULARY = 8, 1024
LOGITS = TOKENS * VOCABULARY
# Operations that read or write a few elements of a tensor, or only its shape.
FEW = {"aten.index.Tensor", "aten.index_put_.default", "aten.nll_loss_forward.default"}
UNREAD = FEW | {"aten.nll_loss_backward.default"}
SCRIPT = """
local engine = require "pipeplan" and require "engine"
local training = { precision = "bf16", sequence_length = 4096, parameter_bytes = 2, gradient_bytes = 2, master_bytes = 4, moment_bytes = 8,
                   fused_attention = true, loss = arg[1] }
local model = { layers = 1, hidden = 64, heads = 1, ffn = 64, vocab = 1 << 20 }
local device = { flops = 1e30, flops_bf16 = 1e30, memory_bandwidth = 1, memory_efficiency = 1, gemm_efficiency = 1, grouped_gemm_efficiency = 1,
                 attention_efficiency = 1 }
local head = engine.cost.terms { model = model, layout = {}, training = training, device = device,
                                 network = { tiers = { { reach = 1, bandwidth = 1, efficiency = 1 } } } }.head
print(head.forward.moved / 4096 / model.vocab, head.input.moved / 4096 / model.vocab)
"""


class Moved(TorchDispatchMode):
    """Bytes a logit that operations read and write, each tensor as large as the logits once."""

    def __init__(self):
        super().__init__()
        self.bytes = 0.0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name, view = str(function), any(r.alias_info and not r.alias_info.is_write for r in function._schema.returns)
        if not view:
            self.bytes += sum(t.nbytes for t in tree_leaves(args) if large(t) and name not in UNREAD) / LOGITS
            self.bytes += sum(t.nbytes for t in tree_leaves(out) if large(t) and name not in FEW) / LOGITS
        return out


def large(tensor):
    return isinstance(tensor, torch.Tensor) and tensor.numel() >= LOGITS


def counted(loss):
    """→ bytes a logit: moved in F, moved in I, kept for I by autograd"""
    logits, targets = torch.randn(TOKENS, 1, VOCABULARY, dtype=torch.bfloat16, requires_grad=True), torch.randint(VOCABULARY, (TOKENS, 1))
    kept = {}

    def keep(tensor):
        if large(tensor): kept[tensor.untyped_storage().data_ptr()] = tensor.nbytes / LOGITS
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), Moved() as forward:
        total = loss(logits, targets).sum()
    with Moved() as backward:
        total.backward()
    return forward.bytes, backward.bytes, sum(kept.values())


def engine(loss):
    run = subprocess.run(["lua5.4", "-", loss], input=SCRIPT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return [float(word) for word in run.stdout.split()]


def torch_loss(logits, targets):
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def main():
    cases = {"torch": (torch_loss, (14, 22, 4))}
    if os.path.isdir(os.path.join("build", "megatron", "megatron")):
        sys.path[:0] = [os.path.join("examples", "megatron"), os.path.join("examples", "torch")]
        import shim
        shim.load(torch.device("cpu"))
        from megatron.core.tensor_parallel.cross_entropy import vocab_parallel_cross_entropy
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        group = torch.distributed.group.WORLD
        cases["vocab_parallel"] = (lambda logits, targets: vocab_parallel_cross_entropy(logits, targets, tp_group=group), (38, 14, 4))
    else:
        print("Megatron's is left out: no megatron-core in build/megatron; scripts/megatron installs it")
    wrong = 0
    for name, (loss, wanted) in cases.items():
        got, ours = counted(loss), engine(name)
        print(f"{name}: {got[0]:.0f} bytes a logit in F, {got[1]:.0f} in I, {got[2]:.0f} kept; the engine has {ours[0]:.2f} and {ours[1]:.2f}")
        # the norm before it is a thousandth
        wrong += got != wanted or any(abs(a - b) > 0.01 for a, b in zip(got, ours))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

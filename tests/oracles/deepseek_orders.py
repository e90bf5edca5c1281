#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives step() of DeepSeek's own DualPipe and DualPipeV, one rank at a time, and prints the digest of the orders it executes.

    PYTHONPATH=path/to/DualPipe python3 tests/oracles/deepseek_orders.py > tests/data/deepseek_orders.txt

Wants the package of github.com/deepseek-ai/DualPipe (not part of this repository) and PyTorch. step() runs unchanged, on the CPU: the modules are
one autograd function that records when its forward and its backward run and, while the package defers weight gradients, leaves a recorder in the
package's own WeightGradStore. Messages go nowhere: what arrives is a tensor of zeros.

A line of the output: class, ranks, microbatches, SHA-256 of the orders as text. The text: one row a rank, each ended by a line feed, actions
separated by commas, written as PyTorch writes them: stage, F, I (input gradient, W deferred), W or B (both at once), microbatch; a pair is
"(forward;backward)OVERLAP_F_B". DualPipeV's stages are 0 ... 2P - 1; DualPipe's downward stage of rank r is r, the upward one P + (P - 1 - r).
"""
import contextlib
import hashlib
import itertools
import sys
import warnings
from unittest import mock

import torch
import torch.distributed as dist

import dualpipe.comm as comm
from dualpipe import DualPipe, DualPipeV
from dualpipe.utils import WeightGradStore, run_backward

order = []


class Chunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, weight, stage, microbatch):
        ctx.at = stage, microbatch
        order.append(f"{stage}F{microbatch}")
        return tensor + 0

    @staticmethod
    def backward(ctx, gradient):
        stage, microbatch = ctx.at
        if WeightGradStore.enabled:
            order.append(f"{stage}I{microbatch}")
            WeightGradStore.put(lambda: order.append(f"{stage}W{microbatch}"))
        else:
            order.append(f"{stage}B{microbatch}")
        return gradient, None, None, None


class Stage(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.microbatch = itertools.count()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, tensor):
        return Chunk.apply(tensor, self.weight, self.number, next(self.microbatch))

    @classmethod
    def overlapped_forward_backward(cls, forward, inputs, criterion, labels, backward, loss, outputs, gradients):
        made = forward(*inputs)
        made_loss = criterion(made, *labels) if criterion else None
        if loss is not None:
            loss.backward()
        else:
            run_backward(outputs, gradients)
        pair = f"({order[-2]};{order[-1]})OVERLAP_F_B"
        del order[-2:]
        order.append(pair)
        return [made], made_loss


class Group:
    def __init__(self, rank, size):
        self.rank, self.size = lambda: rank, lambda: size


def order_of(kind, rank, ranks, microbatches):
    order.clear()
    both = kind is DualPipe
    other = ranks + ranks - 1 - rank if both else 2 * ranks - 1 - rank
    pipe = kind((Stage(rank), Stage(other)), process_group=Group(rank, ranks))
    feeds = rank == 0 or both and rank == ranks - 1
    batch = torch.zeros(microbatches // 2 if both else microbatches, requires_grad=True) if feeds else None
    arguments = [chunk for chunk in [batch] if chunk is not None]
    pipe.step(*arguments, num_chunks=microbatches, criterion=lambda output, label: output.sum(), labels=arguments)
    return ",".join(order) + "\n"


@contextlib.contextmanager
def without_messages():
    def received():
        return [torch.zeros(1, requires_grad=True)]

    comm.set_p2p_tensor_shapes([(1,)])
    comm.set_p2p_tensor_dtype(torch.float32)
    with mock.patch.object(comm, "build_from_tensor_shapes", received), \
            mock.patch.object(torch.cuda, "current_device", lambda: "cpu"), \
            mock.patch.object(dist, "P2POp", lambda *what: what), \
            mock.patch.object(dist, "batch_isend_irecv", lambda operations: []), \
            mock.patch.object(dist.distributed_c10d, "get_global_rank", lambda group, rank: rank):
        yield


def main():
    warnings.simplefilter("ignore")  # a slice of the input batch is no leaf, and nobody wants its gradient
    print("# Orders that DeepSeek's own step() executes (deepseek-ai/DualPipe @3da1bbe, driven by tests/oracles/deepseek_orders.py, which says what the")
    print("# text is): class, ranks, microbatches, SHA-256.")
    with without_messages():
        for kind in DualPipe, DualPipeV:
            step = 2 if kind is DualPipe else 1
            for ranks in range(step, 17, step):
                for more in 0, step, 2 * ranks, 3 * ranks + 2 * step:
                    microbatches = 2 * ranks + more
                    text = "".join(order_of(kind, rank, ranks, microbatches) for rank in range(ranks))
                    if "--text" in sys.argv:
                        print(text)
                    print(kind.__name__.lower(), ranks, microbatches, hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()

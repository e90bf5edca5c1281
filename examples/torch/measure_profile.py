#!/usr/bin/env python3
"""Measures a profile (pipeplan facts schema profile) of a transformer's pipeline stages with PyTorch, one GPU a stage.

usage: torchrun --nproc-per-node P examples/torch/measure_profile.py [options] > profile.json

Each rank builds its stage, the first with the embedding, the last with head and loss, and times F, B, I and W directly with CUDA events,
never as a difference of two timings: cold (pauses between, at most half of the time busy) and hot (back to back, after seconds of load on
all cards at once). I and W are PyTorch's own split of the backward. Messages are timed between ranks 0 and 1. With --microbatches it runs
1F1B too, and writes the median of its steps as `calibration`. Replace Block, Embedding and Head by those of your model.
"""
import argparse
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads = o.heads
        self.n1, self.n2 = nn.LayerNorm(o.hidden), nn.LayerNorm(o.hidden)
        self.qkv, self.out = nn.Linear(o.hidden, 3 * o.hidden, bias=False), nn.Linear(o.hidden, o.hidden, bias=False)
        self.up, self.down = nn.Linear(o.hidden, o.ffn, bias=False), nn.Linear(o.ffn, o.hidden, bias=False)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, s, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Stage(nn.Module):
    def __init__(self, o, layers, first, last):
        super().__init__()
        self.embedding = nn.Embedding(o.vocab, o.hidden) if first and o.vocab else None
        self.blocks = nn.ModuleList(Block(o) for _ in range(layers))
        self.norm = nn.LayerNorm(o.hidden) if last and o.vocab else None
        self.head = nn.Linear(o.hidden, o.vocab, bias=False) if last and o.vocab else None

    def forward(self, x):
        if self.embedding:
            x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) if self.head else x


def loss_of(output, target):
    if output.shape[-1:] == target.shape[-1:] and output.dim() == target.dim():  # no head
        return output.float().square().mean()
    return F.cross_entropy(output.flatten(0, 1).float(), target.flatten())


class Kinds:
    """One microbatch's F, B, I and W of a stage, each a function; what comes before is done outside the timing."""

    def __init__(self, o, stage, first, last):
        self.o, self.stage, self.last = o, stage, last
        self.weights = [p for p in stage.parameters() if p.requires_grad]
        tokens = torch.randint(o.vocab or 1, (o.micro_batch, o.sequence), device="cuda")
        self.input = tokens if first and o.vocab else torch.randn(o.micro_batch, o.sequence, o.hidden, device="cuda",
                                                                  dtype=torch.bfloat16)
        self.target = tokens

    def forward(self):
        x = self.input if self.input.dtype == torch.long else self.input.detach().requires_grad_()
        y = self.stage(x)
        if self.last:
            return x, loss_of(y, self.target if self.stage.head else y), None
        return x, y, torch.ones_like(y)

    def prepare(self, kind):
        """What `kind` needs before it starts."""
        if kind == "F":
            return None
        made = self.forward()
        if kind == "W":
            x, y, grad = made
            inputs = [x] if x.requires_grad else []
            return stage_backward_input([y], None if grad is None else [grad], inputs, iter(self.weights))[1]
        return made

    def run(self, kind, made):
        if kind == "F":
            return self.forward()
        if kind == "W":
            return stage_backward_weight(iter(self.weights), made)
        x, y, grad = made
        if kind == "B":
            return torch.autograd.backward(y, grad)
        return stage_backward_input([y], None if grad is None else [grad], [x], iter(self.weights))


def timed(kinds, kind, pause):
    made = kinds.prepare(kind)
    if pause:
        torch.cuda.synchronize()
        time.sleep(pause)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    kept = kinds.run(kind, made)
    end.record()
    torch.cuda.synchronize()
    del kept, made
    return start.elapsed_time(end)


def measure(kinds, first_with_tokens, o):
    """→ cold and hot medians. The first stage has no gradient of its input: its B is whole, and it has no I and W."""
    names = ["F", "B"] if first_with_tokens else ["F", "B", "I", "W"]
    out = {}
    for name, pause in (("kind_ms_cold", 0.1), ("kind_ms_hot", 0)):
        dist.barrier()
        until = time.time() + (0 if pause else o.load)
        while time.time() < until:
            for kind in names:
                timed(kinds, kind, 0)
        out[name] = {kind: round(statistics.median(timed(kinds, kind, pause) for _ in range(o.samples)), 4) for kind in names}
        dist.barrier()
    return out


def kept_bytes(kinds):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    made = kinds.forward()
    return torch.cuda.memory_allocated() - before if made else 0


def messages(rank):
    """Microseconds of one message from rank 0 to 1."""
    table = []
    for size in (2**10, 2**20, 2**23, 2**25, 2**28):
        buffer, times = torch.empty(size, dtype=torch.uint8, device="cuda"), []
        for _ in range(25):
            dist.barrier()
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            if rank < 2:
                dist.send(buffer, 1) if rank == 0 else dist.recv(buffer, 0)
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e3)
        table.append({"bytes": size, "us": round(statistics.median(times[5:]), 2)})
    return table


def run_1f1b(o, stage, rank, ranks, microbatches):
    """Median seconds of four steps, slowest rank."""
    pipe = PipelineStage(stage, rank, ranks, torch.device("cuda"))
    schedule = Schedule1F1B(pipe, microbatches, loss_fn=loss_of)
    shape = (microbatches * o.micro_batch, o.sequence)
    tokens = torch.randint(o.vocab or 1, shape, device="cuda")
    x = tokens if o.vocab else torch.randn(*shape, o.hidden, device="cuda", dtype=torch.bfloat16)
    target, steps = tokens if o.vocab else x, []
    for step in range(7):
        stage.zero_grad()
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        schedule.step(*([x] if rank == 0 else []), **({"target": target} if rank == ranks - 1 else {}))
        torch.cuda.synchronize()
        seconds = torch.tensor(time.perf_counter() - begin, device="cuda")
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        if step > 2:
            steps.append(seconds.item())
    return statistics.median(steps)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("hidden", 4096), ("heads", 32), ("ffn", 16384), ("vocab", 0), ("sequence", 4096), ("micro-batch", 1),
                          ("samples", 25)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--layers", default="4,4,4,4", help="layers of each stage")
    parser.add_argument("--load", type=float, default=2.0, help="seconds of load before hot timings")
    parser.add_argument("--microbatches", default="", help="M of 1F1B runs, such as 8,32")
    return parser.parse_args()


def main():
    o = options()
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank % torch.cuda.device_count())
    layers = [int(count) for count in o.layers.split(",")]
    first, last = rank == 0, rank == ranks - 1
    torch.manual_seed(rank)
    stage = Stage(o, layers[rank], first, last).to("cuda", torch.bfloat16)
    kinds = Kinds(o, stage, first, last)
    for kind in ("F", "B"):
        timed(kinds, kind, 0)
    mine = {"layers": layers[rank], "embedding": bool(first and o.vocab), "head": bool(last and o.vocab),
            **measure(kinds, first and o.vocab > 0, o), "mem": {"act_bytes": kept_bytes(kinds)}}
    stages = [None] * ranks
    dist.all_gather_object(stages, mine)
    profile = {"source": f"{ranks} × {torch.cuda.get_device_name()}, PyTorch {torch.__version__}", "runtime": "torch-single",
               "at": {"sequence_length": o.sequence, "micro_batch_size": o.micro_batch}, "stage": stages, "p2p": messages(rank)}
    for count in filter(None, o.microbatches.split(",")):
        step = run_1f1b(o, stage, rank, ranks, int(count))
        profile.setdefault("calibration", []).append({"schedule": "1f1b", "microbatches": int(count), "step_ms": round(step * 1e3, 3)})
    if rank == 0:
        json.dump(profile, sys.stdout, indent=2, ensure_ascii=False)
        print()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

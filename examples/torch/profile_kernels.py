# SPDX-License-Identifier: Apache-2.0
"""Measures what one card's kernels take by their shapes, for `pipeplan plan --kernels FILE`: about half a minute.

usage: python profile_kernels.py -o kernels.json              one card
       torchrun --nproc-per-node 8 profile_kernels.py -o kernels.json   collectives of the node too

Products (bf16, and fp8 where the card has it), grouped products and element-wise kernels are timed inside CUDA graphs, so that no launch is in
them; what launching a layer takes the host is timed apart, with so few tokens that the card waits. Needs PyTorch 2.6 or newer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

HEAD_DIM = 128
ROWS, COLUMNS, INNER = (512, 2048, 8192), (1024, 4096, 16384), (1024, 4096, 8192)
GROUPED = [(experts, rows, n, k) for experts in (4, 16) for rows in (4096, 16384) for n, k in ((1536, 4096), (4096, 1536), (4096, 7168))]
ATTENTION = [(length, heads) for length in (2048, 4096, 8192) for heads in (8, 32)]
MOVED = (1 << 25, 1 << 27, 1 << 29)   # bytes of a tensor


def seconds_of(work, repeats: int = 20) -> float:
    """Median seconds of one call inside a CUDA graph of `repeats` calls; of five graphs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    graph.replay()
    times = []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / repeats)
    return statistics.median(times)


def seconds_in_turn(work, repeats: int = 20) -> float:
    """The same without a graph, for what autograd runs: launches are in it where the card is faster than they are."""
    times = []
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        work()
        start.record()
        for _ in range(repeats):
            work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / repeats)
    return statistics.median(times)


def tried(name: str, measure) -> list[dict]:
    """What `measure` yields; where the card or this PyTorch cannot, what there is, with a word on standard error."""
    found = []
    try:
        for row in measure():
            found.append(row)
    except (RuntimeError, AttributeError, NotImplementedError, ValueError) as problem:
        print(f"{name}: not measured: {str(problem).splitlines()[0]}", file=sys.stderr)
    return found


def products_bf16():
    for m in ROWS:
        for n in COLUMNS:
            for k in INNER:
                x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
                w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
                out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
                yield {"m": m, "n": n, "k": k, "precision": "bf16", "seconds": seconds_of(lambda: torch.mm(x, w.t(), out=out))}


def products_fp8():
    one = torch.ones((), device="cuda")
    for m in ROWS:
        for n in COLUMNS:
            for k in INNER:
                x = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
                w = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
                work = lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: E731
                yield {"m": m, "n": n, "k": k, "precision": "fp8", "seconds": seconds_of(work)}


def grouped_products():
    for experts, rows, n, k in GROUPED:
        x = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(experts, n, k, device="cuda", dtype=torch.bfloat16)
        ends = torch.arange(1, experts + 1, device="cuda", dtype=torch.int32) * (rows // experts)
        work = lambda: torch._grouped_mm(x, w.transpose(-2, -1), offs=ends)  # noqa: E731
        yield {"experts": experts, "rows": rows, "n": n, "k": k, "precision": "bf16", "seconds": seconds_of(work)}


def attentions():
    for length, heads in ATTENTION:
        q, k, v = (torch.randn(1, heads, length, HEAD_DIM, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        forward = seconds_in_turn(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        gradient = torch.randn_like(out)
        backward = seconds_in_turn(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
        yield {"length": length, "heads": heads, "head_dim": HEAD_DIM, "forward": forward, "backward": backward}


def moved_bytes():
    for size in MOVED:
        x = torch.randn(size // 2, device="cuda", dtype=torch.bfloat16)
        out = torch.empty_like(x)
        yield {"bytes": 2 * size, "seconds": seconds_of(lambda: torch.mul(x, 2, out=out))}


class Layer(nn.Module):
    """A plain dense layer: RMSNorm, attention, SwiGLU."""

    def __init__(self, hidden: int = 1024, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*size, bias=False) for size in ((hidden, 2816), (hidden, 2816), (2816, hidden)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, hidden))
        normed = self.second(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


def host_seconds(layers: int = 16) -> dict:
    """What the host takes to launch a layer: the card has next to nothing to do, and is waited for only at the end."""
    model = nn.Sequential(*(Layer() for _ in range(layers))).to("cuda", torch.bfloat16)
    x = torch.randn(1, 64, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    ahead, back = [], []
    for _ in range(12):
        torch.cuda.synchronize()
        start = time.perf_counter()
        out = model(x)
        middle = time.perf_counter()
        out.sum().backward()
        end = time.perf_counter()
        ahead.append((middle - start) / layers)
        back.append((end - middle) / layers)
    return {"forward": statistics.median(ahead[2:]), "backward": statistics.median(back[2:])}


def collectives(ranks: int):
    import torch.distributed as dist

    for size in (1 << 22, 1 << 25, 1 << 27):
        whole = torch.zeros(size // 2, device="cuda", dtype=torch.bfloat16)
        part = whole[: whole.numel() // ranks].clone()
        work = {
            "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(whole), whole),
        }
        for kind, call in work.items():
            times = []
            for _ in range(8):
                torch.cuda.synchronize()
                dist.barrier()
                start = time.perf_counter()
                call()
                torch.cuda.synchronize()
                times.append(time.perf_counter() - start)
            yield {"kind": kind, "ranks": ranks, "bytes": size, "seconds": statistics.median(times[2:])}


def measure(ranks: int) -> dict:
    table = {
        "$schema": "urn:pipeplan:kernels:1",
        "device": torch.cuda.get_device_name(),
        "source": f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, profile_kernels.py",
        "products": tried("bf16 products", products_bf16) + tried("fp8 products", products_fp8),
        "grouped": tried("grouped products", grouped_products),
        "attention": tried("attention", attentions),
        "moved": tried("element-wise kernels", moved_bytes),
        "host": host_seconds(),
        "collectives": tried("collectives", lambda: collectives(ranks)) if ranks > 1 else [],
    }
    if ranks == 1:
        print("collectives: not measured: one GPU; run with torchrun for those of the node", file=sys.stderr)
    return {key: value for key, value in table.items() if value != []}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="kernels.json", help="where the table goes (default kernels.json)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("profile_kernels.py: no GPU that PyTorch sees")
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if ranks > 1:
        import torch.distributed as dist

        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    start = time.perf_counter()
    table = measure(ranks)
    if rank == 0:
        with open(arguments.output, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
            file.write("\n")
        print(f"{arguments.output}: {table['device']}, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

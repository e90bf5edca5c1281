# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind: a line a step as Megatron-LM logs it, which `pipeplan monitor` reads, and the record of a run for compare.py."""
from __future__ import annotations

import datetime
import json
import platform
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import power

if TYPE_CHECKING:
    from typing import Any

    from .grid import Grid
    from .model import Shape


def iteration_line(iteration: int, of: int, samples: int, ms: float, tflops: float, rate: float, batch: int, loss: float, norm: float,
                   skipped: int = 0, nans: int = 0) -> str:
    """Megatron-LM's training_log (megatron/training/training.py), with --log-throughput."""
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
    return (f" [{now}] iteration {iteration:8d}/{of:8d} | consumed samples: {samples:12d} | elapsed time per iteration (ms): {ms:.1f} |"
            f" throughput per GPU (TFLOP/s/GPU): {tflops:.1f} | learning rate: {rate:.6E} | global batch size: {batch:5d} |"
            f" lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} |"
            f" number of skipped iterations: {skipped:3d} | number of nan iterations: {nans:3d} |")


def flops_of_sequence(shape: Shape) -> int | None:
    """Of one training sequence, forward and backward (3 × the forward): 2 for each weight that a token meets, and causal attention's scores
    and sums, 2 · sequence_length · hidden a token and layer. None of a user's Shape that has other sizes."""
    if not all(hasattr(shape, name) for name in ("hidden", "ffn", "layers", "vocab", "sequence_length", "experts", "experts_per_token")):
        return None
    experts = shape.experts_per_token if shape.experts else 1
    layer = 4 * shape.hidden**2 + 2 * shape.hidden * shape.ffn * experts + shape.hidden * shape.experts
    token = 2 * (shape.layers * layer + shape.hidden * shape.vocab) + 2 * shape.layers * shape.sequence_length * shape.hidden
    return 3 * shape.sequence_length * token


def source(device: torch.device) -> str:
    """"2 × NVIDIA H100 80GB HBM3, PyTorch 2.11.0+cu130" """
    what = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU processes of {platform.machine()}"
    return f"{dist.get_world_size()} × {what}, PyTorch {torch.__version__}"


def gathered(value: Any, device: torch.device) -> list:
    """→ [value of each process], through JSON: PyTorch's all_gather_object wants NumPy. Collective."""
    mine = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8, device=device)
    sizes = [torch.zeros(1, dtype=torch.long, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(mine)], device=device))
    longest = int(max(sizes))
    texts = [torch.empty(longest, dtype=torch.uint8, device=device) for _ in sizes]
    dist.all_gather(texts, torch.nn.functional.pad(mine, (0, longest - len(mine))))
    return [json.loads(bytes(text[:int(size)].tolist())) for text, size in zip(texts, sizes)]


class Record:
    """One entry of runs.json: times of the pipeline's part of each step, memory, and the timeline of a further step."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cuda = device.type == "cuda"
        self.milliseconds: list[float] = []
        self.base: int | None = None
        self.meter = power.Meter(device)

    def begin(self) -> None:
        """Once, before the steps that count, when weights and gradients are there and no activations."""
        self.meter.begin()
        if self.cuda:
            torch.cuda.synchronize()
            self.base = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()

    def end(self) -> None:
        """Behind the last of them."""
        self.measured = self.meter.end()
        self.meter.close()
        self.peak = torch.cuda.max_memory_allocated() if self.cuda else None

    def entry(self, grid: Grid, timeline: list, own: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """→ the run as runs.json has it: a step took what its slowest process did, the rest is by pipeline rank of the first replica. own: more
        of this rank. Collective."""
        mine = {"timeline": timeline, "base_bytes": self.base, "peak_bytes": self.peak,
                "sm_clock_mhz": self.measured.get("clock_mhz"), "power_w": self.measured.get("power_w"), **(own or {})}
        everywhere = gathered({**mine, "step_ms": self.milliseconds}, self.device)
        steps = [max(of_process) for of_process in zip(*(one["step_ms"] for one in everywhere))]
        by_rank = everywhere[::grid.data]
        known = {name: [one[name] for one in by_rank] for name in mine}
        return {**fields, "ranks": grid.pipeline, "step_ms": sorted(round(ms, 4) for ms in steps),
                **{name: values if None not in values else None for name, values in known.items()}}


def write_runs(path: str, device: torch.device, command: str, profiles: Any, runs: list[dict]) -> None:
    with open(path, "w") as file:
        json.dump({"source": source(device), "date": datetime.date.today().isoformat(), "command": command, "profiles": profiles, "runs": runs}, file)
        file.write("\n")

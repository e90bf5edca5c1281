# SPDX-License-Identifier: Apache-2.0
"""Which process is what: pipeline rank, data-parallel replica, member of an expert group; and the device and backend it runs on."""
from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist


class Grid:
    """World rank = pipeline rank × data + replica, so that the replicas of a stage, and with them its experts, sit side by side.

    world = pipeline × data; `expert` ranks of a stage's replicas share its experts, and divide data. pipeline_group holds the ranks of one
    replica, data_group the replicas of one stage, expert_group (None at 1) those that share experts, expert_data_group those that have the
    same experts (data_group at 1).
    """

    def __init__(self, pipeline: int, expert: int = 1) -> None:
        world = dist.get_world_size()
        if world % pipeline:
            raise ValueError(f"a pipeline of {pipeline} ranks does not fit {world} processes: expected a multiple of {pipeline}")
        self.pipeline, self.data, self.expert = pipeline, world // pipeline, expert
        if self.data % expert:
            raise ValueError(f"{self.data} replicas of a stage cannot be cut into expert groups of {expert}")
        self.rank, self.replica = divmod(dist.get_rank(), self.data)
        ranks = range(pipeline)
        self.pipeline_group = self._mine([[p * self.data + d for p in ranks] for d in range(self.data)])
        self.data_group = self._mine([[p * self.data + d for d in range(self.data)] for p in ranks])
        self.expert_group, self.expert_data_group = None, self.data_group
        if expert > 1:
            self.expert_data_group = self._mine([[p * self.data + d for d in range(e, self.data, expert)] for p in ranks for e in range(expert)])
            self.expert_group = self._mine([[p * self.data + d + e for e in range(expert)] for p in ranks for d in range(0, self.data, expert)])

    @staticmethod
    def _mine(groups: list[list[int]]) -> dist.ProcessGroup | None:
        """Every process makes every group, in the same order, and keeps its own."""
        mine = None
        for members in groups:
            group = dist.new_group(members)
            if dist.get_rank() in members:
                mine = group
        return mine

    def world_rank(self, pipeline_rank: int) -> int:
        """Of that pipeline rank in this replica."""
        return pipeline_rank * self.data + self.replica


def start(device: str | None = None) -> torch.device:
    """Joins the processes that torchrun started; → torch.device of this one. device: "cpu", "cuda", or None: what there is."""
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    local = int(os.environ.get("LOCAL_RANK", 0))
    if kind == "cuda":
        here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.cuda.device_count()
        if here > gpus:
            dist.init_process_group("gloo")
            print(f"rank {dist.get_rank()}: {here} processes on this host and {gpus} GPUs: expected one a process", file=sys.stderr, flush=True)
            dist.barrier()                                 # all have said so before torchrun stops the rest of them
            raise SystemExit(2)
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    return torch.device(kind, local) if kind == "cuda" else torch.device("cpu")

# SPDX-License-Identifier: Apache-2.0
"""What messages take: between neighbours of a pipeline, sent as PyTorch's runtime sends them (batch_isend_irecv on the pipeline's group), and
collectives over expert and data groups; and a receive that waits while something else is timed."""
from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from .timing import Clock, side_streams

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any
    from pipeline.grid import Grid

    from .control import Control

ROUNDS, REPEATS = 5, 7


def sizes(message: int, device: torch.device) -> list[int]:
    """Bytes, with those of a message of the model."""
    some = (2**10, 2**20, 2**23, 2**25, 2**28) if device.type == "cuda" else (2**10, 2**16)
    return sorted({*some, message})


def _run(operations: list) -> None:
    for work in dist.batch_isend_irecv(operations):
        work.wait()


class Links:
    """Collective to make. Two more communicators over the pipeline's ranks carry the receives that wait: even ranks' one, odd ranks' the other,
    so that no rank's send lies behind a receive of its own."""

    def __init__(self, grid: Grid, device: torch.device, control: Control) -> None:
        self.grid, self.device, self.control, self.clock = grid, device, control, Clock(device)
        self.world = [grid.world_rank(p) for p in range(grid.pipeline)]
        self.matrices: Any = None                 # for what computes beside messages, while it does
        self.waiting: list[dist.ProcessGroup] = []
        for _ in range(2 if grid.pipeline > 1 else 0):
            groups = [dist.new_group([p * grid.data + d for p in range(grid.pipeline)]) for d in range(grid.data)]
            self.waiting.append(groups[grid.replica])
        self._connect()

    def _connect(self) -> None:
        """First messages build connections, and block until the peer does the same: each group's in one batch."""
        if not self.waiting:
            return
        one = torch.zeros(1, device=self.device)
        dist.all_reduce(one, group=self.grid.pipeline_group)
        for which, group in enumerate(self.waiting):
            dist.all_reduce(one, group=group)
            operations = self._receive(one, which) + self._send(one.clone(), which)
            if operations:
                _run(operations)
        self.clock.wait(self.clock.mark())
        self.control.barrier()

    # --------------------------------------------------------------------------------------------------- a receive that waits

    def _receive(self, buffer: torch.Tensor, which: int) -> list:
        rank = self.grid.rank
        return [dist.P2POp(dist.irecv, buffer, self._next(), self.waiting[which])] if rank % 2 == which else []

    def _send(self, buffer: torch.Tensor, which: int) -> list:
        before = (self.grid.rank - 1) % self.grid.pipeline
        return [dist.P2POp(dist.isend, buffer, self.world[before], self.waiting[which])] if before % 2 == which else []

    def _next(self) -> int:
        return self.world[(self.grid.rank + 1) % self.grid.pipeline]

    def shadow(self, message: int) -> Shadow | None:
        """→ context in which a receive of `message` bytes is pending on this rank; it is answered at the end, when every rank is there. None
        where there is nobody to receive from."""
        return Shadow(self, message) if self.waiting else None

    # --------------------------------------------------------------------------------------------------------------- messages

    def p2p(self, message: int) -> list[dict[str, Any]]:
        """→ the list `p2p` of a profile, on rank 0. One pair of neighbours of each class of links is timed."""
        hosts = self.control.gather(socket.gethostname())
        hosts = [hosts[w] for w in self.world]
        pairs: dict[str, int] = {}
        table: list[Any] = []
        for p in range(self.grid.pipeline - 1):
            pairs.setdefault("scale_up" if hosts[p] == hosts[p + 1] else "scale_out", p)
        for link, p in pairs.items():
            for size in sizes(message, self.device):
                row = self._message(p, size)
                if dist.get_rank() == self.world[p]:
                    table.append({"bytes": size, **row, "link": link})
        gathered = self.control.gather(table)
        self.matrices = None
        return [row for rows in (gathered[w] for w in self.world) for row in rows]

    def _message(self, p: int, size: int) -> dict[str, Any]:
        """Between pipeline ranks p and p + 1 of this replica."""
        buffers = [torch.zeros(size, dtype=torch.uint8, device=self.device) for _ in range(2)]
        first = self.grid.rank == p
        peer = self.world[p + 1 if first else p]
        group, out = self.grid.pipeline_group, {}

        def send() -> Any:
            return dist.P2POp(dist.isend, buffers[0], peer, group)

        def receive() -> Any:
            return dist.P2POp(dist.irecv, buffers[1], peer, group)

        def one_way() -> None:
            _run([send() if first else receive()])

        takes_part = self.grid.rank in (p, p + 1)
        for name, run, busy in (("us", one_way, False), ("us_pair", lambda: _run([send(), receive()]), False),
                                ("us_beside_compute", one_way, self.clock.cuda)):
            if name == "us_beside_compute" and not busy:
                continue
            self.control.barrier()
            if takes_part:
                out[name] = round(self._series(run, busy), 2)
        if takes_part:
            out["us"] = min(out["us"], out["us_pair"])     # a message alone takes no longer than with another the other way
        return out

    def _series(self, run: Callable, busy: bool = False) -> float:
        """Microseconds of one run: the least of several series of ROUNDS that the host has handed over before they begin. Between GPUs of a
        host some series take most of a millisecond more, which runs of pipelines do not show."""
        run()
        samples = []
        for _ in range(REPEATS):
            compute = self._compute() if busy else None
            self.clock.wait(self.clock.mark())
            if compute:
                compute()
            self.clock.delay(0.02)
            run()                      # until it has met its peer, whose host may be behind
            begin = self.clock.mark()
            for _ in range(ROUNDS):
                run()
            end = self.clock.mark()
            self.clock.wait(end)
            samples.append(self.clock.milliseconds(begin, end) * 1000 / ROUNDS)
        return min(samples)

    def _compute(self) -> Callable:
        """→ function that hands some 70 ms of matrix products to another stream."""
        if self.matrices is None:
            self.matrices = [torch.randn(8192, 8192, device=self.device, dtype=torch.bfloat16) for _ in range(3)]

        def go() -> None:
            a, b, product = self.matrices
            with torch.cuda.stream(side_streams(self.device)[0]):
                for _ in range(48):
                    torch.mm(a, b, out=product)
        return go

    # ------------------------------------------------------------------------------------------------------------ collectives

    def collectives(self, message: int) -> dict[str, Any]:
        """→ {"alltoall": […], "allreduce": […]} of expert and data groups, as rank 0's took; without groups nothing."""
        out = {}
        grid = self.grid
        if grid.expert_group:
            out["alltoall"] = [self._collective(self._alltoall, size, grid.expert_group) for size in sizes(message, self.device)]
        if grid.data > 1:
            out["allreduce"] = [self._collective(self._allreduce, size, grid.data_group) for size in sizes(message, self.device)]
        return out

    def _collective(self, make: Callable, size: int, group: Any) -> dict[str, Any]:
        ranks = dist.get_world_size(group)
        run, given = make(size, ranks, group)
        self.control.barrier()
        return {"bytes": given, "us": round(self._series(run), 2), "ranks": ranks}

    def _alltoall(self, size: int, ranks: int, group: Any) -> tuple[Callable, int]:
        each = max(1, size // ranks)
        sent, received = (torch.zeros(each * ranks, dtype=torch.uint8, device=self.device) for _ in range(2))
        return lambda: dist.all_to_all_single(received, sent, group=group), each * ranks

    def _allreduce(self, size: int, _ranks: int, group: Any) -> tuple[Callable, int]:
        dtype = torch.bfloat16 if self.clock.cuda else torch.float32
        buffer = torch.zeros(max(1, size // dtype.itemsize), dtype=dtype, device=self.device)
        return lambda: dist.all_reduce(buffer, group=group), buffer.numel() * buffer.element_size()


class Shadow:
    def __init__(self, links: Links, message: int) -> None:
        self.links, self.message = links, message

    def __enter__(self) -> Shadow:
        links, self.pending = self.links, []
        self.sent = torch.ones(self.message, dtype=torch.uint8, device=links.device)
        self.received = torch.zeros_like(self.sent)
        for which in range(2):
            operations = links._receive(self.received, which)
            if operations:
                self.pending += dist.batch_isend_irecv(operations)
        return self

    def __exit__(self, *_: Any) -> None:
        links = self.links
        links.control.barrier()
        for which in range(2):
            operations = links._send(self.sent, which)
            if operations:
                self.pending += dist.batch_isend_irecv(operations)
        for work in self.pending:
            work.wait()
        links.clock.wait(links.clock.mark())

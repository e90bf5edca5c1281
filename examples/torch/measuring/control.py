# SPDX-License-Identifier: Apache-2.0
"""What processes tell each other on the host, through the store of the process group: neither a GPU nor a communicator takes part, so that
it can be used while messages are pending, and leaves cards idle."""
from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Control:
    """Every process makes the same calls in the same order, under a name that it uses once. O(processes) round trips to the store a call."""

    def __init__(self, name: str, patience: float = 300) -> None:
        """patience: seconds to wait for the other processes."""
        self.store = dist.PrefixStore(f"control/{name}", _get_default_store())
        self.rank, self.world, self.calls = dist.get_rank(), dist.get_world_size(), 0
        self.patience = datetime.timedelta(seconds=patience)

    def gather(self, value: Any) -> list:
        """→ what each process gave, by rank. It travels as JSON."""
        self.calls += 1
        keys = [f"{self.calls}/{rank}" for rank in range(self.world)]
        self.store.set(keys[self.rank], json.dumps(value))
        self.store.wait(keys, self.patience)
        return [json.loads(self.store.get(key)) for key in keys]

    def barrier(self) -> None:
        self.gather(None)

    def most(self, value: Any, ranks: Iterable[int] | None = None) -> Any:
        """The largest that these ranks (None: all) gave."""
        given = self.gather(value)
        return max(given[rank] for rank in (range(self.world) if ranks is None else ranks))

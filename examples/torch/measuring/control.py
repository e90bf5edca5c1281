# SPDX-License-Identifier: Apache-2.0
"""What processes tell each other on the host, through the store of the process group: neither a GPU nor a communicator takes part, so that
it can be used while messages are pending, and leaves cards idle."""
import datetime
import json

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


class Control:
    """Every process makes the same calls in the same order, under a name that it uses once. O(processes) round trips to the store a call."""

    def __init__(self, name, patience=300):
        """patience: seconds to wait for the other processes."""
        self.store = dist.PrefixStore(f"control/{name}", _get_default_store())
        self.rank, self.world, self.calls = dist.get_rank(), dist.get_world_size(), 0
        self.patience = datetime.timedelta(seconds=patience)

    def gather(self, value):
        """→ what each process gave, by rank. It travels as JSON."""
        self.calls += 1
        keys = [f"{self.calls}/{rank}" for rank in range(self.world)]
        self.store.set(keys[self.rank], json.dumps(value))
        self.store.wait(keys, self.patience)
        return [json.loads(self.store.get(key)) for key in keys]

    def barrier(self):
        self.gather(None)

    def most(self, value, ranks=None):
        """The largest that these ranks (None: all) gave."""
        given = self.gather(value)
        return max(given[rank] for rank in (range(self.world) if ranks is None else ranks))

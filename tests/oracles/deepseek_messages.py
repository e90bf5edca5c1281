#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives step() of DeepSeek's own DualPipe and DualPipeV as deepseek_orders.py does, and prints digests of what it posts between its actions.

    PYTHONPATH=path/to/DualPipe python3 tests/oracles/deepseek_messages.py > tests/data/deepseek_messages.txt

A line of the output: class, ranks, microbatches, SHA-256 of the messages as text. The text: one row a rank, each ended by a line feed, entries
separated by commas: an action as in deepseek_orders.py, or a message of a group, ">" or "<" and the rank it goes to or comes from. Groups
are posted right before an action, so that the entries between two actions are one group.
"""
import hashlib
import warnings
from unittest import mock

import torch.distributed as dist

import deepseek_orders
from dualpipe import DualPipe, DualPipeV


def post(operations):
    for operation, _tensor, peer, *_group in operations:
        deepseek_orders.order.append((">" if operation is dist.isend else "<") + str(peer))
    return []


def main():
    warnings.simplefilter("ignore")  # as in deepseek_orders.py
    print("# What DeepSeek's own step() posts between its actions (deepseek-ai/DualPipe @3da1bbe, driven by tests/oracles/deepseek_messages.py, which")
    print("# says what the text is): class, ranks, microbatches, SHA-256.")
    with deepseek_orders.without_messages(), mock.patch.object(dist, "batch_isend_irecv", post):
        for kind in DualPipe, DualPipeV:
            step = 2 if kind is DualPipe else 1
            for ranks in range(step, 13, step):
                for more in 0, step, 3 * ranks:
                    microbatches = 2 * ranks + more
                    text = "".join(deepseek_orders.order_of(kind, rank, ranks, microbatches) for rank in range(ranks))
                    print(kind.__name__.lower(), ranks, microbatches, hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of one host, where there is no torchrun around them: forked, so that PyTorch is imported once, and with nothing printed behind
what they say themselves (torchrun adds a page)."""
from __future__ import annotations

import os
import signal
import socket
import time

import torch

from .watchdog import say

GRACE = 5.0      # seconds that the others have to say where they are when one has failed, and again to end


def start(processes: int) -> int | None:
    """→ None in each process that is to train, with torchrun's variables set; in this one, when all have ended, the exit status: that of the first that
    failed, 128 + its number for a signal, which comes before what others end with because of it. When one fails the others are told to stop."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    left = {}
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes), LOCAL_WORLD_SIZE=str(processes),
                              MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            if "OMP_NUM_THREADS" not in os.environ:
                torch.set_num_threads(1)
            return None
        left[child] = rank
    signal.signal(signal.SIGTERM, lambda *_: _send(left, signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.SIG_IGN)       # the terminal sends it to all of them
    first, signals = 0, [signal.SIGTERM, signal.SIGKILL]
    deadline = float("inf")
    while left:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child in left:
            rank, code = left.pop(child), os.waitstatus_to_exitcode(status)
            if code < 0 and signals:
                say(f"train_step.py: rank {rank} was ended by signal {-code} ({signal.Signals(-code).name})")
            if code and not first:
                first, deadline = code if code > 0 else 128 - code, time.monotonic() + GRACE
            elif code < 0 and first < 128 and len(signals) == 2:   # both ended between two looks, and nobody was told to stop yet
                first = 128 - code
        elif time.monotonic() > deadline and signals:
            _send(left, signals.pop(0))
            deadline += GRACE
        else:
            time.sleep(0.02)
    return first


def _send(left: dict[int, int], number: int) -> None:
    for child in left:
        os.kill(child, number)

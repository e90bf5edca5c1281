#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the order in which our torch-multi runtime posts sends and receives PyTorch's own, message for message?

usage: LUA_CPATH="build/release/?.so;;" tests/torch/runtime_lowering.py [--digests]     (PyTorch >= 2.13, which can defer receives; on the CPU, about 20 s)

Takes the actions of our constructors, lowers them with PyTorch's own functions, and compares each rank's row with ours without what moves no
message (UNSHARD, RESHARD, REDUCE_GRAD) and with pairs written as their halves. With --digests it prints the SHA-256 of PyTorch's rows for
tests/data/pytorch_lowering.txt, so that a machine without PyTorch can compare.
"""
import hashlib
import re
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from torch.distributed.pipelining import schedules as pipelining  # noqa: E402

OURS = """
require "pipeplan"
local engine = require "engine"
local kind, ranks, microbatches, virtual, pairs, receives = table.unpack(arg)
local schedule = assert(engine.schedule{ kind = kind, ranks = tonumber(ranks), microbatches = tonumber(microbatches), virtual = tonumber(virtual) })
io.write(schedule:csv(), "=\\n", assert(schedule:lowered{ runtime = "torch-multi", pairs = pairs, receives = receives }))
"""


def ours(kind, ranks, microbatches, virtual, pairs, receives):
    done = subprocess.run(["lua5.4", "-", kind, str(ranks), str(microbatches), str(virtual), pairs, receives], input=OURS, text=True,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    actions, lowered = done.stdout.split("=\n")
    return [[row.split(",") for row in text.splitlines()] for text in (actions, lowered)]


def halves(cell):
    """(0F1;3B0)OVERLAP_F_B as ["0F1", "3B0"]."""
    return re.findall(r"\d+[A-Z_]+\d*", cell.replace("OVERLAP_F_B", ""))


def torch_lowered(rows, microbatches, pairs, receives):
    """Each row's cells, as PyTorch's runtime would execute them."""
    if pairs == "split":
        rows = [[half for cell in row for half in halves(cell)] for row in rows]
    rank_of = {}
    for rank, row in enumerate(rows):
        for cell in row:
            for half in halves(cell):
                rank_of[int(re.match(r"\d+", half).group())] = rank
    plan = {}
    for rank, row in enumerate(rows):
        actions = [pipelining._Action.from_str(cell) for cell in row]
        plan[rank] = pipelining._add_reduce_grad(pipelining._add_unshard_reshard(actions), microbatches)
    lowered = pipelining._add_send_recv(plan, stage_to_rank=lambda stage: rank_of[stage], num_stages=len(rank_of))
    if receives == "before_use":
        lowered = pipelining._defer_recv_ops(lowered, stage_to_rank=lambda stage: rank_of[stage])
    silent = re.compile(r"UNSHARD|RESHARD|REDUCE_GRAD")
    return [[half for action in lowered[rank] if not silent.search(str(action)) for half in halves(str(action))] for rank in sorted(lowered)]


CASES = [("1f1b", 1), ("gpipe", 1), ("zb_h1", 1), ("zb_h2", 1), ("interleaved_1f1b", 2), ("interleaved_1f1b", 3), ("interleaved_1f1b", 4),
         ("interleaved_1f1b", 5), ("interleaved_zero_bubble", 2), ("interleaved_zero_bubble", 4), ("looped_bfs", 2), ("looped_bfs", 4),
         ("zb_v", 2), ("dualpipev", 2)]

CHOICES = [("in_turn", "early"), ("in_turn", "before_use"), ("split", "early"), ("split", "before_use")]


def main():
    known = subprocess.run(["lua5.4", "-"], input='require "pipeplan" print(table.concat(require("engine").schedule.kinds, " "))', text=True,
                           capture_output=True, check=True).stdout.split()
    digests = "--digests" in sys.argv
    if digests:
        print("# PyTorch's own order of messages (tests/torch/runtime_lowering.py, PyTorch " + torch.__version__ + "): schedule, ranks, "
              "microbatches,\n# virtual, pairs, receives, SHA-256 of the rows, one a rank, each ended by a line feed.")
    compared = wrong = 0
    for kind, virtual in CASES:
        if kind not in known:
            print(f"skipped: {kind} is not a schedule of this build", file=sys.stderr)
            continue
        for ranks in (2, 3, 4, 8):
            for microbatches in (2 * ranks, 4 * ranks):
                for pairs, receives in CHOICES if kind == "dualpipev" else CHOICES[:2]:
                    rows, lowered = ours(kind, ranks, microbatches, virtual, pairs, receives)
                    expected = torch_lowered(rows, microbatches, pairs, receives)
                    if digests:
                        text = "".join(",".join(row) + "\n" for row in expected)
                        print(kind, ranks, microbatches, virtual, pairs, receives, hashlib.sha256(text.encode()).hexdigest())
                    compared += 1
                    if lowered != expected:
                        wrong += 1
                        rank = next(r for r in range(ranks) if lowered[r] != expected[r])
                        at = next((i for i, (a, b) in enumerate(zip(lowered[rank], expected[rank])) if a != b), -1)
                        print(f"{kind} P={ranks} M={microbatches} V={virtual} {pairs} {receives}: rank {rank} differs at {at}: "
                              f"ours {lowered[rank][at]}, PyTorch {expected[rank][at]}")
    print(f"{compared} programs compared, {wrong} differ", file=sys.stderr if digests else sys.stdout)
    sys.exit(1 if wrong or compared == 0 else 0)


if __name__ == "__main__":
    main()

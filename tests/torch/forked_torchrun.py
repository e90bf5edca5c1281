# SPDX-License-Identifier: Apache-2.0
"""forked_torchrun.py: torchrun --nproc-per-node N FILE ARGUMENTS… for tests: its processes are forked, so that PyTorch is imported once for all.
Its command line is read by torchrun's own parser."""
import sys

import torch.distributed.pipelining  # noqa: F401  most of what a process of the examples takes to begin
from torch.distributed.run import parse_args

import processes


def main():
    read = parse_args(sys.argv[1:])
    done = processes.run_file(int(read.nproc_per_node), read.training_script, *read.training_script_args, timeout=800)   # torchrun has no limit
    for _, out, err in done:
        sys.stdout.write(out)
        sys.stderr.write(err)
    sys.exit(max(abs(status) for status, _, _ in done))


main()

"""forked_torchrun.py: torchrun --nproc-per-node N FILE ARGUMENTS… for tests: its processes are forked, so that PyTorch is imported once for all."""
import sys

import torch.distributed.pipelining  # noqa: F401  most of what a process of the examples takes to begin

import processes


def main():
    option, world, script, *arguments = sys.argv[1:]
    if option != "--nproc-per-node":
        sys.exit(f"{option}: expected --nproc-per-node")
    done = processes.run_file(int(world), script, *arguments, timeout=800)   # torchrun has no limit; the test that calls this has
    for _, out, err in done:
        sys.stdout.write(out)
        sys.stderr.write(err)
    sys.exit(max(abs(status) for status, _, _ in done))


main()

"""forked_torchrun.py: torchrun --nproc-per-node N FILE ARGUMENTS… for tests: its processes are forked, so that PyTorch is imported once for all."""
import pathlib
import runpy
import sys

import torch.distributed.pipelining  # noqa: F401  most of what a process of the examples takes to begin

import processes


def main():
    option, world, script, *arguments = sys.argv[1:]
    if option != "--nproc-per-node":
        sys.exit(f"{option}: expected --nproc-per-node")
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(pathlib.Path(script).resolve().parent))
    done = processes.run(int(world), lambda: runpy.run_path(script, run_name="__main__"))
    for _, out, err in done:
        sys.stdout.write(out)
        sys.stderr.write(err)
    sys.exit(max(abs(status) for status, _, _ in done))


main()

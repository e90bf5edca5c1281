#!/bin/sh
# Runs the cross-check against PyTorch's schedules where there is a PyTorch of 2.9 or newer; otherwise says why not and exits 77, which ctest counts
# as skipped. usage: PIPEPLAN=build/release/pipeplan tests/torch/run.sh
cd "$(dirname "$0")/../.." || exit 1
for python in build/torch/bin/python python3; do
  "$python" -c 'from importlib.metadata import version; assert [int(part) for part in version("torch").split(".")[:2]] >= [2, 9]' 2>/dev/null || continue
  exec "$python" -W ignore tests/torch/schedules_test.py
done
echo "skipped: neither build/torch nor python3 has PyTorch 2.9 or newer; scripts/torch installs it"
exit 77

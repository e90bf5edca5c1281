#!/bin/sh
# Runs the cross-check against PyTorch's schedules, our executor of DualPipe, training steps, `pipeplan monitor` on them and the commands of
# README.md's "Running a plan" where there is a PyTorch of 2.9 or newer, and the check of the order of PyTorch's messages where it can defer
# receives, from 2.13 on; otherwise says why not and exits 77, which ctest counts as skipped.
# usage: PIPEPLAN=build/release/pipeplan tests/torch/run.sh
cd "$(dirname "$0")/../.." || exit 1
program=${PIPEPLAN:-build/release/pipeplan}
at_least() {
  "$1" -c 'import sys; from importlib.metadata import version
assert [int(part) for part in version("torch").split(".")[:2]] >= [2, int(sys.argv[1])]' "$2" 2>/dev/null
}
for python in build/torch/bin/python python3; do
  at_least "$python" 9 || continue
  "$python" -W ignore tests/torch/schedules_test.py || exit
  "$python" -W ignore tests/torch/profile_test.py || exit
  "$python" -W ignore tests/torch/fidelity_test.py || exit
  LUA_CPATH="$(dirname "$program")/?.so;;" "$python" -W ignore tests/torch/dualpipe_test.py || exit
  "$python" -W ignore tests/torch/snapshot_test.py || exit
  "$python" -W ignore tests/torch/train_step_test.py || exit
  "$python" -W ignore tests/torch/loop_test.py || exit
  if at_least "$python" 13; then
    LUA_CPATH="$(dirname "$program")/?.so;;" exec "$python" -W ignore tests/torch/runtime_lowering.py
  fi
  echo "not compared: the order of messages, for which PyTorch 2.13 is wanted"
  exit 0
done
echo "skipped: neither build/torch nor python3 has PyTorch 2.9 or newer; scripts/torch installs it"
exit 77

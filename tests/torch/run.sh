#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs one test of this folder where there is a PyTorch of 2.9 or newer (some: of 2.13 or newer, which can defer receives); otherwise says
# why not and exits 77, which ctest counts as skipped.
# usage: PIPEPLAN=build/release/pipeplan tests/torch/run.sh NAME     NAME.py
cd "$(dirname "$0")/../.." || exit 1
: "${PIPEPLAN:=build/release/pipeplan}"
LUA_CPATH="$(dirname "$PIPEPLAN")/?.so;;"
OMP_NUM_THREADS=1   # several processes share the processors, and threads that wait for each other spin
export PIPEPLAN LUA_CPATH OMP_NUM_THREADS
minor=9
case $1 in runtime_lowering|messages_test|launch_train_test) minor=13 ;; esac
for python in build/torch/bin/python python3; do
  "$python" -c 'import sys; from importlib.metadata import version
assert [int(part) for part in version("torch").split(".")[:2]] >= [2, int(sys.argv[1])]' "$minor" 2>/dev/null || continue
  name=$1; shift
  exec "$python" -W ignore "tests/torch/$name.py" "$@"
done
echo "skipped: neither build/torch nor python3 has PyTorch 2.$minor or newer; scripts/torch installs it"
exit 77

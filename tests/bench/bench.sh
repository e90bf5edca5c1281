#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every bench and prints one table: what was timed, the case, its figures, a note. Wants a release build and a quiet machine.
# usage: tests/bench/bench.sh BUILD_DIRECTORY     (cmake --build --preset release --target bench)
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
{
  printf 'bench\tcase\tfigures\tnote\n'
  "$build/tests/schedule_bench"
  python=build/torch/bin/python
  [ -x "$python" ] || python=python3
  "$python" tests/bench/python_bench.py "$build/tests/schedule_bench" "$build/pipeplan"
  "$python" tests/bench/plan_growth.py "$build/pipeplan"
  LUA_CPATH="$build/?.so;;" lua5.4 tests/bench/search_bench.lua
  LUA_CPATH="$build/?.so;;" lua5.4 tests/bench/policy_bench.lua "$build/pipeplan"
  tests/bench/cold_start.sh "$build/pipeplan"
} | awk -F '\t' '{ printf "%-9s %-48s %-55s %s\n", $1, $2, $3, $4; fflush() }'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs specs where it is the first of January 2031 in UTC and the second in Auckland, which is the local time: tests/later.sh SPEC…
# No test knows today's date. Where libfaketime is not installed it says so and ends with 77, which CTest takes for skipped.
set -eu
library=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
if [ -z "$library" ]; then
  echo "skipped: libfaketime is not installed (Debian: faketime)"
  exit 77
fi
place=$(mktemp -d)
trap 'rm -r "$place"' EXIT
# Specs run the program without what is preloaded for their interpreter.
printf '#!/bin/sh\nLD_PRELOAD="%s" exec "%s" "$@"\n' "$library" "$PIPEPLAN" >"$place/pipeplan"
chmod +x "$place/pipeplan"
export TZ=Pacific/Auckland FAKETIME="@2031-01-02 08:00:00" FAKETIME_DONT_FAKE_MONOTONIC=1
export PIPEPLAN="$place/pipeplan" PIPEPLAN_PRELOAD="${PIPEPLAN_PRELOAD:+$PIPEPLAN_PRELOAD:}$library"
if ! "$PIPEPLAN" plan examples/specs/deepseek-v3.json | grep -q "judged at 2031-01-01"; then
  echo "the program does not take the day of UTC that the clock shows, 2031-01-01"
  exit 1
fi
tests/busted.sh "$@"

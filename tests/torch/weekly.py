# SPDX-License-Identifier: Apache-2.0
"""weekly.py: sweeps that are tried whole once a week, with PIPEPLAN_LONG=1 in the environment, and in part always. What is left out is printed."""
import os

LONG = os.environ.get("PIPEPLAN_LONG") == "1"


def of(whole, part, what):
    """whole with PIPEPLAN_LONG=1; else part, and a line that says so. Both are sequences."""
    if LONG:
        return whole
    print(f"{what}: {len(part)} of {len(whole)} are tried; PIPEPLAN_LONG=1 tries all", flush=True)
    return part

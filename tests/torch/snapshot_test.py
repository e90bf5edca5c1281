#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""snapshot_test.py: the table of what is alive at a step's peak (examples/torch/pipeline/snapshot.py), from histories written by hand.

An entry of a history is as PyTorch documents it (torch.cuda.memory._snapshot, device_traces): action, addr, size, time_us, frames.
"""
import os
import sys
import unittest
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/torch"))

from pipeline import snapshot

TORCH = {"filename": "/x/site-packages/torch/nn/functional.py", "line": 9, "name": "gelu"}
MODEL = {"filename": "/home/me/examples/torch/pipeline/model.py", "line": 88, "name": "forward"}


def event(action, address, size, time=0, frames=()):
    return {"action": action, "addr": address, "size": size, "time_us": time, "frames": list(frames)}


class AtThePeak(unittest.TestCase):
    def test_blocks_by_their_line_with_the_actions_that_made_them(self):
        events = [event("alloc", 1, 100, 10, [TORCH, MODEL]), event("segment_alloc", 0, 5000), event("alloc", 2, 50, 21),
                  event("alloc", 3, 100, 22, [TORCH, MODEL]), event("free_requested", 1, 100, 30), event("free_completed", 1, 100, 30),
                  event("alloc", 4, 60, 31)]
        most, action, rows = snapshot.rows_at_peak(events, 1000, [(5, "0F0"), (20, "0I0"), (25, "0W0")])
        self.assertEqual((1250, "0I0"), (most, action))
        self.assertEqual([(1000, 0, snapshot.BEFORE, ""), (200, 2, "model.py:88 forward", "F I"), (50, 1, snapshot.UNKNOWN, "I")], rows)

    def test_what_was_there_before_may_go(self):
        events = [event("free_requested", 7, 400), event("alloc", 7, 900)]
        most, _, rows = snapshot.rows_at_peak(events, 1000, [])
        self.assertEqual(1500, most)
        self.assertEqual([(900, 1, snapshot.UNKNOWN, ""), (600, 0, snapshot.BEFORE, "")], rows)

    def test_a_step_that_only_frees_has_its_peak_before_it(self):
        self.assertEqual((1000, "", [(1000, 0, snapshot.BEFORE, "")]), snapshot.rows_at_peak([event("free_requested", 7, 400)], 1000, []))

    def test_lines_beyond_the_table_are_summed(self):
        text = snapshot.table(3 * 2**30, "0F0", [(2**30, 3, "a.py:1 f", "F"), (2**30, 2, "b.py:1 f", "F"), (2**30, 4, "c.py:1 f", "F")], 1)
        self.assertEqual("    3.000 GiB at the peak, in 0F0\n    1.000      3 a.py:1 f in F\n    2.000      6 2 other lines", text)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""messages_test.py: what PyTorch's runtime dumps by itself, programs with communication (_dump_csv with format="compute_comms"), as `pipeplan
simulate` reads them: the same actions as its compute-only dump, each message counted, in the order that our lowering gives. Without one of its
sends or receives each is refused; so are receives that were deferred in a V, which PyTorch's pass brings out of the order of their sends.

Wants $PIPEPLAN, the program, and PyTorch 2.13 or newer, which can defer receives; run.sh finds both.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest
import warnings
from random import Random

warnings.simplefilter("ignore")

from torch.distributed.pipelining import schedules

CASES = [("ScheduleInterleaved1F1B", 4, 2, 8), ("ScheduleInterleaved1F1B", 2, 3, 4), ("ScheduleInterleavedZeroBubble", 4, 2, 8),
         ("ScheduleInterleavedZeroBubble", 3, 4, 6), ("ScheduleLoopedBFS", 4, 2, 3), ("ScheduleZBVZeroBubble", 4, 2, 8),
         ("ScheduleZBVZeroBubble", 2, 2, 5), ("ScheduleDualPipeV", 4, 2, 8), ("ScheduleDualPipeV", 3, 2, 7)]
IN_A_V = ("ScheduleZBVZeroBubble", "ScheduleDualPipeV")


class Stage:
    """What the constructors read of a stage."""

    has_backward, group, submod, stage_index_to_group_rank = True, None, None, None

    def __init__(self, index, stages, ranks):
        self.stage_index, self.num_stages, self.group_size, self.group_rank = index, stages, ranks, 0
        self.is_first, self.is_last, self.device = index == 0, index == stages - 1, "cpu"


def lowered(name, ranks, virtual, microbatches):
    stages = ranks * virtual
    mine = [0, stages - 1] if name in IN_A_V else [ranks * chunk for chunk in range(virtual)]
    schedule = getattr(schedules, name)([Stage(index, stages, ranks) for index in mine], microbatches, loss_fn=lambda *_: 0)
    if not hasattr(schedule, "pipeline_order_with_comms"):
        schedule._prepare_schedule_with_comms(schedule.pipeline_order)
    return schedule


def dumped(schedule, form):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.csv")
        schedule._dump_csv(path, format=form)
        with open(path, encoding="utf-8") as file:
            return file.read()


def read(text, form="json"):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([os.environ["PIPEPLAN"], "simulate", path, "--format", form], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class Messages(unittest.TestCase):
    def test_a_dump_is_its_actions_and_its_messages_are_in_our_order(self):
        for case in CASES:
            with self.subTest(case=case):
                schedule = lowered(*case)
                text = dumped(schedule, "compute_comms")
                status, out, error = read(text)
                self.assertEqual(0, status, error)
                self.assertEqual({"messages": len(re.findall("SEND_", text)), "order": "early"}, json.loads(out)["communication"])
                self.assertEqual(read(dumped(schedule, "compute_only"), "csv"), read(text, "csv"))

    def test_deferred_receives_are_known_and_those_of_a_v_are_refused(self):
        for case in CASES:
            with self.subTest(case=case):
                schedule = lowered(*case)
                schedule.pipeline_order_with_comms = schedules._defer_recv_ops(schedule.pipeline_order_with_comms,
                                                                              lambda stage: schedule.stage_index_to_group_rank[stage])
                status, out, error = read(dumped(schedule, "compute_comms"))
                if case[0] not in IN_A_V:
                    self.assertEqual((0, "before_use"), (status, json.loads(out)["communication"]["order"]), error)
                elif status != 0:
                    self.assertEqual(1, status)
                    self.assertIn("program.message_order", error)

    def test_without_one_of_its_cells_it_is_refused(self):
        random = Random(1)
        for case in CASES:
            rows = [row.split(",") for row in dumped(lowered(*case), "compute_comms").split()]
            rank = random.randrange(len(rows))
            at = random.choice([i for i, cell in enumerate(rows[rank]) if re.search("SEND|RECV", cell)])
            gone = rows[rank].pop(at)
            status, _, error = read("\n".join(",".join(row) for row in rows) + "\n")
            self.assertEqual(1, status, (case, gone))
            self.assertRegex(error, r"program\.(unmatched|missing)_message")


if __name__ == "__main__":
    unittest.main()

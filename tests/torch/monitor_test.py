"""monitor_test.py: `pipeplan monitor` on the lines that train_step.py really prints (gloo, CPU): a healthy run keeps its plan, one with a slow
rank is rolled back. Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import json
import os
import re
import statistics
import subprocess
import tempfile
import unittest

import processes
from train_step_test import SHAPE, plan_of, run_main

STEPS, WARMUP = 12, 2
PAUSE_MS, ACTIONS = 60, 3 * 8    # of the slow rank, for each F, I and W of 8 microbatches: 1.44 s a step at least
FALLBACK = 4                     # its step over the plan's: far, so that a busy machine decides nothing


class Monitor(unittest.TestCase):
    def run_of(self, folder, plan, csv, name, *options):
        """→ path of the run's iteration lines"""
        log = os.path.join(folder, name)
        done = processes.run(2, run_main, plan, "--schedule", csv, "--shape", SHAPE, "--steps", STEPS, "--metrics", log, "--device", "cpu",
                             "--dtype", "float64", *options)
        self.assertEqual([0, 0], [status for status, _, _ in done], done)
        return log

    def monitor(self, *files):
        done = subprocess.run([os.environ["PIPEPLAN"], "monitor", *files, "--format", "json"], capture_output=True, text=True)
        self.assertEqual("", done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_a_straggler_triggers_it_and_a_healthy_run_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            plan, csv = plan_of(folder, 2)
            with open(self.run_of(folder, plan, csv, "first.log")) as file:
                times = [float(ms) / 1e3 for ms in re.findall(r"iteration \(ms\): ([\d.]+)", file.read())]
            self.assertEqual(STEPS, len(times))
            step = statistics.median(times[WARMUP:])
            self.assertGreater(PAUSE_MS * ACTIONS / 1e3, 1.2 * FALLBACK * step, "this machine is too slow for the test")
            with open(plan) as file:      # what a plan from a profile of this machine would say
                measured = json.load(file)
            measured.update(step_seconds=step, ideal_step_seconds=0.8 * step)
            measured["rollback"].update(threshold_fraction=0.8 / FALLBACK, window_steps=STEPS, warmup_steps=WARMUP, inside_error_band=False,
                                        fallback={"schedule": "1f1b", "pipeline": 2})
            with open(plan, "w") as file:
                json.dump(measured, file)

            status, found = self.monitor(plan, self.run_of(folder, plan, csv, "healthy.log"))
            self.assertEqual((0, "keep"), (status, found["verdict"]), found)
            self.assertEqual((STEPS, [], 0), (found["measured"]["steps"] + sum(group["steps"] for group in found["dropped"]), found["gaps"],
                                              found["restarts"]))
            self.assertGreaterEqual(found["measured"]["steps"], STEPS - WARMUP - 1)   # a busy machine may stall once

            status, found = self.monitor(plan, self.run_of(folder, plan, csv, "straggler.log", "--straggler", f"1:{PAUSE_MS}ms"))
            self.assertEqual((1, "roll_back"), (status, found["verdict"]), found)
            self.assertGreater(found["measured"]["mean_step_seconds"], PAUSE_MS * ACTIONS / 1e3)
            self.assertEqual("1f1b", found["fallback"]["schedule"])


if __name__ == "__main__":
    unittest.main()

"""monitor_test.py: `pipeplan monitor` on the lines that train_step.py really prints (gloo, CPU): a healthy run keeps its plan, one with a slow
rank is rolled back. Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest

import processes
from train_step_test import SHAPE, plan_of, run_main

STEPS, WARMUP = 10, 2
ACTIONS = 3 * 8     # of a rank in a step: F, I and W of 8 microbatches
IDEAL = 0.5         # ideal step over the plan's, which is the fastest of a first run: others may be faster still on a machine less busy
FALLBACK = 6        # its step over the plan's: far, so that a busy machine decides nothing
STRAGGLER = 9       # the slow rank pauses in each action, so that a step takes this many times the plan's at least


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
            step = min(times[WARMUP:])
            pause = STRAGGLER * step / ACTIONS
            with open(plan) as file:      # what a plan from a profile of this machine would say
                measured = json.load(file)
            measured.update(step_seconds=step, ideal_step_seconds=IDEAL * step)
            measured["rollback"].update(threshold_fraction=IDEAL / FALLBACK, window_steps=STEPS, warmup_steps=WARMUP, inside_error_band=False,
                                        fallback={"schedule": "1f1b", "pipeline": 2})
            with open(plan, "w") as file:
                json.dump(measured, file)

            status, found = self.monitor(plan, self.run_of(folder, plan, csv, "healthy.log"))
            self.assertEqual((0, "keep"), (status, found["verdict"]), found)
            self.assertEqual((STEPS - WARMUP, [], 0), (found["measured"]["steps"], found["gaps"], found["restarts"]))

            status, found = self.monitor(plan, self.run_of(folder, plan, csv, "straggler.log", "--straggler", f"1:{pause * 1e3:.3f}ms"))
            self.assertEqual((1, "roll_back"), (status, found["verdict"]), found)
            self.assertGreater(found["measured"]["mean_step_seconds"], 0.99 * STRAGGLER * step)
            self.assertEqual("1f1b", found["fallback"]["schedule"])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/torch/fidelity.py on two processes on the CPU: it profiles, runs schedules, and writes what examples/torch/compare.py reads.

usage: PIPEPLAN=build/release/pipeplan tests/torch/fidelity_test.py     (PyTorch >= 2.9, about a minute)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs

import torch.distributed.pipelining  # noqa: F401  most of what a process takes to begin

import processes
import weekly

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PIPEPLAN = os.path.abspath(os.environ.get("PIPEPLAN", os.path.join(ROOT, "build/release/pipeplan")))
SMALL = "hidden=32,heads=2,ffn=64,sequence_length=16,vocab=64,experts=4"


def fidelity(folder, *arguments):
    """→ the file that it writes, and what it prints"""
    output = os.path.join(folder, "runs.json")
    done = processes.run_file(2, os.path.join(ROOT, "examples/torch/fidelity.py"), "--device", "cpu", "--pipeplan", PIPEPLAN, "--shape", SMALL,
                              "--samples", "2", "--load", "0.05", "--warmup", "1", "--steps", "2", "--blocks", "2", "-o", output, *arguments,
                              timeout=300)
    for status, _, error in done:
        if status:
            raise AssertionError(error[-3000:])
    with open(output) as file:
        return json.load(file), "".join(printed for _, printed, _ in done)


class Fidelity(unittest.TestCase):
    def check(self, models, names):
        with tempfile.TemporaryDirectory() as folder:
            data, _ = fidelity(folder, "--models", ",".join(models), "--microbatches", "4", "--schedules", ";".join(names))
            named = [(run["model"], run["name"]) for run in data["runs"] if not len(set(run["layers_per_stage"])) > 1]
            self.assertEqual(named, [(model, name) for model in models for name in names])
            for run in data["runs"]:
                self.assertEqual((len(run["step_ms"]), run["step_ms"]), (2, sorted(run["step_ms"])))
                self.assertEqual(len(data["profiles"][run["profile"]]["stage"]), len(run["layers_per_stage"]) * (2 if run["schedule"] == "dualpipe" else 1))
                forwards = sum(name.count("F") for row in run["timeline"] for name, _, _ in row)
                self.assertEqual(forwards, 2 * 4 * (2 if run["name"] == "zb_v" else 1), run["name"])     # stages of a microbatch's way × M
            compare = [sys.executable, os.path.join(ROOT, "examples/torch/compare.py"), os.path.join(folder, "runs.json"), "--pipeplan", PIPEPLAN,
                       "--format", "json"]
            done = subprocess.run(compare, text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            for run in json.loads(done.stdout)["runs"]:
                self.assertIsNone(run["problem"])
                self.assertGreater(run["predicted_ms"], 0)

    def test_every_run_has_its_steps_its_timeline_and_a_profile_that_predicts_it(self):
        """All models with all schedules once a week, with PIPEPLAN_LONG=1; else each model with schedules of its own."""
        part = [("ends", "1f1b"), ("ends", "zb_v"), ("moe", "dualpipe")]
        chosen = weekly.of([(model, schedule) for model in ("ends", "moe") for schedule in ("1f1b", "zb_v", "dualpipe")], part, "models with schedules")
        for models in (["ends"], ["moe"]) if chosen is part else (["ends", "moe"],):
            self.check(models, list(dict.fromkeys(schedule for model, schedule in chosen if model in models)))

    def test_what_would_end_after_the_budget_is_left_out_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            data, printed = fidelity(folder, "--models", "dense", "--microbatches", "4", "--schedules", "1f1b;gpipe", "--budget", "0.001")
            self.assertEqual(data["runs"], [])
            self.assertEqual(len(data["not_run"]), 2)
            self.assertIn("left out: no time", printed)


if __name__ == "__main__":
    unittest.main(verbosity=1)

# SPDX-License-Identifier: Apache-2.0
"""trainer_test.py: train_step.py with somebody else's model (own_model.py), the state of its optimizer, and what it refuses and says.

Expected values are plain autograd's and torch.optim's on the whole model in one process, and the plan's own bytes. Wants $PIPEPLAN, the program, and
PyTorch 2.9 or newer; run.sh finds both.
"""
import copy
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "examples", "torch"))

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import own_model
import processes
from pipeline import deferred, failure, gradients, grid as grids, model, trainer
from pipeline.program import parse
from pipeline.update import Update
from pipeline.watchdog import Watchdog
from train_step_test import SHAPE, plan_of, program_of, run_main

OWN = os.path.join(SOURCE, "tests", "torch", "own_model.py")


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_steps(self, world, *arguments, dtype="fp64", timeout=60):
        return processes.run(world, run_main, *arguments, "--device", "cpu", *(["--dtype", dtype] if dtype else []), timeout=timeout)

    def check_passes(self, done):
        self.assertEqual([0] * len(done), [status for status, _, _ in done], "\n".join(error for _, _, error in done))

    def check_says(self, done, status, *expected):
        """Every process ends with that status, says each of these, in one line, and shows no traceback."""
        for rank, (got, out, error) in enumerate(done):
            with self.subTest(rank=rank):
                self.assertEqual(status, got, error)
                self.assertNotIn("Traceback", error)
                self.assertEqual(1, len(error.splitlines()), error)
                for text in expected:
                    self.assertRegex(error, text)
                self.assertNotIn("iteration", out)


class OwnModel(Runs):
    def losses_alone(self, steps, plan_layers=5):
        """Of the whole model, by hand: AdamW on the mean of 8 microbatches, clipped to a norm of 1."""
        shape = own_model.Shape(layers=plan_layers, sequence_length=6, micro_batch_size=1)
        whole = own_model.build_stage(shape, [plan_layers], 0, None, "cpu", torch.float64)
        whole.ends = True
        trained = [weight for weight in whole.parameters() if weight.requires_grad]
        optimizer, lines = torch.optim.AdamW(trained, lr=0.05), []
        for step in range(1, steps + 1):
            given, target = own_model.batch(shape, 8, step, "cpu", torch.float64)
            loss = sum(own_model.loss_of(whole(given[i:i + 1]), target[i:i + 1]) for i in range(8)) / 8
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            lines.append(f"| lm loss: {loss.item():.6E} | loss scale: 1.0 | grad norm: {norm.item():.3f} |")
        return lines

    def test_is_trained_as_in_one_piece(self):
        for schedule, runtime in (("zb_h1", []), ("dualpipev", ["--runtime", "ours"])):
            with self.subTest(schedule=schedule):
                plan, csv = plan_of(self.folder, 2, schedule=schedule)
                log = self.path(schedule)
                self.check_passes(done := self.run_steps(2, plan, "--schedule", csv, "--module", OWN, "--steps", 3, "--optimizer", "adamw", "--lr", 0.05,
                                                         "--check", "--metrics", log, *runtime))
                self.assertIn("checked: ", done[1][1])
                self.assertEqual("", done[0][2] + done[1][2])         # every linear layer waits for W, or the runtime is PyTorch's
                with open(log) as file:
                    found = [re.search(r"\| lm loss: .*? \| loss scale: 1.0 \| grad norm: .*? \|", line)[0] for line in file]
                self.assertEqual(self.losses_alone(3), found)

    def test_its_faults_are_said_in_one_line(self):
        plan, csv = plan_of(self.folder, 2)
        given = [plan, "--schedule", csv, "--module", OWN, "--steps", 2]
        line = next(n for n, text in enumerate(open(OWN), 1) if "no weights here" in text)
        self.check_says(self.run_steps(2, *given, "--shape", "fails=1"), 2, rf"RuntimeError: no weights here \[own_model.py:{line}\]")
        self.check_says(self.run_steps(2, *given, "--shape", "fails=5"), 2, "stages 0 and 1 both have the weight out.weight: expected each weight on one")
        v_plan, v_csv = plan_of(self.folder, 2, schedule="zb_v")
        self.check_says(self.run_steps(2, v_plan, "--schedule", v_csv, "--module", OWN, "--shape", "fails=6"), 2,
                        "word.weight of stage 0 is also out.weight of stage 3: expected each weight on one stage")
        plan_of(self.folder, 2)
        self.check_says(self.run_steps(2, *given, "--shape", "size=5"), 2, '--shape: "size=5": expected NAME=N, .* hidden, words, fails, sizes of .*own_model')
        line = next(n for n, text in enumerate(open(OWN), 1) if "no such word" in text)
        done = self.run_steps(2, *given, "--shape", "fails=2", "--watchdog", 10)
        self.assertEqual([1, 1], [status for status, _, _ in done])
        self.assertRegex(done[1][2], rf"^train_step.py: rank 1, step 2: in 1F0 .*: KeyError: 'no such word' \[own_model.py:{line}\]\n$")
        self.assertRegex(done[0][2], r"^train_step.py: rank 0, step 2: .*: another process has ended: .*\n$")
        done = self.run_steps(2, *given, "--shape", "fails=1", "--traceback")
        self.assertIn("Traceback (most recent call last)", done[1][2])

    def test_a_file_that_is_no_model_is_refused(self):
        plan, csv = plan_of(self.folder, 1, schedule="1f1b")
        for text, message in (("", r"has no build_stage: expected build_stage, batch, loss_of"), ("x = 1 +\n", r"cannot be loaded: SyntaxError.*\[m.py:1\]"),
                              ("import nothing_such\n", r"cannot be loaded: ModuleNotFoundError.*nothing_such.*\[m.py:1\]"),
                              ("def build_stage(a): pass\n", r"build_stage\(a\) does not take 6 arguments"),
                              ("from own_model import *\nclass Shape: pass\n", "Shape has no layers: expected a dataclass with")):
            with self.subTest(message=message):
                with open(self.path("m.py"), "w") as file:
                    file.write(text)
                self.check_says(self.run_steps(1, plan, "--module", self.path("m.py")), 2, message)
        self.check_says(self.run_steps(1, plan, "--module", self.path("n.py")), 2, "n.py: no such file: expected a Python file with build_stage")
        self.check_says(self.run_steps(1, plan, "--module", OWN, "--model", plan), 2, "own_model.py has no sizes_of_config, which would read it")

    def test_a_gradient_that_is_no_number_updates_nothing(self):
        """The loss of step 2 is finite; rank 1's gradients of it are not."""
        plan, csv = plan_of(self.folder, 2)
        log = self.path("log")
        done = self.run_steps(2, plan, "--schedule", csv, "--module", OWN, "--shape", "fails=3", "--steps", 3, "--metrics", log)
        for status, _, error in done:
            self.assertEqual(2, status)
            self.assertRegex(error, r"rank \d: step 2: the norm of the gradient is (nan|inf), and the loss 0\.\d+: expected numbers; weights are as before")
        with open(log) as file:
            self.assertEqual(1, len(file.readlines()))

    def test_under_autocast(self):
        for schedule, runtime in (("zb_h1", []), ("dualpipev", ["--runtime", "ours"])):
            with self.subTest(schedule=schedule):
                plan, csv = plan_of(self.folder, 2, schedule=schedule)
                done = self.run_steps(2, plan, "--schedule", csv, "--module", OWN, "--autocast", "bf16", "--check", *runtime, dtype=None)
                self.check_passes(done)
                loss = float(re.search(r"checked: loss ([\d.]+) and", done[1][1])[1])
                alone = float(re.search(r"lm loss: (\S+)", self.losses_alone(1)[0])[1])
                self.assertLess(1e-6, abs(loss - alone) / alone)                       # products are in bf16
                self.assertLess(abs(loss - alone) / alone, 1e-2)
        self.check_says(self.run_steps(2, plan, "--schedule", csv, "--module", OWN, "--autocast", "bf16"), 2, "expected weights of fp32 under autocast")


class Refused(Runs):
    def test_outputs_that_cannot_be_written(self):
        plan, csv = plan_of(self.folder, 2)
        given = [plan, "--schedule", csv, "--shape", SHAPE]
        for name in ("metrics", "runs", "trace"):
            self.check_says(self.run_steps(2, *given, "--steps", 3, f"--{name}", self.path("none/x")), 2,
                            f"--{name} .*none/x: cannot be written: No such file or directory; expected a file in a folder that there is")
        self.check_says(self.run_steps(2, *given, "--metrics", self.folder), 2, "--metrics .*: cannot be written: Is a directory")
        self.check_says(self.run_steps(2, *given, "--metrics", self.path("x"), "--trace", self.path("./x")), 2, "another output is the same file")

    def test_outputs_that_are_read(self):
        plan, csv = plan_of(self.folder, 2)
        os.link(plan, self.path("linked"))
        before = open(plan).read()
        for option, path, read in (("--metrics", plan, plan), ("--runs", self.path("linked"), plan), ("--trace", csv, csv)):
            self.check_says(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, option, path), 2,
                            f"{option} {path}: it is read as {read}; expected another file")
        self.assertEqual(before, open(plan).read())

    def test_sizes_and_runtimes_that_are_not_the_plans(self):
        plan, csv = plan_of(self.folder, 2, schedule="1f1b")
        self.check_says(self.run_steps(2, plan, "--shape", SHAPE + ",micro_batch_size=4"), 2, "micro_batch_size 4: expected 1, as .*plan.json says")
        self.check_says(self.run_steps(2, plan, "--shape", SHAPE, "--runtime", "torch-multi"), 2,
                        "--runtime torch-multi: PyTorch's own class of 1f1b is torch-single; expected that, or --schedule FILE.csv")
        for name, said in (("sequence_length", 4), ("micro_batch_size", 2)):
            profile = {"at": {"sequence_length": 6, "micro_batch_size": 1, name: said}, "stage": [{"layers": 2}, {"layers": 3}]}
            with open(self.path("profile.json"), "w") as file:
                json.dump(profile, file)
            self.check_says(self.run_steps(2, plan, "--shape", SHAPE, "--profile", self.path("profile.json")), 2,
                            f"profile.json: at.{name} is {said}: expected")
        with open(self.path("profile.json"), "w") as file:
            json.dump({"stage": [{"layers": 2}, {"layers": 2}]}, file)
        self.check_says(self.run_steps(2, plan, "--shape", SHAPE, "--profile", self.path("profile.json")), 2, "its stages have 4 layers: expected 5")
        with open(plan) as file:
            edited = json.load(file)
        with open(plan, "w") as file:
            json.dump({**edited, "global_batch_size": 7}, file)
        self.check_says(self.run_steps(2, plan, "--shape", SHAPE), 2, "plan.json: global_batch_size is 7: expected 8, its 8 microbatches × 1 × 1 replicas")

    def test_faults_of_ranks_and_steps_that_there_are_not(self):
        plan, csv = plan_of(self.folder, 1, schedule="1f1b")
        given = [plan, "--shape", SHAPE, "--steps", 2]
        for option, value, message in (("--straggler", "3:2", "there is no rank 3; expected 0, the only one"),
                                       ("--straggler", "0:2,0:3", "rank 0 is there twice"),
                                       ("--fault", "kill:1:1", "there is no rank 1; expected 0"), ("--fault", "nan:0:3", "there is no step 3; expected 1 to 2"),
                                       ("--fault", "nan:0:0", "there is no step 0; expected 1 to 2")):
            with self.subTest(value=value):
                self.check_says(self.run_steps(1, *given, option, value), 2, f"{option} {value}: {message}")

    def test_recompute_where_it_is_not_legal(self):
        plan, csv = self.plan(schedule="zb_h1", recompute=["norm"])
        self.check_says(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE), 2,
                        "plan.json recomputes norm, and zb_h1 splits backwards: PyTorch's runtime reads in I and again in W .*; expected a plan with")
        plan, csv = self.plan(schedule="1f1b", recompute=["full"])
        self.check_says(self.run_steps(2, plan, "--schedule", csv, "--module", OWN), 2, "own_model.py has no recompute")
        plan, csv = self.plan(schedule="1f1b", recompute=["swiglu"])
        self.check_says(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE), 2, "model.py has no swiglu to recompute: expected some of full")

    def plan(self, recompute, **options):
        plan, csv = plan_of(self.folder, 2, **options)
        with open(plan) as file:
            made = json.load(file)
        with open(plan, "w") as file:
            json.dump({**made, "recompute": recompute}, file)
        return plan, csv

    def test_recompute_where_it_is(self):
        """Gradients are those of the model in one piece, and a block runs as often as its runtime makes it: checkpointed once more, in B or in I; with
        PyTorch's split backward in I and for each of its weights (10 groups of them here are no fact of ours: more than in I alone)."""
        for schedule, recompute, runtime, again in (("1f1b", ["full"], [], 2), ("1f1b", ["norm", "gelu", "core_attention"], [], 1),
                                                    ("dualpipev", ["full"], ["--runtime", "ours"], 2), ("zb_h1", ["full"], [], None)):
            with self.subTest(schedule=schedule, recompute=recompute):
                plan, csv = self.plan(recompute, schedule=schedule)
                counts = processes.run(2, counted, self.path("count"), plan, "--schedule", csv, "--shape", SHAPE, "--check", "--device", "cpu", "--dtype",
                                       "fp64", *runtime)
                self.check_passes(counts)
                self.assertIn("checked: ", counts[1][1])
                with open(self.path("count") + "1") as file:
                    calls, blocks = map(int, file.read().split())
                whole = 5 * 8                                      # the model in one piece runs without a checkpoint
                if again:
                    self.assertEqual(again * 8 * blocks, calls - whole)
                else:
                    self.assertGreater(calls - whole, 2 * 8 * blocks)


def counted(path, *arguments):
    """Writes how often blocks of pipeline/model.py ran on rank 0, and how many it has."""
    calls, forward = 0, model.Block.forward

    def count(self, x):
        nonlocal calls
        calls += 1
        return forward(self, x)
    model.Block.forward = count
    built, build = 0, model.build_stage

    def counting(shape, layers, stage, *rest):
        nonlocal built
        built += layers[stage] if len(layers) > 1 else 0
        return build(shape, layers, stage, *rest)
    model.build_stage = counting
    run_main(*arguments)
    with open(f"{path}{dist_rank()}", "w") as file:
        file.write(f"{calls} {built}")


def dist_rank():
    return os.environ["RANK"]


# ------------------------------------------------------------------------------------------------------------------------------ the optimizer


def update_of(path):
    """In one of two processes that hold the same weights: five updates of weights in bf16 by gradients in fp32, sharded."""
    dist.init_process_group("gloo")
    weights = some_weights()
    update = Update([(None, f"w{i}", weight) for i, weight in enumerate(weights)], {"other": dist.group.WORLD, "expert": None}, torch.optim.AdamW, True,
                    lr=0.01)
    for step in range(5):
        for weight, gradient in zip(weights, some_gradients(step)):
            weight.main_grad = gradient
        update.step()
    torch.save([[weight.data for weight in weights], update.bytes()], f"{path}{dist.get_rank()}")


def some_weights():
    torch.manual_seed(1)
    return [nn.Parameter(torch.randn(size).bfloat16()) for size in ((3, 5), (4, 4), (1,))]


def some_gradients(step):
    torch.manual_seed(100 + step)
    return [torch.randn(weight.shape) for weight in some_weights()]


class Optimizer(Runs):
    def test_sharded_main_weights_are_those_of_one_process(self):
        self.check_passes(processes.run(2, update_of, self.path("w")))
        main = [nn.Parameter(weight.data.float()) for weight in some_weights()]
        alone = torch.optim.AdamW(main, lr=0.01)
        for step in range(5):
            for weight, gradient in zip(main, some_gradients(step)):
                weight.grad = gradient
            alone.step()
        for rank, parts in enumerate(([8 + 8 + 1], [7 + 8 + 0])):
            weights, sizes = torch.load(f"{self.path('w')}{rank}")
            for weight, expected in zip(weights, main):
                self.assertTrue(torch.equal(expected.data.bfloat16(), weight))
            self.assertEqual({"parameters": 2 * 32, "gradients": 4 * 32, "optimizer": (4 + 8) * parts[0]}, sizes)

    def test_bytes_are_those_of_the_plan(self):
        """bf16 with AdamW on two replicas: weights of 2 bytes, gradients of 4, and 12 over 2; 8 over 1 in fp32, where weights are their own main ones."""
        plan, csv = plan_of(self.folder, 2, data=2, schedule="1f1b")
        with open(plan) as file:
            ranks = json.load(file)["memory"]["ranks"]
        done = self.run_steps(4, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 2, dtype="bf16")
        self.check_passes(done)
        found = re.search(r"state of rank (\d), MiB: (.*); in the plan: ([^;]*)(.*)", done[3][1])
        self.assertEqual(found[2], found[3])
        self.assertEqual("; reduction is all here, and scatter there", found[4])
        rank = ranks[int(found[1])]
        self.assertEqual(f"parameters {rank['parameters_bytes'] / 2**20:.3f}, gradients {rank['gradients_bytes'] / 2**20:.3f}, optimizer "
                         f"{rank['optimizer_bytes'] / 2**20:.3f}", found[2])
        # DualPipe's two copies of each stage share a state; an expert's is that of as many as hold the same one
        double, program = plan_of(self.folder, 2, data=2, experts=4, expert=2, schedule="dualpipe", batch=16)
        done = self.run_steps(4, double, "--schedule", program, "--shape", SHAPE + ",experts=4", "--check", dtype="bf16")
        self.check_passes(done)
        self.assertRegex(done[3][1], r"MiB: (parameters [\d.]+, gradients [\d.]+, optimizer [\d.]+); in the plan: \1; reduction is all")
        plan, csv = plan_of(self.folder, 2, data=2, schedule="1f1b")
        done = self.run_steps(4, plan, "--schedule", csv, "--shape", SHAPE, "--optimizer", "sgd", dtype="fp32")
        self.check_passes(done)
        self.assertRegex(done[3][1], "optimizer 0.000; in the plan: .*; precision is fp32 here, and bf16 there; optimizer is sgd here, and adam there; "
                                     "reduction")


# ------------------------------------------------------------------------------------------------------------------------------ W that waits


class Own(nn.Linear):
    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


class Waits(unittest.TestCase):
    """deferred.py: I, then W, against plain autograd."""

    def both(self, module, autocast=None):
        """→ gradients by name, plain and in two, and what waited"""
        out = []
        for split in (False, True):
            made = copy.deepcopy(module)
            if split:
                deferred.defer(made)
            torch.manual_seed(0)
            x = torch.randn(3, 4, 8, requires_grad=True)
            with torch.autocast("cpu", autocast, enabled=autocast is not None):
                y = made(x)
            with deferred.deferring() as waiting:
                y.float().square().sum().backward()
            count = len(waiting)
            deferred.run(waiting)
            out.append({"x": x.grad, **{name: weight.grad for name, weight in made.named_parameters()}})
        return *out, count, deferred.not_deferred(made)

    def check(self, module, waited, named=(), autocast=None, tolerance=1e-6):
        plain, split, count, not_deferred = self.both(module, autocast)
        self.assertEqual((waited, list(named)), (count, not_deferred))
        for name, expected in plain.items():
            with self.subTest(weight=name):
                self.assertEqual(expected is None, split[name] is None)
                if expected is not None:
                    self.assertEqual(expected.dtype, split[name].dtype)
                    self.assertLessEqual((split[name] - expected).norm(), tolerance * expected.norm())

    def test_under_autocast(self):
        self.check(nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 8, bias=False)), 2, autocast=torch.bfloat16, tolerance=0.01)

    def test_frozen_weights(self):
        module = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 8))
        module[0].weight.requires_grad_(False)
        module[2].bias.requires_grad_(False)
        self.check(module, 1)

    def test_subclasses(self):
        self.check(nn.Sequential(own_model.Renamed(8, 6), own_model.Adapted(6, 8)), 3)      # the adapters' two, not the frozen one between

    def test_what_cannot_wait_is_named_and_right(self):
        self.check(nn.Sequential(Own(8, 6), nn.Linear(6, 8)), 1, named=["0 (Own)"])
        with_norm = weight_norm(nn.Linear(6, 8))
        self.check(nn.Sequential(nn.Linear(8, 6), with_norm), 1, named=["1 (ParametrizedLinear)"])

    def test_a_checkpoint_runs_again_once_in_i(self):
        calls = 0

        class Counted(nn.Sequential):
            def forward(self, x):
                nonlocal calls
                calls += 1
                return super().forward(x)

        class Again(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Counted(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 8))

            def forward(self, x):
                return model.again(self.inner)(x)

        self.check(Again(), 2)
        self.assertEqual(2 + 2, calls)

    def test_two_replicas_with_frozen_and_unused_weights(self):
        done = processes.run(2, frozen_and_unused)
        self.assertEqual([0, 0], [status for status, _, _ in done], done)
        torch.manual_seed(3)
        first = nn.Linear(4, 4)
        x = torch.randn(2, 4)
        first(x).sum().backward()
        bias = first.bias.grad / 2          # of replica 0 alone; the other does not use it
        for _, out, _ in done:
            self.assertAlmostEqual(bias.norm().item(), float(out), places=5)


def frozen_and_unused():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    module = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    module[0].weight.requires_grad_(False)
    found = gradients.Gradients({0: module}, grids.Grid(1))
    if dist.get_rank() == 0:
        torch.manual_seed(3)
        nn.Linear(4, 4)
        module[0](torch.randn(2, 4)).sum().backward()
    found.reduce()
    print(found.norm(torch.device("cpu")))


# ------------------------------------------------------------------------------------------------------------------------------ the watchdog


def sleeps(seconds, limit, phase):
    watchdog = Watchdog(limit, 0)
    with watchdog.phase("a phase", phase):
        time.sleep(seconds)
    watchdog.stop()


class Limits(Runs):
    def test_a_phase_of_the_host_has_a_limit_of_its_own(self):
        [(status, _, error)] = processes.run(1, sleeps, 1.5, 0.5, 10)
        self.assertEqual((0, ""), (status, error))
        [(status, _, error)] = processes.run(1, sleeps, 5, 10, 0.7)
        self.assertEqual(1, status)
        self.assertRegex(error, r"rank 0: in a phase \[.*\]: nothing has moved for 0\.\d s, of 0.7 s allowed")

    def test_loading_is_one(self):
        plan, csv = plan_of(self.folder, 1, schedule="1f1b")
        given = [plan, "--module", OWN, "--shape", "fails=4"]
        self.check_passes(self.run_steps(1, *given, "--watchdog", 0.8))
        self.check_says(self.run_steps(1, *given, "--limits", "load=0.8"), 1,
                        r"rank 0: in building the stages .*: nothing has moved for [01]\.\d s, of 0.8 s allowed")
        [(status, _, error)] = self.run_steps(1, *given, "--limits", "lod=1")
        self.assertEqual(2, status)
        self.assertRegex(error, '--limits: "lod=1": expected NAME=SECONDS, NAME one of load, compile, check')

    def test_a_process_that_was_stopped_says_for_how_long(self):
        """Stopped for 3 s, of 1.5 allowed, it goes on; a time in which it could not move is none in which it did not."""
        child = os.fork()
        if child == 0:
            error = os.open(self.path("said"), os.O_WRONLY | os.O_CREAT)
            os.dup2(error, 2)
            watchdog = Watchdog(1.5, 3)
            watchdog.at("0F0")
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGSTOP)
            watchdog.stop()
            os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        time.sleep(3)
        os.kill(child, signal.SIGCONT)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with open(self.path("said")) as file:
            said = file.read()
        self.assertRegex(said, r"^rank 3: in 0F0 \[.*\]: this process was stopped for (2\.[89]|3\.\d) s \(SIGSTOP, .*\); the others waited for it\n$")


# ------------------------------------------------------------------------------------------------------------------------------ what is written


class Written(Runs):
    def test_the_measured_step_as_a_trace(self):
        for schedule, experts in (("zb_v", {}), ("dualpipe", {"experts": 4, "data": 2, "expert": 2, "batch": 16})):
            with self.subTest(schedule=schedule):
                plan, csv = plan_of(self.folder, 2, schedule=schedule, **experts)
                shape = SHAPE + (",experts=4" if experts else "")
                self.check_passes(self.run_steps(4 if experts else 2, plan, "--schedule", csv, "--shape", shape, "--trace", self.path("trace.json")))
                with open(self.path("trace.json")) as file:
                    text = file.read()
                made = json.loads(text)
                with open(csv) as file:
                    program = parse(file.read(), csv, 2 if schedule == "dualpipe" else 1)
                names = [[f"{e['args']['stage']}{e['cat']}{e['args']['microbatch']}" for e in made["traceEvents"] if e["ph"] == "X" and e["pid"] == rank]
                         for rank in range(2)]
                self.assertEqual([list(map(str, program.actions(rank))) for rank in range(2)], names)
                self.assertRegex(made["otherData"]["schedule"], f"^{schedule}, 2 ranks, 8 microbatches: measured on . × CPU")
                checked = subprocess.run([sys.executable, os.path.join(SOURCE, "tests/cli/check_trace.py")], input=text, capture_output=True, text=True)
                self.assertEqual((0, ""), (checked.returncode, checked.stderr))
                kind = [schedule, "--ranks", "2", "--microbatches", "8", "--format", "trace"]
                predicted = json.loads(subprocess.run([os.environ["PIPEPLAN"], "simulate", *kind], capture_output=True, text=True, check=True).stdout)
                self.assertEqual(self.named(predicted), self.named(made))
                self.assertLessEqual(len(self.flows(made)), len(self.flows(predicted)))
                self.assertLessEqual(self.flows(made), self.flows(predicted))
                self.assertGreater(len(self.flows(made)), len(self.flows(predicted)) / 2)

    def test_the_record_has_the_slowest_process_and_the_schedule_that_ran(self):
        """Process 1 is of the second replica: it sleeps 20 ms in each F and B of 4 microbatches."""
        plan, _ = plan_of(self.folder, 2, data=2, schedule="1f1b")
        with open(self.path("gpipe.csv"), "w") as file:
            file.write(program_of("gpipe", 2, 4))
        self.check_passes(self.run_steps(4, plan, "--schedule", self.path("gpipe.csv"), "--shape", SHAPE, "--steps", 2, "--warmup", 1, "--straggler", "1:20ms",
                                         "--runs", self.path("runs.json")))
        with open(self.path("runs.json")) as file:
            run = json.load(file)["runs"][0]
        self.assertGreater(min(run["step_ms"]), 2 * 4 * 20)
        self.assertEqual(["gpipe", "gpipe", "torch-single", 2], [run[name] for name in ("name", "schedule", "runtime", "data")])
        self.assertEqual([16, 6, 1], [run["sizes"][name] for name in ("hidden", "sequence_length", "micro_batch_size")])

    def test_sizes_of_a_shape_are_its_whole_numbers(self):
        @dataclasses.dataclass(slots=True)
        class Shape:
            layers: int = 4
            hidden: int = 8
            causal: bool = True
            seed: int = -1
            scale: float = 0.5
        self.assertEqual({"layers": 4, "hidden": 8}, trainer.sizes(Shape()))

    def named(self, made):
        return [[e["pid"], e["name"], e["args"]] for e in made["traceEvents"] if e["ph"] == "M" and e["tid"] == 0]

    def flows(self, made):
        return {(e["ph"], e["pid"], e["name"], e["id"]) for e in made["traceEvents"] if e["ph"] in "sf"}


def alone(*arguments):
    """train_step.py as it is without torchrun, in a process that has PyTorch already."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        del os.environ[name]
    run_main(*arguments, "--device", "cpu", "--processes", 2)


class WithoutTorchrun(Runs):
    def test_processes_are_started_and_their_words_are_all(self):
        plan, csv = plan_of(self.folder, 2)
        given = [plan, "--schedule", csv, "--module", OWN, "--steps", 3]
        [(status, out, error)] = processes.run(1, alone, *given, "--check")
        self.assertEqual((0, ""), (status, error))
        self.assertIn("checked: ", out)
        self.assertEqual(3, out.count("] iteration "))
        [(status, out, error)] = processes.run(1, alone, *given, "--shape", "fails=1")
        self.assertEqual((2, ""), (status, out))
        self.assertEqual(["train_step.py: rank 0: rank 1 says: RuntimeError: no weights here", "train_step.py: rank 1: RuntimeError: no weights here"],
                         sorted(line.split(" [")[0] for line in error.splitlines()))
        [(status, _, error)] = processes.run(1, alone, *given, "--fault", "kill:1:2")
        self.assertEqual(128 + 9, status)
        self.assertRegex(error, r"(?m)^train_step.py: rank 1 was ended by signal 9 \(SIGKILL\)$")
        self.assertRegex(error, r"(?m)^train_step.py: rank 0, step 2: .*: another process has ended: .*$")
        self.assertEqual(2, len(error.splitlines()))


class Batch(unittest.TestCase):
    def test_a_microbatch_has_the_strides_of_its_shape(self):
        """PyTorch up to 2.11 refuses a stage whose example differs in that from what it is given: seen on a GPU, with tokens of one row."""
        tokens = torch.arange(9).view(1, 9)
        self.assertEqual((9, 1), tokens[:, :-1].contiguous().stride())
        made = trainer.Trainer.__new__(trainer.Trainer)
        made.grid, made.device = types.SimpleNamespace(data=1), torch.device("cpu")
        made.job = types.SimpleNamespace(model=types.SimpleNamespace(batch=lambda *_: (tokens[:, :-1], tokens[:, 1:]), source="own.py"), dtype=torch.float32,
                                         shape=types.SimpleNamespace(micro_batch_size=1), plan=types.SimpleNamespace(microbatches=1))
        input, target = made.batch(1, 0, 1)
        self.assertEqual([(8, 1), (8, 1)], [input.stride(), target.stride()])
        self.assertEqual(list(range(1, 9)), target[0].tolist())


class Check(unittest.TestCase):
    def test_a_loss_that_is_four_per_cent_off_is_noticed_in_bf16(self):
        """Its forwards are the whole model's, so that far less than the 5 % allowed to gradients is."""
        job = types.SimpleNamespace(model=types.SimpleNamespace(reference=lambda *_: (5.0, {"w": None})), shape=None, dtype=None, product=torch.bfloat16)
        made = types.SimpleNamespace(batch=lambda *_: None, grid=types.SimpleNamespace(data=1), job=job, device=None, gradients=None)
        with unittest.mock.patch.object(trainer.gradients, "differences", return_value={"w": 0.005}), \
                unittest.mock.patch.object(trainer.metrics, "gathered", side_effect=lambda mine, _: [mine]):
            self.assertIn("checked: loss 5.01 and 1 gradients", trainer.Trainer.check(made, 1, 5.01))
            for loss in 5.2, 4.8, float("nan"):
                with self.assertRaisesRegex(trainer.Mismatch, "expected at most 0.05, and of the loss 0.005"):
                    trainer.Trainer.check(made, 1, loss)


class OneLine(unittest.TestCase):
    def test_out_of_memory(self):
        text = ("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 3.12 GiB is free. Including non-PyTorch "
                "memory, this process has 76.02 GiB memory in use. If reserved but unallocated memory is large try setting …")
        try:
            try:
                raise torch.OutOfMemoryError(text)
            except torch.OutOfMemoryError as error:
                raise RuntimeError("\n   [Stage 1] failed to run forward:\n   args: …") from error
        except RuntimeError as error:
            said = failure.in_words(error)
        self.assertRegex(said, r"^CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 3.12 GiB is free "
                               r"\[trainer_test.py:\d+\]$")


if __name__ == "__main__":
    unittest.main()

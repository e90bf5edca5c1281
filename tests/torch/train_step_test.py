# SPDX-License-Identifier: Apache-2.0
"""train_step_test.py: steps through a pipeline of processes (gloo, CPU, fp64) have the loss and the gradients of the model in one piece.

The expected values are plain autograd's on the whole model, one microbatch after the other, here and not in the code under test. One process
group for each pipeline depth and model runs all schedules; with experts, where up to eight processes share a processor, one of each kind, unless
PIPEPLAN_LONG=1 is in the environment. Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import functools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "examples", "torch"))

import torch
import torch.distributed as dist

import processes
import weekly
import train_step
from pipeline import grid as grids, model, program as programs, torch_runtime
from pipeline.watchdog import Watchdog

TOLERANCE = 1e-12   # of a gradient's norm, fp64: sums in another order
NAMES = {"gpipe": 1, "1f1b": 1, "zb_h1": 1, "zb_h2": 1, "zb_auto": 1, "interleaved_1f1b": 2, "looped_bfs": 2, "interleaved_zero_bubble": 2,
         "zb_v": 2, "dualpipev": 2, "v_half": 2, "v_min": 2}     # → stages a rank
# What runs: a name, and options of Runner.
CASES = [(name, {}) for name in NAMES] + [
    ("dualpipev", {"pairs": "split"}), ("1f1b", {"runtime": "torch-multi"}), ("1f1b", {"queues": "per_peer"}),
    ("interleaved_1f1b", {"queues": "per_direction"})] + [(name, {"own": name}) for name in torch_runtime.CLASSES]


# Schedules of one stage a rank and of two, in a ring and in a V, with whole and with split backwards.
KINDS = weekly.of(CASES, [(name, {}) for name in ("1f1b", "zb_auto", "interleaved_zero_bubble", "dualpipev")], "schedules with experts")


def pipeplan(*arguments):
    return subprocess.run([os.environ["PIPEPLAN"], *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True).stdout


@functools.cache
def program_of(name, ranks, microbatches):
    virtual = ["--virtual", 2] if name.startswith("interleaved") or name == "looped_bfs" else []
    return pipeplan("simulate", name, "--ranks", ranks, "--microbatches", microbatches, "--format", "csv", *virtual)


def layers_of(stages):
    """Uneven, as plans are: none beside the head, two on the stage after the first."""
    return [1, 2] + [1] * (stages - 3) + [0] if stages > 2 else [2, 1]


def whole_model(shape, batches):
    """→ (loss, {weight: gradient}) of the mean over all microbatches of all batches."""
    whole = model.Stage(shape, 0, shape.layers, True, True).double()
    losses = []
    for input, target in batches:
        for first in range(0, len(input), shape.micro_batch_size):
            output = whole(input[first:first + shape.micro_batch_size])
            wanted = target[first:first + shape.micro_batch_size]
            losses.append(torch.nn.functional.cross_entropy(output.flatten(0, 1), wanted.flatten()) if shape.vocab else output.square().mean())
    mean = sum(losses) / len(losses)
    mean.backward()
    return mean.item(), {name: weight.grad for name, weight in whole.named_parameters()}


def batches_of(ranks, replicas, shape):
    return [model.batch(shape, 2 * ranks, seed=replica, dtype=torch.float64) for replica in range(replicas)]


def run_all(ranks, expert, shape, cases, expected, folder):
    """In one process of many: writes [{case, loss, worst difference, weights, …}] to a file of its own."""
    torch.manual_seed(0)
    grids.start("cpu")
    grid = grids.Grid(ranks, expert)
    watchdog = Watchdog(60, dist.get_rank())
    microbatches, found = 2 * ranks, []
    batches = batches_of(ranks, grid.data, shape)
    for name, options, mutant in cases:
        stages = ranks * NAMES[name]
        layers = layers_of(stages)
        sized = model.dataclasses.replace(shape, layers=sum(layers))
        program = programs.parse(program_of(name, ranks, microbatches), name)
        modules = {s: model.build_stage(sized, layers, s, grid.expert_group, dtype=torch.float64) for s in program.stages_of(grid.rank)}
        runner = torch_runtime.Runner(program, modules, grid, sized, torch.device("cpu"), watchdog=watchdog, **options)
        if mutant:
            mutate(runner, mutant)
        groups = set()
        for stage in runner.stages:
            stage._queued = functools.partial(noted, stage._queued, groups)
        runner.record(True)
        losses = runner.step(*batches[grid.replica])
        found.append({"losses": [loss.item() for loss in losses], "expected_loss": expected[stages][0], "of": sorted(expected[stages][1]),
                      "communicators": len(groups),
                      "timeline": [row[0] for row in runner.timeline()], "program": runner.names, **compared(modules, grid, expected[stages][1])})
    with open(os.path.join(folder, str(dist.get_rank())), "w") as file:
        json.dump(found, file)
    dist.barrier()
    watchdog.stop()


def noted(queued, groups, operations):
    operations = queued(operations)
    groups.update(id(operation.group) for operation in operations)
    return operations


def compared(modules, grid, expected):
    """Sums over replicas here, and compares → {"weights": names, "worst": [difference of the norm, name]}"""
    worst, names = [0, ""], []
    for stage in sorted(modules):
        for name, weight in modules[stage].named_parameters():
            key = modules[stage].key(name)
            names.append(key)
            got = weight.grad.clone()
            parts = [torch.empty_like(got) for _ in range(grid.data)]
            dist.all_gather(parts, got, group=grid.data_group)
            same = grid.expert if ".expert." in name else 1           # the experts of this replica are on every so manyth one
            got = sum(parts[grid.replica % same::same]) / grid.data
            worst = max(worst, [((got - expected[key]).norm() / expected[key].norm()).item(), key])
    return {"weights": names, "worst": worst}


def mutate(runner, mutant):
    """Breaks one thing of one rank's step."""
    stage = runner.stages[0]
    if mutant == "no W":
        whole, stage.backward_weight_one_chunk = stage.backward_weight_one_chunk, lambda *a, **k: None if a[0] == 1 else whole(*a, **k)
    elif mutant == "B twice":
        backward = stage.backward_maybe_with_nosync
        stage.backward_maybe_with_nosync = lambda *a, **k: [backward(*a, **k), [setattr(w, "grad", w.grad * 2) for w in stage.submod.parameters()]][0]
    elif mutant == "input of another":
        forward = stage.submod.forward
        stage.submod.forward = lambda x: forward(x.flip(1))


class Gradients(unittest.TestCase):
    """As many processes as ranks × replicas, two of which share the experts."""

    def check(self, ranks, expert, experts, cases):
        shape = model.Shape(hidden=16, heads=2, ffn=24, layers=1, vocab=19, experts=experts, experts_per_token=2, sequence_length=6, micro_batch_size=2)
        expected = {}                                     # once, and not in each process
        for name in {name for name, _, _ in cases}:
            program_of(name, ranks, 2 * ranks)
            stages = ranks * NAMES[name]
            sized = model.dataclasses.replace(shape, layers=sum(layers_of(stages)))
            expected[stages] = expected.get(stages) or whole_model(sized, batches_of(ranks, expert, shape))
        with tempfile.TemporaryDirectory() as folder:
            done = processes.run(ranks * expert, run_all, ranks, expert, shape, cases, expected, folder, timeout=150)
            self.assertEqual([0] * len(done), [status for status, _, _ in done], "\n".join(error for _, _, error in done))
            by_rank = []
            for rank in range(len(done)):
                with open(os.path.join(folder, str(rank))) as file:
                    by_rank.append(json.load(file))
        return list(zip(cases, zip(*by_rank)))

    def check_equal(self, ranks, expert, experts, cases):
        for (name, options, _), found in self.check(ranks, expert, experts, [(*case, None) for case in cases]):
            with self.subTest(schedule=name, ranks=ranks, expert=expert, **options):
                losses = [loss for one in found for loss in one["losses"]]
                self.assertEqual(2 * ranks * expert, len(losses))
                self.assertAlmostEqual(found[0]["expected_loss"], sum(losses) / len(losses), delta=1e-12)
                self.assertEqual(set(found[0]["of"]), {weight for one in found for weight in one["weights"]})
                for rank, one in enumerate(found):
                    rank //= expert
                    neighbours = 1 if ranks == 2 or (name == "1f1b" and rank in (0, ranks - 1)) else 2      # interleaved stages go round in a ring
                    expected = {"per_peer": neighbours, "per_direction": 2 * neighbours}.get(options.get("queues"), 1)
                    self.assertEqual(expected, one["communicators"])
                    self.assertLessEqual(one["worst"][0], TOLERANCE, one["worst"][1])
                    self.assertEqual(one["program"], one["timeline"])

    def test_dense_on_2_ranks(self):
        self.check_equal(2, 1, 0, CASES)

    def test_dense_on_4_ranks(self):
        self.check_equal(4, 1, 0, CASES)

    def test_experts_on_2_ranks(self):
        self.check_equal(2, 2, 4, KINDS)

    def test_experts_on_4_ranks(self):
        self.check_equal(4, 2, 4, KINDS)

    def test_what_is_broken_is_found(self):
        mutants = [("zb_h1", {}, "no W"), ("1f1b", {}, "B twice"), ("zb_v", {}, "input of another"), ("zb_h1", {}, None)]
        for (_, _, mutant), found in self.check(2, 1, 0, mutants):
            with self.subTest(mutant=mutant):
                worst = max(one["worst"][0] for one in found)
                if mutant:
                    self.assertGreater(worst, 1e-3)
                else:
                    self.assertLessEqual(worst, TOLERANCE)


def plan_of(folder, pipeline, data=1, schedule="zb_h1", layers=5, experts=0, expert=1, batch=8, profile=None):
    """→ paths of a plan and of its program"""
    sizes = {"name": "tiny", "architecture": "moe" if experts else "dense", "layers": layers, "hidden": 16, "heads": 2, "kv_heads": 2, "ffn": 24,
             "gated": False, "norm_bias": True, "vocab": 19, **({"experts": experts, "experts_per_token": 2, "expert_ffn": 24} if experts else {})}
    spec = {"cluster": {"gpus": pipeline * data, "accelerator": "H100-SXM"}, "model": sizes,
            "training": {"tokens": "1B", "sequence_length": 6, "micro_batch_size": 1, "global_batch_size": batch, "precision": "bf16"},
            "parallelism": {"pipeline": pipeline, "data": data, "tensor": 1, "expert": expert, "schedule": schedule}}
    if profile:
        spec["profile"] = "profile.json"
        with open(os.path.join(folder, "profile.json"), "w") as file:
            json.dump(profile, file)
    plan, csv = os.path.join(folder, "plan.json"), os.path.join(folder, "schedule.csv")
    with open(os.path.join(folder, "spec.json"), "w") as file:
        json.dump(spec, file)
    anyway = os.path.join(SOURCE, "examples", "sites", "pipeline-anyway.lua")
    pipeplan("plan", file.name, "--policy", anyway, "--format", "json", "--output", plan)
    with open(csv, "w") as file:
        file.write(program_of(schedule, pipeline, batch // data))
    return plan, csv


SHAPE = "hidden=16,heads=2,ffn=24,vocab=19"


def run_main(*arguments):
    sys.argv = ["train_step.py", *map(str, arguments)]
    train_step.main()


class TrainStep(unittest.TestCase):
    """The script itself, in forked processes that nobody stops but themselves: without torchrun, which ends the others when one has failed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_steps(self, world, *arguments, timeout=100):
        return processes.run(world, run_main, *arguments, "--device", "cpu", "--dtype", "fp64", timeout=timeout)

    def check_passes(self, done):
        self.assertEqual([0] * len(done), [status for status, _, _ in done], "\n".join(error for _, _, error in done))

    def check_fails(self, done, *expected, but=()):
        """All fail, all say why; `but`: processes that were killed and can say nothing."""
        for rank, (status, _, error) in enumerate(done):
            with self.subTest(rank=rank):
                self.assertNotEqual(0, status)
                if rank not in but:
                    for text in expected:
                        self.assertRegex(error, text)

    def test_trains_as_the_model_in_one_piece_does(self):
        plan, csv = plan_of(self.folder, 2)
        log, runs = os.path.join(self.folder, "metrics.log"), os.path.join(self.folder, "runs.json")
        done = self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, "--optimizer", "sgd", "--lr", 0.5, "--check",
                              "--metrics", log, "--runs", runs)
        self.check_passes(done)
        self.assertIn("checked: ", done[1][1])
        self.assertEqual("", done[0][1])            # the last rank alone prints, as Megatron-LM's does
        shape = model.Shape(hidden=16, heads=2, ffn=24, layers=5, vocab=19, sequence_length=6)
        whole = model.Stage(shape, 0, 5, True, True).double()
        with open(log) as file:
            lines = file.read().splitlines()
        self.assertEqual(3, len(lines))
        for step, line in enumerate(lines, 1):
            input, target = model.batch(shape, 8, seed=step, dtype=torch.float64)
            loss = torch.nn.functional.cross_entropy(whole(input).flatten(0, 1), target.flatten())
            whole.zero_grad()
            loss.backward()
            norm = math.sqrt(sum(weight.grad.square().sum().item() for weight in whole.parameters()))
            with torch.no_grad():
                for weight in whole.parameters():
                    weight -= 0.5 * weight.grad * min(1, 1 / norm)          # --clip 1, Megatron-LM's default
            self.assertIn(f" iteration {step:8d}/       3 | consumed samples: {8 * step:12d} | elapsed time per iteration (ms): ", line)
            self.assertIn(f" | global batch size:     8 | lm loss: {loss.item():.6E} | loss scale: 1.0 | grad norm: {norm:.3f} |", line)
        with open(runs) as file:
            [run] = json.load(file)["runs"]
        self.assertEqual([1, "zb_h1", "torch-multi", 2], [len(run["step_ms"]), run["schedule"], run["runtime"], len(run["timeline"])])
        self.assertEqual(program_of("zb_h1", 2, 8), "".join(",".join(row[0] for row in rank) + "\n" for rank in run["timeline"]))

    def check_experts(self, schedule, batch):
        """On two replicas that share the experts: --check passes, and loss and norm printed are the whole model's."""
        plan, csv = plan_of(self.folder, 2, data=2, experts=4, expert=2, schedule=schedule, batch=batch)
        self.check_passes(done := self.run_steps(4, plan, "--schedule", csv, "--shape", SHAPE + ",experts=4", "--check"))
        self.assertIn("checked: ", done[3][1])
        shape = model.Shape(hidden=16, heads=2, ffn=24, layers=5, vocab=19, experts=4, sequence_length=6)
        loss, gradients = whole_model(shape, [model.batch(shape, batch // 2, seed=2 * 1 + replica, dtype=torch.float64) for replica in range(2)])
        norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients.values()))
        self.assertIn(f"| lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} |", done[3][1])

    def test_experts_on_replicas(self):
        self.check_experts("1f1b", 8)

    def test_two_directions(self):
        self.check_experts("dualpipe", 16)

    def test_one_rank_is_no_pipeline(self):
        plan, csv = plan_of(self.folder, 1, schedule="1f1b")
        self.check_passes(done := self.run_steps(1, plan, "--shape", SHAPE, "--check"))
        self.assertIn("checked: ", done[0][1])

    def test_more_ranks_than_processes(self):
        plan, csv = plan_of(self.folder, 4)
        self.check_fails(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE),
                         r"rank \d: .*plan.json is for 4 processes .* there are 2; expected")

    def test_a_program_that_does_not_match(self):
        plan, csv = plan_of(self.folder, 2)
        for text, message in ((program_of("zb_h1", 2, 4), "has 4 microbatches: expected 8, .*; "
                               "`pipeplan simulate zb_h1 --ranks 2 --microbatches 8 --format csv`"),
                              (program_of("zb_h1", 4, 8), "has 4 ranks: expected 2"), (program_of("zb_v", 2, 8), "has 4 stages: expected 2"),
                              ("".join(reversed(program_of("zb_h1", 2, 8).splitlines(True))), "has stage 0 on rank 1: expected 0"),
                              ("0F0,0B0,0X1\n", 'line 1, cell 3: "0X1" is no action; expected'),
                              ("0F0,0B0\n1F0\n", "stage 1 has F for microbatch 0; expected F then B")):
            with self.subTest(message=message), open(csv, "w") as file:
                file.write(text)
                file.flush()
                self.check_fails(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE), r"rank \d: .*schedule.csv.*" + message)

    def test_ranks_that_wait_for_each_other(self):
        plan, csv = plan_of(self.folder, 2, schedule="1f1b", batch=2)
        with open(csv, "w") as file:
            file.write("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
        self.check_fails(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE),
                         r"rank \d: .*schedule.csv: PyTorch cannot run this order, ranks wait")

    def test_more_processes_than_gpus(self):
        plan, csv = plan_of(self.folder, 2)
        done = processes.run(2, run_main, plan, "--schedule", csv, "--shape", SHAPE, "--device", "cuda", "--watchdog", "6")
        if torch.cuda.device_count() < 2:
            self.check_fails(done, rf"rank \d: 2 processes on this host and {torch.cuda.device_count()} GPUs: expected one a process")

    def test_a_model_that_does_not_match(self):
        plan, csv = plan_of(self.folder, 2)
        for shape, message in ((SHAPE + ",layers=6", r"has 6 layers: expected 5, as .*plan.json says \(layers_per_stage"),
                               (SHAPE + ",heads=3", "hidden 16 and 3 heads: expected a multiple"), ("hiden=3", '--shape: "hiden=3": expected NAME=N')):
            with self.subTest(message=message):
                self.check_fails(self.run_steps(2, plan, "--schedule", csv, "--shape", shape), message)

    def test_a_plan_that_was_not_made(self):
        with open(path := os.path.join(self.folder, "plan.json"), "w") as file:
            file.write('{"status": "rejected", "reasons": [{"message": "the model fits one GPU"}]}')
        self.check_fails(self.run_steps(1, path, "--shape", SHAPE), "plan.json: nothing to run, the plan was rejected: the model fits one GPU")
        with open(path, "w") as file:
            file.write("{")
        self.check_fails(self.run_steps(1, path, "--shape", SHAPE),
                         "plan.json: cannot be read: .*; expected what `pipeplan plan SPEC --format json` writes")

    def test_a_loss_that_is_no_number(self):
        plan, csv = plan_of(self.folder, 2)
        self.check_fails(self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, "--fault", "nan:0:2"),
                         r"rank \d: step 2: the loss is nan")

    def test_a_rank_that_dies(self):
        plan, csv = plan_of(self.folder, 4)
        begin = time.monotonic()
        done = self.run_steps(4, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, "--fault", "kill:1:2", "--watchdog", 8)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(-9, done[1][0])
        self.check_fails(done, r"rank \d, step 2: ", but=[1])

    def test_a_rank_that_waits_for_ever(self):
        plan, csv = plan_of(self.folder, 2)
        done = self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, "--fault", "stall:1:2", "--watchdog", 6)
        self.check_fails(done, r"rank \d, step 2: ")
        middle = [str(action) for action in programs.load(csv).actions(1)][len(programs.load(csv).actions(1)) // 2 - 1]
        self.assertRegex(done[1][2], rf"rank 1, step 2: in {middle} \[faults.py:\d+ > faults.py:\d+\]: nothing has moved for 6\.\d s, of 6 s allowed")

    def test_a_slow_rank_slows_the_step(self):
        plan, csv = plan_of(self.folder, 2)
        done = self.run_steps(2, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 2, "--straggler", "1:20ms")
        self.check_passes(done)
        # F, I and W of 8 microbatches on the slow rank
        self.assertGreater(float(re.findall(r"iteration \(ms\): ([\d.]+)", done[1][1])[1]), 3 * 8 * 20)

    def test_monitor_keeps_a_healthy_run_and_rolls_back_one_with_a_slow_rank(self):
        """Ranks sleep for 120 ms in each action, as long as the plan's stages take: 8 · 360 ms and a bubble of 3 · 120. The plan is rolled back over
        the step of 1F1B, 11 · 360 ms: 720 ms later, which a busy machine does not lose. A rank that takes 240 ms has a step of 8 · 720 ms at least.
        Both run at once, for both sleep."""
        times = {"F": 120, "I": 120, "W": 120, "B": 240}
        stage = [{"layers": 2, "embedding": rank == 0, "head": rank == 3, "kind_ms_cold": times, "kind_ms_hot": times} for rank in range(4)]
        plan, csv = plan_of(self.folder, 4, layers=8, profile={
            "source": "by hand", "runtime": "torch-multi", "at": {"sequence_length": 6, "micro_batch_size": 1}, "stage": stage})
        cases = [(120, 0, "keep"), (240, 1, "roll_back")]
        logs = [os.path.join(self.folder, verdict) for _, _, verdict in cases]
        calls = [(4, run_main, plan, "--schedule", csv, "--shape", SHAPE, "--steps", 3, "--metrics", log, "--straggler",
                  f"0:120ms,1:{of_rank_1}ms,2:120ms,3:120ms", "--device", "cpu", "--dtype", "fp64") for (of_rank_1, _, _), log in zip(cases, logs)]
        for (_, status, verdict), log, ran in zip(cases, logs, processes.run_together(calls)):
            with self.subTest(verdict=verdict):
                self.check_passes(ran)
                monitor = [os.environ["PIPEPLAN"], "monitor", plan, log, "--steps", "2-3", "--format", "json"]
                done = subprocess.run(monitor, capture_output=True, text=True)
                self.assertEqual((status, ""), (done.returncode, done.stderr))
                self.assertEqual(verdict, json.loads(done.stdout)["verdict"])


class Slurm(unittest.TestCase):
    """examples/slurm/train_step.sbatch, with an srun and an scontrol of ours: one node whose name is localhost, and the real torchrun."""

    def test_the_script_runs_as_it_is(self):
        with open(os.path.join(SOURCE, "docs/running.md")) as page:
            shown = re.search(r"^(.*)sbatch --nodes 2 (.*)$", page.read(), re.MULTILINE)
        with tempfile.TemporaryDirectory() as folder:
            plan, csv = plan_of(folder, 2)
            with open(config := os.path.join(folder, "config.json"), "w") as file:
                json.dump({"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 5, "intermediate_size": 24, "vocab_size": 19}, file)
            for name, text in (("srun", '[ "$1" = --kill-on-bad-exit=1 ] && shift && exec "$@"'),
                               ("scontrol", '[ "$*" = "show hostnames localhost" ] && echo localhost')):
                with open(path := os.path.join(folder, name), "w") as file:
                    file.write(f"#!/bin/sh\n{text}\n")
                os.chmod(path, 0o755)
            environment = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "SLURM_JOB_ID": str(os.getpid()), "SLURM_JOB_NUM_NODES": "1",
                           "SLURM_JOB_NODELIST": "localhost", "PLAN": plan, "SCHEDULE": csv, "MODEL": config, "STEPS": "2", "GPUS_PER_NODE": "2",
                           "METRICS": os.path.join(folder, "log"), "OPTIONS": "--check --device cpu",
                           "TORCHRUN": os.path.join(os.path.dirname(sys.executable), "torchrun")}
            self.assertEqual(["PLAN", "SCHEDULE", "MODEL", "METRICS"], re.findall(r"([A-Z]+)=", shown[1]))
            script = os.path.join(SOURCE, shown[2])
            done = subprocess.run([script], cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=200)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertIn("checked: ", done.stdout)
            with open(os.path.join(folder, "log")) as file:
                self.assertEqual(2, len(file.readlines()))


if __name__ == "__main__":
    unittest.main()

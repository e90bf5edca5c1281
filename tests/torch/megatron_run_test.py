# SPDX-License-Identifier: Apache-2.0
"""megatron_run_test.py: plans that megatron-core runs on two processes (gloo, CPU): 1F1B, interleaved, uneven stages, experts spread over two.

Expected are Megatron's own model without a pipeline, by plain autograd (loss, gradients), the plan's program (what ran, in which order), and Megatron's
own calls for messages (the order in which pipeplan has them posted). Wants $PIPEPLAN, the program, PyTorch 2.9 or newer, which run.sh finds, and
build/megatron: scripts/megatron.
"""
import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import unittest
import warnings

warnings.simplefilter("ignore")

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("torch", "megatron"):
    sys.path.insert(0, os.path.join(SOURCE, "examples", folder))

import torch
import torch._dynamo  # noqa: F401  which an optimizer would import in every process, for seconds

import processes
import shim
import weekly

PIPEPLAN = os.environ.get("PIPEPLAN", "build/release/pipeplan")
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 8,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 16, "tie_word_embeddings": False}
MIXTRAL = {**LLAMA, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_hidden_layers": 2, "num_local_experts": 4,
           "num_experts_per_tok": 2}
ONE_F_ONE_B = {"pipeline": 2, "data": 1, "schedule": "1f1b", "virtual": 1}
INTERLEAVED = {"pipeline": 2, "data": 1, "schedule": "interleaved_1f1b", "virtual": 2}
OURS = """
require "pipeplan"
local kind, microbatches, virtual = table.unpack(arg)
local schedule = assert(require "engine".schedule { kind = kind, ranks = 2, microbatches = tonumber(microbatches), virtual = tonumber(virtual) })
io.write(assert(schedule:lowered { runtime = "megatron" }))
"""


def pipeplan(*arguments):
    return subprocess.run([PIPEPLAN, *arguments], capture_output=True, text=True, check=True).stdout


def logged(file, arguments, spoil):
    """Runs the file in this process and prints, behind it, the actions of its recorded step with what was posted after each: as JSON."""
    from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator
    import chunks
    from pipeline.timeline import Timeline
    communicate, action, initialize, log = P2PCommunicator._communicate, Timeline.action, chunks.Chunk.initialize, [["", []]]

    def posting(self, **names):
        if Timeline.on:
            for name, word in (("tensor_send_next", "SEND_F"), ("tensor_send_prev", "SEND_B"), ("recv_prev", "RECV_F"), ("recv_next", "RECV_B")):
                if names[name] is not None and names[name] is not False:
                    log[-1][1].append(word)
        return communicate(self, **names)

    def acting(self, name):
        log.append([name, []])
        return action(self, name)

    def started(self, start=Timeline.start):
        start(self)
        Timeline.on = True

    def spoiled(self):
        initialize(self)
        if self.number == spoil:
            next(self.decoder.parameters()).data[0] += 0.5

    Timeline.on, Timeline.start, Timeline.action, P2PCommunicator._communicate, chunks.Chunk.initialize = False, started, acting, posting, spoiled
    sys.argv = [file, *arguments]
    runpy.run_path(file, run_name="__main__")
    print("posted: " + json.dumps([[name, sorted(words)] for name, words in log]), flush=True)


def lowered(schedule, microbatches, virtual):
    """By rank, the same of pipeplan's runtime "megatron"."""
    text = subprocess.run(["lua5.4", "-", schedule, str(microbatches), str(virtual)], input=OURS, capture_output=True, text=True, check=True).stdout
    rows = []
    for line in text.splitlines():
        row = [["", []]]
        for cell in line.split(","):
            message = re.fullmatch(r"\d+((?:SEND|RECV)_[FB])\d+", cell)
            if message: row[-1][1].append(message[1])
            else: row.append([cell, []])
        rows.append([[name, sorted(words)] for name, words in row])
    return rows


class Megatron(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, value=None):
        path = os.path.join(self.folder.name, name)
        if value is not None:
            with open(path, "w") as file:
                file.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def plan(self, model, parallelism, microbatches=4, **training):
        spec = self.path("spec.json", {
            "cluster": {"gpus": 2, "memory_per_gpu": "2GiB", "overhead": "0.3GiB", "flops": "1T", "network": {"per_gpu": "10Gbps"}},
            "model": self.path("config.json", model), "framework": "megatron",
            "training": {"tokens": "1B", "global_batch_size": microbatches * parallelism["data"], "micro_batch_size": 1, "precision": "fp32",
                         "sequence_length": 16, "sharding": "optimizer", "alltoall_overlap": False, **training},
            "parallelism": {"tensor": 1, **parallelism}})
        policy = os.path.join(SOURCE, "examples/sites/pipeline-anyway.lua")
        if parallelism["pipeline"] > 1:
            self.path("plan.csv", pipeplan("plan", spec, "--policy", policy, "--format", "csv"))
        return self.path("plan.json", pipeplan("plan", spec, "--policy", policy, "--format", "json"))

    def torchrun(self, file, *arguments, spoil=None):
        return processes.run(2, logged, os.path.join(SOURCE, "examples/megatron", file), [*arguments, "--device", "cpu"], spoil, timeout=60)

    def checked(self, model, parallelism, *arguments, **more):
        """Runs it with --check. → (the runs file's run, [what each rank posted])"""
        plan, runs = self.plan(model, parallelism, **more), self.path("runs.json")
        program = ["--schedule", self.path("plan.csv")] if parallelism["pipeline"] > 1 else []
        done = self.torchrun("train.py", plan, *program, "--check", "--steps", "2", "--warmup", "1", "--runs", runs, *arguments)
        self.assertEqual([0, 0], [status for status, _, _ in done], done[0][2] + done[1][2])
        self.assertRegex(done[1][1], r"checked: loss [\d.]+ and \d+ gradients are the unpipelined model's")
        self.assertRegex(done[1][1], r" iteration +2/ +2 .* \| lm loss: ")
        with open(runs) as file:
            run = json.load(file)["runs"][0]
        return run, [json.loads(re.search("posted: (.*)", out)[1]) for _, out, _ in done]

    def assert_order(self, run, posted, schedule, microbatches, virtual):
        """What ran is the plan's program; what was posted, and when, is as pipeplan's runtime has it."""
        with open(self.path("plan.csv")) as file:
            planned = [line.strip().split(",") for line in file]
        self.assertEqual([[cell for cell in row if cell] for row in planned], [[name for name, _, _ in rank] for rank in run["timeline"]])
        self.assertEqual(lowered(schedule, microbatches, virtual), posted)

    @unittest.skipUnless(weekly.LONG, "PIPEPLAN_LONG=1 runs it; uneven stages are 1F1B too")
    def test_1f1b(self):
        run, posted = self.checked(LLAMA, ONE_F_ONE_B, microbatches=3)
        self.assert_order(run, posted, "1f1b", 3, 1)
        self.assertEqual([4, 4], run["layers_per_stage"])

    def test_interleaved(self):
        for microbatches in weekly.of((2, 4), (4,), "interleaved, numbers of microbatches"):      # with two, the first rank has all its forwards first
            run, posted = self.checked(LLAMA, INTERLEAVED, microbatches=microbatches)
            self.assert_order(run, posted, "interleaved_1f1b", microbatches, 2)

    def test_uneven_stages_of_tied_embeddings(self):
        run, posted = self.checked({**LLAMA, "tie_word_embeddings": True}, {**ONE_F_ONE_B, "layers_per_stage": [5, 3]})
        self.assert_order(run, posted, "1f1b", 4, 1)
        self.assertEqual([5, 3], run["layers_per_stage"])

    def test_experts_spread_over_replicas(self):
        run, _ = self.checked(MIXTRAL, {"pipeline": 1, "data": 2, "expert": 2})
        self.assertEqual(["0F0", "0B0", "0F1", "0B1"], [name for name, _, _ in run["timeline"][0]][:4])

    def test_a_stage_with_other_weights_is_noticed(self):
        plan = self.plan(LLAMA, ONE_F_ONE_B)
        # stage 1 of the pipeline, which is none of the model in one piece
        done = self.torchrun("train.py", plan, "--check", spoil=1)
        self.assertEqual({2}, {status for status, _, _ in done})
        self.assertRegex(done[1][2], r"train.py: rank 1: --check: loss [\d.]+, expected [\d.]+; the worst gradient is that of decoder\.layers\.")

    def test_what_megatron_is_not_told_here_is_refused(self):
        plan = self.plan(LLAMA, ONE_F_ONE_B)
        with open(plan) as file:
            changed = json.load(file)
        changed["framework_flags"].append("--overlap-moe-expert-parallel-comm")
        done = self.torchrun("train.py", self.path("other.json", changed))
        self.assertIn("other.json wants --overlap-moe-expert-parallel-comm: expected none but", done[0][2])
        changed["framework_flags"].pop()
        changed["spec"]["fields"].append({"field": "training.dropout", "value": True})
        done = self.torchrun("train.py", self.path("other.json", changed))
        self.assertIn("other.json: training.dropout is true: expected a plan without", done[0][2])
        changed["spec"]["fields"].pop()
        changed["training"]["precision"] = "fp8"
        for file in "train.py", "profile_stage.py":
            done = self.torchrun(file, self.path("other.json", changed))
            self.assertRegex(done[0][2], file + ": .*other.json: training.precision is fp8: expected bf16 or fp32")
            self.assertEqual(2, done[0][0])
        changed["framework"] = None
        done = self.torchrun("train.py", self.path("other.json", changed))
        self.assertIn("is a plan of framework None: expected megatron", done[0][2])

    def test_commands_of_the_manual_run_as_written(self):
        """Pasted one after the other; each torchrun is a fork of this process, which has imported Megatron."""
        with open(os.path.join(SOURCE, "docs/running.md")) as file:
            block = re.search(r"^<!-- run by: tests/torch/megatron_run_test.py -->\n```sh\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)[1]
        function, *commands = block.replace("\\\n", "").splitlines()
        os.mkdir(self.path("build"))
        os.symlink(os.path.join(SOURCE, "examples"), self.path("examples"))
        os.symlink(os.path.dirname(os.path.abspath(PIPEPLAN)), self.path("build/release"))
        printed = {}
        for command in commands:
            with self.subTest(command=command):
                printed[command.split()[0]] = self.pasted(function, command)
        self.assertEqual(["plan", "torchrun", "examples/torch/compare.py", "pipeplan"], list(printed))
        self.assertRegex(printed["torchrun"], r"checked: loss [\d.]+ and 100 gradients are the unpipelined model's[\s\S]* iteration +6/ +6 ")
        self.assertRegex(printed["examples/torch/compare.py"], r"\ninterleaved_1f1b +2 [\s\S]*: actions[\s\S]*\nerrors\n")
        self.assert_profile(self.path("build/profile.json"))
        self.assertRegex(printed["pipeplan"], r"(KEEP|UNDECIDED|ROLL BACK) · utilisation [\d.]+ %")

    def assert_profile(self, path):
        """Of examples/models/tiny.json: hidden 256, a vocabulary of 512, and Megatron's biases, which every linear layer has where one has."""
        with open(path) as file:
            made = json.load(file)
        self.assertEqual("megatron", made["runtime"])
        self.assertEqual([(True, False), (False, False), (False, False), (False, True)],
                         [(stage["embedding"], stage["head"]) for stage in made["stage"]])
        self.assertEqual(8, sum(stage["layers"] for stage in made["stage"]))
        layer = (256 + 1) * (3 * 256 + 256 + 1024) + (1024 + 1) * 256 + 2 * 2 * 256
        for stage in made["stage"]:
            ends = stage["embedding"] * 512 * 256 + stage["head"] * (512 * 256 + 2 * 256)
            self.assertEqual(4 * (stage["layers"] * layer + ends), stage["mem"]["weights"])

    def pasted(self, function, command):
        """→ what it prints; a busy machine decides the verdict of monitor."""
        words, environment = shlex.split(command), {**os.environ, "PATH": f"{self.path('build/release')}:{os.environ['PATH']}"}
        if words[0] != "torchrun":
            done = subprocess.run(["bash", "-c", f"{function}\n{command}"], cwd=self.folder.name, env=environment, capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 1) if "monitor" in words else (0,), done.stderr)
            return done.stdout
        self.assertEqual(["torchrun", "--nproc-per-node", "2"], words[:3])
        out = words.pop()[1:] if words[-1].startswith(">") else None
        here = os.getcwd()
        os.chdir(self.folder.name)
        try:
            done = processes.run_file(2, *words[3:], timeout=100)
        finally:
            os.chdir(here)
        self.assertEqual([0, 0], [status for status, _, _ in done], done[0][2] + done[1][2])
        if out:
            self.path(out, done[0][1])
        return done[0][1] + done[1][1]


def main():
    device = torch.device("cpu")
    try:
        shim.load(device)
    except shim.Missing as why:
        print(f"skipped: {why}")
        return 77
    with contextlib.redirect_stderr(io.StringIO()):
        import actions, chunks, steps  # noqa: E401, F401  once, not in every process
    return 0 if unittest.main(exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""launch_train_test.py: two steps of training as a launch that `pipeplan plan --format torchtitan` wrote says: modules of each stage, the schedule
by its name or as the CSV in the launch, batch and microbatches, on gloo and a processor, by PyTorch's own runtime. Losses of both steps are those
of the model in one piece, so that gradients and the update are too. The model has the launch's layers, narrow ones: their width is no part of what
is tried. torchtitan's own trainer hands microbatches on as PyTorch 2.14 takes them, which is not released: hence the runtime under it.

Wants $PIPEPLAN, the program, and PyTorch 2.13 or newer; run.sh finds both.
"""
import os
import re
import shlex
import subprocess
import tempfile
import unittest
import warnings

warnings.simplefilter("ignore")

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, schedules

import processes

WIDTH, STEPS = 16, 2


def launch(*words):
    made = subprocess.run([os.environ["PIPEPLAN"], "plan", "examples/specs/two-ranks-on-a-cpu.json", "--policy", "examples/sites/pipeline-anyway.lua",
                           "--format", "torchtitan", "--global_batch_size", "8", "--micro_batch_size", "2", *words], capture_output=True, text=True,
                          check=True)
    return made.stdout


def read(text):
    """Of a launch: its options, and the text of its CSV or None."""
    program = text.split("<<'CSV'\n")[1].split("\nCSV\n")[0] + "\n" if "<<'CSV'" in text else None
    words = shlex.split(text[text.rindex("exec torchrun"):].replace("\\\n", " "))
    options, key = {}, None
    for word in words:
        if word.startswith("--"): key = word[2:].split(".")[-1]
        if word.startswith("--"): options[key] = []
        elif key: options[key].append(word)
    return options, program


def module_of(name):
    """Of one name of the model: the same weights wherever it stands."""
    torch.manual_seed(sum(map(ord, name)) * 7919)
    wide = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)
    return nn.Sequential(wide, nn.Tanh()) if name.startswith("layers.") else wide


def part_of(names):
    return nn.Sequential(*[module_of(name) for name in names.split(",")])


def batch_of(step, rows):
    torch.manual_seed(1000 + step)
    return torch.randn(rows, WIDTH, dtype=torch.float64), torch.randn(rows, WIDTH, dtype=torch.float64)


def loss_of(got, want):
    return ((got - want) ** 2).sum() / 64   # a sum, so that microbatches add up


def alone(parts, rows):
    model, losses = nn.Sequential(*[part_of(part) for part in parts]), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        given, wanted = batch_of(step, rows)
        loss = loss_of(model(given), wanted)
        losses.append(float(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def own_stages(name, program, rank, ranks, count):
    """The stages of a rank: of the CSV, or as torchtitan places them by the name."""
    if program:
        cells = program.splitlines()[rank].split(",")
        return sorted({int(re.match(r"\d+", cell)[0]) for cell in cells if cell})
    if name in ("ZBVZeroBubble", "DualPipeV"): return [rank, 2 * ranks - 1 - rank]
    return list(range(rank, count, ranks))


def train(options, program):
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts, name = options["module_fqns_per_model_part"], options["pipeline_parallel_schedule"][0]
    rows, small = int(options["local_batch_size"][0]), int(options["pipeline_parallel_microbatch_size"][0])
    mine = own_stages(name, program, rank, ranks, len(parts))
    shaped = torch.zeros(small, WIDTH, dtype=torch.float64)   # given, for what finds shapes by itself wants numpy
    stages = [PipelineStage(part_of(parts[index]), index, len(parts), torch.device("cpu"), input_args=shaped.clone().requires_grad_(index > 0),
                            output_args=shaped.clone().requires_grad_()) for index in mine]
    kind = schedules._PipelineScheduleRuntime if program else schedules.get_schedule_class(name)
    several = issubclass(kind, schedules.PipelineScheduleMulti)
    schedule = kind(stages if several else stages[0], rows // small, loss_fn=loss_of, scale_grads=False)
    if program:
        with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file: file.write(program)
        schedule._load_csv(file.name)
        os.unlink(file.name)
    optimizer = torch.optim.SGD([weight for stage in stages for weight in stage.submod.parameters()], lr=0.1)
    for step in range(STEPS):
        given, wanted = batch_of(step, rows)
        losses = []
        optimizer.zero_grad()
        schedule.step(*([given] if 0 in mine else []), **({"target": wanted, "losses": losses} if len(parts) - 1 in mine else {}))
        optimizer.step()
        if len(parts) - 1 in mine: print(repr(float(sum(losses))), flush=True)
    dist.barrier()
    dist.destroy_process_group()


class Launches(unittest.TestCase):
    def test_two_steps_from_an_export_have_the_losses_of_the_model_without_a_pipeline(self):
        for words, csv, stages in (("--schedule 1f1b --virtual 1", False, 2), ("--schedule interleaved_1f1b --virtual 2", False, 4),
                                   ("--schedule zb_h1 --virtual 1", True, 2), ("--schedule zb_v --virtual 1", False, 4)):
            with self.subTest(words):
                options, program = read(launch(*words.split()))
                self.assertEqual((csv, stages), (program is not None, len(options["module_fqns_per_model_part"])))
                rows, small = int(options["local_batch_size"][0]), int(options["pipeline_parallel_microbatch_size"][0])
                self.assertEqual((8, 2), (rows, small))
                done = processes.run(2, train, options, program)
                self.assertEqual([0, 0], [status for status, _, _ in done], done)
                got = [float(line) for _, out, _ in done for line in out.split()]
                want = alone(options["module_fqns_per_model_part"], rows)
                self.assertEqual(STEPS, len(got))
                for a, b in zip(got, want): self.assertAlmostEqual(a, b, delta=1e-12 * abs(b))
                self.assertNotEqual(want[0], want[1])

    def test_stages_that_lack_a_layer_have_another_loss(self):
        options, program = read(launch("--schedule", "1f1b", "--virtual", "1"))
        parts = options["module_fqns_per_model_part"]
        other = [parts[0].replace(",layers.3", ""), parts[1]]
        self.assertNotAlmostEqual(alone(parts, 8)[0], alone(other, 8)[0], places=9)


if __name__ == "__main__":
    unittest.main()

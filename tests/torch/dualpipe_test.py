#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dualpipe_test.py: our executor of DualPipe and DualPipeV (examples/torch/pipeline/dualpipe.py) on real processes, over gloo on the CPU.

Losses and gradients are those of the unpipelined model, which plain autograd computes (fp64); messages are posted in the order that the engine's
deepseek runtime has, which is held against DeepSeek's own step() elsewhere (tests/oracles/deepseek_messages.py). Processes are forked once for
each grid and run all of its cases: without experts of three numbers of microbatches, with experts, where eight processes share a processor, of one, unless
PIPEPLAN_LONG=1 is in the environment.

Wants $PIPEPLAN, the program, LUA_CPATH for lua5.4 to find the engine's module, and PyTorch 2.9 or newer; run.sh finds them.
"""
import functools
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples/torch"))

import torch
import torch.distributed as dist

from pipeline import deepseek, dualpipe, eight_steps, model, program
from pipeline.grid import Grid
from pipeline.watchdog import Watchdog

import weekly

KINDS = "dualpipe", "dualpipev"

LOWERED = """
require "pipeplan"
local kind, ranks, microbatches = table.unpack(arg)
local schedule = assert(require("engine").schedule{ kind = kind, ranks = tonumber(ranks), microbatches = tonumber(microbatches) })
io.write(assert(schedule:lowered{ runtime = "deepseek" }))
"""


def output_of(command, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


def program_of(kind, ranks, microbatches):
    command = [os.environ["PIPEPLAN"], "simulate", kind, "--ranks", str(ranks), "--microbatches", str(microbatches), "--format", "csv"]
    return program.parse(output_of(command), f"{kind} of {ranks} ranks", 2 if kind == "dualpipe" else 1)


def lowered(kind, ranks, microbatches):
    return [row.split(",") for row in output_of(["lua5.4", "-", kind, str(ranks), str(microbatches)], input=LOWERED).splitlines()]


def forked(processes, work):
    """Results of work(rank) in that many processes that talk over gloo, by rank. Raises what any of them raised."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(processes):
            child = os.fork()
            if child == 0:
                os._exit(_in_child(rank, processes, work, folder))
            children.append(child)
        status = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        results = []
        for rank in range(processes):
            path = os.path.join(folder, str(rank))
            results.append(pickle.load(open(path, "rb")) if os.path.exists(path) else f"no result, exit status {status[rank]}")
        failed = [result for result, code in zip(results, status) if code != 0]
        if failed:
            raise AssertionError("\n".join(map(str, failed)))
        return results


def _in_child(rank, processes, work, folder):
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=processes)
        result, status = work(rank), 0
    except BaseException:
        result, status = traceback.format_exc(), 1
    with open(os.path.join(folder, str(rank)), "wb") as file:
        pickle.dump(result, file)
    if status == 0:
        dist.barrier()
    return status


def shape_of(experts, slices):
    return model.Shape(hidden=16, heads=2, ffn=24, layers=slices + 1, vocab=32, experts=experts, sequence_length=6, micro_batch_size=2)


def build(what, grid, shape):
    layers = [2] + [1] * (what.slices - 1)
    return {stage: model.build_stage(shape, layers, part, grid.expert_group, dtype=torch.float64)
            for stage, part in dualpipe.stages_of(what, grid.rank).items()}


@functools.cache
def unpipelined(shape, microbatches, replicas):
    """(losses by replica and microbatch, gradients by weight) of the mean over all of them, by plain autograd."""
    whole = model.build_stage(shape, [shape.layers], 0, dtype=torch.float64)
    losses = {}
    for replica in range(replicas):
        input, target = model.batch(shape, microbatches, seed=replica)
        for microbatch, (x, y) in enumerate(zip(input.split(shape.micro_batch_size), target.split(shape.micro_batch_size))):
            loss = model.loss_of(whole(x), y)
            (loss / (microbatches * replicas)).backward()
            losses[replica, microbatch] = loss.item()
    return losses, {name: weight.grad for name, weight in whole.named_parameters()}


def compare(executor, modules, shape, steps=1):
    """Runs steps and returns (worst error of a loss, worst error of a gradient), relative to the largest number of the tensor."""
    what, grid = executor.program, executor.grid
    losses, gradients = unpipelined(shape, what.microbatches, grid.data)
    for _ in range(steps):
        found = executor.step(*executor.share(*model.batch(shape, what.microbatches, seed=grid.replica)))
    executor.reduce()
    first = 0 if executor.finishes() is None else executor.finishes() * executor.each
    of_loss = max((abs(loss.item() / losses[grid.replica, first + i] - 1) for i, loss in enumerate(found)), default=0)
    of_gradient = 0
    for module in modules.values():
        for name, weight in module.named_parameters():
            expected = gradients[module.key(name)] * steps
            of_gradient = max(of_gradient, ((weight.grad - expected).abs().max() / expected.abs().max()).item())
    return len(found), of_loss, of_gradient


class Equality(unittest.TestCase):
    def check(self, ranks, replicas, expert, microbatches, experts=0, make=dualpipe.Executor):
        programs = [program_of(kind, ranks, count) for kind, count in itertools.product(KINDS, microbatches)]

        for what in programs:
            unpipelined(shape_of(experts, what.slices), what.microbatches, replicas)      # once, and not in each process

        def work(_):
            grid = Grid(ranks, expert)
            found = []
            for what in programs:
                shape = shape_of(experts, what.slices)
                modules = build(what, grid, shape)
                executor = make(what, modules, grid, shape)
                executor.record(True)
                found.append((*compare(executor, modules, shape), [name for name, _, _ in executor.timeline()] == list(map(str, what.actions(grid.rank)))))
            return found

        results = forked(ranks * replicas, work)
        for number, what in enumerate(programs):
            with self.subTest(program=what.source, microbatches=what.microbatches):
                of_rank = [result[number] for result in results]
                self.assertEqual(what.microbatches * replicas, sum(losses for losses, *_ in of_rank))
                for _, of_loss, of_gradient, in_order in of_rank:
                    self.assertLess(of_loss, 1e-13)
                    self.assertLess(of_gradient, 1e-12)
                    self.assertTrue(in_order)

    def test_dense_with_embedding_and_head_on_two_ranks(self):
        self.check(2, 1, 1, [4, 6, 8])

    def test_dense_with_embedding_and_head_on_four_ranks(self):
        self.check(4, 1, 1, [8, 10, 16])

    def test_two_replicas_of_a_dense_model(self):
        self.check(2, 2, 1, [4])

    def test_experts_on_two_ranks(self):
        self.check(2, 2, 2, weekly.of([4, 6, 8], [6], "experts on two ranks, numbers of microbatches"), experts=4)

    def test_experts_on_four_ranks(self):
        self.check(4, 2, 2, weekly.of([8, 10, 16], [10], "experts on four ranks, numbers of microbatches"), experts=4)

    def test_experts_that_two_groups_have(self):
        self.check(2, 4, 2, [4], experts=4)

    @unittest.skipUnless(os.environ.get("DUALPIPE"), "the folder of DeepSeek's package is not in $DUALPIPE")
    def test_deepseeks_own_package(self):
        def make(*given):
            return deepseek.Runner(os.environ["DUALPIPE"], *given)

        self.check(2, 1, 1, [4, 6, 8], make=make)
        self.check(4, 1, 1, [8, 10], make=make)
        self.check(2, 2, 2, [4], experts=4, make=make)

    def test_steps_add_gradients(self):
        what = program_of("dualpipe", 2, 4)

        def work(_):
            grid, shape = Grid(2), shape_of(0, what.slices)
            modules = build(what, grid, shape)
            return compare(dualpipe.Executor(what, modules, grid, shape), modules, shape, steps=2)

        for _, of_loss, of_gradient in forked(2, work):
            self.assertLess(of_loss, 1e-13)
            self.assertLess(of_gradient, 1e-12)


class Order(unittest.TestCase):
    def test_messages_are_posted_in_the_order_of_the_engine(self):
        """For real, on four ranks; and for many shapes what an executor would post."""
        cases = [(kind, 4, microbatches) for kind, microbatches in itertools.product(KINDS, (8, 10, 16))]
        programs = [program_of(*case) for case in cases]

        def work(_):
            grid = Grid(4)
            logs = []
            for what in programs:
                shape = shape_of(0, what.slices)
                executor = dualpipe.Executor(what, build(what, grid, shape), grid, shape)
                logs.append(executor.log())
                executor.step(*executor.share(*model.batch(shape, what.microbatches)))
            return logs

        results = forked(4, work)
        for number, case in enumerate(cases):
            with self.subTest(case=case):
                self.assertEqual(lowered(*case), [logs[number] for logs in results])

    def test_so_they_are_for_other_numbers_of_ranks(self):
        for kind, ranks in itertools.product(KINDS, (1, 2, 3, 6, 8)):
            if kind == "dualpipe" and ranks % 2:
                continue
            for microbatches in 2 * ranks, 2 * ranks + 2, 4 * ranks:
                with self.subTest(kind=kind, ranks=ranks, microbatches=microbatches):
                    what = program_of(kind, ranks, microbatches)
                    rows = [[str(part) for cell, group in itertools.zip_longest(row, groups) for part in (*group, *([dualpipe.text_of(cell)] if cell else []))]
                            for row, groups in zip(what.rows, eight_steps.groups(what))]
                    self.assertEqual(lowered(kind, ranks, microbatches), rows)

    def test_what_is_not_the_eight_steps_is_refused(self):
        good = program_of("dualpipe", 2, 4)
        lines = good.text.splitlines()
        swapped = lines[0].split(",")
        swapped[0], swapped[1] = swapped[1], swapped[0]
        for text, directions, expected in (
                ("\n".join([",".join(swapped), *lines[1:]]), 2, "rank 0, action 1 is 3F0; DualPipe and DualPipeV have F of stage 0 there"),
                (program_of("dualpipe", 2, 8).text, 1, "rank 0, action 2 is 3F0; DualPipe and DualPipeV have F of stage 0 there"),
                (good.split().text, 2, "rank 0, action 5 is 3F1; DualPipe and DualPipeV have FB of stage 3 and 0 there"),
                ("\n".join(reversed(lines)), 2, "x.csv: its stages are on ranks (1, 0, 0, 1); DualPipe and DualPipeV have stages r and 3 - r on rank r"),
                (program_of("zb_v", 2, 4).text, 1, "rank 0, action 8 is 3I1; DualPipe and DualPipeV have FB of stage 0 and 3 there"),
                (program_of("zb_v", 2, 3).text, 1, "x.csv: 3 microbatches; DualPipe and DualPipeV want 2 for each of 2 ranks at least"),
        ):
            with self.subTest(expected=expected):
                with self.assertRaises(program.Mismatch) as refused:
                    eight_steps.groups(program.parse(text, "x.csv", directions))
                self.assertIn(expected, str(refused.exception))


class Steps(unittest.TestCase):
    def run_one(self, kind, ranks, microbatches, observe):
        """observe(executor, run one step) → result of each rank."""
        what = program_of(kind, ranks, microbatches)

        def work(_):
            grid, shape = Grid(ranks), shape_of(0, what.slices)
            modules = build(what, grid, shape)
            executor = dualpipe.Executor(what, modules, grid, shape)
            return observe(executor, lambda: executor.step(*executor.share(*model.batch(shape, microbatches))))

        return what, forked(ranks, work)

    def test_activations_held_at_once(self):
        """DualPipe P + 1, DualPipeV 2P + 1 chunks on every rank, freed at W: counted in DeepSeek's own order, where an F of a pair comes first."""
        def observe(executor, step):
            most, compute = 0, executor._compute

            def counted(action):
                nonlocal most
                most = max(most, 1 + len(executor.root) + len(executor.waiting))
                return compute(action)
            executor._compute = counted
            step()
            left = len(executor.root) + len(executor.waiting) + len(executor.leaf) + len(executor.arrived) + len(executor.leaving)
            return most, left

        for kind, expected in ("dualpipe", 5), ("dualpipev", 9):
            _, results = self.run_one(kind, 4, 16, observe)
            self.assertEqual([(expected, 0)] * 4, results)

    def test_timeline_of_the_recorded_step(self):
        def observe(executor, step):
            step()
            before = executor.timeline()
            executor.record(True)
            step()
            return before, executor.timeline()

        what, results = self.run_one("dualpipe", 2, 6, observe)
        for rank, (before, rows) in enumerate(results):
            self.assertEqual([], before)
            self.assertEqual([str(action) for action in what.actions(rank)], [name for name, _, _ in rows])
            moments = [moment for _, start, end in rows for moment in (start, end)]
            self.assertEqual(sorted(moments), moments)

    def test_pairs_go_to_the_function_that_was_given(self):
        what = program_of("dualpipe", 2, 6)

        def work(rank):
            grid, shape = Grid(2), shape_of(0, what.slices)
            modules = build(what, grid, shape)
            calls = []

            def overlapped(ahead, forward, behind, backward):
                calls.append([stage for module in (ahead, behind) for stage in modules if modules[stage] is module])
                backward()
                return forward()
            executor = dualpipe.Executor(what, modules, grid, shape, overlapped_forward_backward=overlapped)
            executor.record(True)
            errors = compare(executor, modules, shape)
            pairs = [cell for cell in what.rows[rank] if len(cell) == 2]
            names = [name for name, _, _ in executor.timeline()]
            return calls == [[action.stage for action in cell] for cell in pairs], names == list(map(dualpipe.text_of, what.rows[rank])), errors

        for called, named, (_, of_loss, of_gradient) in forked(2, work):
            self.assertTrue(called and named)
            self.assertLess(max(of_loss, of_gradient), 1e-12)

    def test_a_share_of_the_wrong_size_is_refused(self):
        def observe(executor, step):
            try:
                executor.step(torch.zeros(3, 6, dtype=torch.long), torch.zeros(3, 6, dtype=torch.long))
            except program.Mismatch as refused:
                return str(refused)

        _, results = self.run_one("dualpipe", 2, 4, observe)
        self.assertEqual([f"rank {rank}, input: 3 sequences; expected 4, 2 microbatches of 2" for rank in range(2)], results)


class Stuck(unittest.TestCase):
    def test_the_message_that_does_not_come_is_named(self):
        """Rank 1 sleeps in its first action; rank 0 says what it waits for, and both end. Rank 1 later, so that it is not its end that ends rank 0."""
        what = program_of("dualpipe", 2, 4)
        said = tempfile.TemporaryFile()

        def work(rank):
            os.dup2(said.fileno(), 2)
            grid, shape = Grid(2), shape_of(0, what.slices)
            executor = dualpipe.Executor(what, build(what, grid, shape), grid, shape, watchdog=Watchdog(1.5 if rank == 0 else 5, rank))
            if rank == 1:
                executor._compute = lambda action: time.sleep(60)
            executor.step(*executor.share(*model.batch(shape, 4)))

        began = time.monotonic()
        with self.assertRaises(AssertionError):
            forked(2, work)
        self.assertLess(time.monotonic() - began, 20)
        said.seek(0)
        text = said.read().decode()
        self.assertIn("rank 0, step 1: in messages before 3F0: 0SEND_F0 to rank 1, 3RECV_F0 from rank 1", text)
        self.assertIn("rank 1, step 1: in 2F0", text)


if __name__ == "__main__":
    unittest.main()

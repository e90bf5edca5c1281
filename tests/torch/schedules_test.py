# SPDX-License-Identifier: Apache-2.0
"""schedules_test.py: our schedules against PyTorch's own classes (torch.distributed.pipelining.schedules), without processes or GPUs.

Two things are checked. The class and our constructor put the same actions in the same order on every rank; of a class with several stages a rank that
is the table it hands to its runtime (its blanks do not count), of one with a single stage the calls that its step makes. And what
`pipeplan simulate --format csv` prints is loaded, validated, lowered to sends and receives and run dry by PyTorch's runtime class.

Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import os
import subprocess
import tempfile
import unittest
import warnings
from random import Random
from unittest import mock

warnings.simplefilter("ignore")  # of numpy, which nothing here needs

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining.stage import PipelineStage

import weekly


def ours(kind, ranks, microbatches, chunks=1, *options):
    command = [os.environ["PIPEPLAN"], "simulate", kind, "--ranks", str(ranks), "--microbatches", str(microbatches), "--format", "csv", *options]
    if chunks > 1:
        command += ["--virtual", str(chunks)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def mock_stages(ranks, chunks):
    """What a constructor reads of a rank's stages, as PyTorch's _schedule_visualizer.get_schedule_ops does it."""
    stage = mock.MagicMock(spec=PipelineStage)
    stage.group_rank, stage.group_size, stage.num_stages, stage.submod = 0, ranks, ranks * chunks, None
    return [stage] * chunks


def step_of_single(kind, rank, ranks, microbatches):
    """
    The forwards and backwards that step() of a single-stage class runs. Their pipeline_order, which only pictures are drawn from, is not it: up
    to 2.13 at least Schedule1F1B's starts the last rank with microbatch 1.
    """
    [stage] = mock_stages(ranks, 1)
    stage.group_rank = stage.stage_index = rank
    order = []
    stage.forward_one_chunk.side_effect = lambda microbatch, *_, **__: order.append(f"{rank}F{microbatch}")
    stage.backward_one_chunk.side_effect = lambda microbatch, *_, **__: order.append(f"{rank}B{microbatch}")
    schedule = kind(stage, microbatches, loss_fn=mock.Mock())
    with mock.patch.multiple(schedules, _batch_p2p=mock.DEFAULT, _sorted_batch_p2p=mock.MagicMock(return_value={}), _wait_batch_p2p=mock.DEFAULT), \
            mock.patch.multiple(schedule, _initialize_stage=mock.DEFAULT, _maybe_compute_loss=mock.DEFAULT, _maybe_get_loss=mock.DEFAULT,
                                _update_losses=mock.DEFAULT):
        schedule._step_microbatches()
    return order


def theirs(name, ranks, microbatches, chunks=1):
    kind = schedules.get_schedule_class(name)
    if issubclass(kind, schedules.PipelineScheduleSingle):
        return "".join(",".join(step_of_single(kind, rank, ranks, microbatches)) + "\n" for rank in range(ranks))
    order = kind(mock_stages(ranks, chunks), microbatches).pipeline_order
    computed = {rank: [action for action in order[rank] if action is not None and action.computation_type != schedules.REDUCE_GRAD] for rank in order}
    return "".join(",".join(map(str, computed[rank])) + "\n" for rank in range(ranks))


DEPTHS = weekly.of(range(2, 9), (2, 3, 4, 6), "depths of pipelines")


def depths():
    """Odd and even, a power of two or not; the others once a week."""
    return DEPTHS


def few_and_many(ranks):
    """At least P, multiples of it or not."""
    return ranks, ranks + 1, 2 * ranks, 3 * ranks - 1, 4 * ranks


def in_rounds(ranks):
    """Below P, multiples of it, and others that divide into rounds: M mod max(1, M div P) = 0."""
    return [microbatches for microbatches in range(1, 5 * ranks) if microbatches % max(1, microbatches // ranks) == 0]


class SameOrder(unittest.TestCase):
    def check(self, kind, name, chunks, ranks, microbatches, *options):
        with self.subTest(kind=kind, ranks=ranks, chunks=chunks, microbatches=microbatches):
            self.assertEqual(theirs(name, ranks, microbatches, chunks), ours(kind, ranks, microbatches, chunks, *options))

    def test_gpipe(self):
        for ranks in depths():
            for microbatches in 1, ranks - 1, *few_and_many(ranks):
                self.check("gpipe", "GPipe", 1, ranks, microbatches)

    def test_1f1b(self):
        for ranks in depths():
            for microbatches in few_and_many(ranks):
                self.check("1f1b", "1F1B", 1, ranks, microbatches)

    def test_interleaved_1f1b_of_full_groups(self):
        for ranks in depths():
            for chunks in 2, 3, 4:
                for groups in 1, 2, 3, 5:
                    self.check("interleaved_1f1b", "Interleaved1F1B", chunks, ranks, groups * ranks)

    def test_interleaved_1f1b_in_rounds(self):
        for ranks in depths():
            for chunks in 2, 3:
                for microbatches in in_rounds(ranks):
                    self.check("interleaved_1f1b", "Interleaved1F1B", chunks, ranks, microbatches, "--group", "rounds")

    def test_looped_bfs(self):
        for ranks in depths():
            for chunks in 2, 3:
                for microbatches in 1, ranks - 1, *few_and_many(ranks):
                    self.check("looped_bfs", "LoopedBFS", chunks, ranks, microbatches)

    def test_interleaved_zero_bubble(self):
        for ranks in depths():
            for chunks in 2, 3:
                for microbatches in in_rounds(ranks):
                    self.check("interleaved_zero_bubble", "InterleavedZeroBubble", chunks, ranks, microbatches)

    def test_zb_h1_is_the_interleaved_zero_bubble_schedule_of_one_stage(self):
        for ranks in depths():
            for microbatches in ranks, 2 * ranks, 3 * ranks, 2 * ranks + 2:
                self.check("zb_h1", "InterleavedZeroBubble", 1, ranks, microbatches)

    def test_zb_v(self):
        for ranks in depths():
            for microbatches in 1, ranks, 2 * ranks - 2, 2 * ranks - 1, 2 * ranks, 3 * ranks + 1, 5 * ranks:
                self.check("zb_v", "ZBVZeroBubble", 2, ranks, microbatches)

    def test_dualpipev(self):
        for ranks in depths():
            for microbatches in 2 * ranks, 2 * ranks + 1, 3 * ranks, 5 * ranks:
                self.check("dualpipev", "DualPipeV", 2, ranks, microbatches)


def loaded(text, ranks, microbatches, chunks):
    """PyTorch's runtime with that CSV: loaded, validated, and lowered to sends and receives."""
    runtime = schedules._PipelineScheduleRuntime(mock_stages(ranks, chunks), microbatches)
    with tempfile.TemporaryDirectory() as folder:
        runtime._load_csv(written(text, folder))
    return runtime


def written(text, folder):
    path = os.path.join(folder, "schedule.csv")
    with open(path, "w", newline="") as file:
        file.write(text)
    return path


class Runtime(unittest.TestCase):
    """DualPipe is not among them: PyTorch has no second copy of a stage."""

    def check(self, text, ranks, microbatches, chunks):
        runtime = loaded(text, ranks, microbatches, chunks)
        lowered = runtime.pipeline_order_with_comms
        # The dry run knows single actions only: pairs are taken apart, and what belongs to FSDP and data parallelism left out.
        compute = schedules.FORWARD, schedules.FULL_BACKWARD, schedules.BACKWARD_INPUT, schedules.BACKWARD_WEIGHT
        others = schedules.UNSHARD, schedules.RESHARD, schedules.REDUCE_GRAD
        single = {rank: [one for action in lowered[rank] if action.computation_type not in others for one in action.sub_actions or (action,)]
                  for rank in lowered}
        done = schedules._simulate_comms_compute(single, lambda stage: runtime.stage_index_to_group_rank[stage], ranks * chunks)
        computed = [str(action) for rank in done for action in done[rank] if action is not None and action.computation_type in compute]
        actions = text.replace("(", "").replace(")OVERLAP_F_B", "").replace(";", ",").replace("\n", ",").strip(",").split(",")
        self.assertEqual(sorted(actions), sorted(computed))

    def test_loads_validates_lowers_and_runs_what_we_print(self):
        for kind, chunks in ("gpipe", 1), ("1f1b", 1), ("interleaved_1f1b", 2), ("interleaved_1f1b", 3), ("looped_bfs", 2), ("interleaved_zero_bubble", 2), \
                ("zb_h1", 1), ("zb_h2", 1), ("zb_v", 2), ("dualpipev", 2), ("interleaved_1f1b_overlap", 2), ("zb_auto", 1), ("v_half", 2), ("v_min", 2):
            for ranks in 2, 3, 4, 8:
                for microbatches in 2 * ranks, 3 * ranks:
                    with self.subTest(kind=kind, ranks=ranks, chunks=chunks, microbatches=microbatches):
                        self.check(ours(kind, ranks, microbatches, chunks), ranks, microbatches, chunks)

    def test_loads_validates_lowers_and_runs_a_planned_program_whose_pairs_are_two_actions(self):
        command = ["plan", "examples/specs/measured-4xH200.json", "--policy", "examples/sites/pipeline-anyway.lua", "--schedule", "dualpipev",
                   "--format", "csv", "--date", "2026-11-27", "--framework", "torch"]
        text = subprocess.run([os.environ["PIPEPLAN"], *command], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertNotIn("OVERLAP_F_B", text)
        self.check(text, 4, 32, 2)


def accepted_by_torch(text, ranks, microbatches, chunks):
    try:
        loaded(text, ranks, microbatches, chunks)
    except (AssertionError, KeyError, RuntimeError, ValueError):
        return False
    return True


def simulated_by_us(text):
    """Exit status and standard error of `pipeplan simulate` for a program from a file."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([os.environ["PIPEPLAN"], "simulate", written(text, folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


class Corrupted(unittest.TestCase):
    def test_what_pytorch_misses_is_found(self):
        for text, finding in (
                ("0F0,0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "engine.duplicate_action"),      # F of a microbatch twice
                ("0F0,0F1,0B0,0B0,0B1\n1F0,1B0,1F1,1B1\n", "engine.duplicate_action"),      # its backward twice
                ("0F0,0F1,0B0,0I0,0W0\n1F0,1B0,1F1,1B1\n", "engine.duplicate_action"),      # B and I + W of one, nothing of the other
        ):
            with self.subTest(text=text):
                self.assertTrue(accepted_by_torch(text, 2, 2, 1))
                status, error = simulated_by_us(text)
                self.assertEqual(1, status)
                self.assertIn(finding, error)

    def test_ranks_that_wait_for_each_other_are_found(self):
        text = "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"
        self.assertFalse(accepted_by_torch(text, 2, 2, 1))
        status, error = simulated_by_us(text)
        self.assertEqual(1, status)
        self.assertIn("engine.deadlock", error)

    def test_the_dialect_of_2024_is_no_program(self):
        status, error = simulated_by_us("0F0,0BW0\n1F0,1BW0\n")
        self.assertEqual(2, status)
        self.assertIn("BW", error)

    def test_nothing_that_pytorch_refuses_is_taken(self):
        """Programs with one or two cells changed at random: where PyTorch's runtime refuses one, so do we."""
        random = Random(101)
        outcomes = {True: 0, False: 0}
        for _ in range(250):
            kind, chunks = random.choice([("1f1b", 1), ("gpipe", 1), ("zb_h1", 1), ("interleaved_1f1b", 2), ("zb_v", 2), ("dualpipev", 2)])
            ranks = random.choice([2, 3, 4])
            microbatches = 2 * ranks
            rows = [line.split(",") for line in ours(kind, ranks, microbatches, chunks).splitlines()]
            for _ in range(random.choice([1, 1, 2])):
                corrupt(rows, random)
            text = "".join(",".join(row) + "\n" for row in rows)
            taken = accepted_by_torch(text, ranks, microbatches, chunks)
            status, error = simulated_by_us(text)
            self.assertIn(status, (0, 1, 2), error)
            if not taken:
                self.assertNotEqual(0, status, text)
            outcomes[taken] += 1
        self.assertGreater(min(outcomes.values()), 30, outcomes)


def corrupt(rows, random):
    row = random.choice(rows)
    at = random.randrange(len(row))
    change = random.choice(["swap", "move", "drop", "repeat", "letter"])
    if change == "swap":
        other = random.randrange(len(row))
        row[at], row[other] = row[other], row[at]
    elif change == "move":
        row.insert(max(0, at - 1), row.pop(at))
    elif change == "drop" and len(row) > 1:
        del row[at]
    elif change == "repeat":
        row.insert(at, row[at])
    else:
        row[at] = row[at].translate(str.maketrans("FBIW", random.choice(["BFWI", "WIBF", "IWFB"])))


if __name__ == "__main__":
    unittest.main()

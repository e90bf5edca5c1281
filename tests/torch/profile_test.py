# SPDX-License-Identifier: Apache-2.0
"""profile_test.py: examples/torch/profile_stage.py and what it is made of, on CPUs over gloo. No time is compared with anything.

Wants $PIPEPLAN, the program, and PyTorch 2.9 or newer; run.sh finds both.
"""
import argparse
import contextlib
import dataclasses
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import warnings

warnings.simplefilter("ignore")  # of numpy, which nothing here needs

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "examples", "torch"))

import torch
import torch.distributed as dist

import processes
import profile_stage
from measuring import doubts, heat, links, memory, profile, timing
from pipeline import grid, model, options, power
from measuring.actions import Actions, Deferred
from measuring.control import Control

CPU = torch.device("cpu")
SMALL = dict(hidden=16, heads=2, ffn=64, sequence_length=8)
EFFORT = timing.Effort(samples=2, load=0.02, pause=0.001)
INNER, FIRST, LAST = {"F", "B", "I", "W", "FB", "FB_in_turn"}, {"F", "B", "FB", "FB_in_turn"}, {"F", "B", "I", "W", "FB", "FB_in_turn"}


def actions_of(shape, starts=False, ends=False, kind=Actions):
    made = kind(model.Stage(shape, 0, shape.layers, starts, ends), shape, starts, ends, CPU, torch.float32)
    made.backward(made.forward())
    return made


class Memory(unittest.TestCase):
    """
    Counted by hand for the dense Block in fp32: u, a message, is 4 × sequence_length × hidden bytes, ffn is 4 × hidden.

    F keeps, of each layer: what the norms make (2 u) with a mean and a reciprocal deviation for each position of each norm (4 numbers),
    q, k and v (3 u), what attention makes (1 u) with a log-sum-exp for each position and head, the residual sums (2 u), and what
    is in front of and behind GELU (4 u each): 16 u + 4 × sequence_length × (4 + heads) bytes. The stage's input is a message that was received.

    I frees none of that, for W walks the same graph, and adds what W multiplies by: gradients of the outputs of qkv (3 u), of the
    projection behind attention (1 u), of up (4 u) and of the norms, whose weights have gradients too (2 u); and of down (1 u),
    where that is not the gradient that the stage has received: 10 u a layer and 1 u for each layer but the last.
    """
    u = 4 * SMALL["sequence_length"] * SMALL["hidden"]
    statistics = 4 * SMALL["sequence_length"] * (4 + SMALL["heads"])

    def weigh(self, layers, **how):
        shape = model.Shape(layers=layers, vocab=how.pop("vocab", 0), **SMALL)
        return memory.weigh(actions_of(shape, **how), CPU)

    def test_an_inner_stage_keeps_what_its_layers_save(self):
        for layers in (1, 3):
            mem = self.weigh(layers)
            self.assertEqual(mem["act_bytes"], layers * (16 * self.u + self.statistics))

    def test_i_frees_nothing_and_adds_gradients_of_outputs(self):
        for layers in (1, 3):
            mem = self.weigh(layers)
            self.assertEqual(mem["wgrad_pending_bytes"], mem["act_bytes"] + (10 * layers + layers - 1) * self.u)

    def test_the_first_stage_has_no_i_and_keeps_what_its_embedding_makes(self):
        mem = self.weigh(2, vocab=96, starts=True)
        self.assertEqual(mem["act_bytes"], 2 * (16 * self.u + self.statistics) + self.u)
        self.assertNotIn("wgrad_pending_bytes", mem)
        self.assertEqual(set(mem["transient_bytes"]), {"F", "B"})

    def test_deferred_weight_gradients_keep_inputs_and_gradients_of_linear_layers(self):
        """I of dualpipe.py keeps inputs of qkv, the projection, up and down (1 + 1 + 1 + 4 u) and gradients of their outputs
        (3 + 1 + 4 + 1 u). F keeps what was received, too, and not what was sent."""
        for layers in (1, 3):
            mem = self.weigh(layers, kind=Deferred)
            self.assertEqual(mem["act_bytes"], layers * (16 * self.u + self.statistics))
            self.assertEqual(mem["wgrad_pending_bytes"], layers * 16 * self.u)

    def test_weights_and_their_gradients(self):
        hidden = SMALL["hidden"]
        for vocab, ends, extra in ((0, False, 0), (96, True, 96 * hidden + 2 * hidden)):      # head, and the norm before it
            mem = self.weigh(2, vocab=vocab, ends=ends)
            expected = 4 * (2 * (12 * hidden**2 + 4 * hidden) + extra)
            self.assertEqual((mem["weights"], mem["grads"]), (expected, expected))

    def test_w_needs_the_largest_gradient_beside_the_one_it_is_added_to(self):
        # up or down, 4 × hidden² numbers; less what is freed before
        self.assertLessEqual(self.weigh(1)["transient_bytes"]["W"], 4 * 4 * SMALL["hidden"] ** 2)

    def test_gradients_are_added_to_what_is_there(self):
        made = actions_of(model.Shape(layers=1, **SMALL))
        where = [w.grad.data_ptr() for w in made.stage.parameters()]
        once = [w.grad.clone() for w in made.stage.parameters()]
        made.backward_weight(made.backward_input(made.forward()))
        for before, at, weight in zip(once, where, made.stage.parameters()):
            self.assertEqual(weight.grad.data_ptr(), at)
            torch.testing.assert_close(weight.grad, 2 * before)


class Logged:
    """A clock, and actions, that write down what happens."""

    def __init__(self, actions):
        self.actions, self.log, self.cuda, self.splits = actions, [], False, actions.splits

    def mark(self):
        self.log.append("|")
        return 0.0

    def wait(self, moment):
        pass

    def delay(self, seconds):
        pass

    def milliseconds(self, begin, end):
        return 1.0

    def __getattr__(self, name):
        short = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}[name]

        def run(*needed):
            self.log.append(short)
            return getattr(self.actions, name)(*needed)
        return run


class Modelled:
    """A clock and actions of a card and a host that keep a time of their own, in seconds: an action keeps the host for host[kind] and the card
    for card[kind]; where it waits, the host goes on with the last of what it does only when the card has done all before it."""

    def __init__(self, host, card, waits=()):
        self.host, self.card, self.waits = host, card, waits
        self.now = self.free = 0.0        # of the host; when the card has nothing left to do
        self.cuda = self.splits = True

    def mark(self):
        return max(self.now, self.free)

    def wait(self, moment):
        self.now = max(self.now, moment)

    def delay(self, seconds):
        self.free = max(self.now, self.free) + seconds

    def milliseconds(self, begin, end):
        return 1e3 * (end - begin)

    def run(self, kind):
        start, begun = max(self.now, self.free), self.now
        if kind in self.waits:
            self.now = max(self.now, self.free)
        self.now += self.host[kind]
        self.free = max(start + self.card[kind], self.now)
        assert self.now >= begun
        return []

    def __getattr__(self, name):
        kind = {"forward": "F", "backward": "B", "backward_input": "I", "backward_weight": "W"}[name]
        return lambda *needed: self.run(kind)


class Hosts(unittest.TestCase):
    """What actions take a host, found again in a card and a host that are made up."""

    host, card = {"F": 0.006, "B": 0.007, "I": 0.006, "W": 0.011}, {"F": 0.008, "B": 0.014, "I": 0.008, "W": 0.007}

    def measured(self, waits):
        made = Modelled(self.host, self.card, waits)
        effort = timing.Effort(samples=2, pairs=False, two_streams=False)
        with unittest.mock.patch.object(timing.time, "perf_counter", lambda: made.now), unittest.mock.patch.object(dist, "get_rank", lambda: 0):
            timer = timing.Timer(made, CPU, effort, power.Meter(CPU), types.SimpleNamespace(most=lambda value, members=None: value))
            timer.clock = made
            return timer._prepare()

    def test_the_host_is_timed_alone(self):
        self.assertEqual(self.measured(())["host_ms"], {"F": 6, "B": 7, "I": 6, "W": 11})

    def test_an_action_in_which_the_host_waits_stands_out(self):
        for waits in ((), ("F",), ("F", "W")):
            out = self.measured(waits)
            late = {kind for kind, took in out["host_ms_behind"].items() if took - out["host_ms"][kind] > out["behind_ms"] / 2}
            self.assertEqual(late, set(waits))

    def test_heat_is_not_read_from_actions_that_wait_for_the_host(self):
        made = {"cold": {"F": 8.0, "B": 14.0}, "hot": {"F": 12.0, "B": 15.4}, "host_ms": {"F": 6.0, "B": 7.0},
                "host_ms_behind": {"F": 66.0, "B": 7.0}, "behind_ms": 60.0}
        self.assertAlmostEqual(profile._slope(made), 0.1)
        made["host_ms"]["B"] = 12.0        # B is handed over hardly faster than the card works
        self.assertEqual(profile._slope(made), 0.0)
        self.assertAlmostEqual(profile._slope({"cold": made["cold"], "hot": made["hot"]}), 27.4 / 22 - 1)


    def test_a_card_that_came_out_faster_hot_does_not_heat_up(self):
        gathered = [{"rank": rank, "heat": {"slope": slope}} for rank, slope in ((0, 0.12), (1, -0.229), (1, 0.1))]
        self.assertEqual(profile._rank_slopes(gathered, 2), [0.12, 0.0])


class Replicas(unittest.TestCase):
    """Two pipelines of two ranks: a step ends when the slower one does."""

    def test_the_replica_that_the_others_wait_for_counts(self):
        def process(rank, replica, F):
            return {"rank": rank, "replica": replica, "stages": {str(rank): {"cold": {"F": F, "B": 2 * F}}}}
        gathered = [process(0, 0, 5.0), process(0, 1, 4.0), process(1, 0, 6.0), process(1, 1, 6.5)]
        self.assertEqual(profile._slowest(gathered), [gathered[1], gathered[3]])


class Alone(unittest.TestCase):
    """In one process."""

    @classmethod
    def setUpClass(cls):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()

    def order(self, **how):
        logged = Logged(actions_of(model.Shape(layers=1, **SMALL), **how))
        timer = timing.Timer(logged, CPU, EFFORT, power.Meter(CPU), Control(f"test/{how}"))
        timer.clock = logged
        timer._cycle()
        return "".join(logged.log)

    def test_moments_are_taken_around_one_kind_alone(self):
        self.assertEqual(self.order(), "|F|" "|B|" "|F|" "|I|" "|W|" "|F|" "|FB|")

    def test_a_first_stage_has_neither_i_nor_w(self):
        self.assertEqual(self.order(starts=True), "|F|" "|B|" "|F|" "|FB|")

    def test_placements(self):
        self.assertEqual(profile.ranks_of_stages("v", 2, 6), [0, 1, 1, 0, 0, 1])
        self.assertEqual(profile.ranks_of_stages("loop", 2, 4), [0, 1, 0, 1])
        self.assertEqual(profile.ranks_of_stages("bidirectional", 3, 3), [0, 1, 2, 2, 1, 0])
        self.assertRaisesRegex(ValueError, "3 stages on 2 ranks", profile.ranks_of_stages, "v", 2, 3)
        self.assertRaisesRegex(ValueError, "expected one of one, loop, v", profile.ranks_of_stages, "z", 2, 2)

    def test_without_a_gpu_there_is_no_clock(self):
        meter = power.Meter(CPU)
        meter.begin()
        self.assertEqual(meter.end(), {})


class Doubts(unittest.TestCase):
    """A card that is shared, a slice of one, and a machine without NVML, as PyTorch tells of them."""

    def said(self, name, free, reserved, metered):
        card = types.SimpleNamespace(get_device_name=lambda _: name, mem_get_info=lambda _: (free * 2 ** 30, 80 * 2 ** 30),
                                     memory_reserved=lambda _: reserved * 2 ** 30)
        doubts._beside.cache_clear()
        with unittest.mock.patch.object(torch, "cuda", card):
            return doubts.doubts(torch.device("cuda"), metered)

    def test_a_card_of_its_own_leaves_none(self):
        self.assertEqual([], self.said("NVIDIA H100 80GB HBM3", 40, 37, True))
        self.assertEqual([], doubts.doubts(torch.device("cpu"), False))

    def test_what_others_take_is_said(self):
        self.assertEqual(["30 GiB of NVIDIA H100 80GB HBM3 are taken by others: actions are timed beside their work"],
                         self.said("NVIDIA H100 80GB HBM3", 40, 10, True))

    def test_communicators_that_a_process_makes_later_are_its_own(self):
        left = iter((78, 70))
        card = types.SimpleNamespace(get_device_name=lambda _: "H200", mem_get_info=lambda _: (next(left) * 2 ** 30, 80 * 2 ** 30),
                                     memory_reserved=lambda _: 0)
        doubts._beside.cache_clear()
        with unittest.mock.patch.object(torch, "cuda", card):
            self.assertEqual([[], []], [doubts.doubts(torch.device("cuda"), True) for _ in range(2)])

    def test_a_slice_of_a_card_is_none_of_the_catalogue(self):
        self.assertRegex(self.said("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 79, 0, True)[0], r"MIG 1g.10gb is a slice of a card: .*memory_per_gpu")

    def test_without_nvml_clocks_are_left_out(self):
        self.assertRegex(self.said("NVIDIA H100 80GB HBM3", 79, 0, False)[0], "^neither NVML nor nvidia-smi can be used: clocks and power are left out")


class Fullest(unittest.TestCase):
    def test_memory_is_the_most_of_all_microbatches_and_replicas(self):
        made = [{"stages": {"0": {"mem": {"weights": 8, "act_bytes": act, "transient_bytes": {"F": f, "B": b}}}}} for act, f, b in ((5, 1, 4), (3, 2, 9))]
        self.assertEqual(profile._fullest([*made, {"stages": {"1": {}}}], 0), {"weights": 8, "act_bytes": 5, "transient_bytes": {"F": 2, "B": 9}})

    def test_each_microbatch_is_weighed(self):
        class Rows(Actions):      # of which the second microbatch has most
            def __init__(self): self.stage, self.starts, self.inputs, self.turn = torch.nn.Linear(1, 1), True, [3, 7, 5], 0
            def gradients(self): return []
            def tensors(self): return list(self.stage.parameters())
            def backward(self, kept): kept.clear()

            def forward(self):
                self.turn = (self.turn + 1) % 3
                return [torch.zeros(self.inputs[self.turn] * 16)]

        self.assertEqual(memory.weigh(Rows(), CPU)["act_bytes"], 4 * 7 * 16)


class Fit(unittest.TestCase):
    """Points that the model of heat.py makes, found again."""

    def test_onset_and_slope(self):
        points = [(u, 1 + 0.133 * max(0, u - 0.59) / 0.41) for u in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)]
        onset, slope = heat.fit_curve(points)
        self.assertAlmostEqual(onset, 0.59, places=2)
        self.assertAlmostEqual(slope, 0.133, places=3)

    def test_tau(self):
        # busy from t = 0 on: du/dt = (1 − u) / tau
        def slow(t, tau):
            u = 1 - 2.718281828459045 ** (-t / tau)
            return 1 + 0.1 * max(0, u - 0.6) / 0.4
        for tau in (30, 160):
            self.assertLess(abs(heat.fit_tau([(t, slow(t, tau)) for t in range(5, 400, 12)], 0.6) / tau - 1), 0.03)

    def test_cards_that_do_not_slow_down_have_no_onset(self):
        card = {"curve": [{"duty": d, "slow_down": 1.0} for d in (0.5, 0.7, 1.0)], "points": [[10, 1.0], [20, 1.0]], "slope": 0}
        self.assertEqual(set(heat.combine([card])), {"curve"})

    def test_where_times_do_not_rise_the_onset_is_that_of_the_clocks(self):
        # 4 × H200, experts of pairs of cards, 2026-11-29: at 25 % busy F and B took 1.15 times as long, for the card waited for its host
        clocks = ((0.4962, 0.8377, 1968.75), (0.5952, 0.854, 1965.0), (0.6937, 0.8571, 1965.0), (0.7925, 0.8492, 1950.0), (0.8918, 0.8543, 1918.1),
                  (1.0, 0.8658, 1800.0))
        curve = [{"duty": duty, "slow_down": slow, "clock_mhz": clock} for duty, slow, clock in clocks]
        made = heat.combine([{"curve": curve, "points": [[30, 1.0], [300, 1.02]], "slope": 0.03}])
        self.assertTrue(0.8 <= made["onset"] < 0.9, made)
        self.assertEqual(made["slope"], 0.03)
        steady = [{**row, "clock_mhz": 1980.0} for row in curve]
        self.assertEqual(set(heat.combine([{"curve": steady, "points": [[30, 1.0]], "slope": 0.7}])), {"curve"})

    def test_the_slope_is_that_of_hot_actions_over_cold_ones(self):
        curve = [{"duty": d, "slow_down": 1 + 0.1 * max(0, d - 0.6) / 0.4} for d in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)]
        made = heat.combine([{"curve": curve, "points": [[30, 1.0], [300, 1.1]], "slope": slope} for slope in (0.14, 0.16)])
        self.assertAlmostEqual(made["slope"], 0.15, places=4)
        self.assertAlmostEqual(made["onset"], 0.6, places=2)


class Contention(unittest.TestCase):
    """The card's factor beside a receive that waits is kept for stages that are not timed so."""

    def test_measured_once_used_again(self):
        both = [{"kind_ms_cold": {"F": 5, "B": 15}, "kind_ms_shadowed": {"F": 6, "B": 18}}]
        cache = {}
        def unasked():
            self.fail("measured although it is known")
        self.assertEqual(profile._contention(both, cache, unasked), {})
        self.assertEqual(profile._contention([{"kind_ms_cold": {"F": 1, "B": 1}}], cache, unasked), {"contention": 1.2})

    def test_measured_where_nothing_was(self):
        for factor, said in ((1.19, {"contention": 1.19}), (None, {})):
            self.assertEqual(profile._contention([{"kind_ms_cold": {"F": 1, "B": 1}}], {}, lambda factor=factor: factor), said)


class Together(unittest.TestCase):
    """In two processes, in one go: worker() below."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            done = processes.run(2, worker, folder, timeout=300)
            if any(status for status, _, _ in done):
                raise AssertionError("\n".join(error for _, _, error in done))
            cls.made = {}
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    cls.made[name] = json.load(file)

    def read_by(self, name, *arguments):
        """What pipeplan simulates with it: it reads profiles that fit its schema, and no others."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.made[name], file)
            file.flush()
            done = subprocess.run([os.environ["PIPEPLAN"], "simulate", *arguments, "--ranks", "2", "--microbatches", "4", "--format", "json",
                                   "--profile", file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def kinds(self, name):
        return [set(stage["kind_ms_cold"]) for stage in self.made[name]["stage"]]

    def test_a_dense_model_with_ends(self):
        made = self.made["dense"]
        self.assertEqual([(s["layers"], s["embedding"], s["head"]) for s in made["stage"]], [(1, True, False), (2, False, True)])
        self.assertEqual(self.kinds("dense"), [FIRST, LAST])
        for stage in made["stage"]:
            for state in ("hot", "shadowed"):
                self.assertEqual(set(stage[f"kind_ms_{state}"]), set(stage["kind_ms_cold"]))
        self.assertEqual(made["message_bytes"], Memory.u)
        self.assertIn(Memory.u, [row["bytes"] for row in made["p2p"]])
        self.assertEqual(len(made["heat"]["curve"]), 6)
        self.assertEqual([run["microbatches"] for run in made["calibration"]], [4])
        self.assertIsNotNone(self.read_by("dense", "1f1b")["peak_bytes"])

    def test_stages_on_ranks_that_hold_several(self):
        self.assertEqual(self.made["v"]["runtime"], "torch-multi")
        self.assertEqual(self.kinds("v"), [FIRST, INNER, INNER, LAST])
        self.assertIsNotNone(self.read_by("v", "zb_v", "--virtual", "2")["peak_bytes"])

    def test_both_directions_of_a_bidirectional_pipeline(self):
        self.assertEqual(self.made["both"]["runtime"], "deepseek")
        self.assertEqual(self.kinds("both"), [INNER] * 4)                          # its first stage has I and W
        self.read_by("both", "dualpipe")

    def test_what_is_cached_is_not_measured_again(self):
        self.assertEqual(self.made["again"]["stage"], self.made["dense"]["stage"])

    def test_experts_over_two_ranks(self):
        made = self.made["experts"]
        self.assertEqual((made["at"]["expert"], made["at"]["data"]), (2, 2))
        self.assertEqual([s["dense"] for s in made["stage"]], [0, 0])
        self.assertEqual(self.kinds("experts"), [FIRST, LAST])
        self.assertEqual([row["ranks"] for row in made["alltoall"] + made["allreduce"]], [2] * 6)
        self.assertNotIn("p2p", made)                     # one rank of a pipeline has no neighbour

    def test_beside_a_receive_a_dense_block_is_timed(self):
        # faked: beside it F and B of rank 0 take 1.1 times as long, those of rank 1 1.2 times
        self.assertEqual(self.made["contention"]["faked"], 1.15)
        self.assertGreaterEqual(self.made["contention"]["timed"], 1)
        self.assertIsNone(self.made["contention"]["nobody sends"])

    def test_the_receive_that_waits_is_answered_at_the_end(self):
        self.assertEqual(self.made["shadow"], {"while": [0, 0], "behind": [64, 64]})


class Script(unittest.TestCase):
    run_alone = functools.partial(processes.run_file, 1, os.path.join(ROOT, "examples/torch/profile_stage.py"), "--device", "cpu", "--layers", "1,1")

    def test_it_prints_a_profile_and_nothing_else(self):
        [(status, out, error)] = self.run_alone("--virtual", "2", "--shape", "hidden=16,heads=2,ffn=64,sequence_length=8", "--samples", "1",
                                                "--load", "0", "--pause", "0")
        self.assertEqual(status, 0, error)
        self.assertEqual(len(json.loads(out)["stage"]), 2)

    def test_sizes_and_layers_of_a_config(self):
        sizes = options.config(os.path.join(ROOT, "examples/models/tiny.json"))      # what that file says, by model.Shape's names
        self.assertEqual(sizes, {"hidden": 256, "heads": 4, "layers": 8, "vocab": 512, "ffn": 1024, "sequence_length": 256})
        self.assertEqual(profile_stage.even_layers(8, 4), [2, 2, 2, 2])
        with self.assertRaisesRegex(ValueError, "8 layers are not the same on 3 stages: expected --layers, 3 numbers"):
            profile_stage.even_layers(8, 3)
        with self.assertRaisesRegex(argparse.ArgumentTypeError, "README.md: .*"):
            options.config(os.path.join(ROOT, "README.md"))

    def test_old_names_of_sizes_are_taken_and_told(self):
        with contextlib.redirect_stderr(io.StringIO()) as error:
            self.assertEqual(options.sizes("sequence=8,micro_batch=2,top_k=3"), {"sequence_length": 8, "micro_batch_size": 2, "experts_per_token": 3})
        self.assertEqual(error.getvalue().splitlines()[1], "warning: micro_batch is called micro_batch_size now; the old name goes in pipeplan 0.2.0")
        with contextlib.redirect_stderr(io.StringIO()) as error, unittest.mock.patch.object(sys, "argv", ["profile_stage.py", "--virtual-stages", "2"]):
            self.assertEqual(profile_stage.read_options().virtual, 2)
        self.assertEqual(error.getvalue(), "warning: --virtual-stages is called --virtual now; the old name goes in pipeplan 0.2.0\n")

    def test_what_does_not_fit_is_said(self):
        [(status, out, error)] = self.run_alone()
        self.assertNotEqual(status, 0)
        self.assertIn("--layers has 2 stages: expected 1", error)
        self.assertEqual(out, "")

    def test_numbers_that_are_none_are_refused_before_anything_is_measured(self):
        for words, message in ((["--samples", "0"], '"0": expected a whole number of 1 or more'), (["--layers=-1,3"], '"-1": expected a whole number of 1'),
                               (["--load", "inf"], '"inf": expected 0 or more'), (["--data", "x"], '"x": expected a whole number, 0 or more')):
            with self.subTest(words=words), contextlib.redirect_stderr(io.StringIO()) as error, self.assertRaises(SystemExit) as end, \
                    unittest.mock.patch.object(sys, "argv", ["profile_stage.py", *words]):
                profile_stage.read_options()
            self.assertEqual(2, end.exception.code)
            self.assertIn(message, error.getvalue())
        good = model.Shape(hidden=8, heads=2, ffn=8, layers=1)
        self.assertIsNone(model.wrong_size(good))
        for sizes, message in (({"heads": 3}, "hidden is 8: expected a multiple of the 3 heads"), ({"heads": 0}, "heads is 0: expected 1 or more"),
                               ({"experts": 1}, "experts_per_token is 2: expected 1 to 1, the experts"),
                               ({"sequence_length": 0}, "sequence_length is 0: expected 1 or more")):
            self.assertEqual(message, model.wrong_size(dataclasses.replace(good, **sizes)))


def worker(folder):
    """Profiles of several models and placements, into files by name."""
    device = grid.start("cpu")
    place, cache = grid.Grid(2), {}
    options = profile.Options(effort=EFFORT, heat=0.02, calibration=(4,))
    made = {}
    dense = model.Shape(layers=3, vocab=96, **SMALL)

    def measure(name, shape, layers, placement, where, how):
        made[name] = profile.profile(shape, layers, placement, where, device, torch.float32, how, cache)

    plain = profile.Options(effort=EFFORT, heat=0)
    measure("dense", dense, [1, 2], "one", place, options)
    measure("again", dense, [1, 2], "one", place, plain)
    measure("both", dense, [1, 2], "bidirectional", place, plain)
    measure("v", model.Shape(layers=4, vocab=96, **SMALL), [1, 1, 1, 1], "v", place, plain)
    measure("experts", model.Shape(layers=2, experts=4, **{**SMALL, "ffn": 8}), [1, 1], "loop", grid.Grid(1, 2), plain)

    def contention(where):
        return profile._beside_a_receive(model.Shape(layers=2, experts=4, **{**SMALL, "ffn": 8}), where, device, torch.float32, EFFORT,
                                         profile._bench(where, device, cache))

    times = {"F": 1.0, "B": 1.0}, {"F": 1.2 + 0.2 * dist.get_rank(), "B": 1.0}
    with unittest.mock.patch.object(timing.Timer, "beside", return_value=times):
        faked = contention(place)
    made["contention"] = {"faked": faked, "timed": contention(place), "nobody sends": contention(grid.Grid(1, 2))}

    control = Control("test")
    with links.Links(place, device, control).shadow(64) as shadow:
        control.barrier()
        during = control.gather(int(shadow.received.sum()))
    made["shadow"] = {"while": during, "behind": control.gather(int(shadow.received.sum()))}
    if dist.get_rank() == 0:
        for name, value in made.items():
            with open(os.path.join(folder, name), "w") as file:
                json.dump(value, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    unittest.main()

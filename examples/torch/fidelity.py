#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a machine's pipeline stages and runs every schedule on them, in one call, for compare.py to hold predictions against.

usage: torchrun --nproc-per-node N examples/torch/fidelity.py -o runs.json [options]
       python3 examples/torch/fidelity.py --export FOLDER --ranks P [--pipeplan PROGRAM]

Models: "dense" (equal blocks), "ends" (the same with embedding and head) split evenly, and by time, and "moe" (experts, spread over pairs of
replicas where there are 4 processes). For each, the stages are profiled one by one, then every schedule runs at each M: warm-up steps, timed
steps, and one in which single actions are timed. Clocks and power are recorded beside. The file is written anew after every run, and runs that
would end after --budget seconds are left out and named.

Programs come from pipeplan (--pipeplan), or from a FOLDER of them that --export wrote where it is and this machine has not got it.

What pipeplan predicts of a run is written, with its version and the time, before the run's first step: predictions that nobody can have chosen with
the measurement in sight. Where pipeplan cannot be run here they are missing, and the file says so.
"""
import argparse
import dataclasses
import datetime
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing

import torch
import torch.distributed as dist

from measuring import control, measured, predicted, profile, timing
from pipeline import dualpipe, grid, model, options as types, program, torch_runtime, watchdog


class Kind(typing.NamedTuple):
    """What to run. schedule: as pipeplan calls it; stages: of the model, that a rank has for one direction; runtime: PyTorch's for one stage a
    rank or its other one, "pipeplan" for dualpipe.py, "deepseek" for the package."""
    schedule: str
    stages: int
    runtime: str
    pairs: str = "in_turn"
    queues: str = "one"


KINDS = {
    "1f1b": Kind("1f1b", 1, "torch-single"),
    "gpipe": Kind("gpipe", 1, "torch-single"),
    "zb_h1": Kind("zb_h1", 1, "torch-multi"),
    "zb_h2": Kind("zb_h2", 1, "torch-multi"),
    "zb_auto": Kind("zb_auto", 1, "torch-multi"),
    "interleaved_1f1b": Kind("interleaved_1f1b", 2, "torch-multi"),
    "looped_bfs": Kind("looped_bfs", 2, "torch-multi"),
    "interleaved_zero_bubble": Kind("interleaved_zero_bubble", 2, "torch-multi"),
    "zb_v": Kind("zb_v", 2, "torch-multi"),
    "v_half": Kind("v_half", 2, "torch-multi"),
    "dualpipev": Kind("dualpipev", 2, "torch-multi"),
    "dualpipev, pairs split": Kind("dualpipev", 2, "torch-multi", pairs="split"),
    "dualpipe": Kind("dualpipe", 1, "pipeplan"),
    "dualpipev, ours": Kind("dualpipev", 2, "pipeplan"),
    "interleaved_1f1b, a queue a peer": Kind("interleaved_1f1b", 2, "torch-multi", queues="per_peer"),
    "zb_v, a queue a peer": Kind("zb_v", 2, "torch-multi", queues="per_peer"),
    "dualpipe, package": Kind("dualpipe", 1, "deepseek"),
    "dualpipev, package": Kind("dualpipev", 2, "deepseek"),
}
# What each model runs, most telling first: a short budget leaves out the end. zb_auto, with as much memory as zb_h2, is about that.
EVERY = [name for name in KINDS if name != "zb_auto"]
FEW = ["1f1b", "zb_h1", "interleaved_1f1b", "zb_v", "dualpipev, pairs split", "dualpipe", "dualpipev"]
MODELS = {"dense": {}, "ends": {"vocab": 65536}, "moe": {"experts": 8, "ffn": 8192}}
SPLIT_BY_TIME = ["1f1b", "zb_h1"]                            # of "ends": also with layers where the time is
PLANNED_FROM_TIMES = ("zb_auto", "v_half", "v_min")          # their order is not in their name: the program goes into the file
IN_ROUNDS = ("interleaved_1f1b", "interleaved_zero_bubble")  # in groups of microbatches as PyTorch has them
PLACEMENTS = {"zb_v": "v", "v_half": "v", "dualpipev": "v", "dualpipe": "bidirectional"}


# ------------------------------------------------------------------------------------------------------------------------------ programs

def program_file(folder, schedule, ranks, microbatches):
    return pathlib.Path(folder) / f"{schedule}-p{ranks}-m{microbatches}.csv"


def export(o, schedule, ranks, microbatches):
    virtual = ["--virtual", "2"] if schedule in ("interleaved_1f1b", "looped_bfs", "interleaved_zero_bubble") else []
    group = ["--group", "rounds"] if schedule in IN_ROUNDS else []
    try:
        done = subprocess.run([predicted.program_of(o.pipeplan), "simulate", schedule, "--ranks", str(ranks), "--microbatches", str(microbatches),
                               *virtual, *group, "--format", "csv"], text=True, capture_output=True)
    except (OSError, predicted.NoProgram) as error:
        sys.exit(f"{error}: say where pipeplan is with --pipeplan, or give --programs that --export wrote")
    if done.returncode:
        sys.exit(f"pipeplan cannot build {schedule} for {ranks} ranks, M {microbatches}: {done.stderr or done.stdout}")
    return done.stdout


def export_all(o):
    os.makedirs(o.export, exist_ok=True)
    for schedule in sorted({kind.schedule for kind in KINDS.values()}):
        for count in o.microbatches:
            program_file(o.export, schedule, o.ranks, count).write_text(export(o, schedule, o.ranks, count))


def program_text(o, schedule, ranks, microbatches):
    file = program_file(o.programs, schedule, ranks, microbatches) if o.programs else None
    return file.read_text() if file and file.exists() else export(o, schedule, ranks, microbatches)

# ------------------------------------------------------------------------------------------------------------------------------ the models

def shape_of(o, name, ranks):
    shape = dataclasses.replace(model.Shape(layers=o.blocks * ranks), **{**MODELS[name], **o.shape})
    return dataclasses.replace(shape, **{field: 0 for field in ("vocab", "experts") if field not in MODELS[name]})


def even(layers, parts):
    return [layers // parts + (part < layers % parts) for part in range(parts)]


def by_time(counts, profile):
    """Layers of each stage so that the slowest stage is as fast as can be, by the profile of `counts`: a layer is that of the stages without
    ends, an end what its stage takes beyond its layers."""
    total = [sum(stage["kind_ms_hot"][kind] for kind in ("F", "B")) for stage in profile["stage"]]
    plain = [t / c for t, c, stage in zip(total, counts, profile["stage"]) if not stage.get("embedding") and not stage.get("head")]
    layer = statistics.mean(plain) if plain else min(t / c for t, c in zip(total, counts))
    beyond = [max(0, t - c * layer) for t, c in zip(total, counts)]
    best = [1] * len(counts)
    while sum(best) < sum(counts):
        stage = min(range(len(best)), key=lambda s: beyond[s] + (best[s] + 1) * layer)
        best[stage] += 1
    return best


# -------------------------------------------------------------------------------------------------------------------------------- runs

class Session:
    """One call of this script. Every process does the same; decisions that a clock takes part in are rank 0's."""

    def __init__(self, o):
        self.o, self.began = o, time.monotonic()
        self.device = grid.start(o.device)
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.watchdog = watchdog.Watchdog(o.watchdog, dist.get_rank(), self.device)
        self.control = control.Control("fidelity")
        self.grids, self.cache, self.programs, self.slowest = {}, {}, {}, {}
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "CPU"
        self.out = {"source": f"{dist.get_world_size()} × {name}, PyTorch {torch.__version__}", "date": str(datetime.date.today()),
                    "command": "torchrun --nproc-per-node " + " ".join([str(dist.get_world_size()), *sys.argv]),
                    "profiles": {}, "runs": [], "not_run": []}
        self.predictor = None
        if dist.get_rank() == 0:
            self.folder = tempfile.TemporaryDirectory()     # removed when the script ends
            self.predictor = self.predictor_in(self.folder.name)

    def predictor_in(self, folder):
        """Of rank 0, or None and a word about it in the file."""
        try:
            program = predicted.program_of(self.o.pipeplan)
            self.out["program"] = predicted.version_of(program)
            return predicted.Predictor(program, self.out["profiles"], folder)
        except predicted.NoProgram as problem:
            self.out.setdefault("notes", []).append(f"nothing was predicted before the runs: {problem}")
            return None

    def predict(self, record):
        """Before the run's first step: what it takes, and when that was said."""
        if self.predictor is None:
            return
        answer, problem = self.predictor.ask(record, len(self.out["runs"]))
        said = {"problem": problem} if problem else {"step_ms": 1e3 * answer["step_seconds"]}
        record["predicted"] = {**said, "program": self.out["program"], "at": now()}
        self.out["runs"].append(record)     # with no step yet
        self.write()
        self.out["runs"].pop()

    def agreed(self, value):
        """Rank 0's."""
        return self.control.gather(value)[0]

    def say(self, text):
        if dist.get_rank() == 0:
            print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def write(self):
        if dist.get_rank() == 0:
            pathlib.Path(self.o.output).write_text(json.dumps(self.out, ensure_ascii=False, separators=(",", ":")))

    # What runs share

    def grid_of(self, name):
        """With four processes or more, experts are spread over two replicas of each stage."""
        expert = 2 if name == "moe" and dist.get_world_size() >= 4 else 1
        key = dist.get_world_size() // expert, expert
        if key not in self.grids:
            self.grids[key] = grid.Grid(*key)
        return self.grids[key]

    def program(self, schedule, ranks, microbatches):
        key = schedule, ranks, microbatches
        if key not in self.programs:
            text = self.agreed(program_text(self.o, *key) if dist.get_rank() == 0 else None)
            self.programs[key] = program.parse(text, f"{schedule}, {ranks} ranks, M {microbatches}", 2 if schedule == "dualpipe" else 1)
        return self.programs[key]

    def profile(self, name, shape, layers, placement, runtime):
        """Its name, after measuring what is new in it."""
        place = self.grid_of(name)
        deferred = not runtime.startswith("torch")
        key = f"{name}, {placement}, {' '.join(map(str, layers))}" + (", deferred" if deferred else "")
        if key not in self.out["profiles"]:
            effort = timing.Effort(samples=self.o.samples, load=self.o.load)
            options = profile.Options(effort=effort, heat=self.o.heat if self.device.type == "cuda" else 0.0, pair="in_turn",
                                      runtime="deepseek" if deferred else runtime)
            self.watchdog.at(f"profile of {key}")
            made = profile.profile(shape, layers, placement, place, self.device, self.dtype, options, self.cache)
            self.watchdog.done()
            self.out["profiles"][key] = made
            self.say(f"profiled {key}")
        return key

    # One run

    def run(self, name, shape, layers, kind_name, microbatches):
        """layers: of each of the pipeline's ranks, halved where a rank has two stages of the model."""
        kind, place = KINDS[kind_name], self.grid_of(name)
        made = self.program(kind.schedule, place.pipeline, microbatches)
        cut = layers if kind.stages == 1 else stages_of(layers, made.placement)
        profiled = self.profile(name, shape, cut, PLACEMENTS.get(kind.schedule, "one" if kind.stages == 1 else "loop"), kind.runtime)
        title = f"{name:6s} {kind_name:34s} M {microbatches:3d}"
        if self.too_late(name, title, microbatches):
            return
        foreign, begun = self.clean(), time.monotonic()
        modules = {stage: model.build_stage(shape, cut, made.slice_of(stage), place.expert_group, self.device, self.dtype)
                   for stage in made.stages_of(place.rank)}
        runner = self.runner(kind, made, modules, place, shape)
        given, target = self.batch(kind, made, runner, place, shape, microbatches)
        record = {"name": kind_name, "schedule": kind.schedule, "model": name, "ranks": place.pipeline, "data": place.data, "expert": place.expert,
                  "microbatches": microbatches, "virtual": kind.stages, "runtime": kind.runtime,
                  "pairs": kind.pairs if kind.schedule == "dualpipev" else None, "queues": kind.queues, "layers_per_stage": cut, "profile": profiled}
        if kind.schedule in PLANNED_FROM_TIMES:
            record.update(program=made.text, directions=made.directions)
        if kind.schedule in IN_ROUNDS:
            record["group"] = "rounds"
        self.predict(record)
        if "predicted" in record:
            record["predicted"]["first_step_at"] = now()
        record.update(measured.Steps(runner, place, self.device, given, target, self.control, foreign).measure(self.o.warmup, self.o.steps))
        self.slowest[name] = max(self.slowest.get(name, 0), (time.monotonic() - begun) / microbatches)
        self.out["runs"].append(record)
        self.write()
        steps = record["step_ms"]
        self.say(f"{title}  {statistics.median(steps):9.2f} ms  ± {(steps[-1] - steps[0]) / statistics.median(steps):.1%}")

    def clean(self):
        """Frees what the last run left in cycles. → bytes that stay allocated"""
        gc.collect()
        if self.device.type != "cuda":
            return 0
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated()

    def runner(self, kind, made, modules, place, shape):
        if kind.runtime == "deepseek":
            from pipeline import deepseek     # wants the package
            return deepseek.Runner(self.o.dualpipe, made, modules, place, shape, self.device)
        if kind.runtime == "pipeplan":
            return dualpipe.Executor(made, modules, place, shape, self.device, watchdog=self.watchdog)
        return torch_runtime.Runner(made, modules, place, shape, self.device, runtime=kind.runtime, pairs=kind.pairs, queues=kind.queues,
                                    watchdog=self.watchdog)

    def batch(self, kind, made, runner, place, shape, microbatches):
        """What this process gives to a step: (input or None, target or None)."""
        given, target = model.batch(shape, microbatches, seed=place.replica, device=self.device, dtype=self.dtype)
        if not kind.runtime.startswith("torch"):
            return runner.share(given, target)
        return given if 0 in runner.modules else None, target if made.stages - 1 in runner.modules else None

    def too_late(self, name, title, microbatches):
        """Would it end after the budget, at the pace of the model's slowest run so far?"""
        needed = self.slowest.get(name, 0) * microbatches
        needed, late = self.agreed([needed, time.monotonic() - self.began + needed > self.o.budget])
        if late:
            self.out["not_run"].append(f"{' '.join(title.split())}: about {needed:.0f} s, which the budget did not have")
            self.say(f"{title}  left out: no time")
        return late


def now():
    """In UTC, to the millisecond."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


def stages_of(layers, placement):
    """Layers of each stage where ranks have two: the second one gets the odd layer."""
    seen, out = set(), []
    for rank in placement:
        half = layers[rank] // 2
        out.append(layers[rank] - half if rank in seen else half)
        seen.add(rank)
    return out


def run_model(session, name):
    o, place = session.o, session.grid_of(name)
    shape = shape_of(o, name, place.pipeline)
    layers = even(shape.layers, place.pipeline)
    wanted = [k for k in o.schedules or (EVERY if name == "dense" else FEW) if o.dualpipe or KINDS[k].runtime != "deepseek"]
    if place.pipeline % 2:
        wanted = [k for k in wanted if KINDS[k].schedule != "dualpipe"]
    for microbatches in o.microbatches:
        for kind_name in wanted:
            session.run(name, shape, layers, kind_name, microbatches)
    if name == "ends":
        base = session.profile(name, shape, layers, "one", "torch-single")
        better = session.agreed(by_time(layers, session.out["profiles"][base]) if dist.get_rank() == 0 else None)
        for microbatches in o.microbatches if better != layers else []:
            for kind_name in (k for k in wanted if k in SPLIT_BY_TIME):
                session.run(name, shape, better, kind_name, microbatches)


def main(o):
    if o.export:
        return export_all(o)
    session = Session(o)
    for name in o.models:
        run_model(session, name)
    session.write()
    session.watchdog.stop()
    dist.barrier()
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------------------------------------- options

def names(known, separator):
    """→ parser of a list of names"""
    def parse(text):
        given = [part.strip() for part in text.split(separator)]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f'"{name}": expected {", ".join(map(repr, known))}, with "{separator}" between them')
        return given
    return parse


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="runs.json")
    parser.add_argument("--export", metavar="FOLDER", help="write the programs there and stop")
    parser.add_argument("--ranks", type=types.count, default=4, help="with --export: pipeline depth")
    parser.add_argument("--programs", metavar="FOLDER", help="programs that --export wrote")
    parser.add_argument("--pipeplan", metavar="PROGRAM", help="default: build/release/pipeplan here, or pipeplan on the path")
    parser.add_argument("--models", type=names(MODELS, ","), default=list(MODELS), help="which, in this order (default: dense,ends,moe)")
    parser.add_argument("--schedules", type=names(KINDS, ";"), help="only these, such as \"1f1b;zb_v\"")
    parser.add_argument("--microbatches", type=types.counts, default=[8, 32, 16], help="M, in this order (default 8,32,16)")
    parser.add_argument("--shape", type=types.sizes, default={}, help="other sizes: hidden=256,heads=4,…")
    parser.add_argument("--blocks", type=types.count, default=2, help="a rank (default 2)")
    parser.add_argument("--steps", type=types.count, default=3, help="timed (default 3)")
    parser.add_argument("--warmup", type=types.whole, default=1, help="steps before them (default 1)")
    parser.add_argument("--budget", type=types.not_negative, default=540, help="seconds, from the start of this script (default 540)")
    parser.add_argument("--samples", type=types.count, default=10, help="timings of an action in the profile (default 10)")
    parser.add_argument("--load", type=types.not_negative, default=6, help="seconds of load before hot timings (default 6)")
    parser.add_argument("--heat", type=types.not_negative, default=1, help="seconds of each share of the heat curve (default 1)")
    parser.add_argument("--dualpipe", metavar="FOLDER", help="DeepSeek's DualPipe package, to run it too")
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--watchdog", type=types.seconds, default=120, help="seconds after which a step that does not go on ends the run (default 120)")
    return parser.parse_args()


if __name__ == "__main__":
    main(options())

#!/usr/bin/env python3
"""Profiles a machine's pipeline stages and runs every schedule on them, in one call, for compare.py to hold predictions against.

usage: torchrun --nproc-per-node N examples/torch/fidelity.py -o runs.json [options]
       python3 examples/torch/fidelity.py --export FOLDER --ranks P [--pipeplan PROGRAM]

Models: "dense" (equal blocks), "ends" (the same with embedding and head) split evenly, and by time, and "moe" (experts, spread over pairs of
replicas where there are 4 processes). For each, the stages are profiled one by one, then every schedule runs at each M: warm-up steps, timed
steps, and one in which single actions are timed. Clocks and power are recorded beside. The file is written anew after every run, and runs that
would end after --budget seconds are left out and named.

Programs come from pipeplan (--pipeplan), or from a FOLDER of them that --export wrote where it is and this machine has not got it.
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
import time

import torch
import torch.distributed as dist

from pipeline import control, dualpipe, grid, measured, model, profile, program, timing, torch_runtime, watchdog

# Schedules as compare.py calls them: name of the run → pipeplan's schedule, stages a rank, runtime, and what else is special about it.
SCHEDULES = {
    "1f1b": ("1f1b", 1, "torch-single", {}),
    "gpipe": ("gpipe", 1, "torch-single", {}),
    "zb_h1": ("zb_h1", 1, "torch-multi", {}),
    "zb_h2": ("zb_h2", 1, "torch-multi", {}),
    "zb_auto": ("zb_auto", 1, "torch-multi", {}),
    "interleaved_1f1b": ("interleaved_1f1b", 2, "torch-multi", {}),
    "looped_bfs": ("looped_bfs", 2, "torch-multi", {}),
    "interleaved_zero_bubble": ("interleaved_zero_bubble", 2, "torch-multi", {}),
    "zb_v": ("zb_v", 2, "torch-multi", {}),
    "v_half": ("v_half", 2, "torch-multi", {}),
    "dualpipev": ("dualpipev", 2, "torch-multi", {"pairs": "in_turn"}),
    "dualpipev, pairs split": ("dualpipev", 2, "torch-multi", {"pairs": "split"}),
    "dualpipe": ("dualpipe", 1, "deepseek", {}),
    "dualpipev, ours": ("dualpipev", 2, "deepseek", {}),
    "interleaved_1f1b, a queue a peer": ("interleaved_1f1b", 2, "torch-multi", {"queues": "per_peer"}),
    "zb_v, a queue a peer": ("zb_v", 2, "torch-multi", {"queues": "per_peer"}),
    "dualpipe, package": ("dualpipe", 1, "deepseek", {"package": True}),
    "dualpipev, package": ("dualpipev", 2, "deepseek", {"package": True}),
}
# What each model is run with, most telling first: a short budget leaves out the end.
EVERY = [name for name in SCHEDULES if name != "zb_auto"]   # its order with as much memory as zb_h2 has is about that one's
FEW = ["1f1b", "zb_h1", "interleaved_1f1b", "zb_v", "dualpipev, pairs split", "dualpipe", "dualpipev"]
BALANCED = 2                                           # so many of FEW also run with layers split by time
PLANNED_FROM_TIMES = ("zb_auto", "v_half", "v_min")    # their order is not in their name: the program goes into the file
GROUPED = ("interleaved_1f1b", "interleaved_zero_bubble")    # in PyTorch's rounds
PLACEMENTS = {"zb_v": "v", "v_half": "v", "dualpipev": "v", "dualpipe": "bidirectional"}


# ------------------------------------------------------------------------------------------------------------------------------ programs

def program_file(folder, schedule, ranks, microbatches):
    return pathlib.Path(folder) / f"{schedule}-p{ranks}-m{microbatches}.csv"


def export(o, schedule, ranks, microbatches):
    virtual = ["--virtual", "2"] if schedule in ("interleaved_1f1b", "looped_bfs", "interleaved_zero_bubble") else []
    group = ["--group", "rounds"] if schedule in GROUPED else []
    done = subprocess.run([o.pipeplan, "simulate", schedule, "--ranks", str(ranks), "--microbatches", str(microbatches), *virtual, *group,
                           "--format", "csv"], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{o.pipeplan} cannot build {schedule} for {ranks} ranks, M {microbatches}: {done.stderr or done.stdout}")
    return done.stdout


def export_all(o):
    os.makedirs(o.export, exist_ok=True)
    for schedule in sorted({entry[0] for entry in SCHEDULES.values()}):
        for count in o.microbatches:
            program_file(o.export, schedule, o.ranks, count).write_text(export(o, schedule, o.ranks, count))


def program_text(o, schedule, ranks, microbatches):
    file = program_file(o.programs, schedule, ranks, microbatches) if o.programs else None
    return file.read_text() if file and file.exists() else export(o, schedule, ranks, microbatches)


# ------------------------------------------------------------------------------------------------------------------------------- options

def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="runs.json")
    parser.add_argument("--export", metavar="FOLDER", help="write the programs there and stop")
    parser.add_argument("--ranks", type=int, default=4, help="with --export: pipeline depth")
    parser.add_argument("--programs", metavar="FOLDER", help="programs that --export wrote")
    parser.add_argument("--pipeplan", default="pipeplan", metavar="PROGRAM")
    parser.add_argument("--models", default="dense,ends,moe", help="which, in this order")
    parser.add_argument("--schedules", default="", help="only these of each model, separated by semicolons")
    parser.add_argument("--microbatches", default="8,32,16", help="M, in this order")
    parser.add_argument("--shape", default="", help="another model: hidden=256,heads=4,… (fields of model.Shape)")
    parser.add_argument("--blocks", type=int, default=4, help="blocks a rank")
    parser.add_argument("--steps", type=int, default=4, help="timed steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them")
    parser.add_argument("--budget", type=float, default=540, help="seconds, from the start of this script")
    parser.add_argument("--samples", type=int, default=20, help="timings of an action in the profile")
    parser.add_argument("--load", type=float, default=2, help="seconds of load before hot timings")
    parser.add_argument("--dualpipe", metavar="FOLDER", help="DeepSeek's DualPipe package, to run it too")
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--watchdog", type=float, default=120, help="seconds after which a step that does not go on ends the run")
    o = parser.parse_args()
    o.microbatches = [int(count) for count in o.microbatches.split(",")]
    return o


# ------------------------------------------------------------------------------------------------------------------------------ the models

def with_fields(shape, text):
    """Shape with "hidden=256,heads=4" put in."""
    fields = dict(part.split("=") for part in text.split(",")) if text else {}
    return dataclasses.replace(shape, **{name: int(value) for name, value in fields.items()})


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


def shape_of(o, name, ranks):
    special = {"dense": {}, "ends": {"vocab": 65536}, "moe": {"experts": 8, "ffn": 8192}}[name]
    shape = with_fields(dataclasses.replace(model.Shape(layers=o.blocks * ranks), **special), o.shape)
    return dataclasses.replace(shape, **{field: 0 for field in ("vocab", "experts") if field not in special})


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

    def agreed(self, value):
        """Rank 0's."""
        return self.control.gather(value)[0]

    def seconds(self):
        return self.agreed(time.monotonic() - self.began)

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

    def profile(self, name, shape, layers, placement, runtime=None):
        """Its name, after measuring what is new in it."""
        place = self.grid_of(name)
        key = f"{name}, {placement}, {' '.join(map(str, layers))}" + (", deferred" if runtime == "deepseek" else "")
        if key not in self.out["profiles"]:
            effort = timing.Effort(samples=self.o.samples, load=self.o.load)
            options = profile.Options(effort=effort, heat=0.7 if self.device.type == "cuda" else 0.0, pair="in_turn", runtime=runtime)
            self.watchdog.at(f"profile of {key}")
            made = profile.profile(shape, layers, placement, place, self.device, self.dtype, options, self.cache)
            self.watchdog.done()
            self.out["profiles"][key] = made
            self.say(f"profiled {key}")
        return key

    # One run

    def run(self, name, shape, layers, schedule_name, microbatches):
        """layers: of each of the pipeline's ranks, halved where a rank has two stages of the model."""
        schedule, chunks, runtime, special = SCHEDULES[schedule_name]
        place = self.grid_of(name)
        made = self.program(schedule, place.pipeline, microbatches)
        cut = layers if chunks == 1 else stages_of(layers, made.placement)
        key = self.profile(name, shape, cut, PLACEMENTS.get(schedule, "one" if chunks == 1 else "loop"), runtime)
        if self.too_late(name, schedule_name, microbatches, layers):
            return
        foreign = self.clean()
        modules = {stage: model.build_stage(shape, cut, made.slice_of(stage), place.expert_group, self.device, self.dtype)
                   for stage in made.stages_of(place.rank)}
        begun = time.monotonic()
        runner = self.runner(made, modules, place, shape, runtime, special, microbatches)
        record = measured.Steps(*runner, self.control, foreign).measure(self.o.warmup, self.o.steps)
        self.slowest[name] = max(self.slowest.get(name, 0), (time.monotonic() - begun) / microbatches)
        record = {"name": schedule_name, "schedule": schedule, "model": name, "ranks": place.pipeline, "data": place.data, "expert": place.expert,
                  "microbatches": microbatches, "virtual": chunks,
                  "runtime": "pipeplan" if runtime == "deepseek" and not special.get("package") else runtime, "pairs": special.get("pairs"),
                  "queues": special.get("queues", "one"), "layers_per_stage": cut, "profile": key, **record}
        if schedule in PLANNED_FROM_TIMES:
            record.update(program=made.text, directions=made.directions)
        if schedule in GROUPED:
            record["group"] = "rounds"
        self.out["runs"].append(record)
        self.write()
        median = statistics.median(record["step_ms"])
        self.say(f"{name:6s} {schedule_name:34s} M {microbatches:3d}  {median:9.2f} ms  ± {(record['step_ms'][-1] - record['step_ms'][0]) / median:.1%}")

    def clean(self):
        """Frees what the last run left in cycles. → bytes that stay allocated"""
        gc.collect()
        if self.device.type != "cuda":
            return 0
        torch.cuda.empty_cache()
        return torch.cuda.memory_allocated()

    def runner(self, made, modules, place, shape, runtime, special, microbatches):
        given, target = model.batch(shape, microbatches, seed=place.replica, device=self.device, dtype=self.dtype)
        if special.get("package"):
            from pipeline import deepseek
            runner = deepseek.Runner(self.o.dualpipe, made, modules, place, shape, self.device)
        elif runtime == "deepseek":
            runner = dualpipe.Executor(made, modules, place, shape, self.device, watchdog=self.watchdog)
        else:
            runner = torch_runtime.Runner(made, modules, place, shape, self.device, runtime=runtime, pairs=special.get("pairs", "in_turn"),
                                          queues=special.get("queues", "one"), watchdog=self.watchdog)
        if runtime == "deepseek":
            given, target = runner.share(given, target)
        else:
            given = given if 0 in modules else None
            target = target if made.stages - 1 in modules else None
        return runner, place, self.device, given, target

    def too_late(self, name, schedule_name, microbatches, layers):
        """Would it end after the budget, at the pace of the model's slowest run so far?"""
        needed = self.slowest.get(name, 0) * microbatches
        late = self.agreed(time.monotonic() - self.began + needed > self.o.budget)
        if late:
            self.out["not_run"].append(f"{name}, {schedule_name}, M {microbatches}, layers {layers}: {needed:.0f} s more than the budget had left")
            self.say(f"{name:6s} {schedule_name:34s} M {microbatches:3d}  left out: no time")
        return late


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
    wanted = [s for s in (o.schedules.split(";") if o.schedules else EVERY if name == "dense" else FEW)
              if o.dualpipe or not SCHEDULES[s][3].get("package")]
    if place.pipeline % 2:
        wanted = [s for s in wanted if SCHEDULES[s][0] != "dualpipe"]
    for microbatches in o.microbatches:
        for schedule_name in wanted:
            session.run(name, shape, layers, schedule_name, microbatches)
    if name == "ends":
        base = session.profile(name, shape, layers, "one", "torch-single")
        better = session.agreed(by_time(layers, session.out["profiles"][base]) if dist.get_rank() == 0 else None)
        if better != layers:
            for microbatches in o.microbatches:
                for schedule_name in wanted[:BALANCED]:
                    session.run(name, shape, better, schedule_name, microbatches)


def main(o):
    if o.export:
        return export_all(o)
    session = Session(o)
    for name in o.models.split(","):
        run_model(session, name)
    session.write()
    session.watchdog.stop()
    dist.barrier()
    dist.destroy_process_group()


# ------------------------------------------------------------------------------------------------------------------------------- options

def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="runs.json")
    parser.add_argument("--export", metavar="FOLDER", help="write the programs there and stop")
    parser.add_argument("--ranks", type=int, default=4, help="with --export: pipeline depth")
    parser.add_argument("--programs", metavar="FOLDER", help="programs that --export wrote")
    parser.add_argument("--pipeplan", default="pipeplan", metavar="PROGRAM")
    parser.add_argument("--models", default="dense,ends,moe", help="which, in this order")
    parser.add_argument("--schedules", default="", help="only these of each model, separated by semicolons")
    parser.add_argument("--microbatches", default="8,32,16", help="M, in this order")
    parser.add_argument("--shape", default="", help="another model: hidden=256,heads=4,… (fields of model.Shape)")
    parser.add_argument("--blocks", type=int, default=4, help="blocks a rank")
    parser.add_argument("--steps", type=int, default=4, help="timed steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them")
    parser.add_argument("--budget", type=float, default=540, help="seconds, from the start of this script")
    parser.add_argument("--samples", type=int, default=20, help="timings of an action in the profile")
    parser.add_argument("--load", type=float, default=2, help="seconds of load before hot timings")
    parser.add_argument("--dualpipe", metavar="FOLDER", help="DeepSeek's DualPipe package, to run it too")
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--watchdog", type=float, default=120, help="seconds after which a step that does not go on ends the run")
    o = parser.parse_args()
    o.microbatches = [int(count) for count in o.microbatches.split(",")]
    return o


# ------------------------------------------------------------------------------------------------------------------------------ the models

def with_fields(shape, text):
    """Shape with "hidden=256,heads=4" put in."""
    fields = dict(part.split("=") for part in text.split(",")) if text else {}
    return dataclasses.replace(shape, **{name: int(value) for name, value in fields.items()})


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


class Case:
    """One model on its grid, and what its stages take."""

    def __init__(self, o, name, shape, place):
        self.o, self.name, self.shape, self.grid = o, name, shape, place
        self.profiles = {}

    def profile_of(self, layers, text):
        """Name of the profile of that placement, measured if there is none yet."""


def shape_of(o, name, ranks):
    blocks = {"dense": {}, "ends": {"vocab": 65536}, "moe": {"experts": 8, "ffn": 8192}}[name]
    shape = with_fields(dataclasses.replace(model.Shape(layers=o.blocks * ranks), **blocks), o.shape)
    keep = {"dense": (), "ends": ("vocab",), "moe": ("experts",)}[name]
    return dataclasses.replace(shape, **{field: 0 for field in ("vocab", "experts") if field not in keep})


# ------------------------------------------------------------------------------------------------------------------------------- one run

class Measured:
    """A runner with its modules, and what its steps took."""

    def __init__(self, o, runner, place, device, given, target):
        self.o, self.runner, self.place, self.device = o, runner, place, device
        self.given, self.target = given, target
        self.meter = power.Meter(device)

    def step(self):
        """Milliseconds on the host's clock, of the slowest rank, with gradients that exist and are zero."""
        for module in self.runner.modules.values():
            for weight in module.parameters():
                weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad.zero_()
        self.wait()
        dist.barrier()
        begin = time.perf_counter()
        losses = self.runner.step(self.given, self.target)
        self.wait()
        took = torch.tensor((time.perf_counter() - begin) * 1000, device=self.device)
        dist.all_reduce(took, dist.ReduceOp.MAX)
        if not watchdog.all_finite(losses or [], self.device):
            sys.exit(f"rank {dist.get_rank()}: a loss is not finite")
        return took.item()

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def memory(self, peak):
        if self.device.type != "cuda":
            return None
        return torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()

    def measure(self):
        for _ in range(self.o.warmup):
            self.step()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        base = self.memory(peak=False)
        self.meter.begin()
        steps = sorted(self.step() for _ in range(self.o.steps))
        beside = self.meter.end()
        mine = {"base_bytes": base, "peak_bytes": self.memory(peak=True), "sm_clock_mhz": beside.get("clock_mhz"),
                "power_w": beside.get("power_w"), "input_bytes": sum(t.nbytes for t in (self.given, self.target) if t is not None)}
        self.runner.record(True)
        self.step()
        mine["timeline"] = [[name, round(begin, 3), round(end, 3)] for name, begin, end in self.runner.timeline()]
        self.runner.record(False)
        self.meter.close()
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, mine)
        first = ranks[self.place.replica::self.place.data] if self.place.replica == 0 else ranks[::self.place.data]
        run = {name: [rank[name] for rank in first] for name in mine}
        return {"step_ms": [round(ms, 3) for ms in steps], **run}


# ------------------------------------------------------------------------------------------------------------------------------- options

def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="runs.json")
    parser.add_argument("--export", metavar="FOLDER", help="write the programs there and stop")
    parser.add_argument("--ranks", type=int, default=4, help="with --export: pipeline depth")
    parser.add_argument("--programs", metavar="FOLDER", help="programs that --export wrote")
    parser.add_argument("--pipeplan", default="pipeplan", metavar="PROGRAM")
    parser.add_argument("--models", default="dense,ends,moe", help="which, in this order")
    parser.add_argument("--schedules", default="", help="only these of each model, separated by semicolons")
    parser.add_argument("--microbatches", default="8,32,16", help="M, in this order")
    parser.add_argument("--shape", default="", help="another model: hidden=256,heads=4,… (fields of model.Shape)")
    parser.add_argument("--blocks", type=int, default=4, help="blocks a rank")
    parser.add_argument("--steps", type=int, default=4, help="timed steps")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them")
    parser.add_argument("--budget", type=float, default=540, help="seconds, from the start of this script")
    parser.add_argument("--samples", type=int, default=20, help="timings of an action in the profile")
    parser.add_argument("--load", type=float, default=2, help="seconds of load before hot timings")
    parser.add_argument("--dualpipe", metavar="FOLDER", help="DeepSeek's DualPipe package, to run it too")
    parser.add_argument("--device", choices=["cpu", "cuda"])
    parser.add_argument("--watchdog", type=float, default=120, help="seconds after which a step that does not go on ends the run")
    o = parser.parse_args()
    o.microbatches = [int(count) for count in o.microbatches.split(",")]
    return o



if __name__ == "__main__":
    main(options())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs training steps of a plan with megatron-core: its model, its schedules, its data parallelism and optimizer, on synthetic tokens.

    pipeplan plan SPEC.json --format json --output plan.json           # "framework": "megatron"
    pipeplan plan SPEC.json --format csv --output schedule.csv
    torchrun --nproc-per-node 2 examples/megatron/train.py plan.json --schedule schedule.csv --steps 20 --metrics run.log --runs runs.json

A process is a GPU of the plan: pipeline × data × tensor. All that Megatron is told is in the plan. --check holds the first step against the
model without a pipeline and, with --schedule, what Megatron ran against the plan's program. One iteration line a step is printed, as
Megatron-LM's, which `pipeplan monitor` reads; examples/torch/compare.py reads --runs. megatron-core 0.19 has to be installed, or unpacked by
scripts/megatron.
"""
import argparse
import datetime
import json
import logging
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "torch"))

import torch.distributed as dist

import job as jobs
import shim
from pipeline import grid as processes, metrics, program as programs
from pipeline.program import Mismatch
from pipeline.timeline import Timeline
from pipeline.watchdog import say


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", metavar="PLAN.json", help="what `pipeplan plan --format json` writes")
    parser.add_argument("--schedule", metavar="FILE.csv", help="its program, what `pipeplan plan --format csv` writes: is it what Megatron runs?")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--layers", choices=("local", "transformer_engine"), help="default: Transformer Engine's where there is one")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is any")
    parser.add_argument("--check", action="store_true", help="compare the first step with one of the model without a pipeline")
    parser.add_argument("--metrics", metavar="FILE", help="add the iteration lines to this file")
    parser.add_argument("--runs", metavar="FILE", help="write times, memory and a timeline, for compare.py")
    parser.add_argument("--profile", metavar="FILE", help="of --runs: the stages, as profile_stage.py measured them; compare.py wants it")
    parser.add_argument("--warmup", type=int, default=2, metavar="N", help="of --runs: steps that do not count (default 2)")
    return parser.parse_args()


def main():
    options = arguments()
    if "RANK" not in os.environ:
        raise SystemExit(f"train.py: run it as torchrun --nproc-per-node N {sys.argv[0]} …")
    logging.getLogger("megatron").setLevel(logging.ERROR)     # it warns of what it is told here on purpose
    device = processes.start(options.device)
    try:
        shim.load(device)
        train(options, read(options), device)
        dist.barrier()
    except (Mismatch, OSError, shim.Missing) as error:
        say(f"train.py: rank {dist.get_rank()}: {error}")
        os._exit(2)                             # torchrun stops the others
    dist.destroy_process_group()


def read(options):
    """→ (Job, what --schedule says or None)"""
    job = jobs.load(options.plan)
    if dist.get_world_size() != job.plan.processes:
        raise Mismatch(f"{options.plan} is for {job.plan.processes} processes: there are {dist.get_world_size()}; expected --nproc-per-node × "
                       f"--nnodes = {job.plan.processes}")
    if options.runs and options.steps <= options.warmup:
        raise Mismatch(f"--runs with {options.steps} steps, of which {options.warmup} are --warmup: expected more")
    program = programs.load(options.schedule) if options.schedule else None
    if program:
        programs.check(job.plan, program, dist.get_world_size())
    return job, program


def train(options, given, device):
    import chunks, steps  # noqa: E401  they import Megatron
    job, program = given
    engine = chunks.transformer_engine() if options.layers is None else options.layers == "transformer_engine"
    dtype = chunks.dtype_of(job, options.plan)
    place = processes.Grid(job.plan.pipeline)
    chunks.start(job)
    timeline = Timeline(device)
    runner = steps.Steps(job, dtype, device, timeline, engine, options.lr)
    record = metrics.Record(device) if options.runs else None
    iterations, own = [], {}
    for step in range(1, options.steps + 1):
        if record and step == options.warmup + 1:
            record.begin()
            runner.peaks = [0, 0]
        if step == 1:
            begun = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        loss, pipeline_ms = runner.forward_backward(step, whole=options.check and step == 1)
        if options.check and step == 1:
            report = runner.check(step, loss)
            if dist.get_rank() == dist.get_world_size() - 1:
                print(report, flush=True)
        norm, update_ms = runner.update()
        if record and step > options.warmup:
            record.milliseconds.append(pipeline_ms)
            iterations.append(pipeline_ms + update_ms)
        log(options, job, step, loss, norm, pipeline_ms + update_ms)
    if record:
        record.end()
        own = runner.memory()
    if record or (options.check and program):
        runner.forward_backward(options.steps + 1, record=True)
    if options.check and program:
        compare_programs(program, timeline.rows(), place.rank)
    if record:
        write_record(options, job, record, timeline.rows(), own, place, device, first_step_at=begun,
                     iteration_ms=sorted(round(ms, 4) for ms in iterations))


def log(options, job, step, loss, norm, ms):
    if dist.get_rank() != dist.get_world_size() - 1:
        return
    batch = job.plan.global_batch_size
    tflops = job.flops_of_sequence() * batch / dist.get_world_size() / ms / 1e9
    line = metrics.iteration_line(step, options.steps, step * batch, ms, tflops, options.lr, batch, loss, norm)
    print(line, flush=True)
    if options.metrics:
        with open(options.metrics, "a") as file:
            file.write(line + "\n")


def compare_programs(program, rows, rank):
    """What this rank ran, in order, is what the program says."""
    ran, planned = [name for name, _, _ in rows], [str(action) for action in program.actions(rank)]
    for at, (one, other) in enumerate(zip(ran, planned)):
        if one != other:
            raise Mismatch(f"--check: Megatron ran {one} as action {at} of rank {rank}: expected {other}, as {program.source} has it")
    if len(ran) != len(planned):
        raise Mismatch(f"--check: Megatron ran {len(ran)} actions on rank {rank}: expected {len(planned)}, as {program.source} has it")


def write_record(options, job, record, rows, own, place, device, **fields):
    profiles = {}
    if options.profile:
        with open(options.profile) as file:
            profiles[os.path.splitext(os.path.basename(options.profile))[0]] = json.load(file)
    entry = record.entry(place, rows, own, name=job.schedule, schedule=job.schedule, microbatches=job.plan.microbatches, virtual=job.plan.virtual,
                         runtime="megatron", model="moe" if job.shape.experts else "dense", profile=next(iter(profiles), None),
                         layers_per_stage=list(job.plan.layers_per_stage), **fields)
    if dist.get_rank() == 0:
        metrics.write_runs(options.runs, device, "torchrun " + " ".join(sys.argv), profiles, [entry])


if __name__ == "__main__":
    main()

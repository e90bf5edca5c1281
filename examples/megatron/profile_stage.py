#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a profile (pipeplan facts schema profile) of the stages that a plan has Megatron run, each on the card that hosts it.

    torchrun --nproc-per-node 2 examples/megatron/profile_stage.py plan.json >profile.json

The plan says the model, its stages and their layout: any plan of the same sizes will do, for `pipeplan plan --profile` makes other layers out of
what they take. What is measured, and how, is examples/torch/measuring: forward and backward cold, hot and beside a receive that waits, hosts,
memory, messages, and how cards slow down as they work. Megatron's backward is not split into I and W.
"""
import argparse
import logging
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "torch"))

import torch.distributed as dist

import job as jobs
import shim
from measuring import profile
from measuring.timing import Effort
from pipeline import grid
from pipeline.program import Mismatch


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", metavar="PLAN.json", help="what `pipeplan plan --format json` writes")
    parser.add_argument("--layers", choices=("local", "transformer_engine"), help="default: Transformer Engine's where there is one")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    parser.add_argument("--samples", type=int, default=20, help="of each timing")
    parser.add_argument("--load", type=float, help="seconds of load before hot timings (default 2, on a CPU 0.2)")
    parser.add_argument("--pause", type=float, default=0.01, help="least seconds between cold timings")
    parser.add_argument("--heat", type=float, help="seconds of each share of the heat curve, 0: none (default 1, on a CPU 0)")
    return parser.parse_args()


def measure(job, dtype, device, options, engine, cache=None):
    """→ the profile, on rank 0. Collective. options: profile.Options."""
    import actions, chunks, compiled  # noqa: E401  they import Megatron
    plan = job.plan
    place = grid.Grid(plan.pipeline, math.lcm(plan.tensor, plan.expert))   # who has to run the same at the same time
    config = chunks.config_of(job, dtype, engine)
    compiled.experts(config, dtype, device)
    made = profile.profile(job.shape, plan.layers_per_stage, "loop" if plan.virtual > 1 else "one", place, device, dtype, options, cache,
                           build=lambda stage: chunks.wrapped(job, config, chunks.Chunk(job, config, stage, device, engine)),
                           make=actions.StageActions)
    if made:
        made["source"] += ", megatron-core " + shim.version() + (" with Transformer Engine" if engine else "")
        made["at"].update(tensor=plan.tensor, expert=plan.expert, data=plan.data)
    return made


def effort(o, device):
    cuda = device.type == "cuda"
    load, heat = o.load if o.load is not None else 2.0 if cuda else 0.2, o.heat if o.heat is not None else 1.0 if cuda else 0.0
    return profile.Options(effort=Effort(samples=o.samples, load=load, pause=o.pause, pairs=False, two_streams=False), heat=heat, pair="in_turn",
                           runtime="megatron")


def main():
    options = read_options()
    logging.getLogger("megatron").setLevel(logging.ERROR)
    device = grid.start(options.device)
    made, problem = None, None
    try:
        shim.load(device)
        import chunks
        job = jobs.load(options.plan)
        if dist.get_world_size() != job.plan.processes:
            raise Mismatch(f"{options.plan} is for {job.plan.processes} processes: there are {dist.get_world_size()}")
        engine = chunks.transformer_engine() if options.layers is None else options.layers == "transformer_engine"
        chunks.start(job)
        made = measure(job, chunks.dtype_of(job, options.plan), device, effort(options, device), engine)
    except (ValueError, OSError, shim.Missing) as wrong:
        problem = wrong
    profile.end(made, problem)


if __name__ == "__main__":
    main()

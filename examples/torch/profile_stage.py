#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a profile (pipeplan facts schema profile) of a transformer's pipeline stages with PyTorch, each on the card that hosts it.

usage: torchrun --nproc-per-node P examples/torch/profile_stage.py [options] > profile.json

Every stage's forward, backward, its halves I and W, and a pair F&B are timed directly, cold, hot and beside a receive that waits, with clocks,
power and memory; and messages, collectives, and how cards slow down as they work. With more processes than pipeline ranks the others are
replicas, which share experts with --expert. With --microbatches it runs 1F1B too, and writes the median of its steps as `calibration`.
The model is that of examples/torch/pipeline/model.py: replace Block by your own.

  torchrun --nproc-per-node 4 examples/torch/profile_stage.py --layers 4,4,4,4 --microbatches 8,32
  torchrun --nproc-per-node 4 -- examples/torch/profile_stage.py --virtual 2 --placement v --layers 2,2,2,2,2,2,2,2
  torchrun --nproc-per-node 2 examples/torch/profile_stage.py --device cpu --model examples/models/tiny.json
  torchrun --nproc-per-node 4 examples/torch/profile_stage.py --layers 4,4 --expert 2 --shape hidden=2048,ffn=1408,experts=16
"""
import argparse

import torch
import torch.distributed as dist

from measuring import profile
from pipeline import grid, model, options as types
from measuring.timing import Effort

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}


def even_layers(layers, stages):
    if layers and layers % stages:
        raise ValueError(f"the model's {layers} layers are not the same on {stages} stages: expected --layers, {stages} numbers")
    return [layers // stages if layers else 4] * stages


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=types.counts, help="layers of each stage (default: as many on each, of --model; else 4)")
    parser.add_argument("--model", metavar="FILE", type=types.config, default={}, help="a Hugging Face config.json, for its sizes")
    parser.add_argument("--shape", type=types.sizes, default={}, help="NAME=NUMBER,… over those of --model: hidden, heads, ffn, vocab, experts, …")
    parser.add_argument("--virtual", type=types.count, default=1, help="stages a rank")
    parser.add_argument("--virtual-stages", type=types.count, dest="virtual", action=types.Renamed, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--placement", choices=profile.PLACEMENTS, help="of stages on ranks (default one, or loop with --virtual)")
    parser.add_argument("--expert", type=types.count, default=1, help="replicas of a stage that share its experts")
    parser.add_argument("--data", type=types.whole, default=0, help="replicas (default: as --expert)")
    parser.add_argument("--microbatches", type=types.counts, default=[], help="M of 1F1B steps, such as 8,32")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    parser.add_argument("--dtype", choices=DTYPES, help="default bf16, on a CPU fp32")
    parser.add_argument("--samples", type=types.count, default=20, help="of each timing")
    parser.add_argument("--load", type=types.not_negative, help="seconds of load before hot timings (default 2, on a CPU 0.2)")
    parser.add_argument("--pause", type=types.not_negative, default=0.01, help="least seconds between cold timings")
    parser.add_argument("--heat", type=types.not_negative, help="seconds of each share of the heat curve, 0: none (default 1, on a CPU 0)")
    parser.add_argument("--pair", choices=("better", "in_turn", "two_streams"), default="better", help="which F&B the profile gives as FB")
    return parser.parse_args()


def measure(o, device):
    dtype = DTYPES[o.dtype or ("bf16" if device.type == "cuda" else "fp32")]
    world, replicas = dist.get_world_size(), o.data or o.expert
    if replicas < 1 or world % replicas:
        raise ValueError(f"{replicas} replicas of each stage do not fit {world} processes: expected a divisor")
    place = grid.Grid(world // replicas, o.expert)
    layers = o.layers or even_layers(o.model.get("layers"), place.pipeline * o.virtual)
    if len(layers) != place.pipeline * o.virtual:
        raise ValueError(f"--layers has {len(layers)} stages: expected {place.pipeline * o.virtual}, {o.virtual} on each of "
                         f"{place.pipeline} ranks")
    if o.microbatches and (o.virtual > 1 or o.placement not in (None, "one")):
        raise ValueError("--microbatches runs 1F1B, which has one stage a rank: expected no --virtual, nor another --placement")
    shape = model.Shape(**{**o.model, "layers": sum(layers), **o.shape})
    if wrong := model.wrong_size(shape):
        raise ValueError(wrong)
    if few := [count for count in o.microbatches if count < place.pipeline]:
        raise ValueError(f"--microbatches {few[0]}: 1F1B of {place.pipeline} ranks takes {place.pipeline} or more")
    load = (2.0 if device.type == "cuda" else 0.2) if o.load is None else o.load
    heat = (1.0 if device.type == "cuda" else 0.0) if o.heat is None else o.heat
    options = profile.Options(effort=Effort(samples=o.samples, load=load, pause=o.pause), heat=heat, pair=o.pair,
                              calibration=tuple(o.microbatches))
    return profile.profile(shape, layers, o.placement or ("loop" if o.virtual > 1 else "one"), place, device, dtype, options)


def main():
    options = read_options()
    device = grid.start(options.device)
    made, problem = None, None
    try:
        made = measure(options, device)
    except ValueError as wrong:
        problem = wrong
    profile.end(made, problem)


if __name__ == "__main__":
    main()

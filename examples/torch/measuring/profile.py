# SPDX-License-Identifier: Apache-2.0
"""Composes a profile (pipeplan facts schema profile) of a model's stages, each measured on the rank that hosts it.

    made = profile(shape, [4, 4, 4, 4], "one", grid, device, dtype, Options(), cache={})    # a dict on world rank 0, None elsewhere

Every process of the grid calls it alike. Stages with as many layers and the same ends are one kind, measured once a rank; what the cache
holds is not measured again, so that several placements of a model cost what is new in them.
"""
from __future__ import annotations

import dataclasses
import functools
import gc
import itertools
import json
import statistics
import sys
import time
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from . import heat, memory
from pipeline import model, power
from .actions import Actions, Deferred
from .control import Control
from .doubts import doubts
from .links import Links
from .timing import Clock, Effort, Timer
from pipeline.torch_runtime import Runner, own_program

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn
    from pipeline.grid import Grid
    from pipeline.model import Shape

    from .timing import Clock

_benches = itertools.count()     # names in the store; the same in every process, for all make the same calls
PLACEMENTS = ("one", "loop", "v", "bidirectional")


@dataclasses.dataclass(frozen=True)
class Options:
    """effort: of timings. pair: which F&B the profile gives as FB: "better" on hot cards, "in_turn" (as PyTorch's runtime runs it) or "two_streams".
    heat: seconds of each share of the heat curve, 0: none. links: are messages timed? calibration: numbers of microbatches of 1F1B steps,
    where a rank has one stage. runtime: of the schema; None: torch-single with one stage a rank, deepseek for bidirectional, else torch-multi.
    split: whose I and W, "torch" for PyTorch's runtime, "deferred" for dualpipe.py; None: deferred where the runtime is deepseek."""
    effort: Effort = Effort()
    pair: str = "better"
    heat: float = 1.0
    links: bool = True
    calibration: tuple = ()
    runtime: str | None = None
    split: str | None = None


def quick(**changes: Any) -> Options:
    """Options for a first look, a few seconds a kind of stage."""
    return dataclasses.replace(Options(effort=Effort(samples=8, load=1.0), heat=0.5), **changes)


def ranks_of_stages(placement: str | Sequence[int], ranks: int, stages: int) -> list[int]:
    """Rank by stage. "one": a stage a rank; "loop": 0 1 … 0 1 …; "v": 0 1 … 1 0 …; "bidirectional": one a rank, and the other direction's
    stages behind them, mirrored; or a list of ranks."""
    if not isinstance(placement, str):
        return list(placement)
    if placement not in PLACEMENTS:
        raise ValueError(f'placement "{placement}": expected one of {", ".join(PLACEMENTS)}, or ranks by stage')
    if stages % ranks or (placement in ("one", "bidirectional") and stages != ranks):
        raise ValueError(f'{stages} stages on {ranks} ranks do not fit placement "{placement}"')
    if placement == "bidirectional":
        return list(range(ranks)) + list(reversed(range(ranks)))
    passes = [list(range(ranks)) for _ in range(stages // ranks)]
    return [rank for i, one in enumerate(passes) for rank in (reversed(one) if placement == "v" and i % 2 else one)]


# ---------------------------------------------------------------------------------------------------------------------- one kind of stage

def _bench(grid: Grid, device: torch.device, cache: dict) -> tuple[Control, Links, power.Meter]:
    """Communicators, store and meter, made once for processes so laid out."""
    key = "bench", _layout(grid)
    if key not in cache:
        control, meter = Control(f"profile/{next(_benches)}"), power.Meter(device)
        for doubt in doubts(device, meter.source is not None):
            print(f"rank {dist.get_rank()}: {doubt}", file=sys.stderr)
        cache[key] = control, Links(grid, device, control), meter
    return cache[key]


def _layout(grid: Grid) -> tuple[int, int, int]:
    return grid.pipeline, grid.data, grid.expert


def _measure(kind: tuple[int, bool, bool], build: Callable, shape: Shape, grid: Grid, device: torch.device, dtype: torch.dtype, options: Options,
             make: Callable, bench: tuple) -> tuple[dict[str, Any], Timer]:
    """→ what a kind of stage takes, and the Timer, warm, for more. Collective over the world: one kind on each rank."""
    control, links, meter = bench
    stage = build()
    actions = make(stage, shape, kind[1], kind[2], device, dtype)
    actions.backward(actions.forward())                 # allocates what stays
    if actions.splits:
        actions.backward_weight(actions.backward_input(actions.forward()))
    weighed = memory.weigh(actions, device)
    timer = Timer(actions, device, options.effort, meter, control, grid.expert_group)
    # Not beside an expert group's own messages: they would share channels with what waits. _contention has the card's factor then.
    shadow = None if grid.expert_group else links.shadow(shape.message_elements * dtype.itemsize)
    return {**timer.measure(shadow), "mem": weighed, "step_fixed_us": _fixed(actions, timer.clock)}, timer


def _fixed(actions: Actions, clock: Clock) -> float:
    """Microseconds that a step takes once beside its actions."""
    spans = []
    for _ in range(5):
        begin = clock.mark()
        actions.end_step()
        end = clock.mark()
        clock.wait(end)
        spans.append(clock.milliseconds(begin, end) * 1000)
    return round(statistics.median(spans), 1)


def _card_ms(device: torch.device, clock: Clock) -> float:
    """One product of matrices on this card, after half a second of them."""
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    until = time.perf_counter() + 0.5
    spans: list[float] = []
    while time.perf_counter() < until or len(spans) < 20:
        begin = clock.mark()
        torch.mm(a, a)
        end = clock.mark()
        clock.wait(end)
        spans.append(clock.milliseconds(begin, end))
    return statistics.median(spans[-20:])


# ---------------------------------------------------------------------------------------------------------------------------- the whole

def profile(shape: Shape, layers_per_stage: Sequence[int], placement: str | Sequence[int], grid: Grid, device: torch.device,
            dtype: torch.dtype = torch.bfloat16, options: Options = Options(), cache: dict | None = None, build: Callable | None = None,
            make: Callable | None = None) -> dict[str, Any] | None:
    """build(number of the stage) → a stage, make → its Actions: of another framework than examples/torch."""
    cache = {} if cache is None else cache
    bench = _bench(grid, device, cache)
    layers, ranks = list(layers_per_stage), ranks_of_stages(placement, grid.pipeline, len(layers_per_stage))
    kinds = [(layers[s % len(layers)], s % len(layers) == 0, s % len(layers) == len(layers) - 1) for s in range(len(ranks))]
    runtime = options.runtime or _runtime(ranks, len(layers), grid)
    make = make or (Deferred if (options.split or ("deferred" if runtime == "deepseek" else "torch")) == "deferred" else Actions)
    build = build or (lambda stage: model.build_stage(shape, layers, stage, grid.expert_group, device, dtype))
    hosted = [s for s, rank in enumerate(ranks) if rank == grid.rank]
    if options.pair == "in_turn":
        options = dataclasses.replace(options, effort=dataclasses.replace(options.effort, two_streams=False))
    sort = (shape_key(shape), str(dtype), grid.expert, make, options.effort)
    _measure_kinds(hosted, kinds, layers, sort, shape, grid, device, dtype, options, build, make, bench, cache)
    mine = {str(s): cache[sort, kinds[s]] for s in hosted}
    gathered = bench[0].gather({"stages": mine, "heat": cache.get(("heat", sort[:3])), "card": cache.get("card"), "rank": grid.rank,
                                "replica": grid.replica})
    messages = _messages(shape, grid, device, dtype, options, bench, cache)
    made = _compose(shape, kinds, ranks, gathered, grid, device, runtime, options)
    made.update(message_bytes=shape.message_elements * dtype.itemsize, **messages,
                **_contention(made["stage"], cache, lambda: _beside_a_receive(shape, grid, device, dtype, options.effort, bench)))
    for microbatches in options.calibration:
        made.setdefault("calibration", []).append(_calibrate(shape, layers, ranks, grid, device, dtype, microbatches, bench[0]))
        _clear(device)
    return made if dist.get_rank() == 0 else None


def _contention(stages: list, cache: dict, measure: Callable[[], float | None]) -> dict[str, float]:
    """How much longer the card takes beside a receive that waits, where these stages were not timed so: as others before, or as measured now."""
    if all("kind_ms_shadowed" in stage for stage in stages):
        cold, shadowed = (sum(_sum(stage[state]) for stage in stages) for state in ("kind_ms_cold", "kind_ms_shadowed"))
        cache.setdefault("contention", round(shadowed / cold, 4))
        return {}
    if "contention" not in cache:
        cache["contention"] = measure()
    return {"contention": cache["contention"]} if cache["contention"] else {}


def _beside_a_receive(shape: Shape, grid: Grid, device: torch.device, dtype: torch.dtype, effort: Effort, bench: tuple) -> float | None:
    """→ that factor of a dense block that computes as much as one of these, the mean over cards; None where nobody sends. Collective."""
    control, links, meter = bench
    shadow = links.shadow(shape.message_elements * dtype.itemsize) if effort.shadowed else None
    if not shadow:
        return None
    dense = dataclasses.replace(shape, layers=3, vocab=0, experts=0, ffn=shape.ffn * (shape.experts_per_token if shape.experts else 1))
    actions = Actions(model.build_stage(dense, [1, 1, 1], 1, None, device, dtype), dense, False, False, device, dtype)
    cold, shadowed = Timer(actions, device, effort, meter, control).beside(shadow)
    del actions
    _clear(device)
    return max(1.0, round(statistics.fmean(control.gather(_sum(shadowed) / _sum(cold))), 4))


def _slope(made: dict[str, Any]) -> float:
    """How much longer hot actions take than cold ones, less one: of those that keep the card busy, not waiting for its host, in a row of them."""
    cold, host, behind = made["cold"], made.get("host_ms"), made.get("host_ms_behind", {})
    kinds = [kind for kind in ("F", "B") if not host or host[kind] < 0.8 * cold[kind] and behind[kind] - host[kind] < made["behind_ms"] / 2]
    return sum(made["hot"][kind] for kind in kinds) / sum(cold[kind] for kind in kinds) - 1 if kinds else 0.0


def _rank_slopes(gathered: list, ranks: int) -> list[float]:
    """Of each rank's card; what comes out below nothing is noise."""
    return [round(max(0.0, statistics.fmean(g["heat"]["slope"] for g in gathered if g["rank"] == rank and g["heat"])), 4) for rank in range(ranks)]


def _slowest(gathered: list) -> list:
    """Of what all processes measured: that of the replica whose slowest rank is the slowest. The others wait for it at the end of a step."""
    def longest(replica: int) -> float:
        return max(sum(_sum(made["cold"]) for made in g["stages"].values()) for g in gathered if g["replica"] == replica)
    slowest = max(sorted({g["replica"] for g in gathered}), key=longest)
    return [g for g in gathered if g["replica"] == slowest]


def _fullest(gathered: list, stage: int) -> dict[str, Any]:
    """`mem` of a stage: the most of all replicas."""
    return memory.most([g["stages"][str(stage)]["mem"] for g in gathered if str(stage) in g["stages"]])


def _sum(times: dict[str, float]) -> float:
    return times["F"] + times["B"]


def shape_key(shape: Shape) -> tuple:
    """A stage does not depend on how many layers the model has elsewhere."""
    return tuple(value for name, value in dataclasses.asdict(shape).items() if name not in ("layers", "seed"))


def _measure_kinds(hosted: list[int], kinds: list, layers: list[int], sort: Any, shape: Shape, grid: Grid, device: torch.device,
                   dtype: torch.dtype, options: Options, build: Callable, make: Callable, bench: tuple, cache: dict) -> Any:
    """Fills the cache. Ranks with less to measure measure something again, so that all cards work at once."""
    control = bench[0]
    wanted = list(dict.fromkeys(kinds[s] for s in hosted))
    new = [kind for kind in wanted if (sort, kind) not in cache]
    heat_wanted = control.most(options.heat > 0 and ("heat", sort[:3]) not in cache)
    for slot in range(max(control.most(len(new)), int(heat_wanted))):
        kind = new[slot] if slot < len(new) else wanted[0]
        stage = next(s for s in hosted if kinds[s] == kind) % len(layers)
        made, timer = _measure(kind, functools.partial(build, stage), shape, grid, device, dtype, options, make, bench)
        cache.setdefault((sort, kind), made)
        if slot == 0 and heat_wanted:
            slope = _slope(made)
            cache["heat", sort[:3]] = {**heat.Heat(timer, options.heat).measure(), "slope": slope}
        del timer
        _clear(device)
    if device.type == "cuda" and "card" not in cache:
        control.barrier()
        cache["card"] = _card_ms(device, Clock(device))


def _clear(device: torch.device) -> None:
    """Leaves a card as it was, for runs whose memory is measured."""
    gc.collect()
    if device.type == "cuda":
        getattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)()
        torch.cuda.empty_cache()


def _messages(shape: Shape, grid: Grid, device: torch.device, dtype: torch.dtype, options: Options, bench: tuple, cache: dict) -> dict[str, Any]:
    if not options.links:
        return {}
    message = shape.message_elements * dtype.itemsize
    key = "links", message, _layout(grid)
    if key not in cache:
        p2p = bench[1].p2p(message)
        cache[key] = {**({"p2p": p2p} if p2p else {}), **bench[1].collectives(message)}
        _clear(device)
    return cache[key]


def _way(measured: dict[str, Any], pair: str) -> str | None:
    """Which F&B counts: the one that `pair` says, or the one that is faster on hot cards."""
    ways = [way for way in ("in_turn", "two_streams") if f"FB_{way}" in measured["hot"]]
    return pair if pair in ways else min(ways, key=lambda way: measured["hot"][f"FB_{way}"], default=None)


def _stage(shape: Shape, kind: tuple, measured: dict[str, Any], rank: int, pair: str) -> dict[str, Any]:
    layers, starts, ends = kind
    out = {"layers": layers, "dense": 0 if shape.experts else layers, "embedding": bool(starts and shape.vocab),
           "head": bool(ends and shape.vocab), "rank": rank}
    way = _way(measured, pair)
    for state in ("cold", "hot", "alone", "shadowed"):
        if state in measured:
            out[f"kind_ms_{state}"] = {**measured[state], **({"FB": measured[state][f"FB_{way}"]} if way else {})}
    for quantity in ("host_ms", "host_ms_behind", "clock_mhz", "power_w"):
        if measured.get(quantity):
            out[quantity] = measured[quantity]
    return out


def _runtime(ranks: list[int], stages: int, grid: Grid) -> str:
    if len(ranks) > stages:                     # both directions
        return "deepseek"
    return "torch-multi" if stages > grid.pipeline else "torch-single"


def _compose(shape: Shape, kinds: list, ranks: list[int], gathered: list, grid: Grid, device: torch.device, runtime: str,
             options: Options) -> dict[str, Any]:
    mine = _slowest(gathered)
    several = [next(g["stages"][str(s)] for g in mine if str(s) in g["stages"]) for s in range(len(kinds))]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    made: dict[str, Any] = {
        "source": f"{dist.get_world_size()} × {name}, PyTorch {torch.__version__}", "runtime": runtime,
        "at": {"expert": grid.expert, "data": grid.data, "sequence_length": shape.sequence_length, "micro_batch_size": shape.micro_batch_size},
        "stage": [{**_stage(shape, kind, measured, rank, options.pair), "mem": _fullest(gathered, s)}
                  for s, (kind, measured, rank) in enumerate(zip(kinds, several, ranks))],
    }
    if device.type == "cuda":
        made["behind_ms"] = min(measured["behind_ms"] for measured in several)
    if device.type == "cuda" and not shape.experts:      # a host that learns how many rows go where waits for the card
        made["launch_us"] = round(statistics.fmean(measured["launch_us"] for measured in several), 1)
    if runtime.startswith("torch"):
        made["mem"] = {"buffers_per_microbatch": 2}
    if runtime.startswith(("torch", "megatron")):
        made["step_fixed_us"] = max(sum(m["step_fixed_us"] for m, at in zip(several, ranks) if at == rank) for rank in range(grid.pipeline))
    if all(g["card"] for g in gathered) and grid.pipeline > 1:
        mean = statistics.fmean(1 / g["card"] for g in gathered)
        made["rank_speed"] = [round(1 / next(g["card"] for g in mine if g["rank"] == rank) / mean, 4) for rank in range(grid.pipeline)]
    heats = [g["heat"] for g in gathered if g["heat"]]
    if heats:
        made["heat"] = heat.combine(heats)
        if "slope" in made["heat"] and grid.pipeline > 1:
            made["heat"]["rank_slope"] = _rank_slopes(mine, grid.pipeline)
    return made


def end(made: dict[str, Any] | None, problem: Exception | None) -> NoReturn:
    """Ends profile_stage.py: prints the profile, which one process has, or on the first what was wrong, with status 2. Collective."""
    if problem and dist.get_rank() == 0:
        print(f"profile_stage.py: {problem}", file=sys.stderr)
    if made:
        json.dump(made, sys.stdout, indent=2, ensure_ascii=False)
        print()
    dist.barrier()
    dist.destroy_process_group()
    sys.exit(2 if problem else 0)


# -------------------------------------------------------------------------------------------------------------------------- calibration

def _calibrate(shape: Shape, layers: list[int], ranks: list[int], grid: Grid, device: torch.device, dtype: torch.dtype, microbatches: int,
               control: Control) -> dict[str, Any]:
    """Median of five steps of PyTorch's 1F1B, the slowest rank's, gradients not reduced over replicas."""
    if ranks != list(range(grid.pipeline)):
        raise ValueError("calibration runs 1F1B: expected one stage a rank")
    stage = model.build_stage(shape, layers, grid.rank, grid.expert_group, device, dtype)
    runner = Runner(own_program("1f1b", grid.pipeline, microbatches), {grid.rank: stage}, grid, shape, device, own="1f1b")
    x, target = model.batch(shape, microbatches, device=device, dtype=dtype)
    clock, steps = Clock(device), []
    for step in range(8):
        stage.zero_grad(set_to_none=False)
        clock.wait(clock.mark())
        control.barrier()
        begin = time.perf_counter()
        runner.step(x, target)
        clock.wait(clock.mark())
        seconds = control.most(time.perf_counter() - begin)
        if step > 2:
            steps.append(seconds)
    return {"schedule": "1f1b", "microbatches": microbatches, "step_ms": round(statistics.median(steps) * 1e3, 3)}

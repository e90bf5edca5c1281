# SPDX-License-Identifier: Apache-2.0
"""The runs measured on 4 × H200 (tests/data/gpu) as a runs.json for examples/torch/compare.py, with the profiles that measured_runs.lua
predicts them from.

usage: gpu_runs.py open|second|by_card [DIRECTORY]   → standard output
  open      the first day's runs by PyTorch and DeepSeek's package, each from the isolated profile of one card in its own file
  second    the second day's, from the isolated profile of the first
  by_card   the second day's, from the profile that it took of each card, cold and hot; contention 1.18 and the onset of heat are what
            timelines of the first day showed
A third argument names a folder with the files before their timelines were left out: then the runs have them.
"""
import json
import re
import statistics
import sys

RANKS, BLOCKS, GIB = 4, 16, 2**30
MESSAGE = 4096 * 4096 * 2
GRADIENTS = 4 * 12 * 4096**2 * 2     # of a rank's 4 blocks; base_gb is without them

# names in the files → schedule, runtime, pairs, virtual where the file does not say
NAMES = {
    "torch:GPipe": ("gpipe", "torch-single"), "torch:1F1B": ("1f1b", "torch-single"),
    "torch:Interleaved1F1B": ("interleaved_1f1b", "torch-multi"), "torch:InterleavedZeroBubble": ("interleaved_zero_bubble", "torch-multi"),
    "torch:ZBVZeroBubble": ("zb_v", "torch-multi"), "torch:DualPipeV": ("dualpipev", "torch-multi", "in_turn"),
    "deepseek:DualPipe": ("dualpipe", "deepseek", None, 1), "deepseek:DualPipeV": ("dualpipev", "deepseek", None, 2),
    "1f1b": ("1f1b", "torch-single"), "gpipe": ("gpipe", "torch-single"), "zb_h1": ("zb_h1", "torch-multi"), "zb_h2": ("zb_h2", "torch-multi"),
    "zbv": ("zb_v", "torch-multi"), "interleaved": ("interleaved_1f1b", "torch-multi"), "dualpipev": ("dualpipev", "torch-multi", "in_turn"),
    "dualpipev_split": ("dualpipev", "torch-multi", "split"),
}


def read(folder, name):
    with open(f"{folder}/{name}_4xH200.json", encoding="utf-8") as file:
        return json.load(file)


def placement(schedule, virtual):
    """Ranks of the stages: a V comes back down, a loop starts again."""
    ranks = list(range(RANKS))
    return [rank for slot in range(virtual) for rank in (ranks[::-1] if schedule in ("zb_v", "dualpipev") and slot % 2 else ranks)]


def memory(blocks):
    """measured-in-the-run bytes of `blocks`, in messages: 16 a block of activations, 9 of gradients of outputs that W needs."""
    return {"act_bytes": 16 * blocks * MESSAGE, "wgrad_pending_bytes": 25 * blocks * MESSAGE, "transient_bytes": 9 * MESSAGE}


def profile(stages, message_us, **more):
    return {"stage": stages, "p2p": [{"bytes": MESSAGE, "us": message_us}], "message_bytes": MESSAGE, **more}


def isolated(data, blocks, stages):
    """One card, whatever its temperature. Its W is a difference of two timings: W is what I leaves of B."""
    row = next(row for row in data["isolated"] if row["layers"] == blocks)
    stage = {"layers": blocks, "kind_ms": {kind: row[kind] for kind in "FBI"}, "mem": memory(blocks)}
    return profile([stage] * stages, data["comm_us"]["act"])


def by_card(data, blocks, ranks, message_us):
    """Of each stage on the card that holds it; how much slower cards get when they are hot: the mean over cards and kinds."""
    slope = statistics.mean(card["hot"][kind] / card["cold"][kind] - 1 for row in data["profiles"] for card in row for kind in "FIWB")
    cards = {card["layers"]: row for row in data["profiles"] for card in row}[max(blocks, 2)]
    stages = []
    for rank in ranks:
        cold = {kind: ms * (0.5 if blocks == 1 else 1) for kind, ms in cards[rank]["cold"].items() if kind in "FBIW"}
        stages.append({"layers": blocks, "kind_ms_cold": cold, "mem": memory(blocks),
                       "kind_ms_hot": {kind: ms * (1 + slope) for kind, ms in cold.items()},
                       "kind_ms_shadowed": {kind: ms * 1.18 for kind, ms in cold.items()}})
    return profile(stages, message_us, heat={"onset": 0.59, "tau_ms": 30})


def timeline(run, ranks):
    """["F@0:3", start, end] of PyTorch's stages, by their place on the rank → ["0F3", …]."""
    rows = run.get("timeline")
    if not rows or not all(re.fullmatch(r"[FBIW]@\d+:\d+", row[0]) for rank in rows for row in rank):
        return None
    out = []
    for rank, actions in enumerate(rows):
        mine = [stage for stage, at in enumerate(ranks) if at == rank]
        out.append([])
        for name, start, end in actions:
            kind, number, microbatch = re.fullmatch(r"([FBIW])@(\d+):(\d+)", name).groups()
            assert int(number) in mine
            out[-1].append([f"{number}{kind}{microbatch}", start, end])
    return out


def memory_of(run, runtime):
    """Not of the runs by DeepSeek's package: their peak is that of the seventh step whose gradients nobody dropped, see measured_runs.lua."""
    if runtime == "deepseek":
        return {}
    return {"peak_bytes": [gb * GIB for gb in run["peak_gb"]], "base_bytes": [gb * GIB + GRADIENTS for gb in run["base_gb"]]}


def convert(runs, profile_of, profiles):
    out = []
    for run in runs:
        schedule, runtime, pairs, virtual = (NAMES[run["schedule"]] + (None, None))[:4]
        virtual = virtual or run["virtual"]
        blocks = 4 if schedule == "dualpipe" else BLOCKS // RANKS // virtual
        ranks = placement(schedule, virtual)
        name = f"{schedule}-{virtual}"
        profiles[name] = profile_of(blocks, ranks)
        out.append({
            "name": run["schedule"], "schedule": schedule, "runtime": runtime, "pairs": pairs, "ranks": RANKS, "microbatches": run["M"],
            "virtual": virtual, "directions": 2 if schedule == "dualpipe" else 1, "model": "dense", "profile": name,
            "layers_per_stage": [blocks] * len(ranks), "step_ms": [1e3 * s for s in run["step_s"]],
            **memory_of(run, runtime),
            "keeps_outputs": True, "timeline": timeline(run, ranks), "sm_clock_mhz": run.get("sm_clock_mhz"), "power_w": run.get("power_w"),
        })
    return out


def main():
    kind, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "tests/data/gpu"
    torch, profiles, runs = read(folder, "torch_pipelining"), {}, []
    if kind == "open":
        for data, prefix in ((torch, "torch-"), (read(folder, "deepseek_dualpipe"), "deepseek-")):
            own = {}
            some = convert(data["runs"], lambda blocks, ranks: isolated(data, blocks, len(ranks)), own)
            profiles.update({prefix + name: value for name, value in own.items()})
            runs += [{**run, "profile": prefix + run["profile"]} for run in some]
    else:
        second = read(folder, "what_if")
        of_day = {"second": lambda blocks, ranks: isolated(torch, blocks, len(ranks)),
                  "by_card": lambda blocks, ranks: by_card(second, blocks, ranks, torch["comm_us"]["act"])}
        runs = convert(second["runs"], of_day[kind], profiles)
    print(json.dumps({"source": f"4 × {torch['gpu']}, PyTorch {torch['torch']}", "profiles": profiles, "runs": runs}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for torchtitan, as `pipeplan plan --format torchtitan` writes them, before torchtitan's own code (torchtitan_verdict.py): does it take
them, and does it build the layers, microbatches and placement of the plan? So those of the examples and README. And does it refuse and accept tests/data/torchtitan_cases.txt as
that says? usage: torchtitan_plans_test.py [PLANS [FIRST SEED]]    default 6, on at most 512 GPUs, of few actions. In build/torch:
pip install --no-deps torchtitan==0.3.0 triton; pip install spmd_types==0.2.3 tyro tokenizers datasets torchdata "huggingface_hub<1"."""
import json
import os
import shlex
import subprocess
import sys
import tempfile

import judged
import torchtitan_verdict as verdict

MOST_ACTIONS = 600   # forwards of a plan, of all ranks

MODEL = "--module llama3 --config llama3_debugmodel".split()


def arguments_of(text, folder):
    """Of a launch: GPUs, and what torchtitan gets; the schedule in a file."""
    if "<<'CSV'" in text:
        head, rest = text.split("<<'CSV'\n")
        program, text = rest.split("\nCSV\n")
        path = os.path.join(folder, "schedule.csv")
        with open(path, "w") as file: file.write(program + "\n")
        text = head.rsplit("\n", 1)[0] + "\n" + text.replace('"$schedule"', path)
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    at = words.index("torchtitan.train") + 1
    nodes, each = words[words.index("--nnodes") + 1], words[words.index("--nproc_per_node") + 1]
    rest = [word for word in words[at:] if word != "$@"]
    own = rest[rest.index("--module") + 1] == "${MODULE:?}"
    return int(nodes) * int(each), (MODEL + rest[4:] if own else rest)


def programs(folder):
    for name in ("zb_h1", "zb_h2", "v_half", "interleaved_1f1b"):
        virtual = ["--virtual", "2"] if name in ("v_half", "interleaved_1f1b") else []
        made = subprocess.run([os.environ.get("PIPEPLAN", "build/release/pipeplan"), "simulate", name, "--ranks", "4", "--microbatches", "8",
                               "--format", "csv", *virtual], capture_output=True, text=True, check=True)
        with open(os.path.join(folder, name + ".csv"), "w") as file: file.write(made.stdout)


def cases(folder):
    programs(folder)
    wrong = tried = 0
    for line in open("tests/data/torchtitan_cases.txt"):
        if line.startswith("#"): continue
        gpus, want, name, options = line.rstrip("\n").split(" ", 3)
        words, want = shlex.split(options.replace("{csv}", folder)), want.split(":")[0]
        theirs = verdict.judge(int(gpus), words if "--module" in words else MODEL + words)
        tried += 1
        if theirs["ok"] != (want != "reject"):
            wrong += 1
            print(f"{name}: torchtitan {'accepts' if theirs['ok'] else 'refuses'} it: {theirs}")
    print(f"{tried} command lines: {wrong} judged otherwise")
    return wrong or tried < 70


def models():
    """The table of models, against the functions that are their source."""
    import importlib
    wrong = 0
    made = subprocess.run(["lua5.4", "tests/torch/torchtitan_plans.lua", "models"], capture_output=True, text=True, check=True,
                          env={**os.environ, "LUA_PATH": "tests/?.lua;;"})
    for line in made.stdout.splitlines():
        ours = json.loads(line)
        registry = importlib.import_module(f"torchtitan.models.{ours['module']}.config_registry")
        try:
            with verdict.quiet(sys.stderr): config = getattr(registry, ours["config"])()
        except ImportError as problem:   # torchao, for float8
            print(f"{ours['config']}: not asked: {problem}")
            continue
        if len(config.model_spec.model.layers) != ours["layers"]: wrong += 1
        for key, value in ours["sets"].items():
            section, _, name = key.partition(".")
            theirs = getattr(getattr(config, section), name) if name else {"FullAC": "full", "SelectiveAC": "selective"}[
                type(config.activation_checkpoint).__qualname__.split(".")[0]]
            if (",".join(theirs) if isinstance(theirs, list) else theirs) != value:
                wrong += 1
                print(f"{ours['config']}: {key} is {theirs}, the table has {value}")
        from torchtitan.config import ParallelismConfig, TrainingConfig
        for section, default in (("parallelism", ParallelismConfig()), ("training", TrainingConfig())):
            for name in default.__dataclass_fields__:
                if getattr(getattr(config, section), name) != getattr(default, name) and f"{section}.{name}" not in ours["sets"]:
                    wrong += 1
                    print(f"{ours['config']}: sets {section}.{name}, the table does not say so")
    return wrong


def plans(folder, what, least, *words):
    def judge(given):
        if given["actions"] > MOST_ACTIONS and os.environ.get("PIPEPLAN_LONG") != "1":
            print(f"{given['seed']}: not asked: a schedule of {given['actions']} forwards takes minutes, and PIPEPLAN_LONG=1 asks")
            return None
        gpus, arguments = arguments_of(given["text"], folder)
        return {**verdict.judge(gpus, arguments, given["layers"]), "gpus": gpus}, {**given["plan"], "gpus": given["gpus"]}
    return judged.plans(what, least, ["tests/torch/torchtitan_plans.lua", *words], "torchtitan", judge)


def main(count, first):
    lacks = verdict.missing()
    if lacks:
        print(f"skipped: no {lacks} beside PyTorch: torchtitan 0.3.0 and what it imports are 1.3 GB; the head of this file has how")
        return 77
    verdict.load()
    with tempfile.TemporaryDirectory() as folder:
        wrong = bool(cases(folder)) | bool(models()) | bool(plans(folder, "shipped plans", 4, "shipped"))
        return 1 if wrong | bool(plans(folder, "plans", count, str(first), str(count), "512")) else 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(words[0] if words else 6, words[1] if len(words) > 1 else 1))

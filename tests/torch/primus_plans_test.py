#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for Primus, as `pipeplan plan --format primus` writes them, before Primus's own code (primus_verdict.py): does it take them over its presets,
and does the Megatron-LM under it build the layers, microbatches and groups of the plan? So those of the examples and README.
usage: primus_plans_test.py [PLANS [FIRST SEED]]    default 6, on at most 1,024 GPUs. Needs build/megatron (scripts/megatron), for what it imports,
pydantic and PyYAML, and build/primus: AMD-AGI/Primus @fd1eeabb with NVIDIA/Megatron-LM @d3528a21 in third_party/Megatron-LM, 10 MB of sources."""
import importlib.util, os, re, sys

import judged
import primus_verdict

FOLDER, CORE = os.path.join("build", "primus"), os.path.join("build", "megatron")

# What only Transformer Engine has, which is not installed.
OWN = "      apply_rope_fusion: false\n      transformer_impl: local\n"
NEEDS_ENGINE = ("fp8", "fp8_recipe", "fp8_param_gather")


def plans(what, least, *words):
    split = 0

    def judge(given):
        nonlocal split
        text = re.sub(rf"(?m)^      (?:{'|'.join(NEEDS_ENGINE)}): .*\n", "", given["text"]) + OWN
        theirs, want = primus_verdict.forked(given["gpus"], text), given["plan"]
        if theirs.get("runtime", "none") != "none":
            split, want["V"] = split + 1, theirs.get("V")   # a V's two slices a rank
        return theirs, want
    return judged.plans(what, least, ["tests/torch/megatron_plans.lua", *words, "1024", "primus"], "Primus", judge,
                        lambda: f"; {split} for its zero bubble, whose runtime was not asked")


def main(count, first):
    for folder, name in ((FOLDER, "Primus"), (CORE, "megatron-core")):
        if not os.path.isdir(folder):
            print(f"skipped: no {name} in {folder}; the head of this file has how")
            return 77
    for name in ("pydantic", "yaml"):
        if importlib.util.find_spec(name) is None:
            print(f"skipped: no {name} beside PyTorch, which Primus and its Megatron-LM import")
            return 77
    primus_verdict.load(FOLDER, [CORE])
    return 1 if bool(plans("shipped plans", 6, "shipped", "0")) | bool(plans("plans", count, str(first), str(count))) else 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(words[0] if words else 6, words[1] if len(words) > 1 else 1))

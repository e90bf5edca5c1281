#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for Megatron-Bridge, as `pipeplan plan --format bridge` writes them, before Bridge's own code (bridge_verdict.py): does it take them, and
does it build the layers, microbatches and groups of the plan? So those of the examples and README. And tests/data/bridge_cases.txt.
usage: bridge_plans_test.py [PLANS [FIRST SEED]]    default 6, on at most 1,024 GPUs. Needs build/megatron (scripts/megatron) and build/bridge, into
which are unpacked, without what they depend on, the wheels megatron_bridge 0.6.2 (of Python 3.12), hydra_core 1.3.2, omegaconf 2.3.0, pyyaml,
rich, six, and the folder antlr4 of antlr4-python3-runtime 4.9.3: 9 MB."""
import os, shlex, sys

import bridge_verdict
import judged

CORE, FOLDER = os.path.join("build", "megatron"), os.path.join("build", "bridge")

# What only Transformer Engine has, which is not installed: fp8 and an optimizer whose state is no fp32.
NEEDS_ENGINE = ("optimizer.use_precision_aware_optimizer=", "optimizer.exp_avg_dtype=", "optimizer.exp_avg_sq_dtype=", "optimizer.main_grads_dtype=",
                "optimizer.optimizer_cpu_offload=", "optimizer.optimizer_offload_fraction=")


def overrides_of(text):
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    words = words[words.index("pretrain") + 1:-1]
    return ["mixed_precision=bf16_mixed" if word.startswith("mixed_precision=") and "fp8:" in word else word
            for word in words if not word.startswith(NEEDS_ENGINE)]


def cases():
    """tests/data/bridge_cases.txt: does Bridge take and refuse what that says, with as much expert TP?"""
    wrong, tried, base = 0, {"accept": 0, "reject": 0, "fails": 0}, []
    for line in open("tests/data/bridge_cases.txt"):
        if line.startswith("#"): continue
        words = shlex.split(line)
        if words[0] == "BASE":
            base = words[1:]
            continue
        gpus, verdict, name, *overrides = words
        experts = overrides.pop(0)[4:] if overrides[0].startswith("ETP=") else None
        verdict = verdict.split(":")[0]
        tried[verdict] += 1
        theirs = bridge_verdict.forked(int(gpus), base + overrides, "1")
        if theirs["ok"] != (verdict != "reject") or experts and theirs["ETP"] != int(experts):
            wrong += 1
            print(f"{name}: Megatron-Bridge {'accepts' if theirs['ok'] else 'refuses'} it: {theirs}")
    print(f"{sum(tried.values())} cases, {tried['reject']} to refuse: {wrong} judged otherwise")
    return wrong or tried["accept"] < 20 or tried["reject"] < 20


def judge(given):
    connections = "1" if "CUDA_DEVICE_MAX_CONNECTIONS=1\n" in given["text"] else None
    return bridge_verdict.forked(given["gpus"], overrides_of(given["text"]), connections), given["plan"]


def plans(what, least, *words):
    return judged.plans(what, least, ["tests/torch/megatron_plans.lua", *words, "1024", "bridge"], "Megatron-Bridge", judge)


def main(count, first):
    for folder, what in ((CORE, "megatron-core"), (FOLDER, "megatron-bridge")):
        if not os.path.isdir(os.path.join(folder, "megatron")):
            print(f"skipped: no {what} in {folder}; the head of this file has how")
            return 77
    bridge_verdict.load(CORE, FOLDER)
    return 1 if bool(cases()) | bool(plans("shipped plans", 6, "shipped", "0")) | bool(plans("plans", count, str(first), str(count))) else 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(words[0] if words else 6, words[1] if len(words) > 1 else 1))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for Megatron-LM, as `pipeplan plan --format megatron` writes them, before megatron-core itself: does it start with them, and does it build
the layers, microbatches and groups of the plan? So those of the examples and README. usage: megatron_plans_test.py [PLANS [FIRST SEED]]    default 5, on at most 1,024 GPUs."""
import os, shlex, sys

import judged
import megatron_verdict

FOLDER = os.path.join("build", "megatron")

# Behind a script, as whoever starts it would; and what only Transformer Engine has, which is not installed: its kernels, fp8 and fp8's recipes.
OWN = "--lr 1e-4 --mock-data --tokenizer-type NullTokenizer --transformer-impl local --no-rope-fusion".split()
NEEDS_ENGINE = {"--fp8-format": 1, "--fp8-recipe": 1, "--fp8-param-gather": 0}


def flags_of(text):
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    words = words[words.index("pretrain_gpt.py") + 1:-1]
    out = []
    while words:
        word = words.pop(0)
        if word in NEEDS_ENGINE: del words[:NEEDS_ENGINE[word]]
        else: out.append(word)
    return out + OWN


def judge(given):
    connections = "1" if "CUDA_DEVICE_MAX_CONNECTIONS=1\n" in given["text"] else None
    return megatron_verdict.forked(given["gpus"], flags_of(given["text"]), connections), given["plan"]


def plans(what, least, *words):
    return judged.plans(what, least, ["tests/torch/megatron_plans.lua", *words, "1024"], "megatron-core", judge)


def main(count, first):
    if not os.path.isdir(os.path.join(FOLDER, "megatron")):
        print("skipped: no megatron-core in build/megatron; scripts/megatron installs it")
        return 77
    megatron_verdict.load(FOLDER)
    return 1 if bool(plans("shipped plans", 6, "shipped", "0")) | bool(plans("plans", count, str(first), str(count))) else 0


if __name__ == "__main__":
    sys.exit(main(*[int(word) for word in sys.argv[1:3]] or [5], *([] if len(sys.argv) > 2 else [1])))

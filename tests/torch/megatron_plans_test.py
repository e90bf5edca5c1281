#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for Megatron-LM, as `pipeplan plan --format megatron` writes them, before megatron-core itself: does it start with them, and does it build
the layers, microbatches and groups of the plan? So those of the examples and README. usage: megatron_plans_test.py [PLANS [FIRST SEED]]    default 10, on at most 1,024 GPUs."""
import json, os, shlex, subprocess, sys

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


def plans(what, least, *words):
    """least: so many plans there must be."""
    made = subprocess.Popen(["lua5.4", "tests/torch/megatron_plans.lua", *words, "1024"], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "LUA_PATH": "tests/?.lua;;"})
    wrong = judged = unwritten = 0
    for line in made.stdout:
        given = json.loads(line)
        judged += 1
        if not given.get("text"):   # a plan that Megatron-LM has no key for, which is said instead of written
            unwritten += 1
            continue
        connections = "1" if "CUDA_DEVICE_MAX_CONNECTIONS=1\n" in given["text"] else None
        theirs = megatron_verdict.forked(given["gpus"], flags_of(given["text"]), connections)
        want = given["plan"]
        got = {name: theirs.get(name) for name in want}
        if not theirs["ok"] or got != want:
            wrong += 1
            print(f"{what}: {given['seed']}: {theirs.get('error') or f'megatron-core has {got}, the plan {want}'}\n{given['text']}")
    if made.wait() != 0 or judged < least:
        print(f"{judged} of {least} {what} were made")
        return 1
    print(f"{judged} {what}: {wrong} refused by megatron-core, or built otherwise; {unwritten} that no key says, and none was written")
    return wrong


def main(count, first):
    if not os.path.isdir(os.path.join(FOLDER, "megatron")):
        print("skipped: no megatron-core in build/megatron; scripts/megatron installs it")
        return 77
    megatron_verdict.load(FOLDER)
    return 1 if bool(plans("shipped plans", 6, "shipped", "0")) | bool(plans("plans", count, str(first), str(count))) else 0


if __name__ == "__main__":
    sys.exit(main(*[int(word) for word in sys.argv[1:3]] or [10], *([] if len(sys.argv) > 2 else [1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pipeplan lint` against megatron-core itself: does it start with these arguments, and what layers does it build on each stage?
usage: megatron_test.py [CASES [FIRST SEED]]    default 15; 500 take some minutes. Needs build/megatron: scripts/megatron.
Seeds 8001 to 8500 agree, 145 of them accepted by megatron-core 0.19.2, and by NVIDIA/Megatron-LM @d98e8a64 in its place."""
import json, os, shlex, subprocess, sys, tempfile

import megatron_flags
import megatron_verdict

FOLDER = os.path.join("build", "megatron")
PIPEPLAN = os.environ.get("PIPEPLAN", "build/release/pipeplan")

# What lint refuses and megatron-core's configuration does not: which of Megatron's files does, later.
LATER = {"megatron.sequence_experts": "moe_layer.py: forward", "ignored_key": "num_microbatches_calculator.py",
         "megatron.flex": "token_dispatcher.py", "megatron.precision_aware": "optimizer/__init__.py",
         "megatron.precision_aware_alone": "optimizer/__init__.py"}


def linted(folder, seed, world, flags):
    path = os.path.join(folder, f"{seed}.sh")
    with open(path, "w") as file:
        file.write(f"torchrun --nproc_per_node {world} --nnodes 1 pretrain_gpt.py {' '.join(map(shlex.quote, flags))}\n")
    run = subprocess.run([PIPEPLAN, "lint", path, "--format", "json"], capture_output=True, text=True)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


def main(count, first):
    if not os.path.isdir(os.path.join(FOLDER, "megatron")):
        print("skipped: no megatron-core in build/megatron; scripts/megatron installs it")
        return 77
    megatron_verdict.load(FOLDER)
    wrong = accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            world, flags = megatron_flags.case(seed)
            theirs, ours = megatron_verdict.forked(world, flags), linted(folder, seed, world, flags)
            errors = [finding for finding in ours["findings"] if finding["severity"] == "error" and finding["id"] not in LATER]
            accepted += theirs["ok"]
            if os.environ.get("VERBOSE"): print(seed, theirs.get("error", "ok")[:90], "|", [finding["id"] for finding in errors])
            problem = None
            if theirs["ok"] and errors: problem = "refused by us: " + errors[0]["message"]
            elif not theirs["ok"] and not errors: problem = "accepted by us: " + theirs["error"]
            elif theirs["ok"]:
                read = ours["reads"]
                got = [read["layers_per_stage"], read["microbatches"], read["parallelism"]["data"]]
                want = [theirs["layers"], theirs["first M"], theirs["DP"]]
                if got != want: problem = f"reads {got}, megatron-core {want}"
            if problem:
                wrong += 1
                print(f"seed {seed}: {problem}\n  {world} GPUs: {' '.join(map(shlex.quote, flags[len(megatron_flags.BASE):]))}")
    print(f"{count} sets of arguments, {accepted} accepted by megatron-core: {wrong} judged otherwise")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*[int(word) for word in sys.argv[1:3]] or [15], *([] if len(sys.argv) > 2 else [1])))

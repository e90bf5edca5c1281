#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for DeepSpeed, as `pipeplan plan --format deepspeed` writes them, before DeepSpeed's own code (deepspeed_verdict.py): does it take them,
and does it build the layers, microbatches and batch of the plan? So those of the examples and README. And does it refuse and accept tests/data/deepspeed_cases.txt as that says?
usage: deepspeed_plans_test.py [PLANS [FIRST SEED]]    default 20, on at most 512 GPUs. In build/torch: pip install --no-deps deepspeed==0.19.8;
pip install hjson msgpack ninja einops psutil py-cpuinfo pydantic tqdm numpy packaging."""
import json
import re
import shlex
import sys

import deepspeed_verdict as verdict
import judged


def written(text):
    """What a launch writes to files: name → text."""
    return {name: body for name, _, body in re.findall(r'cat >"\$folder/([\w.]+)" <<\'(\w+)\'\n(.*?\n)\2\n', text, re.S)}


def gpus_of(text):
    words = shlex.split(text[text.rindex("exec torchrun"):].replace("\\\n", " "))
    return int(words[words.index("--nnodes") + 1]) * int(words[words.index("--nproc_per_node") + 1])


def planned(text):
    """planned.py, executed where DeepSpeed is: a function that does it, and what it has."""
    found = {}
    exec(compile(text, "planned.py", "exec"), found)   # noqa: S102: what was written is run as it stands
    return found


def with_policy(text):
    """AutoTP knows the layers of Hugging Face's models; the empty ones here are told to it as what is not divided."""
    found = json.loads(text)
    if "tensor_parallel" in found:
        found["tensor_parallel"]["partition_config"] = {"use_default_specs": False,
                                                        "layer_specs": [{"patterns": [".*weight"], "partition_type": "skip"}]}
    return json.dumps(found)


def judge_launch(text, layers):
    files, gpus = written(text), gpus_of(text)
    source = files["planned.py"]
    if "num_stages = 1 " in source: return gpus, verdict.judge(gpus, with_policy(files["ds_config.json"]), layers=layers)
    here = {}

    def pipeline():   # a topology is made where the ranks are
        here.update(planned(source))
        return here["pipeline"]
    options = re.search(r"^experts = dict\(ep_size=(\d+), enable_expert_tensor_parallelism=(\w+)\)", source, re.M)
    options = options and {"ep_size": int(options[1]), "enable_expert_tensor_parallelism": options[2] == "True"}
    return gpus, verdict.judge(gpus, files["ds_config.json"], pipeline, options, layers, lambda model: here["check"](model))


def literal(text):
    return int(text) if text.isdigit() else {"True": True, "False": False}.get(text, text)


def judge_case(gpus, words, configuration):
    given = {name: literal(value) for name, value in (word.split("=", 1) for word in words)}
    options = {name: given.pop(name) for name in ("ep_size", "enable_expert_tensor_parallelism") if name in given}
    layers, stages = given.pop("layers", 30), given.get("num_stages", given.get("num_pp", 1))

    def pipeline():
        from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology
        axes = {name: given.pop(name) for name in ("num_pp", "num_mp", "num_dp") if name in given}
        if axes: given["topology"] = PipeModelDataParallelTopology(**{"num_pp": 1, "num_mp": 1, "num_dp": 1, **axes})
        return given
    if stages == 1 and "num_pp" not in given: pipeline = None
    return verdict.judge(gpus, configuration.replace("\\n", "\n"), pipeline, options, layers)


def cases():
    wrong = tried = 0
    for line in open("tests/data/deepspeed_cases.txt"):
        if line.startswith("#"): continue
        head, configuration = re.match(r"(.*?) (\{.*|\\n.*)$", line.rstrip("\n")).groups()
        gpus, want, name, *words = head.split()
        theirs, want = judge_case(int(gpus), words, configuration), want.split(":")[0]
        tried += 1
        if theirs["ok"] != (want != "reject"):
            wrong += 1
            print(f"{name}: DeepSpeed {'accepts' if theirs['ok'] else 'refuses'} it: {theirs}")
    print(f"{tried} configurations: {wrong} judged otherwise")
    return wrong or tried < 60


def judge(given):
    gpus, theirs = judge_launch(given["text"], given["layers"])
    return {**theirs, "gpus": gpus}, {**given["plan"], "gpus": given["gpus"]}


def plans(what, least, *words):
    return judged.plans(what, least, ["tests/torch/deepspeed_plans.lua", *words], "DeepSpeed", judge)


def main(count, first):
    lacks = verdict.missing()
    if lacks:
        print(f"skipped: no {lacks} beside PyTorch: DeepSpeed 0.19.8 and what it imports are 60 MB; the head of this file has how")
        return 77
    print(f"DeepSpeed {verdict.load()}")
    return 1 if bool(cases()) | bool(plans("shipped plans", 6, "shipped")) | bool(plans("plans", count, str(first), str(count), "512")) else 0


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(numbers[0] if numbers else 20, numbers[1] if len(numbers) > 1 else 1))

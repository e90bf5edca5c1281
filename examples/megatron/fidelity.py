#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans layouts of some models, profiles Megatron's stages, writes down what pipeplan predicts, and only then runs them: one file for compare.py.

usage: examples/megatron/fidelity.py --gpus 2 -o runs.json [--cases dense,small] [--budget 500] [--device cpu --tiny]

Each run is what docs/running.md says: pipeplan plan, profile_stage.py, train.py, in processes of their own, so that memory is that of the run. A
run's entry has what was predicted of it before its first step, with the program's version and the time: `predicted`, from the profile of its
stages; `planned`, the plan from that profile; `catalogue`, the plan from the catalogue alone. What would begin after --budget seconds is left
out and named; the file is written anew after every step of the way. The learning rate is 0: all is computed, and weights stay those that were
profiled. With 1e-4 the routing of random tokens fell in on few experts within 25 steps, which then took half as long on an H200.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "torch"))

from measuring import predicted

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 4096, "tie_word_embeddings": False}
MIXTRAL = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "max_position_embeddings": 4096, "tie_word_embeddings": False}


def sizes(kind, hidden, layers, heads, kv_heads, ffn, vocab, experts=0, per_token=0):
    return {**kind, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "intermediate_size": ffn, "vocab_size": vocab, **({"num_local_experts": experts, "num_experts_per_tok": per_token} if experts else {})}


MODELS = {"dense": sizes(LLAMA, 4096, 8, 32, 8, 14336, 128256), "small": sizes(LLAMA, 2048, 16, 16, 4, 8192, 32000),
          "moe": sizes(MIXTRAL, 2048, 8, 16, 4, 2048, 32000, 16, 4)}
TINY = {"dense": sizes(LLAMA, 64, 8, 4, 2, 128, 256), "small": sizes(LLAMA, 32, 8, 4, 2, 64, 256),
        "moe": sizes(MIXTRAL, 32, 8, 4, 2, 64, 256, 4, 2)}
UNFUSED = ["rope", "optimizer"]   # without Transformer Engine and apex: experts too, run one by one
MICROBATCHES = {"dense": 8, "small": 8, "moe": 4}
# name → the plan's parallelism; layers: each stage's share of the model's.
LAYOUTS = {"one GPU": {"pipeline": 1, "data": 1},
           "1F1B": {"pipeline": 2, "data": 1, "schedule": "1f1b", "virtual": 1, "layers": (1 / 2, 1 / 2)},
           "interleaved": {"pipeline": 2, "data": 1, "schedule": "interleaved_1f1b", "virtual": 2, "layers": (1 / 4, 1 / 4, 1 / 4, 1 / 4)},
           "uneven": {"pipeline": 2, "data": 1, "schedule": "1f1b", "virtual": 1, "layers": (5 / 8, 3 / 8)},
           "experts": {"pipeline": 1, "data": 2, "expert": 2},
           "1F1B, 4 ranks": {"pipeline": 4, "data": 1, "schedule": "1f1b", "virtual": 1, "layers": (1 / 4, 1 / 4, 1 / 4, 1 / 4)},
           "interleaved, 4 ranks": {"pipeline": 4, "data": 1, "schedule": "interleaved_1f1b", "virtual": 2, "layers": (1 / 8,) * 8},
           "1F1B, replicas": {"pipeline": 2, "data": 2, "schedule": "1f1b", "virtual": 1, "layers": (1 / 2, 1 / 2)},
           "1F1B, tensor": {"pipeline": 2, "data": 1, "tensor": 2, "sequence": False, "schedule": "1f1b", "virtual": 1, "layers": (1 / 2, 1 / 2)},
           "1F1B, experts": {"pipeline": 2, "data": 2, "expert": 2, "schedule": "1f1b", "virtual": 1, "layers": (1 / 2, 1 / 2)}}
LOAD = 6     # of a profile, in seconds: with 2 cards were cooler than in a run (docs/figures.md)
# By GPUs, most telling first: a short budget leaves out the end.
CASES = {1: [("dense", "one GPU"), ("small", "one GPU"), ("moe", "one GPU")],
         2: [("dense", "1F1B"), ("dense", "interleaved"), ("moe", "1F1B"), ("small", "interleaved"), ("dense", "uneven"), ("small", "1F1B"),
             ("moe", "experts"), ("moe", "interleaved")],
         4: [("dense", "1F1B, 4 ranks"), ("dense", "1F1B, replicas"), ("dense", "interleaved, 4 ranks"), ("moe", "1F1B, experts"),
             ("dense", "1F1B, tensor"), ("small", "1F1B, 4 ranks"), ("small", "1F1B, replicas"), ("moe", "1F1B, 4 ranks"), ("small", "interleaved, 4 ranks")]}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


class Driver:
    def __init__(self, o, folder):
        self.o, self.folder, self.began = o, pathlib.Path(folder), time.monotonic()
        self.program = predicted.program_of(o.pipeplan)
        self.version = predicted.version_of(self.program)
        self.out = {"source": None, "date": str(datetime.date.today()), "command": " ".join(sys.argv), "program": self.version, "profiles": {},
                    "runs": [], "not_run": [], "notes": []}
        self.models = TINY if o.tiny else MODELS
        self.longest = 0.0           # seconds of a case so far

    def say(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def write(self):
        pathlib.Path(self.o.output).write_text(json.dumps(self.out, ensure_ascii=False, separators=(",", ":")))

    def path(self, name, value=None):
        path = self.folder / name
        if value is not None:
            path.write_text(json.dumps(value))
        return str(path)

    # What is run

    def spec(self, model, layout, profile=None):
        config = self.models[model]
        cluster = {"gpus": self.o.gpus, "accelerator": self.o.accelerator, "gpus_per_node": 8 if self.o.gpus > 1 else 1}
        if self.o.tiny:
            cluster = {"gpus": self.o.gpus, "memory_per_gpu": "2GiB", "overhead": "0.3GiB", "flops": "1T", "network": {"per_gpu": "10Gbps"}}
        degrees = {"tensor": 1, **LAYOUTS[layout]}
        shares = degrees.pop("layers", None)
        if shares:
            degrees["layers_per_stage"] = [round(share * config["num_hidden_layers"]) for share in shares]
        if "num_local_experts" in config:
            degrees.setdefault("expert", 1)
        training = {"tokens": "1B", "global_batch_size": MICROBATCHES[model] * degrees["data"], "micro_batch_size": 1,
                    "sharding": "optimizer", "alltoall_overlap": False,
                    "weight_gradients": "dropped",     # without Transformer Engine
                    "unfused": UNFUSED + (["experts"] if "num_local_experts" in config else []),
                    "sequence_length": 32 if self.o.tiny else 4096, "recompute": "none", "precision": "fp32" if self.o.device == "cpu" else "bf16"}
        return {"cluster": cluster, "model": self.path(f"{model}.json", config), "framework": "megatron", "training": training,
                "parallelism": degrees, **({"profile": profile} if profile else {})}

    def ask(self, spec, form):
        policy = self.path("anyway.lua")
        pathlib.Path(policy).write_text('site "anyway"\ndisable { id = "fits_one_gpu", reason = "runs to compare with, of small models" }\n')
        done = subprocess.run([self.program, "plan", spec, "--policy", policy, "--format", form], capture_output=True, text=True, timeout=120)
        return done.stdout, done.stderr.strip()

    def plan(self, name, model, layout, profile=None):
        """→ path of the plan, the plan; or None, why not"""
        text, problem = self.ask(self.path(f"{name}.spec.json", self.spec(model, layout, profile)), "json")
        plan = json.loads(text) if text.startswith("{") else {"status": problem.splitlines()[0] if problem else "no plan", "reasons": []}
        if plan["status"] != "planned":
            return None, "; ".join([plan["status"], *(reason["message"] for reason in plan["reasons"])])
        return self.path(f"{name}.plan.json", plan), plan

    def torchrun(self, script, *arguments, out=None):
        """Output goes to out, or is thrown away unless it ends badly. → None or the end of what it said"""
        command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", str(self.o.gpus), str(HERE / script),
                   *arguments, *(["--device", self.o.device] if self.o.device else [])]
        left = max(30, self.o.limit - (time.monotonic() - self.began))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return f"was still running after {left:.0f} s"
        if done.returncode == 0 and out:
            pathlib.Path(out).write_text(done.stdout)
        return None if done.returncode == 0 else (done.stdout + done.stderr)[-3000:]

    # One case

    def case(self, model, layout):
        name, begun = f"{model}, {layout}", time.monotonic()
        if begun - self.began + self.longest > self.o.budget:
            self.out["not_run"].append(f"{name}: about {self.longest:.0f} s, which the budget did not have")
            return
        path, plan = self.plan(name, model, layout)
        if not path:
            return self.failed(name, f"no plan: {plan}")
        profile = self.path(f"{name}.profile.json")
        given = {"samples": self.o.samples, "load": LOAD if self.o.load is None and self.o.device != "cpu" else self.o.load, "heat": self.o.heat}
        effort = [word for key, value in given.items() if value is not None for word in (f"--{key}", str(value))]
        problem = self.torchrun("profile_stage.py", path, *effort, out=profile)
        if problem:
            return self.failed(name, f"profile_stage.py {problem}")
        self.out["profiles"][name] = json.loads(pathlib.Path(profile).read_text())
        self.out["source"] = self.out["profiles"][name]["source"]
        self.say(f"profiled {name}")
        said = self.predict(name, model, layout, plan, profile)
        self.write()
        self.say(f"predicted {name}: " + ", ".join(f"{key} {value['step_ms']:.1f} ms" for key, value in said.items() if "step_ms" in value))
        runs = self.path(f"{name}.runs.json")
        problem = self.torchrun("train.py", path, "--steps", str(self.o.steps + self.o.warmup), "--warmup", str(self.o.warmup), "--lr", "0",
                                "--profile", profile, "--runs", runs)
        if problem:
            return self.failed(name, f"train.py {problem}")
        run = json.loads(pathlib.Path(runs).read_text())["runs"][0]
        run.update(name=layout, model=model, profile=name, **said)
        run["predicted"]["first_step_at"] = run.pop("first_step_at")
        self.out["runs"].append(run)
        self.out.pop("next", None)
        self.write()
        self.longest = max(self.longest, time.monotonic() - begun)
        steps, whole = run["step_ms"], run["iteration_ms"]
        self.say(f"ran {name}: pipeline {steps[len(steps) // 2]:.1f} ms, iteration {whole[len(whole) // 2]:.1f} ms")

    def predict(self, name, model, layout, plan, profile):
        """Before the run's first step; it goes into the file at once, as `next`."""
        run = {"schedule": plan["schedule"] if plan["schedule"] != "none" else "1f1b", "ranks": plan["parallelism"]["pipeline"],
               "runtime": "megatron", "microbatches": plan["microbatches"], "virtual": plan["parallelism"]["virtual"], "profile": name}
        answer, problem = predicted.Predictor(self.program, self.out["profiles"], str(self.folder)).ask(run, len(self.out["runs"]))
        found = {"step_ms": 1e3 * answer["step_seconds"], "peak_bytes": answer["peak_bytes"]} if answer else {"problem": problem}
        said = {"predicted": {**found, "program": self.version, "at": now()}}
        path, measured = self.plan(f"{name} measured", model, layout, profile)
        for key, made in (("planned", measured if path else None), ("catalogue", plan)):
            said[key] = {"problem": measured} if made is None else {
                "step_ms": 1e3 * made["step_seconds"], "step": made["step"], "ranks": made["memory"]["ranks"], "at": now()}
        self.out["next"] = {"name": name, **said}
        return said

    def failed(self, name, why):
        self.out["not_run"].append(f"{name}: {why}")
        self.say(f"{name}: {why}")
        self.write()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="runs.json")
    parser.add_argument("--gpus", type=int, choices=CASES, default=1)
    parser.add_argument("--accelerator", default="H200-SXM", help="as the catalogue has it (default H200-SXM)")
    parser.add_argument("--cases", help=f"models among {', '.join(MODELS)}, or such as \"dense:1F1B;moe:experts\" (default: all, most telling first)")
    parser.add_argument("--pipeplan", metavar="PROGRAM", help="default: build/release/pipeplan here, or pipeplan on the path")
    parser.add_argument("--steps", type=int, default=5, help="timed (default 5)")
    parser.add_argument("--warmup", type=int, default=12, help="steps before them (default 12: early ones take longer)")
    parser.add_argument("--samples", type=int, default=12, help="timings of an action in a profile (default 12)")
    parser.add_argument("--load", type=float, help=f"seconds of load before hot timings (default {LOAD}; on a CPU profile_stage.py's)")
    parser.add_argument("--heat", type=float, help="seconds of each share of the heat curve")
    parser.add_argument("--budget", type=float, default=480, help="seconds after which no case begins that would not end in them (default 480)")
    parser.add_argument("--limit", type=float, default=540, help="seconds after which what runs is ended (default 540)")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--tiny", action="store_true", help="models of some kilobytes, to try it out")
    o = parser.parse_args()
    wanted = CASES[o.gpus]
    if o.cases and ":" in o.cases:
        wanted = [tuple(case.split(":")) for case in o.cases.split(";")]
    elif o.cases:
        wanted = [case for model in o.cases.split(",") for case in wanted if case[0] == model]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(o, folder)
        for case in wanted:
            driver.case(*case)
        driver.write()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What pipeplan predicts of a run from the profile of its stages alone (pipeplan simulate --profile). Python's standard library alone.

A run is an entry of `runs` of a runs.json, as fidelity.py writes it; compare.py checks it before it asks.
"""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNTIMES = {"torch-single": "torch-single", "torch-multi": "torch-multi", "deepseek": "deepseek", "pipeplan": "pipeplan", "ideal": "ideal",
            "ours": "pipeplan", "megatron": "megatron"}   # ours: pipeline/dualpipe.py
GROUPED = ("interleaved_1f1b", "interleaved_zero_bubble")   # PyTorch cuts M into rounds


class NoProgram(Exception):
    """There is no pipeplan to ask."""


def program_of(given: str | None) -> str:
    """The pipeplan to ask: as given, or where a build leaves it, or on the path."""
    for path in [given] if given else [str(ROOT / "build/release/pipeplan"), "pipeplan"]:
        found = shutil.which(path)
        if found:
            return found
    raise NoProgram(f"{given or 'pipeplan'}: no such program: build it (README.md) or name it with --pipeplan")


def version_of(program: str) -> str:
    """"pipeplan 0.1.0"; raises NoProgram where it does not run."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError) as problem:
        raise NoProgram(f"{program} cannot be run: {problem}") from None


class Predictor:
    """Asks pipeplan what a run takes."""

    def __init__(self, program: str, profiles: dict[str, Any], folder: str) -> None:
        self.program, self.profiles, self.folder = program, profiles, folder

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def profile(self, run: dict[str, Any], number: int) -> str:
        """The run's, with what it says of its runtime: pairs take F, then B, unless something overlaps them; are results kept? Where the run has fewer
        stages, as a fallback without chunks, each is those that it joins."""
        profile = dict(self.profiles[run["profile"]])
        if isinstance(profile.get("stage"), list):
            profile["stage"] = joined(profile["stage"], run.get("layers_per_stage")) or profile["stage"]
        if run.get("pairs") != "overlapped" and isinstance(profile.get("stage"), list):
            profile["stage"] = [{key: without_pairs(value) for key, value in stage.items()} if isinstance(stage, dict) else stage
                                for stage in profile["stage"]]
        if isinstance(profile.get("mem", {}), dict):
            profile["mem"] = {**profile.get("mem", {}), "keeps_outputs": bool(run.get("keeps_outputs"))}
        return self.write(f"profile{number}.json", json.dumps(profile))

    def arguments(self, run: dict[str, Any], number: int) -> list[str]:
        runtime = RUNTIMES[run["runtime"]]
        if run.get("program"):
            out = [self.write(f"program{number}.csv", run["program"])]
            if run.get("directions") == 2:
                out += ["--directions", "2"]
        else:
            out = [run["schedule"], "--ranks", str(run["ranks"]), "--microbatches", str(run["microbatches"])]
            if run["schedule"] in GROUPED + ("looped_bfs",) and run.get("virtual"):
                out += ["--virtual", str(run["virtual"])]
            if run["schedule"] in GROUPED and (run.get("group") or runtime.startswith("torch")):
                out += ["--group", str(run.get("group") or "rounds")]
        out += ["--profile", self.profile(run, number), "--runtime", runtime]
        for choice in ("pairs", "queues"):
            if run.get(choice) and runtime == "torch-multi":   # the others have no choice
                out += [f"--{choice}", run[choice]]
        return out

    def ask(self, run: dict[str, Any], number: int, form: str = "json") -> tuple[Any, str | None]:
        """(what it prints as JSON, None), or (None, why there is nothing)."""
        if run.get("queues") == "per_direction":
            return None, "queues per_direction: pipeplan simulates one or per_peer"
        done = subprocess.run([self.program, "simulate", *self.arguments(run, number), "--format", form], capture_output=True, text=True,
                              timeout=600)
        if done.returncode == 0:
            return json.loads(done.stdout), None
        lines = done.stderr.strip().splitlines() or [f"pipeplan simulate ended with status {done.returncode}"]
        return None, lines[0].removeprefix("pipeplan: ").replace(os.path.join(self.folder, f"profile{number}.json"), f"profile {run['profile']}")


def joined(stages: list, layers: list[int] | None) -> list | None:
    """Of measured stages those with so many layers each, or None where the layers do not come out or are cut so already: times and bytes of what a
    stage joins are summed. (What each measured stage takes once, it takes as often as it joins stages: a few per cent of small ones.)"""
    if not layers or len(layers) >= len(stages) or not all(isinstance(stage, dict) and stage.get("layers", 0) > 0 for stage in stages):
        return None
    out, rest = [], list(stages)
    for count in layers:
        part: list[dict] = []
        while rest and sum(stage["layers"] for stage in part) < count:
            part.append(rest.pop(0))
        if sum(stage["layers"] for stage in part) != count:
            return None
        out.append(_together(part))
    return None if rest else out


LARGEST = ("transient_bytes", "clock_mhz", "power_w", "rank")     # of several stages that are one: not their sum


def _together(parts: list[Any], name: str = "", add: Any = sum) -> Any:
    if all(isinstance(part, bool) for part in parts):
        return any(parts)
    if all(isinstance(part, (int, float)) for part in parts):
        return add(parts)
    if all(isinstance(part, dict) for part in parts):
        return {key: _together([part[key] for part in parts], key, max if key in LARGEST else add)
                for key in parts[0] if all(key in part for part in parts)}
    return parts[0]


def without_pairs(value: Any) -> Any:
    return {kind: ms for kind, ms in value.items() if kind != "FB"} if isinstance(value, dict) else value

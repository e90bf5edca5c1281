#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds measured runs against what pipeplan predicts of them from the profile alone: steps, actions, peak memory, the order of schedules.

usage: examples/torch/compare.py RUNS.json [RUNS.json …] [--pipeplan PROGRAM] [--format text|markdown|json] [--summary] [--svg DIR] [-o FILE]

RUNS.json is what fidelity.py and train_step.py --runs write: profiles by name, and runs, each with the profile of its stages. Nothing of a
run but its schedule, its runtime and the bytes of its input and optimizer goes into the prediction (pipeplan simulate --profile); where the profile does
not weigh weights and gradients, peaks are counted from what lay on the card before the step. Needs Python's standard library alone. --svg
draws each run that has a timeline, measured above predicted. Several files are compared as one: that of a plan and that of its fallback, say, of
which it then says what the plan saves, measured and predicted, and which is faster.
Exit status: 0 compared; 1 some run could not be predicted, and why; 2 bad usage or input.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

from measuring import agreement, overlay, tables
from measuring.predicted import RUNTIMES, NoProgram, Predictor, program_of


class BadInput(Exception):
    pass


# ------------------------------------------------------------------------------------------------------------------------- reading


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1000000


def list_of(check):
    return lambda value: isinstance(value, list) and all(map(check, value))


def is_action(value):
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str) and is_number(value[1]) and is_number(value[2])


def is_prediction(value):
    return (isinstance(value, dict) and (is_number(value.get("step_ms")) or isinstance(value.get("problem"), str))
            and all(isinstance(value.get(name), str) for name in ("program", "at", "first_step_at")))


def one_of(*names):
    return lambda value: value in names


# field → (check, what was expected, required). Others may be null or left out.
FIELDS = {
    "name": (lambda v: isinstance(v, str) and v != "", "a name", True),
    "schedule": (lambda v: isinstance(v, str) and v != "", "a schedule of pipeplan", True),
    "ranks": (is_count, "the pipeline's depth", True),
    "microbatches": (is_count, "the microbatches of a step", True),
    "profile": (lambda v: isinstance(v, str), "the name of one of `profiles`", True),
    "runtime": (one_of(*RUNTIMES), "one of " + ", ".join(RUNTIMES), True),
    "program": (lambda v: isinstance(v, str) and v.strip() != "", "a program's CSV", False),
    "directions": (one_of(1, 2), "1 or 2", False),
    "virtual": (is_count, "stages a rank", False),
    "pairs": (one_of("in_turn", "split", "overlapped"), "in_turn, split or overlapped", False),
    "queues": (one_of("one", "per_peer", "per_direction"), "one, per_peer or per_direction", False),
    "model": (lambda v: isinstance(v, str), "a name", False),
    "sizes": (lambda v: isinstance(v, dict) and all(map(is_number, v.values())), "sizes of the model by name", False),
    "data": (is_count, "replicas", False),
    "layers_per_stage": (list_of(lambda v: v is not False and (v == 0 or is_count(v))), "a list of layers", False),
    "step_ms": (list_of(is_number), "a list of milliseconds", False),
    "peak_bytes": (list_of(is_number), "a list of bytes, one a rank", False),
    "base_bytes": (list_of(is_number), "a list of bytes, one a rank", False),
    "input_bytes": (list_of(is_number), "a list of bytes, one a rank", False),
    "optimizer_bytes": (list_of(is_number), "a list of bytes, one a rank", False),
    "keeps_outputs": (one_of(True, False), "true or false", False),
    "fallback": (lambda v: isinstance(v, str), "the schedule to which the plan says to roll back", False),
    "group": (lambda v: v == "rounds" or is_count(v), "microbatches, or rounds", False),
    "timeline": (list_of(list_of(is_action)), 'a list of ["0F0", start, end] for each rank', False),
    "sm_clock_mhz": (list_of(is_number), "a list of MHz", False),
    "power_w": (list_of(is_number), "a list of watts", False),
    "predicted": (is_prediction, "what fidelity.py wrote before the run: step_ms, or problem; program; at; and first_step_at", False),
}


def shown(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_run(run, profiles, at):
    if not isinstance(run, dict):
        raise BadInput(f"{at} is {shown(run)}: expected an object")
    for field, (check, expected, required) in FIELDS.items():
        value = run.get(field)
        if value is None and required:
            raise BadInput(f"{at}.{field} is missing: expected {expected}")
        if value is not None and not check(value):
            raise BadInput(f"{at}.{field} is {shown(value)}: expected {expected}")
    if run["profile"] not in profiles:
        raise BadInput(f"{at}.profile is {shown(run['profile'])}: expected one of {', '.join(sorted(profiles)) or 'profiles, of which there are none'}")
    for field in ("peak_bytes", "base_bytes", "input_bytes", "optimizer_bytes", "timeline"):
        if run.get(field) and len(run[field]) != run["ranks"]:
            raise BadInput(f"{at}.{field} has {len(run[field])} entries: expected {run['ranks']}, one a rank")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as problem:
        raise BadInput(f"{path}: cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{path}: no JSON: {problem}") from None
    if not isinstance(data, dict):
        raise BadInput(f"{path}: expected an object with `profiles` and `runs`")
    for field, kind, expected in (("profiles", dict, "profiles by name"), ("runs", list, "a list of runs")):
        if not isinstance(data.get(field), kind):
            raise BadInput(f"{path}: {field} is {shown(data.get(field))}: expected {expected}")
    for name, profile in data["profiles"].items():
        if not isinstance(profile, dict):
            raise BadInput(f"{path}: profiles.{name} is {shown(profile)}: expected a profile (pipeplan facts schema profile)")
    for name, meaning in (("not_run", "what was left out"), ("notes", "what is to be known of the runs")):
        if data.get(name) is not None and not list_of(lambda v: isinstance(v, str))(data[name]):
            raise BadInput(f"{path}: {name} is {shown(data[name])}: expected a list of {meaning}, in words")
    for i, run in enumerate(data["runs"]):
        check_run(run, data["profiles"], f"{path}: runs[{i}]")
    if not data["runs"]:
        raise BadInput(f"{path}: runs is empty: expected at least one run")
    return data


def check_same_work(files):
    """Runs that are held against each other, those of a model, a depth and a number of microbatches, are of the same sizes, as far as they say them."""
    first = {}   # (model, ranks, microbatches, what is said) → its value, and who says it first
    for path, one in files:
        for i, run in enumerate(one["runs"]):
            place = f"{path}: runs[{i}]"
            said = {**{f"sizes.{name}": value for name, value in (run.get("sizes") or {}).items()}, "data": run.get("data")}
            for name, value in sorted(said.items()):
                if value is None:
                    continue
                before, who = first.setdefault((run.get("model"), run["ranks"], run["microbatches"], name), (value, place))
                if before != value:
                    raise BadInput(f"{place}.{name} is {value}: expected {before}, as {who} has it; runs of other work are not compared")


def together(files):
    """What several files have, as if it were one file. A profile whose name another file has for another one is called by its file, too."""
    check_same_work(files)
    data = {"profiles": {}, "runs": [], "not_run": [], "notes": []}
    for path, one in files:
        called = {}
        for name, profile in one["profiles"].items():
            called[name] = name if data["profiles"].get(name, profile) == profile else f"{name} of {path}"
            data["profiles"][called[name]] = profile
        data["runs"] += [{**run, "profile": called[run["profile"]]} for run in one["runs"]]
        for name in ("not_run", "notes"):
            data[name] += one.get(name) or []
    for name in ("source", "date", "command"):
        data[name] = "; ".join(dict.fromkeys(one[name] for _, one in files if one.get(name))) or None
    return data


# ------------------------------------------------------------------------------------------------------------------------------ rows


def actions_of(run, times):
    """{ kind: { count, measured_ms, profile_ms, host_ms } } of the instrumented step: medians, and those of the same stages in the profile, of the
    card and, where it says so, of the host. PyTorch's
    first stage has no gradient of its input: its I is empty and its W the whole backward, so that they are compared with nothing."""
    found = {}
    for rank in run.get("timeline") or []:
        for name, start, end in rank:
            match = re.fullmatch(r"(\d+)([FBIW])\d+", name)
            if not match or not isinstance(times.get(match[2]), list):
                continue
            stage, kind = int(match[1]), match[2]
            if kind in "IW" and stage == 0 and run["runtime"].startswith("torch"):
                continue
            host = (times.get("host") or {}).get(kind)
            found.setdefault(kind, []).append((end - start, 1e3 * times[kind][stage % len(times[kind])], host and 1e3 * host[stage % len(host)]))
    return {kind: {"count": len(some), "measured_ms": statistics.median(measured for measured, _, _ in some),
                   "profile_ms": statistics.median(profiled for _, profiled, _ in some),
                   **({"host_ms": statistics.median(host for _, _, host in some)} if some[0][2] is not None else {})}
            for kind, some in found.items()}


def row_of(run, predicted, problem):
    """What agreement.py and tables.py read of a run."""
    row = {field: run.get(field) for field in FIELDS if field not in ("timeline", "program")}
    row["step_ms"] = sorted(run.get("step_ms") or [])
    row["model"] = run.get("model") or "model"
    row.update(measured_ms=statistics.median(row["step_ms"]) if row["step_ms"] else None, predicted_ms=None, problem=problem, actions={},
               predicted_peak_bytes=None, base=None, peak_unknown=None)
    if not predicted:
        return row
    row["predicted_ms"] = 1e3 * predicted["step_seconds"]
    row["times"] = predicted["times"]
    row["actions"] = actions_of(run, predicted["times"])
    row["peak_unknown"] = predicted["peak_bytes_unknown"] if not predicted["held_bytes"] else None
    if predicted["peak_bytes"]:
        beside = [run.get(field) or [0] * run["ranks"] for field in ("input_bytes", "optimizer_bytes")]   # of which a profile knows nothing
        row["predicted_peak_bytes"], row["base"] = list(map(sum, zip(predicted["peak_bytes"], *beside))), "profile"
    elif predicted["held_bytes"] and run.get("base_bytes"):
        row["predicted_peak_bytes"], row["base"] = [sum(pair) for pair in zip(predicted["held_bytes"], run["base_bytes"])], "measured"
    return row


def tell_apart(rows):
    """Runs of one name whose layers are split in several ways: those not split evenly say how."""
    splits = {}
    for row in rows:
        splits.setdefault((row["model"], row["ranks"], row["name"]), set()).add(tuple(row["layers_per_stage"] or ()))
    several = {key for key, found in splits.items() if len(found) > 1}
    for row in rows:
        if (row["model"], row["ranks"], row["name"]) in several and not agreement.is_even(row["layers_per_stage"]):
            row["name"] += ", layers " + " ".join(map(str, row["layers_per_stage"]))


def slug(text):
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "run"


def picture(run, row, trace, number):
    """(name of the file, its text)"""
    title = f"{row['name']}, {row['model']}, {run['ranks']} ranks, M {run['microbatches']}"
    note = f"predicted step {row['predicted_ms']:.1f} ms"
    if row["measured_ms"] is not None:
        error = tables.percent(agreement.relative(row["predicted_ms"], row["measured_ms"]))
        note += f", measured {row['measured_ms']:.1f} ms ({error}); drawn is one further step"
    text = overlay.svg(title, note, overlay.measured_timeline(run["timeline"]), overlay.predicted_timeline(trace["traceEvents"], run["ranks"]))
    return f"{number:02d}-{slug(row['name'])}-m{run['microbatches']}.svg", text


def compare(data, program, draw):
    """(rows, pictures): of all runs, in their order."""
    runs = list(enumerate(data["runs"]))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        predictor = Predictor(program, data["profiles"], folder)
        answers = list(pool.map(lambda pair: predictor.ask(pair[1], pair[0], "json"), runs))
        rows = [row_of(run, *answer) for (_, run), answer in zip(runs, answers)]
        tell_apart(rows)
        drawn = [(i, run) for i, run in runs if draw and run.get("timeline") and rows[i]["predicted_ms"] is not None]
        traces = list(pool.map(lambda pair: predictor.ask(pair[1], pair[0], "trace"), drawn))
    return rows, [picture(run, rows[i], trace, i) for (i, run), (trace, problem) in zip(drawn, traces) if not problem]


def summary_object(rows):
    def names(pair):
        return [{key: row[key] for key in ("name", "model", "ranks", "microbatches", "measured_ms", "predicted_ms")} for row in pair]
    order = []
    for (model, ranks, microbatches), some in agreement.groups(rows).items():
        found = agreement.order(some)
        order.append({"model": model, "ranks": ranks, "microbatches": microbatches, "runs": found["runs"], "kendall_tau": found["tau"],
                      "pairs": found["pairs"], "wrong": [names(pair) for pair in found["wrong"]]})
    claims = {name: [{"measured_fraction": each["measured"], "predicted_fraction": each["predicted"], "runs": names((each["from"], each["to"])),
                      **({"faster": each["faster"]} if "faster" in each else {})} for each in found] for name, found in agreement.claims(rows).items()}
    return {"step": agreement.spread(agreement.step_errors(rows)), "peak": agreement.spread(agreement.peak_errors(rows)),
            "order": order, "claims": claims}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", metavar="RUNS.json", nargs="+")
    parser.add_argument("--pipeplan", metavar="PROGRAM", help="default: build/release/pipeplan here, or pipeplan on the path")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--summary", action="store_true", help="a row for each model instead of one for each run")
    parser.add_argument("--svg", metavar="DIR", help="write a picture of each run that has a timeline")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output")
    options = parser.parse_args()
    try:
        data = together([(path, read(path)) for path in options.runs])
        rows, pictures = compare(data, program_of(options.pipeplan), options.svg)
        if options.format == "json":
            head = {key: data.get(key) for key in ("source", "date", "command")}
            text = json.dumps({**head, "not_run": data.get("not_run") or [], "summary": summary_object(rows),
                               "runs": rows}, indent=1, ensure_ascii=False) + "\n"
        else:
            text = tables.page(data, rows, options.format == "markdown", options.summary)
        if options.svg:
            os.makedirs(options.svg, exist_ok=True)
            for name, picture_text in pictures:
                pathlib.Path(options.svg, name).write_text(picture_text, encoding="utf-8")
        if options.output and os.path.exists(options.output) and any(os.path.samefile(options.output, path) for path in options.runs):
            raise BadInput(f"-o {options.output}: it is read; expected another file")
        if options.output:
            pathlib.Path(options.output).write_text(text, encoding="utf-8")
        else:
            sys.stdout.reconfigure(encoding="utf-8")
            sys.stdout.write(text)
    except (BadInput, NoProgram) as problem:
        print(f"compare.py: {problem}", file=sys.stderr)
        return 2
    except OSError as problem:
        print(f"compare.py: {problem.filename or options.output}: {problem.strerror}", file=sys.stderr)
        return 2
    return 1 if any(row["problem"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

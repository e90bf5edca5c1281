#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: changes one place of engine/core or stdlib at a time and sees whether a test notices.

    tests/mutation/run.py [--engine 200] [--stdlib 100] [--seed 1] [--jobs 2] [--list] [--only REGEX] [--budget SECONDS]
                          [--again] [--asan] [--fresh]

The places are drawn from all (sites.py) by the seed; one that does not compile is replaced by the next. Each mutant lives in a copy of the
tracked files under build/mutation, never in the working tree: C is compiled there at -O1, one object and what it is linked into; of stdlib
the module and the program read the changed copy. Tests run in the order in which they pay: those that killed mutants of the same file
before, those named after it, those that name it, the cheap ones first; the first that fails ends the mutant. --budget bounds the tests of a
mutant, but for those named after its file: what survived within it is tried again by a run with more. Results are kept in
build/mutation/results.jsonl, so that a run that was ended goes on where it was (--fresh begins anew).

A survivor is either a missing test, or equivalent.txt says why no test can tell, and then it is not tried again. Without --engine and
--stdlib only equivalent.txt is checked against the sources. Exit status: 0 none survived unexplained, 1 some did or equivalent.txt is out of
date.
"""
import argparse
import collections
import functools
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import sites

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutation"
GROUPS = {
    "engine": {"files": "engine/core/*.c", "language": "c", "tests": r"^(unit|lua|policy|cli)\."},
    "stdlib": {"files": "stdlib/**/*.lua", "language": "lua", "tests": r"^(lua|policy|cli|sites)\."},
}
# What editors read, and what lints it: no behaviour.
SKIPPED_FILES = re.compile(r"^stdlib/meta/")
# Tests of what is around the planner; they take long and kill nothing that the others leave.
SKIPPED_TESTS = re.compile(r"^(torch\.|cli\.(ci_examples|install|manual|monitor_fuzz|help)_spec)")


def draw(group, seed, only):
    """
    All places of a group in the order of drawing: [(path, Mutant, id)]. A place's id is its file and lines and which of equals it is, and its
    rank a hash of that, so that a change of the sources elsewhere draws the same places again, and knows what came of them.
    """
    found, times = [], collections.Counter()
    for path in sorted(ROOT.glob(GROUPS[group]["files"])):
        name = str(path.relative_to(ROOT))
        if not SKIPPED_FILES.search(name) and (not only or re.search(only, name)):
            for mutant in sites.mutants_of(path.read_text(), GROUPS[group]["language"]):
                key = key_of(name, mutant)
                times[key] += 1
                found.append((name, mutant, "\0".join((*key, str(times[key])))))
    return sorted(found, key=lambda place: hashlib.sha256(("%d\0%s" % (seed, place[2])).encode()).digest())


@functools.lru_cache(maxsize=None)
def text_of(path):
    return (ROOT / path).read_text()


def changed_text(text, mutant):
    return text[:mutant.start] + mutant.replacement + text[mutant.end:]


def key_of(path, mutant):
    """What names a mutant in equivalent.txt: its file and the lines that it changes, without their indentation."""
    text = text_of(path)
    first = text.rfind("\n", 0, mutant.start) + 1
    last = text.find("\n", mutant.end) if "\n" in text[mutant.end:] else len(text)
    before, after = text[first:last], text[first:mutant.start] + mutant.replacement + text[mutant.end:last]
    return path, " ⏎ ".join(line.strip() for line in before.split("\n")), " ⏎ ".join(line.strip() for line in after.split("\n"))


def read_equivalents():
    """{ (file, line before, line after): why } of equivalent.txt."""
    entries, entry = {}, {}
    for line in (Path(__file__).parent / "equivalent.txt").read_text().splitlines():
        if line.startswith("file: "):
            entry = {"file": line[6:].strip()}
        elif line[:2] in ("- ", "+ ") or line in ("-", "+"):
            entry[line[0]] = line[2:].strip()
        elif line.startswith("why: "):
            entries[entry["file"], entry["-"], entry.get("+", "")] = line[5:].strip()
    return entries


def processor_ticks(session):
    """What all processes of a session have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:   # it has ended
            continue
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def output_of(process, seconds):
    """What a process, the first of its session, writes; None where it is killed, after `seconds` or once nothing of it has run for a minute."""
    began, ticks, stirred = time.monotonic(), -1, time.monotonic()
    while True:
        try:
            return process.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            now, used = time.monotonic(), processor_ticks(process.pid)
            if used > ticks:
                ticks, stirred = used, now
            if now - began > seconds or now - stirred > 60:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None


class Tree:
    """A private copy of the sources with its own build."""

    def __init__(self, number, asan=False):
        self.root, self.number, self.asan = WORK / ("%s%s" % ("asan" if asan else "tree", number)), number, asan
        self.build, self.stdlib = self.root / "build" / "release", WORK / ("stdlib%s" % number)

    def prepare(self):
        shutil.rmtree(self.root / "tests", ignore_errors=True)
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        for name in filter(None, names):
            source, copy = ROOT / name, self.root / name
            if source.is_file() and not (copy.is_file() and copy.read_bytes() == source.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        # Warnings that CI takes for errors and that a mutant earns; a trap stands for what preset asan would say of an index or a shift.
        flags = "-O1 -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=uninitialized -Wno-error=maybe-uninitialized -Wno-format-truncation "
        options = ["-DCMAKE_BUILD_TYPE=None", "-DPIPEPLAN_WERROR=OFF", "-DPIPEPLAN_SANITIZE=" + ("ON" if self.asan else "OFF"),
                   "-DCMAKE_C_FLAGS=" + flags + ("" if self.asan else "-fsanitize=undefined -fsanitize-undefined-trap-on-error")]
        if shutil.which("ccache"):
            options.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        if shutil.which("ninja"):
            options.append("-GNinja")
        self.call(["cmake", "-S", str(self.root), "-B", str(self.build)] + options, 300, check=True)
        self.make(["all"], check=True)
        shutil.rmtree(self.stdlib, ignore_errors=True)
        shutil.copytree(self.root / "stdlib", self.stdlib)
        wrapper = WORK / ("pipeplan%s" % self.number)
        wrapper.write_text('#!/bin/sh\nexec "%s" "$@" --stdlib "%s"\n' % (self.build / "pipeplan", self.stdlib))
        wrapper.chmod(0o755)
        self.wrapper = wrapper

    def call(self, command, seconds, check=False, cwd=None, environment=None):
        """
        Runs a command in its own session; (status, its output), None when time was up or all of it waited for a minute. seconds: of a
        processor, in each of its processes, and twenty times as long by the clock, for other work may go on here; None for as long as it takes.
        """
        def limit():
            os.setsid()
            if seconds:
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            if not self.asan:
                resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        process = subprocess.Popen(command, cwd=cwd or self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=limit)
        output = output_of(process, 20 * seconds if seconds else math.inf)
        if output is None:
            return None, ""
        if check and process.returncode != 0:
            sys.exit("%s\n%s failed" % (output, " ".join(command)))
        return (None if process.returncode == -signal.SIGXCPU else process.returncode), output

    def make(self, targets, check=False):
        return self.call(["cmake", "--build", str(self.build), "--target"] + targets, None if check else 600, check)[0] == 0

    def tests(self):
        """[{ name, command, environment, cwd, target }] as CTest knows them."""
        text = subprocess.run(["ctest", "--test-dir", str(self.build), "--show-only=json-v1"], check=True, capture_output=True, text=True).stdout
        found = []
        for test in json.loads(text)["tests"]:
            properties = {one["name"]: one["value"] for one in test["properties"]}
            name = test["name"]
            unit = name.startswith("unit.")
            found.append({"name": name, "command": test["command"], "environment": properties.get("ENVIRONMENT", []),
                          "cwd": properties.get("WORKING_DIRECTORY", str(self.build)),
                          "targets": [name[5:]] if unit else ["pipeplan_module", "pipeplan"]})
        return found

    def run_test(self, test, seconds, mutated_stdlib):
        environment = dict(os.environ, **dict(item.split("=", 1) for item in test["environment"]))
        if mutated_stdlib:
            environment.update(PIPEPLAN_STDLIB=str(self.stdlib), PIPEPLAN=str(self.wrapper))
        first = [] if test["name"].startswith("unit.") else ["--no-keep-going"]   # busted ends at the first that fails
        return self.call(test["command"] + first, seconds, cwd=test["cwd"], environment=environment)[0]


def is_named_after(test, path):
    stem = Path(path).stem
    return stem in test["name"] or stem.split("_")[0] in test["name"]


@functools.lru_cache(maxsize=None)
def text_of_spec(path):
    return Path(path).read_text() if Path(path).is_file() else ""


def source_of(test):
    """The text of a spec; "" of what is none."""
    return "".join(text_of_spec(word) for word in test["command"] if word.endswith("_spec.lua"))


class History:
    """Seconds of each test, and how many mutants of which file it killed."""

    def __init__(self):
        self.file, self.lock = WORK / "history.json", threading.Lock()
        self.data = json.loads(self.file.read_text()) if self.file.is_file() else {"seconds": {}, "kills": {}, "mutants": {}}
        self.guessed = set()   # tests whose seconds nobody has seen yet

    def passed(self, test, seconds):
        if test in self.guessed:
            self.guessed.discard(test)
            self.data["seconds"][test] = seconds

    def record(self, path, test):
        with self.lock:
            self.data["mutants"][path] = self.data["mutants"].get(path, 0) + 1
            if test:
                kills = self.data["kills"].setdefault(path, {})
                kills[test] = kills.get(test, 0) + 1
            self.file.write_text(json.dumps(self.data, indent=1, sort_keys=True))

    def order(self, path, tests, group):
        """The tests of a mutant, the one first that promises most kills a second."""
        stem = Path(path).stem
        kills = self.data["kills"].get(path, {})
        everywhere = {}
        for of_file in self.data["kills"].values():
            for name, count in of_file.items():
                everywhere[name] = everywhere.get(name, 0) + count

        def promise(test):
            name, seconds = test["name"], self.data["seconds"][group + " " + test["name"]]
            named = 2 if is_named_after(test, path) else 0.5 if re.search(r"\b%s\b" % re.escape(stem), source_of(test)) else 0
            return (kills.get(name, 0) + named + 0.05 * everywhere.get(name, 0) + 0.02) / (seconds + 0.3)
        return sorted(tests, key=lambda test: (-promise(test), test["name"]))


def usual_seconds(history, group, tests):
    """What each test of a group takes: as the history says, or CTest's last full run here; where neither knows it half a second, until it ran."""
    costs, file = {}, ROOT / "build" / "release" / "Testing" / "Temporary" / "CTestCostData.txt"
    if file.is_file():
        for line in file.read_text().splitlines():
            parts = line.split()
            if len(parts) == 3:
                costs[parts[0]] = float(parts[2])
    found = []
    for test in tests:
        if re.search(GROUPS[group]["tests"], test["name"]) and not SKIPPED_TESTS.search(test["name"]):
            key = group + " " + test["name"]
            if key not in history.data["seconds"] and test["name"] not in costs:
                history.guessed.add(key)
            history.data["seconds"].setdefault(key, costs.get(test["name"], 0.5))
            found.append(test)
    return found


class Reference:
    """The unchanged sources: a test that fails there too has told nothing, and is not asked again."""

    def __init__(self, asan):
        self.tree, self.tests, self.verdicts, self.lock = Tree("clean", asan), {}, {}, threading.Lock()

    def prepare(self):
        self.tree.prepare()
        self.tests = {test["name"]: test for test in self.tree.tests()}

    def passes(self, name, group, seconds):
        with self.lock:
            key = group, name
            if key not in self.verdicts:
                self.verdicts[key] = self.tree.run_test(self.tests[name], seconds, group == "stdlib") == 0
                if not self.verdicts[key]:
                    print("not used: %s fails on the unchanged sources here" % name, flush=True)
            return self.verdicts[key]


def try_mutant(tree, reference, history, tests, group, path, mutant, budget):
    """(outcome, test that killed): killed, timed out, survived, or did not compile."""
    language = GROUPS[group]["language"]
    target = tree.root / path if language == "c" else tree.stdlib / Path(path).relative_to("stdlib")
    text = target.read_text()
    target.write_text(changed_text(text, mutant))
    try:
        if language == "lua":
            if subprocess.run(["luac5.4" if shutil.which("luac5.4") else "luac", "-p", str(target)], capture_output=True).returncode != 0:
                return "did not compile", None
        elif not tree.make(["libpipeplan"]):
            return "did not compile", None
        built, spent = set(), 0.0
        for test in history.order(path, tests, group):
            usual = history.data["seconds"][group + " " + test["name"]]
            if spent + usual > budget and not is_named_after(test, path) or reference.verdicts.get((group, test["name"])) is False:
                continue
            if language == "c" and not built.issuperset(test["targets"]):
                if not tree.make(test["targets"]):
                    return "did not compile", None
                built.update(test["targets"])
            seconds, began = 120 + 20 * usual, time.monotonic()
            status = tree.run_test(test, seconds, group == "stdlib")
            if status == 0:
                history.passed(group + " " + test["name"], time.monotonic() - began)
            spent += history.data["seconds"][group + " " + test["name"]]
            if status != 0 and reference.passes(test["name"], group, seconds):
                return ("timed out" if status is None else "killed"), test["name"]
        return "survived", None
    finally:
        target.write_text(text)


class Run:
    def __init__(self, options, equivalents):
        self.options, self.equivalents = options, equivalents
        self.lock, self.history, self.reference = threading.Lock(), History(), Reference(options.asan)
        self.file, self.known = WORK / "results.jsonl", {}
        if self.file.is_file():
            for line in self.file.read_text().splitlines():
                result = json.loads(line)
                self.known[result["id"]] = result

    def survivors(self):
        """Keys of what survived so far."""
        return {tuple(result["key"]) for result in self.known.values() if result["outcome"] == "survived"}

    def group(self, group, wanted, trees):
        """Draws until `wanted` mutants compiled; their results. Again: what survived so far, wherever it is now."""
        places, results = draw(group, self.options.seed, self.options.only), []
        if self.options.again:
            keys = self.survivors()
            files = {key[0] for key in keys}
            places = [place for place in places if place[0] in files and key_of(*place[:2]) in keys]
        places = iter(places)

        def work(tree):
            tests = usual_seconds(self.history, group, tree.tests())
            while True:
                with self.lock:
                    enough = sum(result["outcome"] != "did not compile" for result in results) + self.pending >= wanted
                    place = None if enough else next(places, None)
                    if place is None:
                        return
                    self.pending += 1
                result = self.result_of(tree, tests, group, *place)
                with self.lock:
                    self.pending -= 1
                    results.append(result)

        self.pending = 0
        threads = [threading.Thread(target=work, args=(tree,)) for tree in trees]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def result_of(self, tree, tests, group, path, mutant, name):
        line = text_of(path).count("\n", 0, mutant.start) + 1
        result = self.known.get(name)
        again = result and result["outcome"] == "survived" and key_of(path, mutant) not in self.equivalents
        if not result or again and (self.options.again or result["budget"] < self.options.budget):
            start = time.monotonic()
            outcome, test = try_mutant(tree, self.reference, self.history, tests, group, path, mutant, self.options.budget)
            result = {"id": name, "file": path, "line": line, "kind": mutant.kind, "outcome": outcome, "test": test,
                      "seconds": round(time.monotonic() - start, 1), "budget": self.options.budget}
            result["key"] = key_of(path, mutant)
            with self.lock:
                with open(self.file, "a") as out:
                    out.write(json.dumps(result, ensure_ascii=False) + "\n")
            if outcome != "did not compile":
                self.history.record(path, test)
        print("%-15s %s:%d %s %s" % (result["outcome"], path, line, mutant.kind, result["test"] or ""), flush=True)
        return result


def report(group, results, equivalents):
    """Prints the score of a group and its survivors; the number of those without an explanation."""
    count = collections.Counter(result["outcome"] for result in results)
    survivors = [result for result in results if result["outcome"] == "survived"]
    unexplained = [result for result in survivors if tuple(result["key"]) not in equivalents]
    noticed = count["killed"] + count["timed out"]
    print("\n%s: %d mutants, %d killed, %d timed out, %d survived (%d of them equivalent); %d more did not compile" % (
        group, noticed + len(survivors), count["killed"], count["timed out"], len(survivors),
        len(survivors) - len(unexplained), count["did not compile"]))
    distinct = noticed + len(unexplained)
    if distinct:
        print("score: %d of %d that can be told apart, %.1f %%" % (noticed, distinct, 100 * noticed / distinct))
    for result in unexplained:
        print("\nsurvived: %s:%d (%s)\nfile: %s\n- %s\n+ %s" % (
            result["file"], result["line"], result["kind"], result["file"], result["key"][1], result["key"][2]))
    return len(unexplained)


def stale(equivalents):
    """Entries of equivalent.txt whose line is no longer in the file."""
    for file, before, _ in equivalents:
        path = ROOT / file
        lines = {line.strip() for line in path.read_text().splitlines()} if path.is_file() else set()
        for line in before.split(" ⏎ "):
            if line not in lines:
                yield "%s: %s" % (file, line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", type=int, default=0, metavar="N", help="mutants of engine/core")
    parser.add_argument("--stdlib", type=int, default=0, metavar="N", help="mutants of stdlib")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", metavar="REGEX", help="files to draw from")
    parser.add_argument("--budget", type=float, default=1e9, metavar="SECONDS", help="processor time of tests for one mutant; default all")
    parser.add_argument("--list", action="store_true", help="print the places that would be drawn, and run nothing")
    parser.add_argument("--again", action="store_true", help="only what survived so far: are the new tests enough?")
    parser.add_argument("--asan", action="store_true", help="build as preset asan does: slower, and sees what is out of bounds")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    options = parser.parse_args()
    wanted = {"engine": options.engine, "stdlib": options.stdlib}
    equivalents = read_equivalents()
    outdated = list(stale(equivalents))
    for line in outdated:
        print("no longer in the sources, take it out of equivalent.txt: " + line)
    if options.list:
        for group, number in wanted.items():
            for path, mutant, _ in draw(group, options.seed, options.only)[:number]:
                print("%s\n- %s\n+ %s" % key_of(path, mutant))
    if options.list or not any(wanted.values()):
        return 1 if outdated else 0
    WORK.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        (WORK / "results.jsonl").unlink(missing_ok=True)
    run = Run(options, equivalents)
    trees = [Tree(number, options.asan) for number in range(options.jobs)]
    for tree in [run.reference] + trees:
        tree.prepare()
    results = {group: run.group(group, number, trees) for group, number in wanted.items() if number}
    return 1 if sum([report(group, found, equivalents) for group, found in results.items()]) or outdated else 0


if __name__ == "__main__":
    sys.exit(main())

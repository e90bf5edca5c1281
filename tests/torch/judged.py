# SPDX-License-Identifier: Apache-2.0
"""judged.py: plans that a Lua program makes, a JSON object a line ({ seed, gpus, plan, text, … }), before a framework's own code.

    wrong = judged.plans("shipped plans", 6, "tests/torch/megatron_plans.lua shipped 0 1024".split(), "megatron-core", judge)

judge(given) → what that code has of the launch, { "ok", "error", … }, and what of it ought to be what; None: it is not asked. Fewer plans than
`least` are a failure. A plan without a text is one that no key says. words(): what else the last line says.
"""
import json
import os
import subprocess


def plans(what, least, arguments, name, judge, words=lambda: ""):
    made = subprocess.Popen(["lua5.4", *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, "LUA_PATH": "tests/?.lua;;"})
    wrong = asked = unwritten = 0
    for line in made.stdout:
        given = json.loads(line)
        if not given.get("text"):
            asked, unwritten = asked + 1, unwritten + 1
            continue
        answer = judge(given)
        if answer is None:
            continue
        asked += 1
        theirs, want = answer
        differ = {key: (theirs.get(key), value) for key, value in want.items() if theirs.get(key) != value}
        if not theirs["ok"] or differ:
            wrong += 1
            print(f"{what}: {given['seed']}: {theirs.get('error') or f'{name} and the plan have {differ}'}\n{given['text'][:6000]}")
    if made.wait() != 0 or asked < least:
        print(f"{asked} of {least} {what} were made")
        return 1
    said = f"; {unwritten} that no key says, and none was written" if unwritten else ""
    print(f"{asked} {what}: {wrong} refused by {name}, or built otherwise{said}{words()}")
    return wrong

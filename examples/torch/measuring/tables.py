# SPDX-License-Identifier: Apache-2.0
"""What compare.py prints of compared runs, as text or markdown. Plain Python, no torch. Rows and claims: agreement.py."""
from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from . import agreement

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .agreement import Row

GIB = 2**30
KINDS = "FBIW"
FASTER = {"plan": "the plan", "fallback": "the fallback", "tie": "neither"}
CLAIMS = {
    "pairs_as_two_actions": "F&B pairs of DualPipeV as two actions, against PyTorch's own lowering",
    "queue_a_peer": "a communicator for each neighbour, against one for all",
    "balanced": "layers where the time is, against an even split",
    "picked": "the least predicted step, against 1F1B with an even split",
}


def percent(value: float | None, sign: bool = True) -> str:
    return "" if value is None else f"{100 * value:+.1f} %" if sign else f"{100 * value:.1f} %"


def gib(value: float) -> str:
    return f"{value / GIB:.2f}"


def mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.0f}" if values else ""


def table(headings: Sequence[str], rows: Sequence[Sequence], markdown: bool) -> list[str]:
    """Lines of a table; the first column is words, the others are numbers. Columns without a cell are left out."""
    kept = [c for c in range(len(headings)) if c == 0 or any(row[c] for row in rows)]
    cells = [[str(row[c]) for c in kept] for row in [headings, *rows]]
    if markdown:
        rule = [":--"] + ["--:"] * (len(kept) - 1)
        return ["| " + " | ".join(row) + " |" for row in [cells[0], rule] + cells[1:]]
    widths = [max(len(row[c]) for row in cells) for c in range(len(kept))]
    return ["  ".join([row[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])]).rstrip() for row in cells]


def by_model(rows: Iterable[Row]) -> dict[tuple, list[Row]]:
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["ranks"]), []).append(row)
    return found


def titled(model: str, ranks: int, what: str) -> str:
    return f"{model}, P {ranks}: {what}"


# ---------------------------------------------------------------------------------------------------------------------- one row a run


def step_cells(row: Row) -> list:
    steps, peaks = row["step_ms"], list(zip(row["peak_bytes"] or [], row["predicted_peak_bytes"] or []))
    errors = [agreement.relative(predicted, measured) for measured, predicted in peaks]
    both = row["measured_ms"] is not None and row["predicted_ms"] is not None
    return [
        row["name"], row["microbatches"], f"{row['measured_ms']:.1f}" if steps else "",
        percent((max(steps) - min(steps)) / row["measured_ms"], sign=False) if len(steps) > 1 else "",
        f"{row['predicted_ms']:.1f}" if row["predicted_ms"] is not None else "",
        percent(agreement.relative(row["predicted_ms"], row["measured_ms"])) if both else "",
        gib(max(row["peak_bytes"])) if row["peak_bytes"] else "",
        gib(max(row["predicted_peak_bytes"])) if row["predicted_peak_bytes"] else "",
        percent(max(errors, key=abs)) if errors else "", mean(row["sm_clock_mhz"]), mean(row["power_w"]),
    ]


STEP_HEADINGS = ["run", "M", "step ms", "spread", "predicted", "error", "peak GiB", "predicted", "worst rank", "MHz", "W"]


def action_cells(row: Row) -> list:
    cells = [row["name"], row["microbatches"]]
    for kind in KINDS:
        found = row["actions"].get(kind)
        host = found and found.get("host_ms")
        cells += [f"{found['measured_ms']:.2f}", f"{found['profile_ms']:.2f}", "" if host is None else f"{host:.2f}"] if found else ["", "", ""]
    return cells


ACTION_HEADINGS = ["run", "M"] + [head for kind in KINDS for head in (f"{kind} ms", "profile", "host")]


def run_tables(rows: Sequence[Row], markdown: bool) -> list[tuple[str, list[str]]]:
    sections = []
    for (model, ranks), some in by_model(rows).items():
        sections.append((titled(model, ranks, "steps, and the fullest rank"), table(STEP_HEADINGS, [step_cells(r) for r in some], markdown)))
        timed = [row for row in some if row["actions"]]
        if timed:
            what = "actions, the median in the run, and of the same stages in the profile, before heat: of the card, and of its host"
            sections.append((titled(model, ranks, what),
                             table(ACTION_HEADINGS, [action_cells(row) for row in timed], markdown)))
    return sections


# ---------------------------------------------------------------------------------------------------------------------------- summary


def summary_table(rows: Sequence[Row], markdown: bool) -> tuple[str, list[str]]:
    """Errors and order of each model over all its runs."""
    lines = []
    models = [(f"{model}, P {ranks}", some) for (model, ranks), some in by_model(rows).items()]
    for name, some in models + ([("all", rows)] if len(models) > 1 else []):
        orders = [agreement.order(same) for same in agreement.groups(some).values()]
        name, steps, median, worst, *peaks = error_cells(name, some)
        lines.append([name, steps, median, worst, sum(o["pairs"] for o in orders), str(sum(len(o["wrong"]) for o in orders)), *peaks])
    title = f"predicted against measured; pairs: of schedules that are {100 * agreement.APART:g} % apart or more, at the same M"
    return title, table(["", "steps", "median", "worst", "pairs", "wrong way", "peaks", "median", "worst"], lines, markdown)


def claim_matrix(rows: Sequence[Row], markdown: bool) -> tuple[str, list[str]]:
    """What each claim is worth: a row for each model and change, a column for each M, measured and (predicted)."""
    sizes = sorted({row["microbatches"] for row in rows})
    cells: dict[Any, Any] = {}
    for name, found in agreement.claims(rows).items():
        for each in found if name in CLAIMS else []:
            slow, fast = each["from"], each["to"]
            change = "the least predicted" if name == "picked" else fast["name"]
            key = f"{slow['model']}, P {slow['ranks']}: {change}, against {slow['name']}"
            cells.setdefault(key, {})[slow["microbatches"]] = f"{percent(each['measured'])} ({percent(each['predicted'])})"
    lines = [[key] + [by_size.get(size, "") for size in sizes] for key, by_size in cells.items()]
    return "what a step saves, measured (predicted)", table([""] + [f"M {size}" for size in sizes], lines, markdown) if lines else []


def error_cells(name: str, rows: Sequence[Row]) -> list:
    steps, peaks = agreement.spread(agreement.step_errors(rows)), agreement.spread(agreement.peak_errors(rows))
    return [name, steps["count"], percent(steps["median"], sign=False), percent(steps["worst"]),
            peaks["count"] or "", percent(peaks["median"], sign=False), percent(peaks["worst"])]


def error_table(rows: Sequence[Row], markdown: bool) -> tuple[str, list[str]]:
    lines = [error_cells(f"{model}, P {ranks}", some) for (model, ranks), some in by_model(rows).items()]
    if len(lines) > 1:
        lines.append(error_cells("all", rows))
    return "errors", table(["", "steps", "median", "worst", "peaks", "median", "worst"], lines, markdown)


def order_table(rows: Sequence[Row], markdown: bool) -> tuple[str, list[str]]:
    lines = []
    for (model, ranks, microbatches), some in agreement.groups(rows).items():
        found = agreement.order(some)
        if found["runs"] > 1:
            lines.append([f"{model}, P {ranks}, M {microbatches}", found["runs"], f"{found['tau']:.2f}", found["pairs"], str(len(found["wrong"]))])
    title = f"order of schedules; pairs: those that are {100 * agreement.APART:g} % apart or more"
    return title, table(["", "runs", "Kendall tau", "pairs", "wrong"], lines, markdown) if lines else []


def wrong_pairs(rows: Sequence[Row]) -> tuple[str, list[str]]:
    lines = []
    for some in agreement.groups(rows).values():
        for a, b in agreement.order(some)["wrong"]:
            lines.append(f"{a['model']}, P {a['ranks']}, M {a['microbatches']}: {a['name']} {a['measured_ms']:.1f} (predicted {a['predicted_ms']:.1f}) and "
                         f"{b['name']} {b['measured_ms']:.1f} (predicted {b['predicted_ms']:.1f})")
    return "pairs in the wrong order, ms", lines


def claim_cells(name: str, found: dict[str, Any]) -> list:
    slow, fast = found["from"], found["to"]
    words = fast["name"] if name == "picked" else f"{slow['name']} → {fast['name']}" if slow["name"] != fast["name"] else slow["name"]
    best = found.get("best")
    return [f"{slow['model']}, P {slow['ranks']}, M {slow['microbatches']}: {words}", f"{slow['measured_ms']:.1f}", f"{fast['measured_ms']:.1f}",
            percent(found["measured"]), percent(found["predicted"]),
            f"{best['name']} {best['measured_ms']:.1f}" if best and best is not fast else ""]


def planned_table(rows: Sequence[Row], markdown: bool) -> tuple[str, list[str]]:
    """A plan and its fallback, each measured, predicted and by how much the prediction is off; what the plan saves; which one is faster."""
    lines = []
    for found in agreement.claims(rows)["planned"]:
        plan, fallback = found["to"], found["from"]
        cells = [f"{plan['model']}, P {plan['ranks']}, M {plan['microbatches']}: {plan['name']}, against {fallback['name']}"]
        for row in (plan, fallback):
            cells += [f"{row['measured_ms']:.1f}", f"{row['predicted_ms']:.1f}", percent(agreement.relative(row["predicted_ms"], row["measured_ms"]))]
        lines.append(cells + [percent(found["measured"]), percent(found["predicted"]), FASTER[found["faster"]]])
    title = f"the plan against its fallback, ms; neither is faster within {100 * agreement.APART:g} %"
    headings = ["", "plan", "predicted", "error", "fallback", "predicted", "error", "saves", "predicted", "faster"]
    return title, table(headings, lines, markdown) if lines else []


def claim_tables(rows: Sequence[Row], markdown: bool) -> list[tuple[str, list[str]]]:
    headings = ["", "ms", "→ ms", "saves", "predicted", "fastest measured"]
    return [(CLAIMS[name], table(headings, [claim_cells(name, each) for each in found], markdown))
            for name, found in agreement.claims(rows).items() if found and name in CLAIMS]


def blind(rows: Sequence[Row]) -> list[str]:
    """How many runs were predicted before their first step, and what these predictions are worth: in words."""
    said = [row for row in rows if (row.get("predicted") or {}).get("step_ms") is not None
            and row["predicted"]["at"] <= row["predicted"]["first_step_at"]]
    if not said:
        return ["no run was predicted before it was measured: the program and these figures may have been changed after seeing them"]
    errors = agreement.spread([agreement.relative(row["predicted"]["step_ms"], row["measured_ms"]) for row in said
                               if row["measured_ms"] is not None])
    programs = sorted({row["predicted"]["program"] for row in said})
    other = [row for row in said if row["predicted_ms"] is not None and abs(agreement.relative(row["predicted_ms"], row["predicted"]["step_ms"])) > 1e-6]
    line = f"{len(said)} of {len(rows)} runs were predicted before their first step, by {', '.join(programs)}"
    if errors["count"]:
        line += f": median {percent(errors['median'], sign=False)}, worst {percent(errors['worst'])}"
    return [line + ("; the program as it is now predicts the same" if not other else
                    f"; the program as it is now predicts {len(other)} of them otherwise, as the tables have it")]


def notes(data: dict[str, Any], rows: Sequence[Row], summary: bool) -> tuple[str, list[str]]:
    base = {row["base"] for row in rows if row["predicted_peak_bytes"]}
    lines = list(data.get("notes") or []) + blind(rows)
    lines += [f"{row['name']}, M {row['microbatches']}: {row['problem']}" for row in rows if row["problem"]]
    if "measured" in base:
        lines.append("predicted peaks are what was on the card before the step, and what the profile makes of the step")
    unknown = sorted({row["peak_unknown"] for row in rows if row["peak_bytes"] and row["peak_unknown"]})
    left_out = data.get("not_run") or []
    lines += [f"runs left out: {len(left_out)}"] if left_out and summary else [f"not run: {each}" for each in left_out]
    return "notes", lines + [f"peak not predicted: {why}" for why in unknown]


# ------------------------------------------------------------------------------------------------------------------------------ page


def page(data: dict[str, Any], rows: Sequence[Row], markdown: bool = False, summary: bool = False) -> str:
    """The whole report. summary: without a row for each run."""
    if summary:
        sections = [summary_table(rows, markdown), planned_table(rows, markdown), wrong_pairs(rows), claim_matrix(rows, markdown)]
    else:
        sections = run_tables(rows, markdown) + [planned_table(rows, markdown), error_table(rows, markdown), order_table(rows, markdown), wrong_pairs(rows)]
        sections += claim_tables(rows, markdown)
    sections.append(notes(data, rows, summary))
    command = data.get("command") and (f"`{data['command']}`" if markdown else data["command"])
    lines = [", ".join(filter(None, [data.get("source"), data.get("date"), command]))]
    for title, body in sections:
        if not body:
            continue
        listed = title in ("notes", "pairs in the wrong order, ms")
        lines += ["", f"**{title}**" if markdown else title] + ([""] if markdown else [])
        lines += [f"{'- ' if markdown else '  '}{line}" for line in body] if listed else body
    return "\n".join(lines).lstrip("\n") + "\n"

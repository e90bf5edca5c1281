# SPDX-License-Identifier: Apache-2.0
"""How well predictions meet measurements: errors, order, and what the runs say of some claims. Plain Python, no torch.

A row is one run as compare.py completes it: { name, schedule, runtime, pairs, queues, model, ranks, microbatches, layers_per_stage,
measured_ms, predicted_ms, peak_bytes, predicted_peak_bytes, … }; what is not known of it is None.
"""
from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Row = dict[str, Any]
APART = 0.03   # runs that differ by less are a tie: steps of one run differ by 0.2 to 2.7 %


def relative(predicted: float, measured: float) -> float:
    return predicted / measured - 1


def spread(errors: Sequence[float]) -> dict[str, Any]:
    """{ count, median, worst } of relative errors: the median of their sizes, and the largest with its sign."""
    errors = list(errors)
    if not errors:
        return {"count": 0, "median": None, "worst": None}
    return {"count": len(errors), "median": statistics.median(map(abs, errors)), "worst": max(errors, key=abs)}


def compared(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["measured_ms"] is not None and row["predicted_ms"] is not None]


def step_errors(rows: Iterable[Row]) -> list[float]:
    return [relative(row["predicted_ms"], row["measured_ms"]) for row in compared(rows)]


def peak_errors(rows: Iterable[Row]) -> list[float]:
    return [relative(p, m) for row in rows if row["peak_bytes"] and row["predicted_peak_bytes"]
            for p, m in zip(row["predicted_peak_bytes"], row["peak_bytes"])]


def groups(rows: Iterable[Row]) -> dict[tuple, list[Row]]:
    """Runs of the same work: { (model, ranks, M): rows }, sorted."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault((row["model"], row["ranks"], row["microbatches"]), []).append(row)
    return dict(sorted(found.items()))


def order(rows: Sequence[Row]) -> dict[str, Any]:
    """Of runs of the same work: { runs, tau, pairs, wrong }: Kendall's tau over all pairs; pairs that are APART, and those of them that
    were predicted the other way round."""
    rows = compared(rows)
    agreement, count, apart, wrong = 0, 0, 0, []
    for a, b in itertools.combinations(rows, 2):
        measured, predicted = a["measured_ms"] - b["measured_ms"], a["predicted_ms"] - b["predicted_ms"]
        count += 1
        agreement += (measured * predicted > 0) - (measured * predicted < 0)
        if abs(relative(a["measured_ms"], b["measured_ms"])) >= APART:
            apart += 1
            if measured * predicted <= 0:
                wrong.append((a, b))
    return {"runs": len(rows), "tau": agreement / count if count else None, "pairs": apart, "wrong": wrong}


# -------------------------------------------------------------------------------------------------------------------------- claims


def is_even(layers: Sequence[int] | None) -> bool:
    return not layers or max(layers) - min(layers) <= 1


def gain(slow: Row, fast: Row) -> dict[str, Any]:
    """What `fast` saves of the step of `slow`: measured, and as it was predicted."""
    return {"from": slow, "to": fast, "measured": 1 - fast["measured_ms"] / slow["measured_ms"],
            "predicted": 1 - fast["predicted_ms"] / slow["predicted_ms"]}


def pairs_as_two_actions(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """PyTorch's DualPipeV with each pair as two actions, against as PyTorch has it."""
    found = []
    for row in rows:
        if row["schedule"] != "dualpipev" or row["runtime"] != "torch-multi" or row["pairs"] == "split":
            continue
        found += [gain(row, other) for other in rows if other["schedule"] == "dualpipev" and other["runtime"] == "torch-multi"
                  and other["pairs"] == "split" and other["queues"] == row["queues"]
                  and other["layers_per_stage"] == row["layers_per_stage"]]
    return found


def queue_a_peer(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A communicator for each neighbour, against one for all messages of a rank."""
    def rest(row: Row) -> tuple:
        return row["schedule"], row["runtime"], row["pairs"], row["layers_per_stage"]
    return [gain(row, other) for row in rows if row["queues"] != "per_peer" for other in rows
            if other["queues"] == "per_peer" and rest(row) == rest(other)]


def balanced(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Layers put where the time is, against an even split, of the same schedule under the same runtime."""
    def kind(row: Row) -> tuple:
        return row["schedule"], row["runtime"], row["pairs"], row["queues"]
    return [gain(even, other) for even in rows if is_even(even["layers_per_stage"]) for other in rows
            if kind(even) == kind(other) and not is_even(other["layers_per_stage"])]


def picked(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The run of the least predicted step, against 1F1B with an even split: what a framework does that is told nothing. `best`: the
    fastest measured."""
    default = [row for row in rows if row["schedule"] == "1f1b" and is_even(row["layers_per_stage"])]
    if not default or len(rows) < 2:
        return []
    best = min(rows, key=lambda row: row["measured_ms"])
    return [dict(gain(default[0], min(rows, key=lambda row: row["predicted_ms"])), best=best)]


def planned(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The schedule of a plan, against the one to which the plan says to roll back, and which of both was faster: "plan", "fallback", or "tie"."""
    found = []
    for row in rows:
        for other in rows:
            if row.get("fallback") and other is not row and other["schedule"] == row["fallback"] != row["schedule"]:
                apart = relative(row["measured_ms"], other["measured_ms"])
                found.append(dict(gain(other, row), faster="tie" if abs(apart) < APART else "plan" if apart < 0 else "fallback"))
    return found


def claims(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """{ claim: [gain, …] } over all runs of the same work."""
    found: dict[str, list[dict[str, Any]]] = {"planned": [], "pairs_as_two_actions": [], "queue_a_peer": [], "balanced": [], "picked": []}
    for same in groups(compared(rows)).values():
        found["planned"] += planned(same)
        found["pairs_as_two_actions"] += pairs_as_two_actions(same)
        found["queue_a_peer"] += queue_a_peer(same)
        found["balanced"] += balanced(same)
        found["picked"] += picked(same)
    return found

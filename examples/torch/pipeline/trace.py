# SPDX-License-Identifier: Apache-2.0
"""A measured step as a Chrome trace (the JSON object format of chrome://tracing, which Perfetto reads too), of the form in which `pipeplan simulate
--format trace` writes the predicted one, so that both can be laid side by side:

    a process a rank, thread 0 its actions
    X      an action, with its stage and microbatch       M  the names of processes and threads
    s, f   a send, from the action that makes what is sent to the one that waits for it
    C      how many chunks' activations the rank holds, from F to B, or to W
"""
from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class _Trace:
    def __init__(self, timelines: Sequence, slices: int, microbatches: int, first: float) -> None:
        self.slices, self.microbatches, self.first = slices, microbatches, first
        self.events: list[dict[str, Any]] = []
        self.rows = [[found for row in rank for found in _actions(row)] for rank in timelines]
        self.rank_of = {stage: rank for rank, rows in enumerate(self.rows) for _, stage, _, _, _ in rows}
        self.span = {(kind == "F", stage, microbatch): (self._microseconds(start), self._microseconds(end))
                     for rows in self.rows for kind, stage, microbatch, start, end in rows if kind != "W"}

    def rank(self, number: int) -> None:
        stages = sorted({stage for _, stage, _, _, _ in self.rows[number]})
        for name, args in (("process_name", {"name": f"rank {number}"}), ("process_labels", {"labels": f"stage {','.join(map(str, stages))}"}),
                           ("process_sort_index", {"sort_index": number}), ("thread_name", {"name": "compute"}),
                           ("thread_sort_index", {"sort_index": 0})):
            self.events.append({"ph": "M", "pid": number, "tid": 0, "name": name, "args": args})
        held = 0
        for kind, stage, microbatch, start, end in self.rows[number]:
            begin, finish = self._microseconds(start), self._microseconds(end)
            if kind == "F":
                held += 1
                self._held(number, held, begin)
            self.events.append({"ph": "X", "pid": number, "tid": 0, "cat": kind, "name": f"{kind}{microbatch}", "ts": begin,
                                "dur": round(finish - begin, 3), "args": {"stage": stage, "microbatch": microbatch}})
            if kind != "W":
                self._flows(number, kind, stage, microbatch)
            if kind in "BW":
                held -= 1
                self._held(number, held, finish)

    def _microseconds(self, ms: float) -> float:
        return round((ms - self.first) * 1000, 3)

    def _held(self, rank: int, chunks: int, at: float) -> None:
        self.events.append({"ph": "C", "pid": rank, "name": "live activations", "ts": at, "args": {"chunks": chunks}})

    def _flows(self, rank: int, kind: str, stage: int, microbatch: int) -> None:
        """What this action waits for, and what it sends on. An arrow begins before the end of the slice that makes it, and before the slice that waits;
        where clocks of two ranks differ by so much that it cannot, there is none."""
        backward = kind != "F"
        step = -1 if backward else 1
        for sender, receiver in ((stage - step, stage), (stage, stage + step)):
            begun, ended = self.span.get((not backward, sender, microbatch)), self.span.get((not backward, receiver, microbatch))
            if not begun or not ended or sender // self.slices != receiver // self.slices or self.rank_of[sender] == self.rank_of[receiver]:
                continue
            (made, finish), waits = begun, ended[0]
            if waits < made:
                continue
            starts = sender == stage
            at = min(max(made, round(finish - 0.001, 3)), waits) if starts else waits
            self.events.append({"ph": "s" if starts else "f", "pid": rank, "tid": 0, "cat": "send", "name": "gradient" if backward else "activation",
                                "id": 2 * (sender * self.microbatches + microbatch) + backward, "ts": at, **({} if starts else {"bp": "e"})})


def _actions(row: Sequence) -> list[tuple[str, int, int, float, float]]:
    """Of a row of a timeline: ["0F1", start, end] in ms; a pair that ran as one is cut in the middle, for nobody measured where its halves met."""
    found = re.findall(r"(\d+)([FBIW])(\d+)", row[0])
    each = (row[2] - row[1]) / max(1, len(found))
    return [(kind, int(stage), int(microbatch), row[1] + i * each, row[1] + (i + 1) * each) for i, (stage, kind, microbatch) in enumerate(found)]


def of_timelines(timelines: Sequence, title: str, slices: int, microbatches: int) -> dict[str, Any]:
    """timelines: by rank, [["0F0", start_ms, end_ms], …], from one 0. slices: stages of a model (half of all where it is bidirectional);
    microbatches: of a step, in both directions."""
    first = min((row[1] for rank in timelines for row in rank), default=0.0)
    trace = _Trace(timelines, slices, microbatches, first)
    for rank in range(len(timelines)):
        trace.rank(rank)
    return {"displayTimeUnit": "ms", "otherData": {"schedule": title}, "traceEvents": trace.events}


def write(path: str, timelines: Sequence, title: str, slices: int, microbatches: int) -> None:
    with open(path, "w") as file:
        json.dump(of_timelines(timelines, title, slices, microbatches), file)
        file.write("\n")

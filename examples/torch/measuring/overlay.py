# SPDX-License-Identifier: Apache-2.0
"""A measured step above the predicted one, rank by rank on one time axis, as an SVG that stands alone. Plain Python, no torch.

A timeline: by rank a list of (kind, stage, microbatch, start_ms, end_ms, half); half: "upper" or "lower" of what runs as one pair, or None.
"""
from __future__ import annotations

import re
from xml.sax.saxutils import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

LEFT, RIGHT, TOP, BOTTOM = 132, 24, 64, 56          # pixels around the rows
ROW, GAP, BETWEEN = 18, 3, 12                       # height of a row, between the two of a rank, between ranks
WIDTH = 1440                                        # of the plot
LETTER = 6.2

STYLE = """
text{font:10px ui-sans-serif,system-ui,Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.on{text-anchor:middle;fill:#111;pointer-events:none}.end{text-anchor:end}.mid{text-anchor:middle}
.page{fill:#fff}.idle{fill:#eceff2}.tick{stroke:#d0d7de}.box{stroke:#fff;stroke-width:.6}
.F{fill:#62a0ec}.f{fill:#abcff8}.B{fill:#ef9146}.b{fill:#f9c899}.I{fill:#55b87b}.i{fill:#a6ddb8}.W{fill:#b083db}.w{fill:#d8c1ee}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.idle{fill:#21262d}.tick{stroke:#3d444d}.box{stroke:#0d1117}}
"""
WORDS = {"F": "forward", "B": "backward", "I": "backward for input", "W": "backward for weights"}


def measured_timeline(rows: list) -> list[list[tuple]]:
    """Of a run's `timeline`, moved so that the first action starts at 0."""
    first = min((row[1] for rank in rows for row in rank), default=0)
    out: list[list[tuple]] = []
    for rank in rows:
        out.append([])
        for name, start, end in rank:
            match = re.fullmatch(r"(\d+)([FBIW])(\d+)", name)
            if match:
                out[-1].append((match[2], int(match[1]), int(match[3]), start - first, end - first, None))
    return out


def predicted_timeline(events: list[dict[str, Any]], ranks: int) -> list[list[tuple]]:
    """Of the events of a Chrome trace by pipeplan: thread 1 has the backwards of pairs, which span the same time as the forwards."""
    pairs = {(e["pid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X" and e["tid"] == 1}
    out: list[list[tuple]] = [[] for _ in range(ranks)]
    for e in events:
        if e["ph"] == "X":
            half = "lower" if e["tid"] == 1 else "upper" if (e["pid"], e["ts"], e["dur"]) in pairs else None
            out[e["pid"]].append((e["cat"], e["args"]["stage"], e["args"]["microbatch"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3, half))
    return out


def _row(actions: list[tuple], ranks: int, y: float, scale: float) -> str:
    parts = []
    for kind, stage, microbatch, start, end, half in actions:
        height = ROW / 2 if half else ROW
        top, x, width = y + (ROW / 2 if half == "lower" else 0), LEFT + start * scale, (end - start) * scale
        shade = kind if stage < ranks else kind.lower()
        parts.append(f'<rect class="{shade}{" box" if width >= 4 else ""}" x="{x:.2f}" y="{top:.1f}" width="{width:.2f}" height="{height:g}">'
                     f"<title>{kind}{microbatch}, stage {stage}: {start:.2f} to {end:.2f} ms</title></rect>")
        label = f"{kind}{microbatch}" if len(f"{kind}{microbatch}") * LETTER <= width - 2 else str(microbatch)
        if not half and len(label) * LETTER <= width - 2:
            parts.append(f'<text class="on" x="{x + width / 2:.2f}" y="{top + height - 5:.1f}">{label}</text>')
    return "".join(parts)


def _axis(longest: float, scale: float, bottom: float) -> str:
    step = next(s for power in range(-3, 12) for s in (10**power, 2 * 10**power, 5 * 10**power) if s * scale >= 72)
    parts, tick = [], 0
    while tick * step <= longest:
        x = LEFT + tick * step * scale
        parts.append(f'<line class="tick" x1="{x:.2f}" x2="{x:.2f}" y1="{TOP - 4}" y2="{bottom}"/>'
                     f'<text class="mid" x="{x:.2f}" y="{bottom + 14}">{tick * step:g} ms</text>')
        tick += 1
    return "".join(parts)


def _legend(actions: list[tuple], ranks: int, y: float) -> str:
    kinds, parts, x = {action[0] for action in actions}, [], float(LEFT)
    for kind in "FBIW":
        if kind in kinds:
            words = f"{kind} {WORDS[kind]}"
            parts.append(f'<rect class="{kind}" x="{x:.0f}" y="{y}" width="14" height="14"/><text x="{x + 20:.0f}" y="{y + 11}">{words}</text>')
            x += 40 + len(words) * LETTER
    notes = ["paler: later stages of a rank"] if any(action[1] >= ranks for action in actions) else []
    notes += ["halves: an F&amp;B pair, from the start of the one to the end of the other"] if any(action[5] for action in actions) else []
    return "".join(parts) + (f'<text x="{x:.0f}" y="{y + 11}">{"; ".join(notes)}</text>' if notes else "")


def svg(title: str, note: str, measured: Any, predicted: Any) -> str:
    """The text of the picture; measured and predicted have as many ranks."""
    ranks = len(predicted)
    actions = [action for side in (measured, predicted) for rank in side for action in rank]
    longest = max((action[4] for action in actions), default=0) or 1
    scale, bottom = WIDTH / longest, TOP + ranks * (2 * ROW + GAP + BETWEEN) - BETWEEN
    width, height = LEFT + WIDTH + RIGHT, bottom + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
             f'aria-labelledby="title desc">\n<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(note)}</desc>\n'
             f'<style>{STYLE}</style>\n<rect class="page" width="100%" height="100%"/>\n'
             f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text><text x="{LEFT}" y="44">{escape(note)}</text>\n',
             _axis(longest, scale, bottom), "\n"]
    for rank in range(ranks):
        y = TOP + rank * (2 * ROW + GAP + BETWEEN)
        for words, side, at in (("measured", measured, y), ("predicted", predicted, y + ROW + GAP)):
            parts.append(f'<text class="end" x="{LEFT - 8}" y="{at + 13}">rank {rank} {words}</text>'
                         f'<rect class="idle" x="{LEFT}" y="{at}" width="{WIDTH}" height="{ROW}"/>{_row(side[rank], ranks, at, scale)}\n')
    return "".join(parts) + _legend(actions, ranks, bottom + 30) + "</svg>\n"

# SPDX-License-Identifier: Apache-2.0
"""simulator.py: an independent simulator of schedule programs, as straightforward as it gets, for tests and for bench comparisons.

A program is text: a row a rank, actions separated by commas, "3F0", "(0F3;3B1)OVERLAP_F_B". Stages s and s + 1 of a chain depend on each other; a
program may have several chains of `stages` stages, numbered one after the other. A rank runs its row in order; an action starts when the rank is free
and what it needs is there; a message between ranks takes `p2p`. With `host` a rank has a host that hands over its actions in order, one when it is
done with the one before. No action begins before it is being handed over; none ends sooner than the card would with nothing else to do, which is
`beyond` more than the larger of what card and host take. Where a kind of action is in `waits`, its host comes back from it when the card has left of
it what it would have had left so, but not sooner than it was handed over.

    python3 simulator.py CASES.json     list of {text, stages, F, I, W, B, FB: [seconds of each stage], p2p, host, beyond: {F, I, W, B}, waits: [kinds]}
                                        → list of {makespan, span: [of each rank], busy: [of each rank]}
"""
import json
import re
import sys

ACTION = re.compile(r"(\d+)([FBIW])(\d+)")


def parse(text):
    """Rows of cells; a cell is a list of one action, or of two that overlap: (stage, letter, microbatch)."""
    return [[[(int(stage), letter, int(microbatch)) for stage, letter, microbatch in ACTION.findall(cell)] for cell in row.split(",")]
            for row in text.splitlines()]


def simulate(rows, stages, times, p2p=0, host=None, beyond=None, waits=()):
    """times: {letter or "FB": [seconds of each stage]}, a pair's by its forward's stage; host, beyond: of letters, a pair has both halves'.
    Returns a list of [start, end, busy], one a rank."""
    handed = [0] * len(rows)    # when the host of a rank is done
    rank_of = {stage: rank for rank, row in enumerate(rows) for cell in row for stage, _, _ in cell}
    end_of = {}  # (stage, "F" or "B", microbatch) → when its result exists

    def arrival(stage, letter, microbatch, rank):
        """When what an action needs is on its rank; None: not yet."""
        if letter == "W" or letter == "F" and stage % stages == 0:
            return 0
        if letter == "F":
            source = stage - 1, "F", microbatch
        elif stage % stages == stages - 1:
            source = stage, "F", microbatch
        else:
            source = stage + 1, "B", microbatch
        if source not in end_of:
            return None
        return end_of[source] + (p2p if rank_of[source[0]] != rank else 0)

    state = [[None, 0, 0] for _ in rows]
    position = [0] * len(rows)
    progress = True
    while progress:
        progress = False
        for rank, row in enumerate(rows):
            while position[rank] < len(row):
                cell = row[position[rank]]
                needs = [arrival(*action, rank) for action in cell]
                if None in needs:
                    break
                first, end, busy = state[rank]
                start = max(end, *needs)
                seconds = times["FB" if len(cell) == 2 else cell[0][1]][cell[0][0]]
                finish = start + seconds
                if host:
                    mine = sum(host[letter][stage] for stage, letter, _ in cell)
                    alone = max(mine, seconds) + sum(beyond[letter][stage] for stage, letter, _ in cell)
                    start = max(start, handed[rank])
                    finish = max(start + seconds, handed[rank] + alone)
                    handed[rank] += mine
                    if any(letter in waits for _, letter, _ in cell):
                        handed[rank] = max(handed[rank], finish - (alone - mine))
                state[rank] = [start if first is None else first, finish, busy + finish - start]
                for stage, letter, microbatch in cell:
                    if letter != "W":
                        end_of[stage, "F" if letter == "F" else "B", microbatch] = finish
                position[rank] += 1
                progress = True
    assert all(position[rank] == len(row) for rank, row in enumerate(rows)), "deadlock"
    return state


def main():
    answers = []
    for case in json.load(open(sys.argv[1], encoding="utf-8")):
        ranks = simulate(parse(case["text"]), case["stages"], case, case["p2p"], case.get("host"), case.get("beyond"), case.get("waits", ()))
        answers.append({"makespan": max(end for _, end, _ in ranks), "span": [end - start for start, end, _ in ranks], "busy": [busy for _, _, busy in ranks]})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()

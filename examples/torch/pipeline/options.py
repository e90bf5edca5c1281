# SPDX-License-Identifier: Apache-2.0
"""Types of command line options, for argparse: what cannot be read is said with what was expected."""
from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from typing import TYPE_CHECKING

from . import model

if TYPE_CHECKING:
    from typing import Any

# Names of sizes that were others than a spec's before; they go in pipeplan 0.2.0.
RENAMED = {"sequence": "sequence_length", "micro_batch": "micro_batch_size", "top_k": "experts_per_token"}


def warn(old: str | None, new: str) -> None:
    print(f"warning: {old} is called {new} now; the old name goes in pipeplan 0.2.0", file=sys.stderr)


class Renamed(argparse.Action):
    """An option that has another name now, that of `dest`."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        warn(option_string, "--" + self.dest)
        setattr(namespace, self.dest, values)


def numbers(text: str) -> list[int]:
    """8,16,32 → [8, 16, 32]"""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}": expected whole numbers with commas between them') from None


def sizes(text: str) -> dict[str, int]:
    """hidden=2048,heads=16 → {"hidden": 2048, "heads": 16}: fields of model.Shape."""
    known, out = [field.name for field in dataclasses.fields(model.Shape)], {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name in RENAMED:
            warn(name, RENAMED[name])
            name = RENAMED[name]
        if name not in known or not value.isdecimal():
            raise argparse.ArgumentTypeError(f'"{part}": expected NAME=N, a whole number, NAME one of {", ".join(known)}')
        out[name] = int(value)
    return out


def named_numbers(text: str) -> dict[str, int]:
    """hidden=64,heads=4 → {"hidden": 64, "heads": 4}, whatever the names are."""
    out = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if not name.isidentifier() or not value.isdecimal():
            raise argparse.ArgumentTypeError(f'"{part}": expected NAME=N, a whole number')
        out[name] = int(value)
    return out


LIMITS = {"load": 600.0, "compile": 300.0, "check": 600.0}     # seconds


def limits(text: str) -> dict[str, float]:
    """load=1200,check=60 → these, and the others as they are."""
    out = dict(LIMITS)
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in LIMITS:
            raise argparse.ArgumentTypeError(f'"{part}": expected NAME=SECONDS, NAME one of {", ".join(LIMITS)}')
        out[name] = seconds(value)
    return out


def seconds(text: str) -> float:
    return _number(text, "seconds, 0 for no limit", 0)


def positive(text: str) -> float:
    return _number(text, "a number above 0", 1e-300)


def not_negative(text: str) -> float:
    return _number(text, "0 or more", 0)


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}": expected a whole number of 1 or more')
    return int(text)


def whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}": expected a whole number, 0 or more')
    return int(text)


def counts(text: str) -> list[int]:
    """8,16,32 → [8, 16, 32], of which none is 0"""
    return [count(part) for part in text.split(",")]


def _number(text: str, expected: str, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}": expected {expected}')
    return value


def config(path: str) -> dict[str, int]:
    """Sizes of a Hugging Face config.json."""
    try:
        return model.read_config(path)
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(error) from None

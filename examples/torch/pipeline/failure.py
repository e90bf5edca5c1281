# SPDX-License-Identifier: Apache-2.0
"""What went wrong, in one line: what, and in which line of whose code. The whole traceback is for who asks for it."""
from __future__ import annotations

import os
import traceback

import torch

from .program import Mismatch

GONE = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "remote process exited", "Socket Timeout", "Connection refused")


def _first(error: BaseException) -> BaseException:
    """What PyTorch's runtime wraps into errors of its own, for each layer one."""
    seen = set()
    while id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error
    return error


def _place(error: BaseException) -> str:
    """The innermost line that is not a library's: "my_model.py:12", or ""."""
    if isinstance(error, SyntaxError):
        return f"{os.path.basename(error.filename or '')}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((os.path.dirname(torch.__file__), "<")):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return ""


def _text(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else ""


def in_words(error: BaseException) -> str:
    """One line."""
    if isinstance(error, Mismatch):
        return str(error)
    error = _first(error)
    text, place = _text(error), _place(error)
    if isinstance(error, torch.OutOfMemoryError):
        # "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of … of which … is free. …": what follows is general advice
        return ". ".join(text.split(". ")[:3]) + (f" [{place}]" if place else "")
    if any(gone in str(error) for gone in GONE):
        return f"another process has ended: {text}"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}{': ' if text else ''}{text}" + (f" [{place}]" if place else "")

# SPDX-License-Identifier: Apache-2.0
"""Makes megatron-core importable where scripts/megatron unpacked it, and, in tests, lets it run on processors, where it expects GPUs.

    load(device)          before the first `import megatron`

On a GPU with Python 3.12 and triton nothing is changed: what is below is for Python 3.11, for a PyTorch without triton, and for processors.
"""
from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import pathlib
import pickle
import sys
import types
import typing
from typing import TYPE_CHECKING

import torch
from torch.distributed import distributed_c10d
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "megatron"


class Missing(Exception):
    """There is no megatron-core."""


def load(device: torch.device) -> None:
    """Once or more often."""
    _find()
    _python_3_11()
    if device.type == "cpu":
        _uncompiled()
    if importlib.util.find_spec("triton") is None:
        _without_triton()
    if device.type == "cpu" and torch.cuda.current_device is not _processor:
        _on_processors()


def version() -> str:
    from megatron.core import package_info
    return ".".join(str(part) for part in (package_info.MAJOR, package_info.MINOR, package_info.PATCH))


def _find() -> None:
    """What is installed comes first: NumPy in that folder is of one version of Python."""
    if importlib.util.find_spec("megatron") is None:
        folder = os.environ.get("MEGATRON_CORE", str(FOLDER))
        if not os.path.isdir(os.path.join(folder, "megatron", "core")):
            raise Missing(f"{folder} has no megatron/core: expected megatron-core installed, or unpacked by scripts/megatron, or its folder in "
                          "$MEGATRON_CORE")
        sys.path.append(folder)


def _python_3_11() -> None:
    """megatron-core takes one name of Python 3.12's typing, a decorator that does nothing."""
    if not hasattr(typing, "override"):
        import typing_extensions
        typing.override = typing_extensions.override  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------------------- without triton


class _Anything:
    """What the bodies of kernels that never run are decorated with."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *words: Any, **names: Any) -> Any:
        return words[0] if len(words) == 1 and callable(words[0]) and not names else _Anything()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def __mul__(self, _: Any) -> _Anything:
        return self

    def __or__(self, _: Any) -> _Anything:
        return self


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


def _without_triton() -> None:
    """Files with kernels are imported although none of their kernels is used. PyTorch asks first whether there is a triton, and is told the truth."""
    from torch.utils._triton import has_triton_package
    has_triton_package()
    for name in ("triton", "triton.language"):
        module = _Module(name)
        module.__spec__, module.__path__, module.__version__ = importlib.machinery.ModuleSpec(name, None), [], "0"  # type: ignore[attr-defined]
        sys.modules[name] = module
    sys.modules["triton"].language = sys.modules["triton.language"]  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------------------- on processors


class _Cpu(TorchFunctionMode):
    """What is made on "cuda" is made on the processor; a tensor says that it is one of a GPU where the optimizer asks for its type."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device")):
            kwargs["device"] = "cpu"
        out = function(*args, **kwargs)
        return out.replace("torch.", "torch.cuda.") if function is torch.Tensor.type and isinstance(out, str) else out


def _processor() -> torch.device:
    return torch.device("cpu")


class _Stream:
    """There is one queue, which is always empty."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def wait_stream(self, _: Any) -> None:
        pass

    def record_event(self) -> _Stream:
        return self

    def synchronize(self) -> None:
        pass


def _uncompiled() -> None:
    """What Megatron fuses would be compiled for most of a minute."""
    torch.compile = lambda function=None, **_: function or (lambda wrapped: wrapped)  # type: ignore[assignment]


def _on_processors() -> None:
    torch.cuda.current_device = _processor                   # type: ignore[assignment]  it is asked for as a device
    torch.cuda.synchronize = lambda *_: None                 # after each message, and at the end of a step
    torch.cuda.current_stream = lambda *_: _Stream()         # type: ignore[assignment, return-value]  of gradients' reduction
    torch.cuda.Stream = _Stream                              # type: ignore[misc, assignment]  of the rows' counts of experts
    torch.cuda.stream = lambda _: contextlib.nullcontext()   # type: ignore[assignment, return-value]
    torch.Tensor.record_stream = lambda *_: None             # type: ignore[method-assign, assignment]
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.get_rng_state = lambda *_: torch.get_rng_state()            # dropout is 0: only that there is a state counts
    torch.cuda.set_rng_state = lambda state, *_: torch.set_rng_state(state)
    torch.Tensor.cuda = lambda self, *_, **__: self          # type: ignore[method-assign, assignment]
    # the PyTorch of scripts/torch has no NumPy, through which it would read what other processes say
    distributed_c10d._tensor_to_object = lambda tensor, size, _: pickle.loads(bytes(tensor.tolist())[:size])  # type: ignore[assignment]
    _Cpu().__enter__()
    from megatron.core.transformer.moe import token_dispatcher
    # rows to and from each expert, which it reads off a GPU as numbers, and leaves on a processor as a tensor
    token_dispatcher.maybe_move_tensor_to_cpu = (
        lambda rows, as_numpy=False, **_: rows.tolist() if as_numpy and isinstance(rows, torch.Tensor) else rows)
    import megatron.core.tensor_parallel.random as random
    random._get_cuda_rng_state = lambda *_, **__: torch.get_rng_state()
    random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)

# SPDX-License-Identifier: Apache-2.0
"""SM clock and power of this process's card, sampled while it works: through NVML, or nvidia-smi where that cannot be loaded; nothing
without a GPU.

    meter = Meter(device)
    meter.begin(); …; meter.pause(); …; meter.resume(); …
    meter.end()    # → {"clock_mhz": median, "power_w": median} of the samples between, pauses left out; {} without any
"""
from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import threading

import torch

_SM_CLOCK = 1                # nvmlClockType_t, nvml.h
_INSTANT_POWER = 186         # NVML_FI_DEV_POWER_INSTANT: nvmlDeviceGetPowerUsage averages over a second on newer cards
_SCOPE_GPU = 0


class _Field(ctypes.Structure):
    """nvmlFieldValue_t; of the union `value` only unsigned int is read."""
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong), ("latency", ctypes.c_longlong),
                ("type", ctypes.c_uint), ("status", ctypes.c_uint), ("value", ctypes.c_uint64)]


class _Nvml:
    def __init__(self, uuid: str | None, index: int) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.library.nvmlInit_v2())
        self.handle = ctypes.c_void_p()
        if uuid is None or self.library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.handle)) != 0:
            self.check(self.library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(self.handle)))
        self.read()

    @staticmethod
    def check(status: int) -> None:
        if status != 0:
            raise OSError(f"NVML status {status}")

    def read(self) -> tuple[float, float]:
        """→ MHz, W"""
        clock, power = ctypes.c_uint(), ctypes.c_uint()
        self.check(self.library.nvmlDeviceGetClockInfo(self.handle, _SM_CLOCK, ctypes.byref(clock)))
        field = _Field(id=_INSTANT_POWER, scope=_SCOPE_GPU)
        if self.library.nvmlDeviceGetFieldValues(self.handle, 1, ctypes.byref(field)) == 0 and field.status == 0:
            return clock.value, (field.value & 0xFFFFFFFF) / 1000
        self.check(self.library.nvmlDeviceGetPowerUsage(self.handle, ctypes.byref(power)))
        return clock.value, power.value / 1000


class _Smi:
    """One nvidia-smi that prints a line every 100 ms, and a thread that reads it."""

    def __init__(self, uuid: str | None, index: int) -> None:
        self.last: tuple[float, ...] | None = None
        self.process = subprocess.Popen(["nvidia-smi", "-i", uuid or str(index), "--query-gpu=clocks.sm,power.draw",
                                         "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for line in self.process.stdout or ():
            try:
                self.last = tuple(float(cell) for cell in line.split(","))
            except ValueError:      # [N/A]
                continue

    def read(self) -> tuple[float, ...] | None:
        return self.last


def _source(device: torch.device) -> _Nvml | _Smi | None:
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    uuid = uuid and (str(uuid) if str(uuid).startswith("GPU-") else f"GPU-{uuid}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    index = device.index or 0
    if index < len(visible) and visible[index].strip().isdigit():
        index = int(visible[index])
    for kind in (_Nvml, _Smi):
        try:
            return kind(uuid, index)
        except (OSError, AttributeError, subprocess.SubprocessError):
            continue
    return None


class Meter:
    def __init__(self, device: torch.device, every: float = 0.02) -> None:
        """every: seconds between samples."""
        self.every = every
        self.samples: list[tuple[float, ...]] = []
        self.working, self.closed = threading.Event(), False
        self.source = _source(device) if device.type == "cuda" else None
        if self.source:
            threading.Thread(target=self._run, daemon=True).start()

    def begin(self) -> None:
        self.samples = []
        self.working.set()

    def pause(self) -> None:
        self.working.clear()

    def resume(self) -> None:
        self.working.set()

    def end(self) -> dict[str, float]:
        self.working.clear()
        samples, self.samples = self.samples, []
        if not samples:
            return {}
        return {"clock_mhz": statistics.median(s[0] for s in samples), "power_w": round(statistics.median(s[1] for s in samples), 1)}

    def close(self) -> None:
        self.closed = True
        self.working.set()
        if isinstance(self.source, _Smi):
            self.source.process.terminate()

    def _run(self) -> None:
        tick = threading.Event()
        while True:
            self.working.wait()
            if self.closed:
                return
            try:
                sample = self.source.read() if self.source else None
            except OSError:          # lost for a moment: a sample less
                sample = None
            if sample and self.working.is_set():
                self.samples.append(sample)
            tick.wait(self.every)

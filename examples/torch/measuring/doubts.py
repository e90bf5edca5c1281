# SPDX-License-Identifier: Apache-2.0
"""What makes timings on this process's card doubtful, or leaves something out of them, in words."""
from __future__ import annotations

import functools

import torch

# Context, cuBLAS and NCCL's first communicators of a process of its own, beside what PyTorch reserved: 1 to 4 GiB where it was measured. Each
# further communicator takes 0.4 to 0.5, so that only the first look of a process tells its own from others'.
OWN = 5 * 2 ** 30


@functools.cache
def _beside(device: torch.device) -> int:
    """Bytes on the card that PyTorch did not reserve, at this process's first look."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free - torch.cuda.memory_reserved(device)


def doubts(device: torch.device, metered: bool) -> list[str]:
    """metered: can clocks and power be read?"""
    if device.type != "cuda":
        return []
    found = []
    name = torch.cuda.get_device_name(device)
    if "MIG" in name:
        found.append(f"{name} is a slice of a card: an accelerator of the catalogue is a whole one, so give a spec its memory (memory_per_gpu)")
    others = _beside(device)
    if others > OWN:
        found.append(f"{others / 2 ** 30:.0f} GiB of {name} are taken by others: actions are timed beside their work")
    if not metered:
        found.append("neither NVML nor nvidia-smi can be used: clocks and power are left out, and why a card slows down cannot be seen")
    return found

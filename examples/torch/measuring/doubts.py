# SPDX-License-Identifier: Apache-2.0
"""What makes timings on this process's card doubtful, or leaves something out of them, in words."""
from __future__ import annotations

import torch

# Context, cuBLAS and NCCL of a process of its own: 1 to 4 GiB beside what PyTorch reserved, with any layout that was measured.
OWN = 5 * 2 ** 30


def doubts(device: torch.device, metered: bool) -> list[str]:
    """metered: can clocks and power be read?"""
    if device.type != "cuda":
        return []
    found = []
    name = torch.cuda.get_device_name(device)
    if "MIG" in name:
        found.append(f"{name} is a slice of a card: an accelerator of the catalogue is a whole one, so give a spec its memory (memory_per_gpu)")
    free, total = torch.cuda.mem_get_info(device)
    others = total - free - torch.cuda.memory_reserved(device)
    if others > OWN:
        found.append(f"{others / 2 ** 30:.0f} GiB of {name} are taken by others: actions are timed beside their work")
    if not metered:
        found.append("neither NVML nor nvidia-smi can be used: clocks and power are left out, and why a card slows down cannot be seen")
    return found

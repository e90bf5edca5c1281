# SPDX-License-Identifier: Apache-2.0
"""Stages whose products are taken in another type than their weights have (torch.autocast), and what they hand on."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from typing import Any
    import torch.nn as nn


def under(module: nn.Module, dtype: torch.dtype | None, device: torch.device, message: torch.dtype | None) -> None:
    """From now on the module's forwards run under autocast to dtype (None: not), and give outputs of type `message` (None: as they come)."""
    forward = module.forward

    def run(*args: Any) -> torch.Tensor:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            output = forward(*args)
        return output if message is None else output.to(message)

    module.forward = run

# SPDX-License-Identifier: Apache-2.0
"""What torch.compile makes of Megatron's fused operations, made before the first step. After shim.load alone.

Megatron has torch.compile make kernels of its activations. Experts that run one by one get another number of rows each time, and torch.compile
begins anew for some: for the second number that it sees, for none, for one, and where their weights lie behind those of other experts. On an
H200 a step that met a new one took 2 s longer, on all ranks, for they wait for each other; 6 of the first 30 steps did. Megatron-LM's training
does the same for dense layers before it begins (megatron/training/initialize.py: _warmup_jit_function)."""
from __future__ import annotations

import torch
from megatron.core.fusions.fused_bias_swiglu import weighted_bias_swiglu_impl
from megatron.core.transformer import TransformerConfig

ROWS = (7, 9, 0, 1)     # the second makes torch.compile take any number but 0 and 1
BEHIND = (0, 5)          # rows of the experts before this one; 1 is left out: torch.compile keeps 8 versions of a function, and gives up


def experts(config: TransformerConfig, dtype: torch.dtype, device: torch.device) -> None:
    """Forward and backward of their activation, for each kind of rows. Does nothing where experts run as one, or have another activation."""
    if not config.num_moe_experts or config.moe_grouped_gemm or not config.gated_linear_unit or not config.bias_activation_fusion:
        return
    width = 2 * config.moe_ffn_hidden_size // config.expert_tensor_parallel_size
    for rows in ROWS:
        for behind in BEHIND:
            given = torch.zeros(rows, width, dtype=dtype, device=device, requires_grad=True)
            weights = torch.zeros(behind + rows, dtype=dtype, device=device, requires_grad=True)[behind:].unsqueeze(-1)
            out = weighted_bias_swiglu_impl(given, None, weights)
            out.backward(torch.zeros_like(out))

# SPDX-License-Identifier: Apache-2.0
"""compiled_test.py: after examples/megatron/compiled.py torch.compile makes nothing new for experts with other numbers of rows.

What is made is counted by torch.compile itself, with a backend that compiles nothing: which inputs it takes for new ones does not depend on it.
Wants PyTorch 2.9 or newer, which run.sh finds, and build/megatron: scripts/megatron.
"""
import functools
import os
import random
import sys
import types
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in ("torch", "megatron"):
    sys.path.insert(0, os.path.join(SOURCE, "examples", folder))

import torch
from torch._dynamo.utils import counters

torch.compile = functools.partial(torch.compile, backend="eager")
torch.compile(lambda x: x + 1)(torch.zeros(2))     # it looks for triton before shim has one stand in for it

import shim

CPU = torch.device("cpu")
CONFIG = {"num_moe_experts": 4, "moe_grouped_gemm": False, "gated_linear_unit": True, "bias_activation_fusion": True, "moe_ffn_hidden_size": 16,
          "expert_tensor_parallel_size": 1}


def expert(rows, behind):
    """Forward and backward of an expert's activation, as Megatron calls it: weights are a part of those of all experts."""
    from megatron.core.fusions.fused_bias_swiglu import weighted_bias_swiglu_impl
    given = torch.randn(rows, 32, dtype=torch.bfloat16, requires_grad=True)
    weights = torch.split(torch.randn(behind + rows, dtype=torch.bfloat16, requires_grad=True), [behind, rows])[1]
    out = weighted_bias_swiglu_impl(given, None, weights.unsqueeze(-1))
    out.backward(torch.ones_like(out))


class Compiled(unittest.TestCase):
    def test_no_number_of_rows_is_new_afterwards(self):
        import compiled
        compiled.experts(types.SimpleNamespace(**CONFIG), torch.bfloat16, CPU)
        before, draw = counters["frames"]["total"], random.Random(1)
        self.assertGreater(before, 1, "torch.compile was asked")
        for rows, behind in [(0, 0), (1, 0), (0, 5), (1, 5), *((draw.randrange(2, 5000), draw.choice((0, draw.randrange(2, 900)))) for _ in range(20))]:
            expert(rows, behind)
            self.assertEqual(before, counters["frames"]["total"], f"{rows} rows behind {behind}")

    def test_nothing_is_compiled_where_experts_are_one_product_or_there_are_none(self):
        import compiled
        before = counters["frames"]["total"]
        for change in ({"moe_grouped_gemm": True}, {"num_moe_experts": None}, {"gated_linear_unit": False}):
            compiled.experts(types.SimpleNamespace(**{**CONFIG, **change}), torch.bfloat16, CPU)
        self.assertEqual(before, counters["frames"]["total"])


if __name__ == "__main__":
    if not os.path.isdir(os.path.join(SOURCE, "build/megatron/megatron")):
        print("skipped: no megatron-core in build/megatron; scripts/megatron installs it")
        sys.exit(77)
    shim._uncompiled = lambda: None      # else Megatron's operations are what they are on a processor: not compiled
    shim.load(CPU)
    unittest.main()

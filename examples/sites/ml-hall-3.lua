-- ml-hall-3.lua: a cluster that runs Megatron-LM and nothing else: no Zero Bubble, no DualPipe; TP stays inside the node.

site "ml-hall-3"

set    { schedules = { "interleaved_1f1b", "1f1b" } }
reject { id = "tensor_parallel_inside_node", tensor_parallel = over "gpus_per_node",
         message = "TP {tensor_parallel} leaves the NVLink domain of {gpus_per_node}" }

-- SPDX-License-Identifier: Apache-2.0

-- SPDX-License-Identifier: Apache-2.0
-- overheads.lua: what a process takes of a GPU's memory beside tensors. Measure a process of your own (nvidia-smi less
-- torch.cuda.memory_reserved) and give cluster.overhead. What the allocator reserves beyond what is allocated (4 to 8 %; 0.4 % with
-- expandable_segments, in the same runs) is not among them: that is the policy's memory_headroom.

local lookup = require "pipeplan.catalog.lookup"

local MIB, GIB = 2 ^ 20, 2 ^ 30

local entries = {
  { name = "context", bytes = 612 * MIB, what = "CUDA or HIP context and loaded kernels",
    source = "measured here: tests/data/gpu/README.md, a process of PyTorch 2.11 on an H200; https://github.com/mlc-ai/pith-train/pull/18: 0.52 GiB on H100" },
  { name = "libraries", bytes = 160 * MIB, what = "workspaces of cuBLAS and its like", source = "measured here: tests/data/gpu/README.md, the same process" },
  { name = "first communicator", bytes = 560 * MIB, what = "NCCL or RCCL, once it is used",
    source = "measured here: tests/data/gpu/README.md, the same process" },
  { name = "communicator", each = true, bytes = 390 * MIB, what = "each further process group that a GPU communicates in",
    source = "measured here: tests/data/gpu/README.md, the same process; https://github.com/ai-dynamo/aiconfigurator: 342-392 MiB; https://github.com/mlc-ai/pith-train/pull/18: 0.39 GiB" },
  { name = "experts", each = true, bytes = 1.5 * GIB, what = "with experts: buffers of the all-to-all's kernel and of routing",
    source = "assumed: https://github.com/mlc-ai/pith-train/pull/18 saw 2.97 GiB at the first forward of a mixture of experts, libraries and communicators among them" },
}

local overheads = lookup { entries = entries }

-- Of every process, whatever it does.
overheads.bytes = 0
for _, entry in ipairs(entries) do
  if not entry.each then overheads.bytes = overheads.bytes + entry.bytes end
end

return overheads

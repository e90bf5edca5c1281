-- SPDX-License-Identifier: Apache-2.0
-- overheads.lua: what a process takes of a GPU's memory beside tensors. Measure a process of your own (nvidia-smi less
-- torch.cuda.memory_reserved) and give cluster.overhead. What the allocator reserves beyond what is allocated (4 to 8 %; 0.4 % with
-- expandable_segments, in the same runs) is not among them: that is the policy's memory_headroom.

local lookup = require "pipeplan.catalog.lookup"

local MIB, GIB = 2 ^ 20, 2 ^ 30

local groups = "measured here: tests/data/gpu/megatron_groups_4xH200.json"

-- each: counted by layout, or not of every process. one: in a group of one rank.
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
  -- of frameworks whose groups were measured, in place of the last three
  { name = "Megatron, first communicator", each = true, bytes = 356 * MIB, one = 170 * MIB, what = "Megatron: NCCL, beside its first communicator",
    source = groups },
  { name = "Megatron, communicator", each = true, bytes = 484 * MIB, one = 388 * MIB, what = "Megatron: each process group that collectives run in",
    source = groups },
  { name = "Megatron, messages", each = true, bytes = 256 * MIB, what = "Megatron: each that messages or an all-to-all run in", source = groups },
  { name = "Megatron, peer", each = true, bytes = 384 * MIB,
    what = "Megatron: each rank of the node that they are exchanged with, 32 channels of 10 MiB to receive and 2 to send",
    source = groups .. "; https://github.com/NVIDIA/nccl/issues/1685: 3.28 GB at an all-to-all of 8 H100, in buffers of these sizes" },
}

local overheads = lookup { entries = entries }

-- Of every process, whatever it does.
overheads.bytes = 0
for _, entry in ipairs(entries) do
  if not entry.each then overheads.bytes = overheads.bytes + entry.bytes end
end

local function of(name) return overheads.find(name) end

-- Bytes of a process of so many, communicators left out; groups: a framework's (frameworks.lua). The only process of a job whose groups of one rank
-- have none is taken to have one all the same.
function overheads.process(groups_of, gpus, experts)
  if groups_of.measured then
    local first = of "Megatron, first communicator"
    return of("context").bytes + of("libraries").bytes + (gpus > 1 and first.bytes or first.one)
  end
  return overheads.bytes - (gpus > 1 and of("communicator").bytes or 0) + (experts and of("experts").bytes or 0)
end

-- What engine.search takes as `communicators`, on nodes of so many GPUs.
function overheads.communicators(groups_of, gpus_per_node)
  local each = of("communicator").bytes
  local out = { several = each, messages = each }
  if groups_of.measured then
    local communicator = of "Megatron, communicator"
    out = { several = communicator.bytes, one = communicator.one, messages = of("Megatron, messages").bytes, peer = of("Megatron, peer").bytes,
            node = gpus_per_node }
  end
  for _, group in ipairs(groups_of) do out[group] = true end
  return out
end

return overheads

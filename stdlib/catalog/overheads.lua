-- overheads.lua: what a process takes of a GPU's memory beside tensors. Stated assumptions: measure a process of your own (nvidia-smi less
-- torch.cuda.memory_reserved) and give cluster.overhead. Fragmentation is not among them: that is the policy's memory_headroom.

local lookup = require "pipeplan.catalog.lookup"

local GIB = 2 ^ 30

local entries = {
  { name = "context", bytes = 0.5 * GIB, what = "CUDA or HIP context and loaded kernels",
    source = "https://github.com/mlc-ai/pith-train/pull/18: 0.52 GiB on H100" },
  { name = "workspaces", bytes = 3.0 * GIB, what = "library workspaces and what the first step allocates outside the model",
    source = "https://github.com/ai-dynamo/aiconfigurator reserves 3.5 GiB with the context; https://github.com/mlc-ai/pith-train/pull/18: 2.97 GiB at the first forward" },
  { name = "communicators", bytes = 0.375 * GIB, what = "NCCL or RCCL buffers of the process groups",
    source = "https://github.com/ai-dynamo/aiconfigurator: 342-392 MiB; https://github.com/mlc-ai/pith-train/pull/18: 0.39 GiB for the world group, 1 GiB more for a mesh of groups" },
}

local overheads = lookup { entries = entries }

-- All together.
overheads.bytes = 0
for _, entry in ipairs(entries) do overheads.bytes = overheads.bytes + entry.bytes end

return overheads

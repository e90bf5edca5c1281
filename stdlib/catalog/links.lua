-- SPDX-License-Identifier: Apache-2.0
-- links.lua: what links reach: the share of their nominal speed that large transfers get, and seconds before the first byte.
-- Planners disagree by a factor of two (Calculon 0.65 NVLink and 0.9 InfiniBand; Primus 0.91 for all; SimuMax's template 0.5; latencies
-- 0.45 to 30 us), so a measurement of the cluster itself (nccl-tests) is always the better source. Each figure below says which one it is.
--
-- kind        "scale_up" joins GPUs inside a domain, "scale_out" domains: the names of the field `fabric`
-- efficiency  of the nominal speed, one direction
-- latency     seconds of one step of a collective, or of one message
-- ring_latency  seconds of a step of a ring that leaves the scale-up domain, for large messages; nil: as latency. NVIDIA/nccl @5067397
--             src/graph/tuning.cc, hwLatencies of NCCL_ALGO_RING with the simple protocol: 3.4 us NVLink, 5.7 PCIe, 14 network; processors may
--             need longer for a step (hosts.lua)
-- lane        bytes per second of one of the links that nvidia-smi counts (NV#), one direction, by accelerator family
-- per_gpu     bytes per second of one GPU, one direction, by accelerator family

local lookup = require "pipeplan.catalog.lookup"

local entries = {
  { name = "nvlink", kind = "scale_up", efficiency = 0.80, latency = 2e-6, ring_latency = 3.4e-6,
    lane = { volta = 25e9, ampere = 25e9, hopper = 25e9, blackwell = 50e9, gb200 = 50e9, gb300 = 50e9 },
    source = "https://www.nvidia.com/en-us/data-center/nvlink/: V100 6 links and 300 GB/s both ways, A100 12 and 600, H100 18 and 900, B200 18 and 1,800; all-to-all kernels reach 320 of 450 GB/s on H200 (https://github.com/uccl-project/uccl/blob/da914a2/ep/README.md) and 600-740 of 900 on B200 (https://github.com/deepseek-ai/DeepEP); our own all-reduce over 4 × H200 reaches 0.8; latency: a ring step of NCCL inside a node" },
  { name = "nvlink_h800", kind = "scale_up", efficiency = 0.95, latency = 2e-6, ring_latency = 3.4e-6, lane = { hopper = 20e9 },
    source = "https://github.com/deepseek-ai/DeepEP/blob/dd758ca/docs/legacy.md: 153-158 GB/s of the 160 that the DeepSeek-V3 report (https://arxiv.org/abs/2412.19437) calls usable" },
  { name = "xgmi", kind = "scale_up", efficiency = 0.70, latency = 3e-6,
    source = "https://github.com/uccl-project/uccl/blob/da914a2/ep/README.md and https://github.com/ROCm/mori: MI300X EP8 260-330 GB/s of 448; MI355X 299-420 of 535" },
  { name = "hccs", kind = "scale_up", efficiency = 0.70, latency = 5e-6,
    source = "https://github.com/Ascend/msmodeling/blob/84fec85/tensor_cast/device.py: 0.7 of the network" },
  { name = "ici", kind = "scale_up", efficiency = 0.85, latency = 1e-6,
    source = "https://github.com/jax-ml/scaling-book, tpus.md: about 1 us a hop; efficiency assumed as NVLink's upper end" },
  { name = "pcie", kind = "scale_up", efficiency = 0.80, latency = 5e-6, ring_latency = 5.7e-6,
    per_gpu = { volta = 16e9, ampere = 32e9, ada = 32e9, hopper = 64e9, blackwell = 64e9, blackwell_rtx = 64e9 },
    source = "16 lanes of PCIe 3, 4 and 5; https://github.com/deepseek-ai/DeepEP/blob/94a9f8f/docs/README_PCIe.md: EP8 53-54 GB/s through PCIe 5 x16 of 64" },
  { name = "infiniband", kind = "scale_out", efficiency = 0.90, latency = 10e-6, ring_latency = 14e-6,
    source = "https://github.com/calculon-ai/calculon 0.9, https://github.com/AMD-AGI/Primus 0.91; https://github.com/deepseek-ai/DeepEP EP32-EP64 50-58 GB/s of logical traffic over a 50 GB/s port; latency: Primus and https://github.com/ai-dynamo/aiconfigurator p2p 10 us" },
  { name = "roce", kind = "scale_out", efficiency = 0.88, latency = 12e-6, ring_latency = 14e-6,
    source = "as InfiniBand with a ConnectX card (https://github.com/uccl-project/uccl: 52-60 GB/s at EP32-EP64); Meta's Llama-3 405B ran on RoCE and InfiniBand alike (https://arxiv.org/abs/2407.21783, section 3.3.1)" },
  { name = "efa", kind = "scale_out", efficiency = 0.85, latency = 30e-6,
    source = "https://github.com/uccl-project/uccl on p5en and p6: 50-57 GB/s at EP32 for 50 GB/s a GPU; SRD's latency is several times a ConnectX card's (https://github.com/awslabs/awsome-distributed-ai)" },
  { name = "slingshot", kind = "scale_out", efficiency = 0.80, latency = 15e-6,
    source = "assumed: 200 Gb/s Slingshot 11 with libfabric, between RoCE and plain Ethernet" },
  { name = "ethernet", kind = "scale_out", efficiency = 0.70, latency = 30e-6,
    source = "TCP sockets: 30 us of https://github.com/MooreThreads/SimuMax; efficiency assumed" },
  { name = "none", kind = "scale_out", efficiency = 1, latency = 0, source = "assumed: one domain, nothing leaves it" },
}

return lookup { entries = entries }

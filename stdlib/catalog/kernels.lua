-- SPDX-License-Identifier: Apache-2.0
-- kernels.lua: all-to-all kernels for mixtures of experts: what each needs, where it works, what was measured with it.
-- Facts, not judgement: which one to recommend is the policy's `kernel` statements.
--
-- needs                 in words, for the plan's page
-- accelerator_families, fabrics   where it works; absent: anywhere. A fabric counts only when the expert group leaves the scale-up domain
-- scale_up_only         cannot leave the scale-up domain
-- expert_parallel       { low, high }: sizes of the expert group
-- nodes                 numbers of 8-GPU nodes it is built for, when the group spans several
-- trains                has a backward pass and training use
-- overlapping           runs beside compute: what DualPipe needs. NCCL's all-to-all does not (it takes all SMs it can get)
-- sms                   streaming multiprocessors it takes from compute
-- latency               seconds of a call beside its transfers: from the low-latency or small-message tables
-- measured              { where, GB/s a GPU (logical: own copies counted): dispatch, combine }

local contains = require("pipeplan.base.lists").contains
local lookup = require "pipeplan.catalog.lookup"

local nvidia = { "ampere", "hopper", "blackwell", "gb200", "gb300" }
local connectx = { "infiniband", "roce" }

local entries = {
  { name = "deepep", title = "DeepEP V2", aliases = { "deepep_v2" },
    needs = { "NCCL 2.30.4 with GIN", "PyTorch 2.10", "CUDA 12.3", "ConnectX cards that reach across rails, driver 510.40.3, DMA-BUF or nvidia-peermem" },
    accelerator_families = { "hopper", "blackwell" }, fabrics = connectx, expert_parallel = { 2, 2048 },
    trains = true, overlapping = true, sms = 6, latency = 100e-6,
    measured = { { "Hopper, CX7, 2 nodes", 90, 81 }, { "Hopper, CX7, 4 nodes", 61, 61 }, { "Blackwell EP8, 24 SMs", 643, 675 } },
    source = "https://github.com/deepseek-ai/DeepEP/blob/dd758ca/README.md; https://github.com/NVIDIA/nccl/tree/5067397, deviceapi.rst" },
  { name = "deepep_v1", title = "DeepEP V1", aliases = { "deepep_legacy" },
    needs = { "NVSHMEM 3.3.9", "IBGDA: driver registry option or GDRCopy", "NVLink inside a node, RDMA between" },
    accelerator_families = { "ampere", "hopper", "blackwell" }, fabrics = connectx, expert_parallel = { 2, 160 },
    nodes = { 1, 2, 3, 4, 6, 8, 12, 16, 18, 20 }, trains = true, overlapping = true, sms = 20, latency = 120e-6,
    measured = { { "H800 EP8", 153, 158 }, { "H800 + 400 Gb/s EP16", 43, 43 }, { "EP32", 58, 57 }, { "EP64", 51, 50 } },
    notes = "DeepSeek-V3 took 20 of 132 SMs; fails on NICs that are not ConnectX (https://github.com/deepseek-ai/DeepEP/issues/759) and where IBGDA is off (issues/36, issues/223)",
    source = "https://github.com/deepseek-ai/DeepEP/blob/dd758ca/docs/legacy.md and docs/nvshmem.md" },
  { name = "hybrid_ep", title = "Hybrid-EP",
    needs = { "TMA (Hopper or newer)", "several nodes without multi-node NVLink: DOCA and rdma-core 60, or NIXL with UCX 1.17" },
    accelerator_families = { "hopper", "blackwell", "gb200", "gb300" }, fabrics = connectx, expert_parallel = { 2, 64 },
    trains = true, overlapping = true, sms = 16, latency = 80e-6,
    measured = { { "H100 EP16", 62, 68 }, { "H100 EP64", 46.6, 51 }, { "GB200 EP8", 714, 737 }, { "GB200 EP32", 539, 605 } },
    notes = "the only Megatron backend for multi-node NVLink; its wrapper refuses fp8 dispatch",
    source = "https://github.com/deepseek-ai/DeepEP/blob/94a9f8f/docs/README_Hybrid-EP.md; https://github.com/NVIDIA/Megatron-LM, moe/fused_a2a.py; EP 64 on GB200 and GB300 in the performance summary of https://github.com/NVIDIA-NeMo/Megatron-Bridge" },
  { name = "uccl_ep", title = "UCCL-EP",
    needs = { "CPU proxy threads", "peermem module or DMA-BUF build", "NCCL channel cap set (unset it halves throughput)" },
    accelerator_families = { "ampere", "hopper", "blackwell", "mi300", "mi350" }, fabrics = { "efa", "infiniband", "roce" }, expert_parallel = { 2, 64 },
    trains = true, overlapping = true, sms = 24, latency = 150e-6,
    measured = { { "H200 + EFA EP8", 320, 319 }, { "H200 + EFA EP32", 54, 43 }, { "B200 + EFA EP32", 53, 57 }, { "MI300X + CX7 EP64", 52, 51 } },
    notes = "measured to EP32 on EFA, EP64 on AMD; Megatron on 32 H200: 152 to 188 TFLOP/s against NCCL",
    source = "https://github.com/uccl-project/uccl/blob/da914a2/ep/README.md and ep/bench/megatron/README.md" },
  { name = "deepep_pcie", title = "DeepEP PCIe kernel", needs = { "an RDMA NIC per GPU: all traffic goes through it" },
    accelerator_families = { "ampere", "ada", "hopper" }, fabrics = connectx, expert_parallel = { 2, 32 },
    trains = true, overlapping = true, sms = 24, latency = 120e-6,
    measured = { { "H20 without NVLink EP8", 53, 54 }, { "EP16", 48, 49 } },
    notes = "for GPUs without NVLink; NIC-bound at about 50 GB/s", source = "https://github.com/deepseek-ai/DeepEP/blob/94a9f8f/docs/README_PCIe.md" },
  { name = "nccl_ep", title = "NCCL EP", needs = { "CUDA 13", "NCCL 2.29", "MPI to launch", "GIN type 3 advised" },
    accelerator_families = { "hopper", "blackwell" }, fabrics = connectx, expert_parallel = { 2, 64 },
    trains = true, overlapping = true, sms = 24, latency = 150e-6, measured = {},
    notes = "no figures published for its high-throughput mode", source = "https://github.com/NVIDIA/nccl/blob/5067397/contrib/nccl_ep/README.md" },
  { name = "primus_turbo", title = "Primus-Turbo DeepEP", needs = { "Primus-Turbo", "rocSHMEM or UCCL between nodes (Pollara, Thor 2 or ConnectX-7)" },
    accelerator_families = { "mi300", "mi350" }, expert_parallel = { 2, 64 }, trains = true, overlapping = true, sms = 32, latency = 150e-6,
    measured = {}, notes = "AMD's training path; takes 32 to 64 compute units",
    source = "https://github.com/AMD-AGI/Primus/blob/fd1eeab/docs/04-technical-guides/moe-training.md" },
  { name = "mori_ep", title = "MORI-EP", needs = { "ROCm 6.4", "libibverbs", "Pollara, ConnectX-7 or Thor 2" },
    accelerator_families = { "mi300", "mi350" }, expert_parallel = { 8, 64 }, trains = false, overlapping = true, sms = 32, latency = 36e-6,
    measured = { { "MI300X + CX7 EP8", 307, 330 }, { "MI355X EP16", 54, 71 } }, notes = "mainly serving",
    source = "https://github.com/ROCm/mori/blob/624002c/docs/MORI-EP-GUIDE.md and README.md" },
  { name = "mindspeed", title = "MindSpeed dispatcher", aliases = { "mindspeed_alltoall" }, needs = { "MindSpeed with --moe-fb-overlap", "expert tensor parallelism 1" },
    accelerator_families = { "ascend" }, expert_parallel = { 2, 1024 }, trains = true, overlapping = true, sms = 0, latency = 200e-6, measured = {},
    notes = "hides all of the all-to-all in the steady state and half of it in warm-up and cool-down, by its own account",
    source = "https://github.com/Ascend/MindSpeed/tree/028de58/docs/zh/features, megatron_moe and dualpipev.md" },
  { name = "deepep_ascend", title = "DeepEP-Ascend", needs = { "CANN 8.5", "torch-npu 2.8", "HCCL_BUFFSIZE set" },
    accelerator_families = { "ascend" }, expert_parallel = { 2, 64 }, trains = true, overlapping = true, sms = 0, latency = 200e-6, measured = {},
    notes = "Atlas A2 over several nodes: bf16 only, 4,096 tokens; used by SGLang in practice",
    source = "https://github.com/sgl-project/sgl-kernel-npu/blob/f425bdf/python/deep_ep/README.md" },
  { name = "pplx", title = "pplx-garden", aliases = { "pplx_kernels", "pplx-kernels" },
    needs = { "libfabric or ibverbs", "GDRCopy", "CUDA 12.8", "one NIC per GPU" },
    accelerator_families = { "hopper" }, fabrics = { "infiniband", "roce", "efa" }, expert_parallel = { 8, 128 }, trains = false, overlapping = true, sms = 24,
    latency = 190e-6, measured = {}, notes = "decode tuned; at 4,096 tokens DeepEP's combine is faster (5,923 against 8,771 us at EP64)",
    source = "https://github.com/perplexityai/pplx-garden/blob/2446003/docs/fabric-lib.md" },
  { name = "flashinfer_moe_ep", title = "FlashInfer moe_ep", needs = { "NCCL-EP or NIXL-EP transport" },
    accelerator_families = { "hopper", "blackwell" }, expert_parallel = { 2, 64 }, trains = false, overlapping = false, sms = 24, latency = 150e-6, measured = {},
    notes = "forward only", source = "https://github.com/flashinfer-ai/flashinfer/blob/fb28d72/docs/design_docs/moe_ep_architecture.md" },
  { name = "nccl_alltoall", title = "NCCL or RCCL all-to-all", aliases = { "nccl", "rccl_alltoall", "alltoall" }, needs = {},
    expert_parallel = { 2, 65536 }, trains = true, overlapping = false, sms = 32, latency = 50e-6,
    measured = { { "2 × DGX-H100, 400 Gb/s", 46, 46 } },
    notes = "works everywhere; every copy of a token crosses the network by itself",
    source = "https://github.com/NVIDIA/Megatron-LM/blob/d98e8a6/megatron/core/transformer/moe/README.md; https://github.com/deepseek-ai/DeepEP/issues/3" },
}

local catalogue = lookup { entries = entries }

-- Does a kernel work there? situation = { accelerator_family, fabric, expert_parallel, scale_up_gpus, gpus_per_node }, of which what is absent is not
-- judged. → true, or false and why not. Says nothing about software versions: those are its `needs`.
function catalogue.works(entry, situation)
  local family, ranks = situation.accelerator_family, situation.expert_parallel
  if entry.accelerator_families and family and not contains(entry.accelerator_families, family) then
    return false, string.format("%s is not built for %s", entry.title, family)
  end
  if ranks and (ranks < entry.expert_parallel[1] or ranks > entry.expert_parallel[2]) then
    return false, string.format("%s is known to work from EP %d to EP %d", entry.title, entry.expert_parallel[1], entry.expert_parallel[2])
  end
  if not ranks or ranks <= (situation.scale_up_gpus or 0) then return true end
  if entry.fabrics and situation.fabric and not contains(entry.fabrics, situation.fabric) then
    return false, string.format("%s does not run over %s", entry.title, situation.fabric)
  end
  if entry.nodes and not contains(entry.nodes, (ranks + 7) // 8) then
    return false, string.format("%s has no kernels for %d nodes", entry.title, (ranks + 7) // 8)
  end
  return true
end

catalogue.nvidia_families = nvidia

return catalogue

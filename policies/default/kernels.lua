-- kernels.lua: which all-to-all kernel to use. Top to bottom, the first that matches and whose needs the spec does not rule out.
--
-- What each kernel needs, and how far it was measured, are facts (`pipeplan facts kernels`) and not repeated here. One that does not overlap
-- with compute (overlapping = false) does not count as a custom kernel.
-- A policy of your own adds its kernel above these: `kernel { id = "ours", recommend = "uccl_ep", fabric = "efa", why = "in production" }`,
-- where `recommend` is the kernel's name in the catalogue (default: the id).

-- GB200 and GB300 join many nodes by NVLink: Hybrid-EP is the only training kernel for that, DeepEP's first version collapses there.
kernel { id = "hybrid_ep",     source = "https://github.com/deepseek-ai/DeepEP/tree/hybrid-ep", accelerator_family = { "gb200", "gb300" },
         why = "the training kernel for NVLink across nodes" }
-- DeepEP V2 runs on NCCL and takes 4 to 6 SMs; where its NCCL or PyTorch is too new, the first version with NVSHMEM.
kernel { id = "deepep",        accelerator_family = { "hopper", "blackwell" }, fabric = { "infiniband", "roce", "none" },
         source = "https://github.com/deepseek-ai/DeepEP",
         expert_parallel = at_most(2048), why = "overlaps, and takes few SMs" }
kernel { id = "deepep_v1",     accelerator_family = { "ampere", "hopper" }, fabric = { "infiniband", "roce", "none" },
         source = "https://github.com/deepseek-ai/DeepEP, docs/legacy.md",
         expert_parallel = at_most(160), why = "the line of DeepEP that supports A100 and older NCCL" }
-- Network cards without IBGDA: DeepEP's interface over CPU proxies. Cap NCCL's channels there: without the cap throughput halves.
kernel { id = "uccl_ep",       accelerator_family = { "ampere", "hopper", "blackwell" }, fabric = "efa",
         source = "https://github.com/uccl-project/uccl, ep",
         expert_parallel = at_most(32), why = "DeepEP's interface without IBGDA, measured to 32 ranks on EFA" }
kernel { id = "primus_turbo",  accelerator_family = { "mi300", "mi350" }, why = "AMD's training path",
         source = "https://github.com/AMD-AGI/Primus-Turbo" }
kernel { id = "mindspeed",     accelerator_family = "ascend", why = "the vendor's dispatcher, with its overlap flags",
         source = "https://github.com/Ascend/MindSpeed, docs/zh/features" }
kernel { id = "nccl_alltoall", overlapping = false, why = "works everywhere, overlaps nothing",
         source = "https://docs.nvidia.com/deeplearning/nccl, all-to-all" }

-- SPDX-License-Identifier: Apache-2.0

-- SPDX-License-Identifier: Apache-2.0
-- hosts.lua: the host beside a GPU, by the GPU's family: what an offloaded optimizer has to work with, and what it needs for a step of a ring.
--
-- link               bytes per second between one GPU and its host, one direction, as large copies reach it
-- memory_bandwidth   bytes per second of the host's memory, nominal, of one GPU's share of the host
-- update_efficiency  share of it that an Adam update on the CPU reaches
-- ring_step          seconds that it needs for each step of a ring of large messages that leaves the node: three times 2 us where the
--                    processors are AMD's, 1 us otherwise (NVIDIA/nccl @5067397 src/graph/tuning.cc, getNetOverhead)

local lookup = require "pipeplan.catalog.lookup"

local GIGA = 1e9

-- Two Xeon 8168 (six channels of DDR4-2666 each, 256 GB/s) update 10 B parameters in 2.57 s (ZeRO-Offload, 2101.06840, table of CPU-Adam
-- latencies, recalled and not read again): 28 bytes a parameter are 109 GB/s, 0.43 of nominal.
local update_efficiency = 0.4

local function host(name, link, memory_bandwidth, source)
  return { name = name, link = link * GIGA, memory_bandwidth = memory_bandwidth * GIGA, update_efficiency = update_efficiency,
           ring_step = source:find "EPYC" and 6e-6 or 3e-6, source = source }
end

-- PCIe x16 carries 16, 32 and 64 GB/s in generations 3, 4 and 5, of which large copies reach about 0.8 (links.lua).
local entries = {
  host("volta",     13,  19, "PCIe 3; DGX-1 (https://docs.nvidia.com/dgx/dgx1-user-guide/): two Xeon E5-2698 v4, four channels of DDR4-2400, for 8 GPUs"),
  host("ampere",    25,  51, "PCIe 4; DGX A100 (https://docs.nvidia.com/dgx/dgxa100-user-guide/): two EPYC 7742, eight channels of DDR4-3200, for 8 GPUs"),
  host("ada",       25,  77, "assumed: PCIe 4; hosts as for Hopper"),
  host("hopper",    50,  77, "PCIe 5; DGX H100 (https://docs.nvidia.com/dgx/dgxh100-user-guide/): two Xeon 8480C, eight channels of DDR5-4800, for 8 GPUs"),
  host("blackwell", 50,  90, "PCIe 5; DGX B200 (https://docs.nvidia.com/dgx/dgxb200-user-guide/): two Xeon 8570, eight channels of DDR5-5600, for 8 GPUs"),
  host("blackwell_rtx", 50, 77, "assumed: PCIe 5; hosts as for Hopper (a GB10 shares its memory with its processors)"),
  host("gb200",    180, 256, "https://www.nvidia.com/en-us/data-center/gb200-nvl72/: NVLink-C2C of 450 GB/s and 512 GB/s of LPDDR5X for two GPUs of a Grace"),
  host("gb300",    180, 256, "https://www.nvidia.com/en-us/data-center/gb300-nvl72/: the same Grace as GB200's"),
  host("mi200",     25,  51, "PCIe 4 (or coherent xGMI); https://docs.olcf.ornl.gov/systems/frontier_user_guide.html: one EPYC 7A53, eight channels of DDR4-3200, for 4 packages of two dies"),
  host("mi300",     50, 115, "assumed: PCIe 5; two EPYC 9004, twelve channels of DDR5-4800, for 8 GPUs"),
  host("mi350",     50, 115, "assumed: as MI300, the same kind of host"),
  host("tpu",       25, 100, "assumed: PCIe 4, two sockets for 4 chips"),
  host("ascend",    25,  48, "assumed: PCIe 4, four Kunpeng 920, eight channels of DDR4-2933 each, for 16 dies"),
  host("other",     25,  50, "assumed: PCIe 4, two sockets for 8 GPUs"),
}

return lookup { entries = entries }

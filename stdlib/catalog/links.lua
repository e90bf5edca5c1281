-- links.lua: what links reach: the share of their nominal speed that large transfers get, and seconds before the first byte.
-- Planners disagree by a factor of two (Calculon 0.65 NVLink and 0.9 InfiniBand; Primus 0.91 for all; SimuMax's template 0.5; latencies
-- 0.45 to 30 us), so a measurement of the cluster itself (nccl-tests) is always the better source. Each figure below says which one it is.
--
-- kind        "scale_up" joins GPUs inside a domain, "scale_out" domains: the names of the field `fabric`
-- efficiency  of the nominal speed, one direction
-- latency     seconds of one step of a collective, or of one message
-- lane        bytes per second of one of the links that nvidia-smi counts (NV#), one direction, by accelerator family
-- per_gpu     bytes per second of one GPU, one direction, by accelerator family

local lookup = require "pipeplan.catalog.lookup"

local entries = {
  { name = "nvlink", kind = "scale_up", efficiency = 0.80, latency = 2e-6,
    lane = { volta = 25e9, ampere = 25e9, hopper = 25e9, blackwell = 50e9, gb200 = 50e9, gb300 = 50e9 },
    source = "NVIDIA data sheets: V100 6 links and 300 GB/s both ways, A100 12 and 600, H100 18 and 900, B200 18 and 1,800; all-to-all kernels reach 320 of 450 GB/s on H200 (UCCL ep/README) and 600-740 of 900 on B200 (DeepEP README, Hybrid-EP README); 4 × H200 all-reduce in our own runs 0.8; latency: a ring step of NCCL inside a node" },
  { name = "nvlink_h800", kind = "scale_up", efficiency = 0.95, latency = 2e-6, lane = { hopper = 20e9 },
    source = "DeepEP docs/legacy.md: 153-158 GB/s of the 160 that the DeepSeek-V3 report calls usable" },
  { name = "xgmi", kind = "scale_up", efficiency = 0.70, latency = 3e-6,
    source = "MI300X EP8 260-330 GB/s of 448 (UCCL ep/README, MORI README); MI355X 299-420 of 535" },
  { name = "hccs", kind = "scale_up", efficiency = 0.70, latency = 5e-6,
    source = "Ascend/msmodeling tensor_cast/device.py: 0.7 of the network" },
  { name = "ici", kind = "scale_up", efficiency = 0.85, latency = 1e-6,
    source = "jax-ml/scaling-book tpus.md: about 1 us a hop; efficiency assumed as NVLink's upper end" },
  { name = "pcie", kind = "scale_up", efficiency = 0.80, latency = 5e-6,
    per_gpu = { volta = 16e9, ampere = 32e9, ada = 32e9, hopper = 64e9, blackwell = 64e9 },
    source = "16 lanes of PCIe 3, 4 and 5; DeepEP docs/README_PCIe.md: EP8 53-54 GB/s through PCIe 5 x16 of 64" },
  { name = "infiniband", kind = "scale_out", efficiency = 0.90, latency = 10e-6,
    source = "Calculon 0.9, Primus 0.91; DeepEP EP32-EP64 50-58 GB/s of logical traffic over a 50 GB/s port; latency: Primus and aiconfigurator p2p 10 us" },
  { name = "roce", kind = "scale_out", efficiency = 0.88, latency = 12e-6,
    source = "as InfiniBand with a ConnectX card (UCCL: 52-60 GB/s at EP32-EP64); Meta's Llama-3 405B ran on RoCE and InfiniBand alike" },
  { name = "efa", kind = "scale_out", efficiency = 0.85, latency = 30e-6,
    source = "UCCL-EP on p5en and p6: 50-57 GB/s at EP32 for 50 GB/s a GPU; SRD's latency is several times a ConnectX card's (awslabs/awsome-distributed-ai)" },
  { name = "slingshot", kind = "scale_out", efficiency = 0.80, latency = 15e-6,
    source = "200 Gb/s Slingshot 11 with libfabric: assumed between RoCE and plain Ethernet" },
  { name = "ethernet", kind = "scale_out", efficiency = 0.70, latency = 30e-6,
    source = "TCP sockets: SimuMax's 30 us; efficiency assumed" },
  { name = "none", kind = "scale_out", efficiency = 1, latency = 0, source = "one domain: nothing leaves it" },
}

return lookup { entries = entries }

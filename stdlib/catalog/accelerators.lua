-- SPDX-License-Identifier: Apache-2.0
-- accelerators.lua: what one GPU (or TPU, NPU) is: memory, peaks, links, and what share of the peaks training reaches.
--
-- memory_bytes      as the driver reports it (nvidia-smi, rocm-smi), which is what a plan must fit: names lie ("141 GB" is 143,771 MiB),
--                   data sheets count in GB or GiB as they please
-- flops             dense peak per second by precision of the products; data sheets headline the double, with sparsity
-- memory_bandwidth  bytes per second
-- scale_up_per_gpu  bytes per second, one direction, all links together; scale_up_link names the entry of links.lua
-- scale_up_gpus     GPUs that the domain usually joins; gpus_per_node: of one node
-- network_per_gpu   bytes per second, one direction, of the network usual with it; fabric: its kind
-- reach             what training reaches of the peaks, by precision: see below

local lookup = require "pipeplan.catalog.lookup"

local TERA, GIGA, MIB, GIB = 1e12, 1e9, 2 ^ 20, 2 ^ 30

-- Gb/s of a port, in bytes per second.
local function port(gigabits)
  return gigabits * GIGA / 8
end

-- What training reaches, by family and by the precision of the products:
--   gemm, grouped_gemm  share of the peak at that precision: large products, experts' grouped products of large inner size
--   attention           share of the bf16 peak: fused attention
--   memory              share of the memory bandwidth: element-wise kernels
--   grouped_gemm_half   inner size at which grouped products reach half of their share
--   overlap_overhead    share of compute that communication kernels beside it cost (DeepEP V1: 20 of an H800's 132 SMs)
--   layer_latency       seconds that F and I of a layer each take beside their work, W half of it; absent: none seen
--   routing_latency     seconds an MoE layer takes each way beside its work
--
-- Calibrated with tests/oracles/calibrate.lua, never on the run that a test predicts (DeepSeek-V3's own on H800). Predicted over measured:
--   ampere     Korthikanti et al. Table 5, eight steps from 22B to 1T: 0.96 to 1.04. layer_latency on every second row of vTrain's
--              validation (2312.12391): 39.1B at TP 8, PP 16, its bubble taken off, takes 14.5, 13.8, 12.9 and 12.5 s in microbatches
--              of 2, 4, 8 and 24 sequences. Neither on Narayanan et al. Table 1: ten steps, 0.93 to 1.07
--   hopper     nine rows of Megatron-Bridge: mean 0.98; Llama 405B and 70B 0.98, 1.01; Qwen3 in fp8 0.96 to 1.06, in bf16 0.81 to 0.90;
--              gpt-oss-120B 1.25
--   blackwell  ten rows: mean 0.99; B200 0.88 to 1.04; B300 Qwen3-30B 0.71 (a later release) and Qwen3-235B 1.39 (an early one)
--   gb200      seven rows: mean 1.03, 0.92 to 1.06 but for gpt-oss-120B 1.31
--   gb300      ten rows: mean 1.00, 0.83 to 1.27
--   others     not calibrated: from the best measured product (stas00/ml-engineering: MI300X 51 % of its peak, MI355X 63 %), from vendors'
--              simulators (Ascend/msmodeling: 0.7 of compute, 0.6 of memory), or as the nearest relative
-- Releases of one software move the same row by up to 70 %, so a difference of 20 % between two clusters means little.
-- Seconds that an MoE layer takes more each way without an all-to-all kernel: NCCL's needs the sizes of its messages on the host, and kernels
-- apart to permute tokens. From the rows of tests/oracles/megatron_bridge.lua whose recipes name no dispatcher, of Hopper and Blackwell; taken
-- for all accelerators.
local PLAIN_ROUTING = 0.8e-3

-- Share of the shorter of compute and all-to-all that Megatron's overlap of neighbouring microbatches hides: an A/B of Megatron-Bridge's
-- skill perf-moe-comm-overlap on Qwen3-30B, 40 % with HybridEP and 52 % with NCCL.
-- On Hopper; on Blackwell, whose kernels for it take fewer SMs, the rows of Megatron-Bridge want all of it hidden, as where nothing is known.
local STREAMS_HIDE = 0.42

local reach = {
  volta = {
    bf16 = { gemm = 0.60, grouped_gemm = 0.45, attention = 0.35 },
    memory = 0.75, grouped_gemm_half = 1024, overlap_overhead = 0.20, routing_latency = 1e-3,
  },
  ampere = {
    bf16 = { gemm = 0.80, grouped_gemm = 0.60, attention = 0.55 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.18, layer_latency = 0.4e-3, routing_latency = 0.7e-3,
  },
  ada = {
    bf16 = { gemm = 0.60, grouped_gemm = 0.50, attention = 0.45 },
    fp8 = { gemm = 0.50, grouped_gemm = 0.35, attention = 0.45 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 0.7e-3,
  },
  hopper = {
    bf16 = { gemm = 0.67, grouped_gemm = 0.69, attention = 0.71, depth = 26 },
    fp8 = { gemm = 0.64, grouped_gemm = 0.47, attention = 0.71, depth = 117 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 0, plain_routing_latency = 0,
    shapes = { hidden_share = STREAMS_HIDE, product_floor = 4e-6, grouped_rows = 128, grouped_floor = 20e-6, attention_backward = 0.93, attention_half = 720,
               attention_half_backward = 1340, attention_fill = 213, tensor_latency = 20e-6, tensor_regather = 0.5, alltoall_rate = 150e9 },
  },
  blackwell = {
    bf16 = { gemm = 0.65, grouped_gemm = 0.60, attention = 0.45 },
    fp8 = { gemm = 0.63, grouped_gemm = 0.51, attention = 0.45 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 1.0e-3,
  },
  blackwell_rtx = {   -- not measured: as Ada, its nearest relative
    bf16 = { gemm = 0.60, grouped_gemm = 0.50, attention = 0.45 },
    fp8 = { gemm = 0.50, grouped_gemm = 0.35, attention = 0.45 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 0.7e-3,
  },
  gb200 = {
    bf16 = { gemm = 0.62, grouped_gemm = 0.52, attention = 0.45 },
    fp8 = { gemm = 0.56, grouped_gemm = 0.46, attention = 0.45 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 0.5e-3,
  },
  gb300 = {
    bf16 = { gemm = 0.70, grouped_gemm = 0.60, attention = 0.55 },
    fp8 = { gemm = 0.75, grouped_gemm = 0.77, attention = 0.55 },
    memory = 0.85, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 0.3e-3,
  },
  mi200 = {
    bf16 = { gemm = 0.45, grouped_gemm = 0.35, attention = 0.30 },
    memory = 0.70, grouped_gemm_half = 1024, overlap_overhead = 0.20, routing_latency = 1e-3,
  },
  mi300 = {
    bf16 = { gemm = 0.45, grouped_gemm = 0.40, attention = 0.35 },
    fp8 = { gemm = 0.40, grouped_gemm = 0.30, attention = 0.35 },
    memory = 0.75, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 1e-3,
  },
  mi350 = {
    bf16 = { gemm = 0.55, grouped_gemm = 0.48, attention = 0.40 },
    fp8 = { gemm = 0.50, grouped_gemm = 0.38, attention = 0.40 },
    memory = 0.75, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 1e-3,
  },
  tpu = {
    bf16 = { gemm = 0.65, grouped_gemm = 0.50, attention = 0.45 },
    fp8 = { gemm = 0.60, grouped_gemm = 0.45, attention = 0.45 },
    memory = 0.80, grouped_gemm_half = 1024, overlap_overhead = 0.10, routing_latency = 0.5e-3,
  },
  ascend = {
    bf16 = { gemm = 0.60, grouped_gemm = 0.45, attention = 0.45 },
    memory = 0.60, grouped_gemm_half = 1024, overlap_overhead = 0.15, routing_latency = 1e-3,
  },
}

local entries = {
  { name = "V100-SXM-32GB", aliases = { "V100-SXM2-32GB", "V100" }, family = "volta", memory_bytes = 32768 * MIB,
    flops = { fp16 = 125 * TERA }, memory_bandwidth = 900 * GIGA,
    scale_up_per_gpu = 150 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(100),
    source = "https://github.com/cli99/llm-analysis, gpu_configs/v100-sxm-32gb.json; https://github.com/stas00/ml-engineering/blob/744d01e/network/README.md: 6 NVLink-2 links of 25 GB/s; the 100 Gb/s EDR port is assumed" },
  { name = "A100-SXM-40GB", aliases = { "A100-40GB" }, family = "ampere", memory_bytes = 40960 * MIB,
    flops = { bf16 = 312 * TERA, fp16 = 312 * TERA }, memory_bandwidth = 1555 * GIGA,
    scale_up_per_gpu = 300 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(200),
    source = "https://github.com/cli99/llm-analysis, gpu_configs/a100-sxm-40gb.json" },
  { name = "A100-SXM-80GB", aliases = { "A100-SXM", "A100-80GB", "A100" }, family = "ampere", memory_bytes = 81920 * MIB,
    flops = { bf16 = 312 * TERA, fp16 = 312 * TERA }, memory_bandwidth = 2039 * GIGA,
    scale_up_per_gpu = 300 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(200),
    source = "https://github.com/ai-dynamo/aiconfigurator/tree/095f58a, systems yaml; https://github.com/cli99/llm-analysis; nvidia-smi: 81,920 MiB" },
  { name = "A800-SXM-80GB", aliases = { "A800-SXM", "A800" }, family = "ampere", memory_bytes = 81920 * MIB,
    flops = { bf16 = 312 * TERA, fp16 = 312 * TERA }, memory_bandwidth = 2039 * GIGA,
    scale_up_per_gpu = 200 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(200),
    source = "assumed: A100 (https://github.com/ai-dynamo/aiconfigurator) with NVLink cut to 400 GB/s both ways; nvidia-smi on A800-SXM4-80GB: 81,920 MiB" },
  { name = "A100-PCIe-80GB", aliases = { "A100-PCIe", "A100-80GB-PCIe" }, family = "ampere", memory_bytes = 81920 * MIB,
    flops = { bf16 = 312 * TERA, fp16 = 312 * TERA }, memory_bandwidth = 1935 * GIGA,
    scale_up_per_gpu = 32 * GIGA, scale_up_link = "pcie", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(200),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; PCIe 4 (a bridge joins pairs at 300 GB/s)" },
  { name = "H100-SXM", aliases = { "H100-SXM-80GB", "H100-SXM5-80GB", "H100-80GB", "H100", "H100-SXM5", "H100-80GB-HBM3" }, family = "hopper", memory_bytes = 81559 * MIB,
    flops = { bf16 = 989 * TERA, fp16 = 989 * TERA, fp8 = 1979 * TERA }, memory_bandwidth = 3350 * GIGA,
    scale_up_per_gpu = 450 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; https://github.com/cli99/llm-analysis; nvidia-smi on H100 80GB HBM3: 81,559 MiB" },
  { name = "H100-PCIe", aliases = { "H100-PCIe-80GB" }, family = "hopper", memory_bytes = 81559 * MIB,
    flops = { bf16 = 756 * TERA, fp16 = 756 * TERA, fp8 = 1513 * TERA }, memory_bandwidth = 2000 * GIGA,
    scale_up_per_gpu = 64 * GIGA, scale_up_link = "pcie", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; PCIe 5 (a bridge joins pairs at 300 GB/s)" },
  { name = "H200-SXM", aliases = { "H200", "H200-SXM-141GB", "H200-141GB" }, family = "hopper", memory_bytes = 143771 * MIB,
    flops = { bf16 = 989 * TERA, fp16 = 989 * TERA, fp8 = 1979 * TERA }, memory_bandwidth = 4800 * GIGA,
    scale_up_per_gpu = 450 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; nvidia-smi: 143,771 MiB (https://github.com/sgl-project/sglang/pull/13282)" },
  { name = "H800-SXM", aliases = { "H800-SXM-80GB", "H800-80GB", "H800" }, family = "hopper", memory_bytes = 81559 * MIB,
    flops = { bf16 = 989 * TERA, fp16 = 989 * TERA, fp8 = 1979 * TERA }, memory_bandwidth = 3350 * GIGA,
    scale_up_per_gpu = 160 * GIGA, scale_up_link = "nvlink_h800", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "as H100 with NVLink cut to 400 GB/s both ways, of which 160 one way are usable (https://arxiv.org/abs/2412.19437; https://github.com/deepseek-ai/DeepEP/blob/dd758ca/docs/legacy.md; https://github.com/aliyun/SimAI, calbusbw.h: 8 links of 20.6)" },
  { name = "H20", aliases = { "H20-96GB", "H20-SXM" }, family = "hopper", memory_bytes = 97871 * MIB,
    flops = { bf16 = 148 * TERA, fp16 = 148 * TERA, fp8 = 296 * TERA }, memory_bandwidth = 4000 * GIGA,
    scale_up_per_gpu = 450 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://huggingface.co/hardware/h20: 96 GB, 148 TFLOP/s; three reviews agree on the rest; nvidia-smi: 97,871 MiB; a 141 GB variant came later: give memory_per_gpu" },
  { name = "L40S", aliases = { "L40S-48GB" }, family = "ada", memory_bytes = 46068 * MIB,
    flops = { bf16 = 362 * TERA, fp16 = 362 * TERA, fp8 = 733 * TERA }, memory_bandwidth = 864 * GIGA,
    scale_up_per_gpu = 32 * GIGA, scale_up_link = "pcie", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; 48 GB with error correction on: 46,068 MiB" },
  { name = "RTX-4090", aliases = { "RTX4090", "4090" }, family = "ada", memory_bytes = 24564 * MIB,
    flops = { bf16 = 165.2 * TERA, fp16 = 165.2 * TERA, fp8 = 330.3 * TERA }, memory_bandwidth = 1008 * GIGA,
    scale_up_per_gpu = 32 * GIGA, scale_up_link = "pcie", scale_up_gpus = 8, gpus_per_node = 8, fabric = "ethernet", network_per_gpu = port(25),
    source = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf, appendix A: dense, sums in fp32; no NVLink, PCIe 4; nvidia-smi: 24,564 MiB; the network is assumed" },
  { name = "RTX-5090", aliases = { "RTX5090", "5090" }, family = "blackwell_rtx", memory_bytes = 32607 * MIB,
    flops = { bf16 = 209.5 * TERA, fp16 = 209.5 * TERA, fp8 = 419 * TERA }, memory_bandwidth = 1792 * GIGA,
    scale_up_per_gpu = 64 * GIGA, scale_up_link = "pcie", scale_up_gpus = 8, gpus_per_node = 8, fabric = "ethernet", network_per_gpu = port(25),
    source = "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf, appendix A: dense, sums in fp32; no NVLink, PCIe 5; nvidia-smi: 32,607 MiB; the network is assumed" },
  { name = "GB10", aliases = { "DGX-Spark" }, family = "blackwell_rtx", memory_bytes = 128 * GIGA,
    flops = { bf16 = 125 * TERA, fp16 = 125 * TERA, fp8 = 250 * TERA }, memory_bandwidth = 273 * GIGA,
    scale_up_per_gpu = port(200), scale_up_link = "pcie", scale_up_gpus = 1, gpus_per_node = 1, fabric = "roce", network_per_gpu = port(200),
    source = "https://www.nvidia.com/en-us/products/workstations/dgx-spark/: 1 PFLOP/s of sparse FP4, 128 GB shared with the processors, 273 GB/s, ConnectX-7 of 200 Gb/s; half of it dense, a quarter of that in bf16: assumed" },
  { name = "B200-SXM", aliases = { "B200", "B200-180GB" }, family = "blackwell", memory_bytes = 183359 * MIB,
    flops = { bf16 = 2250 * TERA, fp16 = 2250 * TERA, fp8 = 4500 * TERA }, memory_bandwidth = 7700 * GIGA,
    scale_up_per_gpu = 900 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; nvidia-smi: 183,359 MiB; networks of 400 to 800 Gb/s are in use" },
  { name = "B300-SXM", aliases = { "B300" }, family = "blackwell", memory_bytes = 275040 * MIB,
    flops = { bf16 = 2250 * TERA, fp16 = 2250 * TERA, fp8 = 4500 * TERA }, memory_bandwidth = 7750 * GIGA,
    scale_up_per_gpu = 900 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 8, gpus_per_node = 8, fabric = "infiniband", network_per_gpu = port(800),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; nvidia-smi: 275,040 MiB" },
  { name = "GB200-NVL72", aliases = { "GB200" }, family = "gb200", memory_bytes = 189471 * MIB,
    flops = { bf16 = 2500 * TERA, fp16 = 2500 * TERA, fp8 = 5000 * TERA }, memory_bandwidth = 8000 * GIGA,
    scale_up_per_gpu = 900 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 72, gpus_per_node = 4, fabric = "infiniband", network_per_gpu = port(400),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; nvidia-smi: 189,471 MiB; four GPUs a node, 72 a rack" },
  { name = "GB300-NVL72", aliases = { "GB300" }, family = "gb300", memory_bytes = 284208 * MIB,
    flops = { bf16 = 2500 * TERA, fp16 = 2500 * TERA, fp8 = 5000 * TERA }, memory_bandwidth = 8000 * GIGA,
    scale_up_per_gpu = 900 * GIGA, scale_up_link = "nvlink", scale_up_gpus = 72, gpus_per_node = 4, fabric = "infiniband", network_per_gpu = port(800),
    source = "https://github.com/ai-dynamo/aiconfigurator, systems yaml; nvidia-smi: 284,208 MiB; four GPUs a node, 72 a rack" },
  { name = "MI250X", aliases = { "MI250X-128GB" }, family = "mi200", memory_bytes = 128 * GIB,
    flops = { bf16 = 383 * TERA, fp16 = 383 * TERA }, memory_bandwidth = 3277 * GIGA,
    scale_up_per_gpu = 350 * GIGA, scale_up_link = "xgmi", scale_up_gpus = 4, gpus_per_node = 4, fabric = "slingshot", network_per_gpu = port(200),
    source = "https://github.com/cli99/llm-analysis, mi250x-128gb.json; https://rocm.docs.amd.com/en/latest/conceptual/gpu-arch/mi250.html: 7 links of 50 GB/s (another source counts 400); two dies counted as one GPU" },
  { name = "MI300X", aliases = { "MI300X-192GB" }, family = "mi300", memory_bytes = 192 * GIB,
    flops = { bf16 = 1307.4 * TERA, fp16 = 1307.4 * TERA, fp8 = 2614.9 * TERA }, memory_bandwidth = 5300 * GIGA,
    scale_up_per_gpu = 448 * GIGA, scale_up_link = "xgmi", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(400),
    source = "https://github.com/stas00/ml-engineering; https://github.com/alpharomercoma/MI300X-vs-H200/blob/6077fdc/REPORT.md: 64 GB/s to each peer" },
  { name = "MI300A", aliases = { "MI300A-128GB" }, family = "mi300", memory_bytes = 128 * GIB,
    flops = { bf16 = 980.6 * TERA, fp16 = 980.6 * TERA, fp8 = 1961.2 * TERA }, memory_bandwidth = 5300 * GIGA,
    scale_up_per_gpu = 384 * GIGA, scale_up_link = "xgmi", scale_up_gpus = 4, gpus_per_node = 4, fabric = "slingshot", network_per_gpu = port(200),
    source = "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300a-data-sheet.pdf: dense; memory shared with the processors; two xGMI links of 64 GB/s to each of three peers" },
  { name = "MI325X", aliases = { "MI325X-256GB" }, family = "mi300", memory_bytes = 256 * GIB,
    flops = { bf16 = 1307.4 * TERA, fp16 = 1307.4 * TERA, fp8 = 2614.9 * TERA }, memory_bandwidth = 6000 * GIGA,
    scale_up_per_gpu = 448 * GIGA, scale_up_link = "xgmi", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(400),
    source = "https://github.com/stas00/ml-engineering; https://docs.vultr.com, inference cookbook" },
  { name = "MI355X", aliases = { "MI355X-288GB" }, family = "mi350", memory_bytes = 288 * GIB,
    flops = { bf16 = 2500 * TERA, fp16 = 2500 * TERA, fp8 = 5000 * TERA }, memory_bandwidth = 8000 * GIGA,
    scale_up_per_gpu = 535.5 * GIGA, scale_up_link = "xgmi", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(400),
    source = "https://github.com/stas00/ml-engineering; https://github.com/AMD-AGI/Primus/tree/fd1eeab, primus/core/projection: 7 links of 76.5 GB/s" },
  { name = "TPU-v5p", aliases = { "TPUv5p" }, family = "tpu", memory_bytes = 95 * GIB,
    flops = { bf16 = 459 * TERA, fp8 = 459 * TERA }, memory_bandwidth = 2765 * GIGA,
    scale_up_per_gpu = 600 * GIGA, scale_up_link = "ici", scale_up_gpus = 8960, gpus_per_node = 4, fabric = "ethernet", network_per_gpu = port(50),
    source = "https://docs.cloud.google.com/tpu/docs/v5p; https://github.com/jax-ml/scaling-book/blob/0819a7d/tpus.md: 600 GB/s over six links, 90 per axis; 50 Gb/s a chip between pods" },
  { name = "Ascend-910B", aliases = { "Ascend-910B1", "910B", "Atlas-A2" }, family = "ascend", memory_bytes = 64 * GIB,
    flops = { bf16 = 353.9 * TERA, fp16 = 376 * TERA }, memory_bandwidth = 1.6 * 2 ^ 40,
    scale_up_per_gpu = 196 * GIGA, scale_up_link = "hccs", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(200),
    source = "https://github.com/Ascend/msmodeling/blob/84fec85/tensor_cast/device.py: the fastest of three bins" },
  { name = "Ascend-910B2", aliases = {  }, family = "ascend", memory_bytes = 64 * GIB,
    flops = { bf16 = 294.9 * TERA, fp16 = 313 * TERA }, memory_bandwidth = 1.6 * 2 ^ 40,
    scale_up_per_gpu = 196 * GIGA, scale_up_link = "hccs", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(200),
    source = "https://github.com/Ascend/msmodeling/blob/84fec85/tensor_cast/device.py: the middle bin" },
  { name = "Ascend-910B3", aliases = { "Ascend-910B4" }, family = "ascend", memory_bytes = 64 * GIB,
    flops = { bf16 = 245.8 * TERA, fp16 = 280 * TERA }, memory_bandwidth = 1.6 * 2 ^ 40,
    scale_up_per_gpu = 196 * GIGA, scale_up_link = "hccs", scale_up_gpus = 8, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(200),
    source = "https://github.com/Ascend/msmodeling/blob/84fec85/tensor_cast/device.py: the slowest bin" },
  { name = "Ascend-910C", aliases = { "910C", "Atlas-A3" }, family = "ascend", memory_bytes = 128 * GIB,
    flops = { bf16 = 707.8 * TERA, fp16 = 752 * TERA }, memory_bandwidth = 3.2 * 2 ^ 40,
    scale_up_per_gpu = 392 * GIGA, scale_up_link = "hccs", scale_up_gpus = 384, gpus_per_node = 8, fabric = "roce", network_per_gpu = port(400),
    source = "https://github.com/Ascend/msmodeling/blob/84fec85/tensor_cast/device.py: a package of two dies; 384 packages share one unified bus (CloudMatrix)" },}

local catalogue = lookup { entries = entries }

-- What a long run keeps of the rate that products and attention reach in a measurement of seconds: cards that draw 570 to 680 W lower their
-- clocks. Hopper's figures above are those of tests/data/gpu/kernels_graphed_and_host_1xH200.jsonl times this, which the rows of
-- Megatron-Bridge give.
catalogue.sustained = 0.94

-- A GPU of which only memory, peak and links are given: everything else as an H100's.
catalogue.generic = { name = "generic", family = "other", flops = {}, scale_up_link = "nvlink", gpus_per_node = 8, scale_up_gpus = 8, reach = reach.hopper }

-- Does the driver's name of a card have the catalogue's in it, as a word? "NVIDIA H100 80GB HBM3" has that of H100-SXM, "NVIDIA GB200" not
-- that of B200.
function catalogue.is_card(device, name)
  return device:upper():find("%f[%w]" .. name:match "^%w+":upper() .. "%f[%W]") ~= nil
end

-- What training reaches on an accelerator at a precision, under the names of pp_device. fp16 and what has no figures of its own: as bf16.
function catalogue.efficiencies(entry, precision)
  entry.reach = entry.reach or reach[entry.family]
  local all = entry.reach
  local shares = all[precision] or all.bf16
  local out = {
    gemm_efficiency = shares.gemm, grouped_gemm_efficiency = shares.grouped_gemm, attention_efficiency = shares.attention,
    grouped_gemm_half = all.grouped_gemm_half, memory_efficiency = all.memory, overlap_overhead = all.overlap_overhead,
    layer_latency = all.layer_latency, routing_latency = all.routing_latency, product_depth = shares.depth,
    plain_routing_latency = all.plain_routing_latency or PLAIN_ROUTING,
  }
  for name, value in pairs(all.shapes or {}) do out[name] = value end
  return out
end

-- The bf16 figures stand in the entry itself too, of one that is asked for.
local function complete(entry)
  for key, value in pairs(catalogue.efficiencies(entry, "bf16")) do entry[key] = value end
  return entry
end
complete(catalogue.generic)

local find = catalogue.find
function catalogue.find(name)
  local entry, near = find(name)
  return entry and complete(entry), near
end

return catalogue

-- SPDX-License-Identifier: Apache-2.0
-- megatron_bridge.lua: measured pre-training runs with their whole parallel settings: NVIDIA-NeMo/Megatron-Bridge
-- docs/performance-summary and its archive @067f987. Force-balanced, dropless routing; MTP in DeepSeek-V3 unless said. The newest
-- release of each setting. kernel: its dispatcher; absent: DeepEP or Hybrid-EP (scripts/performance/configs of the time:
-- moe_flex_dispatcher_backend). overlapped: the recipe sets overlap_moe_expert_parallel_comm (src/megatron/bridge/perf_recipes);
-- recompute as there.
--
-- tensor_overlap: Llama's recipes set tp_comm_overlap. cuda_graphs: the skill's tuned runs capture attention and router, as
-- the recipes for Blackwell do.
--
-- batch and micro_batch in sequences, tokens per second per GPU.

local columns = { "model", "accelerator", "gpus", "precision", "batch", "micro_batch", "sequence", "tensor", "pipeline", "context",
                  "virtual", "expert", "tokens_per_second", "release", "overlapped", "recompute", "kernel" }

local up, none, norm_activation = { mla_up_projection = true }, {}, { norm = true, activation = true }
local plain = "nccl_alltoall"  -- no moe_flex_dispatcher_backend in the recipe

local rows = {
  { "llama3.1-405b", "H100", 1024, "fp8", 1536, 1, 8192, 8, 8, 2, 8, 1, 326, "26.06", tensor_overlap = 0.7 },
  { "llama3-70b", "H100", 64, "fp8", 256, 1, 8192, 4, 8, 1, 5, 1, 1633, "26.04", tensor_overlap = 0.7 },
  { "qwen3-235b", "H100", 256, "fp8", 8192, 1, 4096, 2, 8, 1, 4, 32, 1686, "26.04", true, none, plain },
  { "qwen3-30b", "H100", 16, "fp8", 1024, 1, 4096, 1, 1, 1, 1, 16, 8960, "26.04.01" },
  { "qwen3-30b", "H100", 16, "fp8", 1024, 1, 4096, 1, 2, 1, 12, 8, 9058, "26.02.01", true, none, plain },
  -- skills/nemo-mbridge-perf-moe-hardware-configs: 244.039, 287.305 and, all knobs tuned, 299.352 TFLOP/s (20.14729 s a step)
  { "qwen3-30b", "H100", 16, "bf16", 1024, 1, 4096, 1, 1, 1, 1, 16, 10607, "skill" },
  { "qwen3-30b", "H100", 16, "bf16", 1024, 1, 4096, 1, 1, 1, 1, 16, 12488, "skill", true, none, cuda_graphs = true },
  { "qwen3-30b", "H100", 16, "bf16", 1024, 1, 4096, 1, 1, 1, 1, 16, 13012, "skill", true, none, cuda_graphs = true },
  { "gpt-oss-120b", "H100", 64, "bf16", 1280, 1, 4096, 1, 4, 1, 1, 8, 5993, "26.02", false, norm_activation, plain },

  { "llama3.1-405b", "B200", 128, "fp8", 64, 1, 8192, 4, 8, 2, 8, 1, 661, "25.11", tensor_overlap = 0.7 },
  { "deepseek-v3", "B200", 256, "fp8", 4096, 1, 4096, 1, 8, 1, 2, 32, 3328, "26.04.01", true, up },
  { "deepseek-v3", "B200", 256, "fp8", 4096, 1, 4096, 1, 16, 1, 1, 8, 2815, "26.04", false, up, plain },
  { "qwen3-235b", "B200", 256, "fp8", 8192, 1, 4096, 1, 8, 1, 1, 8, 3776, "26.04.01", false, none, plain },
  { "qwen3-30b", "B200", 8, "fp8", 512, 8, 4096, 1, 1, 1, 1, 8, 30720, "26.04.01" },
  { "gpt-oss-120b", "B200", 64, "bf16", 1280, 4, 4096, 1, 1, 1, 1, 8, 13568, "26.04.01", false, norm_activation, plain },

  { "deepseek-v3", "B300", 256, "fp8", 4096, 2, 4096, 1, 8, 1, 1, 8, 3541, "26.06", false, up },
  { "deepseek-v3", "B300", 256, "fp8", 4096, 1, 4096, 1, 16, 1, 1, 8, 2983, "26.02", false, up },
  { "qwen3-235b", "B300", 256, "fp8", 8192, 1, 4096, 1, 8, 1, 4, 8, 2691, "26.02", true, none, plain },
  { "qwen3-30b", "B300", 8, "fp8", 512, 8, 4096, 1, 1, 1, 1, 8, 40769, "26.06" },

  { "llama3.1-405b", "GB200", 256, "fp8", 1536, 1, 8192, 4, 16, 1, 4, 1, 842, "26.04", tensor_overlap = 0.7 },
  { "llama3.1-405b", "GB200", 256, "fp8", 1536, 1, 8192, 4, 16, 1, 8, 1, 800, "26.04.01", tensor_overlap = 0.7 },
  { "deepseek-v3", "GB200", 256, "fp8", 4096, 1, 4096, 1, 4, 1, 4, 64, 4256, "26.04.01", false, up },
  { "deepseek-v3 without MTP", "GB200", 256, "bf16", 4096, 1, 4096, 1, 4, 1, 4, 64, 3139, "25.11", false, up },
  { "qwen3-235b", "GB200", 256, "fp8", 8192, 1, 4096, 1, 8, 1, 3, 32, 5680, "26.04.01", true, none },
  { "qwen3-235b", "GB200", 256, "bf16", 8192, 1, 4096, 1, 8, 1, 3, 32, 4916, "25.11" },
  { "gpt-oss-120b", "GB200", 64, "bf16", 1280, 4, 4096, 1, 1, 1, 1, 64, 16640, "26.04.01", false, norm_activation, plain },

  { "llama3.1-405b", "GB300", 256, "fp8", 1536, 1, 8192, 4, 8, 1, 4, 1, 1048, "26.06", tensor_overlap = 0.7 },
  { "llama3-70b", "GB300", 64, "fp8", 256, 1, 8192, 1, 4, 1, 5, 1, 4864, "26.04.01", tensor_overlap = 0.7 },
  { "deepseek-v3", "GB300", 256, "fp8", 4096, 1, 4096, 1, 2, 1, 8, 32, 6288, "26.08" },
  { "deepseek-v3", "GB300", 256, "fp8", 15360, 1, 4096, 1, 2, 1, 8, 32, 6422, "26.06" },
  { "deepseek-v3 without MTP", "GB300", 256, "bf16", 4096, 1, 4096, 1, 2, 1, 4, 32, 3848, "25.11", false, { activation = true } },
  { "qwen3-235b", "GB300", 256, "fp8", 8192, 2, 4096, 1, 4, 1, 12, 32, 8816, "26.08", true, none },
  { "qwen3-235b", "GB300", 256, "bf16", 8192, 2, 4096, 1, 4, 1, 12, 16, 6131, "25.11" },
  { "kimi-k2", "GB300", 256, "fp8", 4096, 2, 4096, 1, 4, 1, 4, 64, 5372, "26.06" },
  { "qwen3-30b", "GB300", 8, "fp8", 512, 8, 4096, 1, 1, 1, 1, 8, 45275, "26.06" },
  { "gpt-oss-120b", "GB300", 64, "bf16", 1280, 4, 4096, 1, 1, 1, 1, 64, 19412, "26.02", false, none, plain },
}

local list = {}
for i, row in ipairs(rows) do
  local entry = {}
  for c, column in ipairs(columns) do entry[column] = row[c] end
  entry.tensor_overlap = row.tensor_overlap
  entry.cuda_graphs = row.cuda_graphs or entry.accelerator ~= "H100"
  list[i] = entry
end
return list

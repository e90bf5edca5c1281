-- SPDX-License-Identifier: Apache-2.0
-- zero_bubble.lua: sail-sg's fork of Megatron-LM: what differs from it. sail-sg/zero-bubble-pipeline-parallelism @39f2c186. It forked before
-- there was a layout string, and without Transformer Engine.

local derive = require "pipeplan.catalog.frameworks.derive"
local megatron = require "pipeplan.catalog.frameworks.megatron"

local source = "https://github.com/sail-sg/zero-bubble-pipeline-parallelism/tree/39f2c18, arguments.py, zbpp_utils.py"

return derive(megatron, {
  name = "zero-bubble", title = "sail-sg zero-bubble fork of Megatron",
  versions = { { name = "@39f2c186", what = "sail-sg/zero-bubble-pipeline-parallelism, main" } },
  schedules = {
    ["1f1b"] = { flag = "--pipeline-model-parallel-size" },
    interleaved_1f1b = { flag = "--num-layers-per-virtual-pipeline-stage" },
    interleaved_1f1b_overlap = false,
    zb_h1 = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward P" },
    zb_h2 = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward 2P" },
    zb_v = { flag = "--zero-bubble-v-schedule" },
    zb_auto = { flag = "--enable-zero-bubble --zero-bubble-max-pending-backward {limit}" },
    v_half = { flag = "--zero-bubble-v-schedule --zero-bubble-v-schedule-mem-setup half" },
    v_min = { flag = "--zero-bubble-v-schedule --zero-bubble-v-schedule-mem-setup min" },
  },
  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "beside TP, when asked for",
          tied_embeddings = false },
  layers = { how = "even", source = source },
  sharding = { alone = { 0, 1 }, with_pipeline = { 0, 1 }, bucket = 40e6, bucket_per_rank = 1e6, source = source },
  weight_gradients = require("pipeplan.catalog.frameworks.torch").weight_gradients,
  defaults = { expert_tensor = "tensor", zero = 0, moments = "fp32", gradients = "fp32", precision = "fp32", sequence_parallel = false,
               source = source },
  plan_rules = {
    { id = "zero_bubble.expert_tensor", architecture = "moe",
      when = function(f) return f.expert_tensor_parallel ~= f.tensor_parallel end,
      message = "{framework} splits experts as it splits the rest: ETP is {expert_tensor_parallel}, TP {tensor_parallel}",
      nearest = function(f) return { field = "expert_tensor_parallel", value = f.tensor_parallel } end,
      source = "https://github.com/sail-sg/zero-bubble-pipeline-parallelism/tree/39f2c18, megatron/core/transformer/moe/experts.py" },
  },
  notes = "padding layers with --allow-padding-num-layers; no Transformer Engine",
  source = source,
}, function() return {
  dropped = { "--pipeline-model-parallel-layout", "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
              "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split", "--expert-tensor-parallel-size",
              "--num-virtual-stages-per-pipeline-rank", "--microbatch-group-size-per-virtual-pipeline-stage",
              "--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute", "--step-batch-size-schedule", "--hybrid-layer-pattern",
              "--mamba-num-heads", "--mamba-head-dim", "--mamba-num-groups", "--mamba-state-dim",
              "--use-precision-aware-optimizer", "--main-grads-dtype", "--main-params-dtype",
              "--hierarchical-context-parallel-sizes", "--cp-comm-type", "--exp-avg-dtype", "--exp-avg-sq-dtype",
              "--optimizer-cpu-offload", "--optimizer-offload-fraction", "--mtp-num-layers", "--multi-latent-attention",
              "--q-lora-rank", "--kv-lora-rank", "--use-megatron-fsdp", "--ckpt-format", "--data-parallel-sharding-strategy",
              "--num-distributed-optimizer-instances", "--fp8-param-gather", "--megatron-fsdp-main-grads-dtype" },
  keys = {
    { key = "--enable-zero-bubble", type = "flag", present = true, default = false, written = "differs" },
    { key = "--zero-bubble-v-schedule", type = "flag", present = true, default = false, written = "differs" },
    { key = "--zero-bubble-v-schedule-mem-setup", field = "parallelism.schedule", type = "choice", values = { "zb", "half", "min" },
      written = "differs" },
    { key = "--zero-bubble-max-pending-backward", field = "plan.activation_limit_chunks", type = "integer", written = "differs" },
    { key = "--allow-padding-num-layers", type = "flag", present = true, default = false, written = "never" },
  },
} end)

-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: DeepSpeed's pipeline. C = deepspeed/runtime/config.py, E = deepspeed/runtime/pipe/engine.py, M = deepspeed/runtime/pipe/
-- module.py, U = deepspeed/runtime/utils.py of PyPI deepspeed 0.19.8, G = deepspeed/utils/groups.py; "run": seen on a CPU. The file is HJSON.
-- P, TP, layers and model stand in Python (PipelineModule) or in the launcher's flags, not in the file.

local function at(where) return "https://github.com/deepspeedai/DeepSpeed/tree/edaa7221, " .. where end

local lists = require "pipeplan.base.lists"
local megatron = require "pipeplan.catalog.frameworks.megatron"

return {
  name = "deepspeed", title = "DeepSpeed",
  versions = { { name = "0.19.8", what = "PyPI deepspeed, October 2026; deepspeedai/DeepSpeed @edaa7221" } },
  schedules = { ["1f1b"] = { flag = "PipelineModule" } },
  names = { microbatches = "gradient_accumulation_steps", pipeline = "num_stages" },

  has = { tensor = true, context = true, expert = true, expert_tensor = true, sequence_parallel = false, tied_embeddings = true },
  -- partition_method type:REGEX of the decoder layer's class: as even as can be, the first stages one more (U: partition_balanced)
  layers = { how = "remainder_first", key = "partition_method", source = at "pipe/module.py: _partition_layers; runtime/utils.py: partition_uniform, partition_balanced: run" },
  sharding = { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1 }, source = at "pipe/engine.py:77; https://github.com/deepspeedai/DeepSpeed/issues/823 and issues/568" },
  overlap = { gradients = "zero_optimization.overlap_comm, without a pipeline", source = at "runtime/config.py" },
  defaults = { expert_tensor = 1, zero = 0, moments = "fp32", gradients = "fp32", precision = "fp32", sequence_parallel = false,
               source = at "runtime/config.py; utils/groups.py: expert_tensor_parallel_world_size" },
  communicators = { "tensor", "pipeline", "data", "expert", "expert data", "neighbours in the pipeline", source = at "utils/groups.py; runtime/pipe/p2p.py" },
  host_floor = lists.with(megatron.host_floor, { gap = 2.1e-3,
    source = "as Megatron; gap: https://github.com/bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md, nine steps of 21 February 2022: 12 layers take 90 ms a microbatch beside their work" }),

  keys = {
    { key = "train_batch_size", field = "training.global_batch_size", type = "integer", written = "always",
      note = "any two of these three give the third, by floor division, and then their product is asserted (runtime/config.py:592-650)" },
    { key = "train_micro_batch_size_per_gpu", field = "training.micro_batch_size", type = "integer", written = "always" },
    { key = "gradient_accumulation_steps", field = "parallelism.microbatches", type = "integer", written = "always", note = "M (pipe/engine.py:105)" },
    { key = "zero_optimization.stage", field = "training.zero", type = "integer", default = 0, written = "differs", silent = true,
      note = "at most 1 with a pipeline (pipe/engine.py:77)" },
    { key = "zero_optimization.offload_optimizer.device", field = "training.optimizer_offload", type = "choice", values = { "cpu", "nvme" },
      written = "differs" },
    { key = "bf16.enabled", field = "training.precision", type = "flag", present = "bf16", default = "fp32", written = "differs" },
    { key = "fp16.enabled", field = "training.precision", type = "flag", present = "fp16", default = "fp32", written = "differs" },
    { key = "data_types.grad_accum_dtype", field = "training.gradients", type = "choice", values = { "fp32", "bf16", "fp16" },
      written = "differs" },
    { key = "pipeline.stages", type = "integer", default = "auto", written = "never", note = "PipelineModule does not read it" },
    { key = "pipeline.partition", type = "string", default = "best", written = "never", note = "PipelineModule does not read it" },
    { key = "pipeline.activation_checkpoint_interval", field = "training.recompute", type = "integer", default = 0, written = "differs",
      note = "every so many layers are computed again; 0: none" },
    { key = "pipeline.pipe_partitioned", type = "flag", present = true, default = true, written = "never" },
    { key = "pipeline.grad_partitioned", type = "flag", present = true, default = true, written = "never" },
    { key = "pipeline.use_reentrant", type = "flag", present = true, default = true, written = "never" },
    { key = "activation_checkpointing", type = "section", written = "never" },
    { key = "sequence_parallel_size", field = "parallelism.context", type = "integer", default = 1, written = "differs" },
    { key = "tensor_parallel.autotp_size", field = "parallelism.tensor", type = "integer", default = 0, written = "never" },
    { key = "num_stages", field = "parallelism.pipeline", type = "integer", written = "always", note = "an argument of PipelineModule" },
    { key = "partition_method", field = "parallelism.layers_per_stage", type = "string", default = "parameters", written = "always",
      values = { "uniform", "parameters", "type:REGEX" }, note = "an argument of PipelineModule; its items are all layers, embedding, norm and head too" },
  },
  gone = {},

  rules = {
    { id = "deepspeed.world", by = "engine",
      when = function(f) return f.gpus % (f.pipeline_parallel * f.tensor_parallel) ~= 0 end,
      message = "{framework}: {gpus} GPUs do not divide by P {pipeline_parallel} × TP {tensor_parallel}", source = at "pipe/engine.py:105" },
    { id = "deepspeed.zero", pipeline_parallel = { over = 1 }, zero = { over = 1 },
      message = "{framework}: ZeRO {zero} does not go together with a pipeline", source = at "pipe/engine.py:77" },
    { id = "deepspeed.expert_groups", expert_parallel = { over = 1 }, data_parallel = { not_multiple_of = "expert_parallel" },
      message = "{framework} makes expert groups of data-parallel ranks: EP {expert_parallel} does not divide DP {data_parallel}",
      source = at "utils/groups.py: _create_expert_data_and_model_parallel" },
  },
  notes = "refuses ZeRO-2 and ZeRO-3 with a pipeline (https://github.com/deepspeedai/DeepSpeed/issues/823, issues/568); DualPipeV: open, pull/8576",
  source = "https://github.com/deepspeedai/DeepSpeed/tree/edaa722, runtime/pipe",
}

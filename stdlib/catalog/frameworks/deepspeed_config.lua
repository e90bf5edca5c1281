-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_config.lua: what of DeepSpeed 0.19.8 only who reads or writes its configuration asks for: its keys, what became of old ones, and rules that no plan
-- breaks. Names of files as in deepspeed.lua.

local parts = require "pipeplan.catalog.frameworks.parts"
local rules = require "pipeplan.catalog.frameworks.deepspeed_rules"
local writes = require "pipeplan.catalog.frameworks.deepspeed_writes"

local function at(where) return "https://github.com/deepspeedai/DeepSpeed/tree/v0.19.8, deepspeed/" .. where end

local function gone(key, now) return { key = key, how = "refused", now = now, source = at "runtime/config.py:81-146: run" } end

-- plan_rules: those that plans are held against.
return function(plan_rules) return {
  keys = {
    { key = "train_batch_size", field = "training.global_batch_size", type = "integer", written = "always",
      note = "any two of these three give the third, by floor division, and then their product is asserted (runtime/config.py:590-650)" },
    { key = "train_micro_batch_size_per_gpu", field = "training.micro_batch_size", type = "integer", written = "always" },
    { key = "gradient_accumulation_steps", field = "parallelism.microbatches", type = "integer", written = "always", note = "M (runtime/pipe/engine.py:93)" },
    { key = "zero_optimization.stage", field = "training.zero", type = "integer", values = { 0, 1, 2, 3 }, default = 0, written = "differs", silent = true,
      note = "at most 1 with a pipeline (runtime/pipe/engine.py:76)" },
    { key = "zero_optimization.offload_optimizer.device", field = "training.optimizer_offload", type = "choice",
      values = { "none", "cpu", "nvme" }, default = "none", written = "differs" },
    { key = "zero_optimization.offload_optimizer.ratio", type = "number", default = 1.0, written = "never", note = "of stage 3 alone" },
    { key = "zero_optimization.offload_param.device", type = "choice", values = { "none", "cpu", "nvme" }, default = "none", written = "never",
      unread = { field = "training", what = "parameters in host memory or on disks" } },
    { key = "zero_optimization.overlap_comm", type = "flag", present = true, default = false, written = "never", note = "absent: with stage 3" },
    { key = "zero_optimization.legacy_stage1", type = "flag", present = true, default = false, written = "never" },
    { key = "zero_optimization.compute_grad_norm", type = "flag", present = true, default = true, written = "never" },
    { key = "bf16.enabled", field = "training.precision", type = "flag", present = "bf16", default = "fp32", written = "differs" },
    { key = "bf16.bf16_master_weights_and_grads", type = "flag", present = true, default = false, written = "never",
      assumed = { field = "training.optimizer", value = "master weights in fp32", why = "keeps them in bf16" } },
    { key = "bf16.bf16_optimizer_states", field = "training.moments", type = "flag", present = "bf16", default = "fp32", written = "never" },
    { key = "fp16.enabled", type = "flag", present = "fp16", default = "fp32", written = "differs" },
    { key = "fp16.fp16_master_weights_and_grads", type = "flag", present = true, default = false, written = "never",
      assumed = { field = "training.optimizer", value = "master weights in fp32", why = "keeps them in fp16" } },
    { key = "optimizer.type", field = "training.optimizer", type = "string", written = "never" },
    { key = "torch_autocast.enabled", type = "flag", present = true, default = false, written = "never" },
    { key = "data_types.grad_accum_dtype", field = "training.gradients", type = "choice", values = { "fp32", "bf16", "fp16" },
      written = "differs", silent = true, note = "absent: the model's (runtime/engine.py:1803)" },
    { key = "gradient_allreduce_op", type = "choice", values = { "mean", "sum" }, default = "mean", written = "never" },
    { key = "gradient_clipping", type = "number", default = 1.0, written = "never" },
    { key = "managed_gradient_accumulation", type = "flag", present = true, default = true, written = "never" },
    { key = "pipeline.stages", type = "integer", written = "never", note = "nobody reads it" },
    { key = "pipeline.partition", type = "string", written = "never", note = "nobody reads it" },
    { key = "pipeline.activation_checkpoint_interval", field = "training.recompute", type = "integer", default = 0, written = "differs",
      note = "every so many layers are computed again, over what PipelineModule was given; 0: as that says" },
    { key = "pipeline.pipe_partitioned", type = "flag", present = true, default = true, written = "never" },
    { key = "pipeline.grad_partitioned", type = "flag", present = true, default = true, written = "never" },
    { key = "pipeline.use_reentrant", type = "flag", present = true, default = true, written = "never" },
    { key = "sequence_parallel_size", field = "parallelism.context", type = "integer", default = 1, written = "differs",
      note = "Ulysses, without a pipeline" },
    { key = "data_parallel_size", type = "integer", written = "differs", note = "beside sequence_parallel_size, for a mesh of both (__init__.py:543)" },
    { key = "tensor_parallel.autotp_size", type = "integer", default = 0, written = "differs", note = "without a pipeline" },
    { key = "expert_parallel.enabled", type = "flag", present = true, default = false, written = "differs", note = "AutoEP, without a pipeline" },
    { key = "expert_parallel.autoep_size", type = "integer", default = 1, written = "differs" },
    { key = "expert_parallel.expert_tensor_parallel_size", type = "integer", default = 1, written = "never" },

    { key = "PipelineModule.num_stages", field = "parallelism.pipeline", type = "integer", written = "always", note = "1: no PipelineModule" },
    { key = "PipelineModule.partition_method", type = "string", default = "parameters", written = "pipeline",
      values = { "uniform", "parameters", "type:REGEX" }, note = "its items are all layers, embedding, norm and head too" },
    { key = "PipelineModule.activation_checkpoint_interval", type = "integer", default = 0, written = "never" },
    { key = "PipeModelDataParallelTopology.num_mp", field = "parallelism.tensor", type = "integer", default = 1, written = "differs" },
    { key = "PipeModelDataParallelTopology.num_dp", field = "parallelism.data", type = "integer", written = "differs" },
    { key = "MoE.ep_size", field = "parallelism.expert", type = "integer", default = 1, written = "differs" },
    { key = "MoE.enable_expert_tensor_parallelism", type = "flag", present = true, default = false, written = "differs" },
    { key = "planned.layers_per_stage", field = "parallelism.layers_per_stage", type = "list", written = "always" },
    { key = "planned.sequence_length", base = "--seq-length", field = "training.sequence_length", type = "integer", written = "always" },
  },
  facts = { fp16_enabled = "fp16.enabled", bf16_enabled = "bf16.enabled", bf16_states = "bf16.bf16_optimizer_states",
            bf16_master = "bf16.bf16_master_weights_and_grads", fp16_master = "fp16.fp16_master_weights_and_grads",
            gradient_op = "gradient_allreduce_op", managed = "managed_gradient_accumulation", autotp = "tensor_parallel.autotp_size",
            legacy_stage1 = "zero_optimization.legacy_stage1", grad_norm = "zero_optimization.compute_grad_norm",
            overlap_comm = "zero_optimization.overlap_comm", offload_device = "zero_optimization.offload_optimizer.device",
            offload_ratio = "zero_optimization.offload_optimizer.ratio", json_stages = "pipeline.stages", json_partition = "pipeline.partition",
            partition_method = "PipelineModule.partition_method", clipping = "gradient_clipping",
            said_batch = "train_batch_size", said_ranks = "data_parallel_size",
            native_experts = "MoE.ep_size" },
  -- of the program's model and optimizer
  told = { dropout = true, weight_gradients = true,
           unfused = { activation = true, attention = true, experts = true, norm = true, optimizer = true, rope = true } },
  writes = writes.keys, unsaid = writes.unsaid,
  gone = {
    gone "nebula", gone "compression_training", gone("amp", "fp16, bf16 or torch_autocast"), gone "quantize_training", gone "sparse_gradients",
    gone "eigenvalue", gone "sparse_attention",
    gone("elasticity", "train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps"), gone "graph_harvesting",
    gone("curriculum_learning", "data_efficiency.data_sampling.curriculum_learning"), gone "progressive_layer_drop",
    gone "zero_optimization.mics_shard_size", gone "zero_optimization.mics_hierarchical_params_gather", gone "zero_optimization.zeropp_loco_param",
  },
  accepts = { by = "DeepSpeed 0.19.8: `DeepSpeedConfig`, `PipelineModule`", test = "deepspeed_plans_test.py" },

  rules = parts.placed(plan_rules, rules),
} end

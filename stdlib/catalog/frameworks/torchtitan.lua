-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: torchtitan. C = torchtitan/config/configs.py, T = torchtitan/trainer.py, PP = torchtitan/distributed/pipeline_parallel.py,
-- D = torchtitan/distributed/parallel_dims.py of the PyPI package 0.3.0, S = torch/distributed/pipelining/schedules.py of PyTorch 2.13;
-- "run": seen with both on a CPU.

local rules = require "pipeplan.catalog.frameworks.torchtitan_rules"
local torch = require "pipeplan.catalog.frameworks.torch"
local writes = require "pipeplan.catalog.frameworks.torchtitan_writes"

local function at(where) return "https://github.com/pytorch/torchtitan/tree/v0.3.0, " .. where end

-- PyTorch's runtime executes any program of loop placement, or of a V of two stages a rank. The name beside the CSV decides the placement
-- (PP:560).
local function csv(name)
  return { flag = "parallelism.pipeline_parallel_schedule_csv, parallelism.pipeline_parallel_schedule " .. name, csv = true, name = name,
           since = "PyTorch 2.14" }
end

-- Its trainer hands microbatches on (trainer.py:856), which PyTorch takes since 2.14 (https://github.com/pytorch/pytorch/pull/188500).
local function named(name) return { flag = "parallelism.pipeline_parallel_schedule " .. name, name = name, since = "PyTorch 2.14" } end

return {
  name = "torchtitan", title = "torchtitan",
  versions = {
    { name = "0.3.0", what = "PyPI torchtitan, September 2026: what these facts are of; with a pipeline beside PyTorch 2.14: its trainer hands microbatches on (trainer.py:856), which 2.13 takes for arguments of the model (https://github.com/pytorch/pytorch/pull/188500)" },
    { name = "main @b5bcd76c", what = "21 August 2026: other names for the batch, M is parallelism.num_pp_microbatches" },
  },
  schedules = {
    gpipe = named "GPipe", looped_bfs = named "LoopedBFS", ["1f1b"] = named "1F1B",
    interleaved_1f1b = named "Interleaved1F1B", interleaved_zero_bubble = named "InterleavedZeroBubble",
    zb_h1 = csv "PipelineScheduleSingle", zb_h2 = csv "PipelineScheduleSingle", zb_auto = csv "PipelineScheduleSingle",
    v_half = csv "ZBVZeroBubble", v_min = csv "ZBVZeroBubble",
    zb_v = named "ZBVZeroBubble", dualpipev = named "DualPipeV",
  },
  names = { microbatches = "training.local_batch_size / parallelism.pipeline_parallel_microbatch_size",
            pipeline = "parallelism.pipeline_parallel_degree" },
  rounds = true,

  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "on", tied_embeddings = false },
  layers = { how = "names", key = "parallelism.module_fqns_per_model_part",
             source = at "pipeline_parallel.py:403-427: evenly, the first and last stage fewer; module_fqns_per_model_part says any other split" },
  -- gradients are reduced behind each microbatch, in a pipeline behind the last
  sharding = { alone = { 0, 2, 3 }, with_pipeline = { 0, 1, 3 }, master = true,
               source = "https://github.com/pytorch/torchtitan/issues/562; torch/distributed/pipelining/stage.py: backward_maybe_with_nosync; docs/fsdp.md, MixedPrecisionPolicy: parameters are stored in fp32 and cast at the gather" },
  recompute = { per_weight = true, source = torch.recompute.source },
  overlap = { data = 0.7, gradients = "FSDP's own", parameters = "FSDP's own; with a pipeline parameters stay unsharded between microbatches",
              source = at "configs.py: parallelism.fsdp_reshard_after_forward" },
  defaults = { expert_tensor = 1, zero = 3, moments = "fp32", gradients = "fp32", precision = "bf16", sequence_parallel = true,
               source = at "parallel_dims.py:186: EP borrows from shards, CP and TP" },
  communicators = { "tensor", "context", "data", "pipeline", "expert", "expert_data", source = at "parallel_dims.py" },
  host_floor = torch.host_floor,

  -- A configuration function sets keys otherwise than the classes (llama3_70b: TP 8; deepseek_v3_671b: Interleaved1F1B): what a plan
  -- decides is written whatever the default is.
  keys = {
    { key = "module", type = "string", written = "always" },
    { key = "config", type = "string", written = "always", note = "a function of the module's config_registry.py" },
    { key = "parallelism.pipeline_parallel_degree", base = "--pipeline-model-parallel-size", field = "parallelism.pipeline",
      type = "integer", default = 1, written = "always" },
    { key = "parallelism.tensor_parallel_degree", base = "--tensor-model-parallel-size", field = "parallelism.tensor", type = "integer",
      default = 1, written = "always" },
    { key = "parallelism.context_parallel_degree", base = "--context-parallel-size", field = "parallelism.context", type = "integer",
      default = 1, written = "always" },
    { key = "parallelism.expert_parallel_degree", base = "--expert-model-parallel-size", field = "parallelism.expert", type = "integer",
      default = 1, written = "always" },
    { key = "parallelism.data_parallel_replicate_degree", field = "training.replicas", type = "integer", default = 1, written = "always",
      silent = true },
    { key = "parallelism.data_parallel_shard_degree", field = "parallelism.data", type = "integer", default = -1, written = "always",
      note = "-1: what is left" },
    { key = "parallelism.fsdp_reshard_after_forward", field = "training.reshard", type = "choice",
      values = { "default", "always", "never" }, default = "default", written = "always", silent = true, value = writes.resharding,
      note = "default: only without a pipeline" },
    { key = "parallelism.enable_sequence_parallel", base = "--sequence-parallel", field = "plan.sequence_parallel", type = "flag",
      present = true, default = true, written = "always", note = "beside TP" },
    { key = "parallelism.pipeline_parallel_schedule", field = "parallelism.schedule", type = "choice", default = "1F1B", written = "always",
      values = { "1F1B", "Interleaved1F1B", "GPipe", "LoopedBFS", "InterleavedZeroBubble", "PipelineScheduleSingle",
                 "PipelineScheduleMulti", "ZBVZeroBubble", "DualPipeV" }, note = "whatever its case (schedules.py:3620)" },
    { key = "parallelism.pipeline_parallel_schedule_csv", type = "path", default = "", written = "differs" },
    { key = "parallelism.pipeline_parallel_microbatch_size", field = "training.micro_batch_size", type = "integer", default = 1,
      written = "pipeline" },
    { key = "parallelism.module_fqns_per_model_part", field = "parallelism.layers_per_stage", type = "list", written = "pipeline",
      note = "one word a stage, its modules with commas between: it also decides how many stages there are" },
    { key = "parallelism.pipeline_parallel_layers_per_stage", type = "integer", written = "never",
      note = "absent: one stage a rank for 1F1B and GPipe, two for others" },
    { key = "parallelism.pipeline_parallel_first_stage_less_layers", type = "integer", default = 1, written = "never" },
    { key = "parallelism.pipeline_parallel_last_stage_less_layers", type = "integer", default = 1, written = "never" },
    { key = "parallelism.context_parallel_load_balancer", type = "string", default = "headtail", written = "never" },
    { key = "parallelism.context_parallel_ptrr_mask_key", type = "string", written = "never" },
    { key = "parallelism.enable_fsdp_symm_mem", type = "flag", present = true, default = false, written = "never" },
    { key = "parallelism.spmd_backend", type = "choice", values = { "partial_dtensor", "full_dtensor", "spmd_types" },
      default = "spmd_types", written = "never" },
    { key = "training.local_batch_size", field = "plan.local_batch_size", type = "integer", default = 8, written = "always",
      note = "M × microbatch size: the pipeline fills and drains once for each (trainer.py:422)" },
    { key = "training.global_batch_size", field = "training.global_batch_size", type = "integer", default = -1, written = "always",
      note = "-1: local × DP; more is accumulated around the pipeline" },
    { key = "training.seq_len", base = "--seq-length", field = "training.sequence_length", type = "integer", default = 2048,
      written = "always" },
    { key = "training.disable_cuda_graphs", type = "flag", present = true, default = false, written = "always", silent = true,
      value = function(training, _, plan) return writes.without_graphs(training, plan) or nil end,
      note = "CUDA graphs are on by default and refused with a pipeline (trainer.py:185)" },
    { key = "training.dtype", type = "choice", values = { "bfloat16", "float32" }, default = "float32", written = "differs",
      note = "of parameters, gradients and moments" },
    { key = "training.mixed_precision_param", field = "training.precision", type = "choice", values = { "bfloat16", "float32" },
      default = "bfloat16", written = "always" },
    { key = "training.mixed_precision_reduce", field = "training.gradients", type = "choice", values = { "float32" }, default = "float32",
      written = "never" },
    { key = "training.enable_cpu_offload", type = "flag", present = true, default = false, written = "never" },
    { key = "training.steps", type = "integer", default = 10000, written = "always" },
    { key = "training.max_norm", type = "number", default = 1.0, written = "never" },
    { key = "training.gc_freq", type = "integer", default = 50, written = "never" },
    { key = "training.gc_debug", type = "flag", present = true, default = false, written = "never" },
    { key = "optimizer.implementation", field = "training.moments", type = "choice", default = "fused", written = "always",
      values = { "for-loop", "foreach", "fused", "fused_opt_states_bf16" } },
    { key = "compile.enable", type = "flag", present = true, default = false, written = "always",
      note = "what fuses norms and activations, as a plan counts them unless training.unfused says otherwise" },
    { key = "compile.components", type = "string", default = "model,loss", written = "always", note = "one word, with commas between" },
    { key = "compile.backend", type = "string", default = "inductor", written = "never" },
    { key = "compile.enable_async_tensor_parallel", type = "flag", present = true, default = false, written = "never",
      note = "wants compile.enable and model in compile.components" },
    { key = "comm.mode", type = "choice", values = { "default", "fake_backend", "local_tensor", "torchcomms" }, default = "default",
      written = "never" },
    { key = "comm.init_timeout_seconds", type = "integer", default = 300, written = "never" },
    { key = "comm.train_timeout_seconds", type = "integer", default = 100, written = "never" },
    { key = "debug.spmd_typechecking", type = "flag", present = true, default = false, written = "never" },
    { key = "activation_checkpoint", field = "training.recompute", type = "class", values = { "selective", "full", "memory-budget", "none" },
      written = "always", note = "activation_checkpoint:full, behind all others: what follows belongs to it" },
  },
  facts = { sequence_parallel = "--sequence-parallel", disable_cuda_graphs = "training.disable_cuda_graphs", spmd_typechecking = "debug.spmd_typechecking",
            compiled = "compile.enable", components = "compile.components", async_tensor = "compile.enable_async_tensor_parallel" },
  writes = writes.keys, unsaid = writes.unsaid,
  gone = {
    { key = "job.config_file", how = "unrecognized", now = "--module and --config", source = "https://github.com/pytorch/torchtitan/issues/2386" },
    { key = "parallelism.pipeline_parallel_microbatches", how = "unrecognized", now = "parallelism.pipeline_parallel_microbatch_size",
      source = "https://github.com/pytorch/torchtitan/issues/1073" },
    { key = "parallelism.num_pp_microbatches", how = "unrecognized", now = "parallelism.pipeline_parallel_microbatch_size",
      source = "https://github.com/pytorch/torchtitan/tree/b5bcd76c has it, 0.3.0 refuses it: run" },
    { key = "parallelism.pipeline_parallel_split_points", how = "unrecognized", now = "parallelism.module_fqns_per_model_part",
      source = at "config/configs.py: ParallelismConfig.module_fqns_per_model_part: run" },
    { key = "parallelism.enable_async_tensor_parallel", how = "unrecognized", now = "compile.enable_async_tensor_parallel",
      source = at "config/configs.py: CompileConfig: run" },
    { key = "parallelism.expert_tensor_parallel_degree", how = "unrecognized", source = at "distributed/parallel_dims.py:170-186: run" },
    { key = "training.seed", how = "unrecognized", now = "debug.seed", source = at "config/configs.py: DebugConfig: run" },
    { key = "parallelism.expert_parallel_comm_backend", how = "unrecognized", now = "the configuration function", source = at "config/configs.py: run" },
    { key = "activation_checkpoint.mode", how = "unrecognized", now = "activation_checkpoint:full", source = at "distributed/activation_checkpoint.py: run" },
    { key = "training.deterministic", how = "unrecognized", now = "debug.deterministic", source = at "config/configs.py: DebugConfig: run" },
  },

  accepts = { by = "torchtitan 0.3.0: configuration, stages, schedule, CSV", test = "torchtitan_plans_test.py" },
  rules = rules,
  notes = "composes fully sharded data parallelism with a pipeline (https://github.com/pytorch/torchtitan/issues/562); M ≥ stages, or 1F1B hangs in older versions (issues/775)",
  source = at "config/configs.py, config/manager.py, trainer.py, distributed/pipeline_parallel.py",
}

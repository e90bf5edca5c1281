-- SPDX-License-Identifier: Apache-2.0
-- torchtitan.lua: torchtitan. C = torchtitan/config/configs.py, T = torchtitan/trainer.py, PP = torchtitan/distributed/pipeline_parallel.py,
-- D = torchtitan/distributed/parallel_dims.py of the PyPI package 0.3.0, S = torch/distributed/pipelining/schedules.py of PyTorch 2.13;
-- "run": seen with both on a CPU.

local torch = require "pipeplan.catalog.frameworks.torch"

local function at(where) return "https://github.com/pytorch/torchtitan/tree/v0.3.0, " .. where end

-- PyTorch's runtime executes any program of loop placement, or of a V of two stages a rank. The name beside the CSV decides the placement
-- (PP:560).
local function csv(name)
  return { flag = "parallelism.pipeline_parallel_schedule_csv, parallelism.pipeline_parallel_schedule " .. name, csv = true }
end

-- With sharded gradients only, parameters stay whole after their first use.
local function resharding(training)
  if training.zero == 2 then return "never" end
  if training.reshard == nil then return nil end
  return training.reshard and "always" or "never"
end

return {
  name = "torchtitan", title = "torchtitan",
  versions = {
    { name = "0.3.0", what = "PyPI torchtitan, September 2026, with PyTorch 2.13: what these facts are of" },
    { name = "main @b5bcd76c", what = "21 August 2026: other names for the batch, M is parallelism.num_pp_microbatches" },
  },
  schedules = {
    gpipe = { flag = "GPipe" }, looped_bfs = { flag = "LoopedBFS" }, ["1f1b"] = { flag = "1F1B" },
    interleaved_1f1b = { flag = "Interleaved1F1B" }, interleaved_zero_bubble = { flag = "InterleavedZeroBubble" },
    zb_h1 = csv "PipelineScheduleSingle", zb_h2 = csv "PipelineScheduleSingle", zb_auto = csv "PipelineScheduleSingle",
    v_half = csv "ZBVZeroBubble", v_min = csv "ZBVZeroBubble",
    zb_v = { flag = "ZBVZeroBubble" }, dualpipev = { flag = "DualPipeV", since = "PyTorch with ScheduleDualPipeV" },
  },
  names = { microbatches = "training.local_batch_size / parallelism.pipeline_parallel_microbatch_size",
            pipeline = "parallelism.pipeline_parallel_degree" },
  rounds = true,

  has = { tensor = true, context = true, expert = true, expert_tensor = false, sequence_parallel = "on", tied_embeddings = false },
  layers = { how = "names", key = "parallelism.module_fqns_per_model_part",
             source = at "pipeline_parallel.py:403-427: evenly, the first and last stage fewer; module_fqns_per_model_part says any other split" },
  sharding = { alone = { 0, 1, 2, 3 }, with_pipeline = { 0, 1, 2, 3 }, master = true,
               source = "https://github.com/pytorch/torchtitan/issues/562; docs/fsdp.md, MixedPrecisionPolicy: parameters are stored in fp32 and cast at the gather" },
  recompute = { per_weight = true, source = torch.recompute.source },
  overlap = { data = 0.7, gradients = "FSDP's own", parameters = "FSDP's own; with a pipeline parameters stay unsharded between microbatches",
              source = at "configs.py: parallelism.fsdp_reshard_after_forward" },
  defaults = { expert_tensor = 1, zero = 3, moments = "fp32", gradients = "fp32", precision = "bf16", sequence_parallel = true,
               source = at "parallel_dims.py:186: EP borrows from shards, CP and TP" },
  communicators = { "pipeline", "replicas", "shards", "context", "tensor", "expert", "loss", source = at "parallel_dims.py" },
  host_floor = torch.host_floor,

  keys = {
    { key = "training.local_batch_size", field = "plan.local_batch_size", type = "integer", default = 8, written = "always",
      note = "M × microbatch size: the pipeline fills and drains once for each (trainer.py:422)" },
    { key = "training.global_batch_size", field = "training.global_batch_size", type = "integer", default = -1, written = "never",
      note = "-1: local × DP; more is accumulated around the pipeline" },
    { key = "training.seq_len", field = "training.sequence_length", type = "integer", default = 2048, written = "always" },
    { key = "training.disable_cuda_graphs", type = "flag", present = true, default = false, written = "pipeline",
      note = "CUDA graphs are on by default and refused with a pipeline (trainer.py:185)" },
    { key = "training.mixed_precision_param", field = "training.precision", type = "choice", values = { "bf16", "fp32" }, default = "bf16",
      written = "differs" },
    { key = "training.mixed_precision_reduce", field = "training.gradients", type = "choice", values = { "fp32", "bf16" }, default = "fp32",
      written = "differs" },
    { key = "parallelism.data_parallel_replicate_degree", field = "training.replicas", type = "integer", default = 1, written = "differs",
      silent = true },
    { key = "parallelism.data_parallel_shard_degree", field = "parallelism.data", type = "integer", default = -1, written = "never",
      note = "-1: what is left" },
    { key = "parallelism.tensor_parallel_degree", field = "parallelism.tensor", type = "integer", default = 1, written = "differs" },
    { key = "parallelism.context_parallel_degree", field = "parallelism.context", type = "integer", default = 1, written = "differs" },
    { key = "parallelism.pipeline_parallel_degree", field = "parallelism.pipeline", type = "integer", default = 1, written = "differs" },
    { key = "parallelism.expert_parallel_degree", field = "parallelism.expert", type = "integer", default = 1, written = "differs" },
    { key = "parallelism.enable_sequence_parallel", field = "plan.sequence_parallel", type = "flag", present = true, default = true,
      written = "never" },
    { key = "parallelism.pipeline_parallel_schedule", field = "parallelism.schedule", type = "choice", default = "1F1B", written = "always",
      values = { "1F1B", "Interleaved1F1B", "GPipe", "LoopedBFS", "InterleavedZeroBubble", "PipelineScheduleSingle",
                 "PipelineScheduleMulti", "ZBVZeroBubble", "DualPipeV" }, note = "whatever its case (schedules.py:3620)" },
    { key = "parallelism.pipeline_parallel_schedule_csv", type = "path", default = "", written = "differs" },
    { key = "parallelism.pipeline_parallel_microbatch_size", field = "training.micro_batch_size", type = "integer", default = 1,
      written = "differs" },
    { key = "parallelism.pipeline_parallel_layers_per_stage", field = "parallelism.layers_per_stage", type = "integer", written = "never",
      note = "absent: one stage a rank for 1F1B and GPipe, two for others" },
    { key = "parallelism.pipeline_parallel_first_stage_less_layers", type = "integer", default = 1, written = "never" },
    { key = "parallelism.pipeline_parallel_last_stage_less_layers", type = "integer", default = 1, written = "never" },
    { key = "parallelism.module_fqns_per_model_part", field = "parallelism.layers_per_stage", type = "list", written = "differs" },
    { key = "parallelism.fsdp_reshard_after_forward", field = "training.reshard", type = "choice", values = { "default", "always", "never" },
      default = "default", written = "differs", silent = true, value = resharding, note = "default: only without a pipeline" },
    { key = "activation_checkpoint", field = "training.recompute", type = "class", written = "differs" },
    { key = "compile.enable", type = "flag", present = true, default = false, written = "never" },
    { key = "compile.components", type = "list", written = "never" },
  },
  gone = {
    { key = "job.config_file", how = "unrecognized", now = "--module and --config", source = "https://github.com/pytorch/torchtitan/issues/2386" },
    { key = "parallelism.pipeline_parallel_microbatches", how = "unrecognized", now = "parallelism.pipeline_parallel_microbatch_size",
      source = "https://github.com/pytorch/torchtitan/issues/1073" },
    { key = "parallelism.num_pp_microbatches", how = "unrecognized", now = "parallelism.pipeline_parallel_microbatch_size",
      source = "https://github.com/pytorch/torchtitan/tree/b5bcd76c has it, 0.3.0 refuses it: run" },
    { key = "parallelism.pipeline_parallel_split_points", how = "unrecognized", now = "parallelism.module_fqns_per_model_part",
      source = "https://github.com/pytorch/torchtitan/releases" },
    { key = "parallelism.enable_async_tensor_parallel", how = "unrecognized", source = "https://github.com/pytorch/torchtitan/releases" },
    { key = "parallelism.expert_tensor_parallel_degree", how = "unrecognized", source = "https://github.com/pytorch/torchtitan/releases" },
    { key = "training.seed", how = "unrecognized", now = "debug.seed", source = "https://github.com/pytorch/torchtitan/releases, v0.2.2" },
    { key = "training.deterministic", how = "unrecognized", now = "debug.deterministic", source = "https://github.com/pytorch/torchtitan/releases, v0.2.2" },
  },

  -- what the schedule classes of PyTorch ask holds here too
  rules = table.move(torch.rules, 1, #torch.rules, 3, {
    { id = "torchtitan.world", by = "engine",
      when = function(f) return f.gpus % (f.tensor_parallel * f.context_parallel * f.pipeline_parallel) ~= 0 end,
      message = "{framework}: {gpus} GPUs do not divide by TP {tensor_parallel} × CP {context_parallel} × P {pipeline_parallel}",
      source = at "parallel_dims.py:186" },
    { id = "torchtitan.expert_tensor", expert_tensor_parallel = { over = 1 },
      message = "{framework} splits no expert by tensor parallelism: ETP is {expert_tensor_parallel}",
      nearest = function() return { field = "expert_tensor_parallel", value = 1 } end, source = at "parallel_dims.py:186; expert_tensor_parallel_degree is gone" },
  }),
  notes = "composes fully sharded data parallelism with a pipeline (https://github.com/pytorch/torchtitan/issues/562); M ≥ stages, or 1F1B hangs in older versions (issues/775)",
  source = "https://github.com/pytorch/torchtitan/tree/b5bcd76, configs.py, pipeline_parallel.py",
}

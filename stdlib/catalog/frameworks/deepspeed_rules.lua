-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_rules.lua: what DeepSpeed 0.19.8 refuses, or runs otherwise than its configuration seems to ask; "run": seen with the PyPI package
-- on a CPU (tests/torch/deepspeed_plans_test.py).

local integers = require "pipeplan.base.integers"

local function at(where) return "https://github.com/deepspeedai/DeepSpeed/tree/v0.19.8, deepspeed/" .. where end

return {
  { id = "deepspeed.world", by = "engine",
    when = function(f) return f.gpus % integers.product(f.pipeline_parallel, f.tensor_parallel, f.context_parallel) ~= 0 end,
    message = "{framework}: {gpus} GPUs do not divide by P {pipeline_parallel} × TP {tensor_parallel} × sequence parallelism {context_parallel}",
    source = at "runtime/pipe/module.py:175; runtime/pipe/topology.py:295: run" },
  { id = "deepspeed.topology", by = "engine", pipeline_parallel = { over = 1 },
    when = function(f) return f.said_data and integers.product(f.pipeline_parallel, f.tensor_parallel, f.said_data) ~= f.gpus end,
    message = "{framework}: num_dp {said_data} × P {pipeline_parallel} × TP {tensor_parallel} are not the {gpus} GPUs: Invalid Grid",
    source = at "runtime/pipe/topology.py:295: run" },
  "deepspeed.zero",
  "deepspeed.context",
  "deepspeed.expert_groups",
  { id = "deepspeed.native_experts", by = "engine", stage = 3, when = function(f) return f.native_experts > 1 end,
    message = "{framework}: MoE with ep_size {native_experts} goes not with ZeRO 3: expert_parallel does", source = at "runtime/engine.py:2215: run" },
  { id = "deepspeed.sequence_alone", by = "engine", severity = "warning", pipeline_parallel = 1, context_parallel = { over = 1 },
    when = function(f) return not f.said_ranks end, about = "context_parallel",
    message = "{framework} divides no sequence where sequence_parallel_size {context_parallel} stands without data_parallel_size: each rank has "
              .. "its own, unless the program hands over groups", source = at "__init__.py:543; runtime/config.py:468: run" },

  { id = "deepspeed.mesh", by = "engine", pipeline_parallel = 1, context_parallel = { over = 1 },
    when = function(f) return f.said_ranks and f.said_ranks * f.context_parallel ~= f.gpus end, about = "said_ranks",
    message = "{framework}: data_parallel_size {said_ranks} × sequence_parallel_size {context_parallel} are not the {gpus} GPUs",
    source = at "__init__.py:543: run" },
  { id = "deepspeed.batch", by = "engine", when = function(f) return f.batch_problem end, about = "global_batch_size",
    message = "{framework}: {batch_problem}",
    nearest = function(f) return f.batch.nearest and { field = "global_batch_size", value = f.batch.nearest } end,
    source = at "runtime/config.py:590-650, _batch_assertion: run" },
  { id = "deepspeed.autotp_batch", by = "engine", severity = "warning", pipeline_parallel = 1, tensor_parallel = { over = 1 },
    when = function(f) return f.said_batch end,
    message = "{framework} counts train_batch_size over all {gpus} GPUs, those of a tensor-parallel group too: {global_batch_size} sequences are "
              .. "trained in a step, not {said_batch}", source = at "runtime/config.py:466-471; runtime/engine.py:957: run" },

  { id = "deepspeed.precision", by = "engine", fp16_enabled = "fp16", bf16_enabled = "bf16",
    message = "{framework}: bf16 and fp16 are both enabled", source = at "runtime/config.py:511: run" },
  { id = "deepspeed.gradients", by = "engine", stage = 0, when = function(f) return f.gradients ~= f.model_dtype end,
    message = "{framework}: gradients accumulated in {gradients} beside a model in {model_dtype} want ZeRO", about = "gradients",
    nearest = function(f) return { field = "gradients", value = f.model_dtype } end, source = at "runtime/engine.py:2294-2323: run" },
  { id = "deepspeed.master_weights", by = "engine", stage = 0,
    when = function(f) return f.bf16_master or f.fp16_master end,
    message = "{framework}: master weights in 16 bits want ZeRO", source = at "runtime/config.py:702-709: run" },
  { id = "deepspeed.states", by = "engine", bf16_states = "bf16",
    when = function(f) return f.stage == 0 or not f.bf16_master end,
    message = "{framework}: bf16_optimizer_states want ZeRO and bf16_master_weights_and_grads", source = at "runtime/config.py:710-714: run" },
  { id = "deepspeed.grad_norm", by = "engine", grad_norm = false,
    when = function(f)
      return f.stage ~= 1 and f.stage ~= 2 or f.clipping ~= 0 or f.stage == 1 and f.model_dtype == "bf16" and f.gradients == "fp32"
    end,
    message = "{framework}: compute_grad_norm false goes with ZeRO 1 and 2 alone, with gradient_clipping 0, and not with bf16 and gradients in "
              .. "fp32 under ZeRO 1", source = at "runtime/zero/config.py:390; runtime/zero/stage_1_and_2.py:213; runtime/engine.py:2307: run" },
  { id = "deepspeed.sum", by = "engine", stage = 3, gradient_op = "sum",
    message = "{framework}: gradient_allreduce_op sum goes not with ZeRO 3", source = at "runtime/config.py:694: run" },
  { id = "deepspeed.legacy_stage1", by = "engine", legacy_stage1 = true, stage = { over = 0 },
    message = "{framework}: legacy_stage1 is gone", source = at "runtime/engine.py:2650: run" },
  { id = "deepspeed.offload_ratio", by = "engine", when = function(f) return f.offload_ratio < 1 and f.stage ~= 3 end,
    message = "{framework}: offload_optimizer.ratio {offload_ratio} goes with ZeRO 3 alone", source = at "runtime/zero/config.py:397: run" },
  { id = "deepspeed.offload_alone", by = "engine", severity = "warning", stage = 0,
    when = function(f) return f.offload_device ~= "none" end,
    message = "{framework} offloads no optimizer where nothing is sharded: offload_optimizer.device {offload_device} is not read with ZeRO 0",
    source = at "runtime/engine.py:2297, _do_optimizer_sanity_check" },
  { id = "deepspeed.managed", by = "engine", pipeline_parallel = { over = 1 }, managed = false,
    message = "{framework}: managed_gradient_accumulation false goes with no pipeline", source = at "runtime/engine.py:2033: run" },
  { id = "deepspeed.autotp", by = "engine", pipeline_parallel = { over = 1 }, when = function(f) return f.autotp > 1 end,
    message = "{framework}: tensor_parallel.autotp_size {autotp} goes with no pipeline: a PipelineModule's layers divide themselves, over num_mp "
              .. "of its topology", source = at "runtime/engine.py:595; module_inject/auto_tp.py: run" },

  { id = "deepspeed.partition", by = "engine", pipeline_parallel = { over = 1 }, when = function(f) return f.partition_problem end,
    about = "partition_method",
    message = "{framework}: {partition_problem}", source = at "runtime/pipe/module.py:399-421: run" },
  { id = "deepspeed.stages_in_json", by = "engine", severity = "warning",
    when = function(f) return f.json_stages or f.json_partition end, about = "json_stages",
    message = "{framework} reads neither pipeline.stages nor pipeline.partition: num_stages and partition_method are arguments of PipelineModule",
    source = at "runtime/config.py:272; runtime/pipe/module.py:120: run" },
  { id = "deepspeed.few_microbatches", by = "engine", severity = "note", pipeline_parallel = { over = 1 },
    when = function(f) return f.microbatches < f.pipeline_parallel end,
    message = "{framework}: {microbatches} microbatches do not fill a pipeline of {pipeline_parallel} stages",
    source = "https://github.com/deepspeedai/DeepSpeed/issues/1629" },
  { id = "deepspeed.overlap", by = "engine", severity = "note", pipeline_parallel = { over = 1 }, overlap_comm = true,
    message = "{framework} switches overlap_comm off in a pipeline", source = at "runtime/engine.py:2664: run" },
}

-- SPDX-License-Identifier: Apache-2.0
-- deepspeed_writes.lua: how DeepSpeed's keys follow from a plan, where that is no single field of it (deepspeed.lua says those that are), and
-- what of a plan no key says. As torchtitan_writes.lua.

local lists = require "pipeplan.base.lists"

local writes = {}

local function in_pipeline(f) return f.plan.parallelism.pipeline > 1 end

local function experts(f) return (f.shape.experts or 0) > 0 and f.plan.parallelism.expert or 1 end

-- With nobody to shard over, ZeRO 1 is none; and gradients of another type than the weights want it (runtime/engine.py:2323).
local function stage(f)
  local p = f.plan.parallelism
  if f.training.zero == 0 and p.data * p.context == 1 and f.request.training.gradients ~= f.plan.training.precision then return 1 end
  return f.training.zero
end

-- Without a pipeline DeepSpeed counts train_batch_size over the ranks of tensor parallelism too (runtime/config.py:466): the two others say it.
local function counts_tensor(f) return not in_pipeline(f) and f.plan.parallelism.tensor > 1 end

writes.keys = {
  train_batch_size = function(f) return not counts_tensor(f) and f.plan.global_batch_size or nil end,
  gradient_accumulation_steps = function(f) return f.plan.microbatches end,
  ["zero_optimization.stage"] = function(f) return stage(f) end,
  ["zero_optimization.offload_optimizer.device"] = function(f) return (f.request.training.optimizer_offload or 0) > 0 and "cpu" or nil end,
  ["bf16.enabled"] = function(f) return f.plan.training.precision == "bf16" end,
  ["fp16.enabled"] = function(f) return f.plan.training.precision == "fp16" end,
  ["data_types.grad_accum_dtype"] = function(f) return f.request.training.gradients end,
  ["pipeline.activation_checkpoint_interval"] = function(f)
    return in_pipeline(f) and lists.contains(f.plan.recompute, "full") and 1 or nil
  end,
  sequence_parallel_size = function(f) return f.plan.parallelism.context end,
  data_parallel_size = function(f) return f.plan.parallelism.context > 1 and f.plan.parallelism.data or nil end,
  ["tensor_parallel.autotp_size"] = function(f) return counts_tensor(f) and f.plan.parallelism.tensor or nil end,
  ["expert_parallel.enabled"] = function(f) return not in_pipeline(f) and experts(f) > 1 end,
  ["expert_parallel.autoep_size"] = function(f) return not in_pipeline(f) and experts(f) or nil end,

  ["PipelineModule.partition_method"] = function(f) return in_pipeline(f) and "type:DecoderLayer" or nil end,
  ["PipeModelDataParallelTopology.num_mp"] = function(f) return in_pipeline(f) and f.plan.parallelism.tensor or nil end,
  ["PipeModelDataParallelTopology.num_dp"] = function(f)
    return in_pipeline(f) and f.plan.parallelism.tensor > 1 and f.plan.parallelism.data or nil
  end,
  ["MoE.ep_size"] = function(f) return in_pipeline(f) and experts(f) or nil end,
  ["MoE.enable_expert_tensor_parallelism"] = function(f)
    return in_pipeline(f) and experts(f) > 1 and f.plan.parallelism.expert_tensor > 1
  end,
  ["planned.layers_per_stage"] = function(f) return f.plan.layers_per_stage or { f.shape.layers } end,
}

-- What of experts no key says, in words; nil: nothing.
local function experts_unsaid(f)
  local p = f.plan.parallelism
  if (f.shape.experts or 0) == 0 then return nil end
  if p.expert == 1 and p.expert_tensor ~= 1 or p.expert_tensor ~= 1 and p.expert_tensor ~= p.tensor then
    return string.format("expert tensor parallelism of %d beside TP %d and EP %d", p.expert_tensor, p.tensor, p.expert)
  end
  if p.pipeline == 1 and p.expert > 1 and (p.tensor > 1 or p.context > 1) then
    return "expert parallelism beside tensor or context parallelism, without a pipeline"
  end
end

-- What of a plan no key says, in words; nil: nothing.
function writes.unsaid(f)
  local training, asked, p = f.plan.training, f.request.training, f.plan.parallelism
  local precision, zero = training.precision, stage(f)
  if precision ~= "bf16" and precision ~= "fp16" and precision ~= "fp32" then return precision .. " products" end
  if asked.moments ~= "fp32" then return "moments in " .. asked.moments .. " beside master weights in fp32" end
  if zero == 0 and asked.gradients ~= precision then return "gradients in " .. asked.gradients .. " where nothing is sharded" end
  if zero == 0 and precision == "bf16" and p.pipeline > 1 and p.data > 1 then
    return "bf16 in a pipeline with a whole optimizer on each rank: its BF16_Optimizer shards it"
  end
  if p.pipeline == 1 and lists.contains(f.plan.recompute, "full") then return "recompute without a pipeline: the model does it" end
  local offload = asked.optimizer_offload or 0
  if offload > 0 and (offload < 1 or zero == 0) then return "a part of the optimizer, or one that is not sharded, in host memory" end
  if asked.lora_rank then return "adapters" end
  if training.batch_ramp then return "a batch that grows in steps" end
  if (f.training.replicas or 1) > 1 and zero > 0 then return string.format("%d replicas of what is sharded", f.training.replicas) end
  if zero == 3 and f.training.reshard == false then return "parameters that stay gathered" end
  if p.tensor > 1 and p.context > 1 then return "tensor parallelism beside context parallelism" end
  return experts_unsaid(f)
end

return writes

-- SPDX-License-Identifier: Apache-2.0
-- torchtitan_writes.lua: how torchtitan's keys follow from a plan, where that is no single field of it (torchtitan.lua says those that are), and
-- what of a plan no key says.
--
-- keys[base key] = function of { plan, request, entry, shape, training } (as megatron_writes.lua) → the value; nil: the key is not written.
-- What is nobody's value here: module and config where no configuration function has the model (the writer leaves them to whoever starts it),
-- and the path of the CSV.

local lists = require "pipeplan.base.lists"
local models = require "pipeplan.catalog.frameworks.torchtitan_models"
local volume = require "pipeplan.catalog.frameworks.volume"

local writes = {}

local function in_pipeline(f) return f.plan.parallelism.pipeline > 1 end

-- What makes two models alike; what a shape leaves out is that.
local defaults = { kv_heads = 0, head_dim = 0, ffn = 0, attention = "gqa", q_lora_rank = 0, kv_lora_rank = 0, qk_nope_dim = 0, qk_rope_dim = 0,
                   v_dim = 0, experts = 0, experts_per_token = 0, expert_ffn = 0, shared_ffn = 0, first_dense = 0, mtp_layers = 0,
                   qk_norm = "none", tied_embeddings = false, qkv_bias = false, output_bias = false, mlp_bias = false, norm_bias = false,
                   gated = true, shared_gate = false, attention_sinks = 0, learned_positions = 0, norms_per_layer = 2, moe_every = 1,
                   expert_bias = false, layers = 0, hidden = 0, heads = 0, vocab = 0 }

local function value_of(shape, name)
  local value = shape[name]
  if name == "head_dim" and (value or 0) == 0 then return shape.attention == "mla" and 0 or shape.hidden // shape.heads end
  if name == "kv_heads" and shape.attention == "mla" then return 0 end
  if name == "kv_heads" and (value or 0) == 0 then return shape.heads end
  if name == "head_dim" and shape.attention == "mla" then return 0 end
  if name == "ffn" and (shape.experts or 0) > 0 and (shape.first_dense or 0) == 0 then return 0 end
  if value == nil then return defaults[name] end
  return value
end

local function alike(a, b)
  for name in pairs(defaults) do
    if value_of(a, name) ~= value_of(b, name) then return false end
  end
  return not next(a.dense_layers or {})
end

-- The model with a shape, in the precision that its function makes; or nil.
function writes.model(shape, precision)
  for _, model in ipairs(models) do
    if (model.precision or "bf16") == (precision == "fp32" and "bf16" or precision) and alike(shape, model.shape) then return model end
  end
end

-- The first module's name is the embedding's, the last ones' those of norm and head (PP: _generate_llm_fqn_per_model_part).
function writes.parts(layers_per_stage)
  local parts, layer = {}, 0
  for i, count in ipairs(layers_per_stage) do
    local names = { i == 1 and "tok_embeddings" or nil }
    for _ = 1, count do
      names[#names + 1] = "layers." .. layer
      layer = layer + 1
    end
    if i == #layers_per_stage then table.move({ "norm", "lm_head" }, 1, 2, #names + 1, names) end
    parts[i] = table.concat(names, ",")
  end
  return parts
end

-- What FSDP does with gathered parameters. In a pipeline gradients are reduced behind the last microbatch (torch/distributed/pipelining/
-- stage.py: backward_maybe_with_nosync), so that parameters which stay gathered are a sharded optimizer; without one they are reduced behind
-- each, so that it is sharded gradients.
function writes.resharding(training)
  local zero = training.zero or 1
  if zero == 1 or zero == 2 then return "never" end
  if training.reshard == nil then return nil end
  return training.reshard and "always" or "never"
end

local function replicas_of(f)
  if f.training.zero == 0 then return f.plan.parallelism.data end
  return f.training.replicas or 1
end

-- Must CUDA graphs be switched off, or are they not what was planned?
function writes.without_graphs(training, plan)
  return plan.parallelism.pipeline > 1 or (plan.parallelism.expert or 1) > 1 or not training.cuda_graphs
end

-- What is compiled, as one word; nil: nothing.
local function compiled(f)
  local unfused, loss, parts = false, f.request.training.loss, {}
  for kernel in pairs(f.request.training.unfused or {}) do unfused = unfused or kernel ~= "optimizer" end
  if not unfused then parts[1] = "model" end
  if loss == "torch_compiled" or not loss and not unfused then parts[#parts + 1] = "loss" end
  return parts[1] and table.concat(parts, ",") or nil
end

writes.keys = {
  module = function(f) return (writes.model(f.shape, f.plan.training.precision) or { module = "" }).module end,
  config = function(f) return (writes.model(f.shape, f.plan.training.precision) or { config = "" }).config end,
  ["--expert-model-parallel-size"] = function(f) return (f.shape.experts or 0) > 0 and f.plan.parallelism.expert or 1 end,
  ["parallelism.data_parallel_replicate_degree"] = replicas_of,
  ["parallelism.data_parallel_shard_degree"] = function(f) return f.plan.parallelism.data // replicas_of(f) end,
  ["parallelism.fsdp_reshard_after_forward"] = function(f) return f.training.zero > 0 and (writes.resharding(f.training) or "default") or nil end,
  ["--sequence-parallel"] = function(f)
    if f.plan.parallelism.tensor == 1 then return nil end
    return f.request.training.sequence_parallel ~= false and true or "no"
  end,
  ["parallelism.pipeline_parallel_schedule"] = function(f) return in_pipeline(f) and f.entry.schedules[f.plan.schedule].name or nil end,
  ["parallelism.pipeline_parallel_schedule_csv"] = function(f)
    return in_pipeline(f) and f.entry.schedules[f.plan.schedule].csv and "program" or nil
  end,
  ["parallelism.pipeline_parallel_microbatch_size"] = function(f) return in_pipeline(f) and f.plan.micro_batch_size or nil end,
  ["parallelism.module_fqns_per_model_part"] = function(f) return in_pipeline(f) and writes.parts(f.plan.layers_per_stage) or nil end,
  ["training.local_batch_size"] = function(f)
    return (in_pipeline(f) and f.plan.microbatches or 1) * f.plan.micro_batch_size
  end,
  ["training.disable_cuda_graphs"] = function(f) return writes.without_graphs(f.request.training, f.plan) end,
  ["training.dtype"] = function() return nil end,
  ["training.mixed_precision_param"] = function(f) return f.plan.training.precision == "fp32" and "float32" or "bfloat16" end,
  ["training.steps"] = function(f) return volume.steps(f.plan) end,
  ["optimizer.implementation"] = function(f)
    if f.request.training.moments == "bf16" then return "fused_opt_states_bf16" end
    return (f.request.training.unfused or {}).optimizer and "foreach" or "fused"
  end,
  ["compile.enable"] = function(f) return compiled(f) and true or "no" end,
  ["compile.components"] = compiled,
  activation_checkpoint = function(f) return lists.contains(f.plan.recompute, "full") and "full" or "none" end,
}

-- What of a plan no key says, in words; nil: nothing.
function writes.unsaid(f)
  local training, asked = f.plan.training, f.request.training
  if training.precision == "fp16" then return "fp16" end
  if asked.gradients ~= "fp32" then return "gradients in " .. asked.gradients .. ": they are reduced in fp32" end
  if asked.moments ~= "fp32" and asked.moments ~= "bf16" then return "moments in " .. asked.moments end
  if asked.optimizer ~= "adam" and asked.optimizer ~= "adamw" then
    return "its optimizer, " .. asked.optimizer .. ": a configuration function has the groups of parameters of one"
  end
  if asked.loss and not asked.loss:find "^torch" then return "a loss that is computed " .. asked.loss:gsub("_", " ") end
  if (asked.optimizer_offload or 0) > 0 then return "an optimizer alone in host memory" end
  if f.request.model.tower_parameters then return "a tower of images" end
  if asked.lora_rank then return "adapters: a configuration function has their converter" end
  if training.batch_ramp then return "a batch that grows in steps" end
  if f.training.zero == 0 and f.plan.parallelism.context > 1 then
    return "unsharded parameters with context parallelism: they are sharded over its ranks"
  end
  if f.plan.parallelism.data % replicas_of(f) ~= 0 then
    return string.format("%d replicas of DP %d", replicas_of(f), f.plan.parallelism.data)
  end
end

return writes

-- SPDX-License-Identifier: Apache-2.0
-- deepspeed.lua: facts of a launch of DeepSpeed, where they follow otherwise than from Megatron's keys: name → function(f), as facts.lua
-- has its own. Files are those of PyPI deepspeed 0.19.8.

local integers = require "pipeplan.base.integers"
local vocabulary = require "pipeplan.vocabulary"

local derived = {}

local function counted(f, value)
  if math.type(value) ~= "integer" or value < 1 or value > vocabulary.most.counted then f.refused() end
  return value
end

-- ------------------------------------------------------------------------------------------------------------------------- degrees

function derived.pipeline_parallel(f)
  local value = f.key "PipelineModule.num_stages"
  if value == nil then f.fail "P" end
  return counted(f, value)
end

function derived.said_data(f) return f.key "PipeModelDataParallelTopology.num_dp" end

function derived.tensor_parallel(f)
  if f.record.pipeline_parallel > 1 then return counted(f, f.key "PipeModelDataParallelTopology.num_mp") end
  return counted(f, math.max(1, f.key "tensor_parallel.autotp_size"))
end

function derived.context_parallel(f) return counted(f, f.key "sequence_parallel_size") end

function derived.expert_parallel(f)
  if f.key "expert_parallel.enabled" then return counted(f, f.key "expert_parallel.autoep_size") end
  return counted(f, f.key "MoE.ep_size")
end

function derived.expert_tensor_parallel(f)
  if f.key "expert_parallel.enabled" then return counted(f, f.key "expert_parallel.expert_tensor_parallel_size") end
  return f.key "MoE.enable_expert_tensor_parallelism" and f.record.tensor_parallel or 1
end

function derived.virtual() return 1 end

function derived.schedule(f) return f.record.pipeline_parallel > 1 and "1f1b" or "none" end

-- ------------------------------------------------------------------------------------------------------------------------- batches

-- The ranks that DeepSpeed divides the batch over (runtime/config.py:450-476): those of tensor parallelism count where no grid says
-- otherwise.
local function ranks_of_batch(f)
  local record = f.record
  if record.pipeline_parallel > 1 then return record.data_parallel end
  if record.gpus % record.context_parallel ~= 0 then f.refused() end
  return record.gpus // record.context_parallel
end

-- The number, where a batch may be as large; nil.
local function a_batch(number) return number and number > 0 and number <= vocabulary.most.counted and number or nil end

local function in_words(train, micro, steps, ranks)
  return string.format("%smicrobatch size %d × %d steps%s", train and "train_batch_size " .. train .. ", " or "", micro, steps,
                       train and ranks and " × " .. ranks .. " data-parallel ranks" or "")
end

-- Why the parts make the batch on no number of ranks that there may be, where how many there are is not known, and the nearest batch; or
-- nil. Data parallelism has a divisor of the GPUs.
local function contradiction(f, train, micro, steps)
  if train and train < 1 then return "train_batch_size is " .. train .. ", less than 1" end
  if micro and micro < 1 then return "train_micro_batch_size_per_gpu is " .. micro .. ", less than 1" end
  if not (train and micro and steps) or steps < 1 then return nil end
  local text, part = in_words(train, micro, steps), integers.product(micro, steps)
  local good, gpus = pcall(function() return f.record.gpus end)
  local nearest = good and integers.product(part, integers.nearest_divisor(gpus, train / part)) or integers.nearest_multiple(train, part)
  if train % part ~= 0 then return "the batch is no multiple of its parts: " .. text, nearest end
  if not good or gpus % (train // part) == 0 then return nil end
  return string.format("the batch is not its parts: %s are %d on each data-parallel rank, and of %d GPUs there are no %d ranks", text, part,
                       gpus, train // part), nearest
end

-- { train, micro, steps } as DeepSpeed makes them, or why it does not (runtime/config.py:590-650), and the nearest batch that it takes.
function derived.batch(f)
  local train, micro, steps = f.key "train_batch_size", f.key "train_micro_batch_size_per_gpu", f.key "gradient_accumulation_steps"
  if not train and not micro then return { problem = "neither train_batch_size nor train_micro_batch_size_per_gpu is said" } end
  local good, ranks = true, nil
  if train then good, ranks = pcall(ranks_of_batch, f) end
  if not good then
    local problem, nearest = contradiction(f, train, micro, steps)
    if not problem then error(ranks, 0) end
    return { problem = problem, nearest = nearest and a_batch(nearest) }
  end
  local nearest = train and integers.nearest_multiple(train, integers.product(math.max(1, micro or 1), math.max(1, steps or 1), ranks))
  if train and micro and steps then nearest = integers.product(math.max(0, micro), math.max(0, steps), ranks) end
  if train and micro and not steps then steps = micro ~= 0 and train // micro // ranks or 0
  elseif train and steps and not micro then micro = steps ~= 0 and train // ranks // steps or 0
  elseif train and not micro then steps, micro = 1, train // ranks
  elseif not train then steps = steps or 1 end
  local out, text = { train = train, micro = micro, steps = steps }, in_words(train, micro, steps, ranks)
  if micro < 1 or steps < 1 or train and train < 1 then out.problem = "one of these is less than 1: " .. text
  elseif train and train ~= integers.product(micro, steps, ranks) then out.problem = "the batch is not its parts: " .. text end
  out.nearest = out.problem and a_batch(nearest)
  return out
end

function derived.batch_problem(f) return f.record.batch.problem or false end

local function batch_of(f)
  if f.record.batch.problem then f.refused() end
  return f.record.batch
end

function derived.micro_batch_size(f) return counted(f, batch_of(f).micro) end

function derived.microbatches(f) return counted(f, batch_of(f).steps) end

function derived.global_batch_size(f) return integers.product(f.record.micro_batch_size, f.record.microbatches, f.record.data_parallel) end

function derived.train_iters() return nil end
function derived.train_samples() return nil end

function derived.ramp() return nil end

-- ----------------------------------------------------------------------------------------------------------------- precision, sharding

function derived.model_dtype(f)
  if f.key "fp16.enabled" == "fp16" then return "fp16" end
  return f.key "bf16.enabled" == "bf16" and "bf16" or "fp32"
end

function derived.precision(f)
  if f.key "torch_autocast.enabled" then f.fail "products under torch_autocast" end
  return f.record.model_dtype
end

function derived.gradients(f) return f.key "data_types.grad_accum_dtype" or f.record.model_dtype end

function derived.moments(f) return f.key "bf16.bf16_optimizer_states" == "bf16" and "bf16" or "fp32" end

function derived.optimizer_state(f) return f.record.moments == "fp32" and f.record.gradients == "fp32" and "fp32" or "reduced" end

function derived.stage(f)
  local value = f.key "zero_optimization.stage"
  if value < 0 or value > 3 then f.refused() end
  return value
end

-- In a pipeline BF16_Optimizer shards master weights and moments with stage 0 too (runtime/engine.py:2316; runtime/bf16_optimizer.py).
function derived.zero(f)
  local stage = f.record.stage
  if stage == 0 and f.record.model_dtype == "bf16" and f.record.pipeline_parallel > 1 then return 1 end
  return stage
end

function derived.replicas() return 1 end

function derived.recompute_granularity(f)
  local interval = f.key "pipeline.activation_checkpoint_interval"
  if interval == 0 then interval = f.key "PipelineModule.activation_checkpoint_interval" end
  if f.record.pipeline_parallel == 1 or interval < 1 then return nil end
  if interval > 1 then f.fail "recompute of several layers at once" end
  return "full"
end

function derived.recompute_kind(f) return f.record.recompute_granularity or "none" end
function derived.recompute_modules() return {} end
function derived.recomputes_moe() return false end

-- --------------------------------------------------------------------------------------------------------------------------- layers

local function number_of_layers(f)
  local sum, list = 0, f.words "planned.layers_per_stage"
  for _, word in ipairs(list or {}) do sum = sum + (math.tointeger(tonumber(word)) or 0) end
  return list and sum or nil
end

function derived.layers(f) return counted(f, number_of_layers(f) or f.fail "layers") end

-- Of partition_method: { kind: uniform, parameters, type; regex }, or why it is none (runtime/pipe/module.py:389-421).
local function method_of(f)
  local method = f.key "PipelineModule.partition_method"
  local lower = method:lower()
  if lower == "uniform" or lower == "parameters" then return lower end
  if not lower:find "^type:" then
    return nil, string.format("partition_method '%s' is none: uniform, parameters or type:REGEX", method)
  end
  local regex = lower:match "^type:([^:]*)"
  if regex == "" then return "type", "partition_method type: without a pattern takes every layer, embedding and head too" end
  if lower:find "^type:[^:]*:" then
    return "type", string.format("of partition_method '%s' what stands before the second colon is the pattern", method)
  end
  return "type"
end

function derived.partition_problem(f)
  local _, problem = method_of(f)
  return problem or false
end

-- Decoder layers of each stage: type:REGEX of their class as even as can be, the first stages one more; how the others cut depends on
-- layers that are not known here.
function derived.built(f)
  local P, layers = f.record.pipeline_parallel, f.record.layers
  if P == 1 then return { layers } end
  local kind, problem = method_of(f)
  if kind ~= "type" or problem then f.fail "layers that are no decoder layers" end
  local list = {}
  for s = 1, P do list[s] = layers // P + (s <= layers % P and 1 or 0) end
  return list
end

for _, name in ipairs { "hidden", "heads", "head_dim", "shared_ffn", "ffn", "query_groups" } do
  derived[name] = function(f) f.fail "model" end
end

function derived.experts(f) f.fail "model" end
function derived.mtp_layers(f) f.fail "model" end
function derived.tied_embeddings(f) f.fail "model" end
function derived.attention_kind() return "gqa" end

function derived.sequence_length(f)
  local value = f.key "--seq-length"
  return counted(f, value or f.fail "sequence length")
end

return derived

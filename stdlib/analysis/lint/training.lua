-- SPDX-License-Identifier: Apache-2.0
-- training.lua: what of training, beside batch and recompute, a launch says in a spec's words: the optimizer and where it lies, what
-- gradients are kept in, what is gathered again, how the loss is computed, CUDA graphs; and what of it no spec says. Lines are those of
-- megatron-core 0.19.2, DeepSpeed 0.19.8 and torchtitan 0.3.0.

local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"

local training = {}

-- The value of a key, nil where nobody knows it or there is none; and who says it.
local function reader(result)
  return function(key)
    local found = result.get(key)
    return not found.unknown and found.value or nil, found
  end
end

local function place(result, found) return found.setting or { file = result.file, line = result.launch.line or 1 } end

-- Optimizers of a spec by the name that a framework has for them (arguments.py:2776; deepspeed/runtime/config.py:52-66, or a class of
-- torch.optim, whatever its case).
local optimizers = { adam = "adam", adamw = "adamw", sgd = "sgd", muon = "muon", dist_muon = "muon" }

local function read_optimizer(result, out, unsaid)
  local key = reader(result)
  for _, name in ipairs { "--optimizer", "optimizer.type" } do
    local word, found = key(name)
    if word then
      out.optimizer = optimizers[tostring(word):lower()]
      if not out.optimizer then
        unsaid[#unsaid + 1] = { field = "training.optimizer", setting = place(result, found),
          message = string.format("%s: %s is %s: a spec's optimizer is %s (--optimizer)", result.entry.title, found.key.key, word,
                                  table.concat(fields.by_path["training.optimizer"].domain, ", ")) }
      end
    end
  end
end

local function offload_of(result, out, unsaid, zero)
  local key = reader(result)
  if key "--optimizer-cpu-offload" == true then out.optimizer_offload = key "--optimizer-offload-fraction" end
  local device, found = key "zero_optimization.offload_optimizer.device"
  if device == "cpu" then   -- a part of it with stage 3 alone (runtime/zero/offload_config.py: ratio)
    out.optimizer_offload = zero == 3 and key "zero_optimization.offload_optimizer.ratio" or 1
  elseif device and device ~= "none" then
    unsaid[#unsaid + 1] = { field = "training.optimizer_offload", setting = place(result, found),
      message = string.format("%s: %s is %s: a spec's optimizer_offload is the share in host memory (--optimizer_offload)",
                              result.entry.title, found.key.key, device) }
  end
end

-- In bf16 Megatron adds up in fp32, unless it is asked to reduce in bf16 or to keep them so (arguments.py:1186-1193); with fp16 in fp16,
-- unless asked otherwise. A buffer is as it is reduced (core/distributed/param_and_grad_buffer.py:917).
local function megatron_gradients(result, out, unsaid, precision, zero)
  local key = reader(result)
  if key "--use-megatron-fsdp" == true then
    local word = key "--megatron-fsdp-main-grads-dtype"
    out.gradients = word ~= "auto" and word or nil
    return
  end
  local reduced, by_flag = key "--grad-reduce-in-bf16"
  local main, by_main = key "--main-grads-dtype"
  if not by_flag.key and not by_main.key then return end
  local halved = precision ~= "fp32" and reduced == true or main == "bf16" and key "--use-precision-aware-optimizer" == true
  local added, by_sum = key "--accumulate-allreduce-grads-in-fp32"
  if precision == "fp16" and by_sum.key and not by_sum.unknown and not added then halved = true end
  if not halved then
    if by_flag.key and not by_flag.unknown and not by_main.unknown then out.gradients = "fp32" end
  elseif zero and zero > 0 and (out.optimizer == "adam" or out.optimizer == "adamw") then out.gradients = "bf16"
  else
    unsaid[#unsaid + 1] = { field = "training.gradients", value = "fp32", found = "bf16",
      why = "the launch keeps a gradient in 2 bytes; a plan for " .. result.entry.title .. " has that with a distributed Adam only" }
  end
end

local function gradients_of(result, out, unsaid, precision, zero)
  local dtype, found = reader(result) "data_types.grad_accum_dtype"
  if not found.key then return megatron_gradients(result, out, unsaid, precision, zero) end
  dtype = dtype or precision   -- the model's (runtime/engine.py:1803)
  out.gradients = dtype == "fp16" and "bf16" or dtype   -- as many bytes
end

local function loss_of(result, out)
  local key = reader(result)
  if key "--cross-entropy-loss-fusion" == "vocab_parallel_compiled" then   -- core/models/common/language_module/language_module.py:167-200
    out.loss = key "--cross-entropy-fusion-impl" == "te" and "in_place" or "vocab_parallel_compiled"
  end
end

-- Megatron's own attention multiplies, masks and keeps the scores (core/transformer/dot_product_attention.py:194-239): of the local layers
-- (core/models/gpt/gpt_layer_specs.py; core/models/backends.py:129), and where it is asked for (training/models/gpt.py:296). Transformer
-- Engine's that is not fused does too (core/models/common/language_module/language_module.py:135). Words may be those of an enumeration.
local function attention_of(result, out)
  local key = reader(result)
  local backend = tostring(key "--attention-backend" or ""):match "%a+$"
  if backend == "unfused" or backend == "local" or key "--transformer-impl" == "local" then out.unfused = json.array { "attention" } end
end

-- What torchtitan compiles; without it silu and product, and rotary embeddings, are operations of their own, and the loss is PyTorch's
-- (components/loss.py; models/common: FeedForward, apply_rotary_emb).
local function compiled_of(result, out)
  local key = reader(result)
  local enabled, found = key "compile.enable"
  if not found.key or found.unknown then return end
  local parts = enabled and tostring(key "compile.components" or "") or ""
  local unfused = json.array()
  out.loss = parts:find "loss" and "torch_compiled" or "torch"
  if not parts:find "model" then unfused[1], unfused[2] = "activation", "rope" end
  local implementation = key "optimizer.implementation"
  if implementation == "foreach" or implementation == "for-loop" then unfused[#unfused + 1] = "optimizer" end
  if #unfused > 0 then out.unfused = unfused end
end

local function graphs_of(result, out, pipeline)
  local key = reader(result)
  local how = key "--cuda-graph-impl"
  if how and how ~= "none" or key "--enable-cuda-graph" or key "--external-cuda-graph" then out.cuda_graphs = true end
  local disabled, found = key "training.disable_cuda_graphs"   -- trainer.py:185: none with a pipeline
  if found.key and not found.unknown and pipeline == 1 then out.cuda_graphs = disabled ~= true end
end

-- Keys that no field of a spec says (catalog/frameworks: unread, assumed), where they are said otherwise than by default.
local function add_unread(result, unsaid)
  for _, key in ipairs(result.entry.keys) do
    if key.unread or key.assumed then
      local found = result.get(key.base or key.key)
      local value = found.value
      local idle = not found.unknown and (value == nil or value == false or value == key.default or value == "None" or value == "none"
                                          or math.type(value) and value <= 0 and key.type ~= "string")
      local field = (key.unread or key.assumed).field
      local shown = key.key .. (value ~= nil and value ~= true and not found.unknown and " " .. tostring(value) or "")
      if found.unknown and not found.given then idle = true end
      if not idle and key.unread then
        unsaid[#unsaid + 1] = { field = field, setting = place(result, found), has = key.unread.what, unknown = found.unknown ~= nil,
          base = key.base or key.key,
          message = string.format("%s with %s has %s, which no spec %s", result.entry.title, shown, key.unread.what,
                                  field == "model" and "that is read of a launch has: --model says the model" or "says") }
      elseif not idle then
        unsaid[#unsaid + 1] = { field = field, value = key.assumed.value, why = shown .. " " .. key.assumed.why }
      end
    end
  end
end

-- training.of(result, facts) → fields of a spec's training, and a list of what no spec says (reads.lua). facts: precision, zero, pipeline.
function training.of(result, facts)
  local out, unsaid = {}, {}
  local key = reader(result)
  local zero = facts.zero
  if key "--use-torch-fsdp2" == true then   -- it shards parameters, gradients and state (torch_fully_sharded_data_parallel.py)
    out.zero, zero = 3, 3
    if key "--torch-fsdp2-no-reshard-after-forward" == true then out.reshard = false end
  end
  if key "parallelism.fsdp_reshard_after_forward" == "always" then out.reshard = true end
  if facts.precision == "fp8" and zero == 3 and key "--fp8-param-gather" == true then out.fp8_gathers = true end
  read_optimizer(result, out, unsaid)
  offload_of(result, out, unsaid, zero)
  gradients_of(result, out, unsaid, facts.precision, zero)
  loss_of(result, out)
  attention_of(result, out)
  compiled_of(result, out)
  graphs_of(result, out, facts.pipeline)
  local bucket = key "--ddp-bucket-size"
  if bucket and bucket > 0 then out.bucket = bucket end
  add_unread(result, unsaid)
  return out, unsaid
end

return training

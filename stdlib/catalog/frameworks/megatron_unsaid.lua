-- SPDX-License-Identifier: Apache-2.0
-- megatron_unsaid.lua: what of a plan no key of Megatron-LM, or of what is derived from it, says.

local format = require "pipeplan.base.format"

-- Layers that differ from each other; windows and chunks that are shorter than a sequence.
local function layers(f)
  local shape, length = f.shape, f.request.training.sequence_length
  local function short(layer)
    local window, chunk = layer.window or 0, layer.chunk or 0
    return window > 0 and window < length or chunk > 0 and chunk < length
  end
  local windows = short(shape)
  for _, kind in ipairs(shape.kinds or {}) do
    windows = windows or short(kind)
    for field in pairs(kind) do
      if field ~= "layers" and field ~= "window" and field ~= "chunk" then return "layers of several kinds" end
    end
  end
  return windows and "windows or chunks of attention that is written here" or nil
end

-- Its hybrid optimizer is the precision-aware one (arguments.py:1884-1893), of Adam and sharded (optimizer_config.py:433-440).
local function offload(f)
  local asked = f.request.training
  local share = asked.optimizer_offload or 0
  local function told(why) return string.format("training.optimizer_offload %s %s", share, why) end
  if share == 0 then return nil end
  if f.training.zero == 0 then return told "of an optimizer that is not sharded" end
  if asked.optimizer ~= "adam" and asked.optimizer ~= "adamw" then return told("of " .. asked.optimizer) end
  if asked.fp8_gathers then return told "beside parameters that are gathered in fp8 with scales of blocks" end
end

-- In words, of { plan, request, entry, shape, training } (megatron_writes.lua); nil: nothing.
return function(f)
  local by_base = {}
  for _, key in ipairs(f.entry.keys) do by_base[key.base or key.key] = true end
  local shape = f.shape
  local different = layers(f)
  if different then return different end
  local loss = f.request.training.loss
  if loss and not loss:find "^vocab_parallel" then return "a loss that is computed " .. loss:gsub("_", " ") end
  local away = offload(f)
  if away then return away end
  if f.request.training.document_length then return "documents that are packed into a sequence" end
  if (shape.tower or 0) > 0 then return "a tower of images" end
  if (shape.norms_per_layer or 2) ~= 2 then return format.plural(shape.norms_per_layer, "norm") .. " a layer with weights" end
  if shape.qk_norm == "full" then return "norms of queries and keys over all heads" end
  if (shape.attention_sinks or 0) > 0 then return "attention sinks" end
  -- one key gives every linear layer a bias, experts too
  local all, some = shape.mlp_bias and shape.qkv_bias and shape.output_bias, shape.mlp_bias or shape.output_bias or shape.expert_bias
  if shape.attention == "mla" then all = shape.mlp_bias end
  if some and not (all and ((shape.experts or 0) == 0 or shape.expert_bias)) then
    return "biases of some linear layers and not of others"
  end
  if shape.head_bias then return "a bias of the output weights" end
  if shape.embedding_norm then return "a norm behind the embedding" end
  if shape.router_bias then return "a bias of the router" end
  if shape.shared_gate then return "the gate of a shared expert" end
  if f.plan.training.batch_ramp and not by_base["--step-batch-size-schedule"] then return "a batch that grows in steps" end
end

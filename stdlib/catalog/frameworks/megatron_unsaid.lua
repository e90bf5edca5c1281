-- SPDX-License-Identifier: Apache-2.0
-- megatron_unsaid.lua: what of a plan no key of Megatron-LM, or of what is derived from it, says.

local format = require "pipeplan.base.format"

-- In words, of { plan, request, entry, shape, training } (megatron_writes.lua); nil: nothing.
return function(f)
  local by_base = {}
  for _, key in ipairs(f.entry.keys) do by_base[key.base or key.key] = true end
  local shape = f.shape
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

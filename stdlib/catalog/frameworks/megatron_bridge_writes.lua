-- SPDX-License-Identifier: Apache-2.0
-- megatron_bridge_writes.lua: how Megatron-Bridge's overrides of its bare recipe (recipes/gpt/vanilla_gpt.py) follow from a plan, where they
-- do not as Megatron's keys do (megatron_writes.lua), and what of a plan no override says. "no": the override false.

local lists = require "pipeplan.base.lists"
local unsaid = require "pipeplan.catalog.frameworks.megatron_unsaid"
local volume = require "pipeplan.catalog.frameworks.volume"
local writes = require "pipeplan.catalog.frameworks.megatron_writes"

local bridge = {}

local function nothing() return nil end
local function is_mla(f) return f.shape.attention == "mla" end
local function is_gated(f) return f.shape.gated ~= false end
local function shards(f) return f.training.zero > 0 and true or "no" end

local function round_up(number, step) return (number + step - 1) // step * step end

local function dtype(name) return "{_target_:torch." .. name .. ",_call_:false}" end

-- A MixedPrecisionConfig of its own, where none that has a name is what was planned.
local function section(kind, name, more)
  return string.format("{_target_:megatron.bridge.training.mixed_precision.MixedPrecisionConfig,%s:true,params_dtype:%s,pipeline_dtype:%s%s}",
                       kind, dtype(name), dtype(name), more)
end

-- The names' fp8 recipes have other formats, or gather weights otherwise, than is planned (mixed_precision.py:185-421).
function bridge.precision(f)
  local precision = f.plan.training.precision
  if precision == "fp32" then return section("fp32", "float32", "") end
  if precision ~= "fp8" then return precision .. "_mixed" end
  local blocks, gathers = f.request.cluster.accelerator_family == "blackwell" and "mxfp8" or "blockwise", f.request.training.fp8_gathers
  local reused = gathers and blocks == "mxfp8" and ",reuse_grad_buf_for_mxfp8_param_ag:true" or ""   -- config.py:1335
  return section("bf16", "bfloat16", ",fp8:e4m3,fp8_recipe:" .. blocks .. (gathers and ",fp8_param_gather:true" or "") .. reused)
end

-- "([0]*3+[1]*58)" → "[0,0,0,1,…]": a configuration class takes no program.
local function pattern(f)
  local text = writes["--moe-layer-freq"](f)
  if not text then return nil end
  local parts = {}
  for digit, count in text:gmatch "%[(%d)%]%*?(%d*)" do
    for _ = 1, tonumber(count) or 1 do parts[#parts + 1] = digit end
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function interleaves(f) return (f.plan.schedule:find "^interleaved") ~= nil end

bridge.keys = lists.with(writes, {
  ["--max-position-embeddings"] = nothing,   -- as many as a sequence has tokens
  ["--vocab-size"] = function(f) return f.shape.vocab and round_up(f.shape.vocab, 128 * f.plan.parallelism.tensor) or nil end,
  ["--disable-bias-linear"] = function(f) return not f.shape.mlp_bias and "no" or nil end,
  ["model.share_embeddings_and_output_weights"] = function(f) return not f.shape.tied_embeddings and "no" or nil end,
  ["model.activation_func"] = function(f) return is_gated(f) and "{_target_:torch.nn.functional.silu,_call_:false}" or nil end,
  ["model.bias_activation_fusion"] = function(f)   -- as Megatron-LM has them on by default (arguments.py)
    return not (f.request.training.unfused or {}).activation and (is_gated(f) or f.shape.mlp_bias == true) and true or nil
  end,
  ["--cross-entropy-loss-fusion"] = function(f) return f.request.training.loss == "vocab_parallel" and "no" or nil end,
  ["model.bias_dropout_fusion"] = function() return true end,
  ["model._target_"] = function(f) return is_mla(f) and "megatron.bridge.models.mla_provider.MLAModelProvider" or nil end,
  ["--q-lora-rank"] = function(f) return is_mla(f) and ((f.shape.q_lora_rank or 0) > 0 and f.shape.q_lora_rank or "null") or nil end,
  ["--kv-lora-rank"] = function(f) return is_mla(f) and f.shape.kv_lora_rank or nil end,
  ["--moe-layer-freq"] = pattern,
  ["--moe-enable-deepep"] = nothing,
  ["model.overlap_p2p_comm"] = function(f) return interleaves(f) or nil end,   -- as Megatron-LM's interleaving has it
  ["model.batch_p2p_comm"] = function(f) return interleaves(f) and "no" or nil end,
  ["dataset.seq_length"] = function(f) return f.plan.training.sequence_length end,
  ["--use-distributed-optimizer"] = shards,
  ["optimizer.use_distributed_optimizer"] = shards,
  ["train.rampup_batch_size"] = nothing,
  mixed_precision = bridge.precision,
  ["--fp8-param-gather"] = nothing,   -- in the section
  ["--train-iters"] = function(f) return volume.steps(f.plan) end,
})

function bridge.unsaid(f)
  local learned = f.shape.learned_positions or 0
  if learned > 0 and learned ~= f.plan.training.sequence_length then
    return string.format("%d learned positions beside sequences of %d", learned, f.plan.training.sequence_length)
  end
  if f.request.training.moments == "fp8" then return "moments in fp8" end
  return unsaid(f)
end

bridge.accepts = {
  by = "megatron-bridge 0.6.2 over megatron-core 0.19.2: its recipe, its parser of overrides, `ConfigContainer.validate`, layers of each stage",
  test = "bridge_plans_test.py",
  except = {
    { what = "fp8", why = "it wants Transformer Engine", when = function(plan) return plan.training.precision == "fp8" end },
    { what = "moments, gradients, offload", why = "they want Transformer Engine",
      when = function(_, said) return said["--use-precision-aware-optimizer"] ~= nil end },
  },
}

return bridge

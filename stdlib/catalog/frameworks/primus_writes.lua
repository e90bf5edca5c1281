-- SPDX-License-Identifier: Apache-2.0
-- primus_writes.lua: how Primus's overrides of its barest presets (primus.lua: recipes) follow from a plan, where they do not as Megatron's
-- keys do (megatron_writes.lua), and what of a plan no override says. "no": the override false.

local lists = require "pipeplan.base.lists"
local unsaid = require "pipeplan.catalog.frameworks.megatron_unsaid"
local volume = require "pipeplan.catalog.frameworks.volume"
local writes = require "pipeplan.catalog.frameworks.megatron_writes"

local primus = {}

local setups = { zb_v = "zb", v_half = "half", v_min = "min" }

local function nothing() return nil end

local function in_v(f) return setups[f.plan.schedule] ~= nil end

local function splits(f) return in_v(f) or f.plan.schedule:find "^zb_" ~= nil end

-- Schedules of sail's runtime reduce no gradient beside the pipeline (zerobubble/README.md).
local function unless_split(base)
  return function(f) return not splits(f) and writes[base](f) or nil end
end

local function has_experts(f) return (f.shape.experts or 0) > 0 end

local function is_turbo(f)
  local p = f.plan.parallelism
  return has_experts(f) and f.plan.alltoall_kernel ~= nil and f.plan.alltoall_kernel.name == "primus_turbo" and p.tensor * (p.expert or 1) > 1
end

-- What the presets switch on: true or "no", never left out.
local function said(base)
  return function(f) return writes[base](f) and true or "no" end
end

primus.keys = lists.with(writes, {
  ["--num-virtual-stages-per-pipeline-rank"] = function(f)
    return in_v(f) and 2 or writes["--num-virtual-stages-per-pipeline-rank"](f)
  end,
  ["--disable-bias-linear"] = function(f) return f.shape.mlp_bias and true or "no" end,
  ["--swiglu"] = said "--swiglu",
  ["--untie-embeddings-and-output-weights"] = said "--untie-embeddings-and-output-weights",
  ["--bf16"] = said "--bf16",
  ["--use-distributed-optimizer"] = said "--use-distributed-optimizer",
  ["--sequence-parallel"] = function(f)   -- at TP 1 it is switched off (sequence_parallel_tp1_patches.py)
    return f.plan.parallelism.tensor > 1 and (writes["--sequence-parallel"](f) and true or "no") or nil
  end,
  ["--no-position-embedding"] = function(f) return (f.shape.learned_positions or 0) > 0 or nil end,
  ["--overlap-grad-reduce"] = unless_split "--overlap-grad-reduce",
  ["--overlap-param-gather"] = unless_split "--overlap-param-gather",
  ["--moe-token-dispatcher-type"] = function(f)
    return is_turbo(f) and "flex" or writes["--moe-token-dispatcher-type"](f)   -- as its patch has it (moe_dispatcher_patches.py)
  end,
  ["--moe-enable-deepep"] = function(f) return is_turbo(f) or nil end,
  enable_primus_turbo = function(f) return is_turbo(f) or nil end,
  use_turbo_deepep = function(f) return is_turbo(f) or nil end,
  moe_router_dtype = function(f) return is_turbo(f) and "fp32" or nil end,
  ["--train-iters"] = function(f) return volume.steps(f.plan) end,
  rampup_batch_size = nothing,
  patch_zero_bubble = function(f) return splits(f) or nil end,
  enable_zero_bubble = nothing,   -- on in the presets
  zero_bubble_v_schedule = function(f) return in_v(f) or nil end,
  zero_bubble_v_schedule_mem_setup = function(f) return setups[f.plan.schedule] end,
  zero_bubble_max_pending_backward = function(f)
    local P = f.plan.parallelism.pipeline
    if f.plan.schedule == "zb_auto" then return f.plan.activation_limit_chunks end
    return f.plan.schedule == "zb_h1" and P or f.plan.schedule == "zb_h2" and 2 * P or nil
  end,
  no_persist_layer_norm = function(f) return splits(f) or nil end,
  create_attention_mask_in_dataloader = function(f) return splits(f) and "no" or nil end,
  ["--no-gradient-accumulation-fusion"] = function(f) return splits(f) or nil end,
})

function primus.unsaid(f)
  local own = unsaid(f)
  if own then return own end
  if in_v(f) and writes["--pipeline-model-parallel-layout"](f) then return "unequal stages of a V" end
  if f.request.training.optimizer == "muon" and f.training.zero > 0 then return "Muon whose state is sharded" end   -- of its core 0.16
  if splits(f) and f.plan.training.precision == "fp8" then return "fp8 with a split backward" end   -- zerobubble/README.md: coming soon
end

primus.accepts = {
  by = "Primus @fd1eeabb: parser, presets, builder of arguments, checks; `validate_args`, `TransformerConfig`, layers of each stage of its "
       .. "Megatron-LM, core 0.16",
  test = "primus_plans_test.py",
  except = {
    { what = "fp8", why = "it wants Transformer Engine", when = function(plan) return plan.training.precision == "fp8" end },
    { what = "zero bubble", why = "its runtime patches schedules on a GPU", when = function(_, keys) return keys.patch_zero_bubble ~= nil end },
  },
}

return primus
